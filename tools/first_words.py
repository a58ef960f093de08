"""What `leveret serve` says when it is ready: five sentences for who starts it for the first time."""

from leveret.core.access.permissions import GUEST
from leveret.core.version import PRODUCT, VERSION
from leveret.core.wire.registry import FAMILIES

WEB = ("http", "https")


NAMED_MAX = 5


def shown(names):
    """The first NAMED_MAX of sorted names, with the count of the rest."""
    rest = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")


def first_words(form, octets_max, urls, users, file, kept):
    """The sentences: what it is, where it listens, who may log in, what is kept, how to end it and where the page is.

    `form`: how the hot functions run; `octets_max`: memory when every limit is reached; `urls`: of all listeners; `users`: {name: user};
    `file`: the configuration file's path, or ""; `kept`: data.Data, None: in memory alone.
    """
    pages = [url + "/" for url in urls if url.split(":")[0] in WEB]
    names = dict.fromkeys(family.name.replace("AMQP ", "") for family in FAMILIES)
    yield f"{PRODUCT} {VERSION} speaks AMQP {', '.join(names)}; {form}; at most {octets_max >> 20} MiB when every limit is reached"
    yield "it listens on " + ", ".join(url for url in urls if url.split(":")[0] not in WEB)
    if set(users) == {GUEST}:
        yield "guest may log in with the password guest, from this machine alone; [[user]] tables of a file (--config) name others"
    else:
        yield f"{len(users)} users may log in: {shown(sorted(users))}"
    if kept is None:
        yield "messages are in memory only, and are gone when it ends; --data DIR keeps them"
    else:
        yield f"durable queues, persistent messages and streams are kept in {kept.directory} (sync {kept.sync})"
    again = f"; SIGHUP reads {file} again" if file else ""
    page = "; the page is " + pages[0] if pages else "; --http 127.0.0.1:15672 would serve a page and RabbitMQ's management API"
    yield f"Ctrl-C or SIGTERM ends it{again}{page}"

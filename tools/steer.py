"""`leveret close | drain | reload | trace`: connections of a running broker, its configuration file, its firehose.

    leveret close connection NAME [--reason TEXT] [URL]       NAME as `leveret list connections` has it
    leveret close user NAME [--reason TEXT] [URL]             every connection of a user
    leveret drain [--seconds N] [URL]                          before maintenance: clients are told to go, and none comes in any more
    leveret trace on [--exchange NAME]... [--queue NAME]... [URL]       copy messages to amq.rabbitmq.trace (tools/EVENTS.md)
    leveret trace off [URL]
    leveret reload [URL]                                       the broker reads its configuration file anew, and says what that changed

`drain` returns when every client has gone, exit status 1 after N seconds (60) if some have not. What was confirmed is on the disk by then
where the broker keeps messages. A drained broker serves HTTP on; SIGHUP or a restart lets clients in again. `reload` is exit status 1 when
the file has a mistake: then nothing has changed.
"""

import time

from . import manage
from .asking import add_url, answers, manager
from .cli import positive_seconds

POLL_S = 0.1
RELOAD_S = 60


def add_close(parser):
    """The arguments of `close`."""
    nouns = parser.add_subparsers(dest="noun", required=True, metavar="WHAT")
    for noun, text in (("connection", "close one connection"), ("user", "close every connection of a user")):
        each = nouns.add_parser(noun, help=text)
        each.add_argument("name", metavar="NAME", help=f"of the {noun}")
        each.add_argument("--reason", default="closed by an operator", metavar="TEXT", help="what its client is told")
        add_url(each)


def close(options):
    """Close connections."""
    with manager(options.url) as asked:
        key = "name" if options.noun == "connection" else "of_user"
        closed = asked.ask("close-connection", reason=options.reason, **{key: options.name})["closed"]
        if options.noun == "user":
            print(f"{closed} connections closed")


def add_drain(parser):
    """The arguments of `drain`."""
    parser.add_argument("--seconds", type=positive_seconds, default=60.0, metavar="N", help="wait so long for clients to go (default 60)")
    add_url(parser)


def drain(options):
    """Wait until every other client has gone."""
    with manager(options.url) as asked:
        own = asked.own_name()
        limit = time.monotonic() + options.seconds
        while True:
            left = asked.ask("drain", keep=own)["left"]
            if not left:
                return
            if time.monotonic() > limit:
                raise manage.ManageFailed(f"{left} clients have not gone in {options.seconds:g} s; none comes in any more")
            time.sleep(POLL_S)


def add_reload(parser):
    """The arguments of `reload`."""
    add_url(parser)


def reload(options):
    """Have the file read, and print what came of it."""
    with manager(options.url) as asked:
        number = asked.ask("reload")["number"]
        limit = time.monotonic() + RELOAD_S
        while True:
            answer = asked.ask("reload", number=number)
            if answer["over"]:
                break
            if time.monotonic() > limit:
                raise manage.ManageFailed(f"the broker has not read its file in {RELOAD_S} s")
            time.sleep(POLL_S)
        for sentence in answer["sentences"]:
            print(sentence)
        return 1 if answer["failed"] else 0


def add_trace(parser):
    """The arguments of `trace`."""
    nouns = parser.add_subparsers(dest="noun", required=True, metavar="WHAT")
    on = nouns.add_parser("on", help="copy each message that is published or delivered; all of them take longer meanwhile")
    on.add_argument("--exchange", action="append", metavar="NAME", help="of what is published only to this one; may be given again")
    on.add_argument("--queue", action="append", metavar="NAME", help="of what is delivered only from this one; may be given again")
    add_url(on)
    add_url(nouns.add_parser("off", help="copy nothing more"))


def trace(options):
    """Turn the firehose on or off."""
    chosen = {"exchanges": options.exchange, "queues": options.queue} if options.noun == "on" else {}
    if any(chosen.values()):  # who names exchanges alone wants no deliveries
        chosen = {key: names or [] for key, names in chosen.items()}
    with manager(options.url) as asked:
        asked.ask("trace", on=options.noun == "on", **chosen)


COMMANDS = {
    "trace": (add_trace, answers("trace", trace)),
    "close": (add_close, answers("close", close)),
    "drain": (add_drain, answers("drain", drain)),
    "reload": (add_reload, answers("reload", reload)),
}

"""`leveret definitions`: users, permissions, policies, exchanges, queues and bindings as RabbitMQ's JSON.

    leveret definitions export [--from URL] FILE     FILE may be -, standard output
    leveret definitions import [--to URL] [--vhost NAME] FILE       FILE may be -, standard input

A file that `rabbitmqctl export_definitions` wrote loads, and one from here loads with `rabbitmqctl import_definitions`. Laws: what is left
out is named on standard error, one sentence each, and the exit status is still 0; nothing is removed by an import; importing again changes
nothing. Exit status 1: the broker did not do it; 2: the file is not one of definitions.
"""

import json
import sys

from leveret.core.access import passwords
from leveret.core.management import rabbitmq_definitions
from leveret.core.management.rabbitmq_definitions import SECTIONS
from leveret.core.version import PRODUCT, VERSION
from leveret.ports.store_file import private

from .usage import UsageError

ORDER = (
    "users",
    "vhosts",
    "permissions",
    "topic_permissions",
    "parameters",
    "global_parameters",
    "policies",
    "queues",
    "exchanges",
    "bindings",
)
REQUEST_BESIDE = 64  # octets of an import request beside its items and the name of a virtual host
VHOST_HELP = "take those of this virtual host (default: of the broker's own)"

RARE = ("topic_permissions", "parameters", "global_parameters")  # told where there are some


def add_arguments(parser):
    """The subcommand's arguments."""
    from . import manage  # a client, which a broker that reads a file has no use for: 300 KB

    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, option, text in (
        ("export", "--from", "write the definitions of a running broker to a file"),
        ("import", "--to", "load the definitions of a file into a running broker"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument(option, dest="url", default=manage.URL_DEFAULT, metavar="URL", help=manage.URL_HELP)
        if name == "import":
            action.add_argument("--vhost", metavar="NAME", help=VHOST_HELP)
        action.add_argument("file", metavar="FILE", help="JSON as RabbitMQ has it; - for standard output or input")


def read(path):
    """The definitions in a file, checked in form. Raises UsageError."""
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        document = json.loads(text)
        rabbitmq_definitions.checked(document)
    except OSError as error:
        raise UsageError(f"the definitions file {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} does not hold definitions: {error}") from None
    return document


def identity(item):
    """An order that stays from export to export."""
    return [str(item.get(name, "")) for name in ("name", "user", "source", "destination_type", "destination", "routing_key", "arguments")]


def check_host(path, document, host):
    """Raise UsageError when a virtual host was chosen of which the definitions have nothing."""
    names = {item.get("vhost") for name in SECTIONS for item in document.get(name, [])}
    names |= {item.get("name") for item in document.get("vhosts", [])}
    known = sorted(name for name in names if isinstance(name, str))
    if host is not None and known and host not in known:
        raise UsageError(f"{path} has no definitions of virtual host {host!r}; it has those of {', '.join(map(repr, known))}")


def document_of(items, host):
    """RabbitMQ's document, of the items of a broker with this virtual host."""
    document: dict = {"product_name": PRODUCT, "product_version": VERSION}
    for name in ORDER:
        document[name] = [{"name": host}] if name == "vhosts" else sorted(items.get(name, []), key=identity)
    return document


def export_to(path, manager):
    """Write a broker's definitions to a file: sentences about the parts that were left out."""
    _, items = manager.pages("definitions")
    host = manager.ask("overview")["overview"].get("virtual_host", "/")
    text = json.dumps(document_of(items, host), indent=2, ensure_ascii=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        try:
            with open(path, "w", encoding="utf-8", opener=private) as file:  # it has users
                file.write(text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    rare = [
        f"user {user['name']!r}: the password hash is of use to Leveret alone; RabbitMQ takes it and lets nobody in by it"
        for user in items.get("users", [])
        if user["hashing_algorithm"] == passwords.Pbkdf2.algorithm
    ]
    return sorted(items.get("left_out", [])) + sorted(rare)


def import_from(document, manager, host=None):
    """Send the definitions of a virtual host (None: of the broker's) in portions that the broker takes: (items loaded by section, sentences
    about the parts left out)."""
    overview = manager.ask("overview")["overview"]
    host = overview.get("virtual_host", "/") if host is None else host
    sentences = rabbitmq_definitions.left_out(document, host)
    loaded = dict.fromkeys(SECTIONS, 0)
    size_max = overview["management_size_max"] - REQUEST_BESIDE - len(json.dumps(host))
    for section in SECTIONS:
        for portion in portions(section, rabbitmq_definitions.ours(document.get(section, []), host), size_max, sentences):
            while portion:
                answer = manager.ask("import", definitions={section: portion}, vhost=host)
                loaded[section] += answer["loaded"][section]
                sentences += answer["left_out"]
                portion = portion[answer["rest"][1] :] if answer["rest"] else []
    return loaded, sentences


def portions(section, items, size_max, sentences):
    """Lists of items that fit in a request; an item that never does is named in `sentences`."""
    portion: list = []
    size = 0
    for item in items:
        item_size = len(json.dumps(item)) + 2
        if item_size > size_max:
            name = rabbitmq_definitions.title(section, item)
            sentences.append(f"{name} left out: it takes {item_size} octets and the broker takes {size_max}")
            continue
        if size + item_size > size_max:
            yield portion
            portion, size = [], 0
        portion.append(item)
        size += item_size
    yield portion


def load_into(broker, document, host=None):
    """Load definitions into a broker of this process: what `import_from` answers."""
    host = broker.virtual_host if host is None else host
    sentences = rabbitmq_definitions.left_out(document, host)
    loaded = dict.fromkeys(SECTIONS, 0)
    for section in SECTIONS:
        for item in rabbitmq_definitions.ours(document.get(section, []), host):
            done, sentence = rabbitmq_definitions.load(broker, section, item)
            loaded[section] += done
            sentences += [sentence] if sentence else []
    return loaded, sentences


def counted(loaded):
    """The loaded definitions, in words."""
    counts = {section: count for section, count in loaded.items() if count or section not in RARE}
    return "loaded " + ", ".join(f"{count} {section.replace('_', ' ')}" for section, count in counts.items())


def run(options):
    """Export or import; the exit status."""
    from . import manage

    document = None
    if options.action == "import":
        document = read(options.file)
        check_host(options.file, document, options.vhost)
    try:
        with manage.Manager(options.url) as manager:
            if document is None:
                sentences = export_to(options.file, manager)
            else:
                loaded, sentences = import_from(document, manager, options.vhost)
                print(counted(loaded))
    except manage.ManageFailed as error:
        print(f"leveret definitions: {error}", file=sys.stderr)
        return 1
    for sentence in sentences:
        print(f"leveret definitions: {sentence}", file=sys.stderr)
    return 0

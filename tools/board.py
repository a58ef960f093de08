"""`leveret board [NAME]`: what a board's memory goes to, by the numbers of boards/<NAME>/board.toml and core/limits.py.
With `--config FILE`: by those of the configuration that it is to be flashed with.

Without a name: the boards there are. Exit status 1, with a sentence, when the board's limits and code do not fit in its heap.
It runs nothing on a board.
"""

from . import boards, flash_settings
from .usage import UsageError

# The table's lines, and the parts of memory_parts that each takes together; a number that divides is the count of a limit.
LINES = (
    (
        "the broker itself",
        (
            "broker",
            "addresses",
            "policies",
            "users",
            "patterns",
            "management",
            "routes",
            "index of the log",
            "names granted",
            "ways",
            "bridges' reports",
            "the hot functions' own tables",
        ),
        "",
    ),
    (
        "what is remembered or waits",
        (
            "identities",
            "groups",
            "waiting",
            "transactions",
            "offsets",
            "names of readers",
            "messages that wait",
            "message ids, publishers, last values",
        ),
        "",
    ),
    ("arena", ("arena", "messages", "queue entries", "places in queues", "index of deliveries"), ""),
    ("connections", ("connections", "connections of other versions"), "connection_count_max"),
    ("channels", ("channels",), "channel_count_max"),
    ("queues", ("queues",), "queue_count_max"),
    ("consumers", ("consumers",), "consumer_count_max"),
    ("exchanges", ("exchanges",), "exchange_count_max"),
    ("bindings", ("bindings",), "binding_count_max"),
)


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="a board; without it: the boards there are")
    parser.add_argument("--config", default="", metavar="FILE", help="count the [limits], [board.store] and [[bridge]] of this file")


def lines(board):
    """The table, line by line."""
    yield f"{board.name}: {board.description}"
    yield f"  {'heap before anything is imported':44}{board.heap_size:>11,} octets"
    yield f"  {'code ' + FORMS[board.code]:44}{board.code_heap:>11,}"
    parts = dict(board.memory_parts())
    for title, names, count in LINES:
        size = sum(parts.get(name, 0) for name in names)
        number = getattr(board.limits, count) if count else 0
        each = f"   {number} of {size // number:,}" if number else ""
        yield f"  {title:44}{size:>11,}{each}"
    if board.log_heap:
        each = f"   with {board.batch_heap:,} for a batch ([board.store])" if board.batch_heap else ""
        yield f"  {'log':44}{board.log_heap:>11,}{each}"
    if board.bridges:
        size = board.bridge_heap + dict(parts)["bridges"]
        yield f"  {'bridges':44}{size:>11,}   {len(board.bridges)} of {size // len(board.bridges):,}"
    if board.line_heap:
        yield f"  {'serial line':44}{board.line_heap:>11,}"
    yield f"  {'stays free':44}{board.free():>11,}   for what is in the making: at least {board.working_heap():,}"


def lines_of_dialects(board):
    """The second table: what each choice of dialects takes, and whether there is room for it; nothing for a board without [sizes]."""
    if not board.sizes:
        return
    yield ""
    yield f"  {'':25}{'heap':>12}{'':24}{'flash':>12}"
    heads = ("code", "connection", "stays free", "bytecode", "viper", "ROMFS")
    yield f"  {'[carries] dialects':25}" + "".join(f"{head:>12}" for head in heads)
    for choice, sizes in board.sizes.items():
        other = board.speaking(choice)
        short = other.working_heap() - other.free()
        room = f"   does not fit: {short:,} octets are missing" if short > 0 else ""
        numbers = (other.code_heap, sizes["connection"], other.free(), sizes["mpy"], sizes["viper"], sizes["romfs"])
        yield f"  {choice:25}" + "".join(f"{number:>12,}" for number in numbers) + room


FORMS = {
    "mpy": "(.mpy files, loaded into the heap)",
    "romfs": "(ROMFS image; names and objects)",
    "frozen": "(frozen in the firmware; names and objects)",
    "wheel": "(CPython)",
}


def verdict(board):
    """One sentence, and whether the board's limits fit."""
    short = board.working_heap() - board.free()
    if short > 0:
        batch = ", or a smaller batch_octets in [board.store]" if board.batch_heap else ""
        return (
            f"It does not fit: {short:,} octets are missing. Smaller limits in boards/{board.name}/board.toml (arena_size, "
            f"connection_count_max, queue_count_max) or less in its [carries] give them{batch}.",
            False,
        )
    return "It fits.", True


def run(options):
    """Print; the exit status."""
    if options.name is None:
        for name in boards.names():
            print(f"{name:14}{boards.load(name).description}")
        return 0
    try:
        board = flash_settings.settled(boards.load(options.name), options.config)
    except boards.BoardError as error:
        raise UsageError(str(error)) from None
    for line in lines(board):
        print(line)
    for line in () if options.config else lines_of_dialects(board):  # the profile's own
        print(line)
    text, fits = verdict(board)
    print(text)
    return 0 if fits else 1

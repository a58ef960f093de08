"""The boards: what `boards/<NAME>/board.toml` says, checked, and which source files a board carries.

    description    one line for a person
    interpreter    "micropython" or "cpython"
    machines       patterns (fnmatch) of sys.implementation._machine there, "ESP32S3" for "ESP32-S3" (cpython: platform.machine());
                   with "!" before it: of those that are another board
    architecture   of mpy-cross -march, for native code
    heap_size      octets of heap before anything is imported, gc.mem_free() + gc.mem_alloc(): the collector's own tables, 3 octets for each
                   128, are beside them
    flash_size     octets of the file system
    code_heap      octets of heap that the code takes when all of it is loaded, firmware/ with its sensor, network, line and bridge included
                   (measured by tests/micropython/test_board_budget.py)
    code           "mpy" (files that are loaded into the heap), "romfs", "frozen" or "wheel"
    network        "wifi", "ethernet" or "none"
    connections_of_network   TCP connections that the stock firmware's network stack has, listeners and our own included
    [carries]      dialects and parts: names of DIALECTS and PARTS (board_parts.py); exchanges, rules: names of files in
                   core/exchange/types/ and core/queue/features/
    [uart]         id, baud, tx, rx of machine.UART (cpython: device, baud)
    [pins]         led and what else the board's firmware uses
    [sizes]        for each of CHOICES of dialects a table of octets, as SIZES has them (measured by tests/micropython/dialect_sizes.py)
    [limits]       rows of core/limits.py that differ from its board column (cpython: from what tools/memory.py makes fit)

What is not carried is not on the board: the core imports those files where they are first needed and refuses what is missing
with the protocol's words. The files of a board are found by following the imports at the head of each file from what it carries, so
there is no list to keep. It compiles and copies nothing.
"""

import ast
import os
import tomllib

from leveret.core.limits import BOARD, Limits
from leveret.core.log import flat_records
from leveret.core.log.journal import BATCH
from leveret.core.memory.micropython_sizes import bridge_held, bridge_memory, line_memory, memory_parts
from leveret.ports.setting_rows import named, passing
from leveret.ports.settings import Table

from . import memory, wear
from .board_parts import BEHIND, BESIDE, CHOICES, DIALECTS, MEETING, OF_AMQP_0_9, PARTS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOARDS = os.path.join(ROOT, "boards")

# What [sizes] says of a choice of dialects.
SIZES = {
    "heap": "of the code, as code_heap",
    "connection": "of a connection with one channel or session, and one consumer: heap beside its buffers' share",
    "mpy": "of its .mpy files, all bytecode",
    "viper": "of the files as `leveret flash` copies them, hot functions in machine code",
    "romfs": "of its ROMFS image",
}
LINE = (1024, 256)  # window and payload of the firmware's serial line, octets (firmware/line.py)
BRIDGE = (4096, 32)  # buffer_size and prefetch that a bridge on a board has when it is told nothing else (ports/bridge/settings.py)
FRAME_OF_0_10 = 4096  # octets that every peer of 0-10 takes in a frame (MIN-MAX-FRAME-SIZE), and a board reads in one piece
LOG_HEAP = 4096  # octets: the journal, its lists of segments and of settlements, its store, and the room of a record
RUNS_HEAP = 4 * (1 + flat_records.RUN_WIDTH * flat_records.RUNS)  # octets: the runs of streams' messages that are noted at a time
STORE = {"sync": "batch"}  # what a board that keeps messages has when it is told nothing else: [board.store] whose flash lasts for years
WORKING_HEAP_MIN = 8192  # octets: what must stay free for what is in the making (a declaration, a log-in, an error's text)
WORKING_HEAP_SHARE = 32  # and at least this part of the heap, as much as is garbage before a collection (firmware/main.py)
OPTIONAL_PARTS = {  # of memory_parts, where a board may not carry what they stand for: files of it
    "management": ("core/management/requests.py",),
    "policies": ("core/broker/policies.py",),
    "groups": ("core/queue/features/groups.py",),
    "identities": ("core/queue/identities.py",),
    "patterns": ("core/patterns/expression_parser.py",),
    "offsets": ("core/stream/stream.py",),
    "transactions": ("core/broker/transaction.py",),
    "waiting": ("core/exchange/types/delayed.py", "core/queue/features/delayed_retry.py"),
}

ALWAYS = ("core/connection/connection.py", "core/broker/broker.py")


def of_type(kind):
    """The kind (ports/settings.py) of a field of this type."""
    return passing(f"of type {kind.__name__}", lambda value: isinstance(value, kind) and not isinstance(value, bool))


# field: what it must be
FIELDS = {
    "description": of_type(str),
    "interpreter": named("micropython", "cpython"),
    "machines": of_type(list),
    "architecture": of_type(str),
    "heap_size": of_type(int),
    "flash_size": of_type(int),
    "code_heap": of_type(int),
    "code": named("mpy", "romfs", "frozen", "wheel"),
    "network": named("wifi", "ethernet", "none"),
    "connections_of_network": of_type(int),
    "carries": of_type(dict),
    "uart": of_type(dict),
    "pins": of_type(dict),
    "limits": of_type(dict),
    "sizes": of_type(dict),
}
OPTIONAL = ("architecture", "connections_of_network", "uart", "pins", "sizes")
TABLE = Table(
    [(name, kind, None) for name, kind in FIELDS.items()],
    "there is no field {name!r}; there are {names}",
    "{name} is {value!r}; it must be {words}",
)


class BoardError(ValueError):
    """A board that there is not, or whose file is wrong: one sentence."""


class Board:
    """One board, its fields as attributes, `limits` a core.limits.Limits, `carries` with tuples of names."""

    description: str
    interpreter: str
    machines: list
    architecture: str | None
    heap_size: int
    flash_size: int
    code_heap: int
    code: str
    network: str
    connections_of_network: int | None
    carries: dict
    uart: dict
    pins: dict
    sizes: dict

    def __init__(self, name, fields):
        self.name = name
        self.fields = fields
        for field in FIELDS:
            setattr(self, field, fields.get(field))
        self.uart, self.pins, self.sizes = self.uart or {}, self.pins or {}, self.sizes or {}
        if self.interpreter == "cpython":
            self.limits = memory.fitting(fields["limits"], self.heap_size * 9 // 10)
        else:
            self.limits = Limits(**dict(BOARD, **fields["limits"]))
        self.bridges = [BRIDGE] * (self.limits.bridge_count_max if "bridge" in self.carries["parts"] else 0)
        self.store = STORE if "log" in self.carries["parts"] else None

    def speaking(self, choice):
        """The same Board with other dialects, a name of CHOICES, without what goes with AMQP 0-9-1 alone where that is not one of them, and
        with what 0-10 needs where that is."""
        dialects = CHOICES[choice]
        parts = [part for part in self.carries["parts"] if "amqp_0_9" in dialects or part not in OF_AMQP_0_9]
        carries = dict(self.carries, dialects=list(dialects), parts=parts)
        code_heap = self.sizes[choice]["heap"] if choice in self.sizes else self.code_heap
        limits = dict(self.fields["limits"])
        if "amqp_0_10" in dialects:
            limits["receive_buffer_size"] = max(FRAME_OF_0_10, self.limits.receive_buffer_size)
        return Board(self.name, dict(self.fields, carries=carries, code_heap=code_heap, limits=limits))

    def memory_parts(self):
        """(what, octets) of what the board carries, by its interpreter."""
        if self.interpreter == "cpython":
            return [(name, size) for name, size, _ in memory.parts(self.limits)[1:]]  # but for the interpreter, which code_heap counts
        files = set(self.files())
        parts = memory_parts(self.limits, [part for part, made_by in OPTIONAL_PARTS.items() if not files.intersection(made_by)])
        largest = max([self.sizes[name]["connection"] for name in self.carries["dialects"] if name in self.sizes] or [0])
        if largest:
            more = max(0, largest - self.sizes["amqp_0_9"]["connection"])
            parts.append(("connections of other versions", more * self.limits.connection_count_max))
        return parts

    def memory_needed(self):
        """Octets of the broker when every limit is reached."""
        return sum(size for _, size in self.memory_parts())

    @property
    def log_heap(self):
        """Octets of the log of `store` ([board.store], or None) beside its code."""
        if self.store is None:
            return 0
        return LOG_HEAP + self.batch_heap + (RUNS_HEAP if "streams" in self.carries["parts"] else 0)

    @property
    def batch_heap(self):
        """Octets of these for a batch: a record's room has its size (core/recovery/opening.py)."""
        if self.store is None or self.store.get("sync") != BATCH:
            return 0
        return self.store.get("batch_octets", wear.BATCH_OCTETS)

    @property
    def line_heap(self):
        """Octets of the serial line beside its code."""
        return line_memory(self.limits, *LINE) if "link" in self.carries["parts"] else 0

    @property
    def bridge_heap(self):
        """Octets of the bridges, (buffer_size, prefetch) each, beside their code and what the broker keeps of their status."""
        return sum(bridge_memory(size) + bridge_held(self.limits, size, prefetch) for size, prefetch in self.bridges)

    def free(self):
        """Octets of heap that stay when everything is at its limit; below 0: it does not fit."""
        return self.heap_size - self.code_heap - self.memory_needed() - self.log_heap - self.line_heap - self.bridge_heap

    def working_heap(self):
        """Octets that must stay free."""
        return max(WORKING_HEAP_MIN, self.heap_size // WORKING_HEAP_SHARE)

    def roots(self):
        """The source files that the board's `carries` names."""
        carries = self.carries
        dialects = tuple(path for name in carries["dialects"] for path in DIALECTS[name])
        folders = {path.split("/")[1] for path in dialects} & {*MEETING}
        named = (
            dialects  # first: core/connection has them imported, each with all below
            + ALWAYS
            + tuple(f"core/exchange/types/{name}.py" for name in carries["exchanges"])
            + tuple(f"core/queue/features/{name}.py" for name in carries["rules"])
            + tuple(path for part in carries["parts"] for path in PARTS[part])
            + tuple(path for pair, paths in BESIDE.items() if {*pair} <= {*carries["dialects"], *carries["parts"]} for path in paths)
            + tuple(path for folder in sorted(folders) if len(folders) > 1 for path in MEETING[folder])
            + (
                ("core/stream/pages.py", "core/recovery/lost_offsets.py")
                if "log" in carries["parts"] and {"streams", "bridge"} & set(carries["parts"])
                else ()
            )
        )
        return named + tuple(path for each in named for path in BEHIND.get(each, ()))

    def files(self):
        """Paths of all source files that the board carries, relative to the tree, sorted."""
        return closure(self.roots())


def names():
    """The boards there are, sorted."""
    return sorted(entry.name for entry in os.scandir(BOARDS) if os.path.exists(os.path.join(entry.path, "board.toml")))


def load(name):
    """The Board of that name. Raises BoardError."""
    if name not in names():
        raise BoardError(f"there is no board {name!r}; there are {', '.join(names())}")
    path = os.path.join(BOARDS, name, "board.toml")
    with open(path, "rb") as file:
        try:
            fields = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise BoardError(f"{path} is not TOML: {error}") from None
    try:
        check(fields)
        return Board(name, fields)
    except ValueError as error:
        raise BoardError(f"{path}: {error}") from None


def check(fields):
    """Raise ValueError for the first field that is unknown, not what it must be, or missing."""
    TABLE.check(fields)
    missing = [name for name in FIELDS if name not in fields and name not in OPTIONAL]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    check_carried(fields["carries"])
    size = fields["limits"].get("receive_buffer_size", BOARD["receive_buffer_size"])
    if "amqp_0_10" in fields["carries"]["dialects"] and fields["interpreter"] == "micropython" and size < FRAME_OF_0_10:
        raise ValueError(
            f"carries.dialects: amqp_0_10 needs receive_buffer_size = {FRAME_OF_0_10} in limits, which is {size}: a peer of 0-10 may send "
            "frames of that size"
        )
    for choice, sizes in fields.get("sizes", {}).items():
        if choice not in CHOICES or not isinstance(sizes, dict) or set(sizes) != set(SIZES):
            raise ValueError(f"sizes.{choice}: it must be one of {', '.join(CHOICES)}, a table of {', '.join(SIZES)}")


def check_carried(carries):
    """Raise ValueError unless each name in [carries] is something that there is."""
    known = {"dialects": DIALECTS, "parts": PARTS}
    folders = {"exchanges": "core/exchange/types/%s.py", "rules": "core/queue/features/%s.py"}
    for name in ("dialects", "exchanges", "rules", "parts"):
        for each in carries.get(name, ()):
            there = each in known[name] if name in known else os.path.exists(os.path.join(ROOT, folders[name] % each))
            if name == "parts" and each in OF_AMQP_0_9 and "amqp_0_9" not in carries["dialects"]:
                raise ValueError(f"carries.parts: {each} goes with the dialect amqp_0_9")
            if not there:
                raise ValueError(f"carries.{name}: there is no {each!r}")
        if name not in carries:
            raise ValueError(f"carries.{name} is missing")


def closure(roots):
    """`roots` and every file of the tree that they import at their heads, directly or not, sorted."""
    reached, waiting = set(), list(roots)
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += imported(path)
    return sorted(reached)


def load_order(roots):
    """`roots` and what they import, each behind what it imports at its head: where memory is short the deepest is loaded first."""
    order, seen = [], set()

    def visit(path):
        if path not in seen:
            seen.add(path)
            for other in imported(path):
                visit(other)
            order.append(path)

    for path in roots:
        visit(path)
    return order


def imported(path):
    """Paths of the files of the tree that `path` imports when it is imported itself."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield from places(path, node)


def places(path, node):
    """The files that one relative import names."""
    folder = path.split("/")[: -node.level]
    base = "/".join(folder + (node.module.split(".") if node.module else []))
    if is_file(base + ".py"):
        yield base + ".py"
        return
    if is_file(base + "/__init__.py"):
        yield base + "/__init__.py"
    for alias in node.names:
        if is_file(f"{base}/{alias.name}.py"):
            yield f"{base}/{alias.name}.py"


def is_file(path):
    return os.path.isfile(os.path.join(ROOT, path))

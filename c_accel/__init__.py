"""The hot functions in C: the engine that CPython uses where the compiled module is there (core/DESIGN.md section 3).

`install()` has brokers that are made from then on use it. `LEVERET_ACCEL=0` in the environment switches it off; a machine without a
compiler installs without the module, and its brokers run core/memory/hot.py and what is beside it as boards do. tests/accel holds the
forms together.
"""

import importlib
import os

from leveret.core import limits
from leveret.core.broker import engine
from leveret.core.limits import block_count
from leveret.core.log.chunk_index import reserve
from leveret.core.log.flat_records import RUN_WIDTH
from leveret.core.memory import layout, send_buffer
from leveret.core.serial_link import stuffing

from . import sources

try:
    from ._hot import ffi, lib
except ImportError as error:
    ffi = lib = None
    LACKS_CFFI = error.name == "_cffi_backend"
else:
    LACKS_CFFI = False
STALE = lib is not None and sources.fingerprint() not in (None, getattr(lib, "leveret_sources", 0))
if STALE:
    ffi = lib = None

VARIABLE = "LEVERET_ACCEL"
FAMILIES = ("amqp_0_9", "amqp_0_9_drafts", "amqp_0_10", "amqp_1_0")  # that have a row here, in a file of that name
LARGE = 16384  # octets of a body that goes from its blocks to the socket
LAST_OF_PRIORITY = 1 << 30  # beside a consumer in a row: LEVERET_LAST_OF_PRIORITY of hot.h
LETTERS = -3  # LEVERET_LETTERS
ROW_SIZE = 64  # consumers of one queue that C delivers to; a queue with more of them is core/queue/turns.py's


class SendBuffer(send_buffer.SendBuffer):
    """A send buffer whose places C knows too."""

    def __init__(self, size, made_by):
        self.output = ffi.gc(ffi.new("leveret_output *"), lib.leveret_drop_insets)
        self.output.hungry = self.output.fed = layout.NONE
        self.pointers = made_by.pointers
        self.piece_size = made_by.numbers
        self.round = made_by.round
        send_buffer.SendBuffer.__init__(self, size, made_by)
        self.output.octets = self.address
        self.output.size = size

    def reset(self):
        """As core/memory/send_buffer.py has it."""
        lib.leveret_forget_insets(self.pointers, self.output)
        self.output.inset_least = 0
        send_buffer.SendBuffer.reset(self)

    def gather(self, least=LARGE):
        """The port sends what waits by `send_to`: bodies of `least` octets and more need not be copied into the buffer."""
        self.output.inset_least = least

    def waits(self):
        """True when octets wait to be sent."""
        output = self.output
        return output.start != output.end or output.inset_count > 0

    def is_scattered(self):
        """True when what waits does not lie in one piece."""
        return self.output.inset_count > 0

    def send_to(self, descriptor):
        """Have the system send what waits through a socket: the octets it took; None: none now; 0: the peer is gone."""
        count = lib.leveret_send(self.pointers, self.output, descriptor)
        return None if count < 0 else count

    def pending(self):
        """The view of what waits to be sent, or of its first piece."""
        output = self.output
        if not output.inset_count:
            return self.octets[output.start : output.end]
        at = lib.leveret_pending(self.pointers, self.output, self.piece_size)
        return memoryview(ffi.buffer(at, self.piece_size[0]))

    def sent(self, count):
        """As core/memory/send_buffer.py has it."""
        lib.leveret_sent(self.pointers, self.output, count)

    def takes_whole(self, size, body):
        """As core/memory/send_buffer.py has it."""
        return 0 < self.output.inset_least <= body or send_buffer.SendBuffer.takes_whole(self, size, body)

    def room(self):
        """As core/memory/send_buffer.py has it."""
        return lib.leveret_room(self.output)

    def touch(self):
        """See Engine.collect_touched."""
        if not self.output.is_touched:
            self.output.is_touched = 1
            self.output.next_touched = self.round.touched
            self.round.touched = self.output

    def write(self, octets):
        """As core/memory/send_buffer.py has it."""
        output = self.output
        at = output.end
        end = at + len(octets)
        assert end <= self.size, "a reply does not fit in the send buffer"
        self.octets[at:end] = octets
        output.end = end
        if not output.is_touched:
            self.touch()

    def starve(self, consumer, count):
        """As core/memory/send_buffer.py has it."""
        lib.leveret_starve(self.round, self.output, consumer.handle, count)
        self.touch()

    def is_short(self):
        """As core/memory/send_buffer.py has it."""
        return self.output.hungry != layout.NONE or self.output.fed != layout.NONE

    def feed(self):
        """As core/memory/send_buffer.py has it."""
        lib.leveret_feed(self.pointers, self.round, self.output)

    def forget(self, consumer):
        """As core/memory/send_buffer.py has it."""
        lib.leveret_forget(self.round, self.output, consumer.handle)

    start = property(lambda self: self.output.start, lambda self, at: setattr(self.output, "start", at))
    end = property(lambda self: self.output.end, lambda self, at: setattr(self.output, "end", at))

    @property
    def busy(self):
        """As core/memory/send_buffer.py has it."""
        return self.output.busy

    @busy.setter
    def busy(self, busy):
        self.output.busy = 1 if busy else 0


FLAT_BINDING = 800  # octets of three words of a pattern as nodes, and of what walks the tree of bindings meanwhile


class Engine:
    """As core/broker/engine.py has it. `pointers` is the C side's record of the tables; it keeps their memory alive."""

    name = "C"
    turn = 256
    deliveries = 2048
    effort = 20000
    ingests = True
    limits = layout.LIMIT_REMEMBERS | layout.LIMIT_LATEST | layout.LIMIT_GROUPS | layout.LIMIT_PAGED

    def __init__(self, tables):
        self.kept = []
        self.buffers = []  # every SendBuffer made, by number; a broker uses them again
        pointers = ffi.new("leveret_tables *")
        for name in ("arena", "route_octets"):
            setattr(pointers, name, self._keep(self.octets(getattr(tables, name))))
        for name in ("blocks", "messages", "entries", "queues", "channels", "consumers", "state", "routes", "route_targets", "chunk_pool"):
            setattr(pointers, name, self._keep(self.integers(getattr(tables, name))))
        from . import matching  # there is no C module on some machines

        self.ways = matching.Ways(tables)
        pointers.ways = self.ways.table
        self.pointers = pointers
        self.tables = tables
        self.identities = None  # made when a queue remembers some
        self.latest = None  # made when a queue keeps last values
        self.groups = None  # made when a queue has groups
        self.changes = 0  # of queues, their consumers or rules, and of exchanges and bindings
        self.burying = None  # made with the first dead letter that needs no history
        self.numbers = self._keep(ffi.new("int32_t[]", 3))
        self.rows = {}
        self.window = ffi.new("leveret_window *")
        self.round = ffi.new("leveret_round *")
        self.round.row_size = ROW_SIZE
        self.round.reply_room = limits.REPLY_ROOM
        self.round.turn = self.turn
        queue_count = len(tables.queues) // layout.QUEUE_WIDTH
        self.round.rows = self._keep(ffi.new("int32_t[]", queue_count * ROW_SIZE))
        self.round.row_counts = self._keep(ffi.new("int32_t[]", queue_count))
        self.round.readers = self._keep(ffi.new("leveret_reader[]", len(tables.consumers) // layout.CONSUMER_WIDTH))

    @staticmethod
    def memory(limits):
        """Octets beside memory_needed: the rows of consumers that C delivers to, bindings laid flat (matching.py) with what
        that takes meanwhile, and what dead letters have in common (burying.py)."""
        from . import burying  # there is no C module on some machines

        return (
            limits.queue_count_max * (ROW_SIZE + 1) * ffi.sizeof("int32_t")
            + limits.consumer_count_max * ffi.sizeof("leveret_reader")
            + limits.binding_count_max * FLAT_BINDING
            + burying.memory()
        )

    def ready(self, broker):
        """What reads and sends for many connections in one call (ready.py), for the port's loop."""
        from . import ready  # there is no C module on some machines

        return ready.Ready(self, broker)

    def _keep(self, pointer):
        self.kept.append(pointer)
        return pointer

    def send_buffer(self, size):
        """A SendBuffer that C can write into."""
        made = SendBuffer(size, self)
        made.output.number = len(self.buffers)
        self.buffers.append(made)
        return made

    def collect_touched(self):
        """The slots (numbers that the port's loop has given) of the buffers that were written to since the last time."""
        slots = []
        output = self.round.touched
        self.round.touched = ffi.NULL
        while output:
            output.is_touched = 0
            slot = self.buffers[output.number].slot
            if slot is not None:
                slots.append(slot)
            output = output.next_touched
        return slots

    def see_queue(self, queue):
        """Have C know the consumers of a queue, unless its messages or its consumers want a look at each delivery."""
        self.changes += 1
        self.pointers.chunk_reserve = reserve(self.tables)
        if queue.rules is not None:
            for feature in queue.rules.features:
                if feature.bit & layout.LIMIT_REMEMBERS and feature.recent is None:
                    feature.recent = self.remember(queue, feature.window)
                if feature.bit & layout.LIMIT_LATEST and feature.latest is None:
                    feature.latest = self.keep_latest(queue, feature.header)
                if feature.bit & layout.LIMIT_GROUPS and feature.owners is None:
                    feature.owners = self.know_groups(queue, feature.header)
        if self.burying is not None:
            self.burying.see_queue(queue)
        place = queue.handle // layout.QUEUE_WIDTH
        count = min(len(queue.consumers), 1) if queue.single_active else len(queue.consumers)
        has_groups = queue.rules is not None and queue.rules.groups is not None
        if queue.is_stream or queue.needs_care and not self.has_groups_alone(queue) or count > ROW_SIZE:
            count = 0
        for at in range(count):
            consumer = queue.consumers[at]
            ends = (queue.prioritised or has_groups) and (at == count - 1 or queue.consumers[at + 1].priority != consumer.priority)
            self.round.rows[place * ROW_SIZE + at] = consumer.handle | (LAST_OF_PRIORITY if ends else 0)
        self.round.row_counts[place] = count

    def has_groups_alone(self, queue):
        """True where groups are all that a queue's rules see in a delivery."""
        limits = self.tables.queues[queue.handle + layout.QUEUE_LIMITS]
        groups = queue.rules is not None and queue.rules.groups is not None
        return groups and limits & (layout.LIMIT_GROUPS | layout.LIMIT_EXPIRES) == layout.LIMIT_GROUPS

    def hand_over(self, queue):
        """Have Python make each delivery of a queue, until `see_queue`."""
        self.round.row_counts[queue.handle // layout.QUEUE_WIDTH] = 0

    def learn_letter(self, broker, queue, reason, route, known, targets):
        """A dead letter without a history to read was made (core/queue/letters.py): have C make others like it."""
        from . import burying  # there is no C module on some machines

        if self.burying is None:
            self.burying = burying.Burying(self, broker)
        self.burying.learn(queue, reason, route, known, targets)

    def remember(self, queue, most):
        """What a queue remembers of at most so many message ids."""
        from . import remembering  # there is no C module on some machines

        if self.identities is None:
            self.identities = remembering.Identities(self.tables)
            self.pointers.identities = self.identities.table
        return remembering.Recent(self.identities, queue, most)

    def keep_latest(self, queue, header):
        """What a queue remembers of the newest message with each value of a header."""
        from . import remembering  # there is no C module on some machines

        if self.latest is None:
            self.latest = remembering.Identities(self.tables)
            self.pointers.latest = self.latest.table
        return remembering.Latest(self.latest, self.pointers, queue, header)

    def know_groups(self, queue, header):
        """Whose the groups of a queue are, by a header."""
        from . import grouping  # there is no C module on some machines

        if self.groups is None:
            self.groups = grouping.Groups(self.tables)
            self.pointers.groups = self.groups.table
        return grouping.Owners(self.groups, self.pointers, queue, header)

    def see_consumer(self, consumer):
        """Have C know where deliveries to a consumer go, and how they begin."""
        reader = self.round.readers[consumer.handle // layout.CONSUMER_WIDTH]
        if consumer.prefix_at is None:
            reader.prefix = ffi.NULL
            return
        reader.output = consumer.channel.connection.send.output
        reader.wire = consumer.row.wire
        reader.prefix = consumer.prefix_at
        reader.prefix_size = len(consumer.prefix)
        reader.frame_size_max = consumer.frame_size_max

    def see_way(self, user, exchange):
        """See core/broker/engine.py: C may find the next one itself."""
        self.ways.see(user, exchange)

    def see_names(self, exchange_name, names):
        """See core/broker/engine.py: C finds the next one itself where it is in the route cache."""
        if names:
            self.ways.see_names(exchange_name, names)

    def forget_ways(self):
        """See core/broker/engine.py."""
        self.changes += 1
        self.ways.forget()
        if self.burying is not None:
            self.burying.forget()

    def begin_round(self, turns, deliveries):
        """See core/broker/engine.py."""
        self.round.turns = turns
        self.round.left = deliveries
        self.round.turn = self.turn
        if self.burying is not None:
            self.burying.begin_round()

    def next_turn(self):
        """See core/broker/engine.py; turns that need no thought are made in C."""
        if self.burying is None:
            return lib.leveret_next_turn(self.pointers, self.round)
        while True:
            queue = self.burying.run(lib.leveret_next_turn, self.round)
            if queue != LETTERS:
                return queue

    def turned(self, count):
        """See core/broker/engine.py."""
        self.round.left -= count

    left = property(lambda self: self.round.left)
    done = property(lambda self: self.round.done)
    idle = property(lambda self: self.round.idle)

    def octets(self, view):
        """The address of a buffer of octets (a view of all of it); it stays valid as long as this is kept."""
        return ffi.from_buffer("uint8_t[]", owner(view))

    def integers(self, table):
        """The address of a table of integers."""
        return ffi.from_buffer("int32_t[]", owner(table))

    def row(self, form):
        """See core/broker/engine.py; None: this family has no form in C, and its sessions take and deliver message by message. A family's
        file is imported with its first connection: it imports the family's own."""
        if form.name not in self.rows:
            self.rows[form.name] = None
            if form.name in FAMILIES:
                self.rows[form.name] = importlib.import_module("." + form.name, __package__).Row(self)
        return self.rows[form.name]

    def append(self, message, source, start, size):
        """See hot.append; `source` is any buffer of octets."""
        lib.leveret_append(self.pointers, message, ffi.from_buffer("uint8_t[]", source), start, size)

    def write_pushed(self, target, at, segment, runs):
        """See core/log/flat_records.py."""
        return lib.leveret_write_pushed(self.pointers, ffi.from_buffer("uint8_t[]", target), at, segment, runs, len(runs) // RUN_WIDTH)

    def gather_settled(self, runs, most):
        """See core/log/flat_records.py."""
        return lib.leveret_gather_settled(self.pointers, runs, most)

    def live_in(self, entry, end, segment, live, most):
        """See core/log/flat_records.py."""
        return lib.leveret_live_in(self.pointers, entry, end, segment, live, most)

    def read_window(self, source, at, end, window, stream, limits, stop, held_max, octets_max):
        """See core/stream/windows.py: (where it stopped, octets)."""
        flat = self.window
        flat.position, flat.stop = window.end, stop
        flat.queue, flat.identity, flat.tail = stream.handle, stream.id_in_log, window.tail
        flat.held, flat.held_max = window.end - window.first, held_max
        flat.octets, flat.octets_max, flat.segment, flat.bodies = 0, octets_max, 0, 0
        flat.block_most, flat.message_most, flat.entry_most = block_count(limits), limits.message_count_max, limits.entry_count_max
        at = lib.leveret_read_window(self.pointers, flat, ffi.from_buffer("uint8_t[]", source), at, end)
        window.end, window.tail = flat.position, flat.tail
        return at, flat.octets

    def drop_window(self, entry, count):
        """See core/broker/engine.py."""
        return lib.leveret_drop_window(self.pointers, entry, count)

    def read_on(self, queue, chunk, walk, segment, count_max, octets_max):
        """See core/broker/engine.py."""
        from . import reading_back  # there is no C module on some machines

        return reading_back.read_on(self, queue, chunk, walk, segment, count_max, octets_max)

    def publish_kept(self, channel, message):
        """See core/broker/kept.py."""
        if self.burying is None:
            return lib.leveret_publish_kept(self.pointers, channel, message)
        return self.burying.run(lib.leveret_publish_kept, channel, message)

    def purge(self, queue, most):
        """See core/broker/engine.py."""
        lib.leveret_purge(self.pointers, queue, most)

    def expire(self, queue):
        """See core/broker/engine.py."""
        if self.burying is None:
            return lib.leveret_expire(self.pointers, queue)
        return self.burying.run(lib.leveret_expire, queue)

    def disown(self, channel, consumer):
        """See core/broker/engine.py."""
        lib.leveret_disown(self.pointers, channel, consumer)

    def drop_held(self, channel, queue, most):
        """See core/broker/engine.py."""
        return lib.leveret_drop_held(self.pointers, channel, queue, most)

    def leave(self, channel, entry, most):
        """See core/broker/engine.py."""
        lib.leveret_leave(self.pointers, channel, entry, most)

    def find_tag(self, channel, tag):
        """See core/broker/engine.py."""
        return lib.leveret_find_tag(self.pointers, channel, tag)

    def reach_back(self, entry, most):
        """See core/broker/engine.py."""
        return lib.leveret_reach_back(self.pointers, entry, most)

    def reach(self, channel, tag, most):
        """See core/broker/engine.py."""
        return lib.leveret_reach(self.pointers, channel, tag, most)

    def settle(self, channel, first, last, how):
        """See core/broker/engine.py."""
        if self.burying is None:
            return lib.leveret_settle(self.pointers, channel, first, last, how)
        return self.burying.run(lib.leveret_settle, channel, first, last, how)


def owner(view):
    """What a view is of. The garbage collector clears views before what hangs on them; what owns the memory it leaves alone."""
    return view.obj if isinstance(view, memoryview) else view


def memory_of(limits):
    """Octets that brokers with these limits take beside memory_needed, in the form that `install` chooses."""
    return Engine.memory(limits) if is_chosen() else 0


def is_chosen():
    """Whether `install` chooses C."""
    return lib is not None and os.environ.get(VARIABLE) != "0"


def why_plain():
    """Why there is no C module to work with, and what brings it."""
    if STALE:
        return "the C module was built from other sources: python3 tools/dev.py setup makes it anew"
    if LACKS_CFFI:
        return "the C module needs cffi, which is not here: pip install 'leveret[accel]'"
    return "the C module was not built: with a C compiler, Python's headers and cffi, pip install makes it"


def install():
    """Have brokers made from now on, and serial links, work in C where that is possible: a sentence for the operator that says which form
    they use."""
    engine.chosen = engine.Plain
    stuffing.chosen = stuffing.Plain
    if os.environ.get(VARIABLE) == "0":
        return "the hot functions run as plain Python (%s=0)" % VARIABLE
    if lib is None:
        return "the hot functions run as plain Python (%s)" % why_plain()
    engine.chosen = Engine
    from . import framing  # there is no C module on some machines

    stuffing.chosen = framing.Framing
    return "the hot functions run in C"

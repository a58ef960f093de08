"""Dead letters that C makes (letters.c): what Python has made of one queue, reason and route, C makes of others like it.

C's letters are counted and logged here, behind each call that may have made some, before any consumer can get them.
"""

from leveret.core.memory import layout
from leveret.core.message import reading
from leveret.core.queue import letters
from leveret.core.queue.dead_letters import REASONS

from ._hot import ffi, lib

ROWS = 1024  # a power of two: twice what Python keeps
TARGETS_MAX = 4  # queues of one letter: leveret_letter of hot.h
A_ROUND = 1024  # letters between two looks at anything else; 4 MiB of them
OBJECTS = 800  # octets of those that hold a row's octets
LOG_ROOM = 1 << 20  # octets of letters that one call may have the log take


def memory():
    """Octets of all that is kept here."""
    return ROWS * ffi.sizeof("leveret_letter") + ffi.sizeof("leveret_letters") + letters.KNOWN_MAX * (letters.OCTETS_MAX + OBJECTS)


class Burying:
    """The dead letters of one broker. `table` is the C side."""

    def __init__(self, engine, broker):
        self.broker = broker
        self.engine = engine
        self.rows = ffi.new("leveret_letter[]", ROWS)
        self.kept = {}  # what the rows point to
        self.rules = {}  # the rule of each queue that has a row, by handle
        self.row = ffi.new("leveret_letter *")
        self.table = ffi.new("leveret_letters *")
        self.table.rows = self.rows
        self.table.mask = ROWS - 1
        self.table.logged_head = self.table.logged_tail = self.table.buried = layout.NONE
        self.table.epoch = layout.EPOCH
        engine.pointers.letters = self.table

    def learn(self, queue, reason, route, known, targets):
        """A letter of `queue` for `reason`, a text, was made of a message with this route; `known`: letters.Known."""
        if reason not in REASONS[:3] or not 0 < len(targets) <= TARGETS_MAX:
            return
        for target in targets:
            if target.is_stream or target is queue:
                return
        key = (queue.handle, reason, route)
        if len(self.kept) >= letters.KNOWN_MAX and key not in self.kept:
            self.forget()
        row = self.row
        pairs = bytearray(known.pairs)
        octets = [ffi.from_buffer("uint8_t[]", each) for each in (route, known.target, pairs)]
        self.rules[queue.handle] = queue.rules.dead_letter
        row.route, row.target, row.pairs = octets
        row.route_size, row.target_size, row.pairs_size = len(route), len(known.target), len(pairs)
        row.time_at, row.second = known.time_at, layout.NONE
        row.properties_max = reading.properties_room(self.broker.limits, len(known.target))
        row.queue, row.reason, row.count = queue.handle, REASONS.index(reason), len(targets)
        for place, target in enumerate(targets):
            row.targets[place] = target.handle
        lib.leveret_learn_letter(self.table, row)  # finds the row of before, whose octets are still there
        self.kept[key] = octets

    def forget(self):
        """What exchanges, bindings or queues there are has changed."""
        if self.kept:
            lib.leveret_forget_letters(self.table)
            self.kept = {}
            self.rules = {}

    def see_queue(self, queue):
        """A queue has other rules, perhaps."""
        rule = self.rules.get(queue.handle)
        if rule is not None and (queue.rules is None or queue.rules.dead_letter is not rule):
            self.forget()

    def begin_round(self):
        """A round may make so many letters."""
        self.flush()
        self.table.left = A_ROUND

    def run(self, function, *given):
        """Call a function of C that may make letters. None passes those of Python that wait for a turn."""
        if self.broker.dead_letters.until != layout.NONE:
            self.table.left = 0
        if self.broker.journal is not None:
            self.table.log_room = self.broker.journal.log.room_for(LOG_ROOM)
        try:
            return function(self.engine.pointers, *given)
        finally:
            self.flush()

    def flush(self):
        """Count and log the letters that C has made. Where the log raises they stay in their queues, and no restart finds them: what the
        caller has done beside them counts."""
        table = self.table
        if table.sent:
            self.broker.counters["dead_lettered"] += table.sent
            table.sent = 0
        if table.logged_head != layout.NONE:
            lib.leveret_swap_letters(self.engine.pointers)
            try:
                self.broker.journal.log_pushed()
            except Exception as error:  # no memory for their octets
                state = self.engine.tables.state
                state[layout.STATE_LOGGED_HEAD] = layout.NONE
                for place in (layout.STATE_LOGGED_OCTETS, layout.STATE_LOGGED_COUNT, layout.STATE_LOGGED_PLACES):
                    state[place] = 0
                self.broker.guard.trouble("dead letters%s", "", error)
            finally:
                lib.leveret_swap_letters(self.engine.pointers)

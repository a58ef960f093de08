"""Dead letters without a history to read: the first death of a message that says nothing of deaths, and has no keys of CC.

What core/queue/features/dead_letter.py writes into annotations depends there on queue, reason, route and second alone. So it is kept
(`Known`) as pairs of headers in the message's own format, and goes behind the publisher's (`with_header` of the format): the new message
is one that any engine delivers without a look, and its kind says that some headers are the broker's (layout.KIND_GRAFTED;
core/broker/crossing.py has other families tell them apart). Everything else is dead_letter.py's: `send` answers None for it.

Boards do without this file.
"""

import struct

from ..exchange.walk import Walk, near
from ..memory import layout
from ..memory.layout import EPOCH
from ..message import annotations, reading
from ..message.route import exchange_of, key_of
from ..outcomes import NO_ROOM

KNOWN_MAX = 512  # of queues, reasons and routes that a broker keeps
OCTETS_MAX = 768  # of each
WORDS = (b"death", b"CC")  # in the properties of no message that is for here
TIME = b"\x04timeT"  # before the second of a death
NEVER = layout.KIND_ANNOTATED | layout.KIND_CHANGED | layout.KIND_REPLY_TO | layout.KIND_FAILED


class Known:
    """What the dead letters of a queue have in common that died for one reason, and were published with one route. `reader`: of their
    format; `time_at`: where in `pairs` the 8 octets of the time stand; `target`: their own route."""

    def __init__(self, reader, pairs, time_at, target):
        self.reader = reader
        self.pairs = pairs
        self.time_at = time_at
        self.target = target
        self.exchange = exchange_of(target)
        self.key = key_of(target)
        self.second = -1

    def at(self, second):
        """The pairs of a death in this second since layout.EPOCH."""
        if second != self.second:
            self.second = second
            self.pairs = self.pairs[: self.time_at] + struct.pack(">Q", second + EPOCH) + self.pairs[self.time_at + 8 :]
        return self.pairs


def is_for_here(tables, message, properties):
    """True for a message whose first death this is, as far as its record and its properties (bytes) say."""
    messages = tables.messages
    if messages[message + layout.MESSAGE_LIFETIME] != layout.NONE or messages[message + layout.MESSAGE_KIND] & NEVER:
        return False
    return WORDS[0] not in properties and WORDS[1] not in properties


def learn(rule, broker, queue, message, reason, target, written):
    """A dead letter is about to be published: keep what others like it have in common. `target`: its route; `written`: its annotations
    (octets)."""
    tables = broker.tables
    properties = tables.properties_of(message)
    reader = reading.format_of(tables, message)
    if not hasattr(reader, "with_header") or not is_for_here(tables, message, properties):
        return
    changes = annotations.read(written, True)
    empty = reader.with_header(reader.encode({}), b"")
    pairs = reader.encode({"headers": changes["headers"]})[len(empty) :]
    time_at = pairs.find(TIME) + len(TIME)
    if pairs.count(TIME) != 1 or reader.with_header(properties, pairs) != reader.merge(properties, changes):
        return
    route = tables.route_of(message)
    if len(route) + len(target) + len(pairs) > OCTETS_MAX:
        return
    known = known_of(broker)
    if len(known) >= KNOWN_MAX:
        known.clear()
    known[rule, reason, route] = Known(reader, pairs, time_at, target)


def known_of(broker):
    """The Known of a broker, by rule (an object of dead_letter.py), reason and route."""
    if not hasattr(broker.dead_letters, "known"):
        broker.dead_letters.known = {}
    return broker.dead_letters.known


def send(rule, broker, queue, message, reason):
    """Publish a dead letter made from a message: as dead_letter.Rule.send_message, or None: it is not for here."""
    tables = broker.tables
    route = tables.route_of(message)
    known = known_of(broker).get((rule, reason, route))
    if known is None or reading.format_of(tables, message) is not known.reader:
        return None
    properties = tables.properties_of(message)
    if not is_for_here(tables, message, properties):
        return None
    octets = known.reader.with_header(properties, known.at(broker.seconds))
    if len(octets) > reading.properties_room(broker.limits, len(known.target)):
        return None
    copy = copy_with(tables, message, known.target, octets)
    if copy == layout.NONE:
        return NO_ROOM
    broker.dead_letters_nested += 1
    try:
        targets = near(broker, known.exchange, known.key, copy)
        walk = None
        if targets is None:
            walk = Walk(broker, known.exchange, known.key, copy)
            targets = walk.queues
        if reason != "rejected" and queue in targets:
            targets = [each for each in targets if each is not queue]
        if walk is None:
            by_key = targets and (known.exchange == "" or broker.exchanges[known.exchange].by_key)
            if by_key and hasattr(tables.engine, "learn_letter"):
                tables.engine.learn_letter(broker, queue, reason, route, known, targets)
            return broker.put(copy, targets)
        walk.queues = targets
        return broker.put_far(copy, walk)
    finally:
        broker.dead_letters_nested -= 1
        tables.release(copy)


def copy_with(tables, message, route, octets):
    """A new message with the body of another, other properties (octets) and one reference; NONE when there is no room."""
    messages = tables.messages
    size = messages[message + layout.MESSAGE_BODY]
    if not tables.has_room(tables.blocks_for(len(route) + len(octets) + size), 1):
        return layout.NONE
    kind = messages[message + layout.MESSAGE_KIND] | layout.KIND_GRAFTED
    copy = tables.new_message(route, len(octets), size, tables.state[layout.STATE_SECONDS], kind)
    try:
        tables.append(copy, octets, 0, len(octets))
        tables.copy_content(message, copy, messages[message + layout.MESSAGE_PROPERTIES])
    except Exception:  # all or nothing: no object holds the copy
        tables.release(copy)
        raise
    return copy

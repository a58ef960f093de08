"""Dead letters: a queue publishes the messages that it drops (expired, maxlen, rejected, delivery_limit) to x-dead-letter-exchange.

The new message has the old body and properties; annotations (core/message/annotations.py) hold its history, which receivers get as the
header x-death, as RabbitMQ writes it, and remove its expiration. Most first deaths go another way: core/queue/letters.py.
A message that returns to a queue where it died before, without a rejection since, is dropped: it would circle for ever. When there is no
room for it, it waits and is tried again; x-dead-letter-strategy at-least-once also keeps it while it has no route. A dead letter may push
another one out of its queue, and so on: after NESTED_MAX of them the next one waits, so that the depth of the stack does not depend on the
length of queues.
"""

from ...memory import layout
from ...memory.layout import EPOCH
from ...message import reading
from ...message.annotations import FAILED, GONE, write
from ...message.route import pack
from ...outcomes import NO_ROOM, REFUSED, TAKEN, UNROUTABLE
from ...parts import part
from .feature import Feature

COUNT_MAX = (1 << 63) - 1  # of the field that has it on the wire
NESTED_MAX = 4
ANNOTATIONS_MAX = 65000  # octets of a history in annotations: headers must stay removable

letters = part("queue.letters")  # boards do without it


class Rule(Feature):
    """x-dead-letter-exchange, -routing-key, -strategy."""

    def __init__(self, arguments):
        self.exchange = arguments.get("x-dead-letter-exchange", "")
        self.key = arguments.get("x-dead-letter-routing-key")
        self.keeps = arguments.get("x-dead-letter-strategy") == "at-least-once"

    def flat(self):
        """The rule reads no message on its way in."""
        return True

    def send(self, broker, queue, entry, reason):
        """Publish an entry's message (the entry is in no list); true when the entry can be dropped."""
        entries = broker.tables.entries
        failed = max(entries[entry + layout.ENTRY_REDELIVERED], 0) & 255
        outcome = self.send_message(broker, queue, entries[entry + layout.ENTRY_MESSAGE], reason, failed)
        if outcome == UNROUTABLE and not self.keeps:
            broker.counters["dead_letters_lost"] += 1
            return True
        return outcome == TAKEN

    def send_message(self, broker, queue, message, reason, failed=0):
        """Publish a dead letter made from a message: TAKEN, UNROUTABLE or NO_ROOM. `failed`: how many deliveries from this queue have."""
        if broker.dead_letters_nested >= NESTED_MAX:
            return NO_ROOM
        outcome = None if letters is None else letters.send(self, broker, queue, message, reason)
        if outcome is None:
            outcome = self.send_history(broker, queue, message, reason, failed)
        if outcome == REFUSED:
            outcome = UNROUTABLE
        if outcome == TAKEN:
            broker.counters["dead_lettered"] += 1
        return outcome

    def send_history(self, broker, queue, message, reason, failed=0):
        """Publish a dead letter with the history in its message's headers, and this death: TAKEN, UNROUTABLE, REFUSED or NO_ROOM."""
        tables = broker.tables
        exchange, key = reading.names_of(broker.tables, message)
        target_key = key if self.key is None else self.key.encode("utf-8")
        properties = reading.properties_of(broker.tables, message)
        headers = properties.get("headers") or {}
        copies = copies_of(headers)
        deaths = history(broker, queue, properties, headers, exchange, (key,) + copies, reason)
        changed = {"x-death": deaths}
        for which in ("last",) if "x-first-death-reason" in headers else ("first", "last"):
            changed["x-%s-death-reason" % which] = reason
            changed["x-%s-death-queue" % which] = queue.name
            changed["x-%s-death-exchange" % which] = exchange
        changes = reading.annotations_of(broker.tables, message)
        changes["expiration"] = GONE
        if failed and broker.tables.messages[message + layout.MESSAGE_KIND] & layout.KIND_FAILED:
            changes[FAILED] = changes.get(FAILED, 0) + failed
        if self.key is not None and copies:
            copies = ()
            changes.setdefault("headers", {})["CC"] = GONE
        route = pack(self.exchange.encode("utf-8"), target_key)
        octets = annotated(
            reading.format_of(broker.tables, message),
            tables.properties_of(message),
            changes,
            changed,
            reading.properties_room(broker.limits, len(route)),
        )
        copy = reading.copy_with(broker.tables, message, route, octets)
        if copy == layout.NONE:
            return NO_ROOM
        broker.dead_letters_nested += 1
        try:
            if letters is not None:
                letters.learn(self, broker, queue, message, reason, route, octets)
            return broker.publish_dead_letter(
                copy,
                self.exchange,
                (target_key,) + copies if copies else target_key,
                lambda name: reason != "rejected" and circles(deaths, name),
            )
        finally:
            broker.dead_letters_nested -= 1
            tables.release(copy)


def annotated(reader, octets, changes, headers, size_max):
    """Annotations (octets): `changes` with `headers` among its headers. Of a history with which the properties `octets` would be more
    than `size_max` octets for a receiver, or the annotations too many, the oldest deaths are left out; where none fits, all headers of
    `headers`."""
    deaths = headers["x-death"]
    written = attempt(reader, octets, changes, headers, size_max)
    if written is not None:
        return written
    fit, too_many = -1, len(deaths)
    while too_many - fit > 1:  # each attempt writes all of them
        count = (fit + too_many) // 2
        headers["x-death"] = deaths[:count]
        shorter = attempt(reader, octets, changes, headers, size_max)
        if shorter is not None:
            written, fit = shorter, count
        else:
            too_many = count
    return write(changes) if written is None else written


def attempt(reader, octets, changes, headers, size_max):
    """These annotations as octets, or None: they do not fit. In properties a value takes less than twice the octets that it has here."""
    changes = dict(changes)
    changes["headers"] = dict(changes.get("headers", {}))
    changes["headers"].update(headers)
    try:
        written = write(changes)
    except ValueError:
        return None
    if len(octets) + 2 * len(written) > size_max and len(reader.merge(octets, changes)) > size_max:
        return None
    return written if len(written) <= ANNOTATIONS_MAX else None


def copies_of(headers):
    """The routing keys in the header CC (bytes), by which a dead letter goes too, unless its queue gives it a key of its own (RabbitMQ)."""
    keys = headers.get("CC")
    if not isinstance(keys, list):
        return ()
    return tuple([key.encode("utf-8") if isinstance(key, str) else key for key in keys if isinstance(key, (str, bytes))])


def history(broker, queue, properties, headers, exchange, keys, reason):
    """The x-death list with this death in front: one table for each (queue, reason), with a count. `keys`: the message's, with CC.

    An x-death already present may be a publisher's: only tables in a list are kept, with their counts as whole numbers.
    """
    old = headers.get("x-death")
    deaths = [taken_over(each) for each in old if isinstance(each, dict)] if isinstance(old, list) else []
    mine = {
        "count": ("l", 1),
        "reason": reason,
        "queue": queue.name,
        "time": ("T", broker.seconds + EPOCH),
        "exchange": exchange,
        "routing-keys": [("S", key) for key in keys],
    }
    expiration = properties.get("expiration")
    if expiration is not None:
        mine["original-expiration"] = expiration
    for place, each in enumerate(deaths):
        if each.get("queue") == queue.name and each.get("reason") == reason:
            each["count"] = ("l", min(each["count"][1], COUNT_MAX - 1) + 1)
            return [each] + deaths[:place] + deaths[place + 1 :]
    for each in deaths:
        each["count"] = ("l", max(each["count"][1], 1))
    return [mine] + deaths


def taken_over(death):
    """A death ready to be written again: its count as a number, 0 where it has none, its keys as longstr."""
    count = death.get("count")
    if isinstance(count, tuple):  # a timestamp
        count = count[1]
    death["count"] = ("l", min(max(count, 0), COUNT_MAX) if isinstance(count, int) and not isinstance(count, bool) else 0)
    keys = death.get("routing-keys")
    if isinstance(keys, list):
        death["routing-keys"] = [("S", key) if isinstance(key, bytes) else key for key in keys]
    return death


def circles(deaths, name):
    """True when a message died in queue `name` before and nobody rejected it on the way since."""
    for each in deaths:
        if each.get("reason") == "rejected":
            return False
        if each.get("queue") == name:
            return True
    return False

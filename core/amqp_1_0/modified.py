"""The outcome modified (section 3.4.5) where it says more than delivery-failed: undeliverable-here, and message-annotations; and rejected
(3.4.3) with an error, which a dead letter has in its delivery-annotations under `rejected`.

undeliverable-here: the message is not delivered to the same link again, as long as that is attached; others get it, and until there
are some it waits in its place (queue/wishes.py, queue/refusals.py). To links of RabbitMQ's clients (the property `paired`, theirs or of a
link pair of their connection) it means what RabbitMQ makes of it: the message is discarded, a dead letter with these annotations where the
queue has a place for those.

message-annotations: the message goes on with these in the place of those of the same names. What its publisher sent stays as it was sent:
they are annotations of the broker (message/annotations.py), under one name as octets of a map of AMQP 1.0, and, where they begin with x-
and 0-9-1 has the like, as headers. A message is one record for all of its queues, so that it is copied for this one; the log has the copy
behind the message, in the same place, and of two records of a place with layout.KIND_CHANGED the last counts (recovery). Annotations that
the broker gives, or reads, stay its own. No room for a copy, or in the log: the link ends with resource-limit-exceeded, and the message
is back in its queue as it was.
"""

import struct

from ..errors import RESOURCE_ERROR
from ..memory import layout
from ..message import reading
from ..message.annotations import write
from ..outcomes import FAILS, REJECTED
from ..parts import needed
from . import composites, properties, sections, types
from .bounds import POSITION_SIZE
from .conditions import LinkError

if False:  # for the type checker alone
    from typing import Any

NAME = "annotations"  # of the octets, among the broker's annotations of a message
LOOKS = 4  # of a queue's rules, which take about as long as what a receiver asks for one message
TOLD = "rejected"  # of the octets of an error
TOLD_MAX = 2048  # of them
CHANGED_MAX = 8192  # messages with other annotations whose records the log has
OURS = ("x-opt-deaths", "x-death", "x-cc", "x-exchange", "x-routing-key", "x-stream-offset")
OUR_FIRST = ("x-first-death-", "x-last-death-", "x-poison-", "x-basic-")


def asked(state):
    """The fields of a state that asks for something here; None: it does not."""
    if not isinstance(state, tuple) or not isinstance(state[1], dict):
        return None
    name, given = state
    if name == "modified" and (given["undeliverable-here"] or given["message-annotations"]):
        return given
    return given if name == "rejected" and given["error"] is not None else None


def come_to(session, entry, given, outcome):
    """Do what a receiver asks for an unsettled delivery before that is settled: the broker's outcome for it. Raises LinkError."""
    broker = session.broker
    entries = broker.tables.entries
    queue = broker.queue_objects[entries[entry + layout.ENTRY_QUEUE]]
    if queue.is_stream:
        return outcome  # a reader of a stream passes on: nothing comes again
    if "error" in given:
        if queue.rules is not None and queue.rules.dead_letter is not None:
            tell(broker, queue, entry, given["error"])
        return outcome
    is_discarded = discards(session, entry, given)
    if given["message-annotations"]:
        annotate(broker, queue, entry, given["message-annotations"], not is_discarded)
    if is_discarded:
        return REJECTED | FAILS if given["delivery-failed"] else REJECTED
    link = session.link_of(entry) if given["undeliverable-here"] else None
    if link is None:
        return outcome
    refused = needed("queue.wishes", "undeliverable-here").refuse(broker, link.consumer, entry)
    if refused > link.refused:
        session.session.places.reserve(link, POSITION_SIZE * (refused - link.refused))
        link.refused = refused
    return outcome


def discards(session, entry, given):
    """True where undeliverable-here says, of a link of RabbitMQ's clients, that the message is discarded. `given`: as `asked` gives it."""
    if not given.get("undeliverable-here"):
        return False
    link = session.link_of(entry)
    return link is not None and (link.paired or link.protocol.is_paired)


def annotate(broker, queue, entry, given, stays):
    """Put annotations (a map as types.py gives it) over those of an entry's message; `stays`: in its queue."""
    tables = broker.tables
    message = tables.entries[entry + layout.ENTRY_MESSAGE]
    changes = reading.annotations_of(tables, message)
    noted = noted_in(changes)
    headers = changes.setdefault("headers", {})
    for key in given:
        name = sections.text_of(key)
        if name is not None and name not in OURS and not name.startswith(OUR_FIRST):
            noted[name] = given[key]
            put_header(headers, name, given[key])
    changes[NAME] = types.encode({("symbol", name): noted[name] for name in noted})
    try:
        octets = write(changes)
        reader, before = reading.format_of(tables, message), tables.properties_of(message)
        route = tables.route_of(message)
        if len(reader.merge(before, changes)) > reading.properties_room(broker.limits, len(route)):
            raise ValueError("the sections before the body of a message are too large with them")
    except ValueError as error:
        raise LinkError(RESOURCE_ERROR, "message-annotations of an outcome: %s" % error) from None
    exchange(broker, queue, entry, message, route, octets, stays)


def tell(broker, queue, entry, error):
    """Note in the dead letter of an entry's message why it was rejected; without memory for the note the letter goes without."""
    tables = broker.tables
    message = tables.entries[entry + layout.ENTRY_MESSAGE]
    changes = reading.annotations_of(tables, message)
    fields = error[1] if isinstance(error, tuple) else error
    changes[TOLD] = composites.write("error", fields)
    try:
        octets = write(changes)
    except ValueError:
        return
    if len(changes[TOLD]) <= TOLD_MAX and tables.has_room(tables.blocks_for(tables.size_of(message) + len(octets)), 1):
        exchange(broker, queue, entry, message, tables.route_of(message), octets, False)


def told_in(changes):
    """The section delivery-annotations that says why a message was rejected; b"": it was not, or without a word."""
    octets = changes.get(TOLD)
    if octets is None:
        return b""
    pair = b"\xa3\x08rejected" + octets
    return b"\x00\x53\x71\xd1" + struct.pack(">II", 4 + len(pair), 2) + pair


def put_header(headers, name, value):
    """An annotation that begins with x- as a header for 0-9-1, where that has the like; else there is none of that name."""
    headers.pop(name, None)
    if not name.startswith("x-"):
        return
    made: "dict" = {}
    properties.put(made, name, value, properties.plain)
    try:
        write(made)
        headers.update(made)
    except (ValueError, TypeError, struct.error, OverflowError):
        pass  # a number that is larger than those of 0-9-1


def exchange(broker, queue, entry, message, route, octets, stays=True):
    """Have a copy of an entry's message with these annotations in its place, in the log too where it `stays` in its queue."""
    tables, journal = broker.tables, broker.journal
    messages = tables.messages
    segment = None
    is_logged = stays and journal is not None and queue.id_in_log and messages[message + layout.MESSAGE_SEGMENT] > 0
    if is_logged:
        number = messages[message + layout.MESSAGE_SEGMENT]
        for each in journal.log.segments:
            segment = each if each.number == number else segment
        changed = sum([each.changed for each in journal.log.segments])
        if changed >= CHANGED_MAX or journal.log.trouble or journal.log.has_no_room(tables.size_of(message) + len(octets)):
            raise LinkError(RESOURCE_ERROR, "the log has no room for message-annotations of an outcome")
    blocks = tables.blocks_for(tables.size_of(message) + len(octets))
    if not tables.has_room(blocks, 1):
        broker.make_room(blocks)
    copy = reading.copy_with(tables, message, route, octets)
    if copy == layout.NONE:
        raise LinkError(RESOURCE_ERROR, "no room for message-annotations of an outcome")
    for field in (layout.MESSAGE_ARRIVED, layout.MESSAGE_LIFETIME):
        messages[copy + field] = messages[message + field]
    if is_logged:
        messages[copy + layout.MESSAGE_KIND] |= layout.KIND_CHANGED
        try:
            journal.rewrite(copy, [(queue.id_in_log, journal.position(queue, tables.entries[entry + layout.ENTRY_POSITION]))])
        except Exception:  # all or nothing: the entry has its message
            messages[copy + layout.MESSAGE_SEGMENT] = 0
            tables.release(copy)
            raise
        if segment is not None:
            journal.moved_out(segment)
    else:
        messages[copy + layout.MESSAGE_SEGMENT] = messages[message + layout.MESSAGE_SEGMENT]
    tables.entries[entry + layout.ENTRY_MESSAGE] = copy
    difference = messages[copy + layout.MESSAGE_BLOCKS] - messages[message + layout.MESSAGE_BLOCKS]
    tables.queues[queue.handle + layout.QUEUE_BLOCKS] += difference
    tables.release(message)


def noted_in(changes):
    """The annotations that receivers have given a message, by symbol, as types.py has values. `changes`: the broker's annotations."""
    octets: "Any" = changes.get(NAME)
    if octets is None:
        return {}
    table, _ = types.decode(octets, 0, len(octets))
    return {sections.text_of(key): table[key] for key in table}

"""What a message says of itself stands in columns of its record (layout.MESSAGE_KIND, MESSAGE_LIFETIME), and whose properties it has is
known of each message alone."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, new_broker, taken

from leveret.core.amqp_0_9 import properties
from leveret.core.memory import layout
from leveret.core.message import formats, reading
from leveret.core.outcomes import TAKEN

GIVEN = (
    ({}, (0, False, None)),
    ({"delivery_mode": 1}, (0, False, None)),
    ({"delivery_mode": 2}, (0, True, None)),
    ({"priority": 0}, (0, False, None)),
    ({"priority": 255, "delivery_mode": 2, "expiration": "0"}, (255, True, 0)),
    ({"content_type": "a", "content_encoding": "b", "headers": {"c": "d"}, "priority": 7, "expiration": "99999999"}, (7, False, 99999999)),
    ({"correlation_id": "e", "reply_to": "f", "expiration": "1073741823", "delivery_mode": 2}, (0, True, 1073741823)),
    ({"correlation_id": "e", "expiration": "1073741824", "message_id": "g"}, (0, False, 1073741000)),
    ({"expiration": "9999999999", "timestamp": 1, "app_id": "h"}, (0, False, 9999999000)),
)

OTHER = 200  # a format that no release has


class OtherFormat:
    """Properties that are a text in capitals."""

    def check(self, buffer, at, end):
        assert bytes(buffer[at:end]).isupper()

    def decode(self, buffer, at, end):
        return {"message_id": str(bytes(buffer[at:end]), "utf-8").lower()}

    def field_in(self, octets, name):
        return self.decode(octets, 0, len(octets)).get(name)


def said(broker, name):
    """What the columns of a queue's messages say: (priority, durable, lifetime in ms) of each, and whether it gives a priority."""
    found = []
    for entry in broker.entries_of(broker.queues[name]):
        message = broker.tables.entries[entry + layout.ENTRY_MESSAGE]
        kind = broker.tables.messages[message + layout.MESSAGE_KIND]
        assert kind & formats.NUMBER == formats.BASIC
        columns = (
            reading.priority_of(broker.tables, message),
            broker.tables.is_durable(message),
            reading.expiration_of(broker.tables, message),
        )
        found.append((columns, kind & layout.KIND_HAS_PRIORITY != 0))
    return found


def put(broker, name, octets, kind):
    """Publish a message with these properties to a queue."""
    route = b"\x00" + bytes((len(name),)) + name.encode()
    message = broker.tables.new_message(route, len(octets), 1, broker.seconds, kind)
    broker.tables.append(message, octets + b"x", 0, len(octets) + 1)
    assert broker.publish(message, "", name.encode()) == TAKEN
    broker.tables.release(message)
    return message


def test_ingest_and_the_session_write_the_same_columns():
    """layout.MESSAGE_KIND and MESSAGE_LIFETIME; an expiration of nine digits or more is always the session's (ingest.check_properties)."""
    for ingests in (True, False):
        broker = new_broker()
        broker.tables.engine.ingests = ingests
        peer = Peer(broker)
        peer.declare("q")
        peer.publish("q", b"the route is known from here on")
        for given, _ in GIVEN:
            peer.publish("q", b"x", given=given)
        assert said(broker, "q")[1:] == [(columns, "priority" in given) for given, columns in GIVEN], ingests


def test_priorities_and_lifetimes_need_no_look_at_properties():
    """features/priority.py and expiry.py, with a reader that reads nothing."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q", arguments={"x-max-priority": 255, "x-message-ttl": 10000})
    known, formats.known[formats.BASIC] = formats.format_of(0), None
    try:
        for number in (1, 255, 0, 254):
            peer.publish("q", b"%d" % number, given={"priority": number, "expiration": str(1000 * (256 - number))})
    finally:
        formats.known[formats.BASIC] = known
    broker.tick(1500, 1)
    assert [body for _, body in taken(peer, "q")] == [b"254", b"1", b"0"]


def test_messages_of_two_formats_in_one_queue_are_each_read_by_their_own():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q", arguments={"x-deduplication": 8})
    peer.publish("q", b"x", given={"message_id": "one"})
    formats.known[OTHER] = OtherFormat()
    try:
        other = put(broker, "q", b"TWO", OTHER)
        put(broker, "q", b"ONE", OTHER)  # swallowed, as it was there already
        put(broker, "q", properties.encode({"message_id": "two"}), formats.BASIC)
        assert broker.queues["q"].message_count() == 2
        assert reading.properties_of(broker.tables, other) == {"message_id": "two"}
        first = broker.tables.entries[broker.queues["q"].head() + layout.ENTRY_MESSAGE]
        assert reading.properties_of(broker.tables, first) == {"message_id": "one"}
    finally:
        del formats.known[OTHER]


def test_a_logged_message_of_a_format_that_is_not_carried_stays_in_the_log_in_its_place():
    """core/log/FORMAT.md: it is told, and there again for a build that carries its format."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", True)
    formats.known[OTHER] = OtherFormat()
    try:
        put(broker, "q", b"TWO", OTHER | layout.KIND_DURABLE)
        peer.publish("q", b"three", given={"delivery_mode": 2})
        broker.run()
        formats.known[OTHER] = None
        store = store.cut()
        less, report = durable_broker(store)
        assert "format 200, which this build does not carry" in report, report
        assert less.queues["q"].message_count() == 1
        less.queues["q"].purge()
        less.run()
        formats.known[OTHER] = OtherFormat()
        more, _ = durable_broker(store.cut())
        message = more.tables.entries[more.queues["q"].head() + layout.ENTRY_MESSAGE]
        assert more.queues["q"].message_count() == 1 and reading.properties_of(more.tables, message) == {"message_id": "two"}
    finally:
        del formats.known[OTHER]

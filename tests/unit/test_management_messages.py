"""Single messages and counts for an operator (core/management/messages.py and statistics.py), at the calls of ports/http."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, content, encoded, new_broker

from leveret.core.access.permissions import User
from leveret.core.amqp_0_9 import properties
from leveret.core.amqp_0_9.described import described
from leveret.core.errors import ACCESS_REFUSED, CONTENT_TOO_LARGE, NOT_FOUND, NOT_IMPLEMENTED, RESOURCE_ERROR, ProtocolError
from leveret.core.management import messages, statistics
from leveret.core.memory import layout
from leveret.core.outcomes import ACCEPTED, MODIFIED, NO_ROOM, REJECTED, TAKEN, UNROUTABLE


def publish(broker, key, body=b"m", exchange="", given=None, user=None):
    octets = properties.encode(given or {})
    return messages.publish(broker, user or broker.access.users["guest"], exchange, key, octets, described(octets, 0), body)


def get(broker, name, count=10, outcome=ACCEPTED, octets_max=1 << 20, body_max=1 << 20, user=None):
    got = messages.get(broker, user or broker.access.users["guest"], name, count, outcome, octets_max, body_max)
    return None if got is None else [messages.described(each) for each in got]


def refused(condition, function, *arguments, **given):
    """The text of the ProtocolError with `condition` that a call raises."""
    try:
        function(*arguments, **given)
    except ProtocolError as error:
        assert error.condition == condition, error
        return error.text
    raise AssertionError("not refused")


def world(**limits):
    broker = new_broker(**limits)
    peer = Peer(broker)
    peer.declare("q")
    return broker, peer


def test_a_published_message_is_routed_counted_and_has_its_properties():
    broker, peer = world()
    assert publish(broker, b"q", b"one", given={"content_type": "a/b", "priority": 3}) == TAKEN
    assert publish(broker, b"q", b"two", exchange="amq.direct") == UNROUTABLE and publish(broker, b"q", b"three") == TAKEN
    broker.tick(broker.now + 1, broker.seconds)
    assert broker.counters["published"] == 3 and broker.counters["unroutable"] == 1
    assert broker.tables.state[layout.POOL_MESSAGES + 2] == broker.limits.message_count_max - 2  # that of the second is free again
    peer.give(encoded("basic_get", 1, 0, "q", True))
    ((name, arguments, given, body),) = peer.contents()
    assert name == "basic_get_ok" and given == {"content_type": "a/b", "priority": 3} and body == b"one", (arguments, given)


def test_what_cannot_be_published_is_refused_in_words():
    broker, peer = world(content_size_max=1024)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "inner", "fanout", False, False, False, True, False, {})
    nobody = User("nobody", None)
    assert "exchange" in refused(ACCESS_REFUSED, publish, broker, b"q", user=nobody)
    assert "no exchange 'absent'" in refused(NOT_FOUND, publish, broker, b"q", exchange="absent")
    assert "internal" in refused(ACCESS_REFUSED, publish, broker, b"q", exchange="inner")
    assert publish(broker, b"q", bytes(1024)) == TAKEN
    assert "a body of 1025 octets" in refused(CONTENT_TOO_LARGE, publish, broker, b"q", bytes(1025))
    most = broker.limits.properties_size_max
    assert "properties of %d octets" % (most + 1) in refused(
        CONTENT_TOO_LARGE, messages.publish, broker, broker.access.users["guest"], "", b"q", bytes(most + 1), (0, layout.NONE), b""
    )
    messages.publish(broker, broker.access.users["guest"], "", b"q", bytes(most), (0, layout.NONE), b"")


def test_without_room_nothing_has_changed():
    broker, _ = world(arena_size=8192, content_size_max=4096)
    free = broker.tables.state[layout.POOL_BLOCKS + 2]
    count = 0
    while publish(broker, b"q", bytes(1000)) == TAKEN:
        count += 1
        assert count < 20
    left = broker.tables.state[layout.POOL_BLOCKS + 2], broker.tables.state[layout.POOL_MESSAGES + 2]
    assert count > 2 and left[0] < free and publish(broker, b"q", bytes(1000)) == NO_ROOM
    assert left == (broker.tables.state[layout.POOL_BLOCKS + 2], broker.tables.state[layout.POOL_MESSAGES + 2])
    broker.tick(broker.now + 1, broker.seconds)
    assert broker.counters["published"] == count


def test_what_is_gotten_is_shown_cut_and_settled_as_it_is_said():
    broker, peer = world()
    for number in range(4):
        publish(broker, b"q", b"0123456789%d" % number, given={"message_id": "m%d" % number})
    shown = get(broker, "q", 2, MODIFIED, body_max=4)
    assert [(each["body"], each["size"], each["left"], each["redelivered"]) for each in shown] == [
        (b"0123", 11, 3, False),
        (b"0123", 11, 2, False),
    ]
    assert [each["properties"]["message_id"] for each in shown] == ["m0", "m1"] and shown[0]["exchange"] == "" and shown[0]["key"] == b"q"
    assert broker.queues["q"].message_count() == 4 and broker.queues["q"].unsettled_count() == 0
    again = get(broker, "q", 3, ACCEPTED)
    assert [(each["properties"]["message_id"], each["redelivered"]) for each in again] == [("m0", True), ("m1", True), ("m2", False)]
    assert [each["body"] for each in again] == [b"01234567890", b"01234567891", b"01234567892"]
    assert [each["left"] for each in get(broker, "q", 9, REJECTED)] == [0] and get(broker, "q") == []
    assert broker.tables.channel_pool[2] == broker.limits.channel_count_max - 1  # the peer's own is left


def test_octets_bound_what_is_gotten():
    broker, _ = world()
    for _ in range(4):
        publish(broker, b"q", bytes(100))
    one = broker.tables.size_of(broker.tables.entries[broker.queues["q"].head() + layout.ENTRY_MESSAGE])
    counts = [len(get(broker, "q", 9, MODIFIED, octets_max=most)) for most in (0, 1, one, one + 1, 2 * one, 2 * one + 1)]
    assert counts == [0, 1, 1, 2, 2, 3]
    short = one - 100 + 10  # what one counts whose body is cut to ten octets
    assert [len(get(broker, "q", 9, MODIFIED, octets_max=most, body_max=10)) for most in (short, short + 1, 3 * short, 3 * short + 1)] == [
        1,
        2,
        3,
        4,
    ]


def test_who_may_not_read_gets_nothing_and_streams_and_full_tables_are_refused():
    broker, peer = world(channel_count_max=2)
    assert "queue" in refused(ACCESS_REFUSED, get, broker, "q", user=User("nobody", None))
    assert "no queue 'absent'" in refused(NOT_FOUND, get, broker, "absent")
    peer.ask("channel_open", "channel_open_ok", "", channel=2)
    assert "2 sessions at most" in refused(RESOURCE_ERROR, get, broker, "q")
    store = MemoryStore()
    broker = durable_broker(store)[0]
    Peer(broker).declare("s", durable=True, arguments={"x-queue-type": "stream"})
    assert "stream" in refused(NOT_IMPLEMENTED, get, broker, "s")


def test_figures_of_a_queue():
    broker, peer = world()
    for size in (10, 20, 30):
        publish(broker, b"q", bytes(size))
    peer.give(encoded("basic_get", 1, 0, "q", False))
    peer.contents()
    queue = broker.queues["q"]
    assert statistics.of_queue(queue) == {"ready": 2, "in_log": 0, "unsettled": 1, "octets": 50, "in_log_octets": 0, "placed": 3}
    blocks = sum([broker.tables.blocks_for(len(b"\x00\x01q") + 2 + size) for size in (10, 20, 30)])
    assert statistics.octets_held(queue) == blocks * broker.tables.block_size
    peer.declare("r")
    publish(broker, b"r")
    assert statistics.totals_of_queues(broker) == (3, 1)


def test_figures_of_a_durable_queue_and_of_a_stream():
    broker, _ = durable_broker(MemoryStore(), message_count_max=16)
    peer = Peer(broker)
    peer.declare("d", durable=True)
    for _ in range(40):
        peer.publish("d", bytes(100), given={"delivery_mode": 2})
        broker.tick(broker.now + 1000, broker.seconds + 1)
    figures = statistics.of_queue(broker.queues["d"])
    assert figures["ready"] == 40 and figures["octets"] == 4000 and 0 < figures["in_log"] < 40, figures
    assert figures["in_log_octets"] == 100 * figures["in_log"]
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for size in (10, 20):
        peer.publish("s", bytes(size))
        broker.tick(broker.now + 1000, broker.seconds + 1)
    figures = statistics.of_queue(broker.queues["s"])
    assert (figures["ready"], figures["unsettled"], figures["placed"], figures["in_log"], figures["in_log_octets"]) == (2, 0, 2, 0, 0), (
        figures
    )
    assert figures["octets"] == broker.queues["s"].size > 30


def test_figures_of_a_session_and_a_consumer():
    broker, peer = world()
    session = list(broker.consumers.open_sessions())[0]
    assert statistics.of_session(broker.tables, session) == {
        "unsettled": 0,
        "delivered": 0,
        "published": 0,
        "confirms": False,
        "prefetch": 0,
    }
    peer.ask("confirm_select", "confirm_select_ok", False)
    peer.ask("basic_qos", "basic_qos_ok", 0, 5, False)
    peer.consume("q", "one")
    peer.ask("basic_qos", "basic_qos_ok", 0, 7, True)
    peer.ask("basic_qos", "basic_qos_ok", 0, 0, False)
    peer.consume("q", "two", no_ack=True)
    peer.give(content(1, "", "q", b"m"))
    peer.take()
    assert statistics.of_session(broker.tables, session) == {
        "unsettled": 1,
        "delivered": 1,
        "published": 1,
        "confirms": True,
        "prefetch": 7,
    }
    credits = sorted([statistics.credit_of(broker.tables, each) or 0 for each in session.consumers.values()])
    assert credits == [0, 4]
    channels, handle = broker.tables.channels, session.handle
    channels[handle + layout.CHANNEL_TAG_HIGH], channels[handle + layout.CHANNEL_PUBLISHED_HIGH] = 1, 2
    channels[handle + layout.CHANNEL_PREFETCH] = -1  # channel.flow: none at all for now, which is no limit of its own
    figures = statistics.of_session(broker.tables, session)
    assert (figures["delivered"], figures["published"], figures["prefetch"]) == ((1 << 30) + 1, (2 << 30) + 1, 0)


def test_what_a_session_has_got_is_unsettled_and_in_no_prefetch():
    broker, peer = world()
    (session,) = list(broker.consumers.open_sessions())
    peer.ask("basic_qos", "basic_qos_ok", 0, 1, True)
    for _ in range(7):
        peer.give(content(1, "", "q", b"m"))
    for no_ack in (True, False, False, False, False, True):
        peer.give(encoded("basic_get", 1, 0, "q", no_ack))

    def figures():
        peer.frames()
        known = statistics.of_session(broker.tables, session)
        return known["delivered"], known["unsettled"], broker.queues["q"].unsettled_count()

    assert figures() == (6, 4, 4)
    peer.consume("q", "c")
    assert figures() == (7, 5, 5)  # a prefetch of 1 had room
    peer.give(encoded("basic_ack", 1, 3, False))
    assert figures() == (7, 4, 4)
    peer.give(encoded("basic_reject", 1, 2, False))
    assert figures() == (7, 3, 3)
    peer.give(encoded("basic_recover", 1, True))  # all come back: two that were got, and the one of the consumer, who gets one
    assert figures() == (8, 1, 1)
    assert (broker.tables.state[layout.STATE_GOT], broker.tables.state[layout.STATE_GOT_NO_ACK]) == (4, 2)
    peer.give(encoded("basic_cancel", 1, "c", False) + encoded("basic_ack", 1, 0, True))
    peer.frames()
    assert [len(get(broker, "q", count)) for count in (1, 9)] == [1, 1]
    peer.give(encoded("channel_close", 1, 0, "", 0, 0))
    peer.frames()
    assert broker.queues["q"].unsettled_count() == 0


def test_pools_say_what_is_used_of_what():
    broker, peer = world()
    publish(broker, b"q", bytes(100))
    peer.consume("q")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.direct", "k", False, {})
    rows = {name: (used, most) for name, used, most in statistics.pools(broker)}
    limits = broker.limits
    blocks = broker.tables.blocks_for(len(b"\x00\x01q") + 2 + 100)
    assert rows == {
        "arena_size": (blocks * limits.block_size, limits.arena_size // limits.block_size * limits.block_size),
        "message_count_max": (1, limits.message_count_max),
        "entry_count_max": (1, limits.entry_count_max),
        "queue_count_max": (1, limits.queue_count_max),
        "channel_count_max": (1, limits.channel_count_max),
        "consumer_count_max": (1, limits.consumer_count_max),
        "connection_count_max": (1, limits.connection_count_max),
        "exchange_count_max": (len(broker.exchanges), limits.exchange_count_max),
        "binding_count_max": (1, limits.binding_count_max),
        "policy_count_max": (0, limits.policy_count_max),
        "user_count_max": (1, limits.user_count_max),
    }, rows

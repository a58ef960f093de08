"""QUEUE_PLAIN: which messages a queue takes without a look at them follows rules, policies, streams and the log."""

from memory_store import MemoryStore
from peer import Peer, content, new_broker

from leveret.core.broker.policies import Policy
from leveret.core.memory import layout
from leveret.core.recovery.opening import make_durable


def plain(broker, name):
    """The queue's flag in its flat record."""
    return broker.tables.queues[broker.queues[name].handle + layout.QUEUE_PLAIN]


def test_a_queue_without_rules_is_plain_and_others_are_not():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("plain")
    for name, arguments in (
        ("waits", {"x-max-length": 3, "x-overflow": "block"}),
        ("far", {"x-message-ttl": 1 << 28}),
    ):
        peer.declare(name, arguments=arguments)
    peer.declare("stream", durable=True, arguments={"x-queue-type": "stream"})
    for name in ("waits", "far", "stream"):
        assert plain(broker, name) == layout.NOT_PLAIN, name
        assert broker.queues[name].needs_care == (name != "stream")
    assert plain(broker, "plain") == layout.PLAIN


def test_limits_that_need_no_look_at_a_message_stand_in_the_flat_record():
    broker = new_broker()
    peer = Peer(broker)
    counted = layout.LIMIT_COUNTS | 2 << layout.LIMIT_MOST
    for name, arguments, limits in (
        ("none", {}, [0, -1, -1, -1]),
        ("ttl", {"x-message-ttl": 9}, [layout.LIMIT_EXPIRES, 9, -1, -1]),
        ("drops", {"x-max-length": 3, "x-max-length-bytes": 1 << 40}, [layout.LIMIT_DROPS | layout.LIMIT_RETURNS, -1, 3, layout.MASK]),
        ("refuses", {"x-max-length": 3, "x-overflow": "reject-publish"}, [layout.LIMIT_REFUSES, -1, 3, -1]),
        ("dead", {"x-dead-letter-exchange": ""}, [layout.LIMIT_DEAD_LETTERS, -1, -1, -1]),
        ("late", {"x-dead-letter-exchange": "", "x-message-ttl": 9}, [layout.LIMIT_DEAD_LETTERS | layout.LIMIT_EXPIRES, 9, -1, -1]),
        ("single", {"x-single-active-consumer": True}, [0, -1, -1, -1]),
        ("poison", {"x-delivery-limit": 2}, [counted, -1, -1, -1]),
        ("endless", {"x-delivery-limit": 1 << 40}, [layout.LIMIT_COUNTS | 254 << layout.LIMIT_MOST, -1, -1, -1]),
        ("later", {"x-delivery-limit": 2, "x-delayed-retry-min": 9}, [layout.LIMIT_RETURNS | counted, -1, -1, -1]),
        ("both", {"x-delivery-limit": 2, "x-max-length": 3}, [layout.LIMIT_DROPS | layout.LIMIT_RETURNS | counted, -1, 3, -1]),
        ("levels", {"x-max-priority": 3}, [layout.LIMIT_LEVELS | 3 << layout.LIMIT_HIGHEST | layout.LIMIT_RETURNS, -1, -1, -1]),
    ):
        peer.declare(name, arguments=arguments)
        place = broker.queues[name].handle + layout.QUEUE_LIMITS
        assert list(broker.tables.queues[place : place + 4]) == limits, name
        assert plain(broker, name) == layout.PLAIN and not broker.queues[name].needs_care, name


def test_a_policy_that_comes_and_goes_changes_it():
    broker = new_broker()
    Peer(broker).declare("q")
    broker.policies.set(broker, Policy("p", "q", {"max-length": 100, "overflow": "block"}))
    assert plain(broker, "q") == layout.NOT_PLAIN
    broker.policies.remove(broker, "p")
    assert plain(broker, "q") == layout.PLAIN


def test_a_message_that_expires_has_its_queue_look_at_deadlines():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.declare("dead", arguments={"x-dead-letter-exchange": ""})
    for name in ("q", "dead"):
        peer.give(content(1, "", name, b"x", {"expiration": "60000"}))
        assert plain(broker, name) == layout.PLAIN
    assert broker.tables.queues[broker.queues["q"].handle + layout.QUEUE_LIMITS] == layout.LIMIT_EXPIRES


def test_a_queue_in_the_log_takes_only_transient_messages_so():
    broker = new_broker()
    make_durable(broker, MemoryStore(), "each", 100, 65536, 4096, 1 << 20)
    peer = Peer(broker)
    peer.declare("kept", durable=True)
    peer.declare("not kept")
    assert [plain(broker, name) for name in ("kept", "not kept")] == [layout.PLAIN_LOGGED, layout.PLAIN]


def test_a_stream_in_the_log_takes_messages_so_and_one_that_holds_them_until_it_is_half_full():
    broker = new_broker()
    make_durable(broker, MemoryStore(), "each", 100, 65536, 4096, 1 << 20)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.declare("held", durable=True, arguments={"x-queue-type": "stream", "x-max-length-bytes": 1000, "x-stream-hold": "reader"})
    assert plain(broker, "s") == plain(broker, "held") == layout.PLAIN_STREAM
    for _ in range(6):
        peer.give(content(1, "", "held", bytes(90)))
    assert plain(broker, "held") == layout.NOT_PLAIN

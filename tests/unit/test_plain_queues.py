"""QUEUE_PLAIN: which messages a queue takes without a look at them follows rules, policies, streams and the log."""

from leveret.core import layout
from leveret.core.durability import make_durable
from leveret.core.policies import Policy
from test_log import MemoryStore
from peer import Peer, content, new_broker


def plain(broker, name):
    """The queue's flag in its flat record."""
    return broker.tables.queues[broker.queues[name].handle + layout.QUEUE_PLAIN]


def test_a_queue_without_rules_is_plain_and_others_are_not():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("plain")
    peer.declare("rules", arguments={"x-max-length": 3})
    peer.declare("stream", durable=True, arguments={"x-queue-type": "stream"})
    assert [plain(broker, name) for name in ("plain", "rules", "stream")] == [layout.PLAIN, layout.NOT_PLAIN, layout.NOT_PLAIN]


def test_a_policy_that_comes_and_goes_changes_it():
    broker = new_broker()
    Peer(broker).declare("q")
    broker.policies.set(broker, Policy("p", "q", {"max-length": 100}))
    assert plain(broker, "q") == layout.NOT_PLAIN
    broker.policies.remove(broker, "p")
    assert plain(broker, "q") == layout.PLAIN


def test_a_message_that_expires_ends_it():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.give(content(1, "", "q", b"x", {"expiration": "60000"}))
    assert plain(broker, "q") == layout.NOT_PLAIN


def test_a_queue_in_the_log_takes_only_transient_messages_so():
    broker = new_broker()
    make_durable(broker, MemoryStore(), "each", 100, 65536, 4096, 1 << 20)
    peer = Peer(broker)
    peer.declare("kept", durable=True)
    peer.declare("not kept")
    assert [plain(broker, name) for name in ("kept", "not kept")] == [layout.PLAIN_LOGGED, layout.PLAIN]

"""What tests/simulate found outside the log: queues whose rules, records or buffers went wrong under it."""

from peer import Peer, assemble, content, encoded, idle, new_broker, taken

from leveret.core.broker.policies import Policy
from leveret.core.memory import layout
from leveret.core.stream.stream import EPOCH


def broker_with_properties(**overrides):
    """A broker whose rules can read messages."""
    return new_broker(**overrides)


def got(peer, queue):
    """The bodies that basic.get takes out of a queue."""
    return [body for _, body in taken(peer, queue)]


def test_a_last_value_that_is_gone_is_not_replaced():
    """Delivered without acknowledgement, purged: the entry is another's by then."""
    broker = broker_with_properties()
    before = idle(broker)
    peer = Peer(broker)
    peer.declare("q", arguments={"x-last-value-key": "key"})
    for _ in range(3):
        for value in ("a", "b"):
            peer.publish("q", value.encode(), given={"headers": {"key": value}})
        assert got(peer, "q") == [b"a", b"b"]
        peer.publish("q", b"again", given={"headers": {"key": "a"}})
        assert got(peer, "q") == [b"again"]
    assert broker.queues["q"].message_count() == 0
    peer.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    peer.connection.received(0)
    assert idle(broker) == before


def test_a_policy_does_not_make_a_queue_forget_its_priorities():
    """Levels and the order within them hold across a policy that comes and goes."""
    broker = broker_with_properties()
    peer = Peer(broker)
    peer.declare("q", arguments={"x-max-priority": 3})

    def publish(*priorities):
        for priority in priorities:
            peer.give(content(1, "", "q", str(priority).encode(), {"priority": priority}))

    publish(3, 1, 2)
    broker.policies.set(broker, Policy("p", "q", {"max-length": 100}))
    publish(1, 3, 2)
    broker.policies.remove(broker, "p")
    publish(0, 3)
    assert got(peer, "q") == [b"3", b"3", b"3", b"2", b"2", b"1", b"1", b"0"]


def test_a_deleted_queue_gets_no_turn():
    """It may have been waiting for one; its record is another queue's by then."""
    broker = broker_with_properties()
    peer = Peer(broker)
    peer.declare("gone", arguments={"x-message-ttl": 1000})
    queue = broker.queues["gone"]
    peer.consume("gone")
    broker.activate(queue)
    broker.topology.delete_queue(peer.connection, "gone", False, False)
    broker.work(broker.jobs.pop())
    assert broker.tables.queues[queue.handle + layout.QUEUE_ACTIVE] == 0 and not broker.has_active()


def test_a_delayed_message_comes_to_a_stream_at_once():
    """By way of an exchange bound to the delayed one; a stream takes no delayed messages, and the binding cannot see it."""
    broker = broker_with_properties()
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.declare("q")
    for name, type_, arguments in (("late", "x-delayed-message", {"x-delayed-type": "fanout"}), ("all", "fanout", {})):
        peer.ask("exchange_declare", "exchange_declare_ok", 0, name, type_, False, True, False, False, False, arguments)
    peer.ask("exchange_bind", "exchange_bind_ok", 0, "all", "late", "", False, {})
    for queue in ("s", "q"):
        peer.ask("queue_bind", "queue_bind_ok", 0, queue, "all", "", False, {})
    peer.publish("", b"x", "late", {"headers": {"x-delay": 500}})
    assert broker.queues["s"].message_count() == 1 and broker.queues["q"].message_count() == 0
    broker.tick(600, EPOCH)
    assert got(peer, "q") == [b"x"] and broker.counters["internal_errors"] == 0


def test_histories_of_dead_letters_stay_deliverable():
    """A message that has died often: the oldest deaths are left out where they would not fit in a send buffer."""
    broker = broker_with_properties()
    peer = Peer(broker)
    names = ["queue-with-a-long-name-%d" % number for number in range(5)]
    for at, name in enumerate(names):
        peer.declare(name, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": names[(at + 1) % len(names)]})
    peer.publish(names[0], b"x", given={"headers": {"a": "b"}})
    for turn in range(9):
        peer.give(encoded("basic_get", 1, 0, names[turn % len(names)], False))
        found = assemble(peer.frames())[0]
        assert found[2]["headers"]["a"] == "b" and (turn == 0 or len(found[2]["headers"]["x-death"]) >= 1)
        peer.give(encoded("basic_reject", 1, found[1][0], False))
    assert broker.counters["internal_errors"] == 0


def test_basic_get_waits_for_room_in_the_send_buffer():
    """A long content header does not fit beside what the peer has not read."""
    broker = broker_with_properties(properties_size_max=400, send_buffer_size=2048)
    peer = Peer(broker)
    peer.declare("q")
    peer.publish("q", b"x", given={"headers": {"a": "c" * 350}})
    peer.give(encoded("basic_get", 1, 0, "q", False))
    while peer.connection.send.room() > 650:
        peer.give(encoded("basic_qos", 1, 0, 1, False))
    before = len(peer.connection.pending())
    peer.give(encoded("basic_recover_async", 1, True))
    octets = encoded("basic_get", 1, 0, "q", False)
    view = peer.connection.writable()
    view[: len(octets)] = octets
    peer.connection.received(len(octets))
    assert len(peer.connection.pending()) == before and broker.counters["internal_errors"] == 0
    assert [each[0] for each in peer.frames() if each[0] == "basic_get_ok"] == ["basic_get_ok", "basic_get_ok"]

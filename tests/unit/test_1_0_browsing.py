"""Links that copy a queue's messages and take none: part 3, section 3.5.3, distribution-mode copy."""

from peer_1_0 import Peer, data, declare, error_in, new_broker, performative

from leveret.core.memory import invariants
from leveret.core.outcomes import nobody

COPY = ("source", {"address": "/queues/q", "distribution-mode": "copy"})


def ready(messages=5, arguments=None, **limits):
    """A peer with a sender, and a queue with so many messages."""
    broker = new_broker(argument_size_max=1024, **limits)
    declare(broker, arguments=arguments)
    peer = Peer(broker)
    peer.sender()
    for number in range(messages):
        peer.send(number, b"%d" % number)
        peer.frames()
    return peer


def browse(peer, credit=100, handle=1, source=COPY, **given):
    """Bodies that come to a link that copies."""
    fields = peer.attach("browser%d" % handle, handle, True, None, source=source, **given)
    assert fields["source"][1]["distribution-mode"] == "copy"
    peer.credit(credit, handle)
    return [each[1] for each in peer.messages()]


def test_a_browser_gets_all_messages_in_order_and_they_stay():
    peer = ready()
    for handle in (1, 2):
        assert browse(peer, handle=handle) == [b"0", b"1", b"2", b"3", b"4"]
    queue = peer.broker.queues["q"]
    assert queue.message_count() == 5 and queue.unsettled_count() == 0 and not queue.consumers
    peer.receiver(name="real", handle=3)
    assert len(peer.messages()) == 5
    invariants.check(peer.broker.tables)


def test_outcomes_of_a_browser_change_nothing():
    peer = ready()
    browse(peer)
    for state in (("accepted", {}), ("rejected", {}), ("released", {})):
        peer.settle(1, state, 5)
    assert peer.broker.queues["q"].message_count() == 5 and peer.frames() == []
    peer.settle(1, ("accepted", {}), 5, settled=False)
    ((name, fields, _, _),) = peer.frames()
    assert name == "disposition" and fields["settled"] and not fields["role"]


def test_a_browser_gets_as_many_as_it_has_credit_for_and_what_comes_later():
    peer = ready()
    assert browse(peer, credit=2) == [b"0", b"1"]
    peer.credit(2, delivery_count=2)
    assert [each[1] for each in peer.messages()] == [b"2", b"3"]
    peer.credit(9, delivery_count=4)
    assert [each[1] for each in peer.messages()] == [b"4"]
    peer.send(5, b"late")
    peer.broker.tick(1000, 0)
    assert peer.connection.tick(1000) is None
    assert [each[1] for each in peer.messages()] == [b"late"]


def test_drain_ends_at_the_last_message():
    """As JMS browsers find their end."""
    peer = ready()
    peer.attach("b", 1, True, None, source=COPY)
    peer.credit(10, drain=True)
    frames = peer.frames()
    assert [each[0] for each in frames] == ["transfer"] * 5 + ["flow"]
    assert (frames[-1][1]["delivery-count"], frames[-1][1]["link-credit"]) == (10, 0)
    assert peer.connection.session.draining == []


def test_more_than_the_send_buffer_and_the_window_take():
    peer = ready(60)
    peer.attach("b", 1, True, None, source=COPY)
    peer.credit(100, incoming_window=7)
    assert len(peer.messages()) == 7
    peer.credit(100, next_incoming_id=7, incoming_window=1000, delivery_count=7)
    assert len(peer.messages()) == 53


def test_large_messages():
    peer = ready(0, receive_buffer_size=8192)
    peer.send(0, b"x" * 3000)
    peer.send(1, b"y")
    peer.frames()
    assert browse(peer) == [b"x" * 3000, b"y"]


def test_priorities_and_what_others_take():
    peer = ready(0, {"x-max-priority": 5})
    for number, priority in enumerate((0, 5, 3)):
        peer.send(number, b"%d" % priority, header={"priority": priority})
    peer.frames()
    assert browse(peer, credit=2) == [b"5", b"3"]
    peer.send(3, b"high", header={"priority": 5})
    peer.frames()
    peer.receiver(name="real", handle=3, credit=1)
    assert [each[1] for each in peer.messages()] == [b"5"]
    peer.credit(5, 1, delivery_count=2)
    assert [each[1] for each in peer.messages()] == [b"high", b"0"]


def test_a_filter_of_a_browser():
    peer = ready(0)
    for number in range(4):
        peer.give(
            performative(
                "transfer",
                0,
                b"\x00\x53\x74\xc1\x06\x02\xa1\x01n\x54" + bytes((number,)) + data(b"%d" % number),
                handle=0,
                delivery_id=number,
                delivery_tag=b"%d" % number,
            )
        )
    peer.frames()
    selector = ("described", ("symbol", "apache.org:selector-filter:string"), "n > 1")
    source = ("source", {"address": "/queues/q", "distribution-mode": "copy", "filter": {("symbol", "s"): selector}})
    assert browse(peer, source=source) == [b"2", b"3"]


def test_a_queue_that_is_deleted_and_permissions():
    peer = ready()
    browse(peer)
    peer.broker.topology.delete_queue(nobody, "q", False, False)
    peer.broker.tick(1000, 0)
    peer.connection.tick(1000)
    assert error_in(peer.frames(), "detach")[0] == "amqp:resource-deleted"
    peer = ready()
    peer.broker.access.users["guest"].permit((".*", ".*", "^none$"))
    peer.give(performative("attach", name="b", handle=1, role=True, source=COPY))
    assert error_in(peer.frames(), "detach")[0] == "amqp:unauthorized-access"


def test_a_browser_that_ends_in_the_middle_of_a_message():
    peer = ready(0, receive_buffer_size=8192)
    peer.send(0, b"x" * 4000)
    peer.frames()
    peer.attach("b", 1, True, None, source=COPY)
    peer.credit(10, incoming_window=2)
    peer.frames()
    peer.give(performative("detach", handle=1, closed=True) + performative("end"))
    assert [each[0] for each in peer.frames()][-1] == "end"
    peer.broker.topology.delete_queue(nobody, "q", False, False)
    invariants.check(peer.broker.tables)
    assert peer.broker.counters["internal_errors"] == 0

"""Streams as sources of AMQP 1.0 links, as RabbitMQ has them: the annotation x-stream-offset, the filter rabbitmq:stream-offset-spec."""

from peer_1_0 import Peer, declare, error_in, new_broker, performative

from leveret.core.amqp_1_0 import types
from leveret.core.outcomes import nobody


def ready(messages=4, **limits):
    """A peer, and a stream with so many messages."""
    broker = new_broker(argument_size_max=1024, **limits)
    declare(broker, "s", {"x-queue-type": "stream"})
    peer = Peer(broker)
    peer.sender("/queues/s")
    for number in range(messages):
        peer.send(number, b"%d" % number)
    peer.frames()
    return peer


def from_offset(offset, **given):
    """A source that begins at an offset."""
    value = ("described", ("symbol", "rabbitmq:stream-offset-spec"), offset)
    return ("source", dict({"address": "/queues/s", "filter": {("symbol", "rabbitmq:stream-offset-spec"): value}}, **given))


def offsets(peer):
    """The offsets of the deliveries that have come."""
    found = []
    for name, _, octets, _ in peer.frames():
        if name == "transfer":
            at = 0
            while at < len(octets):
                value, at = types.decode(octets, at, len(octets))
                if value[1] == ("ulong", 0x72):
                    found.append(value[2][("symbol", "x-stream-offset")])
    return found


def test_a_stream_is_read_from_an_offset_on_with_credit_and_stays():
    peer = ready()
    fields = peer.attach("in", 1, True, None, source=from_offset(("ulong", 1)))
    assert fields["source"][1]["filter"] and fields["source"][1]["distribution-mode"] == "copy"
    peer.credit(2)
    assert offsets(peer) == [1, 2]
    peer.settle(1, ("accepted", {}), 2)
    assert offsets(peer) == []
    peer.credit(5, delivery_count=2)
    assert offsets(peer) == [3]
    peer.settle(3, ("rejected", {}))
    peer.send(4, b"late")
    assert offsets(peer) == [4]
    assert peer.broker.queues["s"].message_count() == 5


def test_two_readers_and_one_that_copies():
    """distribution-mode copy is what a stream does anyway."""
    peer = ready()
    for handle, name in ((1, "a"), (2, "b")):
        peer.attach(name, handle, True, None, source=from_offset("first", **{"distribution-mode": "copy"}))
        peer.credit(10, handle)
        assert offsets(peer) == [0, 1, 2, 3]


def test_what_a_reader_gives_back_is_not_delivered_again_and_stays_in_the_stream():
    peer = ready()
    peer.attach("in", 1, True, None, source=from_offset("first"))
    peer.credit(10)
    assert len(offsets(peer)) == 4
    peer.settle(1, ("released", {}), 4)
    assert offsets(peer) == [] and peer.broker.queues["s"].message_count() == 4
    assert peer.broker.queues["s"].unsettled_count() == 0


def test_deliveries_of_a_stream_that_leave_settled():
    peer = ready()
    peer.attach("in", 1, True, None, source=from_offset("first"), snd_settle_mode=1)
    peer.credit(3)
    found = [each for each in peer.frames() if each[0] == "transfer"]
    assert [each[1]["settled"] for each in found] == [True] * 3
    assert peer.broker.queues["s"].unsettled_count() == 0


def test_drain_at_the_end_of_a_stream():
    peer = ready()
    peer.attach("in", 1, True, None, source=from_offset("first"))
    peer.credit(10, drain=True)
    frames = peer.frames()
    assert [each[0] for each in frames] == ["transfer"] * 4 + ["flow"]
    assert (frames[-1][1]["delivery-count"], frames[-1][1]["link-credit"]) == (10, 0)


def test_large_messages_of_a_stream():
    peer = ready(0, receive_buffer_size=8192)
    peer.send(0, b"x" * 3000)
    peer.frames()
    peer.attach("in", 1, True, None, source=from_offset("first"))
    peer.credit(3)
    assert [body for _, body in peer.messages()] == [b"x" * 3000]


def test_a_stream_that_is_deleted():
    peer = ready()
    peer.attach("in", 1, True, None, source=from_offset("first"))
    peer.credit(2)
    peer.frames()
    peer.broker.topology.delete_queue(nobody, "s", False, False)
    assert error_in(peer.frames(), "detach")[0] == "amqp:resource-deleted"
    peer.give(performative("detach", handle=1, closed=True))
    assert peer.broker.counters["internal_errors"] == 0


def from_position(text, address="/queues/s"):
    """A source that begins at a position of Event Hubs."""
    name = ("symbol", "apache.org:selector-filter:string")
    return ("source", {"address": address, "filter": {name: ("described", name, text)}})


def noted(peer):
    """The annotations of the deliveries that have come, by name."""
    tables = []
    for name, _, octets, _ in peer.frames():
        if name == "transfer":
            at = 0
            while at < len(octets):
                section, at = types.decode(octets, at, len(octets))
                if section[1] == ("ulong", 0x72):
                    tables.append({key[1]: section[2][key] for key in section[2]})
    return tables


def test_a_stream_is_read_from_a_position_of_event_hubs_on():
    prefix = "amqp.annotation.x-opt-"
    for text, offsets_wanted in (
        ("offset > '1'", [2, 3]),
        ("offset >= '1'", [1, 2, 3]),
        ("offset > '-1'", [0, 1, 2, 3]),
        ("offset > '@latest'", []),
        ("offset > '3'", []),
        ("sequence-number > 2", [3]),
        ("sequence-number>=2", [2, 3]),
        ("enqueued-time > 0", [0, 1, 2, 3]),
        ("enqueued-time > 9000000000000", []),
    ):
        peer = ready()
        fields = peer.attach("in", 1, True, None, source=from_position(prefix + text))
        assert fields["source"][1]["filter"], text
        peer.credit(10)
        tables = noted(peer)
        assert [table["x-opt-sequence-number"] for table in tables] == offsets_wanted, text
        for table in tables:
            assert table["x-opt-offset"] == "%d" % table["x-stream-offset"] and table["x-opt-enqueued-time"][0] == "timestamp"
        peer.send(4, b"late")
        if text == "offset > '@latest'":
            assert [table["x-opt-offset"] for table in noted(peer)] == ["4"]


def test_a_selector_that_is_no_position_is_a_condition_and_a_queue_has_no_positions():
    for text in ("amqp.annotation.x-opt-other > 1", "amqp.annotation.x-opt-offset = '1'", "amqp.annotation.x-opt-offset > 'a'"):
        peer = ready()
        peer.attach("in", 1, True, None, source=from_position(text))
        peer.credit(10)
        assert noted(peer) == []
    peer = ready()
    declare(peer.broker, "q")
    peer.attach("in", 1, True, None, source=from_position("amqp.annotation.x-opt-offset > '1'", "/queues/q"))
    peer.credit(10)
    assert noted(peer) == []


def test_a_partition_of_a_hub_is_a_stream_by_its_address():
    peer = ready()
    declare(peer.broker, "hub-3", {"x-queue-type": "stream"})
    address = "/hub/ConsumerGroups/$Default/Partitions/3"
    fields = peer.attach("in", 1, True, None, source=from_position("amqp.annotation.x-opt-offset > '-1'", address))
    assert fields["source"][1]["address"] == address and len(peer.broker.queues["hub-3"].consumers) == 1


def test_a_transfer_of_a_partition_has_all_fields_and_its_position():
    """azure-eventhub reads the eleven fields of each transfer (section 2.7.5), and the three annotations without asking for a position."""
    peer = Peer(new_broker(argument_size_max=1024))
    declare(peer.broker, "hub-0", {"x-queue-type": "stream"})
    peer.attach("out", 0, False, "hub/Partitions/0")
    peer.send(0, b"one")
    peer.send(1, b"two")
    peer.frames()
    first = {("symbol", "rabbitmq:stream-offset-spec"): ("described", ("symbol", "rabbitmq:stream-offset-spec"), "first")}
    source = ("source", {"address": "hub/ConsumerGroups/g/Partitions/0", "filter": first})
    peer.attach("in", 1, True, None, source=source)
    peer.credit(10)
    peer.collect()
    parts = peer.inbox.split(b"\x00\x53\x14\xc0")[1:]
    assert [part[1] for part in parts] == [11, 11]
    assert [table["x-opt-offset"] for table in noted(peer)[:1]] == ["0"]

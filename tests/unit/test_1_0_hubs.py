"""Event Hubs' `$management`: a hub's partitions, and where each begins and ends (AMQP Management, working draft 9, section 3.2: READ)."""

from memory_store import MemoryStore, durable_broker
from peer_1_0 import Peer, declare, error_in, new_broker, performative

from leveret.core.access.permissions import User
from leveret.core.amqp_1_0 import composites, hubs, management, types
from leveret.core.memory import layout

ADDRESS = "$management"
STREAM = {"x-queue-type": "stream"}
ID = ("uuid", bytes(range(16)))
FIRST_HALF, SECOND_HALF = "the link of the requests", "the link of the answers"


def request(given, **properties):
    """The octets of a request with these application properties."""
    head = composites.write("properties", dict({"message-id": ID}, **properties))
    head += types.encode(("described", ("ulong", 0x74), given))
    return head + types.encode(("described", ("ulong", 0x77), None))


def answered(octets):
    """(status, sentence, body) of a response."""
    at, sections = 0, []
    while at < len(octets):
        value, at = types.decode(octets, at, len(octets))
        sections.append(value)
    assert composites.composite(sections[0])[1]["correlation-id"] == ID
    return sections[1][2]["status-code"][1], sections[1][2]["status-description"], sections[2][2]


def linked(broker, reply_to="answers", **given):
    """A peer with both links, of names that differ, as azure-eventhub has them."""
    peer = Peer(broker, **given)
    peer.attach(FIRST_HALF, 0, False, ADDRESS, source=("source", {"address": ADDRESS}), snd_settle_mode=1)
    peer.expect("flow")
    peer.attach(SECOND_HALF, 1, True, ADDRESS, target=("target", {"address": reply_to}), snd_settle_mode=1)
    peer.credit(10)
    return peer


def ask(peer, given, number=0, **properties):
    """What comes for a request: (status, sentence, body), or the frames where no response does."""
    fields = {"handle": 0, "delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
    peer.give(performative("transfer", 0, request(given, **properties), **fields))
    frames = peer.frames()
    octets = b"".join([payload for name, _, payload, _ in frames if name == "transfer"])
    return answered(octets) if octets else frames


def hub(name, operation="READ"):
    """The application properties of a request for a hub."""
    return {"operation": operation, "type": "com.microsoft:eventhub", "name": name}


def partition(name, number):
    """The application properties of a request for a partition of a hub."""
    return {"operation": "READ", "type": "com.microsoft:partition", "name": name, "partition": number}


def token(name="sb://h/hub"):
    """The application properties of a request that puts a token."""
    return {"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": name}


def test_a_token_is_answered_and_not_read():
    """Azure's clients wait for 202 at `$cbs`; their pair to `$management` is in the same session, and each response leaves on its own."""
    broker = new_broker()
    declare(broker, "plant-0", STREAM)
    peer = linked(broker, None)
    peer.attach("tokens", 2, False, "$cbs", source=("source", {"address": "$cbs"}), snd_settle_mode=1)
    peer.expect("flow")
    peer.attach("answers to tokens", 3, True, "$cbs", target=("target", {"address": "$cbs"}), snd_settle_mode=1)
    peer.credit(10, handle=3)
    for number, (handle, given, status) in enumerate(((2, token(), 202), (0, hub("plant"), 200), (2, token(), 202))):
        fields = {"handle": handle, "delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
        peer.give(performative("transfer", 0, request(given), **fields))
        ((_, answer, octets, _),) = [each for each in peer.frames() if each[0] == "transfer"]
        told, text, _ = answered(octets)
        assert (told, answer["handle"]) == (status, handle + 1) and (status == 200 or "does not read tokens" in text)


def test_every_field_of_a_response_is_written_because_clients_of_event_hubs_read_them():
    """The list of a transfer has its eleven fields (section 2.7.5), nulls at the end and all."""
    broker = new_broker()
    declare(broker, "plant-0", STREAM)
    peer = linked(broker)
    fields = {"handle": 0, "delivery_id": 0, "delivery_tag": b"t", "message_format": 0, "settled": True}
    peer.give(performative("transfer", 0, request(hub("plant")), **fields))
    peer.collect()
    at = peer.inbox.index(b"\x00\x53\x14\xc0")
    assert peer.inbox[at + 5] == 11


def test_a_hub_tells_its_partitions():
    broker = new_broker()
    for name in ("plant-0", "plant-1", "plant-3", "other-0"):
        declare(broker, name, STREAM)
    declare(broker, "queue-0")
    peer = linked(broker)
    status, _, told = ask(peer, hub("plant"))
    assert status == 200 and told["partition_ids"] == ("array", "string", ["0", "1"]) and told["name"] == "plant"
    assert told["partition_count"] == ("int", 2) and told["created_at"] == ("timestamp", 0), "nobody wrote it down"
    for number, name in enumerate(("nothing", "queue")):
        status, text, told = ask(peer, hub(name), 1 + number)
        assert (status, told) == (404, {}) and "'%s-0'" % name in text, text


def test_a_partition_tells_where_it_begins_and_ends():
    broker = new_broker()
    declare(broker, "plant-0", dict(STREAM, **{"x-max-length-bytes": 400}))
    peer = linked(broker)
    told = ask(peer, partition("plant", "0"))[2]
    assert (told["begin_sequence_number"], told["last_enqueued_sequence_number"], told["is_partition_empty"]) == (0, -1, True)
    assert told["last_enqueued_offset"] == "-1" and told["last_enqueued_time_utc"] == ("timestamp", 0)
    stream = broker.queues["plant-0"]
    assert told["x-stream-id"] == stream.id
    broker.seconds = 1_700_000_000 - layout.EPOCH
    sender = Peer(broker, container="sender")
    sender.attach("in", 0, False, "/queues/plant-0")
    for number in range(20):
        sender.send(number, b"x" * 40)
    told = ask(peer, partition("plant", "0"), 1)[2]
    assert told["begin_sequence_number"] == stream.first_offset and stream.first_offset > 0
    assert told["last_enqueued_sequence_number"] == 19 and told["last_enqueued_offset"] == "19"
    assert told["last_enqueued_time_utc"] == ("timestamp", 1_700_000_000_000) and not told["is_partition_empty"]


def test_only_what_survives_a_power_cut_is_told():
    broker, _ = durable_broker(MemoryStore(), "batch")
    declare(broker, "plant-0", STREAM)
    broker.tick(1000, 0)
    peer = linked(broker)
    sender = Peer(broker, container="sender")
    sender.attach("in", 0, False, "/queues/plant-0")
    sender.send(0, b"x")
    assert ask(peer, partition("plant", "0"))[2]["last_enqueued_sequence_number"] == -1
    broker.tick(2000, 0)
    broker.run()
    assert ask(peer, partition("plant", "0"), 1)[2]["last_enqueued_sequence_number"] == 0


def test_what_cannot_be_answered_says_why():
    peer = linked(new_broker())
    for number, (given, status, words) in enumerate(
        (
            (hub("plant", "DELETE"), 501, "operation READ"),
            ({"operation": "READ", "type": "com.microsoft:house", "name": "x"}, 501, "com.microsoft:partition"),
            ({"operation": ("int", 3)}, 501, "operation READ"),
            ({"operation": "READ", "type": "com.microsoft:eventhub"}, 400, "names the hub"),
            (partition("plant", "7"), 404, "no partition"),
            (partition("plant", ("int", 7)), 404, "no partition"),
            (partition("x" * 700, None), 404, "no partition"),
        )
    ):
        told = ask(peer, given, number)
        assert told[0] == status and words in told[1] and len(told[1]) < 400, told


def test_who_may_not_read_a_stream_is_not_told_of_it():
    broker = new_broker()
    declare(broker, "plant-0", STREAM)
    peer = linked(broker)
    peer.connection.user = User("reader", None, (), ("", "", "^other"))
    assert ask(peer, hub("plant"))[0] == 401 and ask(peer, partition("plant", "0"), 1)[0] == 401


def test_the_response_leaves_on_the_link_that_the_request_names():
    peer = linked(new_broker())
    assert ask(peer, hub("plant"), 0, **{"reply-to": "answers"})[0] == 404
    frames = ask(peer, hub("plant"), 1, **{"reply-to": "elsewhere"})
    assert error_in(frames, "detach")[0] == "amqp:precondition-failed"


def test_a_link_of_the_same_name_that_is_a_receiver_of_a_queue_gets_no_response():
    broker = new_broker()
    declare(broker, "q")
    peer = Peer(broker)
    peer.attach("m", 0, False, ADDRESS, source=("source", {"address": ADDRESS}), snd_settle_mode=1)
    peer.expect("flow")
    peer.attach("m", 1, True, None, source=("source", {"address": "/queues/q"}))
    peer.credit(10)
    assert error_in(ask(peer, hub("plant")), "detach")[0] == "amqp:precondition-failed"


def test_a_hub_has_a_largest_number_of_partitions():
    broker = new_broker(queue_count_max=hubs.PARTITIONS_MAX + 4)
    for number in range(hubs.PARTITIONS_MAX + 1):
        declare(broker, "plant-%d" % number, STREAM)
    assert ask(linked(broker), hub("plant"))[2]["partition_count"] == ("int", hubs.PARTITIONS_MAX)


def test_a_response_for_which_there_is_no_room_says_so_in_the_words_of_whom_it_is_for():
    """To clients of Event Hubs with a status in the application properties; to others as RabbitMQ's, in the subject (core/SPEC.md)."""
    broker = new_broker()
    declare(broker, "plant-0", STREAM)
    peer = linked(broker)
    kept, management.response_size_max = management.response_size_max, lambda limits: 100
    try:
        status, text, told = ask(peer, hub("plant"))
        head = composites.write("properties", {"message-id": "id", "to": "/queues/plant-0", "subject": "GET", "reply-to": "$me"})
        asked = head + types.encode(("described", ("ulong", 0x77), None))
        octets = management.Request(peer.connection, asked).answer()
    finally:
        management.response_size_max = kept
    said = "the response, with those that wait, is larger than this broker keeps (management_size_max: %d octets)"
    said %= broker.limits.management_size_max
    assert (status, text, told) == (500, said, {})
    value, at = types.decode(octets, 0, len(octets))
    assert composites.composite(value)[1]["subject"] == "500" and said.encode() in octets[at:]

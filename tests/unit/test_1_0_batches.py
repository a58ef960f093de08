"""Batches of Event Hubs over AMQP 1.0: a delivery of message-format 0x80013700, whose data sections are messages of their own."""

from memory_store import MemoryStore, durable_broker
from peer_1_0 import Peer, data, declare, new_broker, performative

from leveret.core.amqp_1_0 import composites, types
from leveret.core.amqp_1_0.bounds import BATCH
from leveret.core.memory import invariants

ACCEPTED = ("accepted", {})
VALUE = b"\x00\x53\x77"


def message(body, subject=None):
    octets = b"" if subject is None else composites.write("properties", {"subject": subject})
    return octets + data(body)


def batch(*messages):
    """The octets of a batch, with annotations of its own."""
    return b"\x00\x53\x72" + types.encode({("symbol", "x-opt-partition-key"): "k"}) + b"".join([data(each) for each in messages])


def ready(arguments=None, **given):
    broker = new_broker(**given)
    declare(broker, arguments=arguments)
    peer = Peer(broker)
    peer.sender()
    return peer


def give(peer, octets, cuts=(), number=0, **given):
    """One delivery, in several transfers where it is cut."""
    begins, given["message_format"] = [0] + list(cuts), given.get("message_format", BATCH)
    for place, begin in enumerate(begins):
        is_last = place + 1 == len(begins)
        piece = octets[begin:] if is_last else octets[begin : begins[place + 1]]
        fields = dict(given, delivery_id=number, delivery_tag=b"%d" % number) if place == 0 else {}
        peer.give(performative("transfer", 0, piece, handle=0, more=not is_last, **fields))


def heard(peer):
    """The frames that came, flows apart: (name, state or error)."""
    return [(name, fields.get("state", fields.get("error"))) for name, fields, *_ in peer.frames() if name != "flow"]


def left(peer):
    invariants.check(peer.broker.tables)
    return peer.broker.queues["q"].message_count()


THREE = [message(b"one", "a"), message(b"", "b"), message(b"x" * 60)]


def taken_out(peer):
    """What a receiver gets of the queue: the octets of each message."""
    other = Peer(peer.broker, container="other")
    other.receiver(credit=100)
    return [payload for name, _, payload, _ in other.frames() if name == "transfer"]


def test_each_data_section_becomes_a_message():
    peer = ready()
    give(peer, batch(*THREE))
    assert heard(peer) == [("disposition", ACCEPTED)] and left(peer) == 3
    assert taken_out(peer) == THREE
    peer.broker.tick(0, 0)
    assert peer.broker.counters["published"] == 3


def test_a_batch_is_taken_at_every_cut():
    octets = batch(*THREE)
    for cut in range(0, len(octets) + 1, 3):
        peer = ready()
        give(peer, octets, (cut,))
        assert heard(peer) == [("disposition", ACCEPTED)], cut
        assert taken_out(peer) == THREE, cut
    peer = ready()
    give(peer, octets, range(1, len(octets)))
    assert heard(peer) == [("disposition", ACCEPTED)] and taken_out(peer) == THREE
    left(peer)


def test_a_batch_is_taken_whole_or_not_at_all():
    peer = ready({"x-max-length": 2, "x-overflow": "reject-publish"})
    give(peer, batch(*THREE))
    ((name, state),) = heard(peer)
    assert (name, state[0], state[1]["error"]["condition"]) == ("disposition", "rejected", "amqp:resource-limit-exceeded")
    assert left(peer) == 0
    give(peer, batch(*THREE[:2]), number=1)
    assert heard(peer) == [("disposition", ACCEPTED)] and left(peer) == 2


def test_what_is_no_batch_is_told_and_nothing_of_it_stays():
    whole = batch(*THREE)
    for octets in (
        whole[:-1],
        whole + b"\x00\x53\x75\xa0\x05\x00",
        whole + VALUE + b"\x43",
        batch(THREE[0], b"no message"),
        batch(THREE[0], b""),
    ):
        peer = ready()
        give(peer, octets)
        ((name, error),) = heard(peer)
        assert name in ("detach", "end", "close") and error["condition"] == "amqp:decode-error", (octets, error)
        assert left(peer) == 0


def test_a_batch_without_a_message_is_rejected():
    peer = ready()
    give(peer, batch())
    ((name, state),) = heard(peer)
    assert (name, state[0]) == ("disposition", "rejected") and left(peer) == 0


def test_a_batch_of_which_a_message_has_no_queue_is_released():
    peer = ready()
    peer.attach("topic", 5, False, "/exchanges/amq.direct")
    peer.expect("flow")
    give_on(peer, 5, batch(message(b"a", "nowhere")))
    assert heard(peer) == [("disposition", ("released", {}))] and left(peer) == 0


def give_on(peer, handle, octets, number=0):
    peer.give(performative("transfer", 0, octets, handle=handle, delivery_id=number, delivery_tag=b"t", message_format=BATCH))


def test_a_batch_that_is_too_large_is_rejected():
    peer = ready(content_size_max=1024)
    give(peer, batch(*[message(b"x" * 250)] * 5), (300, 900))
    ((name, state),) = heard(peer)
    assert (name, state[1]["error"]["condition"]) == ("disposition", "amqp:link:message-size-exceeded") and left(peer) == 0


def test_a_batch_takes_places_of_transactions():
    peer = ready(transaction_count_max=2)
    give(peer, batch(*THREE))
    ((name, state),) = heard(peer)
    assert (name, state[1]["error"]["condition"]) == ("disposition", "amqp:resource-limit-exceeded") and left(peer) == 0
    assert peer.broker.tables.transactions_left == 2


def test_a_settled_batch_and_one_that_is_aborted():
    peer = ready()
    give(peer, batch(*THREE), settled=True)
    assert heard(peer) == [] and left(peer) == 3
    fields = {"handle": 0, "delivery_id": 1, "delivery_tag": b"1", "message_format": BATCH}
    peer.give(performative("transfer", 0, batch(*THREE)[:-5], more=True, **fields))
    peer.give(performative("transfer", 0, handle=0, aborted=True))
    assert heard(peer) == [] and left(peer) == 3
    assert peer.broker.tables.transactions_left == peer.broker.limits.transaction_count_max


def test_a_connection_that_is_lost_in_a_batch_leaves_nothing():
    peer = ready()
    fields = {"handle": 0, "delivery_id": 0, "delivery_tag": b"1", "message_format": BATCH}
    peer.give(performative("transfer", 0, batch(*THREE)[:-5], more=True, **fields))
    peer.connection.received(0)
    assert left(peer) == 0 and peer.broker.tables.transactions_left == peer.broker.limits.transaction_count_max


def test_a_batch_within_a_transaction_takes_effect_with_it():
    for fails in (False, True):
        peer = ready()
        peer.attach("txn", 9, False, None, target=("coordinator", {"capabilities": ["amqp:local-transactions"]}))
        ask = {"handle": 9, "delivery_id": 0, "delivery_tag": b"a"}
        peer.give(performative("transfer", 0, VALUE + composites.write("declare", {}), **ask))
        ((_, (_, fields)),) = heard(peer)
        work = fields["txn-id"]
        give(peer, batch(*THREE), number=1, state=("transactional-state", {"txn-id": work}))
        ((_, state),) = heard(peer)
        assert state[0] == "transactional-state" and left(peer) == 0
        ask = {"handle": 9, "delivery_id": 2, "delivery_tag": b"b"}
        peer.give(performative("transfer", 0, VALUE + composites.write("discharge", {"txn-id": work, "fail": fails}), **ask))
        assert heard(peer) == [("disposition", ACCEPTED)] and left(peer) == (0 if fails else 3)


def test_a_batch_is_told_when_the_log_has_all_of_it():
    """And a broker that begins with that log has each of its messages."""
    store = MemoryStore()
    broker = durable_broker(store)[0]
    declare(broker)
    peer = Peer(broker)
    peer.sender()
    durable = [composites.write("header", {"durable": True}) + each for each in THREE]
    give(peer, batch(*durable))
    assert heard(peer) == [("disposition", ACCEPTED)]
    again = durable_broker(store)[0]
    assert [each[-4:] for each in taken_out(Peer(again))] == [each[-4:] for each in durable]


def test_other_formats_are_refused():
    peer = ready()
    give(peer, batch(*THREE), message_format=5)
    ((name, error),) = heard(peer)
    assert name == "detach" and error["condition"] == "amqp:not-implemented" and "0x80013700" in error["description"]

"""However a content ends that is under way, its blocks, message and entries are free again, once the peer or its connection has gone: in
0-9-1 (section 4.2.6), 0-10 (4.4.3) and 1.0 (2.6.14: abort; 2.6.5: detach; 3.4.3: rejected; 4.4: in a transaction)."""

from peer import Peer as Peer091
from peer import content, encoded, new_broker
from peer_0_10 import Peer as Peer010
from peer_0_10 import control, transfer
from peer_1_0 import Peer as Peer10
from peer_1_0 import data, declare, performative

from leveret.core.amqp_0_9 import frame
from leveret.core.amqp_1_0 import composites
from leveret.core.memory import invariants

SIZE = 1500  # octets of a content: several blocks
ROOM = {"receive_buffer_size": 8192, "send_buffer_size": 8192, "properties_size_max": 1000, "transaction_count_max": 8}


def pools(broker):
    """Blocks, messages and entries that are free."""
    invariants.check(broker.tables)
    return [broker.tables.state[place] for place in (2, 5, 8)]


def new():
    """A broker with queue q, and what is free in it."""
    broker = new_broker(**ROOM)
    declare(broker)
    return broker, pools(broker)


def settled_down(broker):
    for _ in range(50):
        broker.tick(broker.now + 100, 0)
        broker.run()


def lose(peer):
    peer.connection.received(0)


def first_of_10(peer, octets, address="/queues/q", **given):
    """A link, and most of a message on it."""
    peer.sender(address)
    fields = {"handle": 0, "delivery_id": 0, "delivery_tag": b"t", "message_format": 0, "more": True}
    fields.update(given)
    peer.give(performative("transfer", 0, octets[:-10], **fields))


def rest(peer, octets):
    peer.give(performative("transfer", 0, octets[-10:], handle=0))


def in_transaction(peer, then):
    """The same message in a transaction, which is not discharged, or as `then` says."""
    peer.attach("txn", 9, False, None, target=("coordinator", {}))
    peer.expect("flow")
    octets = b"\x00\x53\x77" + composites.write("declare", {})
    peer.give(performative("transfer", 0, octets, handle=9, delivery_id=0, delivery_tag=b"d"))
    ((_, fields, _, _),) = [each for each in peer.frames() if each[0] == "disposition"]
    state = ("transactional-state", {"txn-id": fields["state"][1]["txn-id"]})
    message = data(b"x" * SIZE)
    first_of_10(peer, message, delivery_id=1, state=state)
    if then != "half":
        rest(peer, message)
    if then == "rolled back":
        octets = b"\x00\x53\x77" + composites.write("discharge", {"txn-id": state[1]["txn-id"], "fail": True})
        peer.give(performative("transfer", 0, octets, handle=9, delivery_id=2, delivery_tag=b"e"))


MESSAGE = data(b"x" * SIZE)
HEADED = composites.write("properties", {"subject": "s" * 900}) + MESSAGE

ENDS_1_0 = (
    lambda peer: (first_of_10(peer, MESSAGE), peer.give(performative("transfer", 0, handle=0, aborted=True))),
    lambda peer: (first_of_10(peer, MESSAGE), peer.give(performative("detach", 0, handle=0, closed=True))),
    lambda peer: (first_of_10(peer, MESSAGE), peer.give(performative("end"))),
    lambda peer: (first_of_10(peer, MESSAGE), peer.give(performative("close"))),
    lambda peer: (first_of_10(peer, MESSAGE), lose(peer)),
    lambda peer: (first_of_10(peer, HEADED[:500]), lose(peer)),  # within its sections
    lambda peer: (first_of_10(peer, HEADED[:500]), peer.give(performative("detach", 0, handle=0, closed=True))),
    lambda peer: (first_of_10(peer, HEADED, None), rest(peer, HEADED)),  # the anonymous terminus without `to`
    lambda peer: (first_of_10(peer, HEADED, "/exchanges/amq.direct/none"), rest(peer, HEADED)),  # no queue
    lambda peer: (first_of_10(peer, MESSAGE + b"\xff" * 10), rest(peer, b"\xff" * 10)),  # no section behind the data
    lambda peer: (first_of_10(peer, MESSAGE), peer.give(performative("transfer", 0, b"y" * 100, handle=0))),  # more than it says
    lambda peer: (first_of_10(peer, b"\x00\x53\x99" + MESSAGE), rest(peer, MESSAGE)),  # a section that nobody knows
    lambda peer: (first_of_10(peer, MESSAGE, state=("transactional-state", {"txn-id": b"none"})), rest(peer, MESSAGE)),
    lambda peer: (in_transaction(peer, "half"), lose(peer)),
    lambda peer: (in_transaction(peer, "whole"), lose(peer)),
    lambda peer: (in_transaction(peer, "half"), peer.give(performative("detach", 0, handle=0, closed=True))),
    lambda peer: (in_transaction(peer, "whole"), peer.give(performative("detach", 0, handle=9, closed=True))),
    lambda peer: in_transaction(peer, "rolled back"),
)


def test_contents_of_1_0():
    for number, ends in enumerate(ENDS_1_0):
        broker, before = new()
        peer = Peer10(broker)
        ends(peer)
        settled_down(broker)
        peer.collect()
        assert pools(broker) == before and broker.queues["q"].message_count() == 0, (number, pools(broker), before)
        if not peer.connection.closed and hasattr(peer.connection.session, "lead_octets"):
            assert peer.connection.session.lead_octets == 0, number
        if not peer.connection.closed:
            lose(peer)
            settled_down(broker)
        assert pools(broker) == before and not broker.connections, number
        assert broker.counters["internal_errors"] == 0, number


def half_0_9(**given):
    return content(1, given.pop("exchange", ""), given.pop("key", "q"), b"x" * SIZE, **given)[:-20]


CLOSE_CHANNEL = encoded("channel_close", 1, 200, "", 0, 0)

LONGER = frame.content_header(1, 10, b"\x00\x00") + frame.encode(frame.BODY, 1, b"x" * 11)  # than its header says

# Octets of a peer, the last of which leaves the content half or ends it.
ENDS_0_9_1 = (
    half_0_9(),
    half_0_9(frame_size_max=400) + CLOSE_CHANNEL[:5],
    content(1, "", "q", b"x" * SIZE, frame_size_max=400)[:-408] + CLOSE_CHANNEL,
    content(1, "", "q", b"x" * SIZE, frame_size_max=400)[:-408] + encoded("connection_close", 0, 200, "", 0, 0),
    content(1, "", "q", b"x" * SIZE, frame_size_max=400)[:-408] + encoded("basic_qos", 1, 0, 1, False),  # 505
    content(1, "", "q", b"x" * SIZE)[:-20] + b"\x00" * 20,  # no 0xCE
    content(1, "none", "q", b"x" * SIZE),  # 404
    encoded("tx_select", 1) + content(1, "", "q", b"x" * SIZE),
    encoded("tx_select", 1) + content(1, "", "q", b"x" * SIZE) + encoded("tx_rollback", 1),
    encoded("tx_select", 1) + content(1, "", "q", b"x" * SIZE) + CLOSE_CHANNEL,
    encoded("basic_publish", 1, 0, "", "q", False, False) + LONGER,
    content(1, "", "none", b"x" * SIZE),  # no queue
    content(1, "", "none", b"x" * SIZE, mandatory=True),
)


def test_contents_of_0_9_1():
    for number, octets in enumerate(ENDS_0_9_1):
        broker, before = new()
        peer = Peer091(broker)
        peer.give(octets)
        peer.take()
        assert broker.queues["q"].message_count() == 0, number
        lose(peer)
        settled_down(broker)
        assert pools(broker) == before and not broker.connections, (number, pools(broker), before)
        assert broker.counters["internal_errors"] == 0, number


def test_a_publish_that_is_cut_short_is_a_syntax_error():
    """Section 4.2.3: 502 for arguments that do not fit their frame, wherever they end."""
    whole = encoded("basic_publish", 1, 0, "amq.direct", "key", False, False)
    for size in range(12, len(whole) - 1):
        broker = new_broker()
        peer = Peer091(broker)
        peer.give(whole[:3] + (size - 8).to_bytes(4, "big") + whole[7 : size - 1] + b"\xce")
        told = [(name, arguments[0]) for name, _, arguments in peer.frames()]
        assert told == [("connection_close", 502)], (size, told)
        assert broker.counters["internal_errors"] == 0, size


def half_0_10(**given):
    return transfer(b"x" * SIZE, key=given.pop("key", "q"), **given)[:-30]


ENDS_0_10 = (
    lambda peer: peer.give(half_0_10()),
    lambda peer: peer.give(transfer(b"x" * SIZE, key="q")[: -(SIZE - 1024) - 12] + control("session_detach", name=b"unit")),
    lambda peer: peer.give(transfer(b"x" * SIZE, key="q")[: -(SIZE - 1024) - 12] + control("connection_close", reply_code=200)),
    lambda peer: peer.publish(b"x" * SIZE, "none"),
    lambda peer: peer.publish(b"x" * SIZE, "q", destination="none"),  # not-found
    lambda peer: (peer.do("tx_select"), peer.publish(b"x" * SIZE)),
    lambda peer: (peer.do("tx_select"), peer.publish(b"x" * SIZE), peer.do("tx_rollback")),
    lambda peer: (peer.do("tx_select"), peer.publish(b"x" * SIZE), peer.give(control("session_detach", name=b"unit"))),
)


def test_contents_of_0_10():
    for number, ends in enumerate(ENDS_0_10):
        broker, before = new()
        peer = Peer010(broker)
        ends(peer)
        peer.collect()
        assert broker.queues["q"].message_count() == 0, number
        lose(peer)
        settled_down(broker)
        assert pools(broker) == before and not broker.connections, (number, pools(broker), before)
        assert broker.counters["internal_errors"] == 0, number

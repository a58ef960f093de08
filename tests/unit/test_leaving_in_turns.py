"""Who leaves with thousands of unsettled deliveries is answered when these are back in their queue, each once and in its order: 0-10's
connection.close and session.detach, 1.0's end and close (section 2.7.8: the answer says that nothing is under way any more)."""

from peer import new_broker
from peer_0_10 import Peer as Peer010
from peer_0_10 import control
from peer_1_0 import Peer as Peer10
from peer_1_0 import declare, performative
from test_settling_in_turns import COUNT, ROOM, TURN

from leveret.core.memory import invariants


def holding(kind):
    """A broker with COUNT messages in queue q, and a peer of this kind that has all of them, unsettled."""
    broker = new_broker(**ROOM)
    declare(broker)
    source = Peer010(broker, name=b"source")
    for number in range(COUNT):
        source.publish(b"%d" % number)
    source.collect()
    if kind is Peer010:
        peer = Peer010(broker)
        peer.subscribe(messages=COUNT, accept=0)
        got = len([name for name, *_ in peer.all() if name == "message_transfer"])
    else:
        peer = Peer10(broker)
        peer.attach("in", 1, True, "/queues/q")
        peer.credit(COUNT, incoming_window=COUNT + 1)
        got = len(peer.messages())
    queue = broker.queues["q"]
    assert got == COUNT and (queue.message_count(), queue.unsettled_count()) == (0, COUNT)
    broker.tables.engine.effort = TURN
    broker.tables.begin_turn()
    return broker, peer, queue


def answer_of(peer):
    """The name of the next frame, or None."""
    peer.collect()
    if isinstance(peer, Peer010):
        found = peer.all()
    else:
        found = peer.frames()
    return [each[0] for each in found]


def test_the_answer_to_an_end_comes_when_every_delivery_is_back():
    for kind, octets, answer in (
        (Peer010, control("connection_close", reply_code=200, reply_text="bye"), "connection_close_ok"),
        (Peer010, control("session_detach", name=b"unit"), "session_detached"),
        (Peer10, performative("end"), "end"),
        (Peer10, performative("close"), "close"),
    ):
        broker, peer, queue = holding(kind)
        given_back = []
        view = peer.connection.writable()
        view[: len(octets)] = octets
        peer.connection.received(len(octets))
        for _ in range(200):
            broker.run()
            given_back.append(queue.message_count())
            invariants.check(broker.tables)
            came = answer_of(peer)
            if came:
                break
            broker.tick(broker.now + 60, 0)
        assert came == [answer], (answer, came)
        assert (queue.message_count(), queue.unsettled_count()) == (COUNT, 0), answer
        assert broker.counters["internal_errors"] == 0
        assert 0 < given_back[0] < COUNT, "in turns"
        other = Peer010(broker, name=b"other")
        other.subscribe(messages=COUNT, octets=0xFFFFFFFF)
        for _ in range(200):
            other.collect()
            if queue.message_count() == 0:
                break
            broker.tick(broker.now + 60, 0)
        bodies = [body for name, _, _, body, _ in other.all() if name == "message_transfer"]
        assert bodies == [b"%d" % number for number in range(COUNT)], answer

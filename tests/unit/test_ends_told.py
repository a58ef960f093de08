"""What an operator hears of connections, in every family: who has opened one, and of each end whose error it was, on whose connection, with
the condition that the peer got; each end for an error is counted once (core/SPEC.md, the counters)."""

from draft_peer import Peer9a5
from peer import Peer, encoded, new_broker
from peer_0_10 import Peer as Peer010
from peer_0_10 import command, control
from peer_1_0 import Peer as Peer10
from peer_1_0 import data, performative

from leveret.core.amqp_0_9.spec_0_9_1 import HEADER
from leveret.core.connection.connection import Connection

COUNTED = ("connection_errors", "channel_errors", "internal_errors")


def told_of(make, cause):
    """(counters that moved, [(text, is_fault)]) of what `cause(peer)` does to a peer that has opened a connection by `make(broker)`."""
    broker = new_broker()
    told: list = []
    broker.inform = lambda text, is_fault=False: told.append((text, is_fault))
    peer = make(broker)
    opened = list(told)
    del told[:]
    before = [broker.counters[name] for name in COUNTED]
    cause(peer)
    broker.run()
    moved = {name: broker.counters[name] - old for name, old in zip(COUNTED, before) if broker.counters[name] != old}
    return opened, moved, told


def peer_name(make):
    return "draft" if make is Peer9a5 else "unit"


def silent_for(peer, milliseconds):
    for _ in range(milliseconds // 100):
        peer.broker.tick(peer.broker.now + 100, 0)
        peer.connection.tick(peer.broker.now)
        peer.broker.run()


def beating(broker):
    """A 0-9-1 connection with heartbeats each second."""
    peer = Peer(broker, log_in=False)
    peer.give(HEADER)
    peer.expect("connection_start")
    peer.give(encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US"))
    peer.expect("connection_tune")
    peer.give(encoded("connection_tune_ok", 0, 0, 0, 1) + encoded("connection_open", 0, "/", "", False))
    return peer


def leave(peer, octets):
    """Close in good order, hear the answer, and hang up."""
    peer.give(octets)
    (peer.take if isinstance(peer, Peer) else peer.collect)()
    peer.connection.received(0)


# Family and how its connection is opened; what the peer does; the counter that moves; words of what is told.
ENDS = (
    (Peer, lambda peer: peer.give(encoded("queue_declare", 1, 0, "q", True, False, False, False, False, {})), "channel_errors", "404"),
    (Peer, lambda peer: peer.give(encoded("basic_ack", 1, 7, False)), "channel_errors", "406"),
    (Peer, lambda peer: peer.give(b"\x09\x00\x01\x00\x00\x00\x00\xce"), "connection_errors", "501"),
    (Peer, lambda peer: peer.give(b"\x01\x00\x01\x00\x00\x00\x04\xff\xff\xff\xff\xce"), "connection_errors", "503"),
    (Peer, lambda peer: peer.give(encoded("channel_open", 1, "")), "connection_errors", "504"),
    (Peer9a5, lambda peer: peer.give(peer.frame(99, 1, b"")), "connection_errors", "unknown type 99"),
    (beating, lambda peer: silent_for(peer, 3000), None, "two heartbeats were missed"),
    (Peer10, lambda peer: peer.give(b"\x00\x00\x00\x08\x02\x07\x00\x00"), "connection_errors", "amqp:connection:framing-error"),
    (Peer10, lambda peer: peer.give(performative("end", 7)), "connection_errors", "amqp:"),
    (
        Peer10,
        lambda peer: peer.give(performative("transfer", 0, data(b"x"), handle=5, delivery_id=0, delivery_tag=b"t")),
        "channel_errors",
        "session 0",
    ),
    (
        Peer10,
        lambda peer: peer.give(
            performative("attach", 0, name="of-nothing", handle=0, role=True, source=("source", {"address": "/queues/none"}))
        ),
        "channel_errors",
        "link 'of-nothing'",
    ),
    (Peer010, lambda peer: peer.do("message_subscribe", queue="none", destination="d"), "channel_errors", "not-found"),
    (Peer010, lambda peer: peer.give(control("connection_open", virtual_host="/")), "connection_errors", "frame-error"),
    (Peer010, lambda peer: peer.give(command("execution_exception", error_code=541, description="ours")), None, "exception 541: ours"),
)


def test_an_end_for_an_error_is_told_once_with_its_connection_and_counted_once():
    for make, cause, counter, words in ENDS:
        opened, moved, told = told_of(make, cause)
        faults = [text for text, is_fault in told if is_fault]
        name = peer_name(make)
        assert opened == [("%s: user 'guest' has opened a connection" % name, False)], (words, opened)
        assert moved == ({counter: 1} if counter else {}), (words, moved)
        assert len(faults) == 1 and faults[0].startswith(name + ": ") and words in faults[0], (words, told)
        if counter:
            assert "user 'guest'" in faults[0], faults


def test_an_end_in_good_order_is_no_error():
    for make, octets in (
        (Peer, encoded("connection_close", 0, 200, "bye", 0, 0)),
        (Peer10, performative("close")),
        (Peer010, control("connection_close", reply_code=200, reply_text="bye")),
    ):
        _, moved, told = told_of(make, lambda peer, octets=octets: leave(peer, octets))
        assert moved == {} and [is_fault for _, is_fault in told] == [False], (make, moved, told)
        assert told[0][0].startswith("unit: the connection of user 'guest' has ended"), told


def test_a_stranger_to_amqp_is_told_what_it_spoke():
    broker = new_broker()
    told: list = []
    broker.inform = lambda text, is_fault=False: told.append((text, is_fault))
    for octets in (b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01", b"MQTT4567"):
        stranger = Connection(broker, "stranger", True)
        view = stranger.writable()
        view[: len(octets)] = octets
        stranger.received(len(octets))
        broker.run()
        assert bytes(stranger.pending())[:4] == b"AMQP", "section 4.2.2 of 0-9-1: the header that would have been understood"
    assert len(told) == 3 and all(is_fault and text.startswith("stranger: ") for text, is_fault in told), told

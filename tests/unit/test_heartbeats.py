"""The broker's heartbeats (0-9-1 section 4.2.7): sent when nothing else goes, and a peer that sends nothing is ended."""

from peer import Peer, encoded, new_broker

from leveret.core.amqp_0_9.spec_0_9_1 import HEADER

SECOND = 1000


def beating(heartbeat_s):
    """(broker, what it has been told, a peer that asked for a heartbeat each `heartbeat_s`); the clock stands at 0."""
    broker = new_broker()
    told = []
    broker.inform = lambda text, *given: told.append(text)
    broker.tick(0, 0)
    peer = Peer(broker, log_in=False)
    peer.give(HEADER)
    peer.expect("connection_start")
    peer.give(encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US"))
    peer.expect("connection_tune")
    peer.give(encoded("connection_tune_ok", 0, 0, 0, heartbeat_s) + encoded("connection_open", 0, "/", "", False))
    peer.expect("connection_open_ok")
    told.clear()
    return broker, told, peer


def at(broker, peer, now):
    """The names of what the broker sends at `now` ms."""
    broker.tick(now, now // SECOND)
    peer.connection.tick(now)
    return [found[0] for found in peer.frames()]


def test_a_heartbeat_is_sent_after_each_half_of_the_interval_in_which_nothing_went():
    broker, _, peer = beating(10)
    sent = [now for now in range(0, 20 * SECOND, 500) if at(broker, peer, now) == ["heartbeat"]]
    assert sent == [5000, 10000, 15000], sent
    peer.ask("channel_open", "channel_open_ok", "")
    assert [at(broker, peer, now) for now in (20000, 24000, 24499, 24500)] == [[], [], [], ["heartbeat"]]


def test_a_peer_that_sends_nothing_for_two_intervals_is_ended_and_that_is_told():
    broker, told, peer = beating(10)
    at(broker, peer, 20000)
    assert not peer.connection.closed and told == []
    at(broker, peer, 20001)
    assert peer.connection.closed
    assert told and told[0].endswith("nothing came for 20001 ms, two heartbeats were missed"), told


def test_a_peer_that_wants_no_heartbeats_gets_none_and_may_be_silent():
    broker, told, peer = beating(0)
    assert [at(broker, peer, now) for now in range(0, 1000 * SECOND, 50 * SECOND)] == [[]] * 20
    assert not peer.connection.closed and told == []

"""How many connections and channels a user may have at a time, in every protocol: core/access/user_limits.py, RabbitMQ's user limits."""

import peer_0_10
import peer_1_0
from memory_store import MemoryStore, durable_broker
from peer import HEADER, Peer, encoded, new_broker
from test_users_logged import import_user, restarted

from leveret.core.access import user_limits
from leveret.core.management import rabbitmq_definitions

MOST = {"max-connections": 2, "max-channels": 3}
NO_CONNECTION = "connection refused for user 'guest': user connection limit (2) is reached"
NO_CHANNEL = "number of channels opened for user 'guest' has reached the maximum allowed user limit of (3)"


def limited(broker, **limits):
    """The broker, whose guest has these limits."""
    user_limits.put(broker, broker.access.users["guest"], limits or MOST)
    return broker


def refusal(broker):
    """What a connection of 0-9-1 hears to its connection.open."""
    peer = Peer(broker, log_in=False)
    peer.give(HEADER)
    peer.expect("connection_start")
    peer.give(encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US"))
    peer.expect("connection_tune")
    peer.give(encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, "/", "", False))
    return peer.expect("connection_close")[:2]


def test_connections_of_all_protocols_count_together():
    broker = limited(new_broker())
    one = Peer(broker)
    other = peer_1_0.Peer(broker)
    assert refusal(broker) == [530, "NOT_ALLOWED - " + NO_CONNECTION]
    third = peer_1_0.Peer(broker, opens=False)
    third.log_in()
    third.give(peer_1_0.performative("open", container_id="third"))
    third.expect("open")
    error = third.expect("close")[1]["error"]
    assert error["condition"] == "amqp:not-allowed" and NO_CONNECTION in error["description"], error
    third.connection.finish()
    third = peer_0_10.Peer(broker, opens=False)
    third.log_in()
    third.give(peer_0_10.control("connection_tune_ok", channel_max=8, max_frame_size=1024, heartbeat=0))
    third.give(peer_0_10.control("connection_open", virtual_host="/"))
    assert NO_CONNECTION in third.expect("connection_close")["reply_text"]
    for each in (third, other):
        each.connection.finish()
    Peer(broker)
    one.connection.finish()
    peer_0_10.Peer(broker)


def test_channels_and_sessions_count_together():
    broker = limited(new_broker())
    peer = Peer(broker)
    other = peer_1_0.Peer(broker)
    other.begin(1)
    peer.give(encoded("channel_open", 2, ""))
    assert peer.expect("connection_close")[:2] == [530, "NOT_ALLOWED - " + NO_CHANNEL]
    peer.connection.finish()
    again = Peer(broker)
    again.give(encoded("channel_close", 1, 0, "", 0, 0))
    again.expect("channel_close_ok")
    other.begin(2)
    other.give(peer_1_0.performative("begin", 3, next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    error = other.expect("close")[1]["error"]
    assert error["condition"] == "amqp:not-allowed" and NO_CHANNEL in error["description"], error


def test_a_session_of_0_10_too():
    broker = limited(new_broker(), **{"max-channels": 0})
    peer = peer_0_10.Peer(broker, attaches=False)
    peer.give(peer_0_10.control("session_attach", 0, name=b"s"))
    assert NO_CHANNEL.replace("(3)", "(0)") in peer.expect("connection_close")["reply_text"]


def test_limits_survive_a_restart_and_go_with_definitions():
    broker, _ = durable_broker(MemoryStore())
    import_user(broker)
    user = broker.access.users["sensor"]
    user_limits.put(broker, user, MOST)
    user_limits.put(broker, user, {"max-connections": 5, "max-channels": -1})
    again = restarted(broker)
    assert again.access.users["sensor"].limits == {"max-connections": 5}
    again.journal.snapshot()
    assert restarted(again).access.users["sensor"].limits == {"max-connections": 5}
    item = rabbitmq_definitions.a_user(user)
    assert item["limits"] == {"max-connections": 5}
    other = new_broker()
    assert rabbitmq_definitions.load(other, "users", item) == (True, "")
    assert other.access.users["sensor"].limits == {"max-connections": 5}
    told = rabbitmq_definitions.load(other, "users", dict(item, limits={"max-queues": 1}))
    assert told == (False, "user 'sensor' left out: Unrecognised terms [{<<\"max-queues\">>,1}] in user-limits")
    user_limits.put(broker, user, {})
    assert restarted(broker).access.users["sensor"].limits is None


def test_what_is_no_limit_is_refused_and_a_log_that_fails_changes_nothing():
    broker = new_broker()
    user = broker.access.users["guest"]
    for limits in ({"max-queues": 1}, {"max-channels": "1"}, {"max-channels": True}, {"max-channels": 1.5}, {"max-channels": 1 << 63}):
        try:
            user_limits.put(broker, user, limits)
        except ValueError as error:
            assert "Unrecognised terms" in str(error) or "should be a number" in str(error)
        else:
            raise AssertionError(limits)
    assert user.limits is None and user.predeclared

    class Broken:
        def define(self, definition):
            raise OSError("the disk is away")

    broker.journal = Broken()
    try:
        user_limits.put(broker, user, MOST)
    except OSError:
        pass
    assert user.limits is None and user.predeclared

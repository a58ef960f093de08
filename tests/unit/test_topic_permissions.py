"""Topic permissions: what a user may publish and bind by the routing key, in every protocol (core/access/topic_permissions.py)."""

import peer_0_10
import peer_1_0
from memory_store import MemoryStore, durable_broker
from peer import Peer, new_broker
from test_users_logged import restarted

from leveret.core.access import topic_permissions
from leveret.core.management import rabbitmq_definitions

WORDS = "access to topic '%s' in exchange 'amq.topic' in vhost '/' refused for user 'guest'"


def guarded(write="^a", read="^b", exchange="amq.topic", broker=None):
    """A broker whose guest has these."""
    broker = broker or new_broker()
    topic_permissions.put(broker, broker.access.users["guest"], exchange, (write, read))
    return broker


def publishes(broker, key, exchange="amq.topic", headers=None):
    """(code, text) of the close that a publish of 0-9-1 brings, or None."""
    peer = Peer(broker)
    peer.publish(key, b"x", exchange, {"headers": headers or {}})
    told = peer.frames()
    peer.connection.finish()
    return tuple(told[0][2][:2]) if told else None


def test_a_publish_is_permitted_by_its_key_each_time():
    """Also where the route is in the cache of the hot path, and through another exchange it is not asked."""
    broker = guarded()
    for _ in range(3):
        assert publishes(broker, "a.x") is None
        assert publishes(broker, "x.a") == (403, "ACCESS_REFUSED - " + WORDS % "x.a")
        assert publishes(broker, "x.a", "amq.direct") is None
    assert broker.counters["access_refused"] == 3


def test_what_was_cached_before_is_asked_for_from_the_change_on():
    broker = new_broker()
    user = broker.access.users["guest"]
    peer = Peer(broker)
    for _ in range(3):
        peer.publish("x", b"x", "amq.topic")
    assert peer.frames() == []
    guarded(broker=broker)
    peer.publish("x", b"x", "amq.topic")
    assert peer.expect("channel_close")[0] == 403
    topic_permissions.clear(broker, user)
    assert user.topics is None and publishes(broker, "x") is None


def test_keys_of_cc_and_bcc_are_asked_too():
    broker = guarded()
    for header in ("CC", "BCC"):
        assert publishes(broker, "a", headers={header: ["a.b"]}) is None
        assert publishes(broker, "a", headers={header: ["a.b", "c"]}) == (403, "ACCESS_REFUSED - " + WORDS % "c")


def test_the_key_of_a_binding_is_read():
    broker = guarded()
    for key, code in (("b.x", None), ("x.b", 403)):
        for method in ("queue_bind", "queue_unbind"):
            peer = Peer(broker)
            peer.declare("q")
            arguments = (0, "q", "amq.topic", key) + ((False, {}) if method == "queue_bind" else ({},))
            if code:
                assert peer.ask(method, "channel_close", *arguments)[:2] == [403, "ACCESS_REFUSED - " + WORDS % key]
            else:
                peer.ask(method, method + "_ok", *arguments)
            peer.connection.finish()


def test_amqp_0_10_asks_too():
    broker = guarded()
    peer = peer_0_10.Peer(broker)
    peer.do("queue_declare", queue="q")
    peer.do("exchange_bind", queue="q", exchange="amq.topic", binding_key="b")
    peer.publish(b"x", key="a", destination="amq.topic")
    peer.all()
    peer.publish(b"x", key="x", destination="amq.topic")
    (refused,) = [fields for name, fields, _, _, _ in peer.all() if name == "execution_exception"]
    assert refused["error_code"] == 403 and WORDS % "x" in refused["description"]
    peer = peer_0_10.Peer(broker, name=b"other")
    peer.do("exchange_bind", queue="q", exchange="amq.topic", binding_key="x")
    (refused,) = [fields for name, fields, _, _, _ in peer.all() if name == "execution_exception"]
    assert refused["error_code"] == 403 and WORDS % "x" in refused["description"]


def test_amqp_1_0_asks_too():
    """Messages to a key of a link's address, and to that of each message; the key of a subscription's binding."""
    broker = guarded()
    for address, permitted in (("/exchanges/amq.topic/a", True), ("/exchanges/amq.topic/x", False)):
        peer = peer_1_0.Peer(broker)
        peer.sender(address)
        peer.send(0, b"x")
        told = repr(peer.frames())
        assert (WORDS % "x" in told) is not permitted, (address, told)
        peer.connection.finish()
    for key, permitted in (("b.c", True), ("c", False)):
        peer = peer_1_0.Peer(broker)
        peer.give(
            peer_1_0.performative(
                "attach",
                0,
                name="in",
                handle=1,
                role=True,
                source=("source", {"address": "/topic/" + key}),
                target=("target", {}),
            )
        )
        told = repr(peer.frames())
        assert (WORDS % key in told) is not permitted, (key, told)
        peer.connection.finish()


def test_names_in_an_expression_and_the_empty_one():
    broker = guarded("^{username}$|^{vhost}$", "")
    for key, permitted in (("guest", True), ("/", True), ("{username}", False), ("", False)):
        assert (publishes(broker, key) is None) is permitted, key
    guarded("", "", broker=broker)
    assert publishes(broker, "") is None and publishes(broker, "a") is not None


def test_what_is_no_expression_is_refused_and_changes_nothing():
    broker = guarded()
    user = broker.access.users["guest"]
    rows = user.topics.rows
    for given in (("(", ""), ("", "["), ("a" * 256, "")):
        try:
            topic_permissions.put(broker, user, "amq.topic", given)
            raise AssertionError(given)
        except ValueError as error:
            assert "topic permission" in str(error)
        assert user.topics.rows is rows
    for number in range(topic_permissions.EXCHANGES_MAX - 1):
        topic_permissions.put(broker, user, "e%d" % number, ("", ""))
    try:
        topic_permissions.put(broker, user, "another", ("", ""))
        raise AssertionError("too many")
    except ValueError as error:
        assert "64 exchanges" in str(error)
    topic_permissions.put(broker, user, "e1", ("a", "a"))


def test_they_come_back_from_the_log_and_by_definitions():
    broker, _ = durable_broker(MemoryStore())
    guarded(broker=broker)
    guarded("x", "y", "other", broker)
    again = restarted(broker)
    assert again.access.users["guest"].topics.rows == {"amq.topic": ("^a", "^b"), "other": ("x", "y")}
    assert publishes(again, "x") is not None
    rows = rabbitmq_definitions.topic_rows("/", again.access.users["guest"])
    assert rows[0] == {"user": "guest", "vhost": "/", "exchange": "amq.topic", "write": "^a", "read": "^b"}
    topic_permissions.clear(again, again.access.users["guest"])
    last = restarted(again)
    assert last.access.users["guest"].topics is None
    for row in rows:
        assert rabbitmq_definitions.load(last, "topic_permissions", row) == (True, "")
    assert last.access.users["guest"].topics.rows == {"amq.topic": ("^a", "^b"), "other": ("x", "y")}
    loaded, told = rabbitmq_definitions.load(last, "topic_permissions", dict(rows[0], user="nobody"))
    assert not loaded and told == "topic permissions of user 'nobody' for exchange 'amq.topic' left out: there is no such user"

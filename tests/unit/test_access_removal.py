"""A user who is removed has nothing more: its connections end with RabbitMQ's words, what they held goes back (core/SPEC.md, "Access").

Measured beside RabbitMQ 3.10: delete_user closes the user's connections, change_password and clear_permissions leave them as they are.
"""

from peer import Peer, content, encoded, idle
from test_access_permissions import Named, new_broker, user

from leveret.core.access import passwords, users
from leveret.core.access.permissions import EVERYTHING, User
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER

GOODBYE = [320, "CONNECTION_FORCED - user 'sensor' is deleted", 0, 0]


def broker_with_sensor():
    """root, an administrator, and sensor; both may do everything."""
    return new_broker(user("root", EVERYTHING, ("administrator",)), user("sensor", EVERYTHING))


def ended(peer, before=()):
    """True when GOODBYE is all that came behind methods of these names. It is answered, and that ends the stream."""
    frames = peer.frames()
    peer.give(encoded("connection_close_ok", 0))
    names = [name for name, _, _ in frames]
    return names == list(before) + ["connection_close"] and list(frames[-1][2]) == GOODBYE and peer.connection.closed


def test_a_consumer_of_a_removed_user_gets_nothing_more_and_what_it_had_goes_back():
    broker = broker_with_sensor()
    empty = idle(broker)
    root, sensor = Named(broker, "root"), Named(broker, "sensor")
    root.declare("q")
    sensor.consume("q")
    root.publish("q", b"before")
    assert [each[3] for each in sensor.contents()] == [b"before"]
    users.remove(broker, "sensor")
    root.publish("q", b"behind")
    assert ended(sensor)
    assert [each[3] for each in root.consume("q", "r", no_ack=True)] == [b"before", b"behind"]
    root.connection.finish()
    broker.topology.drop_queue(broker.queues["q"])
    assert idle(broker) == empty, "what the removed user's connection held is free"


def test_what_a_removed_user_sends_behind_the_removal_has_no_effect():
    """Also a publish whose way was known to the fast path, before the broker had time to end the connection."""
    broker = broker_with_sensor()
    sensor = Named(broker, "sensor")
    sensor.declare("q")
    for _ in range(3):
        sensor.publish("q", b"x")
    users.remove(broker, "sensor")
    view = sensor.connection.writable()
    octets = content(1, "", "q", b"late")
    view[: len(octets)][:] = octets
    sensor.connection.received(len(octets))
    broker.run()
    assert broker.queues["q"].message_count() == 3
    assert ended(sensor, ["channel_close"])


def test_whose_management_request_removes_itself_is_ended_too():
    """core/management/requests.py: remove-user. The request is carried out, and its own connection closed behind it."""
    broker = broker_with_sensor()
    broker.access.users["sensor"].tags = ("administrator",)
    sensor = Named(broker, "sensor")
    sensor.consume("amq.rabbitmq.reply-to", no_ack=True)
    sensor.publish("amq.leveret.management", b'{"request": "remove-user", "name": "sensor"}', given={"reply_to": "amq.rabbitmq.reply-to"})
    assert "sensor" not in broker.access.users
    assert ended(sensor)
    assert broker.counters["internal_errors"] == 0


def test_several_users_are_removed_at_once_and_who_logs_in_does_not_delay_it():
    broker = new_broker(
        *[user(name, EVERYTHING) for name in ("a", "b", "c")], User("slow", passwords.hashed("slow", b"salt", 100), (), EVERYTHING)
    )
    peers = [Named(broker, name) for name in ("a", "b", "c")]
    waiting = Peer(broker, log_in=False)
    waiting.give(HEADER)
    view = waiting.connection.writable()
    octets = encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00slow\x00slow", "en_US")
    view[: len(octets)][:] = octets
    waiting.connection.received(len(octets))
    assert len(broker.jobs) == 1, "a password is being calculated"
    users.remove(broker, "a")
    users.remove(broker, "b")
    broker.run()
    assert [[name for name, _, _ in peer.frames()] for peer in peers] == [["connection_close"], ["connection_close"], []]


def test_a_user_removed_while_its_password_is_calculated_does_not_get_in():
    broker = new_broker(User("slow", passwords.hashed("slow", b"salt", 100), (), EVERYTHING))
    broker.lines = []
    broker.log = broker.lines.append
    waiting = Peer(broker, log_in=False)
    waiting.give(HEADER)
    waiting.expect("connection_start")
    view = waiting.connection.writable()
    octets = encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00slow\x00slow", "en_US")
    view[: len(octets)][:] = octets
    waiting.connection.received(len(octets))
    assert broker.jobs, "a password is being calculated"
    users.remove(broker, "slow")
    while broker.jobs:
        broker.run()
    assert waiting.frames() == [] and waiting.connection.user is None and broker.counters["logins_refused"] == 1
    assert broker.lines[-1].endswith("the user was removed meanwhile")


def test_a_user_removed_between_its_log_in_and_connection_open_has_only_the_end():
    """Section 4.3: a peer that is not through the beginning gets no method there."""
    broker = broker_with_sensor()
    sensor = Named(broker, "sensor", opened=False)
    users.remove(broker, "sensor")
    broker.run()
    assert sensor.frames() == [] and sensor.connection.closed


def test_who_is_made_anew_under_the_name_has_nothing_of_the_removed_one():
    broker = broker_with_sensor()
    before = Named(broker, "sensor")
    users.remove(broker, "sensor")
    users.put(broker, user("sensor", EVERYTHING))
    users.permit(broker, broker.access.users["sensor"], EVERYTHING)
    after = Named(broker, "sensor")
    assert ended(before) and not after.connection.closed
    after.declare("q")


def test_a_changed_password_leaves_connections_and_taken_permissions_hold_for_what_they_ask_next():
    """As RabbitMQ: a consumer that is there goes on without the read permission, a publish is refused at once though its way was known."""
    broker = broker_with_sensor()
    root, sensor = Named(broker, "root"), Named(broker, "sensor")
    root.declare("q")
    sensor.consume("q", no_ack=True)
    for _ in range(3):
        sensor.publish("q", b"x")
    users.put(broker, user("sensor", None))
    users.permit(broker, broker.access.users["sensor"], ("", "", ""))
    root.publish("q", b"y")
    assert [each[3] for each in sensor.contents()] == [b"x", b"x", b"x", b"y"]
    assert "refused for user 'sensor'" in sensor.refused(content(1, "", "q", b"z"))
    assert broker.queues["q"].message_count() == 0 and not sensor.connection.closed


def test_an_error_of_ours_at_one_of_its_connections_keeps_none_of_them():
    broker = broker_with_sensor()
    peers = [Named(broker, "sensor") for _ in range(3)]

    def broken(text):
        raise KeyError("made by the test")

    peers[1].connection.session.shut = broken
    peers[1].consume("amq.rabbitmq.reply-to", no_ack=True)
    users.remove(broker, "sensor")
    broker.run()
    assert ended(peers[0]) and ended(peers[2])
    assert [name for name, _, _ in peers[1].frames()] == ["connection_close"] and not peers[1].connection.session.channels
    assert broker.counters["internal_errors"] == 1

"""A user that is removed while it is connected: its connections are closed in the same words by Leveret and by RabbitMQ."""

import base64
import hashlib

import pika
import pika.exceptions
import pytest
from conftest import KIND

from leveret.tools.manage import Manager


def make_user(broker, name):
    """A user with all rights whose password is its name."""
    if KIND == "rabbitmq":
        broker.control("add_user", name, name)
        broker.control("set_permissions", name, ".*", ".*", ".*")
        return
    stored = base64.b64encode(b"salt" + hashlib.sha256(b"salt" + name.encode()).digest()).decode()
    user = {"name": name, "password_hash": stored, "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}
    with Manager(broker.url) as manager:
        answer = manager.ask(
            "import",
            definitions={"users": [user], "permissions": [{"user": name, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}]},
        )
    assert answer["left_out"] == [], answer


def remove_user(broker, name):
    if KIND == "rabbitmq":
        broker.control("delete_user", name)
    else:
        with Manager(broker.url) as manager:
            manager.ask("remove-user", name=name)


def test_the_connections_of_a_removed_user_are_closed_in_rabbitmqs_words_and_it_does_not_get_in_again(broker, name, raw):
    user = name[-40:]
    make_user(broker, user)
    parameters = pika.ConnectionParameters(broker.host, broker.port, credentials=pika.PlainCredentials(user, user), heartbeat=0)
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    raw.declare_queue(name)
    bodies = []
    channel.basic_consume(name, lambda *given: bodies.append(given[3]), auto_ack=True)
    raw.publish("", name, b"before")
    while not bodies:
        connection.process_data_events(1)
    remove_user(broker, user)
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as error:
        for _ in range(60):
            connection.process_data_events(1)
    assert (error.value.reply_code, error.value.reply_text) == (320, "CONNECTION_FORCED - user '%s' is deleted" % user)
    raw.publish("", name, b"behind")
    assert bodies == [b"before"]
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        pika.BlockingConnection(parameters)
    raw.call("queue.delete-ok", 1, "queue.delete", queue=name, if_unused=False, if_empty=False, no_wait=False, reserved_1=0)

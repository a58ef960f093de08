"""Brokers with users: the same ones for Leveret and RabbitMQ, each with its rights, and connections of them."""

import base64
import contextlib
import hashlib
import json
import os

import pika
import pika.exceptions
from broker_process import BrokerProcess
from conftest import KIND

RIGHTS = {"root": (".*", ".*", ".*"), "limited": ("^c", "^(w|amq\\.default)", "^r"), "mute": ("", "", ""), "outsider": None}


def rabbit_hash(password):
    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def toml(users, more=""):
    """Leveret's configuration with these users: {name: (password hash or None, permissions or None)}."""
    text = more
    for name, (stored, rights) in users.items():
        text += "\n[[user]]\nname = %s\n" % json.dumps(name)
        if stored is not None:
            text += "password_hash = %s\n" % json.dumps(stored)
        if rights is not None:
            text += "".join("%s = %s\n" % (key, json.dumps(value)) for key, value in zip(("configure", "write", "read"), rights))
    return text


def definitions(users):
    """The same for RabbitMQ."""
    return {
        "vhosts": [{"name": "/"}],
        "users": [
            {"name": name, "password_hash": stored or "", "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}
            for name, (stored, _) in users.items()
        ],
        "permissions": [
            {"user": name, "vhost": "/", "configure": rights[0], "write": rights[1], "read": rights[2]}
            for name, (_, rights) in users.items()
            if rights is not None
        ],
    }


@contextlib.contextmanager
def started(directory, users, more="", arguments=(), configuration="", plugins=""):
    """A broker of the kind under test, with users. It must end well and write no traceback."""
    path = directory / "leveret.toml"
    path.write_text(toml(users, more))
    listed = directory / "definitions.json"
    listed.write_text(json.dumps(definitions(users)))
    process = BrokerProcess(
        KIND,
        arguments=("--config", str(path), *arguments),
        configuration="load_definitions = %s\n%s" % (listed, configuration),
        plugins=plugins,
    )
    try:
        yield process
        assert process.alive(), process.error_text()
        assert "Traceback" not in process.error_text(), process.error_text()
    finally:
        process.stop()


def parameters(process, user, password=None, **more):
    return pika.ConnectionParameters(
        process.host,
        process.port,
        credentials=pika.PlainCredentials(user, password or user),
        heartbeat=0,
        socket_timeout=60,
        blocked_connection_timeout=60,
        **more,
    )


@contextlib.contextmanager
def connected(process, user, **more):
    connection = pika.BlockingConnection(parameters(process, user, **more))
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


# Permissions

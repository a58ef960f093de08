"""The clients under test as programs: each runs its scenarios against one broker and prints `ok NAME` or `failed NAME: why` for each.

What is not served yet, or by a peer never, stands in expected.toml with its reason: a table for each kind of broker, "client.scenario".
"""

import json
import os
import re
import subprocess
import tomllib

import brought
import peers
import pika

from leveret.tools import components

CLIENTS = os.path.join(brought.HERE, "clients")
RUN_S_MAX = 120


class Program:
    """One client: the file that has its scenarios, `command()` that runs them, and the components it `needs`.
    `only`: the kinds of brokers that it can be run against, none: all; `streams`: of each scenario, what is behind its name."""

    def __init__(self, file, command, needs=(), only=(), streams=()):
        self.file = os.path.join(brought.HERE, file)
        self.command = command
        self.needs = needs
        self.only = only
        self.streams = streams

    def scenarios(self):
        """Names of its scenarios, in the order of its file."""
        with open(self.file, encoding="utf-8") as file:
            return re.findall(r"\bscenario_(\w+)\([\w ]*\)\s?(?::|\{|throws)", file.read())


def _python(name, only=(), streams=()):
    return Program(os.path.join("clients", name), lambda: [brought.python(), os.path.join(CLIENTS, name)], only=only, streams=streams)


def _rhea():
    """node looks for packages beside a program and above it: the program goes to where rhea is."""
    return ["node", brought.node_program(os.path.join(CLIENTS, "rhea_client.js"))]


def _old_jms(version):
    """Qpid's JMS client 6.4, which speaks the versions before 1.0."""
    return Program(
        os.path.join("java", "Jms010Client.java"),
        lambda: brought.java("Jms010Client", flags=(*brought.BRIEF, "-Dqpid.amqp.version=" + version)),
        (components.JDK, components.MAVEN),
        ("leveret", "broker-j"),
    )


PROGRAMS = {
    "jms": Program(os.path.join("java", "JmsClient.java"), lambda: brought.java("JmsClient"), (components.JDK, components.MAVEN)),
    "jms-0-10": _old_jms("0-10"),
    "jms-0-9": _old_jms("0-9"),
    "jms-0-8": _old_jms("0-8"),
    "rhea": Program(os.path.join("clients", "rhea_client.js"), _rhea, (components.NODE,)),
    "proton": _python("proton_python.py"),
    "proton-reactive": _python("proton_reactive.py"),
    "proton-cpp": Program(os.path.join("cpp", "proton_client.cpp"), brought.proton_cpp, (components.PROTON_CPP,)),
    "azure-servicebus": _python("azure_stack.py"),
    "azure-eventhub": _python("azure_eventhub_client.py", ("leveret",), ("-0", "-1")),
    "php-0-8": Program(
        os.path.join("clients", "php_amqplib.php"),
        lambda: ["php", os.path.join(CLIENTS, "php_amqplib.php")],
        (components.PHP_AMQPLIB,),
        ("leveret",),
    ),
    "rabbitmq-client": _python("rabbitmq_python.py", ("leveret",)),
}


def all_expected():
    """{kind of broker: {"client.scenario": reason}} of what does not pass."""
    with open(os.path.join(brought.HERE, "expected.toml"), "rb") as file:
        return tomllib.load(file)


def expected(kind):
    """The part of it for one kind."""
    return all_expected().get(kind, {})


def start(client, broker, scenarios=()):
    """The running program of a client."""
    kind = peers.PEERS[broker.kind]
    told = {"client": client, "kind": broker.kind, "host": broker.host, "port": broker.port, "user": "guest", "password": "guest"}
    told.update({"queue": kind.queue, "topic": kind.topic, "subscription": kind.subscription, "jms_topic": kind.jms_topic})
    command = [*PROGRAMS[client].command(), json.dumps(told), *scenarios]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")


def outcomes(client, process):
    """{scenario: "" or why it failed} of a program, when it has ended."""
    try:
        told, errors = process.communicate(timeout=RUN_S_MAX)
        end = "exit status %d" % process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        told, errors = process.communicate()
        end = "it was ended after %d s" % RUN_S_MAX
    done = dict.fromkeys(PROGRAMS[client].scenarios(), "it did not run (%s):\n%s" % (end, errors[-2000:]))
    for name in re.findall(r"^ok (\w+)$", told, re.MULTILINE):
        done[name] = ""
    for name, why in re.findall(r"^failed (\w+): (.*)$", told, re.MULTILINE):
        done[name] = why
    return done


def declare_queues(broker, clients):
    """Make the queues of these clients' scenarios, by 0-9-1: Leveret makes none on use. The peers do."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        for client in clients:
            for scenario in PROGRAMS[client].scenarios():
                for end in ("", ".other"):
                    channel.queue_declare("%s.%s%s" % (client, scenario, end))
                for end in PROGRAMS[client].streams:
                    name = "%s.%s%s" % (client, scenario, end)
                    channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})


def missing(client):
    """The first component that a client needs and that is not here, or None."""
    return next((component for component in PROGRAMS[client].needs if not component.present()), None)

"""Definitions both ways between a real RabbitMQ (rabbitmqctl export_definitions, import_definitions) and `leveret definitions`.

What RabbitMQ 3.10 exports is loaded whole, but for what is named with its reason; what Leveret exports, RabbitMQ takes.
"""

import base64
import json
import subprocess
import sys

import pika
import pytest
from broker_process import BrokerProcess, rabbitmq_installed

KINDS = ("direct", "fanout", "topic", "headers", "x-consistent-hash")

QUEUES = {
    "plain": {},
    "args": {
        "x-message-ttl": 60000,
        "x-max-length": 10,
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "e.fanout",
        "x-dead-letter-routing-key": "dead",
        "x-max-priority": 5,
        "x-expires": 3600000,
        "x-max-length-bytes": 100000,
    },
    "single": {"x-single-active-consumer": True, "x-overflow": "drop-head", "note": "kept"},
    "stream": {"x-queue-type": "stream", "x-max-length-bytes": 1000000, "x-max-age": "7D"},
    "lazy": {"x-ha-policy": "all"},
    "quorum": {"x-queue-type": "quorum"},
}
SLOW = "pbkdf2-sha256$1$c2FsdA==$" + base64.b64encode(bytes(32)).decode()


@pytest.fixture(scope="module")
def rabbit():
    if not rabbitmq_installed():
        pytest.skip("rabbitmq-server is not installed: apt install rabbitmq-server")
    process = BrokerProcess("rabbitmq", plugins="rabbitmq_consistent_hash_exchange")
    furnish(process)
    yield process
    process.stop()


@pytest.fixture
def leveret(broker, tmp_path):
    """A broker of its own for each test, one that keeps what is durable: definitions stay."""
    if broker.kind != "leveret":
        pytest.skip("`leveret definitions` speaks to Leveret")
    process = BrokerProcess("leveret", arguments=("--data", str(tmp_path / "data")))
    yield process
    assert process.stop() == 0


def command(*arguments):
    """(standard output, standard error) of a `leveret` command that succeeds."""
    done = subprocess.run([sys.executable, "-m", "leveret.tools.cli", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Traceback" not in done.stderr, (done.stdout, done.stderr)
    return done.stdout, done.stderr


def channel_of(process, user="guest", password="guest"):
    parameters = pika.ConnectionParameters(process.host, process.port, credentials=pika.PlainCredentials(user, password))
    return pika.BlockingConnection(parameters).channel()


def furnish(rabbit):
    """One of everything that RabbitMQ's definitions can hold."""
    channel = channel_of(rabbit)
    for kind in KINDS:
        channel.exchange_declare("e." + kind, kind, durable=True)
    channel.exchange_declare("transient", "fanout", auto_delete=True, arguments={"alternate-exchange": "e.fanout"})
    for name, arguments in QUEUES.items():
        channel.queue_declare(name, durable=True, arguments=arguments)
    channel.queue_declare("not durable", auto_delete=True)
    channel.queue_declare("exclusive", exclusive=True)
    channel.queue_bind("plain", "e.topic", "a.#.ü")
    channel.queue_bind("plain", "e.headers", "", {"x-match": "any", "k": 1, "w": "v"})
    channel.queue_bind("plain", "e.x-consistent-hash", "3")
    channel.queue_bind("stream", "amq.topic", "#")
    channel.queue_bind("lazy", "e.direct", "l")
    channel.exchange_bind("e.fanout", "e.topic", "x.*")
    channel.connection.close()  # on a busy machine what follows takes longer than two heartbeats
    for arguments in (
        ("add_user", "sensor", "secret"),
        ("set_user_tags", "sensor", "monitoring", "policymaker"),
        ("set_permissions", "sensor", "^sensor", "^e\\.", "a{2}"),
        ("add_user", "nothing", "x"),
        ("add_vhost", "other"),
        ("set_permissions", "-p", "other", "sensor", ".*", ".*", ".*"),
        ("set_policy", "ttl", "^p", '{"message-ttl":1000,"ha-mode":"all"}', "--priority", "3", "--apply-to", "queues"),
        ("set_policy", "ha", "^h", '{"ha-mode":"all"}'),
        ("set_policy", "-p", "other", "o", "^e", '{"max-length":5}'),
        ("set_policy", "ae", "^e", '{"alternate-exchange":"amq.fanout"}', "--apply-to", "exchanges"),
        ("set_topic_permissions", "sensor", "amq.topic", "^a", "^b"),
        ("set_global_parameter", "g", '{"a":1}'),
        ("set_vhost_limits", "-p", "/", '{"max-connections":100}'),
    ):
        rabbit.control(*arguments)


def of_vhost(document, section):
    """A section's items of virtual host "/", in a form that can be compared: without what RabbitMQ adds or leaves out."""
    found = []
    for item in document[section]:
        if item.get("vhost", "/") == "/":
            found.append(
                {key: item[key] for key in item if key not in ("limits", "internal", "type") or section == "exchanges" and key == "type"}
            )
    return sorted(found, key=lambda item: json.dumps(item, sort_keys=True))


def test_the_definitions_of_another_virtual_host_are_taken_when_it_is_chosen(rabbit, leveret, tmp_path):
    theirs = str(tmp_path / "rabbit.json")
    rabbit.control("export_definitions", theirs)
    output, told = command("definitions", "import", "--to", leveret.url, "--vhost", "other", theirs)
    assert output == "loaded 3 users, 1 permissions, 1 policies, 1 global parameters, 0 exchanges, 0 queues, 0 bindings\n"
    assert "vhosts: 1 left out ('/'): this broker has one virtual host, and 'other' was chosen (--vhost)" in told
    ours = json.loads(command("definitions", "export", "--from", leveret.url, "-")[0])
    (policy,) = ours["policies"]
    assert (policy["name"], policy["vhost"], policy["definition"]) == ("o", "/", {"max-length": 5})


def test_what_rabbitmq_exports_is_loaded_and_the_rest_is_named(rabbit, leveret, tmp_path):
    theirs, ours = str(tmp_path / "rabbit.json"), str(tmp_path / "leveret.json")
    rabbit.control("export_definitions", theirs)
    output, told = command("definitions", "import", "--to", leveret.url, theirs)
    assert output == (
        "loaded 3 users, 2 permissions, 1 topic permissions, 2 policies, 1 parameters, 1 global parameters, 6 exchanges, 7 queues, "
        "6 bindings\n"
    )
    expected = {
        "permissions: 1 of vhost 'other' left out: this broker has one virtual host, and '/' was chosen (--vhost)",
        "policies: 1 of vhost 'other' left out: this broker has one virtual host, and '/' was chosen (--vhost)",
        "vhosts: 1 left out ('other'): this broker has one virtual host, and '/' was chosen (--vhost)",
        "policy 'ha' left out: this broker does not serve ha-mode",
        "policy 'ttl': loaded without ha-mode, which this broker does not serve",
    }
    assert set(told.replace("leveret definitions: ", "").splitlines()) == expected
    command("definitions", "export", "--from", leveret.url, ours)
    there, here = (json.load(open(path, encoding="utf-8")) for path in (theirs, ours))
    wanted = {
        section: of_vhost(there, section)
        for section in (
            "users",
            "permissions",
            "topic_permissions",
            "parameters",
            "global_parameters",
            "exchanges",
            "queues",
            "bindings",
            "policies",
        )
    }
    wanted["policies"] = [item for item in wanted["policies"] if item["name"] != "ha"]
    del [item for item in wanted["policies"] if item["name"] == "ttl"][0]["definition"]["ha-mode"]
    for section, items in wanted.items():
        assert of_vhost(here, section) == items, section
    assert [item["type"] for item in here["queues"] if item["name"] == "quorum"] == ["quorum"]
    channel = channel_of(leveret, "sensor", "secret")  # RabbitMQ's hash: the password is still the one
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"):
        channel.queue_declare("other")
    channel.connection.close()
    channel = channel_of(leveret)
    channel.basic_publish("e.topic", "a.b.ü", b"x")
    assert channel.queue_declare("plain", durable=True).method.message_count == 1
    channel.connection.close()


def test_what_only_leveret_answers_is_said_of_rabbitmq(rabbit):
    for arguments in (("status", rabbit.url), ("bridge", "status", rabbit.url), ("definitions", "export", "--from", rabbit.url, "-")):
        done = subprocess.run([sys.executable, "-m", "leveret.tools.cli", *arguments], capture_output=True, text=True, timeout=180)
        assert done.returncode == 1 and done.stdout == "", done.stderr
        assert "is no Leveret" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_the_same_file_can_be_loaded_at_the_start(rabbit, broker, tmp_path):
    if broker.kind != "leveret":
        pytest.skip("`leveret serve` is Leveret's")
    theirs = str(tmp_path / "rabbit.json")
    rabbit.control("export_definitions", theirs)
    document = json.load(open(theirs, encoding="utf-8"))
    document["users"] = [user for user in document["users"] if user["name"] != "guest"]
    with open(theirs, "w", encoding="utf-8") as file:
        json.dump(document, file)
    process = BrokerProcess("leveret", arguments=("--definitions", theirs))
    try:
        channel = channel_of(process, "sensor", "secret")
        assert channel.queue_declare("plain", passive=True).method.message_count == 0
        channel.connection.close()
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            channel_of(process)  # users in the file stand in for guest
        assert "queue 'quorum' left out" in process.error_text() and "loaded 2 users, 2 permissions" in process.error_text()
    finally:
        assert process.stop() == 0


def test_what_leveret_exports_rabbitmq_takes(rabbit, leveret, tmp_path):
    ours = str(tmp_path / "leveret.json")
    channel = channel_of(leveret)
    channel.exchange_declare("l.topic", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    channel.exchange_declare("l.inside", "fanout", internal=True)
    channel.queue_declare("l.classic", durable=True, arguments={"x-message-ttl": 60000, "x-max-priority": 3, "x-max-length": 7})
    channel.queue_declare("l.stream", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "7D"})
    channel.queue_declare("l.mine", exclusive=True)
    channel.queue_bind("l.classic", "l.topic", "a.#", {"note": "kept"})
    channel.exchange_bind("l.inside", "l.topic", "b")
    users = {
        "users": [
            {"name": "l.user", "password_hash": "UCIm0R77oFbHxSLjbvR/9FwPlWtRbbmwRrcpnc5Qu5kc4tz+", "tags": ["management"]},
            {
                "name": "l.slow",
                "password_hash": base64.b64encode(SLOW.encode()).decode(),
                "tags": [],
                "hashing_algorithm": "leveret_password_hashing_pbkdf2_sha256",
            },
        ],
        "permissions": [{"user": "l.user", "configure": "", "write": "^l\\.", "read": ".*"}],
        "policies": [{"name": "l.short", "pattern": "^l\\.", "definition": {"expires": 3600000}, "priority": 1, "apply-to": "queues"}],
    }
    with open(ours, "w", encoding="utf-8") as file:
        json.dump(users, file)
    assert command("definitions", "import", "--to", leveret.url, ours) == (
        "loaded 2 users, 1 permissions, 1 policies, 0 exchanges, 0 queues, 0 bindings\n",
        "",
    )
    output, told = command("definitions", "export", "--from", leveret.url, "-")
    assert told.count("\n") == 1 and "'l.slow'" in told and "Leveret alone" in told
    document = json.loads(output)
    assert sorted(item["name"] for item in document["queues"]) == ["l.classic", "l.stream"]
    with open(ours, "w", encoding="utf-8") as file:
        file.write(output)
    rabbit.control("import_definitions", ours)
    theirs = str(tmp_path / "rabbit.json")
    rabbit.control("export_definitions", theirs)
    there = json.load(open(theirs, encoding="utf-8"))
    for section in ("queues", "exchanges", "bindings", "policies", "permissions"):
        wanted = [item for item in of_vhost(document, section) if item.get("name") != "l.inside" and item.get("destination") != "l.inside"]
        known = of_vhost(there, section)  # rabbitmqctl 3.10 does not export internal exchanges
        assert wanted and all(item in known for item in wanted), (section, wanted, known)
    assert "l.inside" in rabbit.control("list_exchanges") and "l.slow" in rabbit.control("list_users")
    channel_of(rabbit).connection.close()  # its guest is still its own
    channel.connection.close()
    other = channel_of(rabbit)
    other.queue_declare("l.classic", durable=True, arguments={"x-message-ttl": 60000, "x-max-priority": 3, "x-max-length": 7})
    other.connection.close()

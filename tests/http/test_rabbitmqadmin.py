"""RabbitMQ's own rabbitmqadmin (its script in Debian's package), unchanged, does here what its pages say."""

import json
import os
import subprocess
import sys

import pika
import pytest

SCRIPTS = ("/usr/bin/rabbitmqadmin", "/usr/sbin/rabbitmqadmin")
SCRIPT = next((path for path in SCRIPTS if os.path.exists(path)), None)
pytestmark = pytest.mark.skipif(SCRIPT is None, reason="rabbitmqadmin is not installed: apt install rabbitmq-server")


@pytest.fixture
def admin(served):
    """admin(words ...) -> standard output; `status`: the exit status that is to be."""

    def run(*words, status=0, user="guest", given=""):
        command = [sys.executable, SCRIPT, "-H", "127.0.0.1", "-P", str(served.http_port), "-u", user, "-p", user, *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    return run


def rows(text):
    return json.loads(text)


def test_declare_publish_get_purge_delete(admin):
    assert admin("declare", "exchange", "name=adm.e", "type=topic") == "exchange declared\n"
    assert admin("declare", "queue", "name=adm.q", "durable=true", 'arguments={"x-max-length": 10}') == "queue declared\n"
    assert admin("declare", "queue", "name=adm.s", "queue_type=stream") == "queue declared\n"
    assert admin("declare", "binding", "source=adm.e", "destination=adm.q", "routing_key=a.#") == "binding declared\n"
    assert admin("publish", "exchange=adm.e", "routing_key=a.b", "payload=hej") == "Message published\n"
    assert admin("publish", "exchange=adm.e", "routing_key=no", "payload=hej") == "Message published but NOT routed\n"
    assert admin("publish", "routing_key=adm.q", 'properties={"delivery_mode": 2}', given="from stdin") == "Message published\n"
    assert "hej" in admin("get", "queue=adm.q") and "hej" in admin("get", "queue=adm.q")
    assert "from stdin" in admin("get", "queue=adm.q", "count=5", "ackmode=ack_requeue_false")
    assert admin("list", "bindings", "source", "destination", "routing_key", "properties_key").count("adm.q") == 4
    assert admin("purge", "queue", "name=adm.q") == "queue purged\n"
    deleted = admin("delete", "binding", "source=adm.e", "destination_type=queue", "destination=adm.q", "properties_key=a.#")
    assert deleted == "binding deleted\n"
    assert admin("delete", "queue", "name=adm.q") == "queue deleted\n"
    assert admin("delete", "queue", "name=adm.s") == "queue deleted\n"
    assert admin("delete", "exchange", "name=adm.e") == "exchange deleted\n"
    assert "Not found" in admin("delete", "queue", "name=adm.q", status=1)


@pytest.mark.parametrize("form", ["tsv", "long", "table", "kvp", "bash", "pretty_json"])
def test_lists_in_every_form(admin, form):
    admin("declare", "queue", "name=adm.listed")
    assert "adm.listed" in admin("-f", form, "list", "queues", *(["name"] if form == "tsv" else []))
    assert "3." in admin("-f", form, "show", "overview") or form == "bash"


LISTED = ("connections", "channels", "consumers", "exchanges", "bindings", "users", "vhosts", "permissions", "nodes")


@pytest.mark.parametrize("listed", [*LISTED, "parameters", "policies", "operator_policies", "vhost_limits"])
def test_every_list(admin, listed):
    admin("list", listed)


def test_columns_sorting_and_depth(admin):
    for name in ("adm.c", "adm.a", "adm.b"):
        admin("declare", "queue", "name=" + name)
    text = admin("-f", "raw_json", "-S", "name", "-R", "list", "queues", "name", "messages", "message_stats.publish_details.rate")
    names = [row["name"] for row in rows(text)]
    assert names == sorted(names, reverse=True) and rows(text)[0]["message_stats"]["publish_details"]["rate"] == 0.0
    assert "message_stats.publish_details.rate" in admin("-f", "long", "-d", "3", "list", "queues")
    assert "adm.a" in admin("-V", "/", "list", "queues") and "Not found" in admin("-V", "other", "list", "queues", status=1)


def test_users_permissions_and_policies(admin):
    assert admin("declare", "user", "name=adm", "password=adm", "tags=management") == "user declared\n"
    assert admin("declare", "permission", "vhost=/", "user=adm", "configure=^adm", "write=.*", "read=.*") == "permission declared\n"
    assert admin("declare", "queue", "name=adm.own", user="adm") == "queue declared\n"
    assert "Access refused" in admin("list", "users", user="adm", status=1)
    assert admin("declare", "policy", "name=p", "pattern=^adm", 'definition={"max-length": 7}', "apply-to=queues") == "policy declared\n"
    assert '{"max-length": 7}' in admin("list", "policies")
    assert admin("delete", "policy", "name=p") == "policy deleted\n"
    assert admin("delete", "permission", "vhost=/", "user=adm") == "permission deleted\n"
    assert admin("delete", "user", "name=adm") == "user deleted\n"
    assert "one virtual host" in admin("declare", "vhost", "name=other", status=1)


def test_a_connection_is_closed(served, admin):
    connection = pika.BlockingConnection(pika.URLParameters(served.url))
    (row,) = rows(admin("-f", "raw_json", "list", "connections", "name", "user", "channels"))
    assert admin("close", "connection", "name=" + row["name"]) == "connection closed\n"
    with pytest.raises(pika.exceptions.AMQPError):
        connection.process_data_events(10)
        connection.channel()


def test_export_and_import(admin, tmp_path):
    path = str(tmp_path / "definitions.json")
    admin("declare", "queue", "name=adm.exported")
    assert "Exported definitions" in admin("export", path)
    admin("delete", "queue", "name=adm.exported")
    assert "Uploaded definitions" in admin("import", path)
    assert "adm.exported" in admin("list", "queues")
    assert "Uploaded definitions" in admin("-V", "/", "import", path)

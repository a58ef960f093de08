"""Whole rows of the API for objects in a known state: each field has RabbitMQ's name (its management plugin's HTTP API reference) and the
object's own figure, and there is no other field."""

import platform
from urllib.parse import quote

import pika
import pytest
from api import Api, Served, queue

from leveret.ports.client import connect
from leveret.ports.client_1_0 import connect as connect_1_0
from leveret.ports.client_errors import ConnectionLost

NO_CERTIFICATE = dict.fromkeys(
    ("peer_cert_issuer", "peer_cert_subject", "peer_cert_validity", "ssl_cipher", "ssl_hash", "ssl_key_exchange", "ssl_protocol")
)
QUEUE = {
    "arguments": {"x-max-length": 5},
    "auto_delete": False,
    "consumer_capacity": 1.0,
    "consumer_utilisation": 1.0,
    "consumers": 1,
    "durable": True,
    "effective_policy_definition": {},
    "exclusive": False,
    "exclusive_consumer_tag": None,
    "head_message_timestamp": None,
    "message_bytes_paged_out": 0,
    "message_bytes_persistent": 0,
    "message_bytes_ready": 10,
    "message_stats": {"publish": 3, "deliver_get": 1, "ack": 0},
    "messages": 3,
    "messages_paged_out": 0,
    "messages_persistent": 0,
    "messages_ram": 3,
    "messages_ready": 2,
    "messages_ready_ram": 2,
    "messages_unacknowledged": 1,
    "messages_unacknowledged_ram": 1,
    "name": "rows.q",
    "operator_policy": None,
    "policy": None,
    "recoverable_slaves": None,
    "single_active_consumer_tag": None,
    "state": "running",
    "type": "classic",
    "vhost": "/",
}
EMPTY_QUEUE = {
    **QUEUE,
    "arguments": {},
    "auto_delete": True,
    "durable": False,
    "exclusive": True,
    "exclusive_consumer_tag": "alone",
    "message_bytes_ready": 0,
    "message_stats": dict.fromkeys(QUEUE["message_stats"], 0),
    **{name: 0 for name in QUEUE if name.startswith("messages")},
    "name": "rows.e",
}


def plain(row, left_out):
    """A row without its rates and without some fields."""
    if isinstance(row, dict):
        return {name: plain(value, ()) for name, value in row.items() if not name.endswith("_details") and name not in left_out}
    return [plain(each, ()) for each in row] if isinstance(row, list) else row


@pytest.fixture(scope="module")
def api(configured):
    """A broker's API, with one client: `client` is the name of its connection, `client_host` and `client_port` its end."""
    process = Served("--config", configured)
    connection = pika.BlockingConnection(pika.URLParameters(process.url))
    channel = connection.channel()
    channel.queue_declare("rows.q", durable=True, arguments={"x-max-length": 5})
    channel.exchange_declare("rows.x", "topic", durable=True)
    channel.queue_bind("rows.q", "rows.x", "a.#", {"k": 1})
    channel.queue_declare("rows.e", exclusive=True, auto_delete=True)
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume("rows.q", lambda *given: None, consumer_tag="waits")
    channel.basic_consume("rows.e", lambda *given: None, exclusive=True, auto_ack=True, consumer_tag="alone")
    for _ in range(3):
        channel.basic_publish("rows.x", "a.b", b"12345")
    connection.process_data_events(0)
    api = Api(process.http_port, "guest")
    api.process = process
    api.client_host, api.client_port = connection._impl._transport._sock.getsockname()[:2]
    api.client = f"{api.client_host}:{api.client_port}"
    api.node = api.get("/overview")["node"]
    yield api
    connection.close()
    process.stop()


def test_a_connection(api):
    (row,) = api.get("/connections")
    assert row["connected_at"] > 1_600_000_000_000 and row["client_properties"]["product"].startswith("Pika")
    assert row["recv_oct"] > 500 and row["send_oct"] > 500 and row["recv_cnt"] > 5 and row["send_cnt"] > 5 and row["send_pend"] == 0
    changing = ("recv_oct", "recv_cnt", "send_oct", "send_cnt", "send_pend")
    assert plain(row, ("connected_at", "client_properties", "frame_max", "channel_max", *changing)) == {
        "auth_mechanism": "PLAIN",
        "channels": 1,
        "host": "127.0.0.1",
        "name": api.client,
        "node": api.node,
        **NO_CERTIFICATE,
        "peer_host": api.client_host,
        "peer_port": api.client_port,
        "port": api.process.port,
        "protocol": "AMQP 0-9-1",
        "ssl": False,
        "state": "running",
        "timeout": 60,
        "type": "network",
        "user": "guest",
        "user_provided_name": "",
        "user_who_performed_action": "guest",
        "vhost": "/",
    }
    both_ends = quote(f"{api.client} -> 127.0.0.1:{api.process.port}", "")  # RabbitMQ's name of it
    for name in (api.client, both_ends):
        assert plain(api.get("/connections/" + name), changing) == plain(row, changing)


def test_a_channel(api):
    (row,) = api.get("/channels")
    assert row["connection_details"] == {"name": api.client, "peer_host": api.client_host, "peer_port": api.client_port}
    assert plain(row, ()) == {
        "acks_uncommitted": 0,
        "confirm": False,
        "consumer_count": 2,
        "global_prefetch_count": 0,
        "message_stats": {"ack": 0, "deliver_get": 1},
        "messages_unacknowledged": 1,
        "messages_uncommitted": 0,
        "messages_unconfirmed": 0,
        "name": api.client + " (1)",
        "node": api.node,
        "number": 1,
        "pending_raft_commands": 0,
        "prefetch_count": 1,
        "state": "running",
        "transactional": False,
        "user": "guest",
        "user_who_performed_action": "guest",
        "vhost": "/",
    }


def test_consumers(api):
    rows = sorted(api.get("/consumers"), key=lambda row: row["consumer_tag"])
    channel = {
        "connection_name": api.client,
        "name": api.client + " (1)",
        "node": api.node,
        "number": 1,
        "peer_host": api.client_host,
        "peer_port": api.client_port,
        "user": "guest",
    }
    assert [row.pop("channel_details") for row in rows] == [channel] * 2
    shared = {"active": True, "activity_status": "up", "arguments": {}, "consumer_timeout": 1_800_000, "prefetch_count": 1}
    assert rows == [
        {"consumer_tag": "alone", "exclusive": True, "ack_required": False, "queue": {"name": "rows.e", "vhost": "/"}, **shared},
        {"consumer_tag": "waits", "exclusive": False, "ack_required": True, "queue": {"name": "rows.q", "vhost": "/"}, **shared},
    ]


def test_queues(api):
    octets = ("memory", "message_bytes", "message_bytes_ram", "message_bytes_unacknowledged")
    rows = {row["name"]: row for row in api.get("/queues")}
    for wanted in (QUEUE, EMPTY_QUEUE):
        row = rows.pop(wanted["name"])
        assert plain(row, octets) == {**wanted, "node": api.node}
        has_any = wanted is QUEUE
        assert (row["memory"] > 15) == (row["message_bytes_ram"] > 15) == has_any
        assert row["message_bytes"] == row["message_bytes_ready"] + row["message_bytes_unacknowledged"]
        assert ("owner_pid_details" in row) == wanted["exclusive"]
        alone = api.get(queue(wanted["name"]))
        told = {name: alone.pop(name) for name in ("consumer_details", "deliveries", "incoming")}
        assert plain(alone, ()) == plain(row, ()) and len(told["consumer_details"]) == 1
    assert rows == {}


def test_an_exchange_and_its_bindings(api):
    assert api.get("/exchanges/%2F/rows.x") == {
        "arguments": {},
        "auto_delete": False,
        "durable": True,
        "incoming": [],
        "internal": False,
        "name": "rows.x",
        "outgoing": [],
        "policy": None,
        "type": "topic",
        "user_who_performed_action": "",
        "vhost": "/",
    }
    rows = api.get("/bindings")
    keys = [row.pop("properties_key") for row in rows]
    assert keys[:2] == ["rows.e", "rows.q"] and keys[2].startswith("a.%23~")
    shared = {"destination_type": "queue", "vhost": "/"}
    assert rows == [
        {"source": "", "destination": "rows.e", "routing_key": "rows.e", "arguments": {}, **shared},
        {"source": "", "destination": "rows.q", "routing_key": "rows.q", "arguments": {}, **shared},
        {"source": "rows.x", "destination": "rows.q", "routing_key": "a.#", "arguments": {"k": 1}, **shared},
    ]


def test_the_sums_of_the_broker(api):
    told = api.get("/overview")
    assert told["object_totals"] == {"channels": 1, "connections": 1, "consumers": 2, "exchanges": 7, "queues": 2}
    assert plain(told["queue_totals"], ()) == {"messages": 3, "messages_ready": 2, "messages_unacknowledged": 1}
    churn = plain(told["churn_rates"], ("connection_created", "connection_closed"))
    assert churn == {"channel_closed": 0, "channel_created": 1, "queue_created": 2, "queue_declared": 2, "queue_deleted": 0}
    assert told["churn_rates"]["connection_created"] - told["churn_rates"]["connection_closed"] == 1
    counts = plain(told["message_stats"], ())
    none = dict.fromkeys(("ack", "drop_unroutable", "get", "get_no_ack", "redeliver", "return_unroutable"), 0)
    assert counts == none | {"deliver_get": 1, "publish": 3}
    assert [(each["protocol"], each["ip_address"]) for each in told["listeners"]] == [("amqp", "127.0.0.1"), ("http", "127.0.0.1")]
    assert told["listeners"][1]["port"] == api.process.http_port
    (host,) = api.get("/vhosts")
    assert plain(host["message_stats"], ()) == counts and (host["messages"], host["messages_ready"]) == (3, 2)
    assert host["messages_unacknowledged"] == 1


def test_the_machine(api):
    (node,) = api.get("/nodes")
    assert node["name"] == api.node and int(node["os_pid"]) == api.process.process.pid
    assert node["applications"][0]["description"] == "Leveret on Python " + platform.python_version()
    assert [each["name"] for each in node["auth_mechanisms"]] == ["PLAIN", "SCRAM-SHA-256", "EXTERNAL"]
    assert (node["sockets_used"], node["sockets_total"], node["running"], node["mem_alarm"]) == (1, 256, True, False)
    assert 0 < node["fd_used"] < node["fd_total"] and 0 < node["mem_used"] and 0 < node["disk_free"] and node["processors"] >= 1
    assert 0 < node["uptime"] < 1_000_000


def test_connections_of_other_versions():
    """As RabbitMQ 4 has them: its clients of AMQP 1.0 find connections by `container_id`, and close them."""
    process = Served()
    api = Api(process.http_port, "guest")
    client = connect_1_0("amqp://guest:guest@127.0.0.1:%d/" % process.port, container="rows of 1.0")
    older = connect("amqp://guest:guest@127.0.0.1:%d/?protocol=0-8" % process.port)
    rows = {each["protocol"]: each for each in api.get("/connections")}
    assert sorted(rows) == ["AMQP 0-8", "AMQP 1-0"]
    assert rows["AMQP 1-0"]["container_id"] == "rows of 1.0" and rows["AMQP 1-0"]["auth_mechanism"] == "PLAIN"
    assert "container_id" not in rows["AMQP 0-8"]
    api.do("DELETE", "/connections/" + rows["AMQP 1-0"]["name"])
    with pytest.raises(ConnectionLost):
        client.poll(10000)
    older.close()
    process.stop()

"""The exchange amq.rabbitmq.event: what happens is told to who asks; off, it is not there."""

import subprocess
import sys
import time

import pika
import pytest
from api import Api, Served
from broker_process import RABBITMQ_SERVER, BrokerProcess, free_port, rabbitmq_installed
from events import EXCHANGE, Heard, of_a_client, of_an_operator

WAIT_S = 60


@pytest.fixture
def telling(tmp_path):
    """A function that starts a broker which tells events, and keeps them where asked."""
    config = tmp_path / "leveret.toml"
    config.write_text("events = true\n")
    started = []

    def start(*arguments):
        started.append(Served("--config", str(config), *arguments))
        return started[-1]

    yield start
    for each in started:
        each.stop()
        assert "Traceback" not in each.errors and "an error of this broker" not in each.errors, each.errors


def test_off_it_is_not_there(served):
    connection = pika.BlockingConnection(pika.URLParameters(served.url))
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="no exchange 'amq.rabbitmq.event'"):
        connection.channel().exchange_declare(EXCHANGE, passive=True)
    connection.close()


def test_off_nothing_of_it_is_imported_and_no_function_is_another():
    """No memory and no time: the functions that a broker calls are those of its classes."""
    program = """
import sys
from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits
from leveret.tools import serve
broker = serve.Server(Limits(), 0).broker
assert not [name for name in sys.modules if name.startswith(("leveret.ports.events", "leveret.ports.peers"))]
for each in (broker.topology, broker.places, broker.consumers, broker.policies, broker.access):
    assert not [name for name, value in vars(each).items() if callable(value) and hasattr(type(each), name)], each
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nobody_publishes_to_it_but_the_broker(telling):
    connection = pika.BlockingConnection(pika.URLParameters(telling().url))
    channel = connection.channel()
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"):
        channel.basic_publish(EXCHANGE, "queue.created", b"")
    connection.close()


def test_who_did_what_is_told_in_order(telling):
    process = telling()
    heard = Heard(process.url)
    of_a_client(process.url)
    of_an_operator(Api(process.http_port, "guest"))
    rows = heard.until("user.deleted")
    keys = [key for key, _ in rows]
    assert keys.index("connection.created") < keys.index("channel.created") < keys.index("queue.created") < keys.index("channel.closed")
    by_key = dict(reversed(rows))
    assert by_key["connection.created"]["user_provided_name"] == "same.client"
    assert by_key["channel.created"]["connection"] == by_key["connection.created"]["pid"] == by_key["connection.closed"]["pid"]
    assert by_key["consumer.created"]["channel"] == by_key["channel.created"]["pid"] == by_key["channel.closed"]["pid"]
    assert by_key["queue.created"]["arguments"] == ['{<<"x-max-length">>,signedint,5}']
    assert [by_key[key]["user_who_performed_action"] for key in ("queue.created", "user.created")] == ["guest", "guest"]
    assert keys.count("user.deleted") == 1 and "permission.deleted" in keys
    heard.close()


def test_a_binding_to_it_survives_a_restart(telling, tmp_path):
    process = telling("--data", str(tmp_path / "data"))
    connection = pika.BlockingConnection(pika.URLParameters(process.url))
    channel = connection.channel()
    channel.queue_declare("kept", durable=True)
    channel.queue_bind("kept", EXCHANGE, "queue.#")
    process.stop()
    process = telling("--data", str(tmp_path / "data"))
    connection = pika.BlockingConnection(pika.URLParameters(process.url))
    channel = connection.channel()
    channel.queue_declare("new")
    limit = time.monotonic() + WAIT_S
    while (got := channel.basic_get("kept", auto_ack=True))[0] is None or got[1].headers["name"] != "new":
        assert time.monotonic() < limit
    assert got[0].routing_key == "queue.created"
    connection.close()


def test_without_room_events_wait_and_those_beyond_are_counted(tmp_path):
    """A full broker tells nothing and holds nothing more; it says how much was not told."""
    config = tmp_path / "small.toml"
    config.write_text("events = true\n[limits]\narena_size = 1048576\nbinding_share_max = 100000\n")
    process = Served("--config", str(config))
    connection = pika.BlockingConnection(pika.URLParameters(process.url))
    channel = connection.channel()
    channel.queue_declare("ears")
    channel.queue_bind("ears", EXCHANGE, "#")
    for count in range(6000):
        channel.queue_bind("ears", "amq.direct", "k%d" % count)
        channel.queue_unbind("ears", "amq.direct", "k%d" % count)
    assert "events wait for room" in process.error_text()
    channel.queue_purge("ears")
    limit = time.monotonic() + WAIT_S
    while "events were not told" not in process.error_text():
        assert time.monotonic() < limit
        channel.queue_purge("ears")
    connection.close()
    assert process.stop() == 0


def filled(url, api):
    """Fill the broker's memory until publishers have waited for long enough, and empty it."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.queue_declare("filled")
    for _ in range(300):  # pika's calls wait for what the system has no room for: the few behind the last one taken have room there
        channel.basic_publish("", "filled", bytes(3000))
    limit = time.monotonic() + WAIT_S
    while not api.get("/nodes")[0]["mem_alarm"]:
        assert time.monotonic() < limit
        time.sleep(0.05)
    other = pika.BlockingConnection(pika.URLParameters(url))
    other.channel().queue_purge("filled")
    other.close()
    connection.close()


def limited(process):
    """Have a RabbitMQ's publishers wait for memory, and go on."""
    for part in ("0.000001", "0.6"):
        process.control("set_vm_memory_high_watermark", part)


@pytest.fixture
def small(tmp_path):
    """A broker with events whose memory is soon full."""
    config = tmp_path / "small.toml"
    config.write_text("events = true\n[limits]\narena_size = 1048576\n")
    process = Served("--config", str(config))
    yield process
    assert process.stop() == 0


def alarms(process, make):
    """What a listener hears of alarms while `make()` makes one and ends it."""
    heard = Heard(process.url)
    make()
    rows = [row for row in heard.until("alarm.cleared") if row[0].startswith("alarm.")]
    heard.close()
    return rows


def test_an_alarm_is_told_when_publishers_have_to_wait_and_when_no_more(small):
    api = Api(small.http_port, "guest")
    node = api.get("/overview")["node"]
    rows = alarms(small, lambda: filled(small.url, api))
    assert [(key, headers["source"], headers["node"]) for key, headers in rows] == [
        ("alarm.set", "memory", node),
        ("alarm.cleared", "memory", node),
    ]


@pytest.mark.skipif(not rabbitmq_installed(), reason=f"{RABBITMQ_SERVER} is not there: apt install rabbitmq-server")
def test_keys_and_headers_are_rabbitmqs(telling, small):
    port = free_port()
    rabbitmq = BrokerProcess(
        "rabbitmq",
        configuration=f"management.tcp.port = {port}\nmanagement.tcp.ip = 127.0.0.1\n",
        plugins="rabbitmq_management,rabbitmq_event_exchange",
    )
    ours = telling()
    told = []
    try:
        for process, http_port in ((rabbitmq, port), (ours, ours.http_port)):
            api = Api(http_port, "guest")
            wait_for(api)
            heard = Heard(process.url)
            of_a_client(process.url)
            of_an_operator(api)
            told.append({key: {name: kind(value) for name, value in headers.items()} for key, headers in heard.until("user.deleted")})
            heard.close()
        theirs = alarms(rabbitmq, lambda: limited(rabbitmq))
        here = alarms(small, lambda: filled(small.url, Api(small.http_port, "guest")))
        for rows, told_ in zip((theirs, here), told):
            told_.update({key: {name: kind(value) for name, value in headers.items()} for key, headers in rows})
    finally:
        rabbitmq.stop()
    theirs, here = told
    assert set(theirs) == set(here)
    for key, headers in here.items():
        for name in theirs[key]:
            assert name in headers, (key, name, theirs[key], headers)
            assert theirs[key][name] == headers[name] or (key, name) == ("user.authentication.failure", "error"), (key, name)


def wait_for(api):
    limit = time.monotonic() + 2 * WAIT_S
    while True:
        try:
            if api.call("GET", "/api/whoami")[0] == 200:
                return
        except OSError:
            assert time.monotonic() < limit, "the API does not answer"
        time.sleep(0.3)


def kind(value):
    """The type of a header's value; RabbitMQ's long stays one."""
    return {name: kind(each) for name, each in value.items()} if isinstance(value, dict) else type(value).__name__

"""The bridge between real brokers: nothing is lost, doubles come only from lost confirms, and what is wrong is said in one sentence.

Messages are told apart by message_id, m0 to m(n-1). Gateway: `leveret serve`; upstream: RabbitMQ or a second Leveret.
"""

import collections
import threading
import time
from types import SimpleNamespace

import pytest
from nodes import taken, wait_until

from leveret.core.amqp_0_9.properties import with_header
from leveret.core.bridge.mover import Delivery
from leveret.ports.bridge import dial
from leveret.ports.bridge.side import Side
from leveret.ports.client import ChannelClosed, connect
from leveret.ports.url import read_url

PREFETCH = 200
ROUTING_KEYS = ("dev1.temperature", "dev2.cpu", "a")


def fill(url, count, first=0, body=b"21.5"):
    """Put messages into the gateway's `uplink`."""
    client = connect(url)
    for number in range(first, first + count):
        client.publish("", "uplink", body, {"message_id": "m%d" % number, "delivery_mode": 2}, confirm=False)
    client.wait_confirmed()
    client.close()


def take_all(url, queue="readings", quiet_ms=300):
    """Every message of a queue, acknowledged."""
    client = connect(url)
    client.qos(1000)
    client.consume(queue)
    found = []
    for message in taken(client, queue, quiet_ms):
        found.append(message)
        client.ack(message)
    client.close()
    return found


def depth(url, queue):
    client = connect(url)
    count = client.queue_declare(queue, passive=True)[1]
    client.close()
    return count


def assert_complete(messages, count, doubles_max=0):
    """m0 to m(count-1) are all there, and at most so many more than once."""
    times = collections.Counter(message.properties["message_id"] for message in messages)
    missing = [number for number in range(count) if "m%d" % number not in times]
    assert not missing, "%d of %d missing, first m%d" % (len(missing), count, missing[0])
    assert len(times) == count
    assert len(messages) - count <= doubles_max, "%d doubles" % (len(messages) - count)


def moved(count):
    return lambda status: status["bridged"] >= count and status["unconfirmed"] == 0


@pytest.fixture(params=["rabbitmq", "leveret"])
def upstream(request):
    return request.getfixturevalue(request.param)


def test_messages_go_on_octet_for_octet(gateway, upstream, start_bridge):
    properties = {
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "priority": 3,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "3600000",
        "timestamp": 1700000000,
        "type": "t",
        "app_id": "a",
        "delivery_mode": 2,
        "headers": {
            "int": 1,
            "long": 1 << 40,
            "float": 1.5,
            "text": "gr\u00fcn",
            "octets": b"\xff",
            "none": None,
            "list": [1, ["a"]],
            "table": {"t": True},
            "time": ("T", 1700000000),
            "byte": ("B", 200),
        },
    }
    client = connect(gateway.url)
    client.exchange_declare("sensors", "topic", durable=True)
    client.queue_bind("uplink", "sensors", "#")
    sizes = (0, 1, 256, 5000, 131064, 131065, 400000)
    sent = []
    for number, size in enumerate(sizes):
        properties["message_id"] = "m%d" % number
        body = bytes(index * 13 & 255 for index in range(size))
        client.publish("sensors", ROUTING_KEYS[number % 3], body, properties if number else None, mandatory=True)
        sent.append((ROUTING_KEYS[number % 3], properties["message_id"] if number else None, body))
    octets = client.get("uplink")
    reference = client.get("uplink").properties_octets
    client.close()  # both go back to the queue
    assert octets.properties_octets == b"\x00\x00"
    bridge = start_bridge(gateway.url, upstream.url)
    bridge.wait_for(moved(len(sizes)), 20, "all are bridged")
    found = take_all(upstream.url)
    assert sorted((message.routing_key, message.properties.get("message_id") or "", message.body) for message in found) == sorted(
        (key, message_id or "", body) for key, message_id, body in sent
    )
    for message in found:
        assert message.exchange == "telemetry"
        message_id = message.properties.get("message_id")
        octets = reference.replace(b"m1", message_id.encode()) if message_id else b"\x00\x00"
        assert message.properties_octets == with_header(octets, b"\x06x-hopsI\x00\x00\x00\x01")
    assert depth(gateway.url, "uplink") == 0


def test_from_rabbitmq_with_a_routing_key_of_its_own(rabbitmq, leveret, start_bridge):
    client = connect(rabbitmq.url)
    client.queue_declare("uplink", durable=True)
    client.queue_purge("uplink")
    client.close()
    fill(rabbitmq.url, 500)
    bridge = start_bridge(rabbitmq.url, leveret.url, arguments=["--routing-key", "site.7"])
    bridge.wait_for(moved(500), 20, "all are bridged")
    found = take_all(leveret.url)
    assert_complete(found, 500)
    assert {message.routing_key for message in found} == {"site.7"}
    assert depth(rabbitmq.url, "uplink") == 0


def test_a_bridge_that_dies_with_messages_under_way_leaves_them_in_the_gateway(gateway, leveret, start_bridge, relay):
    count = 3000
    fill(gateway.url, count)
    link = relay(leveret.port)
    bridge = start_bridge(gateway.url, link.url, arguments=["--prefetch", str(PREFETCH)])
    bridge.wait_for(lambda status: status["bridged"] > 200, 20, "the bridge is at work")
    link.hold()
    status = bridge.wait_for(lambda status: status["unconfirmed"] == PREFETCH, 10, "all that it holds is under way")
    assert status["bridged"] < count - PREFETCH
    bridge.process.kill()
    bridge.process.wait(60)
    link.close()
    second = start_bridge(gateway.url, leveret.url)
    second.wait_for(lambda status: depth(gateway.url, "uplink") == 0 and status["unconfirmed"] == 0, 30, "the rest is bridged")
    assert second.stop()[0] == 0
    assert_complete(take_all(leveret.url), count, 2 * PREFETCH)


def test_what_has_no_queue_upstream_is_kept_and_said_and_goes_when_there_is_one(gateway, upstream, start_bridge):
    client = connect(upstream.url)
    client.queue_unbind("readings", "telemetry", "#")
    fill(gateway.url, 300)
    bridge = start_bridge(gateway.url, upstream.url)
    status = bridge.wait_for(lambda status: status["returned"] >= 600, 20, "returned and tried again")
    assert status["bridged"] == 0 and status["state"] == "blocked" and "upstream has no queue" in status["reason"]
    assert "exchange 'telemetry' has no queue for routing key 'uplink'; the message is kept and tried again" in bridge.said()
    client.queue_bind("readings", "telemetry", "#")
    bridge.wait_for(moved(300), 20, "all are bridged")
    client.close()
    assert bridge.stop()[0] == 0
    assert_complete(take_all(upstream.url), 300)


def test_only_what_has_no_queue_is_kept(gateway, upstream, start_bridge):
    client = connect(upstream.url)
    client.queue_unbind("readings", "telemetry", "#")
    client.queue_bind("readings", "telemetry", "good.*")
    client.close()
    client = connect(gateway.url)
    client.exchange_declare("sensors", "topic")
    client.queue_bind("uplink", "sensors", "#")
    for number in range(200):  # bodies are all alike: only the octets of key and properties tell them apart
        client.publish("sensors", "good.x" if number % 2 else "lost.x", b"same", {"message_id": "m%d" % (number // 2)}, confirm=False)
    client.wait_confirmed()
    client.close()
    bridge = start_bridge(gateway.url, upstream.url)
    bridge.wait_for(lambda status: status["bridged"] == 100 and status["returned"] >= 200, 20, "half of them bridged, half returned twice")
    assert bridge.stop()[0] == 0
    found = take_all(upstream.url)
    assert_complete(found, 100)
    assert {message.routing_key for message in found} == {"good.x"}
    assert depth(gateway.url, "uplink") == 100


def test_what_the_upstream_refuses_goes_back_to_its_queue_and_is_tried_again(gateway, rabbitmq, start_bridge):
    client = connect(rabbitmq.url)
    client.queue_delete("readings")
    client.queue_declare("readings", durable=True, arguments={"x-max-length": 50, "x-overflow": "reject-publish"})
    client.queue_bind("readings", "telemetry", "#")
    fill(gateway.url, 120)
    bridge = start_bridge(gateway.url, rabbitmq.url)
    bridge.wait_for(lambda status: status["nacked"] > 100, 20, "refused and tried again")
    assert "refuses messages; trying again" in bridge.said()
    found = []
    wait_until(lambda: found.extend(take_all(rabbitmq.url, quiet_ms=300)) or len(found) >= 120, 30, "all have come")
    assert bridge.stop()[0] == 0
    client.close()
    assert_complete(found, 120)


def test_what_is_missing_is_said_and_waited_for(gateway, leveret, start_bridge):
    local, upstream = connect(gateway.url), connect(leveret.url)
    local.queue_delete("uplink")
    bridge = start_bridge(gateway.url, leveret.url, exchange="nonesuch")
    wait_until(lambda: bridge.said().count("404 NOT_FOUND - no ") >= 2, 10, "both are said to be missing")
    assert "source 127.0.0.1:%d: 404 NOT_FOUND - no queue 'uplink' in vhost '/'; trying again" % gateway.port in bridge.said()
    assert "upstream 127.0.0.1:%d: 404 NOT_FOUND - no exchange 'nonesuch' in vhost '/'; trying again" % leveret.port in bridge.said()
    local.queue_declare("uplink", durable=True)
    upstream.exchange_declare("nonesuch", "fanout", durable=True)
    upstream.queue_bind("readings", "nonesuch")
    fill(gateway.url, 10)
    bridge.wait_for(moved(10), 20, "all are bridged")
    local.queue_delete("uplink")
    wait_until(lambda: "the queue was deleted" in bridge.said(), 10, "the deleted queue is noticed")
    local.queue_declare("uplink", durable=True)
    fill(gateway.url, 10, first=10)
    bridge.wait_for(moved(20), 30, "all are bridged")
    assert bridge.said().count("trying again") < 8  # once for each reason, not for each attempt
    local.close()
    upstream.close()
    assert_complete(take_all(leveret.url), 20)


def test_a_blocked_upstream_stops_the_bridge_until_it_is_unblocked(gateway, rabbitmq, start_bridge):
    bridge = start_bridge(gateway.url, rabbitmq.url)
    bridge.wait_for(lambda status: status["state"] == "running", 10, "the bridge is at work")
    rabbitmq.control("set_vm_memory_high_watermark", "0")
    fill(gateway.url, 200)
    status = bridge.wait_for(lambda status: status["state"] == "blocked", 20, "the bridge is told")
    assert status["bridged"] < 200 and "takes no messages for now: low on memory" in bridge.said()
    rabbitmq.control("set_vm_memory_high_watermark", "0.4")
    bridge.wait_for(moved(200), 20, "all are bridged")
    assert bridge.stop()[0] == 0
    assert_complete(take_all(rabbitmq.url), 200)


def test_a_wrong_password_is_said_with_the_brokers_text(gateway, leveret, start_bridge):
    bridge = start_bridge(gateway.url, leveret.url.replace("guest:guest", "guest:wrong"))
    wait_until(lambda: "403 ACCESS_REFUSED" in bridge.said(), 10, "the refusal is said")
    assert bridge.stop()[0] == 0


def test_nobody_upstream_is_said(gateway, leveret, start_bridge):
    leveret.kill()
    bridge = start_bridge(gateway.url, leveret.url)
    wait_until(lambda: "upstream 127.0.0.1:%d: no AMQP broker answers; trying again" % leveret.port in bridge.said(), 10, "it is said")
    code, _, _ = bridge.stop()
    assert code == 0


def test_ending_in_mid_stream_leaves_every_message_on_one_side(gateway, leveret, start_bridge, relay):
    count = 40000  # a quarter of a minute over the slow link
    fill(gateway.url, count)
    bridge = start_bridge(gateway.url, relay(leveret.port).url)
    bridge.wait_for(lambda status: status["bridged"] > 500, 20, "the bridge is at work")
    code, _, status = bridge.stop()
    assert code == 0 and status["state"] == "stopped" and status["unconfirmed"] == 0
    there, here = take_all(leveret.url), take_all(gateway.url, "uplink")
    assert len(there) == status["bridged"] and here
    assert_complete(there + here, count)


def test_ending_does_not_wait_longer_than_five_seconds_for_confirms(gateway, rabbitmq, start_bridge):
    fill(gateway.url, 100)
    bridge = start_bridge(gateway.url, rabbitmq.url)
    bridge.wait_for(moved(100), 20, "all are bridged")
    rabbitmq.control("set_vm_memory_high_watermark", "0")
    try:
        fill(gateway.url, 100, first=100)
        bridge.wait_for(lambda status: status["state"] == "blocked", 20, "the bridge is told")
        code, seconds, status = bridge.stop()
    finally:
        rabbitmq.control("set_vm_memory_high_watermark", "0.4")
    assert code == 0 and seconds < 15 and status["state"] == "stopped"
    assert_complete(take_all(rabbitmq.url) + take_all(gateway.url, "uplink"), 200, status["unconfirmed"])


def test_bad_arguments_are_refused_in_one_sentence(start_bridge):
    bridge = start_bridge("http://127.0.0.1/", "amqp://127.0.0.1:1/")
    assert bridge.process.wait(60) == 2
    assert "'http://127.0.0.1/' is not a broker's URL" in bridge.said() and bridge.said().count("\n") == 1


def test_a_queue_that_another_consumer_owns_is_said(gateway, leveret, start_bridge):
    client = connect(gateway.url)
    client.consume("uplink", exclusive=True)
    bridge = start_bridge(gateway.url, leveret.url)
    wait_until(lambda: "403 ACCESS_REFUSED" in bridge.said(), 10, "the refusal is said")
    client.close()
    bridge.wait_for(lambda status: status["state"] == "running", 10, "the bridge is at work")
    with pytest.raises(ChannelClosed):
        other = connect(gateway.url)
        try:
            other.consume("uplink", exclusive=True)
        finally:
            other.close()


def test_a_resolver_that_does_not_answer_holds_nobody_up(monkeypatch):
    asked = threading.Event()
    go = threading.Event()

    def slow(host, port, found):
        asked.set()
        go.wait(60)
        found.append(OSError("no answer"))

    monkeypatch.setattr(dial, "look_up", slow)
    way = dial.NetworkDial(read_url("amqp://broker.example/"))
    began = time.monotonic()
    way.begin()
    assert asked.wait(40) and way.finish(None, None) is None and time.monotonic() - began < 50
    go.set()
    with pytest.raises(OSError, match="broker.example:5672: no such host: no answer"):
        wait_until(lambda: way.finish(None, None), 5, "it fails")


def test_a_host_that_there_is_not_is_said(gateway, start_bridge):
    bridge = start_bridge(gateway.url, "amqp://nonesuch.invalid/")
    wait_until(
        lambda: "nonesuch.invalid:5672: no such host" in bridge.said() or "nonesuch.invalid:5672: not ready" in bridge.said(),
        20,
        "it is said",
    )
    assert bridge.stop()[0] == 0


def test_a_delivery_of_an_older_connection_is_done_without_an_acknowledgement():
    """The source delivers it again; a tag of the connection before it would be refused, and stop all others."""
    acknowledged = []
    channel = SimpleNamespace(basic_ack=lambda tag: acknowledged.append(tag) or True)
    side = Side(None, "source", [], SimpleNamespace(reconnect_seconds_min=1, reconnect_seconds_max=1))
    side.epoch, side.ready, side.client = 2, True, SimpleNamespace(channels={1: channel})
    assert side.acknowledge(Delivery(1, 7, 1, 0, 1)) is True and acknowledged == []
    assert side.acknowledge(Delivery(1, 8, 2, 0, 1)) is True and acknowledged == [8]
    side.ready = False
    assert side.acknowledge(Delivery(1, 9, 2, 0, 1)) is False and acknowledged == [8]

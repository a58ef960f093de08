"""The firehose: copies of what is published and delivered, on and off by command and API, per exchange and queue; RabbitMQ's headers."""

import subprocess
import sys

import pika
from api import Api
from events import Heard

EXCHANGE = "amq.rabbitmq.trace"
# The headers of RabbitMQ 3.10.8, as its firehose sent them (its documentation of the Firehose Tracer names the same).
BOTH = {"exchange_name", "routing_keys", "properties", "node", "vhost", "connection", "channel", "user"}
HEADERS = {"publish": BOTH | {"routed_queues"}, "deliver": BOTH | {"redelivered"}}
LARGE = bytes(range(256)) * 1000


def command(process, *words):
    subprocess.run([sys.executable, "-m", "leveret.tools.cli", "trace", *words, process.url], check=True)


def traffic(url, last):
    """Publishes of each kind, a get and deliveries; `last`: the key of the last publish."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.exchange_declare("traced.e", "topic")
    for name in ("traced.q", "other.q"):
        channel.queue_declare(name)
        channel.queue_bind(name, "traced.e", "k.#")
    given = pika.BasicProperties(content_type="text/plain", headers={"h": 1, "CC": ["k.c"]})
    channel.basic_publish("traced.e", "k.a", b"first", given)
    channel.basic_publish("", "traced.q", LARGE)
    channel.basic_get("traced.q", auto_ack=True)
    got = []
    channel.basic_consume("traced.q", lambda c, m, p, body: got.append(body), auto_ack=True)
    while len(got) < 1:
        connection.process_data_events(0.1)
    assert got == [LARGE]
    channel.queue_delete("traced.q")
    channel.queue_delete("other.q")
    channel.exchange_delete("traced.e")
    channel.exchange_declare("traced.e", "topic")
    channel.basic_publish("traced.e", last, b"last")
    connection.close()


def heard_of(heard, last):
    """[(key, headers, body)] up to the publish with the routing key `last`."""
    rows = []
    while not rows or rows[-1][1]["routing_keys"] != [last]:
        rows += [(method.routing_key, properties.headers, body) for method, properties, body in heard.messages("publish.traced.e")]
    return rows


def test_each_message_is_copied_while_it_is_on(served):
    command(served, "on")
    heard = Heard(served.url, EXCHANGE)
    traffic(served.url, "end")
    rows = heard_of(heard, "end")
    assert [key for key, _, _ in rows] == ["publish.traced.e", "publish.", "deliver.traced.q", "deliver.traced.q", "publish.traced.e"]
    for key, headers, _ in rows:
        assert set(headers) == HEADERS[key.partition(".")[0]]
    first, large, got, consumed, _ = rows
    assert first[1]["routed_queues"] == ["traced.q", "other.q"] and first[2] == b"first"
    assert first[1]["properties"] == {"content_type": "text/plain", "headers": {"h": 1, "CC": ["k.c"]}}
    assert first[1]["routing_keys"] == ["k.a", "k.c"] and first[1]["user"] == "guest" and first[1]["channel"] == 1
    assert large[2] == consumed[2] == LARGE and got[2] == b"first" and got[1]["redelivered"] == 0
    command(served, "off")
    traffic(served.url, "unheard")
    command(served, "on")
    traffic(served.url, "again")
    assert all(row[1]["routing_keys"] != ["unheard"] for row in heard_of(heard, "again"))
    command(served, "off")
    heard.close()


def test_of_one_exchange_or_one_queue(served):
    command(served, "on", "--exchange", "traced.e")
    heard = Heard(served.url, EXCHANGE)
    traffic(served.url, "end")
    assert [key for key, _, _ in heard_of(heard, "end")] == ["publish.traced.e"] * 2
    command(served, "on", "--queue", "traced.q", "--exchange", "none")
    traffic(served.url, "unheard")
    assert [row[0].routing_key for row in heard.messages("deliver.traced.q")] == ["deliver.traced.q"]
    command(served, "off")
    heard.close()


def test_the_api_turns_it_on_and_says_so(served, api):
    for wanted in (True, False):
        api.do("PUT", "/vhosts/%2F", {"tracing": wanted}, 204)
        assert api.get("/vhosts/%2F")["tracing"] is wanted
    assert Api(served.http_port, "watcher").call("PUT", "/api/vhosts/%2F", {"tracing": True})[0] == 401


def test_off_again_messages_take_the_fast_way(served):
    """No copy comes, and what was put over the broker's functions is gone."""
    command(served, "on")
    command(served, "off")
    heard = Heard(served.url, EXCHANGE)
    traffic(served.url, "end")
    assert heard.channel.basic_get(heard.queue)[0] is None
    heard.close()


def test_what_an_operator_does_over_http_is_copied(served, api):
    command(served, "on")
    heard = Heard(served.url, EXCHANGE)
    api.put_queue("traced.h")
    api.publish("traced.h", "by an operator")
    assert api.messages("traced.h")[0]["payload"] == "by an operator"
    rows = heard.messages("deliver.traced.h")
    assert [(method.routing_key, body) for method, _, body in rows] == [
        ("publish.", b"by an operator"),
        ("deliver.traced.h", b"by an operator"),
    ]
    for method, properties, _ in rows:
        assert set(properties.headers) == HEADERS[method.routing_key.partition(".")[0]]
        assert (properties.headers["connection"], properties.headers["channel"], properties.headers["user"]) == ("management", 0, "guest")
    command(served, "off")
    api.do("DELETE", "/queues/%2F/traced.h")
    heard.close()

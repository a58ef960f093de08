"""What the API shows and changes, on a broker with a real client beside it; and that changes are durable when they are answered."""

import base64
import json
from urllib.parse import quote

import pika
import pytest
from api import Api, Served, queue

from leveret.ports.http import changes, listing
from leveret.ports.http.answers import Refused


@pytest.fixture
def client(served):
    connection = pika.BlockingConnection(pika.URLParameters(served.url))
    yield connection
    if connection.is_open:
        connection.close()


def test_the_overview_and_the_node_say_what_there_is(served, api):
    told = api.get("/overview")
    assert told["object_totals"].keys() == {"channels", "connections", "consumers", "exchanges", "queues"}
    assert {each["protocol"] for each in told["listeners"]} == {"amqp", "http"} and told["contexts"][0]["port"] == str(served.http_port)
    node = api.get("/nodes")[0]
    assert node["name"] == told["node"] and node["name"].startswith("rabbit@") and node["running"]
    assert node["mem_used"] > 1 << 20 and node["fd_used"] > 3 and node["uptime"] > 0
    assert api.get("/nodes/" + node["name"])["name"] == node["name"] and api.get("/nodes/rabbit@nowhere", 404)
    assert api.get(f"/nodes/{node['name']}/memory")["memory"]["total"]["rss"] > 1 << 20
    assert {row["name"] for row in api.get("/leveret/limits")} > {"arena_size", "queue_count_max", "memory_max"}
    assert api.get("/leveret/status")["counters"]["connections"] >= 1


def test_a_queue_is_declared_looked_at_and_deleted(api):
    api.put_queue("calls.q", arguments={"x-max-length": 5}, durable="true")
    api.put_queue("calls.q", status=204, arguments={"x-max-length": 5}, durable=True)
    told = api.do("PUT", queue("calls.q"), {"durable": False, "arguments": {"x-max-length": 5}}, 400)
    assert told == {
        "error": "bad_request",
        "reason": "inequivalent arg 'durable' for queue 'calls.q' in vhost '/': received 'false' but current is 'true'",
    }
    row = api.get(queue("calls.q"))
    assert (row["name"], row["type"], row["arguments"], row["durable"]) == ("calls.q", "classic", {"x-max-length": 5}, True)
    assert api.publish("calls.q", "one") and not api.publish("calls.no", "one")
    assert api.get(queue("calls.q"))["messages"] == 1
    assert api.do("DELETE", queue("calls.q") + "?if-empty=true", None, 400)["reason"].endswith("not empty")
    api.do("DELETE", queue("calls.q") + "?if-unused=true")
    assert api.get(queue("calls.q"), 404) and api.do("DELETE", queue("calls.q"), None, 404)


def test_what_basic_get_has_taken_is_in_every_count(api, client):
    """Of the channel, of the queue and of the broker; what the API itself gets counts as well, as in RabbitMQ."""
    before = api.get("/overview")["message_stats"]
    channel = client.channel()
    channel.queue_declare("calls.got")
    for _ in range(6):
        channel.basic_publish("", "calls.got", b"x")
    for no_ack in (True, False, False, True, False):
        channel.basic_get("calls.got", auto_ack=no_ack)
    channel.basic_ack(2)
    channel.queue_declare("calls.got", passive=True)
    given = {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}
    assert len(api.do("POST", queue("calls.got") + "/get", given, 200)) == 1
    (row,) = [each for each in api.get("/channels") if each["messages_unacknowledged"]]
    assert (row["messages_unacknowledged"], row["message_stats"]["deliver_get"], row["message_stats"]["ack"]) == (2, 5, 3)
    assert api.get(queue("calls.got"))["messages_unacknowledged"] == 2
    after = api.get("/overview")["message_stats"]
    counted = {name: after[name] - before[name] for name in ("deliver_get", "get", "get_no_ack")}
    assert counted == {"deliver_get": 6, "get": 4, "get_no_ack": 2}
    text = api.call("GET", "/metrics")[2].decode()
    assert f'rabbitmq_global_messages_delivered_get_auto_ack_total{{protocol="amqp"}} {after["get_no_ack"]}' in text
    assert f'rabbitmq_global_messages_delivered_total{{protocol="amqp"}} {after["deliver_get"]}' in text
    channel.queue_delete("calls.got")


def test_a_queue_of_the_api_is_of_the_type_that_it_names_and_belongs_to_no_connection(api, client):
    """RabbitMQ's `queue_type` beside the arguments; x-queue-type in these comes first."""
    for name, given, kind in (
        ("calls.stream", {"queue_type": "stream"}, "stream"),
        ("calls.both", {"queue_type": "quorum", "arguments": {"x-queue-type": "stream"}}, "stream"),
        ("calls.empty", {"queue_type": ""}, "classic"),
    ):
        api.put_queue(name, durable=True, **given)
        row = api.get(queue(name))
        assert (row["type"], row["exclusive"], row["auto_delete"]) == (kind, False, False)
        assert client.channel().queue_declare(name, passive=True).method.message_count == 0
        api.do("DELETE", queue(name))
    assert "has a name" in api.do("PUT", "/queues/%2F/%0A", {}, 400)["reason"]


def test_an_exchange_has_the_flags_that_it_was_declared_with(api, client):
    for number in range(8):
        given = dict(zip(("durable", "auto_delete", "internal"), (bool(number & bit) for bit in (1, 2, 4))))
        path = "/exchanges/%2F/calls.flags"
        api.do("PUT", path, {"type": "fanout", **given}, 201)
        api.do("PUT", path, {"type": "fanout", **given}, 204)
        row = api.get(path)
        assert row["type"] == "fanout" and {name: row[name] for name in given} == given
        assert client.channel().exchange_declare("calls.flags", passive=True)
        api.do("DELETE", path)
    api.do("PUT", "/exchanges/%2F/calls.flags", {}, 201)
    assert api.get("/exchanges/%2F/calls.flags")["type"] == "direct"


def test_who_may_not_configure_makes_and_removes_nothing(served, api):
    """The permissions that 0-9-1's methods need: RabbitMQ's answer is 401 with the words of 403 ACCESS_REFUSED."""
    viewer = Api(served.http_port, "viewer")
    api.put_queue("calls.others")
    api.do("PUT", "/exchanges/%2F/calls.others", {"type": "fanout"}, 201)
    api.do("POST", "/bindings/%2F/e/calls.others/q/calls.others", {"routing_key": "k"}, 201)
    for method, path, body in (
        ("PUT", "/queues/%2F/calls.new", {}),
        ("PUT", "/exchanges/%2F/calls.new", {"type": "fanout"}),
        ("DELETE", "/exchanges/%2F/calls.others", None),
        ("POST", "/bindings/%2F/e/calls.others/q/calls.others", {"routing_key": "l"}),
        ("DELETE", "/bindings/%2F/e/calls.others/q/calls.others/k", None),
    ):
        assert "ACCESS_REFUSED" in viewer.do(method, path, body, 401)["reason"], (method, path)
    told = api.get("/bindings/%2F/e/calls.others/q/calls.others")
    assert [row["routing_key"] for row in told] == ["k"] and api.get("/queues/%2F/calls.new", 404)
    for path in ("/queues/%2F/calls.others", "/exchanges/%2F/calls.others"):
        for caller in (Api(served.http_port, "watcher"), api):  # without permissions nobody enters the virtual host
            status = 401 if caller is not api else 204
            caller.do("DELETE", path, None, status)


@pytest.mark.parametrize("name", ["a/b", "a b", "é☃", '<script>alert("x")</script>', "%2F", "a+b", "..", "a?b#c", "'", "q" * 255])
def test_names_that_look_like_something_else(api, name):
    api.put_queue(name)
    assert api.get(queue(name))["name"] == name
    assert name in [row["name"] for row in api.get("/queues/%2F?columns=name")]
    api.do("PUT", "/exchanges/%2F/" + quote(name, ""), {"type": "topic"}, 201)
    path = f"/bindings/%2F/e/{quote(name, '')}/q/{quote(name, '')}"
    status, headers, _ = api.call("POST", "/api" + path, {"routing_key": name[:200] + "~#", "arguments": {"a": 1}})
    assert status == 201
    place = path.rpartition("/")[0] + "/" + headers["location"]  # relative to the path of the request
    (row,) = api.get(path)
    assert row["routing_key"] == name[:200] + "~#"
    assert api.get(place) == row
    assert api.publish(name, "hej") and api.messages(name, "ack_requeue_false")[0]["payload"] == "hej"
    api.do("DELETE", place)
    assert api.get(path) == []
    api.do("DELETE", "/exchanges/%2F/" + quote(name, ""))
    api.do("DELETE", queue(name))


@pytest.mark.parametrize(
    "mode, left, redelivered",
    [("ack_requeue_true", 3, True), ("reject_requeue_true", 3, True), ("ack_requeue_false", 1, None), ("reject_requeue_false", 1, None)],
)
def test_get_takes_or_gives_back(api, mode, left, redelivered):
    api.put_queue("calls.get")
    for body in ("one", "two", "three"):
        api.publish("calls.get", body, headers={"x": [1, {"y": None}]}, delivery_mode=2, content_type="text/plain")
    told = api.messages("calls.get", mode, 2)
    assert [(each["payload"], each["redelivered"], each["message_count"]) for each in told] == [("one", False, 2), ("two", False, 1)]
    assert told[0]["properties"] == {"headers": {"x": [1, {"y": None}]}, "delivery_mode": 2, "content_type": "text/plain"}
    assert api.get(queue("calls.get"))["messages_ready"] == left
    if redelivered:
        assert [(each["payload"], each["redelivered"]) for each in api.messages("calls.get")] == [
            ("one", True),
            ("two", True),
            ("three", False),
        ]
    api.do("DELETE", queue("calls.get"))


def test_who_only_looks_loses_nothing(api):
    """The page's mode: RabbitMQ's ack_requeue_true counts as a delivery that has failed."""
    assert b'ackmode: "release"' in api.call("GET", "/views.js")[2]
    api.put_queue("calls.looked", arguments={"x-delivery-limit": 2})
    api.publish("calls.looked", "one")
    for _ in range(5):
        (told,) = api.messages("calls.looked", "release")
        assert (told["payload"], told["redelivered"]) == ("one", False)
    assert [len(api.messages("calls.looked")) for _ in range(4)] == [1, 1, 1, 0]


def test_rejected_messages_go_to_the_dead_letter_exchange(api):
    api.put_queue("calls.dead")
    api.put_queue("calls.dlx", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "calls.dead"})
    api.publish("calls.dlx", "gone")
    api.messages("calls.dlx", "reject_requeue_false")
    (told,) = api.messages("calls.dead", "ack_requeue_false")
    assert told["payload"] == "gone" and told["properties"]["headers"]["x-death"][0]["reason"] == "rejected"


def test_bodies_that_are_no_text_and_cut_ones(api):
    api.put_queue("calls.octets")
    given = {
        "properties": {},
        "routing_key": "calls.octets",
        "payload": base64.b64encode(bytes(range(256))).decode(),
        "payload_encoding": "base64",
    }
    assert api.do("POST", "/exchanges/%2F/amq.default/publish", given, 200) == {"routed": True}
    (told,) = api.messages("calls.octets")
    assert told["payload_encoding"] == "base64" and base64.b64decode(told["payload"]) == bytes(range(256))
    (told,) = api.messages("calls.octets", truncate=10)
    assert told["payload_bytes"] == 256 and told["payload"] == bytes(range(10)).decode()
    api.do("DELETE", queue("calls.octets") + "/contents")
    assert api.get(queue("calls.octets"))["messages"] == 0


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"properties": 1, "routing_key": "q", "payload": "", "payload_encoding": "string"},
        {"properties": {"nosuch": 1}, "routing_key": "q", "payload": "", "payload_encoding": "string"},
        {"properties": {"priority": 300}, "routing_key": "q", "payload": "", "payload_encoding": "string"},
        {"properties": {"headers": {"a": 1 << 70}}, "routing_key": "q", "payload": "", "payload_encoding": "string"},
        {"properties": {"headers": {"a" * 300: 1}}, "routing_key": "q", "payload": "", "payload_encoding": "string"},
        {"properties": {"user_id": "other"}, "routing_key": "q", "payload": "", "payload_encoding": "string"},
        {"properties": {}, "routing_key": "q" * 256, "payload": "", "payload_encoding": "string"},
        {"properties": {}, "routing_key": 7, "payload": "", "payload_encoding": "string"},
        {"properties": {}, "routing_key": "q", "payload": "!", "payload_encoding": "base64"},
        {"properties": {}, "routing_key": "q", "payload": "", "payload_encoding": "rot13"},
    ],
)
def test_a_publish_that_makes_no_sense_is_refused(api, given):
    assert api.do("POST", "/exchanges/%2F/amq.direct/publish", given, 400)["error"] == "bad_request"


def test_lists_are_filtered_sorted_cut_and_reduced(api):
    for at in range(25):
        api.put_queue(f"list.{at:02}")
    for _ in range(3):
        api.publish("list.07", "x")
    told = api.get("/queues?page=2&page_size=10&name=%5Elist%5C.&use_regex=true&columns=name")
    assert (told["page"], told["page_count"], told["filtered_count"], told["item_count"]) == (2, 3, 25, 10)
    assert told["items"] == [{"name": f"list.{at:02}"} for at in range(10, 20)]
    told = api.get("/queues?sort=messages&sort_reverse=true&columns=name,messages,message_stats.publish_details.rate")
    assert told[0] == {"name": "list.07", "messages": 3, "message_stats": {"publish_details": {"rate": 0.0}}}
    assert api.get("/queues?page=9&page_size=10", 400) and api.get("/queues?page=x", 400) and api.get("/queues?page=1&page_size=501", 400)
    assert api.get("/queues?name=(&use_regex=true&page=1", 400)["error"] == "bad_request"
    assert [row["name"] for row in api.get("/queues?name=LIST.1&page=1")["items"]] == [f"list.{at}" for at in range(10, 20)]


def test_connections_channels_and_consumers_of_a_real_client(served, api, client):
    channel = client.channel()
    channel.basic_qos(prefetch_count=7)
    channel.confirm_delivery()
    api.put_queue("calls.consumed")
    channel.basic_consume("calls.consumed", lambda *_: None, consumer_tag="tag")
    name = client._impl.params.host  # the peer's own port is in its name
    rows = api.get("/connections")
    assert [row["user"] for row in rows] == ["guest"] and rows[0]["protocol"] == "AMQP 0-9-1" and name in rows[0]["peer_host"]
    path = "/connections/" + quote(rows[0]["name"], "")
    assert api.get(path)["channels"] == 1 and api.get(path)["state"] == "running"
    (told,) = api.get(path + "/channels")
    assert (told["number"], told["prefetch_count"], told["confirm"], told["consumer_count"]) == (1, 7, True, 1)
    assert api.get("/channels/" + quote(told["name"], ""))["consumer_details"][0]["consumer_tag"] == "tag"
    (consumer,) = api.get("/consumers/%2F")
    assert consumer["queue"] == {"name": "calls.consumed", "vhost": "/"} and consumer["ack_required"] and consumer["prefetch_count"] == 7
    assert api.get(queue("calls.consumed"))["consumer_details"] == [consumer]
    client.channel().basic_consume("calls.consumed", lambda *_: None, consumer_tag="any")
    assert {row["consumer_tag"]: row["prefetch_count"] for row in api.get("/consumers/%2F")} == {"tag": 7, "any": 0}, "0: no limit"
    assert [row["name"] for row in api.get("/connections/username/guest")] == [rows[0]["name"]]
    assert Api(served.http_port, "viewer").get("/connections") == []
    assert Api(served.http_port, "viewer").get(path, 401)
    assert len(Api(served.http_port, "watcher").get("/connections")) == 1


def test_a_connection_is_closed_from_here(api, client):
    rows = api.get("/connections")
    status, _, _ = api.call("DELETE", "/api/connections/" + quote(rows[0]["name"], ""), headers={"X-Reason": "enough"})
    assert status == 204
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as told:
        client.process_data_events(10)
        client.channel()
    assert told.value.reply_code == 320 and "enough" in told.value.reply_text
    assert api.get("/connections") == []


def test_others_connections_are_closed_by_administrators_alone(served, api, client):
    """RabbitMQ's "Monitors can see other users' and delete their own. Admins can do it all" (rabbit_web_dispatch_access_control)."""
    (row,) = api.get("/connections")
    for user in ("watcher", "viewer", "maker"):
        caller = Api(served.http_port, user)
        for path in ("/connections/" + quote(row["name"], ""), "/connections/username/guest"):
            assert caller.do("DELETE", path, None, 401)["error"] == "not_authorised"
    client.process_data_events(0.2)
    assert [each["name"] for each in api.get("/connections")] == [row["name"]]
    Api(served.http_port, "watcher").do("DELETE", "/connections/username/watcher")
    api.do("DELETE", "/connections/username/guest")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="320"):
        client.process_data_events(5)
    assert api.get("/connections") == []


def test_an_argument_that_json_cannot_write_does_not_end_the_list(api, client):
    channel = client.channel()
    channel.exchange_declare("calls.odd", arguments={"x": b"\xff"})
    channel.queue_declare("calls.odd", arguments={"x": b"\xff"})
    channel.queue_bind("calls.odd", "calls.odd", "k", {"x": b"\xff"})
    for path in ("/exchanges/%2F/", "/queues/%2F/", "/bindings/%2F/e/calls.odd/q/"):
        if "bindings" in path:
            assert api.call("POST", "/api" + path + "calls.large", b'{"arguments": {"x": 1e999}}')[0] == 201
        else:
            assert api.call("PUT", "/api" + path + "calls.large", b'{"arguments": {"x": 1e999}}')[0] == 201
    for path in ("/exchanges", "/queues", "/bindings"):
        _, _, body = api.call("GET", "/api" + path)
        rows = json.loads(body, parse_constant=pytest.fail)
        shown = {row.get("name") or row["destination"]: row["arguments"] for row in rows if row["arguments"]}
        assert (shown["calls.odd"], shown["calls.large"]) == ({"x": "\ufffd"}, {"x": "inf"}), path
    assert api.get("/exchanges/%2F/calls.odd")["arguments"] == {"x": "\ufffd"}


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("PUT", "/queues/%2F/calls.n", b'{"arguments": {"x": NaN}}'),
        ("PUT", "/users/calls.n", b'{"password": "\\ud800", "tags": ""}'),
        ("PUT", "/users/calls.n", b'{"password": "a", "tags": "\\ud800"}'),
        ("POST", "/bindings/%2F/e/amq.topic/q/calls.n", b'{"routing_key": "\\ud800"}'),
        (
            "POST",
            "/exchanges/%2F/amq.default/publish",
            b'{"routing_key": "\\ud800", "properties": {}, "payload": "", "payload_encoding": "string"}',
        ),
        (
            "POST",
            "/exchanges/%2F/amq.default/publish",
            b'{"routing_key": "a", "properties": {}, "payload": "\\ud800", "payload_encoding": "string"}',
        ),
    ],
)
def test_what_is_no_text_and_no_number_is_refused(api, method, path, body):
    assert api.do(method, path, body, 400)["error"] == "bad_request"


def test_millions_of_values_hold_nobody_up_and_long_texts_are_no_values(api):
    given = b'{"arguments": {"x": [' + b"[]," * 1000000 + b"[]]}}"
    assert api.do("PUT", queue("calls.values"), given, 413)["error"] == "content_too_large"
    api.put_queue("calls.values")
    body = '{"a": [1, "\\"]},' * 60000
    assert api.publish("calls.values", body)
    assert api.messages("calls.values")[0]["payload"] == body


def test_a_get_has_4_mib_with_the_properties_and_is_held_piece_by_piece(api, client):
    api.put_queue("calls.headers")
    headers = {f"h{at}": "y" * 200 for at in range(100)}
    channel = client.channel()
    for _ in range(250):
        channel.basic_publish("", "calls.headers", b"", pika.BasicProperties(headers=headers))
    channel.queue_declare("calls.headers", passive=True)  # its answer comes behind them
    got = api.messages("calls.headers", count=1000)
    assert 150 < len(got) < 250 and got[0]["properties"]["headers"] == headers
    assert [each["message_count"] for each in got] == list(range(249, 249 - len(got), -1))


def test_what_a_get_holds_is_counted_until_it_has_gone():
    class Counting:
        body_size = 0

    for count in (0, 1, 10, 25):
        rows = [b'{"a":%d}' % at for at in range(count)]
        held = listing.Held(Counting, 100)
        assert Counting.body_size == 100
        made = changes.pieces(list(rows), held)
        del held
        octets, sizes = b"", []
        for piece in made:
            octets += piece
            sizes.append(Counting.body_size)
        assert json.loads(octets) == [{"a": at} for at in range(count)] and (count < 11 or sizes[0] > sizes[1])
        del made
        assert Counting.body_size == 0
    made = changes.pieces([b"1"], listing.Held(Counting, 100))  # nobody takes it
    assert Counting.body_size == 100
    del made
    assert Counting.body_size == 0


def test_a_long_list_is_gathered_in_turns_and_counted_until_it_has_gone():
    class Caller:
        query = {}

        class server:
            body_size, bodies_max = 0, listing.SUBJECT_SIZE * 2000

        class broker:
            uptime_ms = 0

    subjects = [(f"{at:04}", at) for at in range(1500)]

    def listed():
        return listing.answer(Caller, listing.Listed(iter(subjects), lambda at: {"at": at}, len(subjects)))

    def ended(work):
        turns = 0
        while True:
            try:
                next(work)
                turns += 1
            except StopIteration as end:
                return turns, end.value

    turns, made = ended(listed())
    assert turns >= 3 and Caller.server.body_size == listing.SUBJECT_SIZE * 1500
    second = listed()
    next(second)
    assert Caller.server.body_size == listing.SUBJECT_SIZE * 1500  # it waits
    assert json.loads(b"".join(made.body)) == [{"at": at} for at in range(1500)]
    del made
    assert Caller.server.body_size == 0
    assert b"".join(ended(second)[1].body).count(b"at") == 1500
    third, last = listed(), ended(listed())
    next(third)
    Caller.broker.uptime_ms = listing.WAIT_MS + 1
    with pytest.raises(Refused):
        ended(third)
    assert last[0] >= 3


def test_messages_are_moved_to_another_queue(served, api):
    """As they are, in order; what the other queue refuses stays; streams, one's own queue and what is not there are refused."""
    path = "/leveret/queues/%2F/move.a/move"
    api.put_queue("move.a", durable=True)
    api.put_queue("move.b", durable=True, arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    api.put_queue("move.s", durable=True, arguments={"x-queue-type": "stream"})
    for number in range(5):
        api.publish("move.a", str(number))
    assert api.do("POST", path, {"to": "move.b", "count": 1}, 200) == {"moved": 1, "left": 4}
    refused = {"moved": 2, "left": 2, "reason": "queue 'move.b' has no room for more, or refuses one"}
    assert api.do("POST", path, {"to": "move.b"}, 200) == refused
    assert (
        api.do("POST", path, {"to": "move.s"}, 200) == {"moved": 2, "left": 0} == api.do("POST", path, {"to": "move.s"}, 200) | {"moved": 2}
    )
    got = api.do("POST", queue("move.b") + "/get", {"count": 9, "ackmode": "ack_requeue_false", "encoding": "auto"}, 200)
    assert [(row["payload"], row["redelivered"]) for row in got] == [("0", False), ("1", False), ("2", False)]
    for wrong, status in (({"to": "move.a"}, 400), ({"to": "nosuch"}, 404), ({}, 400), ({"to": "move.b", "count": -1}, 400)):
        assert api.do("POST", path, wrong, status), wrong
    assert "a stream keeps its own" in api.do("POST", path.replace("move.a", "move.s"), {"to": "move.a"}, 400)["reason"]
    assert api.do("POST", path.replace("move.a", "nosuch"), {"to": "move.a"}, 404)
    for name in ("move.a", "move.b", "move.s"):
        api.do("DELETE", queue(name))


def test_a_file_of_definitions_has_a_name_of_ascii(api):
    _, headers, body = api.call("GET", "/api/definitions?download=" + quote("é\r\nx: y.json"))
    assert headers["content-disposition"] == 'attachment; filename="___x__y.json"' and json.loads(body)


def test_what_this_broker_has_not_is_listed_empty_and_refused(api):
    for path in (
        "/parameters",
        "/parameters/shovel",
        "/vhost-limits",
        "/user-limits",
        "/shovels",
    ):
        assert api.get(path) == []
    assert "component shovel not found" in api.do("PUT", "/parameters/shovel/%2F/x", {"value": {}}, 400)["reason"]
    assert api.do("PUT", "/vhosts/other", {}, 400)["reason"].startswith("this broker has")
    assert api.get("/vhosts/other", 404) and api.do("DELETE", "/vhosts/%2F", None, 400) and api.do("PUT", "/vhosts/%2F", {}, 204) is None
    assert [row["name"] for row in api.get("/vhosts")] == ["/"]


def test_health(served, api):
    assert api.get("/aliveness-test/%2F") == {"status": "ok"}
    assert api.get("/health/checks/alarms") == {"status": "ok"}
    assert api.get(f"/health/checks/port-listener/{served.port}") == {"status": "ok", "port": served.port}
    told = api.get("/health/checks/port-listener/1", 503)
    assert (told["status"], told["missing"], sorted(told["ports"])) == ("failed", 1, sorted((served.port, served.http_port)))
    assert api.get("/health/checks/protocol-listener/amqp")["status"] == "ok"
    assert api.get("/health/checks/protocol-listener/nosuch", 503)["missing"] == "nosuch"
    for name in (
        "local-alarms",
        "virtual-hosts",
        "node-is-mirror-sync-critical",
        "node-is-quorum-critical",
        "certificate-expiration/1/days",
    ):
        assert api.get("/health/checks/" + name)["status"] == "ok"


def test_definitions_go_out_and_come_in_again(api):
    api.put_queue("defs.q", arguments={"x-max-length": 9}, durable=True)
    api.do("PUT", "/exchanges/%2F/defs.e", {"type": "headers", "durable": True}, 201)
    api.do("POST", "/bindings/%2F/e/defs.e/q/defs.q", {"routing_key": "k", "arguments": {"x-match": "all", "a": 1}}, 201)
    document = api.get("/definitions")
    assert {"users", "vhosts", "permissions", "policies", "queues", "exchanges", "bindings", "rabbit_version"} <= document.keys()
    hosted = api.get("/definitions/%2F")
    assert (
        "users" not in hosted
        and {"name": "defs.q", "durable": True, "auto_delete": False, "type": "classic", "arguments": {"x-max-length": 9}}
        in hosted["queues"]
    )
    api.do("DELETE", queue("defs.q"))
    api.do("DELETE", "/exchanges/%2F/defs.e")
    api.do("POST", "/definitions/%2F", hosted)
    assert api.get("/bindings/%2F/e/defs.e/q/defs.q")[0]["arguments"] == {"x-match": "all", "a": 1}
    boundary = "x123"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="d.json"\r\n\r\n{json.dumps(hosted)}\r\n--{boundary}--\r\n'
    )
    assert api.call("POST", "/api/definitions", body.encode(), {"Content-Type": "multipart/form-data; boundary=" + boundary})[0] == 204
    left = api.do("POST", "/definitions", {"queues": [{"name": "defs.q", "durable": True}, {"name": 7}], "parameters": [{}]}, 400)
    assert "component None not found" in left["reason"]
    left = api.do("POST", "/definitions", {"queues": [{"name": "defs.r", "durable": True}, {"name": 7}]}, 200)
    assert len(left["left_out"]) == 1
    assert api.do("POST", "/definitions", {"queues": 7}, 400)


def test_what_was_answered_is_there_after_kill_9(configured, tmp_path):
    process = Served("--config", configured, "--data", str(tmp_path / "data"))
    api = Api(process.http_port, "guest")
    api.put_queue("kept", durable=True)
    assert api.publish("kept", "kept", delivery_mode=2)
    api.do("PUT", "/users/kept", {"password": "kept", "tags": "management"}, 201)
    api.do("PUT", "/policies/%2F/kept", {"pattern": "^kept$", "definition": {"max-length": 7}}, 201)
    process.process.kill()
    process.process.wait()
    process.stop()
    process = Served("--config", configured, "--data", str(tmp_path / "data"))
    try:
        api = Api(process.http_port, "guest")
        assert api.get(queue("kept"))["policy"] == "kept"
        assert [each["payload"] for each in api.messages("kept", "ack_requeue_false")] == ["kept"]
        assert Api(process.http_port, "kept").get("/whoami")["name"] == "kept"
    finally:
        process.stop()

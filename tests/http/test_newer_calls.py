"""Requests of RabbitMQ 4.x, which Debian's 3.10 does not know, and what the system tells of connections: socket and TLS."""

import http.client
import ssl
import time

import pika
from api import Api, Served, queue
from certificates import Authority


def test_a_hash_that_was_asked_for_is_a_password(served, api):
    """GET /api/auth/hash_password/PASSWORD."""
    hashed = api.get("/auth/hash_password/se%2Fcret%20%C3%A9")["ok"]
    api.do("PUT", "/users/hashed", {"password_hash": hashed, "tags": "management"}, 201)
    assert Api(served.http_port, "hashed", "se/cret é").get("/whoami")["name"] == "hashed"
    assert api.get("/users/hashed")["password_hash"] == hashed
    api.do("DELETE", "/users/hashed")


def test_queues_of_a_user_are_the_exclusive_ones(served, api):
    connection = pika.BlockingConnection(pika.URLParameters(served.url))
    connection.channel().queue_declare("newer.own", exclusive=True)
    api.put_queue("newer.other")
    assert [row["name"] for row in api.get("/users/guest/queues")] == ["newer.own"]
    assert api.get("/users/viewer/queues") == []
    connection.close()
    api.do("DELETE", queue("newer.other"))


def test_health_checks_of_a_cluster_are_well(api):
    for path in (
        "below-node-connection-limit",
        "reached-target-cluster-size",
        "metadata-store/initialized",
        "metadata-store/initialized/with-data",
        "quorum-queues-without-elected-leaders/all-vhosts",
        "quorum-queues-without-elected-leaders/all-vhosts/pattern/.*",
        "quorum-queues-without-elected-leaders/vhost/%2F",
        "quorum-queues-without-elected-leaders/vhost/%2F/pattern/.*",
    ):
        assert api.get("/health/checks/" + path) == {"status": "ok"}
    assert api.get("/health/checks/quorum-queues-without-elected-leaders/vhost/nosuch", 404)
    assert api.get("/health/checks/protocol-listener/mqtt,amqp1.0") == {"status": "ok", "protocol": "amqp"}
    assert api.get("/health/checks/protocol-listener/mqtt,stomp", 503)["missing"] == "mqtt,stomp"


def test_the_place_of_the_last_connection_is_seen_by_the_health_check(tmp_path):
    config = tmp_path / "leveret.toml"
    config.write_text("[limits]\nconnection_count_max = 2\n")
    process = Served("--config", str(config))
    connections = []
    try:
        api = Api(process.http_port, "guest")
        for told in (200, 200, 503):
            assert api.get("/health/checks/below-node-connection-limit", told)
            if len(connections) < 2:
                connections.append(pika.BlockingConnection(pika.URLParameters(process.url)))
        assert api.get("/health/checks/below-node-connection-limit", 503)["limit"] == 2
    finally:
        for connection in connections:
            connection.close()
        process.stop()


def test_parts_of_the_memory_come_to_the_whole(api):
    node = api.get("/overview")["node"]
    shares = api.get(f"/nodes/{node}/memory/relative")["memory"]
    assert shares.pop("total") == 100 and 100 <= sum(shares.values()) <= 102  # each is rounded up
    parts = api.get(f"/nodes/{node}/memory")["memory"]
    total = parts.pop("total")
    assert sum(value for value in parts.values() if isinstance(value, int)) == total["rss"]


def test_a_reset_forgets_what_was_counted_for_charts_and_log_ins(served, api):
    node = api.get("/overview")["node"]
    while not api.get("/overview?lengths_age=60&lengths_incr=5")["queue_totals"]["messages_details"].get("samples"):
        time.sleep(0.2)
    api.do("DELETE", "/reset")
    assert "samples" not in api.get("/overview?lengths_age=60&lengths_incr=5")["queue_totals"]["messages_details"]
    api.do("DELETE", "/reset/" + node)
    assert api.get("/auth/attempts/" + node)[0]["auth_attempts"] > 0
    api.do("DELETE", "/auth/attempts/" + node)
    assert api.get("/auth/attempts/" + node)[0]["auth_attempts"] == 0
    assert api.do("DELETE", "/reset/nosuch", None, 404) and Api(served.http_port, "viewer").do("DELETE", "/reset", None, 401)


def test_one_sees_ones_own_limits_and_an_administrator_all(served, api):
    assert Api(served.http_port, "viewer").get("/user-limits/viewer") == []
    assert Api(served.http_port, "viewer").get("/user-limits/guest", 401)["reason"] == "User not authorised to access object"
    assert Api(served.http_port, "viewer").get("/user-limits", 401)
    assert api.get("/user-limits/viewer") == []


def test_the_consumer_of_a_queue_with_one_active_consumer(served, api):
    """What RabbitMQ calls them, and the arguments that they still go by."""
    connection = pika.BlockingConnection(pika.URLParameters(served.url))
    channel = connection.channel()
    channel.queue_declare("newer.single", arguments={"x-single-active-consumer": True})
    channel.queue_declare("newer.stream", durable=True, arguments={"x-queue-type": "stream"})
    for tag, arguments in (("one", {}), ("two", {"x-priority": -3})):
        channel.basic_consume("newer.single", lambda *_: None, consumer_tag=tag, arguments=arguments)
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(
        "newer.stream", lambda *_: None, consumer_tag="of", arguments={"x-stream-filter": ["a", "b"], "x-stream-match-unfiltered": True}
    )
    rows = {row["consumer_tag"]: row for row in api.get("/consumers")}
    assert [rows[tag]["activity_status"] for tag in ("one", "two", "of")] == ["single_active", "waiting", "up"]
    assert rows["one"]["arguments"] == {} and rows["two"]["arguments"] == {"x-priority": -3}
    assert rows["of"]["arguments"] == {"x-stream-filter": ["a", "b"], "x-stream-match-unfiltered": True}
    connection.close()
    for name in ("newer.single", "newer.stream"):
        api.do("DELETE", queue(name))


def test_octets_of_a_connection_are_those_of_its_socket(served, api):
    """1 MiB to the broker and back: nothing is counted twice, nothing is missing (each way some frames of the methods more). What was sent
    is counted when the peer's system has acknowledged it, which may come later."""
    connection = pika.BlockingConnection(pika.URLParameters(served.url))
    channel = connection.channel()
    channel.queue_declare("newer.octets", exclusive=True)
    (before,) = api.get("/connections")
    channel.basic_publish("", "newer.octets", bytes(1 << 20))
    while channel.basic_get("newer.octets", True)[0] is None:
        pass
    limit = time.monotonic() + 30
    (after,) = api.get("/connections")
    while after["send_oct"] - before["send_oct"] < 1 << 20 and time.monotonic() < limit:
        time.sleep(0.05)
        (after,) = api.get("/connections")
    for name in ("recv_oct", "send_oct"):
        assert 1 << 20 < after[name] - before[name] < (1 << 20) + 100000, name
        assert "rate" in after[name + "_details"]
    connection.close()


def test_tls_of_a_connection_is_told(tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", "/CN=localhost")
    process = Served("--listen", f"amqps://127.0.0.1:0?cert={certificate}&key={key}")
    try:
        api = Api(process.http_port, "guest")
        port = next(each["port"] for each in api.get("/overview")["listeners"] if each["protocol"] == "amqps")
        for version, exchange in ((ssl.TLSVersion.TLSv1_3, "any"), (ssl.TLSVersion.TLSv1_2, "ecdhe_ecdsa")):
            context = ssl.create_default_context(cafile=authority.certificate)
            context.maximum_version = version
            options = pika.SSLOptions(context, "localhost")
            connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, ssl_options=options))
            (row,) = api.get("/connections")
            assert (row["ssl"], row["ssl_protocol"], row["ssl_key_exchange"]) == (True, version.name.lower().replace("_", "."), exchange)
            assert row["ssl_cipher"].startswith(("aes", "chacha20")) and row["ssl_hash"].startswith(("sha", "poly1305"))
            assert (row["host"], row["port"]) == ("127.0.0.1", port) and row["recv_oct"] > 500
            connection.close()
            while api.get("/connections"):
                time.sleep(0.05)
    finally:
        process.stop()


def test_the_cookie_of_a_log_in_asks_nobody_for_a_password_and_serves_no_other_site(served, api):
    """RFC 6265bis: HttpOnly, SameSite; a change that another site's page asks for is refused though its cookie were sent."""
    status, headers, _ = api.call("POST", "/api/login")
    cookie = headers["set-cookie"]
    assert status == 204 and cookie.endswith("; Path=/api; HttpOnly; SameSite=Strict") and "Secure" not in cookie
    given = {"Authorization": "", "Cookie": cookie.partition(";")[0]}
    assert api.call("GET", "/api/whoami", headers=given)[0] == 200
    assert api.call("PUT", "/api/queues/%2F/newer.site", {}, {**given, "Origin": "http://evil.example"})[0] == 403
    assert api.call("PUT", "/api/queues/%2F/newer.site", {}, {**given, "Sec-Fetch-Site": "cross-site"})[0] == 403
    assert api.call("GET", "/api/queues/%2F/newer.site")[0] == 404
    for more, asks in (({}, True), ({"X-Leveret-Page": "1"}, False)):
        for wrong in ({"Authorization": ""}, {"Authorization": "Basic eDp4"}):
            status, headers, _ = api.call("GET", "/api/whoami", headers={**more, **wrong})
            assert status == 401 and ("www-authenticate" in headers) == asks
    assert api.call("DELETE", "/api/login", headers=given)[0] == 204
    assert api.call("GET", "/api/whoami", headers=given)[0] == 401
    assert Api(served.http_port, "nobody").call("POST", "/api/login")[0] == 401, "without a tag"


def test_the_root_of_the_api_leads_to_the_page(served, api):
    for path in ("/api", "/api/", "/api/index.html"):
        peer = http.client.HTTPConnection("127.0.0.1", served.http_port, timeout=30)
        peer.request("GET", path)
        answer = peer.getresponse()
        assert (answer.status, answer.getheader("location")) == (301, "/")
        peer.close()
    assert api.get("/version") == api.get("/overview")["rabbitmq_version"]

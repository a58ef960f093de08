"""The endpoint: log-ins, limits of size and time, methods, several requests on a connection, TLS."""

import http.client
import json
import socket
import ssl
import time
import zlib

import pytest
from api import Api, Served
from certificates import Authority

from leveret.ports.http import answers, connection, routes, server
from leveret.tools import memory


class Raw:
    """A connection that sends octets as they are."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)

    def send(self, octets):
        self.socket.sendall(octets)

    def read(self):
        """All until the end."""
        octets = b""
        while True:
            piece = self.socket.recv(65536)
            if not piece:
                self.socket.close()
                return octets
            octets += piece


def raw(served, octets):
    peer = Raw(served.http_port)
    peer.send(octets)
    return peer.read()


def head(api, method="GET", path="/api/whoami", more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {api.header}\r\n{more}\r\n".encode()


def test_every_route_asks_for_a_user_but_the_page_and_what_names_the_log_in(served):
    for method, path, tag, _ in routes.ROUTES:
        told = Api(served.http_port, "x")
        told.header = ""
        if method == "GET" and "{" not in path and not path.startswith("/metrics"):
            status, _, _ = told.call(method, path, headers={"Authorization": ""})
            assert (status in (200, 204, 301)) if tag is None else status == 401, (path, status)


def test_no_credentials_is_401_without_a_body_and_a_wrong_password_with_rabbitmqs_words(served, api):
    peer = http.client.HTTPConnection("127.0.0.1", served.http_port, timeout=30)
    peer.request("GET", "/api/whoami")
    answer = peer.getresponse()
    assert (answer.status, answer.read()) == (401, b"")
    assert answer.headers["www-authenticate"] == 'Basic realm="RabbitMQ Management"'
    status, headers, body = Api(served.http_port, "guest", "wrong").call("GET", "/api/whoami")
    assert (status, json.loads(body)) == (401, {"error": "not_authorized", "reason": "Login failed"})
    assert api.get("/whoami") == {"name": "guest", "tags": ["administrator"]}


@pytest.mark.parametrize("header", ["Basic", "Basic !!", "Bearer abc", "Basic " + "A" * 3000, "Basic AAAA", "Basic /////w=="])
def test_a_header_that_is_no_log_in_is_refused(served, header):
    caller = Api(served.http_port, "x")
    caller.header = header
    assert caller.call("GET", "/api/whoami")[0] in (400, 401)


@pytest.mark.parametrize(
    "user, may",
    [
        ("guest", ("/whoami", "/policies", "/nodes", "/users", "/parameters")),
        ("watcher", ("/whoami", "/policies", "/nodes")),
        ("maker", ("/whoami", "/policies", "/parameters")),
        ("viewer", ("/whoami", "/policies")),
        ("nobody", ()),
    ],
)
def test_tags_say_what_a_user_may_see(served, user, may):
    caller = Api(served.http_port, user)
    for path in ("/whoami", "/policies", "/nodes", "/users", "/parameters"):
        status, _, body = caller.call("GET", "/api" + path)
        if path == "/policies" and user == "watcher":
            assert status == 200
        else:
            assert status == (200 if path in may else 401), (user, path, body)


def test_the_page_has_no_inline_script_and_asks_nobody_else(api):
    for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/views.js", "text/javascript"), ("/page.css", "text/css")):
        status, headers, body = api.call("GET", path, headers={"Authorization": ""})
        assert status == 200 and headers["content-type"].startswith(kind)
        assert "script-src 'self'" in headers["content-security-policy"] and "unsafe" not in headers["content-security-policy"]
        text = body.decode()
        assert "innerHTML" not in text and "eval(" not in text and " style=" not in text and " onclick=" not in text
        assert not [word for word in text.split('"') if word.startswith(("http:", "https:")) and "www.w3.org" not in word]


def test_a_page_of_another_site_changes_nothing(served, api):
    for given in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert api.call("PUT", "/api/queues/%2F/csrf", {}, given)[0] == 403
    assert api.get("/queues/%2F/csrf", 404)
    own = {"Origin": f"http://127.0.0.1:{served.http_port}", "Sec-Fetch-Site": "same-origin"}
    assert api.call("PUT", "/api/queues/%2F/own", {}, own)[0] == 201


def test_what_there_is_not_and_what_it_cannot_be_asked(api):
    assert api.get("/nosuch", 404) == {"error": "Object Not Found", "reason": "Not Found"}
    assert api.get("/queues/%2F/nosuch", 404)["error"] == "Object Not Found"
    assert api.get("/queues/other", 404)["error"] == "Object Not Found"
    status, headers, _ = api.call("POST", "/api/overview")
    assert status == 405 and headers["allow"] == "GET, HEAD, OPTIONS"
    status, headers, body = api.call("OPTIONS", "/api/queues/%2F/q")
    assert (status, headers["allow"], body) == (200, "DELETE, GET, HEAD, OPTIONS, PUT", b"")
    status, headers, body = api.call("HEAD", "/api/queues")
    assert (status, body) == (200, b"")


def test_a_body_that_is_no_object_is_not_json(api):
    for body in (b"{", b"[1]", b"\xff", b"[" * 100000, b'"x"'):
        assert json.loads(api.call("PUT", "/api/queues/%2F/bad", body)[2]) == {"error": "bad_request", "reason": "not_json"}


def test_several_requests_on_a_connection_and_in_one_packet(served, api):
    one = head(api)
    octets = raw(served, one * 3 + head(api, more="Connection: close\r\n"))
    assert octets.count(b"HTTP/1.1 200") == 4 and octets.count(b'{"name":"guest"') == 4


def test_what_comes_with_a_request_waits_until_its_answer_has_gone():
    """500 requests in one packet: one of them is answered in one turn, and nothing more is read meanwhile."""
    peer = connection.HttpConnection(server.HttpServer(FakeBroker(), b"secret"), FakeStream())
    feed(peer, b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n" * 500)
    for at in range(500):
        assert bytes(peer.pending()).count(b"HTTP/1.1 404") == 1 and not len(peer.writable()), at
        peer.sent(len(peer.pending()))
        assert not len(peer.pending()) and peer.wants_work()
        peer.work()
    assert not len(peer.pending()) and not peer.wants_work() and len(peer.writable())


def test_a_body_counts_until_its_request_is_answered(served):
    broker = FakeBroker()
    http_server = server.HttpServer(broker, b"secret")
    peer = connection.HttpConnection(http_server, FakeStream())
    feed(peer, b"POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
    peer.user = "somebody"

    def work():
        yield
        return answers.of({})

    http_server.answer = lambda *_: work()
    feed(peer, b"x" * 1000)
    assert http_server.body_size == 1000
    peer.work()
    assert http_server.body_size == 1000
    peer.work()
    assert http_server.body_size == 0 and bytes(peer.pending()).startswith(b"HTTP/1.1 200")


def test_the_whole_address_in_a_request_means_its_path(served, api):
    """RFC 9112 section 3.2.2."""
    assert raw(served, head(api, path="http://x/api/whoami", more="Connection: close\r\n")).startswith(b"HTTP/1.1 200")


def test_octet_by_octet(served, api):
    peer = Raw(served.http_port)
    for octet in head(api, "PUT", "/api/queues/%2F/slowly", "Content-Length: 2\r\nConnection: close\r\n") + b"{}":
        peer.send(bytes((octet,)))
    assert peer.read().startswith(b"HTTP/1.1 201")


def test_a_chunked_body_and_one_that_waits_for_100_continue(served, api):
    chunked = head(api, "PUT", "/api/queues/%2F/chunked", "Transfer-Encoding: chunked\r\nConnection: close\r\n")
    assert raw(served, chunked + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n").startswith(b"HTTP/1.1 201")
    peer = Raw(served.http_port)
    peer.send(head(api, "PUT", "/api/queues/%2F/expected", "Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n"))
    assert peer.socket.recv(100).startswith(b"HTTP/1.1 100")
    peer.send(b"{}")
    assert peer.read().startswith(b"HTTP/1.1 201")


def test_http_1_0_gets_its_answer_and_the_end(served, api):
    octets = raw(served, f"GET /api/queues HTTP/1.0\r\nAuthorization: {api.header}\r\n\r\n".encode())
    assert octets.startswith(b"HTTP/1.1 200") and octets.endswith(b"]")


@pytest.mark.parametrize(
    "octets, status",
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100 + b"\r\n\r\n", 400),
        (b"AMQP\x00\x00\x09\x01\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 40000, 431),
        (b"GET /" + b"y" * 40000, 431),
        (b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"GET /%ff/%2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /api/definitions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", 401),
    ],
    ids="tls,amqp,no host,two hosts,no length,two lengths,long head,long line,large,no text,both lengths,a body of nobody".split(","),
)
def test_octets_that_are_no_request_are_refused_and_the_connection_ends(served, api, octets, status):
    assert raw(served, octets).startswith(b"HTTP/1.1 %d" % status)
    assert api.get("/whoami")


def test_a_body_is_not_read_before_its_user_is_known(served):
    peer = Raw(served.http_port)
    peer.send(head(Api(served.http_port, "guest", "wrong"), "PUT", "/api/queues/%2F/q", "Content-Length: 8000000\r\n"))
    assert b" 401 " in peer.socket.recv(100)


def test_a_list_that_nobody_reads_holds_nobody_up(served, api):
    for at in range(200):
        api.put_queue(f"unread.{at}")
    stalled = Raw(served.http_port)
    stalled.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stalled.send(head(api, path="/api/queues") * 50)
    for _ in range(20):
        assert len(api.get("/queues?columns=name")) >= 200
    stalled.socket.close()


def test_more_connections_than_there_are_places_take_those_of_the_idle(served, api):
    peers = [Raw(served.http_port) for _ in range(server.CONNECTIONS_MAX + 8)]
    for _ in range(5):
        assert api.get("/whoami")
    for peer in peers:
        peer.socket.close()


def test_whose_request_is_at_work_keeps_the_place():
    http_server = server.HttpServer(FakeBroker(), b"secret")
    peers = [connection.HttpConnection(http_server, FakeStream()) for _ in range(server.CONNECTIONS_MAX)]
    for peer in peers:
        peer.user = "somebody"
    peers[0]._work = iter(())
    assert http_server.accept(FakeStream()) is not None
    assert [peer.closed for peer in peers[:3]] == [False, True, False]


def test_a_peer_that_trickles_its_head_is_ended(served):
    broker = FakeBroker()
    http_server = server.HttpServer(broker, b"secret")
    peer = connection.HttpConnection(http_server, FakeStream())
    feed(peer, b"GET / HT")
    broker.now += connection.HEAD_MS + 1
    peer.tick(broker.now)
    assert bytes(peer.pending()).startswith(b"HTTP/1.1 408")
    peer.sent(len(peer.pending()))
    broker.now += connection.LINGER_MS + 1
    peer.tick(broker.now)
    assert peer.closed and not http_server.connections
    idle = connection.HttpConnection(http_server, FakeStream())
    broker.now += connection.IDLE_MS + 1
    idle.tick(broker.now)
    assert idle.closed


def test_a_peer_that_takes_no_answer_is_ended(served):
    broker = FakeBroker()
    peer = connection.HttpConnection(server.HttpServer(broker, b"secret"), FakeStream())
    feed(peer, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    while peer.wants_work():
        peer.work()
    assert len(peer.pending())
    broker.now += connection.STALL_MS + 1
    peer.tick(broker.now)
    assert peer.closed


def test_the_sums_of_memory_and_places_know_of_http():
    assert memory.HTTP == server.MEMORY and memory.HTTP_SLOTS == server.CONNECTIONS_MAX


def test_too_many_wrong_passwords_are_refused_as_over_amqp(configured):
    process = Served("--config", configured)
    try:
        wrong = [Api(process.http_port, "viewer", "wrong").call("GET", "/api/whoami")[0] for _ in range(10)]
        assert wrong == [401] * 10
        assert Api(process.http_port, "viewer").call("GET", "/api/whoami")[0] == 401  # unchecked
        assert "log-ins as 'viewer' from 127.0.0.1 have failed: they are refused" in process.error_text()
        assert Api(process.http_port, "watcher").call("GET", "/api/whoami")[0] == 200
        watcher = Api(process.http_port, "watcher")
        counts = watcher.get("/auth/attempts/" + watcher.get("/overview")["node"])
        assert counts[0]["auth_attempts_failed"] >= 11
    finally:
        process.stop()


def test_over_tls(configured, tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", "/CN=server")
    process = Served("--config", configured, http=f"https://127.0.0.1:0?cert={certificate}&key={key}")
    try:
        context = ssl.create_default_context(cafile=authority.certificate)
        caller = Api(process.http_port, "guest", make=http.client.HTTPSConnection, context=context)
        assert caller.get("/whoami")["name"] == "guest"
        assert caller.get("/overview")["contexts"][0]["protocol"] == "https"
        assert caller.get("/health/checks/certificate-expiration/1/days") == {"status": "ok"}
        assert caller.get("/health/checks/certificate-expiration/900/years", 503)["expired"]
        plain = Raw(process.http_port)
        plain.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            assert b"HTTP" not in plain.read()
        except ConnectionResetError:
            pass
    finally:
        process.stop()


def test_a_connection_that_is_kept_needs_no_second_calculation_of_its_password(api):
    began = time.process_time()
    peer = http.client.HTTPConnection("127.0.0.1", api.port, timeout=30)
    for _ in range(50):
        peer.request("GET", "/api/whoami", headers={"Authorization": api.header})
        assert peer.getresponse().read()
    peer.close()
    assert time.process_time() - began < 5


def test_when_a_connection_was_opened_is_true_after_a_week():
    class Long:
        started = 0

    broker = FakeBroker()
    broker.connections = [long := Long()]
    http_server = server.HttpServer(broker, b"secret")
    at = http_server.opened_at(long)
    broker.now = 600 << 20  # beyond 2**29 milliseconds
    assert http_server.opened_at(long) == at
    del long, broker.connections
    assert not http_server.opened


class FakeStream:
    name, address, from_loopback = "127.0.0.1:1", "127.0.0.1", True


class FakeBroker:
    """As much of a broker as an endpoint without a request asks for."""

    name, now, uptime_ms, journal = "leveret@x", 0, 0, None

    class failures:
        refuses = staticmethod(lambda address: False)

    class places:
        introduced = None

    class consumers:
        open_session = close_session = None

    class topology:
        declare_queue = make_queue = forget_queue = None


def feed(peer, octets):
    room = peer.writable()
    room[: len(octets)] = octets
    peer.received(len(octets))


def test_answers_are_compressed_for_who_asks_for_it(api):
    """RFC 9110 section 12.5.3: only where gzip is named, and not with the weight 0; what is small stays as it is."""
    plain = api.call("GET", "/api/overview")
    for asked in ("gzip", "deflate, gzip;q=0.5", "x-gzip"):
        status, headers, body = api.call("GET", "/api/overview", headers={"Accept-Encoding": asked})
        assert (status, headers["content-encoding"]) == (200, "gzip") and len(body) < len(plain[2]) / 2
        assert json.loads(zlib.decompress(body, 31)).keys() == json.loads(plain[2]).keys()
    for asked in ("gzip;q=0", "gzip; q=0.0", "br", ""):
        assert "content-encoding" not in api.call("GET", "/api/overview", headers={"Accept-Encoding": asked})[1]
    assert "content-encoding" not in api.call("GET", "/api/whoami", headers={"Accept-Encoding": "gzip"})[1]
    status, headers, body = api.call("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
    assert zlib.decompress(body, 31).startswith(b"# TYPE rabbitmq_identity_info")
    assert api.call("HEAD", "/api/overview", headers={"Accept-Encoding": "gzip"})[2] == b""

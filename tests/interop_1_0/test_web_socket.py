"""AMQP over WebSocket (RFC 6455; AMQP WebSocket Binding 1.0): real clients of both versions, and what hostile ones send.

rhea and CloudAMQP's amqp-client run in node; the rest is a client of wsproto's, or octets by hand.
"""

import base64
import os
import socket
import ssl
import struct
import subprocess
import sys
import time

import brought
import pika
import pytest

sys.path.append(os.path.join(os.path.dirname(brought.HERE), "interop"))

from amqp_wire import PROTOCOL_HEADER
from broker_process import BrokerProcess
from certificates import Authority

from leveret.tools import components

wsproto = pytest.importorskip("wsproto", reason="the extra `web` is not installed")

WAIT_S = 10
SASL = b"AMQP\x03\x01\x00\x00"
BINARY, PING, CLOSE = 0x2, 0x9, 0x8


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """With listeners for AMQP, WebSocket and WebSocket in TLS: `web_port`, `secure_port`; `authority` has signed for the last."""
    directory = tmp_path_factory.mktemp("web")
    authority = Authority(directory)
    certificate, key = authority.issue("server", "/CN=localhost")
    configuration = directory / "web.toml"
    configuration.write_text("[limits]\nlogin_timeout_ms = 3000\n")
    secure = "wss://127.0.0.1:0?cert=%s&key=%s" % (certificate, key)
    process = BrokerProcess("leveret", arguments=("--listen", "ws://127.0.0.1:0", "--listen", secure, "--config", str(configuration)))
    try:
        lines = [process.process.stdout.readline().decode().strip() for _ in range(2)]
        assert lines[0].startswith("ready ws://127.0.0.1:") and lines[1].startswith("ready wss://127.0.0.1:"), lines
        process.web_port, process.secure_port = (int(line.rsplit(":", 1)[1]) for line in lines)
        process.authority = authority
        with pika.BlockingConnection(pika.URLParameters(process.url)) as connection:
            connection.channel().queue_declare("web")
        yield process
        assert process.alive() and "Traceback" not in process.error_text(), process.error_text()
    finally:
        process.stop()


def request(subprotocol="amqp", **more):
    """A client's request."""
    lines = {
        "Host": "127.0.0.1",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode(),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": subprotocol,
    }
    lines.update({name.replace("_", "-"): value for name, value in more.items()})
    return ("GET /any/path HTTP/1.1\r\n" + "".join("%s: %s\r\n" % each for each in lines.items() if each[1] is not None) + "\r\n").encode()


def frame(octets, code=BINARY, last=True, masked=True, size=None):
    """One frame of a client's (RFC 6455 section 5.2); `size`: another than it has."""
    size = len(octets) if size is None else size
    head = bytes((code | (0x80 if last else 0),))
    high = 0x80 if masked else 0
    head += (
        bytes((high | size,))
        if size < 126
        else struct.pack(">BH", high | 126, size)
        if size < 65536
        else struct.pack(">BQ", high | 127, size)
    )
    return head + (bytes(4) if masked else b"") + octets


class Web:
    """A raw client: `request_` is sent, the answer is in `head`."""

    def __init__(self, port, request_=None, context=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.inbox = b""
        if request_ != b"":
            self.socket.sendall(request_ or request())
            while b"\r\n\r\n" not in self.inbox:
                self.more()
            self.head, _, self.inbox = self.inbox.partition(b"\r\n\r\n")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def send(self, octets):
        self.socket.sendall(octets)

    def more(self):
        octets = self.socket.recv(65536)
        if not octets:
            raise EOFError("the broker has closed; behind %r" % self.inbox[:100])
        self.inbox += octets

    def frame(self):
        """(opcode, payload) of the next frame."""
        while True:
            if len(self.inbox) >= 2:
                size, at = self.inbox[1] & 127, 2
                if size == 126 and len(self.inbox) >= 4:
                    size, at = struct.unpack_from(">H", self.inbox, 2)[0], 4
                if size < 126 or at == 4:
                    if len(self.inbox) >= at + size:
                        found = self.inbox[0] & 15, self.inbox[at : at + size]
                        self.inbox = self.inbox[at + size :]
                        return found
            self.more()

    def payload(self, size):
        """The next `size` octets of AMQP."""
        octets = b""
        while len(octets) < size:
            code, payload = self.frame()
            assert code == BINARY, (code, payload)
            octets += payload
        return octets

    def ended(self):
        """True when the broker closes."""
        try:
            while True:
                self.more()
        except (EOFError, ConnectionError):
            return True


def test_real_clients_of_both_versions(broker):
    if not components.NODE.present():
        pytest.skip(components.NODE.sentence())
    program = brought.node_program(os.path.join(brought.HERE, "clients", "web_socket.js"))
    for url, more in (
        ("ws://127.0.0.1:%d/ws/amqp" % broker.web_port, ()),
        ("wss://localhost:%d/" % broker.secure_port, (broker.authority.certificate,)),
    ):
        done = subprocess.run(["node", program, url, *more], capture_output=True, text=True, timeout=60)
        assert done.stdout.split("\n")[:3] == ["ok rhea", "ok azure's name", "ok amqp-client"], (done.stdout, done.stderr)


def test_the_client_in_python_over_wss(broker):
    """wsproto's own client: 0-9-1's header is answered by connection.start, 1.0's by its own, whatever the subprotocol."""
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, BytesMessage, Request

    for header, answer in ((PROTOCOL_HEADER, b"\x01\x00\x00"), (SASL, SASL)):
        context = ssl.create_default_context(cafile=broker.authority.certificate)
        with Web(broker.secure_port, b"", context) as raw:
            client = WSConnection(ConnectionType.CLIENT)
            raw.send(client.send(Request(host="localhost", target="/", subprotocols=["amqp"])))
            events = []
            while not any(isinstance(each, BytesMessage) for each in events):
                client.receive_data(raw.socket.recv(65536))
                events += client.events()
                if isinstance(events[-1], AcceptConnection):
                    assert events[-1].subprotocol == "amqp"
                    raw.send(client.send(BytesMessage(data=header)))
            assert bytes(events[-1].data).startswith(answer)


def test_frames_may_be_cut_and_joined_anywhere(broker):
    """Binding, section 2: WebSocket's frames say nothing of AMQP's; RFC 6455 section 5.4: fragments, with control frames between."""
    octets = SASL
    parts = (
        [frame(octets)],
        [frame(octets[at : at + 1]) for at in range(len(octets))],
        [frame(octets[:3], last=False), frame(b"now", PING), frame(b"", 0, False), frame(octets[3:], 0)],
    )
    for part in parts:
        joined = b"".join(part)
        for step in (len(joined), 1, 5):
            with Web(broker.web_port) as client:
                for at in range(0, len(joined), step):
                    client.send(joined[at : at + step])
                got, pings = b"", []
                while len(got) < 8:
                    code, payload = client.frame()
                    if code == BINARY:
                        got += payload
                    else:
                        pings.append((code, payload))
                assert got[:8] == SASL and (pings == [] or pings == [(0xA, b"now")])


def test_a_ping_is_answered_and_a_close_too(broker):
    """RFC 6455 sections 5.5.1 to 5.5.3."""
    with Web(broker.web_port) as client:
        client.send(frame(b"abc", PING))
        assert client.frame() == (0xA, b"abc")
        client.send(frame(struct.pack(">H", 1000) + b"bye", CLOSE))
        assert client.frame() == (CLOSE, struct.pack(">H", 1000) + b"bye")
        assert client.ended()


def test_what_is_no_websocket_of_amqp_is_refused(broker):
    """RFC 6455 section 4.2.2; the binding's subprotocol."""
    for asked, status in (
        (request("mqtt"), b"400"),
        (request("chat, mqtt"), b"400"),
        (request(Sec_WebSocket_Key=None), b"400"),
        (request(Sec_WebSocket_Version="8"), b"426"),
        (request(Upgrade="h2c"), b"400"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (PROTOCOL_HEADER + b"\r\n\r\n", b"400"),
        (request(X_Long="y" * 9000), b"431"),
        (request(Host="\xff"), b"400"),
    ):
        with Web(broker.web_port, asked) as client:
            assert client.head.split(b" ")[1] == status, (asked[:80], client.head)
            assert client.ended()
    with Web(broker.web_port, request(None)) as client:  # none is offered: CloudAMQP's client
        assert b" 101 " in client.head and b"Sec-WebSocket-Protocol" not in client.head
    with Web(broker.web_port, request("mqtt, amqp", Sec_WebSocket_Extensions="permessage-deflate")) as client:
        head = client.head.lower()
        assert b"sec-websocket-protocol: amqp" in head and b"sec-websocket-extensions" not in head


def test_frames_that_cannot_be_are_answered_with_their_close_code(broker):
    """RFC 6455 sections 5.1, 5.2, 5.5, 7.4.1: 1002; a text message, where AMQP is binary: 1003."""
    for octets, code in (
        (frame(b"x", masked=False), 1002),
        (frame(b"x", 0xB), 1002),
        (frame(b"x" * 126, PING), 1002),
        (frame(b"x", 0), 1002),
        (frame(b"x", PING, last=False), 1002),
        (bytes((0xC2, 0x80, 0, 0, 0, 0)), 1002),  # a reserved bit, without its extension
        (frame(b"text", 0x1), 1003),
    ):
        with Web(broker.web_port) as client:
            client.send(octets)
            opcode, payload = client.frame()
            assert opcode == CLOSE and struct.unpack(">H", payload[:2])[0] == code, (octets, payload)
            assert client.ended()


def test_a_frame_that_claims_to_be_huge_takes_no_memory(broker):
    """Its payload is passed on as it comes: the connection is AMQP's to refuse."""
    with Web(broker.web_port) as client:
        client.send(frame(SASL, size=1 << 62))
        assert client.payload(8)[:8] == SASL


def test_who_is_slow_with_the_handshake_loses_its_place(broker):
    """login_timeout_ms counts from the first octet, as without WebSocket."""
    for begin in (b"", b"GET / HTTP/1.1\r\nHost: x\r\nX: ", request()):
        with Web(broker.web_port, b"") as client:
            client.send(begin)
            started = time.monotonic()
            ended = False
            while not ended and time.monotonic() - started < 8:
                client.socket.settimeout(0.2)
                try:
                    client.send(b"x" if begin[:3] == b"GET" and not begin.endswith(b"\n") else b"")
                    if client.socket.recv(4096) == b"":
                        ended = True
                except TimeoutError:
                    pass
                except ConnectionError:
                    ended = True
            assert ended and time.monotonic() - started > 1.5


def test_a_peer_that_pings_and_never_reads_takes_no_memory(broker):
    """Of pings before an answer can go the last is answered (section 5.5.3); then the broker reads on as long as AMQP does."""
    with open("/proc/%d/statm" % broker.process.pid) as file:
        before = int(file.read().split()[1])
    with Web(broker.web_port) as client:
        client.socket.settimeout(0.5)
        pings = frame(b"p" * 125, PING) * 1000
        try:
            for _ in range(100):
                client.send(pings)
        except (TimeoutError, ConnectionError):
            pass  # it is read no further, or has had its time for a log-in
        with Web(broker.web_port) as other:
            other.send(frame(SASL))
            assert other.payload(8)[:8] == SASL
        with open("/proc/%d/statm" % broker.process.pid) as file:
            assert (int(file.read().split()[1]) - before) * 4096 < 4 << 20

"""A bridge, and a blocking client, to a peer that wants tokens put to `$cbs` as Service Bus does: it takes nothing before it has one."""

import socket
import struct
import threading
import time
from urllib.parse import unquote

import pytest
from faults import Publisher

from leveret.core.amqp_1_0 import composites, frame
from leveret.core.amqp_1_0.client import tokens
from leveret.core.amqp_1_0.client.message import Message, message_head
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL
from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits
from leveret.ports import requests_1_0
from leveret.ports.bridge.bridge import Bridge
from leveret.ports.bridge.settings import Settings
from leveret.ports.client_1_0 import connect
from leveret.ports.client_errors import LoginRefused
from leveret.ports.tcp import Loop

WAIT_S = 120


class Peer:
    """One connection of a broker with `$cbs`. `status`: what it answers to a token; `seen`: bodies that it took."""

    def __init__(self, status=202):
        self.status = status
        self.tokens = []
        self.answers = -1
        self.seen = []
        self.refused_attaches = 0
        self._links = {}  # the client's handle -> (name, role, address)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        self._listening.close()

    def _serve(self):
        while True:
            try:
                self._stream = self._listening.accept()[0]
            except OSError:
                return
            self._links = {}
            try:
                self._talk()
            except (OSError, EOFError):
                self._stream.close()

    def _read(self, count):
        octets = b""
        while len(octets) < count:
            piece = self._stream.recv(count - len(octets))
            if not piece:
                raise EOFError
            octets += piece
        return octets

    def _frame(self):
        size = struct.unpack(">I", self._read(4))[0]
        octets = struct.pack(">I", size) + self._read(size - 4)
        _, _, at, end = frame.read(octets, 0, size, size)
        if at == end:
            return self._frame()
        name, fields, behind = composites.read(octets, at, end)
        return name, fields, octets[behind:end]

    def _say(self, performative, type_=frame.AMQP, payload=b"", **fields):
        given = {name.replace("_", "-"): fields[name] for name in fields}
        self._stream.sendall(frame.write(type_, 0, composites.write(performative, given) + payload))

    def _talk(self):
        assert self._read(8) == HEADER_SASL
        self._stream.sendall(HEADER_SASL)
        self._say("sasl-mechanisms", frame.SASL, sasl_server_mechanisms=["ANONYMOUS", "PLAIN"])
        assert self._frame()[1]["mechanism"] == "ANONYMOUS"
        self._say("sasl-outcome", frame.SASL, code=0)
        assert self._read(8) == HEADER_AMQP
        self._stream.sendall(HEADER_AMQP)
        while True:
            name, fields, payload = self._frame()
            getattr(self, "_on_" + name)(fields, payload)

    def _on_open(self, fields, payload):
        self._say("open", container_id="peer", hostname=fields["hostname"])

    def _on_begin(self, fields, payload):
        self._say("begin", remote_channel=0, next_outgoing_id=0, incoming_window=1000, outgoing_window=1000)

    def _on_attach(self, fields, payload):
        handle, sends = fields["handle"], fields["role"] is False
        address = fields["target" if sends else "source"][1]["address"]
        there = address == tokens.NODE or self.tokens
        terminus = {"target" if sends else "source": ("target" if sends else "source", {"address": address})} if there else {}
        count = {} if sends else {"initial_delivery_count": 0}
        self._say("attach", name=fields["name"], handle=handle, role=sends, **terminus, **count)
        if not there:
            self.refused_attaches += 1
            self._say("detach", handle=handle, closed=True, error={"condition": "amqp:unauthorized-access", "description": "no token"})
            return
        self._links[handle] = (sends, address)
        if sends:
            window = {"next_incoming_id": 0, "incoming_window": 1000, "next_outgoing_id": 0, "outgoing_window": 1000}
            self._say("flow", handle=handle, delivery_count=0, link_credit=100, **window)

    def _on_transfer(self, fields, payload):
        message = Message(None, 0, b"", 0, True)
        message.octets = payload
        is_token = self._links[fields["handle"]][1] == tokens.NODE
        # Noted before it is accepted: the client looks as soon as it has the outcome, in another thread.
        if not is_token:
            self.seen.append(message.body)
        elif self.status == 202:
            self.tokens.append((message.application_properties["name"], message.body))
        self._say("disposition", role=True, first=fields["delivery-id"], settled=True, state=("accepted", {}))
        if not is_token:
            return
        self.answers += 1
        answer = message_head({"correlation-id": message.properties["message-id"]}, {"status-code": ("int", self.status)})
        handle = [handle for handle in self._links if self._links[handle] == (False, tokens.NODE)][0]
        self._say("transfer", payload=answer, handle=handle, delivery_id=self.answers, delivery_tag=b"a", message_format=0, settled=True)

    def _on_flow(self, fields, payload):
        pass

    def _on_detach(self, fields, payload):
        if self._links.pop(fields["handle"], None) is not None:  # else ours came first
            self._say("detach", handle=fields["handle"], closed=fields["closed"])

    _on_disposition = _on_flow

    def _on_close(self, fields, payload):
        self._say("close")
        raise EOFError


def bridged(peer, count, until):
    """What a bridge that carries `count` messages to the peer says until `until(said)`, at most WAIT_S."""
    broker = Broker(Limits(), b"tokens")
    said = []
    loop = Loop(4, broker)
    settings = Settings(
        {
            "name": "b",
            "gateway": "g",
            "queue": "readings",
            "exchange": "hub",
            "upstream": ["amqp://policy:a%%2Bkey@127.0.0.1:%d/?protocol=1.0&auth=cbs" % peer.port],
            "reconnect_seconds_min": 0.05,
            "reconnect_seconds_max": 0.1,
        }
    )
    publisher = Publisher(broker, "readings", {}, [b"%d" % number for number in range(count)], {})
    bridge = Bridge(loop, settings, said.append, broker)
    limit = time.monotonic() + WAIT_S
    while time.monotonic() < limit and not until(said):
        loop.step(5)
        publisher.step(10)
        bridge.step()
        loop.deliver()
        loop.arm()
    loop.close()
    return said


def test_a_token_is_put_before_the_link_is_attached():
    peer = Peer()
    bridged(peer, 20, lambda said: len(peer.seen) == 20)
    peer.close()
    assert peer.seen == [b"%d" % number for number in range(20)] and peer.refused_attaches == 0
    ((resource, token),) = peer.tokens
    assert resource == "amqps://127.0.0.1/hub"
    fields = dict(each.split("=", 1) for each in token.partition(" ")[2].split("&"))
    assert unquote(fields["sr"]) == resource and fields["skn"] == "policy"
    assert token == tokens.sas_token(resource, "policy", "a+key", int(fields["se"]))
    assert 3000 < int(fields["se"]) - time.time() <= 3600


def test_a_token_that_is_refused_is_told_with_what_to_look_at():
    peer = Peer(401)
    said = bridged(peer, 1, lambda said: any("refused" in each for each in said))
    peer.close()
    assert peer.seen == []
    assert [each for each in said if "a token for amqps://127.0.0.1/hub is refused: 401" in each and "policy's name and key" in each]


URL = "amqp://policy:a%%2Bkey@127.0.0.1:%d/?protocol=1.0&auth=cbs"


def test_a_blocking_client_puts_a_token_for_each_address_and_again_when_half_of_its_time_is_over(monkeypatch):
    peer = Peer()
    client = connect(URL % peer.port)
    for _ in range(2):
        client.sender("hub").send(b"x")
    client.sender("hub/Partitions/1").send(b"y")
    assert [name for name, _ in peer.tokens] == ["amqps://127.0.0.1/hub", "amqps://127.0.0.1/hub/Partitions/1"]
    assert peer.seen == [b"x", b"x", b"y"] and peer.refused_attaches == 0
    client.poll(0)
    assert len(peer.tokens) == 2
    later = requests_1_0.now_ms() + requests_1_0.TOKEN_S * 500 + 1
    monkeypatch.setattr(requests_1_0, "now_ms", lambda: later)
    client.poll(0)
    client.poll(0)
    assert [name for name, _ in peer.tokens[2:]] == [name for name, _ in peer.tokens[:2]]
    client.close()
    peer.close()


def test_a_blocking_client_is_told_of_a_token_that_is_refused():
    peer = Peer(401)
    client = connect(URL % peer.port)
    with pytest.raises(LoginRefused, match="a token for amqps://127.0.0.1/hub is refused: 401.*policy's name and key"):
        client.receiver("hub")
    client.close()
    peer.close()

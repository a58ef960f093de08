"""Scenes of management and of log-ins."""

import json

from crowd import Quick
from peer import Peer, content, encoded
from scenes import queues, row

from leveret.core.access import passwords
from leveret.core.access.permissions import EVERYTHING, User
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER

MANAGEMENT = "amq.leveret.management"
REPLY = "amq.rabbitmq.reply-to"


class Asking(Quick):
    """A peer that reads the answers to its requests."""

    def request(self, request, **given):
        """One request and its answer."""
        body = json.dumps(dict(given, request=request)).encode()
        self.send(content(1, "", MANAGEMENT, body, {"reply_to": REPLY}))
        whole, self.kept = self.kept, b""
        start = whole.index(b'{"ok"')
        return json.loads(whole[start : whole.rindex(b"}") + 1].decode())

    kept = b""
    keeps = False  # what comes

    def drop(self):
        while self.keeps and not self.connection.closed and len(self.connection.pending()):
            octets = bytes(self.connection.pending())
            self.kept += octets
            self.crowd.call("sent", self.connection.sent, len(octets))
        return Quick.drop(self)

    def pages(self, request):
        """All pages of an answer: how many items."""
        after, count = None, 0
        while True:
            answer = self.request(request, after=after)
            assert answer["ok"], answer
            count += sum([len(items) for items in answer["items"].values()])
            after = answer["next"]
            if after is None:
                return count


def asking(crowd):
    """A peer that consumes its answers."""
    peer = Asking(crowd)
    peer.keeps = True
    peer.read(REPLY, "answers", True)
    peer.kept = b""
    return peer


def many(crowd, n):
    """n queues, bound."""
    peer = crowd.peer()
    queues(peer, min(n, 700))
    for each in range(min(n, 200)):
        peer.exchange("e%d" % each, "topic")
    peer.send(
        b"".join([encoded("queue_bind", 1, 0, "q%d" % (each % min(n, 700)), "amq.direct", "k%d" % each, True, {}) for each in range(n)])
    )
    return peer


@row("management: definitions, page by page", 12000)
def management_definitions(crowd, n):
    many(crowd, n)
    peer = asking(crowd)
    yield
    assert peer.pages("definitions") >= n


@row("management: overview, page by page", 240)
def management_overview(crowd, n):
    many(crowd, 700)
    for _ in range(n):
        crowd.peer()
    peer = asking(crowd)
    yield
    assert peer.pages("overview") >= n


@row("management: an import as large as can be", 1000)
def management_import(crowd, n):
    peer = asking(crowd)
    queues = [{"name": "q%d" % each, "durable": True, "auto_delete": False, "arguments": {}} for each in range(100)]
    bindings = [
        {
            "source": "amq.direct",
            "destination": "q%d" % (each % 100),
            "destination_type": "queue",
            "routing_key": "k%d" % each,
            "arguments": {},
        }
        for each in range(n // 2)
    ]
    assert len(json.dumps(bindings)) < 65000
    yield
    assert peer.request("import", definitions={"queues": queues})["ok"]
    assert peer.request("import", definitions={"bindings": bindings})["loaded"]["bindings"] == len(bindings)


@row("management: an import of many patterns", 400)
def management_patterns(crowd, n):
    peer = asking(crowd)
    policies = [
        {"name": "p%d" % each, "pattern": "^(a|b|%d){1,9}(x|y)+$" % each, "definition": {"max-length": 1}, "priority": 0, "apply-to": "all"}
        for each in range(n // 2)
    ]
    yield
    assert peer.request("import", definitions={"policies": policies})["ok"]


@row("management: many requests at once", 500)
def management_many(crowd, n):
    many(crowd, 700)
    peer = asking(crowd)
    body = json.dumps({"request": "overview"}).encode()
    yield
    peer.send(content(1, "", MANAGEMENT, body, {"reply_to": REPLY}) * n)


def stranger(crowd, name, word):
    """Octets of a log-in."""
    return HEADER + encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00" + name + b"\x00" + word, "en_US")


@row("log-ins of many at once", 100)
def logins(crowd, n):
    limits = crowd.broker.limits
    crowd.broker.access.users["u"] = User("u", passwords.hashed("word", b"salt", limits.password_rounds), (), EVERYTHING)
    yield
    peers = [Quick.__new__(Quick) for _ in range(n)]
    for peer in peers:
        peer.crowd = crowd
        Peer.__init__(peer, crowd.broker, log_in=False)
        octets = stranger(crowd, b"u", b"word")
        view = peer.connection.writable()
        view[: len(octets)] = octets
        crowd.call("received", peer.connection.received, len(octets))
    crowd.run()
    assert len([peer for peer in peers if peer.connection.user is not None]) == n

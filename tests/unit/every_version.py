"""A message goes in by one version of AMQP and comes out by another, at the level of octets, in one broker.

world = World(); world.publish("0-8", MESSAGES["0-8"][0]); world.received("1.0") -> [(header, body)], as message_views.py has them
"""

from draft_peer import Peer9a5, Peer9r1, bits, long, short, word
from full_messages import DRAFTS, KEY, WITHIN
from peer import Peer, new_broker
from peer_0_10 import Peer as Peer010
from peer_0_10 import frame, structs
from peer_1_0 import Peer as Peer10
from peer_1_0 import performative
from test_older import Old

from leveret.core.amqp_0_9 import frame as frame_0_9
from leveret.core.amqp_0_9 import method, spec_0_8, spec_0_9, spec_0_9_1
from leveret.core.amqp_1_0 import sections

HEADERS = {"0-8": (spec_0_8.HEADER, spec_0_8), "0-9": (spec_0_9.HEADER, spec_0_9)}
LIMITS = {"properties_size_max": 4096, "receive_buffer_size": 16384, "send_buffer_size": 16384, "content_size_max": 4096}


class World:
    """One broker with a queue q, bound to amq.direct by KEY, and a peer of each version that is asked for."""

    def __init__(self, broker=None):
        self.broker = broker or new_broker(**LIMITS)
        owner = self.kind("owner", Peer)(self.broker)
        owner.declare("q", True)
        owner.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.direct", KEY, False, {})
        self.peers: "dict" = {}

    def peer(self, version):
        """The peer of a version."""
        if version not in self.peers:
            self.peers[version] = self.made(version)
        return self.peers[version]

    def made(self, version):
        if version in HEADERS:
            return self.kind(version, Old)(*HEADERS[version], self.broker)
        kind = {"0.9a5": Peer9a5, "0.9r1": Peer9r1, "0-9-1": Peer, "0-10": Peer010, "1.0": Peer10}[version]
        return self.kind(version, kind)(self.broker)

    def kind(self, name, kind):
        """The class of a peer."""
        return kind

    # In

    def publish(self, version, message):
        """Publish one of full_messages.MESSAGES to q."""
        header, body = message
        peer = self.peer(version)
        if version == "0-10":
            fields = structs.write_command("message_transfer", {"accept_mode": 1, "destination": "amq.direct"})
            octets = frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, fields, 65535)
            octets += frame.segment(0 if body else frame.LAST_SEGMENT, frame.HEADER, 0, header, 65535)
            peer.give(octets + (frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, body, 65535) if body else b""))
            peer.ids += 1
        elif version == "1.0":
            if not hasattr(peer, "sent"):
                peer.sender("/exchanges/amq.direct/" + KEY)
                peer.sent = 0
            fields = {"delivery_id": peer.sent, "delivery_tag": b"%d" % peer.sent, "message_format": 0, "settled": True}
            peer.give(performative("transfer", 0, header + body, handle=0, **fields))
            peer.sent += 1
        elif version in DRAFTS:
            self.publish_draft(version, peer, header, body)
        else:
            spec = spec_0_9_1 if version == "0-9-1" else HEADERS[version][1]
            octets = method.encode(method.named(spec.METHODS, "basic_publish"), 1, (0, "amq.direct", KEY, False, False))
            octets += frame_0_9.content_header(1, len(body), header)
            peer.give(octets + (frame_0_9.encode(frame_0_9.BODY, 1, body) if body else b""))

    def publish_draft(self, version, peer, header, body):
        """jms.publish; a tree has a content within it."""
        children = ()
        if header == "tree":
            header = b"\x20\x00" + short(KEY) if version == "0.9a5" else b"\x00\x00"
            children = (peer.content(1, 7, *WITHIN),)
        if version == "0.9a5":
            peer.publish(body, flags=header[:2], properties=header[2:], children=children)
        else:
            peer.publish(body, KEY, properties=header, children=children)

    # Out

    def subscribe(self, version):
        """Have what comes to q go to the peer of a version, settled."""
        peer = self.peer(version)
        if version == "0-10":
            peer.subscribe("q", "d", 1000)
        elif version == "1.0":
            peer.receiver("/queues/q", credit=1000, snd_settle_mode=1)
        elif version == "0.9a5":
            peer.say(1, 7, 1, peer.ticket, short(""), short("q"), word(0), word(0), bits(0, 1, 0))
        elif version == "0.9r1":
            peer.say(1, 7, 1, peer.ticket, short("q"), long(0), word(0), bits(0, 1, 0))
        elif version == "0-9-1":
            peer.give(method.encode(method.named(spec_0_9_1.METHODS, "basic_consume"), 1, (0, "q", "c", False, True, False, False, {})))
        else:
            peer.say("basic_consume", 1, 0, "q", "c", False, True, False, False, {})

    def received(self, version):
        """The deliveries that have come to the peer of a version since then: [(header, body)]; other frames are dropped."""
        peer = self.peer(version)
        if version == "0-10":
            return [(header, body) for name, _, header, body, _ in peer.all() if name == "message_transfer"]
        if version == "1.0":
            found = []
            for name, _, payload, _ in peer.frames():
                if name == "transfer":
                    at, _, _ = sections.split(payload, 0, len(payload))
                    found.append((payload[:at], payload[at:]))
            return found
        return drafts_contents(version, peer.heard()) if version in DRAFTS else contents(peer)


def contents(peer):
    """The contents in frames of seven octets."""
    peer.take()
    octets, at, found = peer.inbox, 0, []
    peer.inbox = b""
    while at < len(octets):
        size = int.from_bytes(octets[at + 3 : at + 7], "big")
        payload = octets[at + 7 : at + 7 + size]
        if octets[at] == 2:
            found.append([payload[12:], b""])
        elif octets[at] == 3:
            found[-1][1] += payload
        at += 8 + size
    return [tuple(each) for each in found]


def drafts_contents(version, frames):
    """The contents in a draft's frames, each with those within it: ("tree", properties, [(properties, body)])."""
    found = []
    width = 1 if version == "0.9a5" else 2
    frames = [each for each in frames if each[0] in (2, 3)]
    while frames:
        found.append(content(frames, width))
    return [(("tree", properties, within) if within else properties, body) for properties, body, within in found]


def content(frames, width):
    """One content, whose frames are taken off the front."""
    kind, _, payload = frames.pop(0)
    assert kind == 2, payload
    weight = int.from_bytes(payload[width : 2 * width], "big")
    size = int.from_bytes(payload[2 * width : 2 * width + 8], "big")
    within = [content(frames, width)[:2] for _ in range(weight)]
    body = b""
    while len(body) < size:
        body += frames.pop(0)[2]
    return payload[2 * width + 8 :], body, within

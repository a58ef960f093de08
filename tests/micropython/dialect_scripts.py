"""What clients of each dialect (tools/board_parts.py) say to a board's broker: log-in, queue, publish, consumer, acknowledgement.

Those of 0-9-1 and 1.0 are written here; the others are what the unit tests' own clients say to a broker on CPython, as it was said.
"""

import os
import struct
import sys

import stage

sys.path[:0] = [os.path.join(stage.ROOT, "tests", name) for name in ("memory", "unit")]
from board_load import OPENING, method_frame, short  # noqa: E402 - the path above has to be set first
from draft_peer import Peer9a5, Peer9r1, bits, long, longlong, word  # noqa: E402 - as above
from draft_peer import short as draft_short  # noqa: E402 - as above
from every_version import World  # noqa: E402 - as above
from full_messages import MESSAGES, VERSIONS  # noqa: E402 - as above
from message_views import view  # noqa: E402 - as above
from peer import new_broker  # noqa: E402 - as above
from peer_0_10 import Peer as Peer010  # noqa: E402 - as above
from peer_1_0 import HEADER_AMQP, HEADER_SASL, data, performative, sasl  # noqa: E402 - as above
from test_1_0_management import request  # noqa: E402 - as above
from test_older import Old  # noqa: E402 - as above

from leveret.core.amqp_0_9 import frame, spec_0_8  # noqa: E402 - as above
from leveret.core.broker.broker import Broker  # noqa: E402 - as above
from leveret.core.limits import Limits  # noqa: E402 - as above
from leveret.tools.boards import FRAME_OF_0_10  # noqa: E402 - as above

BODY = b"21.5 degrees"


def script_0_9_1(queue):
    """[(octets of a client that uses a queue of that name, what is in the answer)]."""
    header = struct.pack(">BHIHHQHB", 2, 1, 15, 60, 0, len(BODY), 0x1000, 1) + b"\xce"
    body = struct.pack(">BHI", 3, 1, len(BODY)) + BODY + b"\xce"
    return [
        (OPENING[0], b"PLAIN"),
        (OPENING[1], b"\x00\x0a\x00\x1e"),
        (OPENING[2], b"\x00\x0a\x00\x29"),
        (OPENING[3], b"\x00\x14\x00\x0b"),
        (method_frame(1, 50, 10, b"\x00\x00" + short(queue) + b"\x00\x00\x00\x00\x00"), b"\x00\x32\x00\x0b"),
        (method_frame(1, 60, 40, b"\x00\x00\x00" + short(queue) + b"\x00") + header + body, b""),
        (method_frame(1, 60, 20, b"\x00\x00" + short(queue) + short(b"tag") + b"\x00\x00\x00\x00\x00"), BODY),
        (method_frame(1, 60, 80, struct.pack(">QB", 1, 0)), b""),
    ]


def attach(name, handle, role, address):
    """The octets of an attach to a node."""
    ends = {"source": ("source", {"address": address}), "target": ("target", {"address": address})}
    fields = dict({"initial_delivery_count": 0} if not role else {}, **ends)
    return performative("attach", name=name, handle=handle, role=role, **fields)


def credit(handle):
    """The octets of a flow of ten credits."""
    window = {"next_incoming_id": 0, "incoming_window": 100, "next_outgoing_id": 0, "outgoing_window": 100}
    return performative("flow", handle=handle, delivery_count=0, link_credit=10, **window)


def transfer(number, handle, octets):
    """The octets of a message in one transfer."""
    return performative("transfer", 0, octets, handle=handle, delivery_id=number, delivery_tag=b"%d" % number, message_format=0)


def script_1_0(queue):
    """The same of AMQP 1.0: the queue is made through /management; what stays is a sender and a receiver."""
    node, address = "/management", "/queues/" + str(queue, "ascii")
    return [
        (HEADER_SASL, b"PLAIN"),
        (sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00guest"), b"\x00\x53\x44"),
        (HEADER_AMQP, HEADER_AMQP),
        (performative("open", container_id="board"), b"\x00\x53\x10"),
        (performative("begin", next_outgoing_id=0, incoming_window=100, outgoing_window=100), b"\x00\x53\x11"),
        (attach("pair", 0, False, node) + attach("pair", 1, True, node) + credit(1), b"\x00\x53\x12"),
        (transfer(0, 0, request("PUT", address, {})), b"classic"),
        (performative("detach", handle=0, closed=True) + performative("detach", handle=1, closed=True), b"\x00\x53\x16"),
        (attach("out", 0, False, address), b"\x00\x53\x13"),
        (transfer(1, 0, data(BODY, {"durable": True})), b"\x00\x53\x24"),
        (attach("in", 1, True, address) + credit(1), BODY),
        (performative("disposition", role=True, first=1, settled=True, state=("accepted", {})), b""),
    ]


def recording(kind, said):
    """A subclass of a client of the unit tests that appends to `said` what it gives."""

    class Recording(kind):
        def give(self, octets):
            said.append(bytes(octets))
            return kind.give(self, octets)

    return Recording


def script_0_8(queue):
    """The same of 0-8, recorded."""
    said: list = []
    peer = recording(Old, said)(spec_0_8.HEADER, spec_0_8)
    peer.say("queue_declare", 1, 0, queue, False, False, False, False, False, {})
    peer.asked("queue_declare_ok")
    peer.say("basic_publish", 1, 0, "", queue, False, False)
    peer.give(frame.content_header(1, len(BODY), b"\x10\x00\x01") + frame.encode(frame.BODY, 1, BODY))
    peer.say("basic_consume", 1, 0, queue, "tag", False, False, False, False, {})
    return delivered(said, lambda: peer.say("basic_ack", 1, 1, False))


def script_0_10(queue):
    """The same of 0-10, recorded."""
    said: list = []
    peer = recording(Peer010, said)(new_broker(receive_buffer_size=FRAME_OF_0_10), name=queue, channel_max=1, max_frame_size=FRAME_OF_0_10)
    peer.do("queue_declare", queue=queue)
    peer.publish(BODY, str(queue, "ascii"), delivery={"delivery_mode": 2})
    peer.subscribe(queue, "tag", accept=0)
    return delivered(said, lambda: peer.do("message_accept", transfers=[(0, 0)]))


def script_0_9a5(queue):
    """The same of 0.9a5, recorded."""
    said: list = []
    peer = recording(Peer9a5, said)(new_broker())
    name = str(queue, "ascii")
    peer.queue(name, destination=name)
    peer.publish(BODY, name)
    peer.say(1, 7, 1, peer.ticket, draft_short(""), draft_short(name), word(0), word(0), bits(0, 0, 0))
    return delivered(said, lambda: peer.say(1, 7, 9, longlong(1), bits(0)))


def script_0_9r1(queue):
    """The same of 0.9r1, recorded."""
    said: list = []
    peer = recording(Peer9r1, said)(new_broker())
    name = str(queue, "ascii")
    peer.queue(name, key=name)
    peer.publish(BODY, name)
    peer.say(1, 7, 1, peer.ticket, draft_short(name), long(0), word(0), bits(0, 0, 0))
    return delivered(said, lambda: peer.say(1, 7, 9, longlong(1), bits(0)))


def delivered(said, settle):
    """The script of what was said, whose last step has the message delivered; then it is settled."""
    script = [(octets, b"") for octets in said[:-1]] + [(said[-1], BODY)]
    before = len(said)
    settle()
    return script + [(octets, b"") for octets in said[before:]]


SCRIPTS = {
    "amqp_0_9": script_0_9_1,
    "amqp_1_0": script_1_0,
    "amqp_0_8": script_0_8,
    "amqp_0_10": script_0_10,
    "amqp_0_9a5": script_0_9a5,
    "amqp_0_9r1": script_0_9r1,
}


class Crossing:
    """Messages of every version, with all that they can have (tests/unit/full_messages.py), at a receiver of one: `steps` of replay.py, the
    step `since` from which on it is a receiver. `limits`: of the broker, by name."""

    def __init__(self, version, limits):
        self.version, self.limits = version, limits
        self.steps: list = []
        self.world = Recorded(self.steps, Broker(Limits(**limits), b"unit"))
        for source in VERSIONS:
            self.world.publish(source, MESSAGES[source][0])
        self.world.received(version)
        self.since = len(self.steps)
        self.world.subscribe(version)

    def views(self, octets=b""):
        """How the messages read (message_views.py): those that came on CPython, or those in octets that a board has said."""
        peer = self.world.peer(self.version)
        peer.inbox += octets
        return [view(self.version, *each) for each in self.world.received(self.version)]


class Recorded(World):
    """A World whose peers append to `steps` what they give, with their versions."""

    def __init__(self, steps, broker):
        self.steps = steps
        World.__init__(self, broker)

    def kind(self, name, kind):
        said = Steps(self.steps, name)
        return recording(kind, said)


class Steps:
    """What one peer gives, among what the others do."""

    def __init__(self, steps, name):
        self.steps = steps
        self.name = name

    def append(self, octets):
        self.steps.append((self.name, octets))

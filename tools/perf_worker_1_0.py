"""Publishers and consumers of `leveret perf` that speak AMQP 1.0: perf_worker.py's, over one link each (c_accel/perf.c reads and writes).

A publisher sends transfers as far as the broker's credit and session window go, unsettled with --confirm, else settled. A consumer has
--prefetch as its credit and settles with --ack-every; without it the broker is asked to send settled. Each has one queue.
"""

import random
import time

from leveret.core.amqp_1_0 import composites, frame, hot_out
from leveret.core.amqp_1_0.client.message import data_head, message_head
from leveret.ports.client_1_0 import connect
from leveret.tools import perf_worker
from leveret.tools.perf_worker import ID_DIGITS as DIGITS
from leveret.tools.perf_worker import Failed, ffi, lib, messages

RECEIVE_SIZE = 1 << 20
CREDIT = 2000  # of a consumer that settles nothing
MASK = 0xFFFFFFFF
WINDOW = 0x7FFFFFFF
TAG = bytes(8)
ID_DIGITS = DIGITS.encode()
SUBJECTS = 100  # of varied messages
COLUMNS = ("stamps", "digits", "ids", "tags", "transfers")  # of leveret_perf_messages


def transfer_octets(handle, head, body, settled, frame_size_max):
    """A message as transfers, a row of COLUMNS: the octets, where the first eight of the body lie, where the digits of its id do (0: it has
    none), where its delivery-id and its delivery-tag do, how many transfers."""
    octets = b""
    payload = head + data_head(len(body)) + body
    count = 0
    at = 0
    while at < len(payload) or not count:
        piece = payload[at : at + frame_size_max - 64]
        at += len(piece)
        more = b"\x41" if at < len(payload) else b"\x42"
        fields = b"\x52" + bytes((handle,))
        if count == 0:
            fields += b"\x70\x00\x00\x00\x00\xa0\x08" + TAG + b"\x43" + (b"\x41" if settled else b"\x42") + more
        else:
            fields += b"\x40\x40\x40\x40" + more
        octets += frame.write(frame.AMQP, 0, b"\x00\x53\x14\xc0" + bytes((len(fields) + 1, 6)) + fields + piece)
        count += 1
    first = frame.HEADER_SIZE + 6 + 2 + 1
    stamp = frame.HEADER_SIZE + 6 + 2 + 5 + 2 + 8 + 3 + len(head) + len(data_head(len(body)))
    digits = octets.index(ID_DIGITS) if ID_DIGITS in head else 0
    return octets, stamp if len(body) >= 8 else 0, digits, first, first + 6, count


def head_of(key, given, subjects, draw):
    """The sections in front of a body; `given` as perf_worker.messages has them, of 0-9-1. `subjects`: one of SUBJECTS is drawn."""
    fields: dict = {"durable": True} if given.get("delivery_mode") == 2 else {}
    if "expiration" in given:
        fields["ttl"] = int(given["expiration"])
    fields.update({name.replace("_", "-"): given[name] for name in ("content_type", "correlation_id", "message_id") if name in given})
    if subjects:
        fields["subject"] = "key.%d" % draw.randint(1, SUBJECTS)
    headers = given.get("headers", {})
    return message_head(fields, {name: ("long", each) if isinstance(each, int) else each for name, each in headers.items()})


class Templates10:
    """The transfers of every message, one behind the other, as C reads them; publishers share them."""

    made: dict = {}

    def __init__(self, settings, handle, frame_size_max):
        draw = random.Random(settings["seed"])
        rows = [
            transfer_octets(handle, head_of(key, given, settings["vary"], draw), body, not settings["confirm"], frame_size_max)
            for _, key, body, given in messages(settings)
        ]
        begins = [0]
        for row in rows:
            begins.append(begins[-1] + len(row[0]))
        self.size_max = max(len(row[0]) for row in rows)
        self.octets = ffi.new("uint8_t[]", b"".join(row[0] for row in rows))
        self.columns = [ffi.new("int32_t[]", [row[place] for row in rows]) for place in range(1, 1 + len(COLUMNS))]
        self.begins = ffi.new("int32_t[]", begins)
        self.for_c = ffi.new("leveret_perf_messages *", {"octets": self.octets, "begins": self.begins, "kinds": len(rows)})
        for name, column in zip(COLUMNS, self.columns, strict=True):
            setattr(self.for_c, name, column)

    @classmethod
    def of(cls, settings, handle, frame_size_max):
        """The templates of a link; a broker may ask each connection for frames of another size."""
        if (handle, frame_size_max) not in cls.made:
            cls.made[handle, frame_size_max] = cls(settings, handle, frame_size_max)
        return cls.made[handle, frame_size_max]


class Side10(perf_worker.Side):
    """The common part of publishers and consumers of AMQP 1.0: a connection with one link."""

    def __init__(self, connection, link):
        self.link = link
        self.session = link.session
        perf_worker.Side.__init__(self, connection)

    def scan(self, at):
        return lib.leveret_perf_scan_1_0(self.perf, self.address, at, self.end, time.monotonic_ns(), self.other)

    def other_frame(self, at):
        """Take the frame at `at`, which is no message and no disposition: where it ends."""
        _, _, body, end = frame.read(self.octets, at, self.end, RECEIVE_SIZE)
        name, fields, _ = composites.read(self.octets, body, end)
        if name == "close" and self.closing:
            self.closed = True
        elif name in ("close", "end", "detach"):
            error = fields["error"] or {}
            raise Failed("the broker sent %s: %s %s" % (name, error.get("condition", ""), error.get("description") or ""))
        elif name == "flow":
            self.flow(fields)
        return end

    def flow(self, fields):
        """A flow has come: the credit that the broker gives."""

    def say(self, name, fields):
        """Send a performative."""
        self.send(frame.write(frame.AMQP, 0, composites.write(name, fields)))

    def beat(self, now):
        """An empty frame twice in the time that the broker waits for us."""
        if self.heartbeat_s and now - self.spoke_at > self.heartbeat_s / 2 and self.send():
            self.spoke_at = now
            self.send(b"\x00\x00\x00\x08\x02\x00\x00\x00")


class Publisher10(Side10, perf_worker.Publisher):
    """A publisher to one address."""

    def __init__(self, connection, settings, number):
        address = settings["address"] % settings["routes"][number % len(settings["routes"])][1]
        sender = connection.sender(address, settled=not settings["confirm"])
        self.credit, self.window_left = sender.link.credit, sender.link.session.remote_window
        Side10.__init__(self, connection, sender.link)
        self.rate, self.window, self.count = settings["rate"], settings["confirm"], settings["count"]
        self.templates = Templates10.of(settings, sender.link.handle, self.frame_size_max)
        self.prepare(settings, number)
        self.began = time.monotonic()
        self.stopped = self.given_up = False

    def flow(self, fields):
        sent = self.perf.transfers
        self.window_left = sent + fields["incoming-window"] - ((sent - (fields["next-incoming-id"] or 0)) & MASK)
        if fields["link-credit"] is not None:
            self.credit = (self.perf.published & ~MASK) + (fields["delivery-count"] or 0) + fields["link-credit"]

    def may(self, now):
        return max(0, min(perf_worker.Publisher.may(self, now), self.credit - self.perf.published))

    def fill(self, allowed):
        """Write up to `allowed` messages: the octets."""
        return lib.leveret_perf_transfers(
            self.perf,
            self.templates.for_c,
            self.draw,
            max(self.window_left, 0),
            int(self.window > 0),
            self.out_address,
            len(self.out),
            allowed,
            time.monotonic_ns(),
        )

    def end_connection(self):
        self.say("close", {})


class Consumer10(Side10, perf_worker.Consumer):
    """A consumer of one queue."""

    def __init__(self, connection, settings, queues):
        if len(queues) != 1:
            raise Failed("over AMQP 1.0 a consumer has one queue: take as many consumers as queues, or more")
        receiver = connection.receiver(settings["address"] % queues[0], prefetch=0, settled=not settings["ack_every"])
        Side10.__init__(self, connection, receiver.link)
        self.perf.stamped = int(settings["size"] >= 8)
        self.ack_every = settings["ack_every"]
        self.acknowledged = 0
        self.expected = None
        self.credit = settings["prefetch"] or CREDIT
        self.begun = receiver.link.delivery_count
        self.credited = 0  # messages settled when the broker was told of credit
        self.give(0)

    def give(self, settled, before=b""):
        """Tell the broker of credit, behind the octets `before`: with what is not settled it makes the prefetch."""
        self.credited = settled
        received = self.perf.received
        fields = {
            "next-incoming-id": self.session.next_incoming,
            "incoming-window": WINDOW,
            "next-outgoing-id": 0,
            "outgoing-window": WINDOW,
        }
        fields.update({"handle": self.link.handle, "delivery-count": (self.begun + received) & MASK})
        fields["link-credit"] = max(self.credit - (received - settled), 0)
        self.send(before + hot_out.flow(0, fields))

    def work(self, now):
        received = self.perf.received
        due = self.ack_every if self.expected is None else 1
        octets = b""
        if self.ack_every and received - self.acknowledged >= due and not self.perf.body_left:
            last = self.perf.tag
            first = (last - (received - self.acknowledged) + 1) & MASK
            self.acknowledged = received
            octets = hot_out.disposition(0, True, first, last, True, ("accepted", {}))
        settled = self.acknowledged if self.ack_every else received
        if settled - self.credited >= max(1, self.credit // 2):
            self.give(settled, octets)  # in one write: a broker on another processor would wake up for each
        elif octets or len(self.pending):
            self.send(octets)
        return False

    def has_acknowledged(self):
        return not self.ack_every or self.acknowledged == self.perf.received and not len(self.pending)


def open_side(settings, number):
    """A Publisher10 or Consumer10, connected."""
    connection = connect(settings["url"], receive_size=1 << 16, idle_ms=0)
    if settings["role"] == "publisher":
        return Publisher10(connection, settings, number)
    return Consumer10(connection, settings, settings["queues"][number])

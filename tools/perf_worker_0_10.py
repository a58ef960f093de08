"""Publishers and consumers of `leveret perf` that speak AMQP 0-10: perf_worker.py's, over one session each (c_accel/perf.c).

A publisher sends transfers of accept-mode none, and with --confirm of accept-mode explicit, whose completion it waits for. A consumer
without --ack-every subscribes with accept-mode none and credit without limit; with it explicitly, in window mode with --prefetch as its
credit, and accepts and completes --ack-every transfers at once.
"""

from leveret.core.amqp_0_10 import frame, properties, structs
from leveret.ports.client_0_10 import connect
from leveret.ports.client_errors import ConnectionLost
from leveret.tools import perf_worker
from leveret.tools.perf_worker import ID_DIGITS as DIGITS
from leveret.tools.perf_worker import Failed, lib, messages, time

RECEIVE_SIZE = 1 << 20
ENDLESS = 0xFFFFFFFF
MASK = 0xFFFFFFFF
ID_DIGITS = DIGITS.encode()
TELL_EVERY = 2000  # transfers that a consumer completes at once when it accepts none
RETURN = "message_reject"


def command(name, fields, header=None, body=b"", frame_size_max=frame.SIZE_LEAST):
    """The frames of a command."""
    flags = frame.FIRST_SEGMENT | (0 if header is not None or body else frame.LAST_SEGMENT)
    octets = frame.segment(flags, frame.COMMAND, 0, structs.write_command(name, fields), frame_size_max)
    if header is not None:
        octets += frame.segment(0 if body else frame.LAST_SEGMENT, frame.HEADER, 0, header, frame_size_max)
    if body:
        octets += frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, body, frame_size_max)
    return octets


def control(name, fields):
    """The frame of a control."""
    flags = frame.FIRST_SEGMENT | frame.LAST_SEGMENT
    return frame.segment(flags, frame.CONTROL, 0, structs.write_control(name, fields), frame.SIZE_LEAST)


def transfer_octets(exchange, key, body, given, confirms, frame_size_max):
    """(frames of one transfer, where the first eight octets of its body lie, where the digits of its id do; 0: it has none)."""
    fields = {"destination": exchange, "accept_mode": 0 if confirms else 1, "acquire_mode": 0}
    header = properties.rewritten(properties.encode(given), {"routing_key": key}, {})
    lead = len(command("message_transfer", fields, header, b"", frame_size_max))
    octets = command("message_transfer", fields, header, body, frame_size_max)
    digits = octets.index(ID_DIGITS) if "message_id" in given else 0
    return octets, lead + frame.HEAD if len(body) >= 8 else 0, digits


class Templates010(perf_worker.Templates):
    """The transfers of every message."""

    made: dict = {}

    def octets_of(self, settings, frame_size_max):
        return [
            transfer_octets(exchange, key, body, given, settings["confirm"], frame_size_max)
            for exchange, key, body, given in messages(settings)
        ]


class Side010(perf_worker.Side):
    """The common part of publishers and consumers of AMQP 0-10."""

    def __init__(self, connection):
        *handed, octets = connection.hand_over()
        connection.hand_over = lambda: handed
        perf_worker.Side.__init__(self, connection)
        self.octets[: len(octets)] = octets
        self.end = len(octets)

    def scan(self, at):
        return lib.leveret_perf_scan_0_10(self.perf, self.address, at, self.end, time.monotonic_ns(), self.other)

    def other_frame(self, at):
        """Take the frame at `at`, which C did not: where it ends."""
        flags, type_, _, _, begin, end = frame.read(self.octets, at, self.end, 65535)
        payload = bytes(self.view[begin:end])
        if type_ == frame.CONTROL:
            self.process(*structs.control(payload))
        elif type_ == frame.COMMAND and flags & frame.WHOLE == frame.WHOLE:
            self.perf.transfers += 1
            name, fields, _ = structs.command(payload)
            self.process(name, fields)
        else:
            raise Failed("the broker sent a command in more than one frame")
        return end

    def process(self, name, fields):
        """A control or a command that is no transfer. Raises Failed."""
        if name == "session_completed" and fields["timely_reply"]:  # else nobody waits for it, and clients of others send none either
            self.send(control("session_known_completed", {"commands": fields["commands"] or []}))
        elif name == "session_flush":
            self.complete()
        elif name == "execution_exception":
            raise Failed("the broker raised an exception: %d %s" % (fields["error_code"] or 0, fields["description"] or ""))
        elif name == RETURN:
            self.perf.refused += sum(((last - first) & MASK) + 1 for first, last in fields["transfers"] or [])
        elif name in ("message_stop", "message_flow"):
            self.blocked = name == "message_stop"
        elif name == "connection_close_ok" and self.closing:
            self.closed = True
        elif name in ("connection_close", "session_detach", "session_detached"):
            raise Failed("the broker sent %s: %s" % (name.replace("_", "."), fields.get("reply_text") or ""))

    def complete(self, before=b""):
        """Say that all commands of the broker are completed, behind the octets `before`."""
        count = self.perf.transfers
        ranges = [((count - min(count, 1 << 30)) & MASK, (count - 1) & MASK)] if count else []
        self.send(before + control("session_completed", {"commands": ranges}))

    def beat(self, now):
        """connection.heartbeat twice in each interval."""
        if self.heartbeat_s and now - self.spoke_at > self.heartbeat_s / 2 and self.send():
            self.spoke_at = now
            self.send(control("connection_heartbeat", {}))


class Publisher010(Side010, perf_worker.Publisher):
    """A publisher."""

    def __init__(self, connection, settings, number):
        Side010.__init__(self, connection)
        self.rate, self.window, self.count = settings["rate"], settings["confirm"], settings["count"]
        self.templates = Templates010.of(settings, self.frame_size_max)
        self.prepare(settings, number)
        self.flush = control("session_flush", {"completed": True})

    def may(self, now):
        return 0 if self.blocked else perf_worker.Publisher.may(self, now)

    def fill(self, allowed):
        size = perf_worker.Publisher.fill(self, allowed)
        if self.window and size and size + len(self.flush) <= len(self.out):
            self.out[size : size + len(self.flush)] = self.flush
            size += len(self.flush)
        return size

    def end_connection(self):
        self.send(control("connection_close", {"reply_code": 200, "reply_text": "done"}))


class Consumer010(Side010, perf_worker.Consumer):
    """A consumer of some queues."""

    def __init__(self, connection, settings, queues):
        Side010.__init__(self, connection)
        self.perf.stamped = int(settings["size"] >= 8)
        self.ack_every = settings["ack_every"]
        self.acknowledged = 0  # commands of the broker that are completed
        self.expected = None
        for number, queue in enumerate(queues):
            destination = "d%d" % number
            fields = {"queue": queue, "destination": destination, "accept_mode": 0 if self.ack_every else 1, "acquire_mode": 0}
            if settings["arguments"]:
                fields["arguments"] = settings["arguments"]
            octets = command("message_subscribe", fields)
            octets += command("message_set_flow_mode", {"destination": destination, "flow_mode": 1 if self.ack_every else 0})
            for unit, value in ((0, settings["prefetch"] or ENDLESS), (1, ENDLESS)):
                octets += command("message_flow", {"destination": destination, "unit": unit, "value": value})
            self.send(octets)

    def work(self, now):
        count = self.perf.transfers
        due = (self.ack_every or TELL_EVERY) if self.expected is None else 1
        if count - self.acknowledged >= due:
            octets = b""
            if self.ack_every:
                ranges = [(self.acknowledged & MASK, (count - 1) & MASK)]
                octets = command("message_accept", {"transfers": ranges})
            self.acknowledged = count
            self.complete(octets)
        elif len(self.pending):
            self.send()
        return False

    def has_acknowledged(self):
        return not self.ack_every or self.acknowledged == self.perf.transfers and not len(self.pending)


def open_side(settings, number):
    """A Publisher010 or Consumer010, connected."""
    connection = connect(settings["url"])
    if settings["role"] == "publisher":
        return Publisher010(connection, settings, number)
    return Consumer010(connection, settings, settings["queues"][number])


class Declaring:
    """The declarations of `leveret perf` at a broker that speaks no 0-9-1, by the names of ports/client.py."""

    def __init__(self, url):
        self.connection = connect(url)

    def queue_declare(self, queue, durable=False, arguments=None, passive=False):
        """(queue, its messages, its consumers): 0 where they are not asked for."""
        if passive:
            fields = self.connection.do("queue_query", queue=queue)
            if not fields or not fields["queue"]:
                raise ConnectionLost("there is no queue %s" % queue, 404, "")
            return queue, fields["message_count"] or 0, 0
        self.connection.do("queue_declare", queue=queue, durable=durable, **({"arguments": arguments} if arguments else {}))
        return queue, 0, 0

    def queue_delete(self, queue):
        """Delete a queue, if it is there."""
        fields = self.connection.do("queue_query", queue=queue)
        if fields and fields["queue"]:
            self.connection.do("queue_delete", queue=queue)

    def close(self):
        """End the connection."""
        self.connection.close()

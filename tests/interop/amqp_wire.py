"""A small AMQP 0-9-1 codec and a raw client for tests: written by hand from the specification, shares nothing with `leveret.core`.

So that a mistake in the broker's codec cannot hide behind the same mistake here. The raw client sends what a well-behaved
library never would and shows the broker's answer frame by frame. Not for use outside tests: no speed, no limits.
"""

import socket
import struct
import time

from amqp_tables import BY_ID, BY_NAME, INTEGERS, PROPERTIES, VALUE_LAYOUTS

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = 0xCE
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


class Typed:
    """A field table value with its type letter given: Typed("s", -3)."""

    def __init__(self, letter, value):
        self.letter = letter
        self.value = value


def shortstr(text):
    data = text.encode() if isinstance(text, str) else bytes(text)
    return bytes((len(data),)) + data


def longstr(text):
    data = text.encode() if isinstance(text, str) else bytes(text)
    return struct.pack(">I", len(data)) + data


def encode_value(value):
    """Type letter and octets of one table value; Python types take the letter clients take."""
    if isinstance(value, Typed):
        letter, value = value.letter, value.value
    elif isinstance(value, bool):
        letter = "t"
    elif isinstance(value, int):
        letter = "I" if -(2**31) <= value < 2**31 else "l"
    elif isinstance(value, float):
        letter = "d"
    elif value is None:
        letter = "V"
    elif isinstance(value, dict):
        letter = "F"
    elif isinstance(value, list):
        letter = "A"
    else:
        letter = "S"
    return letter.encode() + _encode_by_letter(letter, value)


def _encode_by_letter(letter, value):
    if letter in VALUE_LAYOUTS:
        return struct.pack(VALUE_LAYOUTS[letter], value)
    if letter in "Sx":
        return longstr(value)
    if letter == "F":
        return encode_table(value)
    if letter == "A":
        return longstr(b"".join(encode_value(item) for item in value))
    if letter == "D":
        return struct.pack(">BI", value[0], value[1])
    assert letter == "V", letter
    return b""


def encode_table(pairs):
    return longstr(b"".join(shortstr(name) + encode_value(value) for name, value in pairs.items()))


class Reader:
    """Reads fields off octets; running out raises struct.error or IndexError: a test then fails, as it should."""

    def __init__(self, data):
        self.data = bytes(data)
        self.at = 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise IndexError("wanted %d octets at %d of %d" % (count, self.at, len(self.data)))
        self.at += count
        return self.data[self.at - count : self.at]

    def unpack(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def field(self, kind):
        if kind in INTEGERS:
            return self.unpack(INTEGERS[kind])
        if kind == "shortstr":
            return self.take(self.unpack(">B")).decode("utf-8", "surrogateescape")
        if kind == "longstr":
            return self.take(self.unpack(">I"))
        assert kind == "table", kind
        return self.table()

    def table(self):
        inside = Reader(self.take(self.unpack(">I")))
        pairs = {}
        while inside.at < len(inside.data):
            name = inside.field("shortstr")
            pairs[name] = inside.value()
        return pairs

    def value(self):
        letter = chr(self.unpack(">B"))
        if letter in VALUE_LAYOUTS:
            return self.unpack(VALUE_LAYOUTS[letter])
        if letter == "S":
            return self.field("longstr").decode("utf-8", "surrogateescape")
        if letter == "x":
            return self.field("longstr")
        if letter == "F":
            return self.table()
        if letter == "D":
            return (self.unpack(">B"), self.unpack(">I"))
        if letter == "A":
            inside = Reader(self.field("longstr"))
            items = []
            while inside.at < len(inside.data):
                items.append(inside.value())
            return items
        assert letter == "V", letter
        return None


def _field_pairs(row):
    return [item.split(":") for item in row[5].split()]


def encode_arguments(name, values):
    """Octets of the arguments of a method; fields not in `values` are 0, empty or false."""
    out = bytearray()
    bits = []

    def flush_bits():
        if bits:
            out.append(sum(bit << place for place, bit in enumerate(bits)))
            bits.clear()

    fields = _field_pairs(BY_NAME[name])
    unknown = set(values) - {field for field, _ in fields}
    assert not unknown, "%s has no field %s" % (name, unknown)
    for field, kind in fields:
        if kind == "bit":
            bits.append(1 if values.get(field) else 0)
            continue
        flush_bits()
        if kind in INTEGERS:
            out += struct.pack(INTEGERS[kind], values.get(field, 0))
        elif kind == "table":
            value = values.get(field, {})
            out += value if isinstance(value, bytes) else encode_table(value)
        else:
            out += (shortstr if kind == "shortstr" else longstr)(values.get(field, b""))
    flush_bits()
    return bytes(out)


def decode_arguments(name, data):
    reader = Reader(data)
    values = {}
    place = 8
    octet = 0
    for field, kind in _field_pairs(BY_NAME[name]):
        if kind == "bit":
            if place == 8:
                octet, place = reader.unpack(">B"), 0
            values[field] = bool(octet >> place & 1)
            place += 1
            continue
        place = 8
        values[field] = reader.field(kind)
    assert reader.at == len(reader.data), "%d octets left over in %s" % (len(reader.data) - reader.at, name)
    return values


def frame(kind, channel, payload, end=FRAME_END):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes((end,))


def method(channel, name, **values):
    """One method frame."""
    class_id, method_id = BY_NAME[name][:2]
    return frame(METHOD, channel, struct.pack(">HH", class_id, method_id) + encode_arguments(name, values))


def encode_properties(values):
    flags = 0
    out = b""
    for place, (name, kind) in enumerate(PROPERTIES):
        if name not in values:
            continue
        flags |= 1 << 15 - place
        value = values[name]
        if kind in INTEGERS:
            out += struct.pack(INTEGERS[kind], value)
        elif kind == "table":
            out += value if isinstance(value, bytes) else encode_table(value)
        else:
            out += shortstr(value)
    return struct.pack(">H", flags) + out


def decode_properties(data):
    reader = Reader(data)
    flags = reader.unpack(">H")
    values = {}
    for place, (name, kind) in enumerate(PROPERTIES):
        if flags >> 15 - place & 1:
            values[name] = reader.field(kind)
    assert reader.at == len(reader.data), "octets left over in the properties"
    return values


def header(channel, body_size, properties=b"\x00\x00", class_id=60, weight=0):
    """A content header frame; `properties`: flags and values as octets, or a dict."""
    if isinstance(properties, dict):
        properties = encode_properties(properties)
    return frame(HEADER, channel, struct.pack(">HHQ", class_id, weight, body_size) + properties)


def content(channel, body, properties=b"\x00\x00", frame_size_max=131072):
    """Header frame and body frames, none larger than frame_size_max with its 8 octets of framing."""
    out = [header(channel, len(body), properties)]
    step = frame_size_max - 8
    for start in range(0, len(body), step):
        out.append(frame(BODY, channel, body[start : start + step]))
    return b"".join(out)


def publish(channel, exchange, routing_key, body, properties=b"\x00\x00", frame_size_max=131072, **bits):
    publish_method = method(channel, "basic.publish", exchange=exchange, routing_key=routing_key, **bits)
    return publish_method + content(channel, body, properties, frame_size_max)


class Closed(Exception):
    """The broker closed the connection while a frame was awaited; `octets`: what came of a last frame or header."""

    def __init__(self, octets):
        super().__init__("connection closed by the broker; last octets %r" % octets)
        self.octets = octets


class Frame:
    """kind, channel, payload; for methods also name and `values`."""

    def __init__(self, kind, channel, payload):
        self.kind = kind
        self.channel = channel
        self.payload = payload
        self.name = {HEADER: "header", BODY: "body", HEARTBEAT: "heartbeat"}.get(kind)
        self.values = {}
        if kind == METHOD:
            row = BY_ID[struct.unpack(">HH", payload[:4])]
            self.name = row[2]
            self.values = decode_arguments(self.name, payload[4:])

    def __repr__(self):
        return "<%s on channel %d %s>" % (self.name, self.channel, self.values or self.payload[:60])

    def __getitem__(self, field):
        return self.values[field]


class Content:
    """A delivered, returned or got message: `method` (a Frame), `properties` (octets after the body size), `body`."""

    def __init__(self, method_frame, properties, body, body_frame_sizes):
        self.method = method_frame
        self.properties = properties
        self.body = body
        self.body_frame_sizes = body_frame_sizes

    def __getitem__(self, field):
        return self.method[field]


CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


class RawClient:
    """A connection under the test's hand. `open()` logs in; `call` sends a method and returns the answer named."""

    def __init__(self, host, port, timeout_s=10, receive_buffer=None):
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout_s)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout_s = timeout_s
        self.buffer = b""
        self.heartbeats = 0
        self.frame_size_max = 131072

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the broker closed while we sent: what it said before is still to be read

    def _fill(self, count, deadline):
        while len(self.buffer) < count:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self.socket.recv(1 << 18)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Closed(self.buffer)
            self.buffer += data

    def read_octets(self, count):
        self._fill(count, time.monotonic() + self.timeout_s)
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def read_frame(self, timeout_s=None, heartbeats=False):
        """The next frame (heartbeats are counted and skipped, unless asked for). Raises TimeoutError, Closed."""
        deadline = time.monotonic() + (timeout_s or self.timeout_s)
        while True:
            self._fill(7, deadline)
            kind, channel, size = struct.unpack(">BHI", self.buffer[:7])
            self._fill(size + 8, deadline)
            payload, end = self.buffer[7 : 7 + size], self.buffer[7 + size]
            self.buffer = self.buffer[size + 8 :]
            assert end == FRAME_END, "frame end %d" % end
            assert size + 8 <= self.frame_size_max, "a frame of %d octets, negotiated %d" % (size + 8, self.frame_size_max)
            if kind == HEARTBEAT and not heartbeats:
                assert channel == 0 and size == 0
                self.heartbeats += 1
                continue
            return Frame(kind, channel, payload)

    def expect(self, name, channel=None, timeout_s=None):
        """The next frame, which must be this method."""
        got = self.read_frame(timeout_s)
        assert got.name == name, "wanted %s, got %r" % (name, got)
        assert channel is None or got.channel == channel, "wanted channel %d, got %r" % (channel, got)
        return got

    def call(self, answer, channel, name, **values):
        self.send(method(channel, name, **values))
        return self.expect(answer, channel)

    def read_content(self, name, channel=None):
        """A method with content and all of its content."""
        first = self.expect(name, channel)
        head = self.read_frame()
        assert head.name == "header" and head.channel == first.channel, head
        class_id, weight, size = struct.unpack(">HHQ", head.payload[:12])
        assert (class_id, weight) == (60, 0), head
        parts = []
        received = 0
        while received < size:
            part = self.read_frame()
            assert part.name == "body" and part.channel == first.channel, part
            assert part.payload, "an empty body frame"
            parts.append(part.payload)
            received += len(part.payload)
        assert received == size, "%d octets announced, %d came" % (size, received)
        return Content(first, head.payload[12:], b"".join(parts), [len(part) for part in parts])

    def silent(self, seconds=0.2):
        """Nothing arrives for that long."""
        try:
            got = self.read_frame(seconds)
        except TimeoutError:
            return True
        raise AssertionError("expected nothing, got %r" % got)

    def start(self):
        self.send(PROTOCOL_HEADER)
        return self.expect("connection.start", 0)

    def log_in(self, user="guest", password="guest", capabilities=None, mechanism="PLAIN", response=None):
        """From the header to connection.tune (returned)."""
        self.start()
        if response is None:
            response = "\0%s\0%s" % (user, password)
        capabilities = CAPABILITIES if capabilities is None else capabilities
        properties = {"product": "raw test client", "capabilities": capabilities}
        self.send(method(0, "connection.start-ok", client_properties=properties, mechanism=mechanism, response=response, locale="en_US"))
        return self.read_frame()

    def open(self, virtual_host="/", channel_max=None, frame_max=None, heartbeat=0, channels=1, **log_in):
        """Logged in and open, with channels 1..channels open."""
        tune = self.log_in(**log_in)
        assert tune.name == "connection.tune", tune
        self.tune = tune
        self.frame_size_max = tune["frame_max"] if frame_max is None else frame_max
        self.send(
            method(
                0,
                "connection.tune-ok",
                channel_max=tune["channel_max"] if channel_max is None else channel_max,
                frame_max=self.frame_size_max,
                heartbeat=heartbeat,
            )
        )
        self.call("connection.open-ok", 0, "connection.open", virtual_host=virtual_host)
        for channel in range(1, channels + 1):
            self.call("channel.open-ok", channel, "channel.open")
        return self

    def publish(self, exchange, routing_key, body, properties=b"\x00\x00", channel=1, **bits):
        self.send(publish(channel, exchange, routing_key, body, properties, self.frame_size_max, **bits))

    def declare_queue(self, queue="", channel=1, **values):
        return self.call("queue.declare-ok", channel, "queue.declare", queue=queue, **values)["queue"]

    def wait_for_count(self, queue, count, seconds=30):
        """A passive declare until that many messages are ready (RabbitMQ answers it ahead of publishes still on the way)."""
        deadline = time.monotonic() + seconds
        while True:
            seen = self.call("queue.declare-ok", 1, "queue.declare", queue=queue, passive=True)["message_count"]
            if seen == count:
                return
            assert time.monotonic() < deadline, "%d messages in %s, wanted %d" % (seen, queue, count)
            time.sleep(0.01)

    def close(self):
        """Closes with the protocol's handshake (after it either side may close the stream: RabbitMQ leaves it to the client)."""
        self.call("connection.close-ok", 0, "connection.close", reply_code=200, reply_text="bye")
        self.socket.close()

    def expect_end(self, timeout_s=20):
        """The stream ends and nothing but heartbeats comes before that."""
        try:
            got = self.read_frame(timeout_s)
        except Closed as end:
            assert end.octets == b"", "octets of half a frame before the end: %r" % end.octets
            return
        raise AssertionError("expected the end of the stream, got %r" % got)

    def expect_connection_close(self, code, text=None, method_of=None):
        """connection.close with this code (or one of these) comes, is answered, and the stream ends. Returns the frame."""
        while True:
            got = self.read_frame()
            if got.name not in ("header", "body"):
                break
        assert got.name == "connection.close" and got.channel == 0, "wanted connection.close, got %r" % got
        codes = code if isinstance(code, tuple) else (code,)
        assert got["reply_code"] in codes, "wanted %s, got %r" % (code, got)
        assert got["reply_text"], "no text says what was wrong"
        if text is not None:
            assert text in got["reply_text"], "wanted %r in %r" % (text, got["reply_text"])
        if method_of is not None:
            assert (got["class_id"], got["method_id"]) == BY_NAME[method_of][:2], "wanted the ids of %s, got %r" % (method_of, got)
        self.send(method(0, "connection.close-ok"))
        self.expect_end()
        return got

    def expect_channel_close(self, code, text=None, channel=1, method_of=None):
        """channel.close with this code comes and is answered. Returns the frame."""
        got = self.expect("channel.close", channel)
        assert got["reply_code"] == code, "wanted %s, got %r" % (code, got)
        assert got["reply_text"], "no text says what was wrong"
        if text is not None:
            assert text in got["reply_text"], "wanted %r in %r" % (text, got["reply_text"])
        if method_of is not None:
            assert (got["class_id"], got["method_id"]) == BY_NAME[method_of][:2], "wanted the ids of %s, got %r" % (method_of, got)
        self.send(method(channel, "channel.close-ok"))
        return got

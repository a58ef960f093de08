"""AMQP 0-10 on a socket, written and read without anything of the broker's: what attackers, honest clients and fairness tests speak.

    frame      flags | segment type | size short | 0 | track | channel short | 0 long | payload
    operation  class code, code | session header (a command's) | packing flags, 2 octets, the low one first | the fields that are there

Values in maps, lists and arrays: None, bool, int (int64), str (str16), bytes (vbin32), dict and list as they are; Raw for others. A set is
[(first, last)]. What is read comes as (name, fields, header segment, body, channel); a field whose type nobody here reads is its octets.
"""

import socket
import struct
import time

OPERATIONS = """
0101 connection.start server_properties:map mechanisms:array locales:array
0102 connection.start-ok client_properties:map mechanism:str8 response:vbin32 locale:str8
0103 connection.secure challenge:vbin32
0104 connection.secure-ok response:vbin32
0105 connection.tune channel_max:u16 max_frame_size:u16 heartbeat_min:u16 heartbeat_max:u16
0106 connection.tune-ok channel_max:u16 max_frame_size:u16 heartbeat:u16
0107 connection.open virtual_host:str8 capabilities:array insist:bit
0108 connection.open-ok known_hosts:array
0109 connection.redirect host:str16 known_hosts:array
010a connection.heartbeat
010b connection.close reply_code:u16 reply_text:str8
010c connection.close-ok
0201 session.attach name:vbin16 force:bit
0202 session.attached name:vbin16
0203 session.detach name:vbin16
0204 session.detached name:vbin16 code:u8
0205 session.request-timeout timeout:u32
0206 session.timeout timeout:u32
0207 session.command-point command_id:u32 command_offset:u64
0208 session.expected commands:set fragments:array
0209 session.confirmed commands:set fragments:array
020a session.completed commands:set timely_reply:bit
020b session.known-completed commands:set
020c session.flush expected:bit confirmed:bit completed:bit
020d session.gap commands:set
0301 execution.sync
0302 execution.result command_id:u32 value:vbin32
0303 execution.exception error_code:u16 command_id:u32 class_code:u8 command_code:u8 field_index:u8 description:str16 info:map
0401 message.transfer destination:str8 accept_mode:u8 acquire_mode:u8
0402 message.accept transfers:set
0403 message.reject transfers:set code:u16 text:str8
0404 message.release transfers:set set_redelivered:bit
0405 message.acquire transfers:set
0406 message.resume destination:str8 resume_id:str16
0407 message.subscribe queue:str8 destination:str8 accept_mode:u8 acquire_mode:u8 exclusive:bit resume_id:str16 ttl:u64 arguments:map
0408 message.cancel destination:str8
0409 message.set-flow-mode destination:str8 flow_mode:u8
040a message.flow destination:str8 unit:u8 value:u32
040b message.flush destination:str8
040c message.stop destination:str8
0501 tx.select
0502 tx.commit
0503 tx.rollback
0601 dtx.select
0602 dtx.start xid:xid join:bit resume:bit
0603 dtx.end xid:xid fail:bit suspend:bit
0604 dtx.commit xid:xid one_phase:bit
0605 dtx.forget xid:xid
0606 dtx.get-timeout xid:xid
0607 dtx.prepare xid:xid
0608 dtx.recover
0609 dtx.rollback xid:xid
060a dtx.set-timeout xid:xid timeout:u32
0701 exchange.declare exchange:str8 type:str8 alternate_exchange:str8 passive:bit durable:bit auto_delete:bit arguments:map
0702 exchange.delete exchange:str8 if_unused:bit
0703 exchange.query name:str8
0704 exchange.bind queue:str8 exchange:str8 binding_key:str8 arguments:map
0705 exchange.unbind queue:str8 exchange:str8 binding_key:str8
0706 exchange.bound exchange:str8 queue:str8 binding_key:str8 arguments:map
0801 queue.declare queue:str8 alternate_exchange:str8 passive:bit durable:bit exclusive:bit auto_delete:bit arguments:map
0802 queue.delete queue:str8 if_unused:bit if_empty:bit
0803 queue.purge queue:str8
0804 queue.query queue:str8
0901 file.qos prefetch_size:u32 prefetch_count:u16 global:bit
0902 file.qos-ok
0903 file.consume queue:str8 consumer_tag:str8 no_local:bit no_ack:bit exclusive:bit nowait:bit arguments:map
0904 file.consume-ok consumer_tag:str8
0905 file.cancel consumer_tag:str8
0906 file.open identifier:str8 content_size:u64
0907 file.open-ok staged_size:u64
0908 file.stage
0909 file.publish exchange:str8 routing_key:str8 mandatory:bit immediate:bit identifier:str8
090a file.return reply_code:u16 reply_text:str8 exchange:str8 routing_key:str8
090b file.deliver consumer_tag:str8 delivery_tag:u64 redelivered:bit exchange:str8 routing_key:str8 identifier:str8
090c file.ack delivery_tag:u64 multiple:bit
090d file.reject delivery_tag:u64 requeue:bit
0a01 stream.qos prefetch_size:u32 prefetch_count:u16 consume_rate:u32 global:bit
0a02 stream.qos-ok
0a03 stream.consume queue:str8 consumer_tag:str8 no_local:bit exclusive:bit nowait:bit arguments:map
0a04 stream.consume-ok consumer_tag:str8
0a05 stream.cancel consumer_tag:str8
0a06 stream.publish exchange:str8 routing_key:str8 mandatory:bit immediate:bit
0a07 stream.return reply_code:u16 reply_text:str8 exchange:str8 routing_key:str8
0a08 stream.deliver consumer_tag:str8 delivery_tag:u64 exchange:str8 queue:str8
"""
ROWS = [line.split() for line in OPERATIONS.strip().splitlines()]
CODES = {row[1]: int(row[0], 16) for row in ROWS}
NAMES = {int(row[0], 16): row[1] for row in ROWS}
FIELDS = {row[1]: [each.split(":") for each in row[2:]] for row in ROWS}
HEADER = b"AMQP\x01\x01\x00\x0a"
CONTROL, COMMAND, HEAD, BODY = range(4)
FIRST_SEGMENT, LAST_SEGMENT, FIRST_FRAME, LAST_FRAME, WHOLE = 8, 4, 2, 1, 15
SIZES = {"str8": ">B", "vbin8": ">B", "str16": ">H", "vbin16": ">H", "set": ">H", "vbin32": ">I", "map": ">I", "array": ">I"}
NUMBERS = {"u8": ">B", "u16": ">H", "u32": ">I", "u64": ">Q"}
ENDLESS = 0xFFFFFFFF  # credit without end


class Raw(bytes):
    """A value within a map with the octet of its type, as it is."""


def value(given):
    """The octets of a value within a map, behind those of its type."""
    if isinstance(given, Raw):
        return bytes(given)
    if given is None or isinstance(given, bool):
        return b"\xf0" if given is None else b"\x08" + bytes((given,))
    if isinstance(given, int):
        return b"\x31" + struct.pack(">q", given)
    if isinstance(given, str):
        return b"\x95" + sized(">H", given.encode())
    if isinstance(given, bytes):
        return b"\xa0" + sized(">I", given)
    return (b"\xa8" if isinstance(given, dict) else b"\xa9") + sized(">I", items(given))


def items(given):
    """The octets of a map or a list without those of its size."""
    if isinstance(given, dict):
        return struct.pack(">I", len(given)) + b"".join(sized(">B", key.encode()) + value(given[key]) for key in given)
    return struct.pack(">I", len(given)) + b"".join(value(each) for each in given)


def sized(form, octets):
    """Octets behind their size."""
    return struct.pack(form, len(octets)) + octets


def field(type_, given):
    """The octets of a field. A field given as Raw is written as it is."""
    if isinstance(given, Raw):
        return bytes(given)
    if type_ in NUMBERS:
        return struct.pack(NUMBERS[type_], given)
    if type_ == "xid":
        return sized(">I", b"\x06\x04" + packed([["f", "u32"], ["g", "vbin8"], ["b", "vbin8"]], {"f": 0, "g": given[0], "b": given[1]}))
    if type_ == "set":
        given = b"".join(struct.pack(">II", *each) for each in given)
    elif type_ == "map":
        given = items(given)
    return sized(SIZES[type_], given.encode() if isinstance(given, str) else given)


def packed(rows, given):
    """Packing flags of two octets, and the fields that are present."""
    there = [name for name, type_ in rows if given.get(name) is not None and (type_ != "bit" or given[name])]
    flags = sum(1 << place for place, (name, _) in enumerate(rows) if name in there)
    octets = b"".join(field(type_, given[name]) for place, (name, type_) in enumerate(rows) if flags >> place & 1 and type_ != "bit")
    return struct.pack("<H", flags) + octets


def operation(name, sync=False, /, **given):
    """The payload of a control or a command."""
    code = CODES[name]
    header = b"" if code < 0x300 else b"\x01\x01" if sync else b"\x01\x00"
    return struct.pack(">H", code) + header + packed(FIELDS[name], given)


def frame(flags, type_, channel, payload):
    """One frame."""
    return struct.pack(">BBHBBHI", flags, type_, 12 + len(payload), 0, type_ != CONTROL, channel, 0) + payload


def control(channel, name, /, **given):
    """The frame of a control."""
    return frame(WHOLE, CONTROL, channel, operation(name, **given))


def command(channel, name, sync=False, /, **given):
    """The frame of a command without a content."""
    return frame(WHOLE, COMMAND, channel, operation(name, sync, **given))


DELIVERY = [
    each.split(":")
    for each in "discard_unroutable:bit immediate:bit redelivered:bit priority:u8 delivery_mode:u8 ttl:u64 "
    "timestamp:u64 expiration:u64 exchange:str8 routing_key:str8 resume_id:str16 resume_ttl:u64".split()
]
MESSAGE = [
    each.split(":")
    for each in "content_length:u64 message_id:bin128 correlation_id:vbin16 reply_to:map content_type:str8 "
    "content_encoding:str8 user_id:vbin16 app_id:vbin16 application_headers:map".split()
]


def head(delivery, message=None):
    """A header segment: delivery-properties, perhaps with message-properties."""
    octets = sized(">I", b"\x04\x01" + packed(DELIVERY, delivery))
    return octets if message is None else octets + sized(">I", b"\x04\x03" + packed(MESSAGE, message))


def transfer(channel, body, key, name="message.transfer", message=None, size=60000, delivery=(), **given):
    """The frames of a message: durable where `delivery` says so ({"delivery_mode": 2})."""
    if name == "message.transfer":
        given = {"destination": "", "accept_mode": 0, "acquire_mode": 0, **given}
    octets = frame(FIRST_SEGMENT | FIRST_FRAME | LAST_FRAME, COMMAND, channel, operation(name, **given))
    octets += frame(FIRST_FRAME | LAST_FRAME, HEAD, channel, head({"routing_key": key, **dict(delivery)}, message))
    for at in range(0, max(len(body), 1), size):
        flags = LAST_SEGMENT | (0 if at else FIRST_FRAME) | (LAST_FRAME if at + size >= len(body) else 0)
        octets += frame(flags, BODY, channel, body[at : at + size])
    return octets


def read_fields(octets, at, rows):
    """The fields of an operation whose packing flags stand at `at`."""
    flags = struct.unpack_from("<H", octets, at)[0]
    at += 2
    fields = {}
    for place, (name, type_) in enumerate(rows):
        is_there = bool(flags >> place & 1)
        if type_ == "bit" or not is_there:
            fields[name] = is_there if type_ == "bit" else None
        elif type_ in NUMBERS:
            fields[name] = struct.unpack_from(NUMBERS[type_], octets, at)[0]
            at += struct.calcsize(NUMBERS[type_])
        else:
            size = struct.unpack_from(SIZES.get(type_, ">I"), octets, at)[0]
            at += struct.calcsize(SIZES.get(type_, ">I"))
            part = octets[at : at + size]
            if len(part) < size:
                raise ValueError(f"a {type_} of {size} octets where {len(part)} are left")
            fields[name] = (
                part.decode() if type_ in ("str8", "str16") else list(struct.iter_unpack(">II", part)) if type_ == "set" else part
            )
            at += size
    if at != len(octets):
        raise ValueError(f"{len(octets) - at} octets behind the fields")
    return fields


def read(octets, type_):
    """(name, fields) of a segment of a control or a command."""
    name = NAMES[struct.unpack_from(">H", octets)[0]]
    return name, read_fields(octets, 2 if type_ == CONTROL else 3 + octets[2], FIELDS[name])


class Segments:
    """Frames to whole controls and commands."""

    def __init__(self):
        self.parts = {}  # (channel, track) -> [octets of a command, a header, a body]

    def take(self, buffer, size_max=65535):
        """(name, fields, header, body, channel) of the first operation that is whole, None: none is yet. Takes its frames out of `buffer`.
        Raises ValueError for what no peer may send."""
        while len(buffer) >= 12:
            flags, type_, size, zero, track, channel, nothing = struct.unpack_from(">BBHBBHI", buffer)
            if flags > 15 or type_ > BODY or zero or nothing or track != (type_ != CONTROL) or not 12 <= size <= size_max:
                raise ValueError(f"a frame with flags {flags}, type {type_}, size {size}, track {track}")
            if len(buffer) < size:
                return None
            parts = self.parts.setdefault((channel, track), [b"", b"", b"", b""])
            if bool(flags & FIRST_SEGMENT and flags & FIRST_FRAME) == any(parts):
                raise ValueError(f"a frame with flags {flags} of type {type_}, and {[len(each) for each in parts]} octets before it")
            parts[type_] += bytes(buffer[12:size])
            del buffer[:size]
            if flags & LAST_SEGMENT and flags & LAST_FRAME:
                del self.parts[channel, track]
                kind = CONTROL if track == 0 else COMMAND
                return (*read(parts[kind], kind), parts[HEAD], parts[BODY], channel)
        return None


class Wire:
    """A connection with a session on channel 0."""

    def __init__(self, host, port, timeout_s=20, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout_s)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout_s = timeout_s
        self.buffer = bytearray()
        self.segments = Segments()
        self.ours = 0  # id of our next command
        self.theirs = 0  # id of the next that comes

    def send(self, octets):
        """All of them."""
        self.socket.sendall(octets)

    def do(self, name, /, **given):
        """A command: its id."""
        self.send(command(0, name, **given))
        self.ours += 1
        return self.ours - 1

    def next(self, wait_s=None):
        """The next operation. Raises TimeoutError, ConnectionError."""
        ends = time.monotonic() + (self.timeout_s if wait_s is None else wait_s)
        while True:
            got = self.segments.take(self.buffer)
            if got is not None:
                return got
            left = ends - time.monotonic()
            if left <= 0:
                raise TimeoutError()
            self.socket.settimeout(left)
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the broker ended the stream")
            self.buffer += data

    def expect(self, name):
        """The fields of the next operation of this name; others are passed over, but for ends."""
        while True:
            got = self.next()
            if got[0] == name:
                return got[1]
            if got[0] in ("connection.close", "session.detached", "execution.exception"):
                raise RuntimeError(f"{got[0]} came for {name}: {got[1]}")

    def open(self, user, password, heartbeat=0):
        """Header, PLAIN, tune, open."""
        self.send(HEADER)
        while len(self.buffer) < 8:
            self.buffer += self.socket.recv(8 - len(self.buffer))
        assert self.buffer[:8] == HEADER, bytes(self.buffer)
        del self.buffer[:8]
        self.expect("connection.start")
        response = f"\0{user}\0{password}"
        self.send(control(0, "connection.start-ok", client_properties={}, mechanism="PLAIN", response=response, locale="en_US"))
        tune = self.expect("connection.tune")
        self.send(control(0, "connection.tune-ok", channel_max=0, max_frame_size=tune["max_frame_size"], heartbeat=heartbeat))
        self.send(control(0, "connection.open", virtual_host="/"))
        self.expect("connection.open-ok")
        return self

    def attach(self, name):
        """A session whose commands begin at 0."""
        self.send(control(0, "session.attach", name=name))
        self.expect("session.attached")
        self.send(control(0, "session.command-point", command_id=0, command_offset=0))
        return self

    def subscribe(self, queue, destination="d", accept_mode=0, messages=ENDLESS, window=False, **given):
        """A subscription with credit."""
        self.do("message.subscribe", queue=queue, destination=destination, accept_mode=accept_mode, acquire_mode=0, **given)
        if window:
            self.do("message.set-flow-mode", destination=destination, flow_mode=1)
        self.do("message.flow", destination=destination, unit=0, value=messages)
        self.do("message.flow", destination=destination, unit=1, value=ENDLESS)

    def publish(self, queue, body, **given):
        """A message to a queue: the id of its transfer."""
        self.send(transfer(0, body, queue, **given))
        self.ours += 1
        return self.ours - 1

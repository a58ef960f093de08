"""AMQP 1.0 on a socket, written and read without anything of the broker's: what attackers and measurements speak.

Values: None, bool, int (long), str, bytes, list and dict as they are; Symbol, and pairs for other numbers: ("uint", 5). What is read
comes without the names of its types. `performative` has the fields in the order of the specification.
"""

import socket
import struct
import time

HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
MECHANISMS, INIT, CHALLENGE, RESPONSE, OUTCOME = range(0x40, 0x45)
ACCEPTED, REJECTED, RELEASED, MODIFIED = range(0x24, 0x28)
SOURCE, TARGET, COORDINATOR, DECLARE, DISCHARGE, DECLARED, TRANSACTIONAL = 0x28, 0x29, 0x30, 0x31, 0x32, 0x33, 0x34
NUMBERS = {"ubyte": (0x50, ">B"), "ushort": (0x60, ">H"), "uint": (0x70, ">I"), "ulong": (0x80, ">Q"), "long": (0x81, ">q")}
FIXED = {0x50: ">B", 0x51: ">b", 0x60: ">H", 0x61: ">h", 0x70: ">I", 0x71: ">i", 0x80: ">Q", 0x81: ">q", 0x72: ">f", 0x82: ">d", 0x83: ">q"}
FIXED.update({0x53: ">B", 0x52: ">B", 0x54: ">b", 0x55: ">b", 0x56: ">?", 0x73: ">I"})
NOTHING = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0}


class Symbol(str):
    """A symbol."""


class Described:
    """A value with the code of its descriptor."""

    def __init__(self, code, value):
        self.code = code
        self.value = value


def value(given):
    """The octets of a value."""
    if given is None or isinstance(given, bool):
        return {None: b"\x40", True: b"\x41", False: b"\x42"}[given]
    if isinstance(given, int):
        return b"\x81" + struct.pack(">q", given)
    if isinstance(given, Described):
        return b"\x00\x80" + struct.pack(">Q", given.code) + value(given.value)
    if isinstance(given, Symbol):
        return b"\xb3" + struct.pack(">I", len(given)) + given.encode()
    if isinstance(given, str):
        octets = given.encode()
        return b"\xb1" + struct.pack(">I", len(octets)) + octets
    if isinstance(given, bytes):
        return b"\xb0" + struct.pack(">I", len(given)) + given
    if isinstance(given, tuple):
        code, form = NUMBERS[given[0]]
        return bytes((code,)) + struct.pack(form, given[1])
    if isinstance(given, dict):
        given, code = [each for pair in given.items() for each in pair], b"\xd1"
    else:
        code = b"\xd0"
    octets = b"".join(value(each) for each in given)
    return code + struct.pack(">II", 4 + len(octets), len(given)) + octets


def frame(channel, body, type_=0):
    """A frame around octets."""
    return struct.pack(">IBBH", 8 + len(body), 2, type_, channel) + body


def performative(code, *fields):
    """The octets of a performative: fields in the order of the specification, None for null."""
    return b"\x00\x53" + bytes((code,)) + value(list(fields))


def uint(number):
    """An unsigned number of 32 bits."""
    return ("uint", number)


def terminus(code, address, *more):
    """A source or a target."""
    return Described(code, [address, *more])


def read(octets, at):
    """(value, position behind it): descriptors as pairs (descriptor, value)."""
    code = octets[at]
    at += 1
    if code == 0:
        descriptor, at = read(octets, at)
        given, at = read(octets, at)
        return (descriptor, given), at
    if code in NOTHING:
        return NOTHING[code], at
    if code == 0x45:
        return [], at
    if code in FIXED:
        size = struct.calcsize(FIXED[code])
        return struct.unpack_from(FIXED[code], octets, at)[0], at + size
    if code == 0x98:
        return octets[at : at + 16], at + 16
    form = ">B" if code & 0xF0 in (0xA0, 0xC0, 0xE0) else ">I"
    width = struct.calcsize(form)
    size = struct.unpack_from(form, octets, at)[0]
    at += width
    end = at + size
    if code & 0x40 == 0:
        data = octets[at:end]
        return data if code & 0x0F == 0 else data.decode(), end
    count = struct.unpack_from(form, octets, at)[0]
    if code & 0xF0 in (0xE0, 0xF0):
        return ("array", count), end
    at += width
    items = []
    for _ in range(count):
        item, at = read(octets, at)
        items.append(item)
    if code in (0xC1, 0xD1):
        return dict(zip([repr(each) if isinstance(each, (dict, list)) else each for each in items[::2]], items[1::2], strict=True)), end
    return items, end


class Wire:
    """One connection."""

    def __init__(self, host, port, timeout_s=60, receive_buffer=None, address=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if address:
            self.socket.bind((address, 0))
        self.socket.settimeout(timeout_s)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout_s = timeout_s
        self.buffer = b""

    def send(self, octets):
        """All of it."""
        self.socket.sendall(octets)

    def log_in(self, user, password):
        """The SASL layer."""
        self.send(SASL_HEADER)
        assert self.octets(8) == SASL_HEADER
        self.expect(MECHANISMS)
        self.send(frame(0, performative(INIT, Symbol("PLAIN"), b"\0" + user.encode() + b"\0" + password.encode()), 1))
        fields = self.expect(OUTCOME)[1]
        if fields[0]:
            raise RuntimeError("the log-in was refused: %d" % fields[0])

    def open(self, user="guest", password="guest", container="test", frame_max=0xFFFFFFFF):
        """Log in and open."""
        self.log_in(user, password)
        self.send(HEADER + frame(0, performative(OPEN, container, None, uint(frame_max))))
        assert self.octets(8) == HEADER
        self.expect(OPEN)
        return self

    def begin(self, channel=0, window=1 << 20):
        """A session."""
        self.send(frame(channel, performative(BEGIN, None, uint(0), uint(window), uint(1 << 20), uint(255))))
        self.expect(BEGIN)

    def attach(self, name, handle, receives, address, channel=0, second=False, source=(), target=()):
        """A link: the broker's attach. `source` and `target`: fields behind the address."""
        self.send(frame(channel, attach(name, handle, receives, address, second, source, target)))
        return self.expect(ATTACH)[1]

    def credit(self, handle, credit, channel=0):
        """A flow with credit, of a receiver."""
        self.send(frame(channel, flow(handle, credit)))

    # What comes

    def octets(self, size, wait_s=None):
        """The next octets. Raises TimeoutError, ConnectionError."""
        ends = time.monotonic() + (self.timeout_s if wait_s is None else wait_s)
        while len(self.buffer) < size:
            self.socket.settimeout(max(ends - time.monotonic(), 0.001))
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the broker has ended the connection")
            self.buffer += data
        self.socket.settimeout(self.timeout_s)
        found, self.buffer = self.buffer[:size], self.buffer[size:]
        return found

    def next(self, wait_s=None):
        """(code, fields, payload, channel) of the next frame; None for an empty one. Raises TimeoutError."""
        while len(self.buffer) < 8 or len(self.buffer) < struct.unpack(">I", self.buffer[:4])[0]:
            more = self.octets(len(self.buffer) + 1, wait_s)
            self.buffer = more + self.buffer
        size, offset, _, channel = struct.unpack(">IBBH", self.buffer[:8])
        body, self.buffer = self.buffer[4 * offset : size], self.buffer[size:]
        if not body:
            return None
        (code, fields), at = read(body, 0)
        return code, fields, body[at:], channel

    def expect(self, code):
        """The next frame with this performative; those before it are dropped, an end of anything raises."""
        while True:
            got = self.next()
            if got is not None and got[0] == code:
                return got
            if got is not None and got[0] in (DETACH, END, CLOSE):
                raise RuntimeError("%x came for %x: %s" % (got[0], code, got[1]))


def attach(name, handle, receives, address, second=False, source=(), target=()):
    """The performative attach."""
    given = terminus(SOURCE, address if receives else None, *source), terminus(TARGET, None if receives else address, *target)
    mode = None if not second else ("ubyte", 1)
    return performative(ATTACH, name, uint(handle), receives, None, mode, *given, None, None, None if receives else uint(0))


def flow(handle, credit, drain=False):
    """The performative flow of a receiver that has seen nothing yet."""
    return performative(FLOW, uint(0), uint(1 << 20), uint(0), uint(1 << 20), uint(handle), uint(0), uint(credit), None, drain)


def transfer(handle, number, body, settled=False, more=False, tag=None, state=None):
    """A transfer of a message, or the first part of one, with its octets behind it."""
    tag = b"%d" % number if tag is None else tag
    return performative(TRANSFER, uint(handle), uint(number), tag, uint(0), settled, more, None, state) + body


def data(octets):
    """A message of one data section."""
    return b"\x00\x53\x75" + value(octets)


def disposition(first, last=None, settled=True, state=ACCEPTED, receives=True):
    """The performative disposition, with an outcome by its code."""
    outcome = None if state is None else Described(state, [])
    return performative(DISPOSITION, receives, uint(first), None if last is None else uint(last), settled, outcome)

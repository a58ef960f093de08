"""A hostile connection that speaks AMQP 1.0 (peer.Peer): octets out as an attacker likes, frames in, counted by performative.

`got`: by the performative's name. A frame that is larger than the peer has allowed, or that cannot be read, is a finding.
"""

import struct

import wire_1_0 as wire
from peer import Gone, Peer

NAMES = {
    0x10: "open",
    0x11: "begin",
    0x12: "attach",
    0x13: "flow",
    0x14: "transfer",
    0x15: "disposition",
    0x16: "detach",
    0x17: "end",
    0x18: "close",
    0x40: "sasl-mechanisms",
    0x42: "sasl-challenge",
    0x44: "sasl-outcome",
}


class Peer10(Peer):
    """One connection; channels and handles are the attacker's to number."""

    answers = True  # of detaches, ends and closes, as a peer should

    def _frame(self):
        if self.buffer[:4] == b"AMQP":
            del self.buffer[:8]
            self.got["header"] += 1
            return True
        size, offset, type_, channel = struct.unpack_from(">IBBH", self.buffer)
        if size < 8 or size > self.frame_max or offset < 2 or type_ not in (0, 1):
            self.attack.finding(f"the broker sent a frame of type {type_} with {size} octets (max-frame-size {self.frame_max})")
            self.gone("broken frame")
        if len(self.buffer) < size:
            return False
        body = bytes(self.buffer[4 * offset : size])
        del self.buffer[:size]
        if body:
            try:
                (code, fields), _ = wire.read(body, 0)
            except (IndexError, struct.error, ValueError, TypeError) as error:
                self.attack.finding(f"the broker sent what cannot be read: {error!r} {body[:80]!r}")
                self.gone("broken frame")
            self.heard(code, fields, channel)
        return True

    def heard(self, code, fields, channel):
        """One performative has come."""
        name = NAMES.get(code, "unknown")
        self.got[name] += 1
        if name == "transfer" and fields[1] is not None:
            self.tags.append((channel, fields[1]))
        elif name in ("detach", "end", "close"):
            error = next((each for each in fields if isinstance(each, tuple) and each[0] == 0x1D), None)
            self.attack.counts[f"{name} {error[1][0].rpartition(':')[2] if error else ''}".strip()] += 1
            if self.answers:
                self.answer(name, fields, channel)

    def answer(self, name, fields, channel):
        """As a peer should."""
        octets = {
            "detach": lambda: wire.performative(wire.DETACH, wire.uint(fields[0]), True),
            "end": lambda: wire.performative(wire.END),
            "close": lambda: wire.performative(wire.CLOSE),
        }[name]()
        try:
            self.socket.send(wire.frame(channel, octets))
        except OSError:
            pass
        if name == "close":
            self.close()
            raise Gone()

    # The protocol, as it should be

    def log_in_1_0(self, user="mallory", password="secret"):
        """The SASL layer."""
        self.speaks = True
        init = wire.performative(wire.INIT, wire.Symbol("PLAIN"), f"\0{user}\0{password}".encode())
        self.send(wire.SASL_HEADER + wire.frame(0, init, 1))
        self.wait("sasl-outcome")

    def open_1_0(self, user="mallory", sessions=1, frame_max=65536, window=1 << 20, container=None):
        """Logged in, open, with sessions on channels from 0."""
        self.log_in_1_0(user)
        self.frame_max = frame_max
        name = f"mallory {self.chance.random()}" if container is None else container
        self.send(wire.HEADER + wire.frame(0, wire.performative(wire.OPEN, name, None, wire.uint(frame_max))))
        if self.wait("open") is None:
            self.gone("no open")
        for channel in range(sessions):
            self.say(channel, wire.performative(wire.BEGIN, None, wire.uint(0), wire.uint(window), wire.uint(1 << 20), wire.uint(255)))
        if sessions:
            self.wait("begin")
        return self

    def say(self, channel, octets):
        """One frame."""
        self.send(wire.frame(channel, octets))

    def link(self, name, handle, receives, address, channel=0, **given):
        """Attach, and wait for the answer."""
        self.say(channel, wire.attach(name, handle, receives, address, **given))
        return self.wait("attach")


def open_1_0(attack, **given):
    """A connection of an attack, open."""
    options = {name: given.pop(name) for name in ("receive_buffer", "reads") if name in given}
    return attack.connect(kind=Peer10, **options).open_1_0(**given)


def queue_of(attack):
    """The name of a queue of the attackers', which is there: declared over 0-9-1."""
    name = attack.name_of()
    attack.open().declare(name, durable=True, x_max_length=2000)
    return name

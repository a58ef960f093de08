"""A hostile connection that speaks AMQP 0-10 (peer.Peer): octets out as an attacker likes, controls and commands in, counted by name.

A frame that is larger than the peer has allowed, or that cannot be read, is a finding; so is a transfer to a
session without a subscription.
"""

import wire_0_10 as wire
from peer import Gone, Peer

FRAME_MAX = 65535


class Peer010(Peer):
    """One connection; channels and ids of commands are the attacker's to number."""

    answers = True  # of detaches and closes, as a peer should

    def __init__(self, attack, address, **given):
        super().__init__(attack, address, **given)
        self.segments = wire.Segments()
        self.subscribed = set()  # channels; None: transfers may come on any
        self.ended = set()  # channels whose session has ended

    def _frame(self):
        if self.buffer[:4] == b"AMQP":
            del self.buffer[:8]
            self.got["header"] += 1
            return True
        try:
            got = self.segments.take(self.buffer, self.frame_max)
        except (ValueError, KeyError, IndexError, wire.struct.error) as error:
            self.attack.finding(f"the broker sent what cannot be read: {error!r} {bytes(self.buffer[:80])!r}")
            self.gone("broken frame")
        if got is None:
            return False
        self.heard(*got)
        return True

    def heard(self, name, fields, head, body, channel):
        """One control or command has come."""
        self.got[name] += 1
        if name == "message.transfer" and self.subscribed is not None and channel not in self.subscribed:
            self.attack.finding(f"a transfer to channel {channel}, which has no subscription: {body[:80]!r}")
        elif name == "execution.exception":
            self.attack.counts[f"exception {fields['error_code']}"] += 1
        elif name == "session.detached":
            self.attack.counts[f"detached {fields['code']}"] += 1
            self.ended.add(channel)
        elif name == "session.detach":
            self.ended.add(channel)
            if self.answers:
                self.answer(channel, "session.detached", name=fields["name"], code=0)
        elif name == "connection.close":
            self.attack.counts[f"close {fields['reply_code']}"] += 1
            if self.answers:
                self.answer(0, "connection.close-ok")
            self.close()
            raise Gone()

    def answer(self, channel, name, /, **given):
        """As a peer should."""
        try:
            self.socket.send(wire.control(channel, name, **given))
        except OSError:
            pass

    # The protocol, as it should be

    def log_in_0_10(self, user="mallory", password="secret"):
        """Up to connection.tune."""
        self.speaks = True
        self.send(wire.HEADER)
        self.wait("connection.start")
        response = f"\0{user}\0{password}"
        self.send(wire.control(0, "connection.start-ok", client_properties={}, mechanism="PLAIN", response=response, locale="en_US"))
        return self.wait("connection.tune")

    def open_0_10(self, user="mallory", sessions=1, frame_max=FRAME_MAX):
        """Logged in, open, with sessions on channels from 0 whose commands begin at 0."""
        if self.log_in_0_10(user) is None:
            self.gone("no tune")
        self.frame_max = frame_max
        self.send(
            wire.control(0, "connection.tune-ok", channel_max=0, max_frame_size=0 if frame_max == FRAME_MAX else frame_max, heartbeat=0)
            + wire.control(0, "connection.open", virtual_host="/")
        )
        if self.wait("connection.open-ok") is None:
            self.gone("no open-ok")
        for channel in range(sessions):
            self.attach(channel)
        if sessions:
            self.wait("session.attached")
        return self

    def attach(self, channel, name=None, force=False):
        """A session, and where its commands begin."""
        name = b"mallory %d" % self.chance.randrange(1 << 60) if name is None else name
        self.tell(channel, "session.attach", name=name, force=force)
        self.tell(channel, "session.command-point", command_id=0, command_offset=0)

    def again(self):
        """Read what has come, and have a session on each channel whose session has ended."""
        self.look()
        while self.ended:
            self.attach(self.ended.pop())

    def tell(self, channel, name, /, **given):
        """A control."""
        self.send(wire.control(channel, name, **given))

    def command(self, channel, name, /, sync=False, **given):
        """A command."""
        self.send(wire.command(channel, name, sync, **given))

    def transfer(self, channel, body, key, /, **given):
        """A message."""
        self.send(wire.transfer(channel, body, key, **given))

    def subscribe(self, channel, queue, destination="d", messages=wire.ENDLESS, octets=wire.ENDLESS, accept_mode=0, **given):
        """A subscription with credit."""
        if self.subscribed is not None:
            self.subscribed.add(channel)
        given = {"accept_mode": accept_mode, "acquire_mode": 0, **given}
        self.command(channel, "message.subscribe", queue=queue, destination=destination, **given)
        for unit, credit in ((0, messages), (1, octets)):
            self.command(channel, "message.flow", destination=destination, unit=unit, value=credit)


def open_0_10(attack, **given):
    """A connection of an attack, open."""
    options = {name: given.pop(name) for name in ("receive_buffer", "reads") if name in given}
    return attack.connect(kind=Peer010, **options).open_0_10(**given)

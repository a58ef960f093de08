"""Messages that are sent over sessions which outlive their connections: each has one id of a command for as long as its session lives.

    transfers.opened(client)                    another connection has the session, or a new one
    transfers.send(name, header, body)          -> a number, and settled(number, reason) when the peer has completed it

Sans-IO, as the client; the application hands `command`, `completed` and `room` on, by the names of events.Events.

Laws
- accept-mode explicit: a transfer is settled when it is completed, never before, with the reason of the message.reject that came for it, or
  "". A peer that answers message.accept says nothing more by it.
- A message that was sent and not completed is sent again by its application, by its name, and has the id that it had: a peer whose session
  has lived on executes it once. What it was completed with meanwhile is told behind that `send`, and nothing is sent.
- Nothing is kept here but ids. Those that are never sent again are in a session.gap.
"""

from ...memory import serial
from .. import frame
from ..ranges import Ranges, ascending

if False:  # for the type checker alone
    from typing import Any

EXPLICIT = 0
HEAD_ROOM = 512  # octets of a command and of the heads of its frames
PIECE_MIN = 1024


class Transfers:
    """Messages to an exchange (`destination`). `settled(number, reason)`: called once for each that was sent."""

    def __init__(self, destination, settled):
        self.destination = destination
        self.settled = settled
        self.client: "Any" = None
        self.next_id = 0  # of the next new message
        self.ids: "dict" = {}  # name -> id of those that are not settled
        self.names: "dict" = {}  # and back
        self.sent: "dict" = {}  # ids of those sent on this connection
        self.reasons: "dict" = {}  # id -> reason of its message.reject
        self.early: "dict" = {}  # id -> reason of those that were completed and are not sent on this connection
        self._owed: "list" = []  # of `early`: ids that are to be told
        self._body: "Any" = b""
        self._at = 0

    def opened(self, client, known):
        """`client` has an open session; `known(name)`: false for a message that will not be sent again. True when the session goes on."""
        self.client = client
        self.sent, self._owed = {}, []
        self._body, self._at = b"", 0
        if not client.missing:
            self.next_id = client.next_id
            self.forget()
            return False
        for name in [each for each in self.ids if not known(each)]:
            self.forget_one(self.ids[name])
        for id_ in self.names:
            client.telling[id_] = True
        client.next_id = None
        gone = Ranges()
        for first, last in client.missing:
            if serial.distance(last, self.next_id) <= 0:
                last = serial.after(self.next_id, -1)
            if serial.distance(first, last) >= 0:
                gone.add(first, last)
        gone = gone.without(ascending([(id_, id_) for id_ in self.names]))
        if gone.runs:
            client.control("session_gap", {"commands": gone.runs})
        return True

    def forget(self):
        """No message is open any more: names begin anew."""
        self.ids, self.names, self.sent, self.reasons, self.early = {}, {}, {}, {}, {}
        self._owed = []

    def forget_one(self, id_):
        """A message is no longer open."""
        del self.ids[self.names.pop(id_)]
        self.reasons.pop(id_, None)
        self.early.pop(id_, None)

    # What goes out

    def give(self, name, fields):
        """Give a command without a content: its id; -1: there is no room now."""
        if self._left() or self.client.room() < HEAD_ROOM:
            return -1
        self._say_point(self.next_id)
        id_ = self.client.command(name, fields)
        self.next_id = self.client.next_id
        return id_

    def send(self, name, header, body):
        """Send a message (octets of its header segment and of its body): a number above 0, or 0 when there is no room now."""
        client = self.client
        if self._left() or client.closed or client.room() < len(header) + HEAD_ROOM and len(client.pending()):
            return 0
        id_ = self.ids.get(name)
        if id_ is None:
            id_ = self.next_id
            self.next_id = serial.after(id_, 1)
            self.ids[name], self.names[id_] = id_, name
        elif id_ in self.early:
            self._owed.append(id_)
            return id_ + 1
        self._say_point(id_)
        fields = {"destination": self.destination, "accept_mode": EXPLICIT, "acquire_mode": 0}
        client.command("message_transfer", fields, header, len(body) > 0, True)
        self.sent[id_] = True
        self._body, self._at = body, 0
        self.room()
        return id_ + 1

    def _say_point(self, id_):
        if self.client.next_id != id_:
            self.client.point(id_)

    def _left(self):
        return len(self._body) - self._at

    def room(self):
        """Send what there is room for of the body that is under way."""
        while self._left():
            client = self.client
            most = min(self._left(), client.frame_max - frame.HEAD)
            size = min(most, client.room() - frame.HEAD)
            if size < min(most, PIECE_MIN):
                return
            piece = self._body[self._at : self._at + size]
            self._at += size
            client.body(bytes(piece), not self._left())
        self._body, self._at = b"", 0

    def tell(self):
        """Tell what was completed before its message was sent again. Until then its id is its own: the connection may be lost before."""
        while self._owed:
            id_ = self._owed.pop(0)
            if id_ in self.early:  # no exception has named it meanwhile
                reason = self.early[id_]
                self.forget_one(id_)
                self.settled(id_ + 1, reason)

    # What comes in

    def command(self, name, fields):
        """A command of the peer's."""
        if name == "message_reject" or name == "message_release":
            reason = fields.get("text") or "code %d" % (fields.get("code") or 0) if name == "message_reject" else "released"
            for id_ in self._within(fields["transfers"] or []):
                self.reasons[id_] = reason
        elif name == "execution_exception" and fields["command_id"] in self.names:
            self.reasons[fields["command_id"]] = fields["description"] or "error code %d" % (fields["error_code"] or 0)
            self._settle(fields["command_id"])

    def _within(self, ranges):
        """The open ids that ranges have."""
        ids: "list" = []
        for first, last in ranges:
            ids += [each for each in self.names if serial.distance(first, each) >= 0 <= serial.distance(each, last)]
        return ids

    def completed(self, id_):
        """A command of ours is completed."""
        if id_ in self.sent:
            self._settle(id_)
        elif id_ in self.names:
            self.early[id_] = self.reasons.get(id_, "")

    def _settle(self, id_):
        reason = self.reasons.get(id_, "")
        self.sent.pop(id_, None)
        self.forget_one(id_)
        self.settled(id_ + 1, reason)

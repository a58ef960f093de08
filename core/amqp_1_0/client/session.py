"""The client's session (section 2.5): windows of both directions, deliveries that wait for an outcome, and whose handle is whose.

Laws
- Ids are serial numbers of 32 bits (RFC 1982); nothing a peer names is walked further than what is unsettled here.
- One message is streamed out at a time; other frames may go between its transfers, those of its own link not.
"""

from struct import pack

from ... import states
from ...errors import CHANNEL_ERROR, NOT_ALLOWED, ProtocolError
from ...shim import const
from .. import composites, frame
from .link import MASK, Receiver, Sender, close_link, outcome_of, within
from .states import SESSION

if False:  # for the type checker alone
    from typing import Any

_WINDOW = const(2048)  # transfers that the peer may send before it hears of us again
_PIECE_MIN = const(64)  # octets; room for less is not worth a transfer
_OVERHEAD = const(64)  # octets of a transfer that are no payload, at most
HANDLE_MAX = const(255)  # of both ends: a handle is one octet in our transfers
CHANNEL = const(0)  # the channel and, since it is the only one, the session's number


class Session:
    """`links[handle]`: our Senders and Receivers, each at its own handle as long as the client lives."""

    def __init__(self, client, window):
        self.client = client
        self.window = window  # unsettled deliveries that a Sender may have
        self.links: "list" = []
        self.reset()

    def reset(self):
        """As before begin: for a new stream, and when the session has ended."""
        self.state = "unmapped"
        self.by_handle: "dict" = {}  # the peer's handle -> our link
        self.unsettled: "dict" = {}  # delivery-id -> (Sender, number): sent, and without an outcome
        self.next_delivery = 0
        self.next_outgoing = 0
        self.next_incoming = 0
        self.incoming_window = _WINDOW
        self.remote_window = 0  # transfers that the peer's window allows
        self.remote_handle_max = 0
        self.streaming: "Any" = None  # the Sender whose message is not out yet
        for link in self.links:
            link.reset()

    # Requests of the client

    def send_begin(self):
        """begin."""
        fields = {"next-outgoing-id": 0, "incoming-window": _WINDOW, "outgoing-window": MASK >> 1, "handle-max": HANDLE_MAX}
        self.client.output.put(self.frame("begin", fields))

    def frame(self, name, fields):
        """A performative's frame on the session's channel."""
        return frame.write(frame.AMQP, CHANNEL, composites.write(name, fields))

    def sender(self, address, settled=False, **options):
        """A Sender to an address, which is there for good; `attach` attaches it. `options`: link.Link."""
        return self.place(Sender(self, len(self.links), address, settled, options))

    def receiver(self, address, prefetch=0, second=False, **options):
        """A Receiver from an address, which is there for good; `attach` attaches it. `options`: link.Link."""
        return self.place(Receiver(self, len(self.links), address, prefetch, second, options))

    def place(self, link):
        """A link, which gets a handle of its own for good. Raises ValueError when there are too many."""
        if len(self.links) > HANDLE_MAX:
            raise ValueError("a client has at most 256 links")
        self.links.append(link)
        return link

    def flow(self, link=None, fields=None, must=False):
        """A flow of the session, with what `fields` say of a link: true when it is in the send buffer. `must`: the peer asks for it."""
        given = {
            "next-incoming-id": self.next_incoming,
            "incoming-window": _WINDOW,
            "next-outgoing-id": self.next_outgoing,
            "outgoing-window": MASK >> 1,
        }
        if link is not None:
            given["handle"] = link.handle
            given.update(fields)
        if must:
            self.client.output.answer(self.frame("flow", given))
        elif not self.client.output.write(self.frame("flow", given)):
            return False
        self.incoming_window = _WINDOW
        return True

    def stream(self):
        """Transfers of the message that is under way, as many as there is room and window for (section 2.6.14)."""
        output = self.client.output
        while self.streaming is not None and self.remote_window > 0:
            sender = self.streaming
            left = sender.left()
            overhead = _OVERHEAD + len(sender.work)
            size = min(left, self.client.frame_size_max - overhead, output.free() - overhead)
            if size < 0 or (size < left and size < _PIECE_MIN):
                return
            head = sender.transfer(size < left)
            body = sender.piece(size)
            output.put(pack(">IBBH", frame.HEADER_SIZE + len(head) + size, 2, frame.AMQP, CHANNEL) + head)
            for part in body:
                output.put(part)
            self.next_outgoing = (self.next_outgoing + 1) & MASK
            self.remote_window -= 1
            if size == left:
                self.streaming = None
                sender.is_out()

    # Performatives from the peer

    def process(self, name, channel, fields, payload):
        """A performative of the session."""
        if channel != CHANNEL and name != "begin":
            raise ProtocolError(CHANNEL_ERROR, "%s on channel %d, where no session is" % (name, channel))
        if name == "transfer":
            states.step(self, SESSION, self, name, fields, payload)
        else:
            states.step(self, SESSION, self, name, fields)

    def refuse(self, condition, input_, state, *given):
        """A performative that the state does not allow."""
        raise ProtocolError(condition, "%s in the state %s of a session" % (input_, state))

    def on_begin(self, fields):
        """The peer's begin: links may be attached."""
        self.next_incoming = fields["next-outgoing-id"]
        self.remote_window = fields["incoming-window"]
        self.remote_handle_max = fields["handle-max"]
        self.client.events.opened()

    def on_end(self, fields):
        """The peer has ended the session, the only one: the connection ends too."""
        self.client.output.answer(self.frame("end", {}))
        error = fields["error"] or {}
        self.client.close("", "the peer ended the session")
        self.client.finish(error.get("condition", ""), error.get("description") or "the peer ended the session")

    def on_flow(self, fields):
        """The peer's windows, of the session, and credit, of a link (sections 2.5.6 and 2.6.7)."""
        next_incoming = fields["next-incoming-id"] or 0
        self.remote_window = fields["incoming-window"] - ((self.next_outgoing - next_incoming) & MASK)
        self.next_incoming = fields["next-outgoing-id"]
        if fields["handle"] is not None:
            link = self.linked(fields["handle"])
            link.step("flow", fields)
        elif fields["echo"]:
            self.flow(must=True)
        self.stream()
        self.go_on()

    def on_attach(self, fields):
        """The peer's end of a link: one that we asked for, by its name."""
        handle = fields["handle"]
        for link in self.links:
            if link.name == fields["name"] and link.is_sender != (fields["role"] is False):
                self.by_handle[handle] = link
                there = fields["target" if link.is_sender else "source"] is not None
                link.step("attach" if there else "attach-refused", fields)
                return
        raise ProtocolError(NOT_ALLOWED, "a link called %r, which was not asked for" % (fields["name"],))

    def linked(self, handle):
        """The link that the peer has at a handle."""
        link = self.by_handle.get(handle)
        if link is None:
            raise ProtocolError(CHANNEL_ERROR, "handle %d, where no link is" % handle)
        return link

    def on_transfer(self, fields, payload):
        """A delivery, or a part of one."""
        self.next_incoming = (self.next_incoming + 1) & MASK
        self.incoming_window -= 1
        self.linked(fields["handle"]).step("transfer", fields, payload)
        self.go_on()

    def go_on(self):
        """Send the peer windows and credit not yet sent, when there is room."""
        if self.state == "mapped":
            if self.incoming_window < _WINDOW // 2:
                self.flow()
            for link in self.links:
                link.go_on()

    def on_detach(self, fields):
        """The end of a link."""
        link = self.linked(fields["handle"])
        del self.by_handle[fields["handle"]]
        link.step("detach", fields)

    def on_disposition(self, fields):
        """Outcomes of a range of deliveries (section 2.7.6)."""
        first = fields["first"]
        last = first if fields["last"] is None else fields["last"]
        state = fields["state"]
        outcome, outcome_fields = outcome_of(state)
        if fields["role"] is False:
            for link in self.links:
                link.forget(first, last, outcome)
            return
        if not outcome and not fields["settled"]:
            return  # "received", or nothing: not the end
        held = False
        ids = within(self.unsettled, first, last)
        for each in list(ids):
            sender, number = self.unsettled.pop(each)
            sender.unsettled -= 1
            if sender.holds(number, each, outcome, fields["settled"]):
                held = True
                ids.remove(each)
            self.client.events.settled(sender, number, outcome, outcome_fields)
        if ids and not fields["settled"]:
            for begin, end in [(each, each) for each in ids] if held else [(first, last)]:
                given = {"role": False, "first": begin, "last": end, "settled": True, "state": state}
                self.client.output.answer(self.frame("disposition", given))


def end_links(session, condition, text):
    """The connection is over: every link that was attached, or being attached, has ended with it."""
    for link in session.links:
        if link.state != "detached":
            close_link(link, condition, text)

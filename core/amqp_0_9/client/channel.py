"""A channel of the client: its requests to the broker and the broker's methods (0-9-1 sections 1.3 to 1.8 of its reference).

Laws
- One synchronous request at a time per channel; publishing and acknowledging go on meanwhile.
- Every request returns True when it is in the send buffer, False when there is no room for it now (ask again after sending).
- A content's frames are not interleaved with other frames of its channel (section 4.2.6): while a large body is being streamed out,
  the channel has no room.
- In confirm mode each published message is reported confirmed exactly once, in whatever order the broker answers.
- Its states are states.CHANNEL, with the actions here. A delivery goes from "open" over "header" and "body" to "open" as its rows say, but
  without their look-up, which costs half as much as all the rest (test_client_channel_states holds both together).
"""

from struct import unpack_from

from ... import states
from ...errors import COMMAND_INVALID, FRAME_ERROR, SYNTAX_ERROR, UNEXPECTED_FRAME, ProtocolError
from ...shim import const
from .. import field_table, frame, method, properties
from .message import DELIVER, GET_OK, RETURN, Message
from .states import CHANNEL

if False:  # for the type checker alone
    from typing import Any

IN_USE = ("open", "header", "body")  # states in which the client may send more than channel.open

_ACK = const(0x3C0050)
_NACK = const(0x3C0078)
_PUBLISH = b"\x00\x3c\x00\x28\x00\x00"  # basic.publish and its reserved short
_NO_PROPERTIES = b"\x00\x00"
# An arrived content header's class id 60 and weight 0 (section 4.2.6.1).
_BASIC_HEADER = const(0x003C0000)


class Channel:
    """Channel `number` of a client; `window` is the most messages that may be unconfirmed in confirm mode."""

    publish_head = _PUBLISH

    def __init__(self, client, number, window):
        self.client = client
        self.number = number
        self._settled = bytearray(window)
        self.reset()

    def reset(self):
        """As before channel.open: for a new stream, and when the channel is closed."""
        self.state = "closed"
        self.waiting = ()  # names of the replies to the outstanding request; () when there is none
        self.flowing = True
        self.confirming = False
        self.published = 0  # messages published on this channel; in confirm mode the sequence number of the last one
        self._first = 1  # the lowest unconfirmed sequence number
        self._message: "Any" = None  # a content on its way in
        self._refused = None  # why its body is passed over, or None

    @property
    def unconfirmed(self):
        """Messages published in confirm mode from the first that is not confirmed on; those confirmed out of order count too."""
        return self.published + 1 - self._first if self.confirming else 0

    # Requests of the client.

    def request(self, name, *arguments):
        """Queue the method `name` with its arguments; its reply comes as `replied`. True, or False when there is no room now."""
        self.check_open()
        return self._ask(name, arguments)

    def check_open(self):
        """Raise ValueError unless the channel is open."""
        if self.state not in IN_USE:
            raise ValueError("channel %d is not open" % self.number)

    def _ask(self, name, arguments):
        """Queue a method that is answered: True, or False when there is no room now."""
        assert not self.waiting, "one request at a time on a channel"
        row = method.named(self.client.dialect.METHODS, name)
        if not self.client.output.write(self, method.encode(row, self.number, arguments)):
            return False
        self.waiting = row[method.REPLIES]
        return True

    def open(self):
        """channel.open. Reply channel_open_ok."""
        return states.step(self, CHANNEL, self, "open")

    def close(self, code=200, text=""):
        """channel.close; what still arrives is discarded until the reply channel_close_ok."""
        self.check_open()
        return states.step(self, CHANNEL, self, "close", code, text)

    def send_open(self):
        """channel.open."""
        self.reset()
        self.state = "opening"
        return self._ask("channel_open", ("",))

    def send_close(self, code, text):
        """channel.close."""
        return self._ask("channel_close", (code, text, 0, 0))

    def exchange_declare(self, exchange, type="direct", passive=False, durable=False, auto_delete=False, internal=False, arguments=None):
        """Reply exchange_declare_ok."""
        return self.request("exchange_declare", 0, exchange, type, passive, durable, auto_delete, internal, False, arguments or {})

    def exchange_delete(self, exchange, if_unused=False):
        """Reply exchange_delete_ok."""
        return self.request("exchange_delete", 0, exchange, if_unused, False)

    def queue_declare(self, queue="", passive=False, durable=False, exclusive=False, auto_delete=False, arguments=None):
        """Reply queue_declare_ok: [queue, message count, consumer count]."""
        return self.request("queue_declare", 0, queue, passive, durable, exclusive, auto_delete, False, arguments or {})

    def queue_bind(self, queue, exchange, routing_key="", arguments=None):
        """Reply queue_bind_ok."""
        return self.request("queue_bind", 0, queue, exchange, routing_key, False, arguments or {})

    def queue_unbind(self, queue, exchange, routing_key="", arguments=None):
        """Reply queue_unbind_ok."""
        return self.request("queue_unbind", 0, queue, exchange, routing_key, arguments or {})

    def queue_purge(self, queue):
        """Reply queue_purge_ok: [message count]."""
        return self.request("queue_purge", 0, queue, False)

    def queue_delete(self, queue, if_unused=False, if_empty=False):
        """Reply queue_delete_ok: [message count]."""
        return self.request("queue_delete", 0, queue, if_unused, if_empty, False)

    def basic_qos(self, prefetch_count, global_=False):
        """Reply basic_qos_ok."""
        return self.request("basic_qos", 0, prefetch_count, global_)

    def basic_consume(self, queue, consumer_tag="", no_local=False, no_ack=False, exclusive=False, arguments=None):
        """Reply basic_consume_ok: [consumer tag]; then deliveries come as `delivered`."""
        return self.request("basic_consume", 0, queue, consumer_tag, no_local, no_ack, exclusive, False, arguments or {})

    def basic_cancel(self, consumer_tag):
        """Reply basic_cancel_ok: [consumer tag]."""
        return self.request("basic_cancel", consumer_tag, False)

    def basic_get(self, queue, no_ack=False):
        """Reply basic_get_ok: [message], or basic_get_empty."""
        return self.request("basic_get", 0, queue, no_ack)

    def confirm_select(self):
        """Reply confirm_select_ok; from then on published messages are numbered from 1 and reported as `confirmed`."""
        return self.request("confirm_select", False)

    def tx_select(self):
        """Reply tx_select_ok; from then on publishes and acknowledgements take effect together, at tx_commit."""
        return self.request("tx_select")

    def tx_commit(self):
        """Reply tx_commit_ok."""
        return self.request("tx_commit")

    def basic_ack(self, delivery_tag, multiple=False):
        """Acknowledge a delivery, or all up to it."""
        return self._settle_frame(b"\x00\x3c\x00\x50", delivery_tag, 1 if multiple else 0)

    def basic_nack(self, delivery_tag, multiple=False, requeue=True):
        """Return a delivery to the broker, or all up to it (RabbitMQ's extension)."""
        return self._settle_frame(b"\x00\x3c\x00\x78", delivery_tag, (1 if multiple else 0) | (2 if requeue else 0))

    def basic_reject(self, delivery_tag, requeue=True):
        """Return one delivery to the broker."""
        return self._settle_frame(b"\x00\x3c\x00\x5a", delivery_tag, 1 if requeue else 0)

    def _settle_frame(self, method_octets, delivery_tag, bits):
        self.check_open()
        return self.client.output.write(
            self, frame.encode(frame.METHOD, self.number, method_octets + delivery_tag.to_bytes(8, "big") + bytes((bits,)))
        )

    def basic_publish(self, exchange, routing_key, body, message_properties=None, mandatory=False):
        """Publish; `body` is bytes-like, `message_properties` a dict by name or the octets of flags and list as on the wire.

        Returns the message's number on this channel (from 1; its sequence number in confirm mode), or 0 when there is no room now:
        the send buffer or the confirm window is full, the broker has stopped the flow (channel.flow, connection.blocked).
        A body too large for the send buffer is streamed: leave it unchanged until the send buffer has drained.
        """
        self.check_open()
        if not self.flowing or self.client.blocked or (self.confirming and self.unconfirmed >= len(self._settled)):
            return 0
        octets = message_properties
        if not octets:
            octets = _NO_PROPERTIES
        elif isinstance(octets, dict):
            octets = properties.encode(octets)
        place = field_table.shortstr(exchange) + field_table.shortstr(routing_key)
        publish = self.publish_head + place + (b"\x01" if mandatory else b"\x00")
        if not self.client.output.write_content(self, publish, octets, body):
            return 0
        self.published += 1
        if self.confirming:
            self._settled[self.published % len(self._settled)] = 0
        return self.published

    # Methods from the broker.

    def on_method(self, view, at, end):
        """A method frame's payload."""
        if end - at < 4:
            raise ProtocolError(SYNTAX_ERROR, "a method frame of %d octets" % (end - at))
        code = unpack_from(">I", view, at)[0]
        if code == DELIVER and self.state == "open":
            self.begin_content(code, view, at + 4, end)
            self.state = "header"
        elif code == DELIVER or code == RETURN or code == GET_OK:
            states.step(self, CHANNEL, self, "content_begins", code, view, at + 4, end)
        elif (code == _ACK or code == _NACK) and end - at == 13 and self.confirming and self.state == "open":
            self._on_confirm(unpack_from(">Q", view, at + 4)[0], view[at + 12] & 1, code == _ACK)  # changes no state
        else:
            row = method.find(self.client.dialect.METHODS, code)
            name = row[method.NAME] if row else "method %d.%d" % (code >> 16, code & 0xFFFF)
            states.step(self, CHANNEL, self, name, row, view, at + 4, end)

    def refuse(self, condition, input_, state, *given):
        """An input that the state does not allow: the broker's fault, or (`open`) the application's."""
        if input_ == "open":
            raise ValueError("channel %d is not closed" % self.number)
        raise ProtocolError(
            condition,
            "%s on channel %d, whose state is %s" % (input_.replace("_", ".", 1), self.number, state),
            condition == UNEXPECTED_FRAME,
        )

    def ignore(self, *given):
        """Discard an input."""

    def begin_content(self, code, view, at, end):
        """basic.deliver, basic.return or basic.get-ok: a content follows."""
        if code == GET_OK and "basic_get_ok" not in self.waiting:
            raise ProtocolError(COMMAND_INVALID, "basic.get-ok that was not asked for")
        self._message = Message(self, code, bytes(view[at:end]))

    def on_reply(self, row, view, at, end):
        """The reply to the outstanding request; no other method is one that the broker may send now."""
        if row is None or not row[method.SENDER] & method.SERVER:
            raise ProtocolError(COMMAND_INVALID, "a method that no server sends on channel %d" % self.number)
        name = row[method.NAME]
        if name not in self.waiting:
            raise ProtocolError(COMMAND_INVALID, "%s that was not asked for" % method.title(row))
        self._replied(name, self.client.decode(row, view, at, end))

    def _replied(self, name, arguments):
        """The outstanding request is answered."""
        self.waiting = ()
        if name == "channel_close_ok":
            self.reset()
        elif name == "confirm_select_ok":
            self.confirming = True
            self.published = 0
            self._first = 1
        self.client.events.replied(self, name, arguments)

    def on_flow(self, row, view, at, end):
        """channel.flow: the broker stops publishing here, or lets it go on."""
        arguments = self.client.decode(row, view, at, end)
        self.flowing = arguments[0]
        self._answer("channel_flow_ok", arguments)
        self.client.events.flow(self, self.flowing)

    def on_cancel(self, row, view, at, end):
        """basic.cancel: the broker has ended a consumer."""
        arguments = self.client.decode(row, view, at, end)
        if not arguments[1]:
            self._answer("basic_cancel_ok", arguments[:1])
        self.client.events.cancelled(self, arguments[0])

    def _answer(self, name, arguments):
        """Send a method that the protocol demands."""
        self.client.answer(self.client.encode(name, self.number, arguments))

    def on_close(self, row, view, at, end):
        """The broker closes the channel: answered at once; it may be opened again."""
        arguments = self.client.decode(row, view, at, end)
        self.reset()
        self.on_close_too()
        self.client.events.channel_closed(self, arguments[0], arguments[1])

    def on_close_too(self, *given):
        """The broker closes the channel (when ours is on its way: our own reply is still awaited)."""
        self.client.output.abandon(self)
        self._answer("channel_close_ok", ())

    def _on_confirm(self, sequence, multiple, positive):
        """Report every sequence number that this ack or nack settles, each once."""
        if sequence > self.published or (sequence == 0 and not multiple):
            raise ProtocolError(COMMAND_INVALID, "a confirm for %d where %d were published" % (sequence, self.published))
        if sequence == 0:
            sequence = self.published
        window = len(self._settled)
        each = self._first if multiple else max(sequence, self._first)
        while each <= sequence and each <= self.published:
            if not self._settled[each % window]:
                self._settled[each % window] = 1
                if each == self._first:
                    self._advance(window)
                self.client.events.confirmed(self, each, positive)
            each = max(each + 1, self._first)

    def _advance(self, window):
        """Move the lower edge of the window over what is settled."""
        while self._first <= self.published and self._settled[self._first % window]:
            self._first += 1

    def on_header(self, view, at, end, size):
        """A content header's payload; `size` is what its frame announced, more than `end - at` when it did not fit the receive buffer."""
        if self.state == "header" and self._message.code == DELIVER:
            self.on_content_header(view, at, end, size)
            if self.state == "header":  # a body is to come
                self.state = "body"
        else:
            states.step(self, CHANNEL, self, "content_header", view, at, end, size)

    def on_body(self, view, at, end):
        """Octets of a content body: a whole frame's payload, or a piece of one."""
        if self.state == "body":
            self.on_content_body(view, at, end)  # as its row says, which changes no state: without the look-up
        else:
            states.step(self, CHANNEL, self, "content_body", view, at, end)

    def on_content_header(self, view, at, end, size):
        """The header of the content that has begun."""
        message = self._message
        if end - at < 14 or unpack_from(">I", view, at)[0] != _BASIC_HEADER:
            raise ProtocolError(SYNTAX_ERROR, "a content header that is not one of class basic")
        body_size = unpack_from(">Q", view, at + 4)[0]
        message.body_size = body_size
        message.properties_octets = bytes(view[at + 12 : end])
        self._refused = self._reason(size > end - at, body_size)
        if size > end - at:
            message.properties_octets = _NO_PROPERTIES
        if body_size == 0:
            message.body = b"" if self._refused is None else None
            self._finish(message)

    def _reason(self, cut, body_size):
        """Why the client refuses a content, or None; `cut`: its header did not fit the receive buffer."""
        if cut:
            return "properties larger than the receive buffer"
        if body_size > self.client.content_size_max:
            return "a content of %d octets where %d are the most" % (body_size, self.client.content_size_max)
        return None

    def on_content_body(self, view, at, end):
        """Some octets of the body."""
        message = self._message
        if self._refused is None and message.body is None and end - at != message.body_size and not message.room_for(message.body_size):
            self._refused = "no memory for a content of %d octets" % message.body_size
        if self._refused is not None:
            self._skip(message, end - at)
        elif message.append(view[at:end]):
            self._finish(message)

    def _skip(self, message, size):
        """Pass over octets of a body that is refused."""
        message.taken += size
        if message.taken > message.body_size:
            raise ProtocolError(FRAME_ERROR, "a body of more octets than its header announced", True)
        if message.taken == message.body_size:
            self._finish(message)

    def _finish(self, message):
        """The content is complete: hand it over."""
        events = self.client.events
        if message.code == DELIVER:
            self.end_content()
            self.state = "open"
        else:
            states.step(self, CHANNEL, self, "content_ends")
        if self._refused is not None:
            self.waiting = () if message.code == GET_OK else self.waiting
            events.refused(message, self._refused)
        elif message.code == DELIVER:
            events.delivered(message)
        elif message.code == RETURN:
            events.returned(message)
        else:
            self._replied("basic_get_ok", [message])

    def end_content(self):
        """The content is complete."""
        self._message = None

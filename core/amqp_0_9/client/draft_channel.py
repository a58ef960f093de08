"""A channel of the client of the drafts of 2005: requests by the names of channel.py, as far as the drafts have them, and contents.

Laws beside those of channel.py
- Messages are of class jms, which has all properties: a dict of them by the names of the draft's table.
- Each method goes with the ticket that the channel was granted; before that it is 0, which no broker takes.
- There are no confirms: tx.commit-ok says what is kept. In 0.9a5 the channel is transactional from its opening, or not at all.
- 0.9a5 does not say what no queue takes, so nothing can be published as mandatory.
- Contents within a message come as its `children`, CHILDREN_MAX of them with `content_size_max` octets together, LEVELS_MAX levels deep:
  more than that is 540 ("MUST respond ... with reply code 540").
"""

from ... import states
from ...errors import COMMAND_INVALID, FRAME_ERROR, NOT_IMPLEMENTED, ProtocolError
from ...shim import const
from .. import method
from .channel import Channel
from .draft_message import ENDINGS, FIELDS, Content, DraftMessage
from .message import GET_OK
from .states import CHANNEL

if False:  # for the type checker alone
    from typing import Any

CHILDREN_MAX = const(64)
LEVELS_MAX = const(8)
JMS = const(7)


class ChannelOfDraft(Channel):
    """What both share."""

    grant: "Any"  # the method that asks for a ticket
    flow_goes_on: "Any"  # what channel.flow's flag is when messages may go on
    place: "Any"  # function of a queue's name: the arguments with which methods of queues begin
    prefetch = 0  # messages that may be unacknowledged, of later consumers; 0: no bound
    ticket = 0

    def reset(self):
        """As before channel.open."""
        Channel.reset(self)
        self.ticket = 0
        self._path = []  # the content whose contents within are coming, and those of them that are not whole
        self._children = 0
        self._octets = 0  # of bodies of contents within

    # Requests

    def lacks(self, part):
        """Raise ValueError."""
        raise ValueError("AMQP %s has no %s" % (self.client.version, part))

    def access_request(self, realm="/data", exclusive=False, passive=True, active=True, write=True, read=True):
        """Reply access_request_ok or access_grant_ok: [ticket]."""
        return self.request(self.grant, realm, exclusive, passive, active, write, read)

    def _ask(self, name, arguments):
        assert not self.waiting, "one request at a time on a channel"
        row = method.named(self.client.dialect.METHODS, name)
        if not self.client.output.write(self, self.client.encode(name, self.number, arguments)):
            return False
        self.waiting = row[method.REPLIES]
        return True

    def tell(self, name, *arguments):
        """A method without an answer: True, or False when there is no room now."""
        self.check_open()
        return self.client.output.write(self, self.client.encode(name, self.number, arguments))

    def queue_unbind(self, queue, exchange, routing_key="", arguments=None):
        """Raise ValueError."""
        self.lacks("queue.unbind")

    def confirm_select(self):
        """Raise ValueError."""
        self.lacks("confirm.select")

    def basic_qos(self, prefetch_count, global_=False):
        """Raise ValueError: `prefetch` is for consumers to come."""
        self.lacks("basic.qos: set the channel's `prefetch`")

    def basic_nack(self, delivery_tag, multiple=False, requeue=True):
        """Raise ValueError."""
        self.lacks("basic.nack")

    def basic_ack(self, delivery_tag, multiple=False):
        """jms.ack."""
        return self.tell("jms_ack", delivery_tag, multiple)

    def basic_reject(self, delivery_tag, requeue=True):
        """jms.reject."""
        return self.tell("jms_reject", delivery_tag, requeue)

    def basic_cancel(self, consumer_tag):
        """Reply jms_cancel_ok. `consumer_tag`: the number of jms_consume_ok."""
        return self.request("jms_cancel", consumer_tag)

    def basic_consume(self, queue, consumer_tag="", no_local=False, no_ack=False, exclusive=False, arguments=None):
        """Reply jms_consume_ok: [consumer tag], a number of the broker's."""
        if consumer_tag or arguments:
            self.lacks("consumer tags or arguments of a client's choice")
        return self.request("jms_consume", *(self.place(queue) + (0, self.prefetch, no_local, no_ack, exclusive)))

    def publish_with(self, name, arguments, given, body, children):
        """Publish as channel.py's basic_publish does, with contents within: each (properties, body, its own contents within)."""
        self.check_open()
        if not self.flowing:
            return 0
        wire = self.client.wire
        head = wire.method(name, self.number, arguments) + wire.header(self.number, JMS, len(children), len(body), given)
        for child in children:
            head += self.within(child, 1)
        if not self.client.output.write_message(self, head, body):
            return 0
        self.published += 1
        return self.published

    def within(self, child, level):
        """The frames of a content within another."""
        given, body, children = child
        assert level <= LEVELS_MAX
        wire = self.client.wire
        octets = wire.header(self.number, JMS, len(children), len(body), given)
        for each in children:
            octets += self.within(each, level + 1)
        most = self.client.frame_size_max - wire.overhead
        for at in range(0, len(body), most):
            octets += wire.frame(3, self.number, bytes(body[at : at + most]))
        return octets

    # From the broker

    def on_method(self, view, at, end):
        """A method frame's payload."""
        row, name, at = self.client.row(view, at, end)
        begins = row is not None and (row[method.CODE], row[method.FIELDS]) in FIELDS
        states.step(self, CHANNEL, self, "content_begins" if begins else name, row, view, at, end)

    def begin_content(self, row, view, at, end):
        """A content follows."""
        name = row[method.NAME]
        code = ENDINGS[name.partition("_")[2]]
        if code == GET_OK and name not in self.waiting:
            raise ProtocolError(COMMAND_INVALID, "%s that was not asked for" % method.title(row))
        self._message = DraftMessage(self, row, code, self.client.decode(row, view, at, end))

    def on_flow(self, row, view, at, end):
        """channel.flow: the broker stops publishing here, or lets it go on. It has no answer."""
        self.flowing = self.client.decode(row, view, at, end)[0] == self.flow_goes_on
        self.client.events.flow(self, self.flowing)

    def _replied(self, name, arguments):
        if name == self.grant + "_ok":
            self.ticket = arguments[0]
        Channel._replied(self, name, arguments)

    def on_header(self, view, at, end, size):
        """A content header's payload: of a message, or of a content within it."""
        if self.state == "body" and self._path:
            self.on_child(view, at, end)
        else:
            states.step(self, CHANNEL, self, "content_header", view, at, end, size)

    def on_content_header(self, view, at, end, size):
        """The header of the content that has begun."""
        message = self._message
        message.take_header(self.client.wire.read_header(view, at, end))
        if message.class_id != message.row[method.CODE] >> 16:
            raise ProtocolError(FRAME_ERROR, "a content header of class %d behind %s" % (message.class_id, method.title(message.row)))
        self._refused = self._reason(False, message.body_size)
        self._children = self._octets = 0
        self._path = [message] if message.left else []
        if not message.left and not message.body_size:
            self.empty(message)

    def empty(self, message):
        """A message without a body is whole."""
        message.body = b"" if self._refused is None else None
        self._finish(message)

    def on_child(self, view, at, end):
        """The header of a content within."""
        above = self._path[-1]
        if not above.left:
            raise ProtocolError(FRAME_ERROR, "a content header where a content body was to go on")
        child = Content(self.client.wire)
        child.take_header(self.client.wire.read_header(view, at, end))
        above.left -= 1
        above.children.append(child)
        self._children += 1
        self._octets += child.body_size
        if self._children > CHILDREN_MAX or len(self._path) > LEVELS_MAX or self._octets > self.client.content_size_max:
            raise ProtocolError(NOT_IMPLEMENTED, "a structured content that is larger than this client takes", True)
        self._path.append(child)
        self.climb()

    def climb(self):
        """Leave each content within that is whole; then the message's own body follows."""
        while len(self._path) > 1 and not self._path[-1].left and len(self._path[-1].body) == self._path[-1].body_size:
            self._path.pop()
        if len(self._path) == 1 and not self._path[0].left:
            self._path = []
            if not self._message.body_size:
                self.empty(self._message)

    def on_body(self, view, at, end):
        """A body frame's payload."""
        if at == end and (self.client.wire.drops_empty or self.state == "body"):
            return
        if self.state != "body" or not self._path:
            states.step(self, CHANNEL, self, "content_body", view, at, end)
            return
        child = self._path[-1]
        if child.left or child is self._message:
            raise ProtocolError(FRAME_ERROR, "a content body where contents within were to come")
        if len(child.body) + end - at > child.body_size:
            raise ProtocolError(FRAME_ERROR, "a body of more octets than its header announced")
        child.body += bytes(view[at:end])
        self.climb()


class Channel9a5(ChannelOfDraft):
    """A channel of 0.9a5. `namespace`: of the queues that are asked for; `transactional`: of its next opening."""

    namespace = ""
    transactional = False
    grant = "access_grant"
    flow_goes_on = False  # the flag says whether to pause

    def send_open(self):
        """channel.open: prefetch-max, out-of-band, tx-mode (1: automatic, 2: standard)."""
        self.reset()
        self.state = "opening"
        return self._ask("channel_open", (self.prefetch, "", 2 if self.transactional else 1))

    def place(self, queue):
        """Ticket, namespace and queue, with which methods of queues begin."""
        return self.ticket, self.namespace, queue

    def exchange_declare(
        self, exchange, type="destination", passive=False, durable=False, auto_delete=False, internal=False, arguments=None
    ):
        """exchange.assert, of a class by the names of "Exchange Types". Reply exchange_assert_ok."""
        if internal or arguments:
            self.lacks("internal exchanges and arguments of exchange.assert")
        return self.request("exchange_assert", self.ticket, exchange, type, passive, durable, auto_delete)

    def exchange_delete(self, exchange, if_unused=False):
        """Reply exchange_delete_ok."""
        return self.request("exchange_delete", self.ticket, exchange, if_unused)

    def queue_declare(self, queue="", passive=False, durable=False, exclusive=False, auto_delete=False, arguments=None):
        """queue.assert. Reply queue_assert_ok: [queue, default exchange, message count, consumer count]."""
        if arguments:
            self.lacks("arguments of queue.assert")
        return self.request("queue_assert", *(self.place(queue) + ("", passive, durable, exclusive, auto_delete)))

    def queue_bind(self, queue, exchange, routing_key="", arguments=None):
        """queue.register. Reply queue_register_ok."""
        given = dict(arguments or {})
        given["destination"] = routing_key
        return self.request("queue_register", *(self.place(queue) + (exchange, given)))

    def queue_purge(self, queue):
        """Reply queue_purge_ok: [message count]."""
        return self.request("queue_purge", *self.place(queue))

    def queue_delete(self, queue, if_unused=False, if_empty=False):
        """Reply queue_delete_ok: [message count]."""
        return self.request("queue_delete", *(self.place(queue) + (if_unused, if_empty)))

    def basic_get(self, queue, no_ack=False):
        """jms.browse. Reply basic_get_ok: [message], or jms_browse_empty."""
        return self.request("jms_browse", *(self.place(queue) + (False, no_ack)))

    def basic_publish(self, exchange, routing_key, body, message_properties=None, mandatory=False, children=()):
        """jms.publish, whose destination is a property. As channel.py's."""
        if mandatory:
            self.lacks("mandatory messages")
        given = dict(message_properties or {})
        given["destination"] = routing_key
        return self.publish_with("jms_publish", (self.ticket, exchange, False), given, body, children)

    def tx_select(self):
        """Raise ValueError."""
        self.lacks("tx.select: set the channel's `transactional` before it is opened")

    def tx_rollback(self):
        """tx.abort. Reply tx_abort_ok."""
        return self.request("tx_abort")


class Channel9r1(ChannelOfDraft):
    """A channel of 0.9r1."""

    grant = "access_request"
    flow_goes_on = True

    def send_open(self):
        """channel.open: prefetch-max, out-of-band."""
        self.reset()
        self.state = "opening"
        return self._ask("channel_open", (self.prefetch, ""))

    def place(self, queue):
        """Ticket and queue, with which methods of queues begin."""
        return self.ticket, queue

    def exchange_declare(self, exchange, type="direct", passive=False, durable=False, auto_delete=False, internal=False, arguments=None):
        """Reply exchange_declare_ok."""
        if arguments:
            self.lacks("arguments of exchange.declare")
        return self.request("exchange_declare", self.ticket, exchange, type, passive, durable, auto_delete, internal)

    def exchange_delete(self, exchange, if_unused=False):
        """Reply exchange_delete_ok."""
        return self.request("exchange_delete", self.ticket, exchange, if_unused)

    def queue_declare(self, queue="", passive=False, durable=False, exclusive=False, auto_delete=False, arguments=None):
        """Reply queue_declare_ok: [queue, message count, consumer count]."""
        if arguments:
            self.lacks("arguments of queue.declare")
        return self.request("queue_declare", *(self.place(queue) + (passive, durable, exclusive, auto_delete)))

    def queue_bind(self, queue, exchange, routing_key="", arguments=None):
        """Reply queue_bind_ok."""
        return self.request("queue_bind", *(self.place(queue) + (exchange, routing_key, arguments or {})))

    def queue_purge(self, queue):
        """Reply queue_purge_ok: [message count]."""
        return self.request("queue_purge", *self.place(queue))

    def queue_delete(self, queue, if_unused=False, if_empty=False):
        """Reply queue_delete_ok: [message count]."""
        return self.request("queue_delete", *(self.place(queue) + (if_unused, if_empty)))

    def basic_get(self, queue, no_ack=False):
        """jms.get. Reply basic_get_ok: [message], or jms_get_empty."""
        return self.request("jms_get", *(self.place(queue) + (no_ack,)))

    def basic_publish(self, exchange, routing_key, body, message_properties=None, mandatory=False, children=()):
        """jms.publish. As channel.py's."""
        arguments = self.ticket, exchange, routing_key, mandatory, False
        return self.publish_with("jms_publish", arguments, message_properties or {}, body, children)

    def tx_rollback(self):
        """Reply tx_rollback_ok."""
        return self.request("tx_rollback")

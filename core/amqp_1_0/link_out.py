"""A link on which we send: a consumer of the broker, its credit, transfers (sections 2.6.7 and 2.6.12).

The receiver gives credit, which is the consumer's. A delivery whose frame the peer takes and the send buffer has room for is written at
once; a larger one goes on in several transfers (outgoing.py). Delivery-ids are the delivery tags of the session's record.
"""

import struct

from ..broker import getting, local
from ..broker.numbered import is_held
from ..errors import CONTENT_TOO_LARGE, NOT_IMPLEMENTED, ProtocolError
from ..limits import REPLY_ROOM
from ..memory import hot, layout, serial
from ..message.reading import names_of
from ..outcomes import ACCEPTED, FAILS, MODIFIED, REJECTED, RELEASED
from ..parts import needed, part
from ..queue.turns import charge_made, is_overdue
from . import addresses, composites, convert, dispositions, filters, hot_row, modified, no_local, nodes, sections
from .bounds import POSITION_SIZE
from .conditions import INVALID_FIELD, LinkError
from .dynamic import asked
from .link import SETTLED, Link
from .link_in import text_of, transactions
from .outgoing import performative

if False:  # for the type checker alone
    from typing import Any

OUTCOMES = {"accepted": ACCEPTED, "rejected": REJECTED | FAILS, "released": RELEASED, "modified": MODIFIED | FAILS}
# A source that says no more than what a subscription lasts for: no address, durable (configuration), expiry-policy never.
_SUBSCRIPTION = ("described", ("symbol", "amqp:source:list"), [None, ("uint", 1), ("symbol", "never")])
SYMBOLS = ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"]


class OutgoingLink(Link):
    """An outgoing link: its consumer, the receiver's credit, and the rules of its source."""

    role = True  # the peer's: receiver
    is_plain_receiver = True

    def __init__(self, session, fields):
        self.sender = hot_row.sender(session.session)
        Link.__init__(self, session, fields)
        self.settled = fields["snd-settle-mode"] == SETTLED  # our deliveries leave settled
        self.size_max = fields["max-message-size"] or 0  # 0: any
        self.default = RELEASED  # what becomes of a delivery that is settled without an outcome
        self.refused = 0  # messages that it is not to get again, at most
        self.default_given: "Any" = None  # what modified.py is to do then
        self.reading: "Any" = None  # nodes.Reading
        # RabbitMQ's clients say so of each link: they rely on annotations of each message.
        self.paired = (fields["properties"] or {}).get(("symbol", "paired")) is True
        self.going: "Any" = None  # while its deliveries go back, in turns: the delivery-id that comes next
        # resuming.py, where deliveries outlive the link (receiver-settle-mode second): what it resumes, up to where the log has its queue
        self.resuming: "Any" = None
        self.resumed: "Any" = None
        self.again: "dict" = {}  # what was resumed with which tag
        self.tells_position = False  # with each message of a stream, in Event Hubs' annotations (positions.py)
        self.is_partial = False  # the receiver's map has not all: only what is resumed is sent
        self.safe: "Any" = None
        self.asked: "Any" = None
        self.prefix: "Any" = None  # octets of its transfers up to their delivery-id (hot_row.py), and where they lie
        self.prefix_at: "Any" = None
        self.work: "Any" = None  # the transaction that its deliveries are acquired in (transactions.py)

    # The engine counts it too, where it delivers by itself.
    delivery_count = property(lambda self: self.sender.delivery_count, lambda self, count: setattr(self.sender, "delivery_count", count))

    def begin(self):
        """The broker's attach has been written: deliveries may begin."""
        hot_row.see(self)

    def open(self, fields):
        """Make the consumer behind the link (section 2.6.3). Returns false while its queue cannot be made (`must_wait`)."""
        source = fields["source"]
        if source is None:  # by the link's name alone: which subscription there is (JMS mapping, 8.8)
            source = composites.composite(_SUBSCRIPTION)
        given = dict(source[1])
        policy = asked(given)
        given["dynamic-node-properties"] = None  # of a node that is not made for the link (section 3.5.3)
        self.default = default_of(given["default-outcome"])
        self.default_given = modified.asked(given["default-outcome"])
        node = addresses.source(text_of(given["address"]), given["dynamic"], given["capabilities"])
        if self.must_wait(node):
            return False
        lasts = bool(given["durable"]) and given["expiry-policy"] == "never"
        key = filters.binding_key(given["filter"])
        owner = no_local.owner_of(self.protocol) if filters.wants_no_local(given["filter"]) else None
        terminus = nodes.Terminus(self.protocol.container_id, self.name, given["capabilities"], lasts, key, owner)
        terminus.replaced = self.replaced()
        terminus.steal = self.steal
        reading = self.reading = nodes.reading(self.broker, self.protocol.connection, node, terminus)
        if reading is None:
            return False
        try:
            is_there = self.subscribe(given, fields["properties"] or {}, owner)
        except ProtocolError:
            self.end_reading()
            raise
        if not is_there:
            self.end_reading()
            return False
        if given["dynamic"] and reading.own:
            given["dynamic-node-properties"] = self.protocol.dynamic.add(self, reading.queue, policy)
        if reading.address is not None:
            given["address"] = reading.address
        if reading.private and not reading.ends:  # the queue goes with the link: our attach says so (section 2.6.3)
            given["durable"], given["expiry-policy"], given["timeout"] = 0, "link-detach", 0
        self.source, self.target = ("source", given), fields["target"]
        return True

    def subscribe(self, given, properties, owner):
        """Make the consumer. `given`: the fields of the source; afterwards those that the broker keeps to. `owner`: the publisher whose
        messages the consumer does not get, or None. False: the link that this one steals from has not given back all it held."""
        broker, reading = self.broker, self.reading
        queue = broker.queues[reading.queue]
        mode = given["distribution-mode"]
        # A queue that is a subscription has a copy of each message already: then both modes are the same.
        if mode not in (None, "move", "copy") or mode == "copy" and not (queue.is_stream or reading.bound):
            raise LinkError(NOT_IMPLEMENTED, "distribution-mode %s of queue '%s'" % (mode, reading.queue[:80]))
        is_noted = owner is not None and not (queue.is_stream or reading.bound or queue.is_paging())
        filters.charge(broker, given["filter"])
        taken = filters.read_set(given["filter"], queue.is_stream, reading.bound, broker.seconds + layout.EPOCH, reading.local or is_noted)
        path = text_of(given["address"])
        is_hub = path is not None and addresses.partition(addresses.path_of(path)) is not None
        self.tells_position = self.writes_all = queue.is_stream and (taken.is_position or is_hub)
        self.protocol.places.reserve(self, taken.size)
        arguments = taken.arguments
        priority = properties.get(("symbol", "rabbitmq:priority"))
        if isinstance(priority, tuple) and isinstance(priority[1], int) and not queue.is_stream:
            arguments["x-priority"] = priority[1]
        no_ack = self.settled and not queue.is_stream
        if self.second and not queue.is_stream:
            self.resuming = part("amqp_1_0.resuming")
        wishes: "Any" = needed("queue.wishes", "filters") if taken.tests or is_noted else None
        if is_noted:
            self.protocol.places.reserve(self, broker.limits.message_count_max // 8)
        asked_for = self.session, reading.queue, self.name, no_ack, reading.exclusive, arguments, 1
        if self.stolen:
            broker.consumers.prepare(*asked_for, ending=self.replaced())
            if not self.steal_from(queue):
                return False
        self.consumer = broker.consumers.subscribe(*asked_for)
        broker.consumers.add_credit(self.consumer, 0)  # it has that which the peer gives, and no window
        if is_noted:
            noted = local.Noted(broker, queue, owner)
            noted.consumer = self.consumer
            taken.tests.append(noted.fits)
        if taken.tests:
            wishes.attach(broker, self.consumer, taken.fits, reading.private)
        given["outcomes"] = [each for each in SYMBOLS if each in given["outcomes"]] or SYMBOLS
        given["default-outcome"] = given["default-outcome"] or ("released", {})
        given["distribution-mode"] = "copy" if queue.is_stream or mode == "copy" else "move"
        given["filter"] = taken.echo or None
        return True

    def replaced(self):
        """The consumers of the links that this one steals from."""
        return [link.consumer for link in self.stolen if link.consumer is not None]

    def steal_from(self, queue):
        """As `steal`; the queue stays, also where it is to go with its last consumer: that is this link's."""
        outlasts, queue.outlasts_consumers = queue.outlasts_consumers, True
        try:
            return self.steal()
        finally:
            queue.outlasts_consumers = outlasts

    def end_reading(self):
        """Delete the queue and bindings made for a link that the broker then refused."""
        consumer, reading = self.consumer, self.reading
        self.consumer = None
        if consumer is not None:
            self.broker.consumers.cancel(consumer, False)
        elif reading.own or reading.private and not reading.ends:
            nodes.close(self.broker, self.protocol.connection, reading.queue, True)

    def recover(self, fields):
        """Resume the deliveries that an earlier link of this name left unsettled and the receiver lists (section 2.6.13)."""
        if fields["unsettled"] is not None and not self.consumer.queue.is_stream:
            self.is_partial = fields["incomplete-unsettled"]
            self.resuming = needed("amqp_1_0.resuming", "links that are resumed")
            self.resumed = self.resuming.recover(self, fields["unsettled"])
            self.protocol.places.reserve(self, POSITION_SIZE * len(self.resumed))

    def attach_fields(self, fields):
        """The fields of our attach."""
        given = Link.attach_fields(self, fields)
        given["unsettled"] = None if self.resumed is None else self.resuming.map_of(self.resumed)
        return given

    # Credit (section 2.6.7)

    def left(self):
        """The credit that is left."""
        if self.consumer is None:
            return 0
        return self.broker.tables.consumers[self.consumer.handle + layout.CONSUMER_CREDIT]

    def flow(self, fields):
        """Set the receiver's credit; with drain, send it the messages there are and use the rest up (section 2.6.7)."""
        if fields["link-credit"] is not None and self.consumer is not None:
            self.broker.consumers.add_credit(self.consumer, min(self.granted(fields), layout.CREDIT_UNLIMITED - 1) - self.left())
        work, self.work = self.work, None if fields["properties"] is None else transactions().acquiring(self.session, fields["properties"])
        if work is not self.work:
            hot_row.see(self)
        self.drain = fields["drain"]
        if self.drain and self.protocol.drains(self):
            return
        if fields["echo"]:
            self.session.say_flow(self)

    def drained(self):
        """Serve a receiver that drains (section 2.6.7): true when it has every message there is, its credit is used up, and a flow has
        told it so."""
        if not self.drain or self.consumer is None:
            return True
        if self.left() > 0:
            if not self.has_all():
                return False
            self.delivery_count = serial.after(self.delivery_count, self.left())
            self.broker.consumers.add_credit(self.consumer, -self.left())
        self.session.say_flow(self)  # with drain as the receiver said it last (section 2.7.4): rhea waits for that
        return True

    def has_all(self):
        """True when the queue has no message that this link could get now."""
        queue, session = self.consumer.queue, self.session
        if queue.is_stream:
            return self.consumer.cursor_offset >= queue.readable_offset()
        engine = self.broker.tables.engine
        if session.session.searching <= 0:
            return False
        engine.begin_round(0, engine.deliveries)
        is_served = getting.serve(self.broker, queue)
        session.session.searching -= engine.deliveries - engine.left + 1
        if not is_served or self.consumer is None:
            return False
        if self.session.unsafe is not None:
            return False
        if self.left() <= 0 or getting.state(self.broker, queue) == getting.EMPTY:
            return True
        is_short = session.connection.send.is_short() or session.outgoing.active() or session.remote_incoming_window <= 0
        return not is_short and not self.broker.tables.queues[queue.handle + layout.QUEUE_ACTIVE] and queue.head() != layout.NONE

    def put_flow(self, fields):
        """Put the link's state into a flow."""
        fields["handle"] = self.handle
        fields["delivery-count"] = self.delivery_count
        fields["link-credit"] = self.left()
        fields["drain"] = self.drain
        if self.consumer is not None:
            fields["available"] = min(self.consumer.queue.message_count(), 0xFFFFFFFF)

    # Ending

    def transfer(self, fields, octets, at, end):
        """Refuse a transfer: the peer of this link is its receiver."""
        raise LinkError(INVALID_FIELD, "a transfer on link '%s', whose sender is this broker" % self.name[:80])

    def give_back(self):
        """Return the deliveries to their queue as if the link had not had them, and end the consumer; false: some are left for the next
        call."""
        consumer = self.consumer
        if self.session.outgoing.link is self:
            self.session.outgoing.abandon()
            self.session.wake()
        if consumer is None:
            return True
        self.broker.consumers.add_credit(consumer, -self.left())
        tables = self.broker.tables
        entries = tables.entries
        entry = tables.channels[self.session.handle + layout.CHANNEL_UNSETTLED_HEAD]
        if self.going is not None and entry != layout.NONE:
            entry = dispositions.entry_from(self.session, self.going, dispositions.tail_number(self.session))
        while entry != layout.NONE:
            if tables.state[layout.STATE_LEFT] <= 0:
                self.going = dispositions.number_of(self.session, entry)
                return False
            behind = entries[entry + layout.ENTRY_NEXT]
            tables.state[layout.STATE_LEFT] -= 1
            if entries[entry + layout.ENTRY_CONSUMER] == consumer.handle:
                tables.state[layout.STATE_LEFT] -= self.broker.consumers.look_cost()
                self.broker.consumers.settle(self.session, entry, entry, RELEASED)
            entry = behind
        self.consumer = None
        self.broker.consumers.cancel(consumer, False)
        return True

    def close(self):
        """End the link's own subscription, because the peer has closed the link and not only detached it; false: messages are left to
        drop."""
        reading = self.reading
        if reading is not None and reading.ends and not reading.own:
            return nodes.close(self.broker, self.protocol.connection, reading.queue, False)
        return True

    def drop(self):
        """Forget the consumer; the session ends it."""
        self.consumer = None


def default_of(state):
    """The broker's outcome for a source's default-outcome (section 3.5.3)."""
    if state is None:
        return RELEASED
    if not isinstance(state, tuple) or state[0] not in OUTCOMES:
        raise LinkError(INVALID_FIELD, "a default-outcome that is no outcome (section 3.5.3)")
    name, given = state
    return RELEASED if name == "modified" and not given["delivery-failed"] else OUTCOMES[name]


# Delivering


def deliver(link, most, before):
    """Write up to `most` deliveries. Returns their number."""
    consumer, session, broker = link.consumer, link.session, link.broker
    if consumer.queue.is_stream:
        from .deliver_stream import deliver_stream

        return deliver_stream(link, most, before)
    tables = broker.tables
    queue = consumer.queue
    count = 0
    takes = session.session.hot is not None
    while count < most and broker.consumers.has_credit(consumer) and session.may_send():
        if takes:
            quick = hot_row.deliver(link, most - count)
            if quick:
                count += quick
                continue
        if is_overdue(queue):
            break
        entry = queue.head()
        if entry == layout.NONE:
            break
        if link.resuming is not None and not link.resuming.is_safe(link, queue, entry):
            break
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        noted = route_noted(broker, message) if link.paired else None
        lead = lead_of(broker, queue, entry, noted)
        if too_large(link, queue, len(lead) + tables.messages[message + layout.MESSAGE_BODY]):
            break
        if not has_room(session, len(lead), tables.messages[message + layout.MESSAGE_BODY]):
            session.connection.send.starve(consumer, count + before)
            break
        queue.pop()
        try:
            send(link, entry, message, lead)
        except Exception:  # all or nothing: an entry that the session does not hold goes back to its queue
            if not is_held(session, entry):
                queue.requeue(entry)
            raise
        if link.settled:
            queue.drop(entry)
        count += 1
        if not charge_made(broker, queue):
            break
    return count


def lead_of(broker, queue, entry, noted=None):
    """The octets before the body of an entry's message, as convert.head_for_1_0 has them. From a queue with x-delivery-limit, which quorum
    queues have, they say how often it has come back, as RabbitMQ's do."""
    tables = broker.tables
    returns = tables.entries[entry + layout.ENTRY_REDELIVERED] & layout.ENTRY_RETURNS
    failed = returns & 255
    if returns and tables.queues[queue.handle + layout.QUEUE_LIMITS] & layout.LIMIT_COUNTS:
        noted = noted or {}
        noted["x-delivery-count"] = failed + (returns >> layout.ENTRY_RELEASED)
    return convert.head_for_1_0(broker, tables.entries[entry + layout.ENTRY_MESSAGE], failed, noted)


def route_noted(broker, message):
    """The annotations that RabbitMQ 4 adds to each delivery: where the message was published to."""
    exchange, key = names_of(broker.tables, message)
    noted: "dict" = {"x-exchange": exchange}
    text = sections.utf8(key)
    if text is not None:
        noted["x-routing-key"] = text
    return noted


def too_large(link, queue, size):
    """Detach the link when the next message exceeds the receiver's max-message-size, and return true; the message stays for other
    consumers."""
    if not 0 < link.size_max < size:
        return False
    text = "the next message in queue '%s' has %d octets, and max-message-size of the link is %d" % (queue.name[:64], size, link.size_max)
    link.step("error", CONTENT_TOO_LARGE, text)
    return True


def has_room(session, lead, body):
    """True when the send buffer has place for a delivery of so many octets, or the delivery exceeds the buffer and its first transfer
    fits."""
    send = session.connection.send
    room = send.room() - REPLY_ROOM
    whole = lead + body + 64
    if whole <= min(session.session.frame_max_out, send.size - REPLY_ROOM):
        return whole <= room
    return (room >= 512 or send.start == send.end) and session.session.may_keep(lead)


def send(link, entry, message, lead):
    """Deliver an entry that is in no list: count it, write what can be written, and have the session hold it until it is settled. After an
    error either the session holds it (is_held), or it is in no list."""
    session, broker = link.session, link.broker
    tables = broker.tables
    hot.next_number(tables.channels, session.handle + layout.CHANNEL_TAG)
    tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
    link.delivery_count = serial.after(link.delivery_count, 1)
    if tables.messages[message + layout.MESSAGE_KIND] & layout.KIND_FOR_US:
        tables.messages[message + layout.MESSAGE_KIND] |= layout.KIND_ACQUIRED
    if link.consumer.no_ack:
        tables.consumers[link.consumer.handle + layout.CONSUMER_CREDIT] -= 1
    else:
        broker.consumers.hold(link.consumer, entry)
    number = dispositions.tail_number(session)
    write(link, message, number, lead, first_of(link, entry, number))


def write(link, message, number, lead, first):
    """Write a delivery, or begin it. `number`: its delivery-id; `lead`: octets before the message's body; `first`: as Outgoing.start has
    it."""
    session = link.session
    tables = session.broker.tables
    buffer = session.connection.send
    body = tables.messages[message + layout.MESSAGE_BODY]
    head = performative(link.handle, number, link.settled, False, link.writes_all, *first)
    size = 8 + len(head) + len(lead) + body
    if size > min(session.session.frame_max_out, buffer.room() - REPLY_ROOM):
        session.outgoing.start(link, message, number, lead, first)
        return
    start = tables.size_of(message) - body
    buffer.write(struct.pack(">IBBH", size, 2, 0, session.number) + head + lead)
    if body:
        at = buffer.end
        hot.extract(tables.arena, tables.blocks, tables.state, tables.messages[message], start, buffer.octets, at, body)
        buffer.wrote(at + body)
    session.count_sent()


def first_of(link, entry, number):
    """What the first transfer of a delivery says more than others: (its delivery-tag or a number that this is made of, octets of its state,
    True when it is resumed)."""
    tag, resume = (number, False) if link.resuming is None else link.resuming.tag_of(link, entry, number)
    return tag, b"" if link.work is None else transactions().acquired(link, number), resume

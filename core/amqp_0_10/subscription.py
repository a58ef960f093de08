"""A subscription (message.subscribe): a consumer of the broker, its credit by messages and by octets, and its deliveries.

Credit begins at zero, and a delivery needs both kinds of it. In window mode, which is the default, the completion of a transfer
(session.completed) gives back what it took; in credit mode message.flow alone gives. 0xFFFFFFFF is no limit, until message.stop or
message.flush. A delivery has command, header and body in frames of their own, all written at once where they fit.
"""

from ..broker import crossing
from ..broker.numbered import is_held
from ..limits import REPLY_ROOM
from ..memory import hot, layout, serial
from ..message.formats import AMQP_0_10
from ..parts import part
from ..queue.turns import charge_made, is_overdue
from ..shim import const
from . import convert, frame, hot_row, numbers, structs
from .ranges import overlaps, remains

if False:  # for the type checker alone
    from typing import Any

ENDLESS = const(0xFFFFFFFF)  # a credit without limit
CREDIT = const(0)  # flow modes
WINDOW = const(1)
SPENT = const(-1)  # in the place of octets: the completion of these transfers gives no credit
RUNS_MAX = const(4096)  # runs of transfers that wait for their completion: then nothing is delivered


class Subscription:
    """One subscription. `destination`: its name, the destination of its transfers."""

    lasts = True  # what it delivers is sent again on another transport

    def __init__(self, session, destination, accept_none, browses=False):
        self.session = session
        self.broker = session.broker
        self.destination = destination
        self.accept_none = accept_none
        self.holds = False  # a delivery of accept-mode none is held until its transfer is completed: its session lives beyond its transport
        self.more: "dict" = {}  # fields of delivery-properties: resume-id, resume-ttl
        self.consumer: "Any" = None
        self.mode = WINDOW
        self.messages = 0  # credit, ENDLESS: no limit
        self.octets = 0
        # The command's segment: it is the same for all deliveries.
        fields = {"destination": destination, "accept_mode": 1 if accept_none else 0, "acquire_mode": 1 if browses else 0}
        self.command = structs.write_command("message_transfer", fields)
        self.lead: "Any" = None  # the frame of it (hot_row.lead_of), on the protocol `lead_of`
        self.lead_of: "Any" = None

    def grant(self, is_octets, value):
        """message.flow: so many messages or octets more."""
        value = ENDLESS if value is None else value
        if is_octets:
            self.octets = ENDLESS if ENDLESS in (value, self.octets) else min(self.octets + value, ENDLESS - 1)
        else:
            self.messages = ENDLESS if ENDLESS in (value, self.messages) else min(self.messages + value, ENDLESS - 1)
        self.tell_broker()

    def stop(self):
        """message.stop: no credit, and none by the completion of what was sent before."""
        self.messages = self.octets = 0
        for run in self.session.sent:
            if run[2] is self:
                run[3] = SPENT
        self.tell_broker()

    def deliver(self, most, before):
        """Write up to `most` deliveries beside `before` in this turn: how many."""
        return deliver(self, most, before)

    def tell_broker(self):
        """The broker's consumer has the credit that there is: none while there is none by octets."""
        left = self.broker.tables.consumers[self.consumer.handle + layout.CONSUMER_CREDIT]
        wanted = min(self.messages, layout.CREDIT_UNLIMITED - 1) if self.octets else 0
        self.broker.consumers.add_credit(self.consumer, wanted - left)

    def pause(self):
        """No credit while its session has no transport: what the peer has given counts again on the next one."""
        left = self.broker.tables.consumers[self.consumer.handle + layout.CONSUMER_CREDIT]
        self.broker.consumers.add_credit(self.consumer, -left)

    def used(self, size):
        """A delivery of `size` octets of header and body was written."""
        if self.messages != ENDLESS:
            self.messages -= 1
        if self.octets != ENDLESS:
            self.octets = max(self.octets - size, 0)
        if self.notes():
            note_sent(self, 1, size if self.octets != ENDLESS else 0)
        if not self.octets or self.messages == ENDLESS:
            self.tell_broker()

    def used_run(self, count):
        """So many deliveries were written, without a limit of octets."""
        if self.messages != ENDLESS:
            self.messages -= count
        elif self.broker.tables.consumers[self.consumer.handle + layout.CONSUMER_CREDIT] < hot_row.LOW_CREDIT:
            self.tell_broker()
        if self.notes():
            note_sent(self, count, 0)

    def notes(self):
        """True when the completion of its transfers changes something."""
        return self.session.timeout_s or self.holds or self.mode == WINDOW and not self.messages == self.octets == ENDLESS

    def give_back(self, count, octets):
        """Transfers are completed: in window mode that is credit."""
        if self.session.subscriptions.get(self.destination) is not self or self.mode != WINDOW:
            return
        if self.messages != ENDLESS:
            self.messages = min(self.messages + count, ENDLESS - 1)
        if self.octets != ENDLESS:
            self.octets = min(self.octets + octets, ENDLESS - 1)
        self.tell_broker()


# What was sent, and is not completed: runs [first id, last id, subscription, octets of each or SPENT]


def note_sent(subscription, count, size):
    """The completion of the last `count` transfers will give credit: `size` octets each."""
    sent = subscription.session.sent
    last = serial.after(numbers.tail(subscription.session), -1)
    first = serial.after(last, 1 - count)
    if sent and sent[-1][2] is subscription and sent[-1][3] == size and serial.after(sent[-1][1], 1) == first:
        sent[-1][1] = last
    else:
        sent.append([first, last, subscription, size])


def completed(session, ranges):
    """Transfers of these ranges, which ascend, are completed: their subscriptions have credit again."""
    sent = session.sent
    session.sent = [[first, last, sent[place][2], sent[place][3]] for place, first, last in remains(sent, ranges)]
    for place, first, last in overlaps(sent, ranges):
        if sent[place][3] == SPENT:
            continue
        count = serial.distance(first, last) + 1
        sent[place][2].give_back(count, count * sent[place][3])


# Delivering


def deliver(subscription, most, before):
    """Write up to `most` deliveries: how many."""
    consumer, session, broker = subscription.consumer, subscription.session, subscription.broker
    if consumer.queue.is_stream:
        from .deliver_stream import deliver_stream

        return deliver_stream(subscription, most, before)
    tables, queue = broker.tables, consumer.queue
    count = 0
    while count < most and can_go_on(subscription) and not is_overdue(queue):
        quick = deliver_run(subscription, most - count) if may_run(subscription) else 0
        if quick and broker.tables.engine.left <= 0:
            count += quick
            break
        if quick:
            count += quick
            continue
        entry = queue.head()
        if entry == layout.NONE:
            break
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        if may_run(subscription) and hot_row.waits_for_room(subscription, message):
            session.connection.send.starve(consumer, count + before)
            break
        header = convert.header_segment(broker, message, bool(tables.entries[entry + layout.ENTRY_REDELIVERED] & 255), subscription.more)
        pieces = pieces_of(broker, message)
        size = len(header) + body_size(tables, message, pieces)
        if not has_room(session, subscription, len(header), size):
            session.connection.send.starve(consumer, count + before)
            break
        if subscription.octets != ENDLESS and size > subscription.octets:
            broker.consumers.add_credit(consumer, -tables.consumers[consumer.handle + layout.CONSUMER_CREDIT])
            break
        queue.pop()
        try:
            send(subscription, entry, message, header, pieces)
        except Exception:  # all or nothing: an entry that the session does not hold goes back to its queue
            if not is_held(session, entry):
                queue.requeue(entry)
            raise
        if consumer.no_ack:
            queue.drop(entry)
        count += 1
        subscription.used(size)
        if not charge_made(broker, queue):
            break
    if session.session.outgoing.active():
        session.connection.send.starve(consumer, count + before)
    return count


def deliver_run(subscription, most):
    """Up to `most` deliveries that go out whole: how many. Those of messages of other families are the engine's where it converts them, and
    else foreign.py's."""
    tables, head = subscription.broker.tables, subscription.consumer.queue.head()
    if head == layout.NONE:
        return 0
    kind = tables.messages[tables.entries[head + layout.ENTRY_MESSAGE] + layout.MESSAGE_KIND]
    converts = subscription.session.session.hot.converts
    if kind & layout.KIND_FORMAT == AMQP_0_10 or converts:
        made = hot_row.deliver(subscription, most)
        if made or kind & layout.KIND_FORMAT == AMQP_0_10:
            return made
    foreign = part("amqp_0_10.foreign")
    return 0 if foreign is None else foreign.deliver(subscription, 1 if converts else most)


def can_go_on(subscription):
    """True when a delivery may begin: there is credit, and nothing is half written."""
    session = subscription.session
    return (
        not session.closing
        and session.replay_at is None
        and len(session.sent) < RUNS_MAX
        and not session.session.outgoing.active()
        and subscription.broker.consumers.has_credit(subscription.consumer)
    )


def may_run(subscription):
    """True when the engine may make deliveries (hot_row.deliver)."""
    session = subscription.session
    return session.session.hot is not None and session.has_point and subscription.octets == ENDLESS and not subscription.more


def pieces_of(broker, message):
    """The pieces of a message's body that go to receivers of 0-10; None: all of it."""
    tables = broker.tables
    if tables.messages[message + layout.MESSAGE_KIND] & layout.KIND_FORMAT in (0, AMQP_0_10):
        return None
    return crossing.pieces(tables, message)


def body_size(tables, message, pieces):
    """Octets of a body of which these pieces are delivered."""
    return tables.messages[message + layout.MESSAGE_BODY] if pieces is None else sum([size for _, size in pieces])


def has_room(session, subscription, header, size):
    """True when a delivery with `size` octets of header and body can be written whole now, or is larger than can ever be, and can begin."""
    send, frame_max = session.connection.send, session.session.frame_max_out
    frames = 3 + header // (frame_max - frame.HEAD) + (size - header) // (frame_max - frame.HEAD)
    whole = len(subscription.command) + size + frames * frame.HEAD + 64
    room = send.room() - REPLY_ROOM
    return whole <= room or whole > send.size - REPLY_ROOM and (room >= 512 or send.start == send.end)


def send(subscription, entry, message, header, pieces):
    """Deliver an entry that is in no list: count it, have the session hold it, and write what can be written."""
    session, broker, consumer = subscription.session, subscription.broker, subscription.consumer
    tables = broker.tables
    session.say_point()
    session.count()
    tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
    if consumer.no_ack:
        tables.consumers[consumer.handle + layout.CONSUMER_CREDIT] -= 1
    else:
        broker.consumers.hold(consumer, entry)
    write(subscription, message, header, pieces)


def write(subscription, message, header, pieces):
    """Write a delivery, or begin it."""
    session = subscription.session
    protocol, number, tables = session.session, session.number, subscription.broker.tables
    size = body_size(tables, message, pieces)
    frame_max = protocol.frame_max_out
    lead = frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, number, subscription.command, frame_max)
    lead += frame.segment(0 if size else frame.LAST_SEGMENT, frame.HEADER, number, header, frame_max)
    send_ = protocol.send
    if pieces is not None or size + frame.HEAD > frame_max or len(lead) + size + frame.HEAD > send_.room() - REPLY_ROOM:
        protocol.outgoing.start(protocol, session, message, lead, pieces)
        return
    if not size:
        send_.write(lead)
        return
    send_.write(lead + frame.head(frame.LAST_SEGMENT | frame.FIRST_FRAME | frame.LAST_FRAME, frame.BODY, number, size))
    at = send_.end
    start = tables.size_of(message) - size
    hot.extract(tables.arena, tables.blocks, tables.state, tables.messages[message], start, send_.octets, at, size)
    send_.wrote(at + size)

"""Class stream: packets that are delivered once, unacknowledged, and at a rate. A packet is an ordinary message that is not durable.

A consumer's rate (stream.qos, consume-rate) is core/staging/rate.py's. Its windows (prefetch-size, prefetch-count) are filled again as the
client completes stream.deliver.
"""

from ..errors import NOT_IMPLEMENTED
from ..memory import layout, serial
from ..message import reading
from ..message.route import PART_MAX
from ..queue.turns import charge_made, is_overdue
from ..staging import publishing
from ..staging.rate import DROP, WAIT, Rate, drop
from . import file_content, numbers, structs, subscription, transfer
from .conditions import SessionError
from .file_class import cancel_one, check_consume, subscribe
from .subscription import ENDLESS, Subscription, body_size, can_go_on, has_room, pieces_of


class Publish:
    """The taker of stream.publish (mapping.py)."""

    @staticmethod
    def begin(session, fields):
        """The command."""
        fields["destination"], fields["accept_mode"] = fields["exchange"], 1
        session.header = b""

    @staticmethod
    def header(session, payload, is_last):
        """The header segment is whole: it becomes that of an ordinary message."""
        key = session.fields["routing_key"] or ""
        delivery = {"delivery_mode": 1}
        octets = file_content.message_header(file_content.STREAM, payload, delivery)
        exchange = (session.fields["exchange"] or "").encode("utf-8")
        return transfer.header(session, file_content.routed(octets, exchange, key.encode("utf-8")[: PART_MAX + 1]), is_last)

    body = staticmethod(transfer.body)
    end = staticmethod(file_content.end_publish)
    returned = staticmethod(file_content.returned)


TAKERS = {"stream_publish": Publish}


def stream_qos(session, fields):
    """Qos: windows and rate of this session's consumers, those that are there and those to come, or of the whole connection's."""
    sessions = session.session.attached.values() if fields["global"] else [session]
    for each in list(sessions):
        each.stream_qos = fields
        for made in each.subscriptions.values():
            if isinstance(made, StreamConsumer):
                made.set_qos(fields)
    session.command("stream_qos_ok", {})


def stream_consume(session, fields):
    """Consume: deliveries begin at once."""
    queue = check_consume(session, fields)
    if queue.is_stream:
        raise SessionError(NOT_IMPLEMENTED, "stream.consume of a stream that keeps its messages")
    made = StreamConsumer(session, fields["consumer_tag"], queue.name)
    subscribe(session, made, queue, fields)
    session.broker.consumers.add_credit(made.consumer, 0)  # it has that of its windows
    made.set_qos(session.stream_qos or {})
    if not fields["nowait"]:
        session.command("stream_consume_ok", {"consumer_tag": fields["consumer_tag"]})


def stream_cancel(session, fields):
    """Cancel."""
    cancel_one(session, fields, StreamConsumer)


class StreamConsumer(Subscription):
    """One consumer of class stream: a subscription in window mode that acknowledges by itself."""

    lasts = False

    def __init__(self, session, tag, queue_name):
        Subscription.__init__(self, session, tag, True)
        self.queue_name = queue_name
        self.rate = Rate(self.broker)
        self.is_paused = False  # a packet waits for the bucket

    def set_qos(self, fields):
        """Windows and rate as stream.qos has them."""
        mine = [each for each in self.session.sent if each[2] is self]
        count = sum([serial.distance(each[0], each[1]) + 1 for each in mine])
        size = sum([max(each[3], 0) * (serial.distance(each[0], each[1]) + 1) for each in mine])
        self.messages = max(fields["prefetch_count"] - count, 0) if fields.get("prefetch_count") else ENDLESS
        self.octets = max(fields["prefetch_size"] - size, 0) if fields.get("prefetch_size") else ENDLESS
        self.rate.set(fields.get("consume_rate") or 0)
        self.tell_broker()
        self.broker.activate(self.consumer.queue)

    def deliver(self, most, before):
        """Write up to `most` deliveries, and drop what is above the rate: how many."""
        session, broker, queue = self.session, self.broker, self.consumer.queue
        tables, count = broker.tables, 0
        while count < most and can_go_on(self) and not is_overdue(queue):
            entry = queue.head()
            if entry == layout.NONE:
                break
            message = tables.entries[entry + layout.ENTRY_MESSAGE]
            said = self.rate.asked(message)
            if said == WAIT:
                self.pause()
                break
            if said == DROP:
                drop(broker, queue, entry)
                count += 1
                continue
            header = file_content.header_of(file_content.STREAM, publishing.properties_of(broker, message))
            pieces = pieces_of(broker, message)
            size = len(header) + body_size(tables, message, pieces)
            self.say(reading.names_of(tables, message)[0])
            if not has_room(session, self, len(header), size):
                session.connection.send.starve(self.consumer, count + before)
                break
            if self.octets != ENDLESS and size > self.octets and session.sent:
                break
            queue.pop()
            subscription.send(self, entry, message, header, pieces)
            queue.drop(entry)
            self.rate.used(size)
            count += 1
            self.used(size)
            if not charge_made(broker, queue):
                break
        if session.session.outgoing.active():
            session.connection.send.starve(self.consumer, count + before)
        return count

    def say(self, exchange):
        """The command of the next delivery."""
        given = {
            "consumer_tag": self.destination,
            "delivery_tag": numbers.tail(self.session) + 1,
            "exchange": exchange,
            "queue": self.queue_name,
        }
        self.command = structs.write_command("stream_deliver", given)

    def pause(self):
        """A packet waits for the bucket: look again as time passes (browsing.py)."""
        browsing = self.session.session.browsing
        if self not in browsing:
            browsing.append(self)

    def is_gone(self):
        """True when nothing waits, or the consumer was cancelled."""
        return self.session.closing or self.session.subscriptions.get(self.destination) is not self

    def go_on(self):
        """Time has passed: the bucket may have been filled."""
        if self.rate.fill():
            self.session.session.browsing.remove(self)
            self.broker.activate(self.consumer.queue)

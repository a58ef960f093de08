"""Class stream of AMQP 0-8, 0-9 and the drafts of 2005: packets that are delivered once, unacknowledged, at a rate (core/staging/rate.py).

A packet is an ordinary message that is not durable. Nothing is acknowledged, so the windows of stream.qos have nothing to count: what is
not written yet waits in its queue. stream.publish: older_actions.py.
"""

from ..memory import layout
from ..message import reading
from ..queue.turns import charge_made, is_overdue
from ..staging.rate import DROP, WAIT, Rate, drop
from . import deliver, verbs
from .file_class import add_reader, cancel, subscribe


class StreamReader:
    """A consumer of class stream."""

    def __init__(self, session, channel, consumer, rate):
        self.session = session
        self.channel = channel
        self.consumer = consumer
        self.rate = Rate(session.broker)
        self.rate.set(rate)

    def is_over(self):
        """True when nothing is delivered any more."""
        return self.channel.closing or self.channel.consumers.get(self.consumer.tag) is not self.consumer

    def deliver(self, most, before):
        """Write up to `most` deliveries, and drop what is above the rate: how many."""
        session, consumer = self.session, self.consumer
        broker, queue, number = session.broker, consumer.queue, self.channel.number
        tables, count = broker.tables, 0
        while count < most and not session.outgoing.active() and broker.consumers.has_credit(consumer) and not is_overdue(queue):
            entry = queue.head()
            if entry == layout.NONE:
                break
            message = tables.entries[entry + layout.ENTRY_MESSAGE]
            said = self.rate.asked(message)
            if said == WAIT:
                if self not in session.paused:
                    session.paused = session.paused + [self]
                break
            if said == DROP:
                drop(broker, queue, entry)
                count += 1
                continue
            header, body = session.content_out(number, session.stream_id, message)
            if deliver.refuses_header(session, consumer, len(header), "the next message"):
                return count
            exchange = reading.names_of(tables, message)[0]
            redelivered = tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 != 0
            handle = self.channel.handle
            last = deliver.number_at(tables.channels, handle + layout.CHANNEL_TAG_HIGH, handle + layout.CHANNEL_TAG)
            frames = session.stream_delivery(self, int.from_bytes(last, "big") + 1, redelivered, exchange) + header
            size = len(frames) + len(body)
            if not session.begin_content(number, message, frames, body):
                session.send.starve(consumer, count + before)
                break
            deliver.count_tag(tables, self.channel)
            tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
            queue.pop()
            queue.drop(entry)
            self.rate.used(size)
            count += 1
            if not charge_made(broker, queue):
                break
        if session.outgoing.active():
            session.send.starve(consumer, count + before)
        return count


def stream_qos(session, channel, arguments):
    """stream.qos: the rate of the channel's consumers, those that are there and those to come, or of the whole connection's."""
    _, _, rate, is_global = arguments
    for each in list(session.channels.values()) if is_global else [channel]:
        each.stream_rate = rate
        for reader in each.readers.values():
            if isinstance(reader, StreamReader):
                reader.rate.set(rate)
                session.broker.activate(reader.consumer.queue)
    session.reply(channel.number, "stream_qos_ok", ())


def stream_consume(session, channel, arguments):
    """stream.consume: deliveries begin at once."""
    _, name, tag, _, exclusive, no_wait = arguments[:6]
    consumer = subscribe(session, channel, name, tag, True, exclusive, arguments[6:], "stream")
    add_reader(channel, StreamReader(session, channel, consumer, channel.stream_rate))
    verbs.answer(session, channel, no_wait, "stream_consume_ok", (consumer.tag,))


def stream_cancel(session, channel, arguments):
    """stream.cancel."""
    cancel(session, channel, arguments, "stream_cancel_ok", StreamReader)


VERBS = {"stream_qos": stream_qos, "stream_consume": stream_consume, "stream_cancel": stream_cancel}

"""The arguments of a subscription to a stream (core/SPEC.md, streams).

x-stream-offset            where to start: first, last, next, an offset, a timestamp; stored: where x-stream-consumer left off
x-stream-consumer          a name under which the stream keeps this consumer's offset
x-stream-strict            true: an offset that is gone, or a cursor that retention overtakes, is an error that names the first offset
x-stream-filter            a text or a list of texts: only messages whose header x-stream-filter-value is one of them
x-stream-match-unfiltered  true: also messages without that header, or whose value is empty
x-stream-pack-records      up to so many records in one message (amqp_0_9/packed.py)
x-stream-pack-octets       up to so many octets in one such message
"""

from ..errors import NOT_IMPLEMENTED, PRECONDITION_FAILED, RESOURCE_ERROR, ProtocolError
from ..limits import cost
from ..memory import hot, layout

FILTER_PART = 4  # of argument_size_max: what a consumer's filter may take, as Topology.check_size counts it

KEPT_MAX = 256  # names of consumers whose offset a stream keeps

OFFSET_NAMES = ("first", "last", "next", "stored")

FILTER_NAME = "x-stream-filter-value"


def begin(broker, consumer, stream, arguments, prefetch):
    """Set a new consumer's cursor and wishes from its arguments; raises ProtocolError for arguments that make no sense."""
    if consumer.no_ack:
        raise ProtocolError(NOT_IMPLEMENTED, "consumer of stream '%s' cannot use no_ack" % stream.name)
    if not prefetch:
        raise ProtocolError(PRECONDITION_FAILED, "consumer prefetch count is not set for stream '%s'" % stream.name)
    consumer.strict = flag(arguments, "x-stream-strict")
    consumer.keeps = text(arguments, "x-stream-consumer")
    if consumer.keeps is not None and not may_keep(broker, stream, consumer.keeps):
        raise ProtocolError(RESOURCE_ERROR, "stream '%s' keeps the offsets of as many consumers as it can" % stream.name)
    wanted = filter_of(arguments)
    if wanted is not None and cost(wanted) > broker.limits.argument_size_max // FILTER_PART:
        invalid("x-stream-filter", "its texts are larger than this broker keeps for a consumer")
    consumer.filter = wanted
    consumer.unfiltered = flag(arguments, "x-stream-match-unfiltered")
    consumer.pack_records = number(arguments, "x-stream-pack-records")
    consumer.pack_octets = number(arguments, "x-stream-pack-octets")
    if consumer.pack_records and wanted is not None:
        invalid("x-stream-filter", "not together with x-stream-pack-records")
    offset = offset_of(stream, arguments, consumer.keeps)
    if consumer.strict and isinstance(offset, int) and not stream.first_offset <= offset <= stream.next_offset():
        raise ProtocolError(PRECONDITION_FAILED, out_of_range(stream, offset))
    consumer.cursor, consumer.cursor_offset = stream.seek(offset)


def may_keep(broker, stream, name):
    """True when a stream may keep the offset of one more consumer: KEPT_MAX for each stream, offset_count_max for all together."""
    names = stream.names()
    if name in names:
        return True
    total = sum([len(each.names()) for each in broker.queues.values() if each.is_stream])
    return len(names) < KEPT_MAX and total < broker.limits.offset_count_max


def out_of_range(stream, offset):
    """The text that a strict reader gets."""
    return "offset %d of stream '%s' is out of range: the first is %d, the next %d" % (
        offset,
        stream.name,
        stream.first_offset,
        stream.next_offset(),
    )


def offset_of(stream, arguments, keeps):
    """The x-stream-offset, checked; "next" when there is none, "stored" resolved."""
    offset = arguments.get("x-stream-offset", "next")
    if offset == "stored" or ("x-stream-offset" not in arguments and keeps in stream.kept):
        if keeps is None:
            invalid("x-stream-offset", "stored needs x-stream-consumer")
        return stream.kept.get(keeps, "first")
    whole = isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0
    if not whole and offset not in OFFSET_NAMES and not isinstance(offset, tuple):
        invalid("x-stream-offset", "expected first, last, next, stored, an offset or a timestamp")
    return offset


def filter_of(arguments):
    """The list of wanted filter values, or None."""
    wanted = arguments.get("x-stream-filter")
    if wanted is None:
        return None
    if isinstance(wanted, str):
        return [wanted]
    if not isinstance(wanted, list) or [each for each in wanted if not isinstance(each, str)]:
        invalid("x-stream-filter", "expected a longstr or an array of them")
    return wanted


def fits(consumer, octets, header):
    """True when a filtering consumer wants a message with these properties (bytes); `header`: the function of their format."""
    value = header(octets, FILTER_NAME)
    if value is None or value == "":  # an empty value filters nothing (RabbitMQ): both are one
        return consumer.unfiltered or "" in consumer.filter
    return value in consumer.filter


def flag(arguments, name):
    """A boolean argument, false when it is absent."""
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        invalid(name, "expected boolean")
    return value


def text(arguments, name):
    """A text argument of at most 255 characters, or None."""
    value = arguments.get(name)
    if value is not None and (not isinstance(value, str) or not 0 < len(value) <= 255):
        invalid(name, "expected a longstr of 1 to 255 characters")
    return value


def number(arguments, name):
    """A number argument above 0, or 0 when it is absent."""
    value = arguments.get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        invalid(name, "expected a number above 0")
    return value


def invalid(name, reason):
    """Raise precondition-failed for an argument of a subscription."""
    raise ProtocolError(PRECONDITION_FAILED, "invalid arg '%s': %s" % (name, reason))


def has_entry(tables, consumer):
    """True when a delivery has an entry: of the entries reserved for draining a full broker each stream may have one, for a consumer whose
    offset it keeps."""
    left = tables.state[layout.POOL_ENTRIES + 2]
    return left > 0 or consumer.keeps is not None and not consumer.queue.unsettled_count() and left + tables.spare[2] > 0


def move_on(tables, consumer):
    """Move a cursor by one message."""
    consumer.cursor_offset += 1
    consumer.cursor = tables.entries[consumer.cursor + layout.ENTRY_NEXT]


def stream_entry(tables, consumer, message):
    """An entry in no list, for a delivery of a stream's message; its position is the offset.

    All deliveries of a stream that are not settled share an empty message, so that slow readers keep nothing else in memory.
    """
    entries = tables.entries
    stream = consumer.queue
    if stream.unsettled_count():
        message = stream.delivered
    elif tables.has_room(0, 1):
        message = stream.delivered = tables.new_message(b"", 0, 0, 0)
        tables.messages[message + layout.MESSAGE_REFERENCES] = 0
    else:
        stream.delivered = message
    entry = hot.allocate(entries, tables.state, layout.POOL_ENTRIES, layout.ENTRY_WIDTH)
    entries[entry + layout.ENTRY_MESSAGE] = message
    entries[entry + layout.ENTRY_QUEUE] = consumer.queue.handle
    entries[entry + layout.ENTRY_POSITION] = consumer.cursor_offset & layout.MASK
    entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE
    tables.messages[message + layout.MESSAGE_REFERENCES] += 1
    tables.queues[consumer.queue.handle + layout.QUEUE_BLOCKS] += tables.messages[message + layout.MESSAGE_BLOCKS]
    return entry

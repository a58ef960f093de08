"""Every maximum of the broker: unit, range, effect, and what they add up to.

`Limits(**overrides)` holds one number per row; GATEWAY and BOARD are the two sets of defaults. A value outside its range or a relation
that does not hold is a ValueError whose text says which and why. `memory_needed` gives the octets that the broker takes for its tables,
arena and buffers; nothing a peer sends makes it take more.
"""

from . import layout

# name, gateway default, board default, least, most, unit, effect at the limit
ROWS = (
    ("connection_count_max", 256, 4, 1, 65535, "connections",
     "one that has not logged in gives way; when all have, a further one is refused"),
    ("stranger_share_max", 75, 75, 1, 100, "percent of connection_count_max: connections that have not logged in",
     "for a further one the oldest of the address that has most of them is closed"),
    ("surplus_count_max", 16, 0, 0, 255, "connections beyond connection_count_max that are told so, with 506",
     "the oldest of them is closed; with 0 each is closed at once"),
    ("line_connection_count_max", 16, 2, 1, 64, "connections over one serial line", "a further one is closed at once"),
    ("line_connection_room", 16384, 2048, 64, 32768, "octets that wait for one of them", "its peer sends no more of it, the others go on"),
    ("channel_max", 2047, 8, 1, 65535, "channels of one connection", "negotiated in connection.tune; one more is 530"),
    ("channel_count_max", 4096, 16, 1, 65535, "channels in all", "channel.open is refused with 506"),
    ("frame_size_max", 131072, 4096, 4096, 1 << 24, "octets", "negotiated in connection.tune; a larger frame is refused with 501"),
    ("receive_buffer_size", 262144, 1024, 512, 1 << 24, "octets a connection",
     "a method or content header frame must fit whole, else 501; bodies stream through"),
    ("send_buffer_size", 262144, 1024, 1024, 1 << 24, "octets a connection", "deliveries wait until there is room"),
    ("properties_size_max", 32768, 256, 128, 1 << 24, "octets of one content header", "channel closed with 311"),
    ("content_size_max", 32 << 20, 12288, 1024, 1 << 29, "octets of one body", "channel closed with 311"),
    ("content_timeout_ms", 30000, 30000, 1000, 1 << 28, "ms without an octet of a begun content", "connection closed with 506"),
    ("arena_size", 64 << 20, 24576, 4096, 1 << 30, "octets of routes, properties and bodies", "publishers wait (connection.blocked)"),
    ("block_size", 512, 64, 32, 65536, "octets of one arena block", "grain of the arena"),
    ("message_count_max", 131072, 256, 16, 1 << 24, "messages in all queues", "publishers wait"),
    ("entry_count_max", 262144, 320, 16, 1 << 24, "places of messages in queues", "publishers wait"),
    ("chunk_count_max", 131072, 28, 8, 1 << 24, "pieces of the log with messages of streams or beyond memory",
     "publishers to queues that are over their share wait, streams let their oldest piece go; a piece holds 256 messages, more when many "
     "are used"),
    ("queue_count_max", 1024, 16, 1, 65535, "queues", "queue.declare is refused with 506"),
    ("queue_share_max", 768, 12, 1, 65535, "queues that one connection declares", "queue.declare is refused with 506"),
    ("exchange_count_max", 256, 16, 8, 65535, "exchanges", "exchange.declare is refused with 506"),
    ("binding_count_max", 16384, 40, 4, 1 << 20, "bindings", "queue.bind is refused with 506"),
    ("binding_share_max", 12288, 32, 4, 1 << 20, "bindings that one connection makes", "queue.bind is refused with 506"),
    ("policy_count_max", 256, 8, 0, 65535, "policies", "a further one is refused"),
    ("consumer_count_max", 4096, 16, 1, 65535, "consumers", "basic.consume is refused with 506"),
    ("route_count_max", 8192, 8, 8, 1 << 20, "ways (user, exchange, routing key) that are remembered, rounded up to a power of two",
     "they are looked up again"),
    ("name_size_max", 255, 64, 16, 255, "octets of a queue, exchange or consumer name", "406"),
    ("argument_size_max", 4096, 256, 64, 1 << 20, "octets of the arguments kept with a queue, exchange, binding or consumer", "406"),
    ("copy_size_max", 4096, 128, 0, 65535, "octets of the routing keys in CC and BCC of one content, and two for each",
     "channel closed with 406"),
    ("return_count_max", 64, 4, 1, 65535, "returned messages that wait in a channel", "the connection is not read until they are gone"),
    ("management_size_max", 65536, 2048, 2048, 1 << 20, "octets of a management request, and of an answer",
     "a larger request: channel closed with 311; a longer answer comes in pages"),
    ("heartbeat_s", 60, 60, 0, 65535, "seconds proposed in connection.tune; 0: none", "two of them in silence: connection closed"),
    ("consumer_timeout_ms", 1800000, 1800000, 0, 1 << 28, "ms a delivery may stay unsettled; 0: for ever", "channel closed with 406"),
    ("login_timeout_ms", 10000, 10000, 100, 1 << 28, "ms from accept to connection.open", "the connection is closed"),
    ("login_pause_ms", 500, 1000, 0, 1 << 20, "ms from a log-in that fails to its answer", "the peer is not read meanwhile"),
    ("login_failure_max", 30, 10, 1, 65535, "log-ins that fail from one address, or as one user",
     "from the address only who has come from there before is let in, the user is answered late elsewhere"),
    ("login_user_failure_max", 10, 4, 1, 65535, "log-ins as one user that fail from one address", "log-ins as it from there are refused"),
    ("login_refusal_ms", 60000, 60000, 100, 1 << 28, "ms without a further failure, then failures are forgotten",
     "until then a refused address stays refused"),
    ("login_address_max", 1024, 4, 1, 65535, "addresses, users, and users at addresses whose failures are counted; users at addresses "
     "that have logged in", "the one of longest ago is forgotten"),
    ("password_rounds", 10000, 256, 1, 1 << 24, "rounds of PBKDF2 in a new password hash", "more take longer to guess, and to log in with"),
    ("unknown_argument_count_max", 64, 0, 0, 4096, "names of arguments that mean nothing to the broker and that its log has been told of",
     "further ones are taken without a word"),
    ("user_count_max", 1024, 4, 1, 65535, "users", "a further one in definitions is left out"),
    ("waiting_count_max", 65536, 32, 1, 1 << 24, "messages that wait for a moment (x-delay, x-delayed-retry-min)",
     "a publisher that asks for a delay waits; what comes back does so at once"),
    ("transaction_count_max", 131072, 32, 1, 1 << 24, "publishes and acknowledgements that all channels keep for tx.commit; 64 octets of "
     "CC and BCC count as one more", "connection closed with 506"),
    ("offset_count_max", 4096, 8, 1, 1 << 20, "names of consumers whose offsets streams keep, in all",
     "basic.consume with a further x-stream-consumer is refused with 506"),
    ("identity_count_max", 131072, 32, 2, 1 << 24, "message ids, publishers and last values that all queues remember together "
     "(x-deduplication, x-publisher-id, x-last-value-key)",
     "the queue or stream that remembers most forgets its oldest; last values have half: a message with a further one is refused"),
    ("bridge_count_max", 64, 0, 0, 4096, "bridges whose status is kept for who asks", "the one that has been silent longest is forgotten"),
    ("granted_count_max", 8192, 24, 1, 1 << 20, "names that users are known to have a permission for, in all", "they are looked up again"),
)

GATEWAY = {row[0]: row[1] for row in ROWS}
BOARD = {row[0]: row[2] for row in ROWS}

PATTERN_BASE = 320  # octets that the program of a regular expression takes whatever it says

RECORD_SIZE = 700  # octets of a message on its way through a bridge beside its body, its marks included
SURPLUS_RECEIVE = 4096  # octets of the buffers of a connection that is only told that there is no place for it: its start-ok
SURPLUS_SEND = 2048  # connection.start and connection.close
REPLY_ROOM = 320  # octets of a send buffer that deliveries leave free: the largest reply (channel.close with a full text) takes 277


class Limits:
    """One number for each row of ROWS, as attributes. Overrides beside GATEWAY's defaults are given by name."""

    def __init__(self, **overrides):
        for row in ROWS:
            value = overrides.pop(row[0], row[1])
            check_range(row, value)
            setattr(self, row[0], value)
        if overrides:
            raise ValueError("there is no limit called " + ", ".join(sorted(overrides)))
        check(self)


def check_range(row, value):
    """Raise ValueError unless a value can be that of a row of ROWS."""
    if not isinstance(value, int) or isinstance(value, bool) or not row[3] <= value <= row[4]:
        raise ValueError("%s is %r; it must be a whole number from %d to %d (%s)" % (row[0], value, row[3], row[4], row[5]))


def check(limits):
    """The relations between limits; raises ValueError with the reason."""
    require(limits.arena_size >= 4 * limits.block_size, "arena_size must hold at least 4 blocks of block_size")
    require(limits.content_size_max + limits.properties_size_max + 512 <= limits.arena_size * 3 // 4,
            "content_size_max with properties must fit in three quarters of arena_size, so that one content cannot take it all")
    require(limits.properties_size_max + 32 <= limits.receive_buffer_size, "a content header must fit in receive_buffer_size")
    require(limits.properties_size_max + 2 * limits.name_size_max + 255 + 64 + REPLY_ROOM <= limits.send_buffer_size,
            "a delivery's method and content header must fit in send_buffer_size beside a reply")
    require(limits.entry_count_max >= limits.message_count_max // 2, "entry_count_max must be at least half of message_count_max")
    require(limits.queue_share_max <= limits.queue_count_max, "queue_share_max must not be above queue_count_max")
    require(limits.binding_share_max <= limits.binding_count_max, "binding_share_max must not be above binding_count_max")


def require(holds, reason):
    """Raise ValueError(reason) unless `holds`."""
    if not holds:
        raise ValueError(reason)


ROUTE_SIZE_MEAN = 32  # octets of exchange and key that a remembered way has room for, and queues, when all places are taken
ROUTE_TARGETS_MEAN = 2


def route_slots(limits):
    """Places in the route cache: a power of two."""
    slots = 8
    while slots < limits.route_count_max:
        slots *= 2
    return slots


def pattern_size_max(limits):
    """Octets that a regular expression of a permission or policy may take once compiled."""
    return PATTERN_BASE + 2 * limits.argument_size_max


INDEXED_LEAST = 1024  # with no more entries a walk along a channel's list is short enough


def tag_slots(limits):
    """Slots of the index of delivery tags: a power of two, at least a half of the entries and one a channel; 0: there is no index."""
    slots = 1024
    while slots < max(limits.entry_count_max // 2, limits.channel_count_max):
        slots *= 2
    return slots if limits.entry_count_max > INDEXED_LEAST else 0


def stranger_count(limits):
    """How many connections may be there that have not logged in; at least one, or nobody could."""
    return max(1, limits.connection_count_max * limits.stranger_share_max // 100)


def block_count(limits):
    """Blocks in the arena."""
    return limits.arena_size // limits.block_size


def spare(limits):
    """(blocks, messages, entries) beside those of all others, for what drains a full broker: a bridge's request and its answer, a message
    on its way from a queue to a stream, and one delivery of each stream (Tables.lend). None where no bridge is provided for."""
    count = limits.bridge_count_max
    if count == 0:
        return 0, 0, 0
    return -(-(limits.management_size_max // 2 + 1024) // limits.block_size), 4, 4 + count


def memory_parts(limits, left_out=()):
    """(what, octets) of everything that is made at start, and of what control objects can grow to, on a 32-bit MicroPython.

    `left_out` names parts that the build does not carry, as "management". The numbers are compared with
    what MicroPython holds when everything is at its limit by tests/micropython/test_board_budget.py.
    """
    name, arguments = limits.name_size_max, limits.argument_size_max
    blocks, messages, entries = spare(limits)
    parts = (
        ("broker", 3600),
        ("arena", (block_count(limits) + blocks) * (limits.block_size + 4)),
        ("messages", 4 * layout.MESSAGE_WIDTH * (limits.message_count_max + messages)),
        ("queue entries", 4 * layout.ENTRY_WIDTH * (limits.entry_count_max + entries)),
        ("index of deliveries", 4 * (tag_slots(limits) + limits.entry_count_max + entries) if tag_slots(limits) else 0),
        ("index of the log", 4 * layout.CHUNK_WIDTH * limits.chunk_count_max),
        ("connections", (limits.receive_buffer_size + limits.send_buffer_size + 4 * (limits.channel_max + 1) + 950)
         * limits.connection_count_max + (SURPLUS_RECEIVE + SURPLUS_SEND + 950) * limits.surplus_count_max),
        ("channels", (4 * layout.CHANNEL_WIDTH + 670 + name + limits.copy_size_max) * limits.channel_count_max),
        ("queues", (4 * layout.QUEUE_WIDTH + 245 + name + arguments) * limits.queue_count_max),
        ("consumers", (4 * layout.CONSUMER_WIDTH + 170 + 2 * name) * limits.consumer_count_max),
        ("routes", (4 * layout.ROUTE_WIDTH + ROUTE_SIZE_MEAN + 4 * ROUTE_TARGETS_MEAN) * route_slots(limits)),
        ("exchanges", (365 + 9 * name // 4 + 6 * arguments // 5) * (limits.exchange_count_max - 5)),
        ("bindings", (1082 + name // 4 + arguments) * limits.binding_count_max),
        ("policies", (400 + 2 * name + arguments + pattern_size_max(limits)) * limits.policy_count_max),
        ("users", 4 * arguments * limits.user_count_max + (45 + 9 * name // 10) * limits.granted_count_max),
        ("patterns", 3 * pattern_size_max(limits) * limits.user_count_max),
        ("groups", 48 * limits.entry_count_max),
        ("management", 8 * limits.management_size_max),
        ("addresses", 400 * limits.login_address_max),
        ("identities", 80 * limits.identity_count_max),
        ("waiting", 64 * limits.waiting_count_max),
        ("transactions", 64 * limits.transaction_count_max),
        ("offsets", 320 * limits.offset_count_max),
        ("bridges", 4096 * limits.bridge_count_max),
        ("unknown arguments", 96 * limits.unknown_argument_count_max),
    )
    return [part for part in parts if part[0] not in left_out]


def line_memory(limits, window_size=16384, frame_size=1024):
    """Octets that a serial line (core/link.py) takes beside memory_needed, on a 32-bit MicroPython, but for what its device keeps."""
    return 4900 + 2 * window_size + 7 * frame_size + (limits.line_connection_room + 60) * limits.line_connection_count_max


def bridge_memory(buffer_size):
    """Octets of a bridge's buffers (ports/bridge) beside memory_needed: two links, each in and out. Messages on their way come on top."""
    return 2 * (2 * buffer_size + 2048)


def bridge_held(limits, buffer_size, prefetch):
    """Octets of the messages that a bridge has on their way, on a 32-bit MicroPython: two lanes of unsettled deliveries, each with a pack
    that fits the buffer or with one message that does not, and RECORD_SIZE for each message beside it."""
    records = max(1, min(100, prefetch // 4))
    deliveries = max(2, prefetch // records)
    return 2 * deliveries * (max(buffer_size, limits.content_size_max + limits.properties_size_max) + records * RECORD_SIZE)


def memory_needed(limits, left_out=()):
    """Octets in all, when every limit is reached."""
    return sum([part[1] for part in memory_parts(limits, left_out)])

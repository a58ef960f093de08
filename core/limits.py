"""Every maximum of the broker: defaults and range here, unit and effect in limit_words.py, what the maxima add up to in
memory/micropython_sizes.py and memory/cpython_sizes.py. Text and sums take heap: no board carries the words, only boards with management
carry sums.

`Limits(**overrides)` holds one number per row; GATEWAY and BOARD are the two sets of defaults. A value outside its range or a relation
that does not hold is a ValueError whose text says which and why. Nothing a peer sends makes the broker take more than the sums say.
"""

from .parts import part

# name, gateway default, board default, least, most; unit and effect: limit_words.py, a row for each of these. What no board carries has
# its rows in limits_further.py.
ROWS = (
    ("connection_count_max", 256, 4, 1, 65535),
    ("stranger_share_max", 75, 75, 1, 100),
    ("surplus_count_max", 16, 0, 0, 255),
    ("line_connection_count_max", 16, 2, 1, 64),
    ("line_connection_room", 16384, 2048, 64, 32768),
    ("channel_max", 2047, 8, 1, 65535),
    ("channel_count_max", 4096, 16, 1, 65535),
    ("frame_size_max", 131072, 4096, 4096, 1 << 24),
    ("receive_buffer_size", 262144, 1024, 512, 1 << 24),
    ("send_buffer_size", 262144, 1024, 1024, 1 << 24),
    ("properties_size_max", 32768, 256, 128, 1 << 24),
    ("content_size_max", 32 << 20, 12288, 1024, 1 << 29),
    ("content_timeout_ms", 30000, 30000, 1000, 1 << 28),
    ("arena_size", 64 << 20, 24576, 4096, 1 << 30),
    ("block_size", 320, 64, 32, 65536),
    ("message_count_max", 131072, 256, 16, 1 << 24),
    ("entry_count_max", 262144, 320, 16, 1 << 24),
    ("chunk_count_max", 131072, 28, 8, 1 << 24),
    ("queue_count_max", 1024, 16, 1, 65535),
    ("queue_share_max", 768, 12, 1, 65535),
    ("exchange_count_max", 256, 16, 8, 65535),
    ("binding_count_max", 16384, 40, 4, 1 << 20),
    ("binding_share_max", 12288, 32, 4, 1 << 20),
    ("policy_count_max", 256, 8, 0, 65535),
    ("consumer_count_max", 4096, 16, 1, 65535),
    ("route_count_max", 8192, 8, 8, 1 << 20),
    ("name_size_max", 255, 64, 16, 255),
    ("argument_size_max", 4096, 256, 64, 1 << 20),
    ("copy_size_max", 4096, 128, 0, 65535),
    ("return_count_max", 64, 4, 1, 65535),
    ("management_size_max", 65536, 2048, 2048, 1 << 20),
    ("heartbeat_s", 60, 60, 0, 65535),
    ("consumer_timeout_ms", 1800000, 1800000, 0, 1 << 28),
    ("send_timeout_ms", 30000, 30000, 0, 1 << 28),
    ("login_timeout_ms", 10000, 10000, 100, 1 << 28),
    ("login_pause_ms", 500, 1000, 0, 1 << 20),
    ("login_failure_max", 30, 10, 1, 65535),
    ("login_user_failure_max", 10, 4, 1, 65535),
    ("login_refusal_ms", 60000, 60000, 100, 1 << 28),
    ("login_address_max", 1024, 4, 1, 65535),
    ("password_rounds", 10000, 256, 1, 1 << 24),
    ("unknown_argument_count_max", 64, 0, 0, 4096),
    ("user_count_max", 1024, 4, 1, 65535),
    ("waiting_count_max", 65536, 32, 1, 1 << 24),
    ("transaction_count_max", 131072, 32, 1, 1 << 24),
    ("offset_count_max", 4096, 8, 1, 1 << 20),
    ("identity_count_max", 131072, 32, 2, 1 << 24),
    ("bridge_count_max", 64, 0, 0, 4096),
    ("granted_count_max", 8192, 24, 1, 1 << 20),
)

_FURTHER = part("limits_further")
if _FURTHER is not None:
    ROWS += _FURTHER.ROWS

GATEWAY = {row[0]: row[1] for row in ROWS}
BOARD = {row[0]: row[2] for row in ROWS}

PATTERN_BASE = 320  # octets that the program of a regular expression takes whatever it says

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
        words = part("limit_words")
        unit = "in [limits]" if words is None else words.WORDS[row[0]][0]
        raise ValueError("%s is %r; it must be a whole number from %d to %d (%s)" % (row[0], value, row[3], row[4], unit))


def check(limits):
    """The relations between limits; raises ValueError with the reason."""
    require(limits.arena_size >= 4 * limits.block_size, "arena_size must hold at least 4 blocks of block_size")
    require(
        limits.content_size_max + limits.properties_size_max + 512 <= limits.arena_size * 3 // 4,
        "content_size_max with properties must fit in three quarters of arena_size, so that one content cannot take it all",
    )
    require(limits.properties_size_max + 32 <= limits.receive_buffer_size, "a content header must fit in receive_buffer_size")
    require(
        limits.properties_size_max + 2 * limits.name_size_max + 255 + 64 + REPLY_ROOM <= limits.send_buffer_size,
        "a delivery's method and content header must fit in send_buffer_size beside a reply",
    )
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


def cost(item):
    """About how many octets a decoded argument, or a value of AMQP 1.0, takes on a 32-bit interpreter."""
    if isinstance(item, dict):
        return 16 + sum([16 + cost(name) + cost(item[name]) for name in item])
    if isinstance(item, (list, tuple)):
        return 16 + sum([4 + cost(each) for each in item])
    return 16 + len(item) if isinstance(item, (str, bytes)) else 16

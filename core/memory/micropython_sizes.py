"""What a broker takes on a 32-bit MicroPython when every limit is reached: the octets of its tables, arena, buffers and objects.

tests/micropython/test_board_budget.py compares the numbers with what MicroPython holds when everything is at its limit. Boards carry this
file with management only; tools (`leveret board`, `leveret flash`) do the sums for the others. On CPython: cpython_sizes.py, which
alone has what links of AMQP 1.0 take: for boards that serve it tools/boards.py adds what a connection was measured to hold.
"""

from ..limits import (
    ROUTE_SIZE_MEAN,
    ROUTE_TARGETS_MEAN,
    SURPLUS_RECEIVE,
    SURPLUS_SEND,
    block_count,
    pattern_size_max,
    route_slots,
    spare,
    tag_slots,
)
from . import layout

RECORD_SIZE = 700  # octets of a message on its way through a bridge beside its body, its marks included


def memory_parts(limits, left_out=()):
    """(what, octets) of everything that is made at start, and of what control objects can grow to, on a 32-bit MicroPython.

    `left_out` names parts that the build does not carry, as "management". The numbers are compared with
    what MicroPython holds when everything is at its limit by tests/micropython/test_board_budget.py.
    """
    name, arguments = limits.name_size_max, limits.argument_size_max
    blocks, messages, entries = spare(limits)
    parts = (
        ("broker", 4200),
        ("arena", (block_count(limits) + blocks) * (limits.block_size + 4)),
        ("messages", 4 * layout.MESSAGE_WIDTH * (limits.message_count_max + messages)),
        ("queue entries", 4 * layout.ENTRY_WIDTH * (limits.entry_count_max + entries)),
        ("index of deliveries", 4 * (tag_slots(limits) + limits.entry_count_max + entries) if tag_slots(limits) else 0),
        ("index of the log", 4 * layout.CHUNK_WIDTH * limits.chunk_count_max),
        (
            "connections",
            (limits.receive_buffer_size + limits.send_buffer_size + 4 * (limits.channel_max + 1) + 1025) * limits.connection_count_max
            + (SURPLUS_RECEIVE + SURPLUS_SEND + 1025) * limits.surplus_count_max,
        ),
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
    """Octets that a serial line (core/serial_link/link.py) takes beside memory_needed, on a 32-bit MicroPython, but for what its device
    keeps."""
    return 5300 + 2 * window_size + 7 * frame_size + (limits.line_connection_room + 60) * limits.line_connection_count_max


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

"""The memory of a broker on a 64-bit CPython with every limit reached: micropython_sizes.py's parts in that interpreter's sizes.

Measured there, with the names, arguments and patterns that take most (CPython keeps a text with one wide character in four octets each):
tests/durable/test_every_limit.py fills a broker and compares. No board carries this file.
"""

from ..limits import (
    PATTERN_BASE,
    ROUTE_SIZE_MEAN,
    ROUTE_TARGETS_MEAN,
    SURPLUS_RECEIVE,
    SURPLUS_SEND,
    block_count,
    route_slots,
    spare,
    tag_slots,
)
from . import layout

INTERPRETER = 30 << 20  # with all of the broker's code, features and exchange types loaded
CONNECTION = 20000  # a connection's objects beside its buffers, its slot and socket in the port, and the state of a log-in
ARGUMENT = 5  # octets of decoded arguments for one that argument_size_max counts: tables of one entry within tables
SESSION = 6500  # octets of a session of AMQP 1.0, where that is more than what a channel takes
LINK = 2400  # of a link of AMQP 1.0 with short names
PLACE = 1024  # octets of what links keep, as amqp_1_0/bounds.py counts them, for one of link_count_max
DELIVERY = 400  # of a delivery of a sender of AMQP 1.0 that comes or is not settled
DELIVERIES_SHARE = 4  # of entry_count_max: so many of them
TAG = 220  # of a delivery that a target remembers
TAGS_A_TARGET = 32
CONVERSIONS = 2  # broker/crossing.py's RESULTS
STAGED = 262144  # octets of a staged content that wait to be written, that are being written, or that were read back
TEXT = 80  # octets of a text beside four for each of its own


def memory_parts(limits):
    """[(part, octets, names of the limits that determine it)] of a broker at its limits, without log, bridges, serial lines and TLS."""
    name = TEXT + 4 * limits.name_size_max
    short = TEXT + 4 * 255
    arguments = ARGUMENT * limits.argument_size_max
    pattern = 8 * (PATTERN_BASE + 2 * limits.argument_size_max)  # the text, its plain part, the program
    blocks, messages, entries = spare(limits)
    entries += limits.entry_count_max
    returns = min(limits.return_count_max * limits.channel_count_max, limits.message_count_max)
    return [
        ("the interpreter and the code", INTERPRETER, ()),
        ("arena", (block_count(limits) + blocks) * (limits.block_size + 4), ("arena_size", "block_size")),
        ("messages", 4 * layout.MESSAGE_WIDTH * (limits.message_count_max + messages), ("message_count_max",)),
        ("places in queues", 4 * layout.ENTRY_WIDTH * entries, ("entry_count_max",)),
        ("index of deliveries", 4 * (tag_slots(limits) + entries) if tag_slots(limits) else 0, ("entry_count_max",)),
        ("groups", 260 * entries, ("entry_count_max",)),
        ("index of the log", (4 * layout.CHUNK_WIDTH + 60) * limits.chunk_count_max, ("chunk_count_max",)),
        (
            "connections",
            (limits.receive_buffer_size + limits.send_buffer_size + 4 * (limits.channel_max + 1) + CONNECTION) * limits.connection_count_max
            + (SURPLUS_RECEIVE + SURPLUS_SEND + CONNECTION) * limits.surplus_count_max,
            ("connection_count_max", "receive_buffer_size", "send_buffer_size"),
        ),
        (
            "channels",
            (4 * layout.CHANNEL_WIDTH + max(2200 + 2 * name + limits.copy_size_max, SESSION)) * limits.channel_count_max + 110 * returns,
            ("channel_count_max", "copy_size_max", "return_count_max"),
        ),
        ("queues", (4 * layout.QUEUE_WIDTH + 5000 + name + arguments) * limits.queue_count_max, ("queue_count_max", "argument_size_max")),
        (
            "consumers",
            (4 * layout.CONSUMER_WIDTH + 1300 + name + arguments // 4) * limits.consumer_count_max,
            ("consumer_count_max", "argument_size_max"),
        ),
        ("exchanges", (1500 + name + arguments) * limits.exchange_count_max, ("exchange_count_max", "argument_size_max")),
        ("bindings", (3200 + 3 * limits.name_size_max + arguments) * limits.binding_count_max, ("binding_count_max", "argument_size_max")),
        ("ways", (4 * layout.ROUTE_WIDTH + ROUTE_SIZE_MEAN + 4 * ROUTE_TARGETS_MEAN) * route_slots(limits), ("route_count_max",)),
        ("policies", (2000 + 2 * name + 2 * arguments + pattern) * limits.policy_count_max, ("policy_count_max", "argument_size_max")),
        ("users", (2000 + short + 3 * pattern) * limits.user_count_max, ("user_count_max", "argument_size_max")),
        ("names granted", (100 + short) * limits.granted_count_max, ("granted_count_max",)),
        ("message ids, publishers, last values", 300 * limits.identity_count_max, ("identity_count_max",)),
        ("messages that wait", 200 * limits.waiting_count_max, ("waiting_count_max",)),
        ("transactions", 300 * limits.transaction_count_max, ("transaction_count_max",)),
        ("names of readers", (300 + short) * limits.offset_count_max, ("offset_count_max",)),
        ("management", 60 * limits.management_size_max, ("management_size_max",)),
        ("addresses", 1000 * limits.login_address_max, ("login_address_max",)),
        ("results of conversions", CONVERSIONS * limits.properties_size_max, ("properties_size_max",)),
        ("bridges' reports", 24 * 4096 * limits.bridge_count_max, ("bridge_count_max",)),
        (
            "staged contents",
            limits.staged_memory_max + STAGED * limits.staged_count_max,
            ("staged_memory_max", "staged_count_max"),
        ),
    ] + amqp_1_0_parts(limits)


def amqp_1_0_parts(limits):
    """The parts that only AMQP 1.0 fills."""
    return [
        ("links of AMQP 1.0", (LINK + 4 * PLACE) * limits.link_count_max, ("link_count_max",)),
        (
            "deliveries of AMQP 1.0",
            DELIVERY * (limits.entry_count_max // DELIVERIES_SHARE + limits.link_count_max),
            ("entry_count_max", "link_count_max"),
        ),
        (
            "targets of AMQP 1.0",
            (700 + 2 * TEXT + 2 * limits.argument_size_max + TAG * TAGS_A_TARGET) * limits.target_count_max,
            ("target_count_max", "argument_size_max"),
        ),
        (
            "heads and responses of AMQP 1.0",
            (
                max(limits.properties_size_max, limits.management_size_max)
                + max(limits.properties_size_max, 2 * limits.management_size_max, 8192)
            )
            * limits.connection_count_max,
            ("connection_count_max", "properties_size_max", "management_size_max"),
        ),
    ]


def memory_needed(limits):
    """Octets in all."""
    return sum([part[1] for part in memory_parts(limits)])

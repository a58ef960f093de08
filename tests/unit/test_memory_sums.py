"""What a broker takes at its limits (core/memory/cpython_sizes.py, micropython_sizes.py): larger limits are never less memory.

That the numbers are those of the interpreters is shown where a broker is filled: tests/durable/test_every_limit.py and
tests/micropython/test_board_budget.py.
"""

from leveret.core.limits import BOARD, ROWS, Limits
from leveret.core.memory import cpython_sizes, micropython_sizes

BUFFERS = {
    "arena_size": 1 << 26,
    "receive_buffer_size": 65536,
    "send_buffer_size": 65536,
    "return_count_max": 1,
}  # room for the others to grow
# Of AMQP 1.0, of 0-10 and of class file, which no board serves.
SHARED = ("link_count_max", "target_count_max", "staged_count_max", "staged_memory_max", "session_timeout_s")


def larger(limits, name):
    """The limits with one that is half as much again, at least 16, or None where the others do not let it be so large."""
    values = {row[0]: getattr(limits, row[0]) for row in ROWS}
    values[name] = values[name] + max(16, values[name] // 2)
    try:
        return Limits(**values)
    except ValueError:
        return None


VISIBLE = (  # where no larger number of another limit hides it
    ("arena", "arena_size"),
    ("connections", "receive_buffer_size"),
    ("connections", "send_buffer_size"),
    ("queues", "argument_size_max"),
    ("consumers", "argument_size_max"),
    ("exchanges", "argument_size_max"),
    ("bindings", "argument_size_max"),
    ("policies", "argument_size_max"),
    ("users", "argument_size_max"),
    ("management", "management_size_max"),
    ("targets of AMQP 1.0", "argument_size_max"),
)


def spacious(values):
    """Limits with large buffers, changed by name."""
    given = dict(values)
    given.update(BUFFERS)
    return Limits(**given)


def octets_of(parts):
    return {part[0]: part[1] for part in parts}


def names():
    return [row[0] for row in ROWS if row[0] != "block_size"]  # larger blocks are fewer


def test_a_part_of_memory_grows_with_each_limit_that_its_row_names_and_with_no_other_of_them_falls():
    for values in (BOARD, {}):
        limits = spacious(values)
        rows = cpython_sizes.memory_parts(limits)
        before = octets_of(rows)
        assert cpython_sizes.memory_needed(limits) == sum([part[1] for part in rows])
        for name in names():
            grown = larger(limits, name)
            if grown is None:
                continue
            after = octets_of(cpython_sizes.memory_parts(grown))
            for part, octets, named in rows:
                assert octets >= 0 and after[part] >= before[part], (part, name)
                if name in named and octets and (name.endswith("_count_max") or (part, name) in VISIBLE):
                    assert after[part] > before[part], (part, name)


def test_what_a_boards_broker_takes_falls_with_no_limit_and_grows_with_those_that_make_tables_and_names():
    limits = spacious(BOARD)
    before = octets_of(micropython_sizes.memory_parts(limits))
    needed = micropython_sizes.memory_needed(limits)
    assert needed == sum(before.values()) and min(before.values()) >= 0
    for name in names():
        grown = larger(limits, name)
        if grown is None:
            continue
        after = octets_of(micropython_sizes.memory_parts(grown))
        for part in before:
            assert after[part] >= before[part], (part, name)
        if name.endswith("_count_max") and name not in SHARED + ("line_connection_count_max",):
            assert micropython_sizes.memory_needed(grown) >= needed, name
    for name, parts in (
        ("name_size_max", ("queues", "consumers", "exchanges", "bindings", "policies")),
        ("argument_size_max", ("queues", "exchanges", "bindings", "policies", "users")),
        ("binding_count_max", ("bindings",)),
        ("policy_count_max", ("policies",)),
        ("queue_count_max", ("queues",)),
        ("message_count_max", ("messages",)),
        ("entry_count_max", ("queue entries", "groups")),
        ("connection_count_max", ("connections",)),
        ("channel_count_max", ("channels",)),
    ):
        after = octets_of(micropython_sizes.memory_parts(larger(limits, name)))
        for part in parts:
            assert after[part] > before[part], (part, name)


def test_parts_that_a_build_does_not_carry_take_nothing():
    limits = Limits(**BOARD)
    parts = octets_of(micropython_sizes.memory_parts(limits))
    for part in parts:
        assert micropython_sizes.memory_needed(limits, (part,)) == micropython_sizes.memory_needed(limits) - parts[part]
    assert micropython_sizes.memory_needed(limits, tuple(parts)) == 0


def test_lines_and_bridges_take_more_for_larger_windows_frames_buffers_and_prefetches():
    limits = Limits(**BOARD)
    line = micropython_sizes.line_memory(limits, 16384, 1024)
    assert micropython_sizes.line_memory(limits, 32768, 1024) - line == 2 * 16384  # what is sent and what is not in order yet
    assert micropython_sizes.line_memory(limits, 16384, 2048) > line > 2 * 16384
    assert micropython_sizes.bridge_memory(8192) - micropython_sizes.bridge_memory(4096) == 4 * 4096  # two links, in and out
    held = micropython_sizes.bridge_held(limits, 4096, 8)
    largest = limits.content_size_max + limits.properties_size_max
    assert held >= 2 * 2 * max(4096, largest)  # two deliveries of each lane
    assert micropython_sizes.bridge_held(limits, 2 * largest, 8) > held
    assert micropython_sizes.bridge_held(limits, 4096, 800) > held

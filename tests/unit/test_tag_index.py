"""The index of delivery tags (core/memory/hot.py): acknowledgements in any order cost the same, however many channels have how many
each."""

from leveret.core.broker import engine
from leveret.core.limits import BOARD, Limits
from leveret.core.memory import hot, layout
from leveret.core.memory.tables import Tables

ENTRIES = 2048


def filled(channel_count, count):
    """Tables whose channels have `count` unsettled entries each, with the tags 1, 2, 3 ..., all of them in the index."""
    tables = Tables(Limits(**dict(BOARD, entry_count_max=ENTRIES, channel_count_max=channel_count, message_count_max=64)), engine.chosen)
    channels, entries = tables.channels, tables.entries
    for number in range(channel_count):
        channel = number * layout.CHANNEL_WIDTH
        for tag in range(1, count + 1):
            entry = (number * count + tag - 1) * layout.ENTRY_WIDTH
            entries[entry + layout.ENTRY_TAG] = tag
            entries[entry + layout.ENTRY_PREVIOUS] = layout.NONE if tag == 1 else entry - layout.ENTRY_WIDTH
            entries[entry + layout.ENTRY_NEXT] = layout.NONE if tag == count else entry + layout.ENTRY_WIDTH
        channels[channel + layout.CHANNEL_INDEXED] = layout.NONE
        channels[channel + layout.CHANNEL_UNSETTLED_HEAD] = number * count * layout.ENTRY_WIDTH
        channels[channel + layout.CHANNEL_UNSETTLED_TAIL] = entry
        assert hot.find_indexed(entries, channels, tables.state, channel, count) == entry
    return tables


def chain(tables, slot):
    """How many entries stand in a slot."""
    channels, mask = tables.channels, tables.state[layout.STATE_TAG_MASK]
    slots = tables.state[layout.STATE_TAGS]
    count, entry = 0, channels[slots + slot] - 1
    while entry >= 0:
        count += 1
        entry = channels[slots + mask + 1 + entry // layout.ENTRY_WIDTH] - 1
    return count


def test_no_slot_has_many_entries():
    """Channel and tag were added: 64 channels with 32 deliveries each had 32 in one slot, 512 with 512 each 512."""
    for channel_count in (1, 2, 16, 45, 64, 128, 1024):
        tables = filled(channel_count, ENTRIES // channel_count)
        mask = tables.state[layout.STATE_TAG_MASK]
        lengths = [chain(tables, slot) for slot in range(mask + 1)]
        assert sum(lengths) == ENTRIES // channel_count * channel_count and max(lengths) <= 12, (channel_count, max(lengths))


def test_the_same_tag_of_each_channel_is_found_for_itself_and_leaves_alone():
    tables = filled(64, 32)
    given = tables.entries, tables.channels, tables.state
    for number in range(64):
        channel, entry = number * layout.CHANNEL_WIDTH, (number * 32 + 16) * layout.ENTRY_WIDTH
        assert hot.find_indexed(*given, channel, 17) == entry
        hot.forget_tag(*given, channel, entry)
        tables.entries[entry - layout.ENTRY_WIDTH + layout.ENTRY_NEXT] = entry + layout.ENTRY_WIDTH
        tables.entries[entry + layout.ENTRY_WIDTH + layout.ENTRY_PREVIOUS] = entry - layout.ENTRY_WIDTH
        assert hot.find_indexed(*given, channel, 17) == -1 and hot.find_indexed(*given, channel, 16) == entry - layout.ENTRY_WIDTH

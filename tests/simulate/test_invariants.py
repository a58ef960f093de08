"""Each number of the tables that another one repeats: with this one number wrong, the check says so (core/memory/invariants.py).

A broker with ready and unsettled messages, consumers with and without a limit, indexed tags, active queues and cached routes is made once
for each case; one field is spoiled in it.
"""

import pytest
from invariants import check
from model import Wrong
from peer import Peer, content, encoded, new_broker

from leveret.core.memory import hot, invariants, layout

# Fields that nothing repeats: every value in their range may be right, so only one outside it is told.
ALONE = {
    "MESSAGE": ("ARRIVED", "SEGMENT", "KIND", "LIFETIME"),
    "ENTRY": ("REDELIVERED", "DEADLINE"),
    "QUEUE": ("TURN", "LOGGED", "LOGGED_HIGH"),
    "CHANNEL": ("TAG_HIGH", "PREFETCH", "CONFIRM", "PUBLISHED", "PUBLISHED_HIGH", "CONFIRMED", "PLAIN", "NEXT_COUNTED", "COUNTED_FROM"),
    "CONSUMER": ("MODE",),
}
BELOW = (("QUEUE", "POSITION"), ("CHANNEL", "TAG"))  # more may be right: numbers that were given to what is gone by now
TABLES = {"MESSAGE": "messages", "ENTRY": "entries", "QUEUE": "queues", "CHANNEL": "channels", "CONSUMER": "consumers"}
UNTOLD = -(1 << 30) - 1  # in no range


def working():
    """A broker in the middle of its work, which the check finds right."""
    broker = new_broker(entry_count_max=2048, message_count_max=2048, arena_size=1 << 17, send_buffer_size=65536)
    reader, writer = Peer(broker), Peer(broker)
    reader.give(encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {}))
    reader.give(encoded("queue_declare", 1, 0, "other", False, False, False, False, False, {}))
    reader.give(encoded("basic_qos", 1, 0, 8, False))
    for tag in ("c", "d"):
        reader.give(encoded("basic_consume", 1, 0, "q", tag, False, False, False, False, {}))
    for number in range(24):
        writer.give(content(1, "", "q", b"%d" % number * 30))
    broker.run()
    tables, channel = broker.tables, next(each for each in broker.consumers.open_sessions() if each.consumers)
    assert (
        hot.find_tag(tables.entries, tables.channels, tables.state, channel.handle, 9) != layout.NONE
    )  # in the middle of the list: the index has it and those before it
    assert tables.channels[channel.handle + layout.CHANNEL_INDEXED] != layout.NONE
    hot.activate(tables.queues, tables.state, broker.queues["q"].handle)
    check(broker)
    return broker


def records(broker):
    """record -> a handle in use that says the most: the second of a list, so that it has neighbours."""
    tables = broker.tables
    queue = broker.queues["q"].handle
    entry = tables.entries[tables.queues[queue + layout.QUEUE_HEAD] + layout.ENTRY_NEXT]
    channel = next(each for each in broker.consumers.open_sessions() if each.consumers)
    return {
        "MESSAGE": tables.entries[entry + layout.ENTRY_MESSAGE],
        "ENTRY": entry,
        "UNSETTLED": tables.entries[tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD] + layout.ENTRY_NEXT],
        "QUEUE": queue,
        "CHANNEL": channel.handle,
        "CONSUMER": tables.channels[channel.handle + layout.CHANNEL_CONSUMERS],
    }


def test_every_field_of_every_record_has_a_row():
    """A new field of layout.py is looked at, or this fails."""
    for record, rows in invariants.FIELDS.items():
        places = sorted([getattr(layout, record + "_" + name) for name, _ in rows])
        assert places == list(range(getattr(layout, record + "_WIDTH"))), record
    pools = list(range(layout.STATE_BLOCK_SIZE))
    assert sorted(pools + [getattr(layout, "STATE_" + name) for name, _ in invariants.STATE]) == list(range(layout.STATE_WIDTH))


@pytest.mark.parametrize("record,name", [(record, name) for record, rows in invariants.FIELDS.items() for name, _ in rows])
def test_a_wrong_field_is_told(record, name):
    """With every other value that it may not have, or, where nothing repeats it, with one that no such field has."""
    broker = working()
    table, handles = getattr(broker.tables, TABLES[record]), records(broker)
    handle = handles["UNSETTLED" if (record, name) in (("ENTRY", "TAG"), ("ENTRY", "CONSUMER")) else record]
    place = handle + getattr(layout, record + "_" + name)
    right = table[place]
    wrongs = () if name in ALONE[record] else (right - 1 if right else right + 2,)
    for wrong in (UNTOLD, *wrongs) if (record, name) in BELOW else (UNTOLD, *wrongs, *[right + 1 for _ in wrongs]):
        table[place] = wrong
        with pytest.raises((Wrong, IndexError)):
            check(broker)
        table[place] = right
    check(broker)


@pytest.mark.parametrize("name", ("POOL_BLOCKS", "POOL_MESSAGES", "POOL_ENTRIES"))
@pytest.mark.parametrize("place", (0, 1, 2))
def test_a_wrong_pool_is_told(name, place):
    """The first free record, the next fresh one, and what is left."""
    broker = working()
    state, at = broker.tables.state, getattr(layout, name) + place
    right = state[at]
    for wrong in (right + 1, right - 2):
        state[at] = wrong
        with pytest.raises(Wrong, match="pool of|is to lead to"):
            check(broker)
    state[at] = right
    check(broker)


@pytest.mark.parametrize(
    "name", ("ACTIVE_HEAD", "ACTIVE_TAIL", "COUNTED_HEAD", "LOGGED_HEAD", "LOGGED_OCTETS", "LOGGED_COUNT", "LOGGED_PLACES")
)
def test_a_wrong_list_of_the_state_is_told(name):
    """Lists that ingest makes are empty between two steps; that of active queues ends where it says."""
    broker = working()
    broker.tables.state[getattr(layout, "STATE_" + name)] += layout.QUEUE_WIDTH
    with pytest.raises(Wrong, match=name.replace("_HEAD", "").replace("_TAIL", "")):
        check(broker)


@pytest.mark.parametrize("name", ("BLOCK_SIZE", "ROUTE_SLOTS", "TAGS", "TAG_MASK", "ROUTE_LAST", "SETTLED_LIST"))
def test_a_wrong_number_of_the_state_is_told(name):
    """What says how large the tables are, and where the journal's list begins."""
    broker = working()
    broker.tables.state[getattr(layout, "STATE_" + name)] += 1
    with pytest.raises(Wrong):
        check(broker)


@pytest.mark.parametrize("field", ("OCTETS", "TARGETS", "SIZE", "COUNT"))
def test_a_wrong_route_is_told(field):
    """A slot of the route cache points into what is used, and stands where its key is looked for."""
    broker = working()
    tables = broker.tables
    slot = tables.state[layout.STATE_ROUTE_LAST]
    assert tables.routes[slot + layout.ROUTE_EPOCH] == tables.state[layout.STATE_ROUTE_EPOCH]
    tables.routes[slot + getattr(layout, "ROUTE_" + field)] += 1
    with pytest.raises(Wrong, match="^route"):
        check(broker)


def test_a_slot_of_the_tag_index_that_lost_its_entry_is_told():
    """The index has the entries up to CHANNEL_INDEXED, each in its slot."""
    broker = working()
    tables = broker.tables
    slots, mask = tables.state[layout.STATE_TAGS], tables.state[layout.STATE_TAG_MASK]
    slot = next(slot for slot in range(slots, slots + mask + 1) if tables.channels[slot])
    tables.channels[slot] = 0
    with pytest.raises(Wrong, match="of the tags: is to have"):
        check(broker)


def test_the_sentence_names_record_field_value_wanted_and_value_found():
    """So that a failure says what to look for."""
    broker = working()
    handle = broker.queues["q"].handle
    length = broker.tables.queues[handle + layout.QUEUE_LENGTH]
    broker.tables.queues[handle + layout.QUEUE_LENGTH] = length + 1
    with pytest.raises(Wrong, match="^queue %d: LENGTH is to be %d, and is %d$" % (handle, length, length + 1)):
        check(broker)

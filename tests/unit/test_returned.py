"""What comes back to a queue finds its place near others that came back: the order is that of positions, and a deep tree is given up."""

from peer import Peer, new_broker
from same_random import Random

from leveret.core.memory import invariants, layout, returned

COUNT = 400


def taken_out():
    """(broker, queue, its entries in their order): each is out of the ready list."""
    broker = new_broker(entry_count_max=1024, message_count_max=1024, arena_size=1 << 16, receive_buffer_size=65536)
    peer = Peer(broker)
    peer.declare("q")
    for _ in range(COUNT):
        peer.publish("q", b"x")
    queue = broker.queues["q"]
    return broker, queue, [queue.pop() for _ in range(COUNT)]


def ready(broker, found):
    """The entries of the ready list; the tree holds what it has to."""
    entries, entry, order = broker.tables.entries, found.head(), []
    while entry != layout.NONE:
        order.append(entry)
        entry = entries[entry + layout.ENTRY_NEXT]
    root = broker.tables.queues[found.handle + layout.QUEUE_RETURNED]
    invariants.returned_tree(broker.tables, found.handle, root, set(order))
    return order


def back(broker, found, entry):
    tables = broker.tables
    return returned.requeue(tables.messages, tables.entries, tables.queues, found.handle, entry)


def test_any_order_of_returns_between_deliveries_keeps_the_order_of_positions():
    for seed in range(5):
        chance = Random(seed)
        broker, found, entries = taken_out()
        place = {entry: at for at, entry in enumerate(entries)}
        out = list(entries)
        for _ in range(4 * COUNT):
            if out and chance.below(10) < 6:
                back(broker, found, out.pop(chance.below(len(out))))
            elif found.head() != layout.NONE:
                entry = chance.choice(ready(broker, found)) if chance.below(5) == 0 else found.head()
                found.unlink(entry)
                out.append(entry)
        order = ready(broker, found)
        assert order == sorted(order, key=place.get) and len(order) + len(out) == COUNT
        for entry in out:
            back(broker, found, entry)
        assert ready(broker, found) == entries
        found.purge()
        assert broker.tables.queues[found.handle + layout.QUEUE_RETURNED] == layout.NONE


def test_returns_at_random_pass_few_others_and_a_return_to_the_head_none():
    broker, found, entries = taken_out()
    order = list(entries)
    Random(7).shuffle(order)
    steps = sum([back(broker, found, entry) for entry in order])
    assert steps < 16 * COUNT, steps  # each walking from the last one: a third of all that are there
    for entry in entries:
        found.unlink(entry)
    assert sum([back(broker, found, entry) for entry in reversed(entries)]) == 0
    assert broker.tables.queues[found.handle + layout.QUEUE_RETURNED] == layout.NONE


def test_a_tree_that_has_become_deep_is_given_up_and_the_order_stays():
    """A peer that knew the handles could have entries come back from the lightest to the heaviest."""
    broker, found, entries = taken_out()
    tables = broker.tables

    def weight(entry):
        return entry * layout.TREE_WEIGHT & layout.TREE_WEIGHT_MASK

    heavy_first = sorted(entries, key=weight, reverse=True)
    for at, entry in enumerate(heavy_first):
        tables.entries[entry + layout.ENTRY_POSITION] = at
    found.tables.queues[found.handle + layout.QUEUE_POSITION] = COUNT
    for entry in heavy_first:
        back(broker, found, entry)
    depth, entry = 0, tables.queues[found.handle + layout.QUEUE_RETURNED]
    while entry != layout.NONE:
        entry = tables.entries[entry + layout.TREE_HIGHER]
        depth += 1
    assert 1 < depth <= layout.TREE_DEEP + 2 < COUNT
    assert ready(broker, found) == heavy_first
    for entry in reversed(heavy_first):
        found.unlink(entry)
    assert tables.queues[found.handle + layout.QUEUE_RETURNED] == layout.NONE and found.head() == layout.NONE


def test_blocks_that_come_back_behind_what_is_back_already_pass_few_others():
    """The newest of each block first, as a nack of many returns them: each finds its place from the one that came before it."""
    for parts in ([200, 200], [100, 100, 100, 100], [399, 1], [1, 399]):
        broker, found, entries = taken_out()
        steps, begun = 0, 0
        for count in parts:
            for entry in reversed(entries[begun : begun + count]):
                steps += back(broker, found, entry)
            begun += count
        assert ready(broker, found) == entries
        assert steps < 20 * COUNT, (parts, steps)  # each walked past all blocks before: 40,000

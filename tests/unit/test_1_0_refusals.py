"""The outcome modified with undeliverable-here (part 3, section 3.4.5), in queues of every kind: "the sender MUST NOT redeliver the message
to the modifying link endpoint", and otherwise the message is there again."""

from memory_store import MemoryStore
from peer_1_0 import Peer, data, performative
from test_1_0_modified import HERE, came, idle, sound, world

from leveret.core.amqp_1_0 import composites, types
from leveret.core.memory import layout

KINDS = (
    {},
    {"x-single-active-consumer": True},
    {"x-max-priority": 5},
    {"x-group-key": "group"},
    {"x-group-key": "group", "x-single-active-consumer": True},
    {"x-max-priority": 5, "x-single-active-consumer": True},
    {"x-last-value-key": "value"},
    {"x-delayed-retry-min": 1},
    {"x-max-priority": 5, "x-delayed-retry-min": 1},
    {"x-max-length": 100},
    {"x-queue-type": "quorum"},
)


def put(peer, number, group=None, priority=None, body=None):
    """A message with a group, or with a priority."""
    octets = b"" if priority is None else composites.write("header", {"priority": priority})
    if group is not None:
        octets += b"\x00\x53\x74" + types.encode({"group": group})
    octets += data(b"%d" % number if body is None else body)
    peer.give(performative("transfer", 0, octets, handle=0, delivery_id=number, delivery_tag=b"%d" % number))


def bodies(got):
    return [each[2] for each in got]


def refused(peer, got, body):
    """Refuse the delivery with this body."""
    ((number, _, _),) = [each for each in got if each[2] == body]
    peer.settle(number, HERE)


def leave(peer, handle=1):
    """Close a link: its unsettled deliveries go back."""
    peer.give(performative("detach", handle=handle, closed=True))
    peer.broker.run()
    return [fields for name, fields, _, _ in peer.frames() if name == "detach"]


def test_no_kind_of_queue_delivers_it_to_the_same_link_again():
    """The link gets what is behind it; a link that comes after it has gone gets it first."""
    for arguments in KINDS:
        store = MemoryStore()
        broker, peer = world(3, arguments, store)
        peer.receiver(credit=20)
        got = came(peer)
        assert bodies(got) == [b"0", b"1", b"2"], arguments
        refused(peer, got, b"1")
        for each in (got[0], got[2]):
            peer.settle(each[0], ("accepted", {}))
        broker.tick(broker.now + 5, broker.seconds)
        peer.send(3, b"3")
        assert bodies(came(peer)) == [b"3"] and idle(broker), arguments
        queue = broker.queues["q"]
        assert (queue.message_count(), queue.unsettled_count()) == (1, 1), arguments
        leave(peer)
        broker.tick(broker.now + 5, broker.seconds)
        other = Peer(broker, container="other")
        other.receiver(credit=10)
        assert bodies(came(other)) == [b"1", b"3"], arguments
        broker.tick(broker.now + 1000, broker.seconds + 1)
        assert queue.rules is None or queue.rules.groups is None or not hasattr(queue.rules.groups, "wishes"), arguments
        sound(broker)


def test_a_single_active_link_that_refuses_stays_active():
    """The message waits for the next active one; the others get nothing meanwhile."""
    broker, peer = world(3, {"x-single-active-consumer": True})
    peer.receiver(credit=20)
    other = Peer(broker, container="other")
    other.receiver(credit=20)
    refused(peer, came(peer), b"0")
    assert came(peer) == [] == came(other) and idle(broker)
    peer.send(3, b"3")
    assert bodies(came(peer)) == [b"3"] and came(other) == []
    leave(peer)
    assert bodies(came(other)) == [b"0", b"1", b"2", b"3"]
    sound(broker)


def test_a_refused_message_keeps_its_place_in_its_level():
    """Priorities: others get it before all of lower levels and behind those of higher ones; the link gets all the rest in its order."""
    for step in (0, 1):
        broker, peer = world(0, {"x-max-priority": 5})
        peer.step = step
        for number, priority in enumerate((1, 5, 3, 5, 1, 3)):
            put(peer, number, priority=priority)
        peer.frames()
        peer.receiver(credit=3)
        got = came(peer)
        assert bodies(got) == [b"1", b"3", b"2"]
        for body in (b"1", b"2"):
            refused(peer, got, body)
        peer.credit(2, delivery_count=3)
        assert bodies(came(peer)) == [b"5", b"0"]
        put(peer, 6, priority=5)
        put(peer, 7, priority=3)
        put(peer, 8, priority=0)
        peer.frames()
        peer.credit(2, delivery_count=5)
        assert bodies(came(peer)) == [b"6", b"7"]
        other = Peer(broker, container="other")
        other.receiver(credit=20)
        assert bodies(came(other)) == [b"1", b"2", b"4", b"8"]
        sound(broker)


def test_priorities_beside_a_link_without_room():
    """A message that was put at the head and not delivered is in its level when the next one comes."""
    broker, peer = world(0, {"x-max-priority": 5})
    sender = Peer(broker, container="sender")
    sender.sender()
    put(sender, 0, priority=5)
    peer.receiver(credit=0)
    peer.credit(20, incoming_window=1)
    refused(peer, came(peer), b"0")
    for number, priority in enumerate((1, 2, 1, 4)):
        put(sender, number + 1, priority=priority, body=bytes([48 + number + 1]) * 300)
        broker.run()
    put(sender, 5, priority=5)
    broker.run()
    got = []
    for _ in range(20):
        peer.credit(1, delivery_count=1 + len(got), incoming_window=1, next_incoming_id=1 + len(got))
        got += came(peer)
    assert [body[:1] for body in bodies(got)] in ([b"5", b"4", b"2", b"1", b"3"], [b"1", b"5", b"4", b"2", b"3"])
    other = Peer(broker, container="other")
    other.receiver(credit=20)
    assert bodies(came(other)) == [b"0"]
    sound(broker)


def test_a_group_goes_on_in_order_with_another_link():
    """No message of the group passes by the refused one; other groups, and messages without one, do."""
    broker, peer = world(0, {"x-group-key": "group"})
    for number, group in enumerate(("a", "b", "a", None, "b", None)):
        put(peer, number, group)
    peer.frames()
    peer.receiver(credit=2)
    got = came(peer)
    assert bodies(got) == [b"0", b"1"]
    refused(peer, got, b"0")
    peer.settle(got[1][0], ("accepted", {}))
    peer.credit(20, delivery_count=2)
    got = came(peer)
    assert bodies(got) == [b"3", b"4", b"5"] and idle(broker)
    refused(peer, got, b"3")
    put(peer, 6, "a")
    assert came(peer) == [] and idle(broker)
    other = Peer(broker, container="other")
    other.receiver(credit=1)
    ((number, _, body),) = came(other)
    assert body == b"0" and came(peer) == []
    other.settle(number, ("released", {}))
    assert came(peer) == []
    other.credit(20, delivery_count=1)
    assert bodies(came(other)) == [b"0", b"2", b"3", b"6"] and came(peer) == []
    sound(broker)


def test_a_group_whose_owner_refuses_one_waits_for_the_rest_of_its_deliveries():
    """Groups go to one link at a time: the next one has the group when nothing of it is unsettled with the first."""
    broker, peer = world(0, {"x-group-key": "group"})
    for number in range(3):
        put(peer, number, "a")
    peer.frames()
    peer.receiver(credit=10)
    got = came(peer)
    other = Peer(broker, container="other")
    other.receiver(credit=10)
    refused(peer, got, b"1")
    assert came(other) == [] == came(peer) and idle(broker)
    peer.settle(got[2][0], ("released", {}))
    assert came(other) == [] == came(peer), "2 stands behind 1, and 0 is unsettled"
    peer.settle(got[0][0], ("accepted", {}))
    assert bodies(came(other)) == [b"1", b"2"] and came(peer) == []
    sound(broker)


def test_each_link_of_a_queue_with_groups_or_priorities_may_refuse():
    for arguments in ({"x-group-key": "group"}, {"x-max-priority": 5}):
        broker, peer = world(0, arguments)
        for number in range(4):
            put(peer, number, "abab"[number] if "x-group-key" in arguments else None, number % 2)
        peer.frames()
        peers = [Peer(broker, container=name) for name in ("a", "b", "c")]
        seen = {}
        for each in peers:
            each.receiver(credit=10)
        for _ in range(12):
            for at, each in enumerate(peers):
                for number, _, body in came(each):
                    assert at not in seen.setdefault(body, []), (arguments, body)
                    seen[body].append(at)
                    each.settle(number, HERE)
        assert sorted(seen) == [b"0", b"1", b"2", b"3"] and idle(broker)
        assert [len(each) for each in seen.values()] == [3] * 4, (arguments, seen)
        assert broker.queues["q"].message_count() == 4
        last = Peer(broker, container="last")
        last.receiver(credit=10)
        assert len(came(last)) == 4
        sound(broker)


def test_a_refused_message_that_was_only_in_the_log_meanwhile():
    """Its entry is another one; its position is not."""
    broker, peer = world(1)
    peer.receiver(credit=10)
    refused(peer, came(peer), b"0")
    queue = broker.queues["q"]
    entry = queue.pop()
    wish = queue.rules.groups.wishes[next(iter(queue.rules.groups.wishes))]
    position = broker.tables.entries[entry + layout.ENTRY_POSITION]
    assert not wish.has_refused(queue, entry + layout.ENTRY_WIDTH, position)
    queue.pages = object()
    try:
        assert wish.has_refused(queue, entry + layout.ENTRY_WIDTH, position) and not wish.has_refused(queue, entry, position + 1)
    finally:
        queue.pages = None
    queue.requeue(entry)
    sound(broker)

"""x-group-key (message groups): a group stays with one consumer while it has an unsettled message of it; core/queue/features/groups.py."""

from peer import Peer, encoded, new_broker
from test_queue_rules import pair

from leveret.core.message import reading
from leveret.core.queue.features import groups


def test_message_groups():
    """x-group-key: a group stays with one consumer while it has an unsettled message of it; others are not held up."""
    broker, one = pair({"x-group-key": "g"})
    two = Peer(broker)
    for peer in (one, two):
        peer.ask("basic_qos", "basic_qos_ok", 0, 2, False)
        peer.consume("q")
    for group, body in (("a", b"a1"), ("a", b"a2"), ("a", b"a3"), ("b", b"b1"), ("b", b"b2")):
        one.publish("q", body, given={"headers": {"g": group}})
    assert [each[3] for each in one.contents()] == [b"a1", b"a2"]
    assert [each[3] for each in two.contents()] == [b"b1", b"b2"]
    one.give(encoded("basic_ack", 1, 1, False))
    assert [each[3] for each in one.contents()] == [b"a3"]


def test_a_message_has_its_own_group_wherever_it_stands():
    """A message in the place of one that was purged, whose group another consumer has, is of the group that its own header names."""
    broker, one = pair({"x-group-key": "g"})
    two = Peer(broker)
    for peer in (one, two):
        peer.ask("basic_qos", "basic_qos_ok", 0, 1, False)
        peer.consume("q")
    for body in (b"a1", b"a2"):
        one.publish("q", body, given={"headers": {"g": "a"}})
    assert [each[3] for each in one.contents()] == [b"a1"] and two.contents() == []
    assert one.ask("queue_purge", "queue_purge_ok", 0, "q", False) == [1]
    one.publish("q", b"b1", given={"headers": {"g": "b"}})
    assert [each[3] for each in two.contents()] == [b"b1"] and one.contents() == []


class Draws:
    """Numbers that look random, the same in every run."""

    state = 12345

    def below(self, most):
        self.state = (self.state * 69069 + 1) & 0x3FFFFFFF
        return (self.state >> 12) % most


def test_message_groups_in_any_order_of_settling():
    """Whatever is acknowledged, returned or cancelled in whatever order: no group is with two consumers, and each comes in its order."""
    broker = new_broker(message_count_max=512, entry_count_max=512, arena_size=1 << 16)
    chance = Draws()
    peers = [Peer(broker) for _ in range(3)]
    peers[0].declare("q", arguments={"x-group-key": "g"})
    for number in range(200):
        group = chance.below(7)
        given = {} if group == 6 else {"headers": {"g": group}}
        peers[0].publish("q", b"%d" % number, given=given)
    held = [{} for _ in peers]  # of each consumer: tag -> (group, number)
    for peer in peers:
        peer.ask("basic_qos", "basic_qos_ok", 0, 1 + chance.below(9), False)
    arrived = [peer.consume("q") for peer in peers]
    settled = set()
    rounds = 0
    while len(settled) < 200:
        rounds += 1
        assert rounds < 5000, "nothing comes any more: %d" % len(settled)
        for number, peer in enumerate(peers):
            for _, arguments, given, body in arrived[number] + peer.contents():
                group = (given.get("headers") or {}).get("g")
                for other in range(3):
                    if group is not None and other != number:
                        assert group not in [each[0] for each in held[other].values()], group
                held[number][arguments[1]] = (group, int(body))
            arrived[number] = []
            numbers = [each[1] for tag, each in sorted(held[number].items()) if each[0] == 0]
            assert rounds > 40 or numbers == sorted(numbers)  # until the first ones come back
            if held[number] and chance.below(3):
                tags = sorted(held[number])
                tag = tags[chance.below(len(tags))]
                if rounds > 40 and chance.below(4) == 0:
                    peer.give(encoded("basic_nack", 1, tag, False, True))
                    del held[number][tag]
                else:
                    peer.give(encoded("basic_ack", 1, tag, False))
                    settled.add(held[number].pop(tag)[1])
    rule = broker.queues["q"].rules.groups
    assert len(rule.owners) <= 7 and broker.queues["q"].message_count() == 0


def test_what_a_message_group_costs_does_not_grow_with_what_is_unsettled():
    """Headers are read once a message while it is near the head, and what is remembered is about what is unsettled."""
    broker = new_broker(message_count_max=2048, entry_count_max=2048, arena_size=1 << 18)
    one, two = Peer(broker), Peer(broker)
    one.declare("q", arguments={"x-group-key": "g"})
    for peer in (one, two):
        peer.consume("q")
    reads = [0]
    read = reading.header_of

    def counting(tables, message, name):
        reads[0] += 1
        return read(tables, message, name)

    reading.header_of = counting
    rule = broker.queues["q"].rules.groups
    looks = [0]
    owners = rule.owners = groups.Owners()
    is_held = owners.is_held

    def looking(*given):
        looks[0] += 1
        return is_held(*given)

    owners.is_held = looking
    one.frames(), two.frames()
    got = []
    for number in range(600):
        one.publish("q", b"x", given={"headers": {"g": number % 50}})
        got += one.contents()
        two.frames()
    reading.header_of = read
    unsettled = broker.queues["q"].unsettled_count()
    assert unsettled == 600 and reads[0] <= 2 * 600 and looks[0] <= 8 * 600, (reads, looks)
    for _, arguments, _, _ in got[1:]:
        one.give(encoded("basic_ack", 1, arguments[1], False))
    for number in range(600):
        one.publish("q", b"x", given={"headers": {"g": number % 50}})
        for _, arguments, _, _ in one.contents():
            one.give(encoded("basic_ack", 1, arguments[1], False))
        two.frames()
    remembered = sum([len(each) for each in owners.held.values()])
    assert remembered <= 2 * broker.queues["q"].unsettled_count() + 200, remembered


def test_a_group_takes_the_same_memory_however_long_its_value_is():
    """x-group-key: what stands for a value is kept while a message of it is unsettled."""
    broker, peer = pair({"x-group-key": "g"})
    peer.consume("q")
    for group in ("a" * 200, "b" * 150, 7, True):
        peer.publish("q", b"x", given={"headers": {"g": group}})
    assert len(peer.contents()) == 4
    owners = broker.queues["q"].rules.groups.owners
    assert len(owners) == 4 and (not hasattr(owners, "held") or {len(group) for group in owners.held} == {15})  # in C each is a row

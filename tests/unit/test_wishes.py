"""Consumers that want only some of a queue's messages (core/queue/wishes.py), by the toy family."""

from memory_store import MemoryStore, durable_broker
from peer import new_broker
from same_random import Random, seeds
from toy_family import ToyPeer, installed

from leveret.core.broker.policies import Policy
from leveret.core.errors import NOT_IMPLEMENTED, ProtocolError
from leveret.core.memory import invariants, layout
from leveret.core.outcomes import ACCEPTED, MODIFIED, RELEASED
from leveret.core.queue import turns, wishes
from leveret.core.stream.stream import EPOCH


def toys(test):
    """A test with the toy family installed."""

    def run():
        with installed():
            test()

    return run


class Peer(ToyPeer):
    """A toy that keeps what came until it is looked at."""

    def heard(self):
        self.kept = getattr(self, "kept", []) + ToyPeer.heard(self)
        return []

    def lines(self):
        """All of it since the last time."""
        self.heard()
        lines, self.kept = self.kept, []
        assert not [each for each in lines if each[0] == "error"], lines
        return lines


def body_of(broker, message):
    """The body of a message, as a number."""
    tables = broker.tables
    whole = tables.octets(message, 0, tables.size_of(message))
    return int(bytes(whole).rsplit(b"}", 1)[-1])


def multiples(divisor):
    """What a consumer of multiples of a number wants."""
    return lambda broker, message: body_of(broker, message) % divisor == 0


def subscribe(peer, tag, fits, credit, alone=False, queue="q", priority=0):
    """A consumer with a wish; fits None: without."""
    protocol = peer.connection.session
    arguments = {"x-priority": priority} if priority else {}
    consumer = protocol.broker.consumers.subscribe(protocol.session, queue, tag, False, False, arguments, 0)
    if fits is not None:
        wishes.attach(protocol.broker, consumer, fits, alone)
    protocol.broker.consumers.add_credit(consumer, credit)
    protocol.broker.run()
    return consumer


def got(peer):
    """(consumer, tag, how often it came back, body as a number) of what was delivered."""
    return [(each[1], each[2], each[3], int(each[6])) for each in peer.lines() if each[0] == "message"]


def numbers(found):
    """The bodies of deliveries, in order."""
    return [each[3] for each in found]


def world(**limits):
    """(broker, a peer with the queue q)."""
    given = {"entry_count_max": 4096, "message_count_max": 4096}
    given.update(limits)
    broker = new_broker(**given)
    peer = Peer(broker)
    peer.ask("queue", "q")
    return broker, peer


def publish(peer, *bodies, **given):
    """Publish numbers."""
    for body in bodies:
        peer.ask("publish", "", "q", str(body), given)
    peer.broker.run()


@toys
def test_each_gets_what_it_wants_in_order_and_the_rest_stays_for_others():
    broker, peer = world()
    subscribe(peer, "even", multiples(2), 100)
    publish(peer, 1, 2, 3, 4)
    assert numbers(got(peer)) == [2, 4]
    other = Peer(broker)
    subscribe(other, "three", multiples(3), 100)
    assert numbers(got(other)) == [3]
    publish(peer, 6, 9)
    assert sorted(numbers(got(peer)) + numbers(got(other))) == [6, 9]
    third = Peer(broker)
    subscribe(third, "all", None, 100)
    assert numbers(got(third)) == [1]
    invariants.check(broker.tables)


@toys
def test_what_comes_back_is_looked_at_again_first():
    broker, peer = world()
    subscribe(peer, "even", multiples(2), 2)
    publish(peer, 1, 2, 3, 4, 5, 6)
    assert numbers(got(peer)) == [2, 4]
    other = Peer(broker)
    subscribe(other, "two", multiples(2), 1)
    assert numbers(got(other)) == [6]
    peer.ask("settle", 1, 1, MODIFIED)
    peer.ask("credit", "even", 2)
    found = got(peer)
    assert [(each[2], each[3]) for each in found] == [(1, 2)]
    other.ask("settle", 1, 1, RELEASED)
    assert numbers(got(peer)) == [6]
    peer.ask("settle", 2, 4, ACCEPTED)
    assert broker.queues["q"].message_count() == 3
    invariants.check(broker.tables)


@toys
def test_who_is_alone_lets_go_of_what_it_does_not_want():
    broker, peer = world()
    publish(peer, 1, 2, 3)
    subscribe(peer, "even", multiples(2), 10, True)
    publish(peer, 5, 4)
    assert numbers(got(peer)) == [2, 4] and broker.queues["q"].message_count() == 0
    invariants.check(broker.tables)


@toys
def test_the_rule_goes_with_the_last_wish():
    broker, peer = world()
    subscribe(peer, "even", multiples(2), 10)
    publish(peer, 1)
    queue = broker.queues["q"]
    assert queue.needs_care
    peer.ask("cancel", "even")
    broker.tick((broker.now + 1000) & 0x3FFFFFFF, EPOCH)
    broker.run()
    assert queue.rules is None and not queue.needs_care
    subscribe(peer, "all", None, 10)
    assert numbers(got(peer)) == [1]


@toys
def test_a_consumer_on_the_record_of_one_with_a_wish_wants_everything():
    broker, peer = world()
    subscribe(peer, "even", multiples(2), 10)
    publish(peer, 1)
    peer.ask("cancel", "even")
    subscribe(peer, "all", None, 10)
    assert numbers(got(peer)) == [1]


@toys
def test_a_policy_and_a_lifetime_leave_the_wishes_there():
    broker, peer = world()
    subscribe(peer, "even", multiples(2), 10)
    broker.policies.set(broker, Policy("p", "q", {"max-length": 3}))
    broker.run()
    publish(peer, 1, 3, 5, 7, 2)
    assert numbers(got(peer)) == [2] and broker.queues["q"].message_count() == 2
    broker.policies.remove(broker, "p")
    broker.run()
    publish(peer, 9, 4)
    assert numbers(got(peer)) == [4] and broker.queues["q"].message_count() == 3
    peer.ask("delete", "q")
    assert "q" not in broker.queues
    invariants.check(broker.tables)


@toys
def test_an_expired_message_in_the_middle_is_not_delivered():
    broker, peer = world()
    consumer = subscribe(peer, "even", multiples(2), 0)
    publish(peer, 1)
    publish(peer, 2, expiration="100")
    publish(peer, 4)
    for _ in range(6):
        broker.tick((broker.now + 50) & 0x3FFFFFFF, EPOCH)
        broker.run()
    broker.consumers.add_credit(consumer, 10)
    broker.run()
    assert numbers(got(peer)) == [4] and broker.queues["q"].message_count() == 1
    invariants.check(broker.tables)


@toys
def test_a_queue_with_groups_refuses_a_wish():
    """A group comes whole and in order, and to one consumer: one that wants a part of it would leave the rest in front of its next."""
    for arguments in ({"x-group-key": "k"}, {"x-group-key": "k", "x-single-active-consumer": True}):
        broker, peer = world()
        peer.ask("queue", "s", False, arguments)
        try:
            subscribe(peer, "c", multiples(2), 1, queue="s")
        except ProtocolError as error:
            assert error.condition == NOT_IMPLEMENTED and "queue 's'" in error.text and "x-group-key" in error.text
        else:
            raise AssertionError(arguments)


@toys
def test_a_single_active_consumer_gets_what_it_wants_and_the_rest_waits_for_the_next():
    broker, peer = world()
    peer.ask("queue", "s", False, {"x-single-active-consumer": True})
    other = Peer(broker)
    subscribe(peer, "even", multiples(2), 100, queue="s")
    subscribe(other, "all", None, 100, queue="s")
    for body in (1, 2, 3, 4):
        peer.ask("publish", "", "s", str(body), {})
    broker.run()
    assert numbers(got(peer)) == [2, 4] and numbers(got(other)) == []
    peer.ask("settle", 1, 1, ACCEPTED)
    peer.ask("cancel", "even")
    peer.ask("settle", 2, 2, RELEASED)
    broker.run()
    assert numbers(got(other)) == [1, 3, 4]
    invariants.check(broker.tables)


@toys
def test_a_queue_with_priorities_gives_each_the_first_that_it_wants_of_the_highest_level():
    """However many of a level nobody wants; what returns goes first in its level, and what comes later in a higher one goes before it."""
    broker, peer = world(arena_size=1 << 20)
    peer.ask("queue", "p", False, {"x-max-priority": 5})

    def put(body, level):
        peer.ask("publish", "", "p", str(body), {"priority": level})
        broker.run()

    for body in range(1, 1001, 2):
        put(body, 4)
    for body, level in ((2, 1), (4, 3), (6, 1), (8, 3)):
        put(body, level)
    subscribe(peer, "even", multiples(2), 2, queue="p")
    for _ in range(20):
        broker.run()
    assert numbers(got(peer)) == [4, 8]
    peer.ask("settle", 1, 1, RELEASED)
    put(10, 5)
    put(12, 3)
    for _ in range(6):
        peer.ask("credit", "even", 1)
        broker.run()
    assert numbers(got(peer)) == [10, 4, 12, 2, 6]
    assert broker.queues["p"].message_count() == 500
    other = Peer(broker)
    subscribe(other, "all", None, 1000, queue="p")
    for _ in range(60):
        broker.run()
    assert numbers(got(other)) == list(range(1, 1001, 2))
    invariants.check(broker.tables)


@toys
def test_by_chance_a_queue_with_priorities_delivers_by_level_and_then_by_age():
    for seed in seeds(0, 8):
        chance = Random(seed)
        broker, peer = world()
        alone = seed % 2 == 1
        peer.ask("queue", "p", False, {"x-max-priority": 3})
        subscribe(peer, "c", multiples(2), 0, alone, queue="p")
        ready, unsettled, number = [], {}, 0  # [(-level, number)], tag -> the same
        for _ in range(150):
            for _ in range(chance.below(4)):
                number += 1
                level = chance.below(4)
                peer.ask("publish", "", "p", str(number), {"priority": level})
                if number % 2 == 0:
                    ready.append((-level, number))
            broker.run()
            assert numbers(got(peer)) == []
            if ready and chance.below(3):
                peer.ask("credit", "c", 1)
                for _ in range(4):
                    broker.run()
                ((_, tag, _, body),) = got(peer)
                best = min(ready)
                assert body == best[1], (seed, body, best)
                ready.remove(best)
                unsettled[tag] = best
            if unsettled and chance.below(2):
                tag = chance.choice(sorted(unsettled))
                best = unsettled.pop(tag)
                outcome = chance.choice((ACCEPTED, RELEASED, MODIFIED))
                if outcome != ACCEPTED:
                    ready.append(best)
                peer.ask("settle", tag, tag, outcome)
            invariants.check(broker.tables)
        count = broker.queues["p"].message_count()
        assert len(ready) <= count < number, (seed, count, len(ready))


@toys
def test_many_that_nobody_wants_cost_each_consumer_one_look_each():
    broker, peer = world(arena_size=1 << 20)
    looks = []

    def fits(broker, message):
        looks.append(message)
        return body_of(broker, message) % 500 == 0

    subscribe(peer, "c", fits, 100)
    for number in range(1, 1001):
        peer.ask("publish", "", "q", str(number), {})
    for _ in range(40):
        broker.run()
    assert numbers(got(peer)) == [500, 1000]
    assert len(looks) <= 1002
    subscribe(peer, "late", multiples(999), 100)
    for _ in range(80):
        broker.run()
    assert numbers(got(peer)) == [999]


def costly(looks, divisor):
    """A wish for multiples of a number: a look takes a quarter of a round, and is kept in `looks`; None: its round had nothing left."""

    def fits(broker, message):
        engine = broker.tables.engine
        looks.append(body_of(broker, message) if engine.left > 0 else None)
        engine.turned(engine.deliveries // 4)
        return body_of(broker, message) % divisor == 0

    return fits


def rounds(broker, count=40):
    """Several rounds."""
    for _ in range(count):
        broker.run()


@toys
def test_looks_that_cost_much_are_made_in_several_rounds_and_all_are_made():
    broker, peer = world()
    publish(peer, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20)
    others = [Peer(broker) for _ in range(5)]
    looks = []
    for each in others:
        subscribe(each, "c", costly(looks, 20), 10)
    assert len(looks) < 30
    rounds(broker)
    assert [numbers(got(each)) for each in others].count([20]) == 1
    assert sorted(looks) == sorted([1, 2, 3, 4, 5, 6, 7, 8, 9] * 5 + [20])
    rounds(broker)
    assert len(looks) == 46
    invariants.check(broker.tables)


def one_look_a_round(broker, message):
    """A wish for nothing; a look takes a whole round."""
    broker.tables.engine.turned(broker.tables.engine.deliveries)
    return False


@toys
def test_who_counts_or_gets_a_message_waits_for_one_rounds_looks_at_most():
    """turns.serve, and the turn of the connection that asked has as much less."""
    broker, peer = world()
    publish(peer, *range(1, 60))
    looks = []
    subscribe(Peer(broker), "c", costly(looks, 1000), 10)
    state, queue = broker.tables.state, broker.queues["q"]
    del looks[:]
    broker.tables.begin_turn()
    before = state[layout.STATE_LEFT]
    turns.serve(broker, queue)
    assert 4 <= len(looks) <= 5 and None not in looks, looks
    assert before - state[layout.STATE_LEFT] >= broker.tables.engine.effort
    rounds(broker)
    broker.tables.begin_turn()
    turns.serve(broker, queue)
    assert state[layout.STATE_LEFT] == before and len(looks) <= 59, (looks, "nothing is left to look at")


@toys
def test_a_costly_wish_of_a_higher_priority_keeps_nothing_from_a_lower_one():
    """Each look of the first takes a round."""
    broker, peer = world()
    low, high = Peer(broker), Peer(broker)
    publish(peer, *range(300))
    subscribe(high, "high", one_look_a_round, 1000, priority=9)
    subscribe(low, "low", multiples(1), 1000)
    rounds(broker, 100)
    came = numbers(got(low))
    assert len(came) > 40, "they come while the first has looked at a hundred"
    rounds(broker, 1000)
    assert came + numbers(got(low)) == list(range(300)) and not got(high)
    invariants.check(broker.tables)


@toys
def test_what_came_back_is_looked_at_in_several_rounds_and_comes_in_order():
    broker, peer = world()
    other = Peer(broker)
    looks = []
    subscribe(peer, "all", None, 10)
    publish(peer, *range(10))
    came = [each[1] for each in got(peer)]
    subscribe(other, "c", costly(looks, 3), 20)
    publish(other, 99)
    rounds(broker)
    assert numbers(got(other)) == [99] and looks == [99]
    peer.ask("cancel", "all")
    peer.ask("settle", came[0], came[-1], RELEASED)
    rounds(broker)
    assert numbers(got(other)) == [0, 3, 6, 9]
    assert sorted(looks) == list(range(10)) + [99]
    invariants.check(broker.tables)


@toys
def test_where_returning_messages_wait_costly_looks_are_made_once_and_in_several_rounds_too():
    broker, peer = world()
    peer.ask("queue", "late", False, {"x-delayed-retry-min": 10})
    for body in (1, 2, 3, 4, 5, 6, 7, 8, 9):
        peer.ask("publish", "", "late", str(body), {})
    others = [Peer(broker) for _ in range(3)]
    looks = []
    for each in others:
        subscribe(each, "c", costly(looks, 20), 10, queue="late")
    rounds(broker)
    assert sorted(looks) == sorted([1, 2, 3, 4, 5, 6, 7, 8, 9] * 3)
    peer.ask("publish", "", "late", "20", {})
    rounds(broker)
    assert [numbers(got(each)) for each in others].count([20]) == 1 and len(looks) == 28
    invariants.check(broker.tables)


@toys
def test_by_chance_nobody_gets_what_it_does_not_want_and_nothing_wanted_is_left():
    for seed in seeds(0, 6):
        chance = Random(seed)
        broker, peer = world()
        readers = [(Peer(broker), chance.choice((2, 3, 5)), []) for _ in range(3)]  # (peer, divisor, unsettled)
        for each, divisor, _ in readers:
            subscribe(each, "c", multiples(divisor), 3)
        number = 0
        for _ in range(200):
            if chance.below(2):
                number += 1
                publish(peer, number)
            for each, divisor, unsettled in readers:
                for _, tag, _, body in got(each):
                    assert body % divisor == 0
                    unsettled.append(tag)
            each, _, unsettled = chance.choice(readers)
            if unsettled and chance.below(10) < 7:
                tag = unsettled.pop(chance.below(len(unsettled)))
                each.ask("settle", tag, tag, chance.choice((ACCEPTED, RELEASED, MODIFIED)))
                each.ask("credit", "c", 1)
            invariants.check(broker.tables)
        for each, _, _ in readers:
            each.ask("credit", "c", 1000)
        for _ in range(20):
            broker.run()
        left = []
        queue = broker.queues["q"]
        entry = queue.head()
        while entry >= 0:
            left.append(body_of(broker, broker.tables.entries[entry]))
            entry = broker.tables.entries[entry + 1]
        assert left == sorted(left) and not [body for body in left for _, divisor, _ in readers if body % divisor == 0], seed


@toys
def test_what_a_durable_queue_let_go_of_does_not_come_back():
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.ask("queue", "q", True)
    publish(peer, 1, 2, 3, delivery_mode=2)
    subscribe(peer, "even", multiples(2), 10, True)
    for _ in range(10):
        broker.tick((broker.now + 200) & 0x3FFFFFFF, EPOCH)
        broker.run()
    assert numbers(got(peer)) == [2]
    peer.ask("settle", 1, 1, ACCEPTED)
    for _ in range(10):
        broker.tick((broker.now + 200) & 0x3FFFFFFF, EPOCH)
        broker.run()
    again, _ = durable_broker(store)
    assert again.queues["q"].message_count() == 0

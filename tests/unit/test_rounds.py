"""What raises in a round of the broker costs its own turn: no job, no connection, no queue and no policy is forgotten, and whoever stands
behind it has a turn in the same round or the next one (core/broker/guard.py; SPEC.md, "Faults of the broker's own")."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, encoded, idle, new_broker

from leveret.core.broker import transaction
from leveret.core.broker.policies import Policy
from leveret.core.broker.topology import NoPolicies
from leveret.core.log import beyond_memory
from leveret.core.queue import turns
from leveret.core.stream.stream import EPOCH


def raising(*_):
    raise ValueError("on purpose")


class Swapped:
    """A function that raises while it is entered."""

    def __init__(self, owner, name, function=raising):
        self.owner, self.name, self.function = owner, name, function

    def __enter__(self):
        self.had = self.name in self.owner.__dict__
        self.kept = getattr(self.owner, self.name)
        setattr(self.owner, self.name, self.function)

    def __exit__(self, *_):
        if self.had:
            setattr(self.owner, self.name, self.kept)
        else:
            delattr(self.owner, self.name)


def pass_time(broker, milliseconds):
    """Let time pass in steps of 100 ms."""
    for _ in range(milliseconds // 100):
        broker.tick((broker.now + 100) & 0x3FFFFFFF, EPOCH + broker.seconds)
        broker.run()


def heard(broker):
    """What a broker tells its operator from now on."""
    told = []
    broker.log = told.append
    return told


class Job:
    """A job that raises so often."""

    subject = "a job of the test%s"

    def __init__(self, times):
        self.times = times
        self.done = False

    def work(self):
        self.times -= 1
        if self.times >= 0:
            raise ValueError("on purpose")
        self.done = True


def test_a_job_that_raises_is_told_once_and_tried_again_behind_the_others():
    broker = new_broker()
    told = heard(broker)
    bad, good = Job(3), Job(0)
    broker.jobs = [bad, good]
    broker.run()
    broker.run()
    assert good.done and not bad.done and not broker.jobs
    pass_time(broker, 4500)
    assert bad.done and not broker.jobs
    assert len(told) == 1 and "a job of the test" in told[0] and broker.counters["internal_errors"] == 3


def test_a_rollback_that_raises_gives_all_of_its_memory_back_in_the_end():
    broker = new_broker(transaction_count_max=64)
    peer = Peer(broker)
    before = idle(broker)
    peer.ask("tx_select", "tx_select_ok")
    for _ in range(20):
        peer.publish("nowhere", b"x")
    kept, transaction.FORGOTTEN_A_TURN = transaction.FORGOTTEN_A_TURN, 4
    try:
        with Swapped(transaction.Forgotten, "work"):
            peer.ask("tx_rollback", "tx_rollback_ok")
        pass_time(broker, 2000)
    finally:
        transaction.FORGOTTEN_A_TURN = kept
    assert idle(broker) == before and broker.counters["internal_errors"] == 1


def test_policies_that_raise_for_one_queue_reach_the_others_and_that_one_when_it_no_longer_raises():
    """Meanwhile the broker serves everybody."""
    broker = new_broker()
    peer = Peer(broker)
    for name in ("a", "b", "c"):
        peer.declare(name)
    policies = broker.policies
    told = heard(broker)
    apply = policies.apply_to_queue

    def fails_for_b(broker, queue):
        if queue.name == "b":
            raise ValueError("on purpose")
        apply(broker, queue)

    broker.policies.set(broker, Policy("p", "^[abc]$", {"max-length": 3}))
    policies.begin(broker)
    for found in broker.queues.values():
        found.effective = None
        found.rules = None
    with Swapped(policies, "apply_to_queue", fails_for_b):
        pass_time(broker, 2500)
        assert [broker.queues[name].rules is None for name in ("a", "b", "c")] == [False, True, False]
        assert 2 <= broker.counters["internal_errors"] <= 4, "it is tried again each second"
        peer.publish("a", b"served")
        assert bodies(peer, "a") == [b"served"]
    pass_time(broker, 1500)
    assert broker.queues["b"].rules is not None and not policies.pending and not policies.failed
    assert len(told) == 1 and "policies of 'b'" in told[0]


def test_a_policy_that_raises_for_an_exchange_is_tried_again():
    broker = new_broker()
    policies = broker.policies
    policies.set(broker, Policy("p", "^amq.d", {"alternate-exchange": "amq.fanout"}))
    exchange = broker.exchanges["amq.direct"]
    exchange.set_alternate(None)
    policies.begin(broker)
    with Swapped(type(policies), "apply_to_exchange"):
        pass_time(broker, 300)
    pass_time(broker, 2000)
    assert exchange.alternate == "amq.fanout" and not policies.pending and not policies.failed


def test_a_channel_that_cannot_leave_keeps_none_of_the_others():
    broker = new_broker(entry_count_max=400, message_count_max=400, arena_size=65536, send_buffer_size=16384)
    other, peers = Peer(broker), [Peer(broker) for _ in range(3)]
    for number, peer in enumerate(peers):
        other.declare("q%d" % number)
        peer.consume("q%d" % number)
        for _ in range(30):
            other.publish("q%d" % number, b"x")
    broker.tables.engine.effort = 10
    channels = [peer.connection.session.channels[1] for peer in peers]
    for peer in peers:
        peer.connection.finish()
    assert [channel for channel in broker.consumers.leaving if channel in channels] == channels
    leave = broker.consumers.has_left

    def fails_for_the_first(channel):
        if channel is channels[0]:
            raise ValueError("on purpose")
        return leave(channel)

    with Swapped(broker.consumers, "has_left", fails_for_the_first):
        pass_time(broker, 5000)
        assert broker.consumers.leaving == channels[:1] and broker.counters["internal_errors"] < 20
    pass_time(broker, 1500)
    assert not broker.consumers.leaving and [broker.queues["q%d" % each].message_count() for each in range(3)] == [30] * 3


def test_a_connection_that_raises_when_it_goes_on_takes_no_other_with_it():
    """Those that wait for a turn, for room and for the log."""
    for name in ("behind", "held", "log"):
        broker = durable_broker(MemoryStore())[0]
        bad, good = Peer(broker), Peer(broker)
        connections = [bad.connection, good.connection]
        gone_on = []
        for method in ("resume", "go_on"):
            setattr(bad.connection, method, raising)
            setattr(good.connection, method, lambda: gone_on.append(1))
        if name == "behind":
            broker.behind = connections
            broker.run()
        elif name == "held":
            broker.held = connections
            broker.run()
        else:
            peer = Peer(broker)
            broker.journal.waiting = {each.session: True for each in connections}
            peer.declare("durable", durable=True)
        assert gone_on and broker.counters["internal_errors"] == 1, name
        assert bad.expect("connection_close")[0] == 541, name


def test_a_queue_whose_turn_raises_anywhere_has_another_one():
    """What is asked about it before the turn and behind it too, and when there is no memory to remember that it failed."""
    for owner, name in ((turns, "careful_most"), (turns, "careful_turn"), (turns, "cost_of"), (turns, "serve_queue")):
        broker = new_broker()
        peer = Peer(broker)
        peer.declare("q", arguments={"x-max-length": 9, "x-overflow": "block"})  # such a queue's turns are Python's in all forms
        peer.consume("q")
        with Swapped(owner, name):
            peer.publish("q", b"x")
            assert broker.counters["internal_errors"] == 1, name
        pass_time(broker, 200)
        found = peer.contents()
        assert [each[3] for each in found] == [b"x"] or name == "cost_of" and broker.queues["q"].unsettled_count() == 1, name
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q", arguments={"x-max-priority": 3})
    peer.consume("q")
    with Swapped(broker.guard, "count_failure"), Swapped(turns, "careful_turn"):
        peer.publish("q", b"x")
    broker.run()
    assert [each[3] for each in peer.contents()] == [b"x"]


def test_a_queue_beyond_memory_that_raises_keeps_no_other_from_being_read_back():
    broker = durable_broker(MemoryStore(), segment_size=1 << 14, size_max=1 << 20)[0]
    peer = Peer(broker)
    for name in ("a", "b"):
        peer.declare(name, durable=True)
    count = 3 * broker.limits.message_count_max // 2
    for number in range(count):
        for name in ("a", "b"):
            peer.publish(name, b"%d" % number, given=PERSISTENT)
    pages = [broker.queues[name].pages for name in ("a", "b")]
    assert all(each.count for each in pages)
    bring = broker.journal.pager.bring

    def fails_for_a(found, *most):
        if found.name == "a":
            raise ValueError("on purpose")
        return bring(found, *most)

    with Swapped(broker.journal.pager, "bring", fails_for_a):
        reader = Peer(broker)
        reader.give(encoded("basic_consume", 1, 0, "a", "c", False, True, False, True, {}))
        found = reader.contents()
        assert bodies(peer, "b") == [b"%d" % number for number in range(count)]
    assert broker.counters["internal_errors"] > 0 and len(found) < count
    for _ in range(100):
        pass_time(broker, 100)
        found += reader.contents()
    assert [each[3] for each in found] == [b"%d" % number for number in range(count)]


def test_one_round_reads_back_no_more_of_all_queues_than_a_turn():
    """Else as many turns as queues hold everybody for as long: the bound is a round's (core/DESIGN.md, a turn is bounded)."""
    broker = durable_broker(MemoryStore(), segment_size=1 << 14, size_max=1 << 20)[0]
    peer = Peer(broker)
    names = ("a", "b", "c")
    for name in names:
        peer.declare(name, durable=True)
    for number in range(broker.limits.message_count_max):
        for name in names:
            peer.publish(name, b"%d" % number, given=PERSISTENT)
    queues = [broker.queues[name] for name in names]
    assert all(queue.pages.count > 40 for queue in queues)
    for queue in queues:
        queue.purge(queue.message_count() - queue.pages.count)  # what is in memory
    pager = broker.journal.pager
    with Swapped(beyond_memory, "TURN_MESSAGES", 20), Swapped(beyond_memory, "TURN_OCTETS", 1 << 17):
        left = sum(queue.pages.count for queue in queues)
        pager.run()
        assert left - sum(queue.pages.count for queue in queues) == 20 and pager.busy
    with Swapped(beyond_memory, "TURN_OCTETS", 20):
        left = sum(queue.pages.count for queue in queues)
        pager.run()
        assert 0 < left - sum(queue.pages.count for queue in queues) < 20


class Failing:
    """A job of the broker that raises the first time."""

    subject = "a test"
    tries = 0

    def work(self):
        """False: it is done."""
        self.tries += 1
        if self.tries == 1:
            raising()
        return False


def test_a_build_without_policies_tries_again_what_raised_too():
    """Boards carry no policies: time passes without an error of ours, and a job that raised has its second try."""
    broker = new_broker()
    broker.policies = NoPolicies()
    pass_time(broker, 300)
    assert broker.counters["internal_errors"] == 0
    job = Failing()
    broker.jobs.append(job)
    pass_time(broker, 2500)
    assert job.tries == 2 and broker.counters["internal_errors"] == 1 and not broker.jobs and not broker.guard.jobs

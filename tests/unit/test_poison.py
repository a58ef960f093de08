"""No exception in one message's, one queue's or one connection's work ends the broker: core/broker/guard.py, core/broker/poison.py.

Section 4.10 of 0-9-1 (a server does not fail for what one peer does) and SPEC.md, "Faults of the broker's own"."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, encoded, idle, new_broker, taken

from leveret.core.broker import poison
from leveret.core.broker.policies import Policy
from leveret.core.queue.features import dead_letter, expiry
from leveret.core.queue.features.feature import Feature
from leveret.core.stream.stream import EPOCH

LETTER = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


class Fault(Exception):
    """What no code of the broker expects."""


class Broken(Feature):
    """A feature that raises where it is told to."""

    def __init__(self, where):
        self.where = where

    def raises(self, where):
        if where == self.where:
            raise Fault("broken in " + where)

    def before_delivery(self, broker, queue):
        self.raises("before_delivery")

    def came_back(self, broker, queue, entry):
        self.raises("came_back")
        return False

    def tick(self, broker, queue):
        self.raises("tick")


class Swapped:
    """A function of a module that raises while it is entered."""

    def __init__(self, module, name, error):
        self.module, self.name, self.error = module, name, error

    def __enter__(self):
        def raising(*given):
            raise self.error

        self.kept = getattr(self.module, self.name)
        setattr(self.module, self.name, raising)

    def __exit__(self, *_):
        setattr(self.module, self.name, self.kept)


def pass_time(broker, milliseconds):
    """Let time pass in steps of 100 ms."""
    for _ in range(milliseconds // 100):
        broker.tick((broker.now + 100) & 0x3FFFFFFF, EPOCH + broker.seconds)
        broker.run()


def with_sentences(broker):
    """The sentences that a broker tells its operator from now on."""
    told = []
    broker.log = told.append
    return told


def brokers(**overrides):
    """In memory and with a log; each with a peer."""
    yield Peer(new_broker(**overrides))
    yield Peer(durable_broker(MemoryStore(), **overrides)[0])


WHY = Fault("why")


def poisoned(error=WHY, peer=None, count=1):
    """A peer whose broker has failed on `count` messages of queue q, and what it told."""
    peer = peer or Peer(new_broker())
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments=dict(LETTER, **{"x-message-ttl": 1000}))
    told = with_sentences(peer.broker)
    with Swapped(dead_letter, "history", error):
        for number in range(count):
            peer.publish("q", b"body %d" % number, given={"delivery_mode": 2, "headers": {"mine": number}, "expiration": "500"})
        pass_time(peer.broker, 1500)
    return peer, told


def test_a_message_that_cannot_become_a_dead_letter_is_kept_as_poison_with_the_reason():
    """Body, own headers and route as they were; x-poison-*; counted, told once."""
    for peer in brokers():
        peer, told = poisoned(peer=peer, count=3)
        counters = peer.broker.counters
        assert counters["poisoned"] == 3 and counters["internal_errors"] == 3
        assert len(told) == 1 and "Fault: why" in told[0] and "queue 'q'" in told[0] and "test_poison.py" in told[0], told
        assert peer.broker.queues["q"].message_count() == 0
        found = taken(peer, poison.NAME)
        assert [body for _, body in found] == [b"body 0", b"body 1", b"body 2"]
        headers = found[1][0]["headers"]
        assert headers["mine"] == 1 and headers["x-poison-reason"] == "Fault: why" and headers["x-poison-queue"] == "q"
        assert headers["x-poison-time"] == ("T", EPOCH) and "expiration" not in found[1][0]
        again = Peer(peer.broker)
        again.publish("dead", b"serves on")
        assert bodies(again, "dead") == [b"serves on"]


def test_poison_of_a_persistent_message_is_on_disk_and_its_queue_has_it_no_more():
    """A power cut behind the sync: the message is in the one queue; behind no sync: in the other."""
    store = MemoryStore()
    peer, _ = poisoned(peer=Peer(durable_broker(store)[0]))
    again, report = durable_broker(store.cut())
    assert "recovered 1 messages" in report and ";" not in report, report
    assert bodies(Peer(again), poison.NAME) == [b"body 0"] and again.queues["q"].message_count() == 0
    pass_time(again, 3000)
    assert again.queues[poison.NAME].is_own

    store = MemoryStore()
    peer = Peer(durable_broker(store)[0])
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments=dict(LETTER, **{"x-message-ttl": 1000}))
    peer.publish("q", b"x", given=PERSISTENT)
    store.sync_fails = True
    with Swapped(dead_letter, "history", Fault("why")):
        pass_time(peer.broker, 1500)
    assert peer.broker.counters["poisoned"] == 1
    again, _ = durable_broker(store.cut())
    assert again.queues["q"].message_count() == 1


def test_a_fault_that_is_over_costs_nothing_when_it_was_a_lack_of_memory():
    """MemoryError: the dead letter waits and is made when there is memory again."""
    for peer in brokers():
        peer, told = poisoned(MemoryError("heap"), peer)
        assert "poisoned" in peer.broker.counters and peer.broker.counters["poisoned"] == 0 and len(told) == 1
        pass_time(peer.broker, 100)
        assert bodies(peer, "dead") == [b"body 0"]


def test_what_cannot_be_kept_as_poison_stays_aside_and_is_tried_again():
    """Told once, counted; the entry takes part in everything that a queue's end and the log do; nothing leaks."""
    for peer in brokers():
        broker = peer.broker
        before = idle(broker)
        with Swapped(poison, "keep", Fault("not even that")):
            peer, told = poisoned(peer=peer, count=3)
            pass_time(broker, 2500)
            assert broker.counters["poisoned"] == 0 and len(told) == 2 and len(list(broker.kept_aside())) == 3
        pass_time(broker, 1100)
        assert broker.counters["poisoned"] == 3 and list(broker.kept_aside()) == []
        assert sorted(bodies(peer, poison.NAME)) == [b"body 0", b"body 1", b"body 2"]
        with Swapped(poison, "keep", Fault("not even that")):
            poisoned(peer=peer, count=2)
        assert peer.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False) == [0]
        pass_time(broker, 1100)
        assert idle(broker) == before and broker.counters["dropped_with_queue"] == 2


def test_clients_read_and_purge_the_poison_and_nothing_else():
    """Section 1.7.2.1 and others: 403 for who declares, deletes or binds; what is published there has no route."""
    peer, _ = poisoned(count=3)
    assert peer.ask("queue_declare", "queue_declare_ok", 0, poison.NAME, True, False, False, False, False, {})[1] == 3
    peer.publish(poison.NAME, b"forged", mandatory=True)
    assert peer.contents()[0][0] == "basic_return"
    peer.give(encoded("queue_purge", 1, 0, poison.NAME, False))
    assert peer.expect("queue_purge_ok") == [3]
    for name, given in (
        ("queue_delete", (0, poison.NAME, False, False, False)),
        ("queue_bind", (0, poison.NAME, "amq.fanout", "", False, {})),
    ):
        peer = Peer(peer.broker)
        peer.give(encoded(name, 1, *given))
        assert peer.expect("channel_close")[0] == 403, name
    stranger = Peer(new_broker())  # where it has not been made yet
    stranger.give(encoded("queue_declare", 1, 0, poison.NAME, False, False, False, False, False, {}))
    assert stranger.expect("channel_close")[0] == 403
    peer = Peer(peer.broker)
    peer.ask("queue_declare", "queue_declare_ok", 0, "leveret.epochs.mine", False, False, False, False, False, {})  # Spark's sink has such
    peer.broker.policies.set(peer.broker, Policy("all", ".*", {"expires": 100, "message-ttl": 100}))
    pass_time(peer.broker, 1000)
    assert poison.NAME in peer.broker.queues and peer.broker.queues[poison.NAME].rules is None


def test_the_poison_is_bounded_and_the_oldest_goes():
    """A sixteenth of the messages and of the arena, at least one; what goes is counted, and told once."""
    for peer in brokers(message_count_max=64, entry_count_max=64):
        peer, told = poisoned(peer=peer, count=8)
        assert peer.broker.counters["poison_dropped"] == 4 and len([each for each in told if "oldest" in each]) == 1
        assert bodies(peer, poison.NAME) == [b"body 4", b"body 5", b"body 6", b"body 7"]


def test_a_queue_whose_features_raise_costs_its_messages_then_its_features_and_nobody_else():
    """Rules.tick and before_delivery, with a consumer and without: the broker serves on, nothing is lost."""
    for where in ("tick", "before_delivery"):
        for consumes in (False, True):
            broker = new_broker()
            peer = Peer(broker)
            peer.declare("q", arguments={"x-message-ttl": 100000})
            broker.queues["q"].rules.features.append(Broken(where))
            broker.queues["q"].update_plain()
            if consumes:
                peer.consume("q")
            for number in range(10):
                peer.publish("q", b"%d" % number)
            pass_time(broker, 2000)
            got = [each[3] for each in peer.contents()]
            kept = bodies(Peer(broker), poison.NAME) if poison.NAME in broker.queues else []
            peer = Peer(broker)
            assert len(broker.queues["q"].rules.features) == (1 if where == "tick" or consumes else 2), where
            if not consumes and where == "before_delivery":
                broker.queues["q"].rules.features.pop()
            assert sorted(got + kept + bodies(peer, "q")) == [b"%d" % number for number in range(10)], (where, got, kept)


def test_faults_of_a_queue_are_in_a_row_when_each_is_within_a_second_of_the_one_before():
    """core/broker/guard.py: behind a row of them a message is taken out; a fault now and then is none."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    queue, guard = broker.queues["q"], broker.guard
    for between, counts in ((900, [1, 2, 3]), (1100, [1, 1, 1])):
        counted = []
        for _ in counts:
            counted.append(guard.count_failure(queue))
            pass_time(broker, between)
        assert counted == counts, between
        pass_time(broker, 2000)


def test_a_delivery_that_comes_back_to_a_feature_that_raises_is_in_its_queue():
    """Section 1.8.3.14, requeue."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q", arguments={"x-delayed-retry-min": 5})
    broker.queues["q"].rules.features.insert(0, Broken("came_back"))
    peer.publish("q", b"x")
    peer.consume("q")
    peer.give(encoded("basic_cancel", 1, "c", True) + encoded("basic_nack", 1, 1, False, True))
    assert peer.frames() == [] and broker.counters["internal_errors"] == 1
    assert bodies(peer, "q") == [b"x"]


def test_time_and_rounds_never_raise():
    """Broker.tick and Broker.run, whatever does: the operator is told, also when the operator's log raises."""
    broker = new_broker()
    told = with_sentences(broker)

    def raising(*given):
        raise Fault("anywhere")

    broker.failures.tick = raising
    broker.give_turns = raising
    broker.behind.append(None)
    for _ in range(3):
        broker.tick((broker.now + 100) & 0x3FFFFFFF, EPOCH)
        broker.run()
    assert broker.counters["internal_errors"] == 6 and len(told) == 2, told
    broker.log = raising
    broker.guard.known = []
    broker.run()
    assert broker.counters["internal_errors"] == 7


def test_an_error_of_ours_in_a_connection_is_that_connections():
    """541 where it can be said; the words themselves may raise; buffers, channels and consumers come back."""
    for error, code in ((Fault("x"), 541), (MemoryError("x"), 506)):
        broker = new_broker()
        honest = Peer(broker)
        honest.declare("q")
        before = idle(broker)
        peer = Peer(broker)
        peer.consume("q")
        with Swapped(peer.connection.session, "process_method", error):
            peer.give(encoded("basic_qos", 1, 0, 1, False))
        assert peer.expect("connection_close")[0] == code
        peer.give(encoded("connection_close_ok", 0))
        peer.connection.received(0)
        assert idle(broker) == before and len(broker.connections) == 1
        peer = Peer(broker)
        with Swapped(peer.connection.session, "process_method", error):
            with Swapped(peer.connection.session, "fail", error):
                peer.give(encoded("basic_qos", 1, 0, 1, False))
        assert peer.connection.closed and idle(broker) == before and len(broker.connections) == 1
        honest.publish("q", b"on")
        assert bodies(honest, "q") == [b"on"]


def test_a_connection_for_which_there_is_no_memory_takes_no_place():
    """Places.attach: buffers first, then the place among the connections."""
    broker = new_broker()
    broker.tables.engine.send_buffer = lambda size: [].pop()
    try:
        Peer(broker)
    except IndexError:
        assert broker.connections == []
    else:
        raise AssertionError("it was attached")


def test_a_place_that_raised_is_told_as_file_and_line():
    """What an operator sends to who mends it."""
    broker = new_broker()
    told = with_sentences(broker)
    peer = Peer(broker)
    peer.declare("q", arguments={"x-message-ttl": 10, "x-dead-letter-exchange": "none"})
    with Swapped(expiry, "passed", Fault("late")):
        peer.publish("q", b"x")
        pass_time(broker, 100)
    assert len(told) == 1 and "Fault: late" in told[0] and "line " in told[0], told


def test_a_job_that_fails_is_done_later_also_where_memory_for_a_second_list_is_lacking():
    """The job goes back to the broker's own list when its pause cannot be noted."""

    class Full(list):
        def append(self, item):
            raise MemoryError("no memory")

    class Job:
        subject = "a job"
        runs = 0

        def work(self):
            self.runs += 1
            if self.runs == 1:
                raise Fault("once")
            return True

    broker = new_broker()
    broker.guard.jobs = Full()
    job = Job()
    broker.jobs.append(job)
    idle(broker)
    pass_time(broker, 5000)
    idle(broker)
    assert job.runs == 2

"""Connections that have a little to say, read and answered together (c_accel/ready.py): as one after the other, over real sockets."""

import fcntl
import random
import termios

import pytest
from invariants import Steps
from memory_store import SlowStore
from peer import content, encoded
from test_large import World
from test_same import SEEDS

from leveret import c_accel
from leveret.c_accel import ready
from leveret.core.amqp_0_9.session import Session
from leveret.core.memory import layout
from leveret.core.recovery.opening import make_durable

pytestmark = pytest.mark.skipif(c_accel.lib is None, reason="a C compiler is not installed")
COUNT = 5
PERSISTENT = {"delivery_mode": 2}
TRANSACTIONS = ("tx_select",)
COMMIT, ROLLBACK = encoded("tx_commit", 1), encoded("tx_rollback", 1)


class Many(World):
    """A broker in C, with or without a log, and COUNT clients in confirm mode, or in that of `mode`, whose queue is "q". `together`: small
    turns are taken so."""

    def __init__(self, durable=False, together=True, mode=("confirm_select", False)):
        World.__init__(self, c_accel.Engine)
        self.mode = mode
        self.store = SlowStore()
        if durable:
            make_durable(self.broker, self.store, "each", 100, 65536, 1 << 20, 1 << 24)
        if not together:
            self.loop.ready = None

    def __enter__(self):
        self.many = [self.client() for _ in range(COUNT)]
        for client in self.many:
            client.ask(encoded(self.mode[0], 1, *self.mode[1:]), self.mode[0] + "_ok")
        self.many[0].ask(encoded("queue_declare", 1, 0, "q", False, True, False, False, False, {}), "queue_declare_ok")
        for client in self.many:  # the first publish of each has its route looked up
            client.todo = content(1, "", "q", b"first", PERSISTENT) + (COMMIT if self.mode == TRANSACTIONS else b"")
        self.until(lambda: all(client.found for client in self.many), self.many)
        for client in self.many:
            client.found = []
        return self

    def tell(self, *octets):
        """Each client sends its part, and all of it has come."""
        for client, part in zip(self.many, octets, strict=True):
            client.socket.sendall(part)
        arrived([client.socket for client in self.many])

    def settle(self):
        """Step until nothing more comes of what was sent."""
        for _ in range(8):
            self.loop.step(0)
            arrived([self.loop.streams[slot].pollable for slot in self.loop.used])

    def names(self):
        """What each client got since it was asked last."""
        got = []
        arrived([self.loop.streams[slot].pollable for slot in self.loop.used])
        for client in self.many:
            client.move()
            got.append([frame[0] for frame in client.found])
            client.found = []
        return got


def arrived(sockets):
    """Wait until their peers' systems have all that they sent."""
    for each in sockets:
        while int.from_bytes(fcntl.ioctl(each, termios.TIOCOUTQ, bytes(4)), "little"):
            pass


@pytest.fixture
def by_python(monkeypatch):
    """How often Python took the frames of a connection."""
    calls = []
    take_frames = Session.take_frames
    monkeypatch.setattr(Session, "take_frames", lambda session, *given: calls.append(session) or take_frames(session, *given))
    return calls


def test_all_that_are_ready_are_read_and_confirmed_in_one_step_without_their_sessions(by_python):
    with Many() as world:
        del by_python[:]
        world.tell(*[content(1, "", "q", b"%d" % number) for number in range(COUNT)])
        world.loop.step(1)
        assert world.names() == [["basic_ack"]] * COUNT
        assert not by_python and world.ready("q") == 2 * COUNT


def test_confirms_wait_for_the_sync_and_one_sync_is_for_all(by_python):
    with Many(durable=True) as world:
        del by_python[:]
        world.store.stalls = True
        syncs = world.broker.journal.log.counters["log_syncs"]
        world.tell(*[content(1, "", "q", b"x", PERSISTENT)] * COUNT)
        for _ in range(3):
            world.loop.step(1)
        assert world.names() == [[]] * COUNT and world.ready("q") == 2 * COUNT
        world.store.stalls = False
        world.until(lambda: world.broker.journal.log.counters["log_syncs"] > syncs and not world.broker.journal.log.is_busy())
        world.loop.step(1)
        assert world.names() == [["basic_ack"]] * COUNT
        assert world.broker.journal.log.counters["log_syncs"] == syncs + 1 and not by_python


def test_commits_of_several_connections_are_made_in_one_call_and_have_one_sync(by_python):
    """Section 1.9.2.3, for transactions whose frames have all come: their sessions see none of them."""
    with Many(durable=True, mode=TRANSACTIONS) as world:
        del by_python[:]
        syncs, commits = world.broker.journal.log.counters["log_syncs"], world.broker.counters["commits"]
        world.store.stalls = True
        world.tell(*[content(1, "", "q", b"x", PERSISTENT) * 3 + COMMIT] * COUNT)
        for _ in range(3):
            world.loop.step(1)
        assert world.names() == [[]] * COUNT and world.ready("q") == 4 * COUNT
        assert world.broker.counters["commits"] == commits + COUNT
        world.store.stalls = False
        world.until(lambda: world.broker.journal.log.counters["log_syncs"] > syncs and not world.broker.journal.log.is_busy())
        world.loop.step(1)
        assert world.names() == [["tx_commit_ok"]] * COUNT
        assert world.broker.journal.log.counters["log_syncs"] == syncs + 1 and not by_python
        assert world.broker.tables.transactions_left == world.broker.limits.transaction_count_max


def test_a_transaction_of_which_a_part_has_come_is_kept_by_its_session():
    """Section 1.9.2.3 and 1.9.2.5: the commit is of both parts, a rollback of what came before it."""
    with Many(mode=TRANSACTIONS) as world:
        publish = content(1, "", "q", b"x")
        world.tell(publish * 2, publish + ROLLBACK + publish + COMMIT, publish + COMMIT + publish * 2 + COMMIT, b"", publish[:9])
        world.settle()
        assert world.names() == [[], ["tx_rollback_ok", "tx_commit_ok"], ["tx_commit_ok", "tx_commit_ok"], [], []]
        assert world.ready("q") == COUNT + 4
        world.tell(publish + COMMIT, b"", b"", COMMIT, publish[9:] + COMMIT)
        world.settle()
        assert world.names() == [["tx_commit_ok"], [], [], ["tx_commit_ok"], ["tx_commit_ok"]]
        assert world.ready("q") == COUNT + 8


@pytest.mark.parametrize("arguments", ({"x-max-length": 2}, {"x-max-length": 2, "x-overflow": "reject-publish"}, {"x-deduplication": 5}))
def test_a_queue_that_may_drop_or_refuse_has_its_commits_made_message_by_message(arguments, by_python):
    with Many(mode=TRANSACTIONS) as world:
        client = world.many[0]
        client.ask(encoded("queue_declare", 1, 0, "few", False, False, False, False, False, arguments), "queue_declare_ok")
        for count in (1, 2, 3):
            del by_python[:]
            client.ask(content(1, "", "few", b"x") * count + COMMIT, "tx_commit_ok")
            assert by_python
        assert world.ready("few") == (6 if "x-deduplication" in arguments else 2)
        Steps(1).end(world.broker)


def test_a_commit_without_room_for_all_of_it_is_not_made_in_parts():
    """No queue has a message of a transaction before there is room for its last."""
    with Many(mode=TRANSACTIONS) as world:
        state, publish = world.broker.tables.state, content(1, "", "q", b"x")
        left = state[layout.POOL_ENTRIES + 2]
        state[layout.POOL_ENTRIES + 2] = 4
        world.tell(publish * 5 + COMMIT, b"", b"", b"", b"")
        world.settle()
        assert world.names() == [[]] * COUNT and world.ready("q") == COUNT
        state[layout.POOL_ENTRIES + 2] = left
        world.until(lambda: world.ready("q") == COUNT + 5)
        world.settle()
        assert world.names()[0] == ["tx_commit_ok"]


def test_what_the_log_does_not_take_no_queue_keeps_and_only_those_who_sent_it_end(monkeypatch):
    with Many(durable=True) as world:
        monkeypatch.setattr(world.broker.journal, "log_pushed", lambda: 1 // 0)
        world.tell(*[content(1, "", "q", b"x", PERSISTENT)] * (COUNT - 1), encoded("basic_qos", 1, 0, 1, False))
        world.loop.step(1)
        world.settle()
        assert world.names() == [["connection_close"]] * (COUNT - 1) + [["basic_qos_ok"]]
        assert world.ready("q") == COUNT
        Steps(1).end(world.broker)


def test_a_frame_that_python_takes_may_end_another_connection_of_the_same_call():
    with Many() as world:
        ends = world.broker.connections[2]
        frames = [content(1, "", "q", b"x")] * COUNT
        frames[0] += encoded("queue_declare", 1, 0, "other", False, False, False, False, False, {})
        declare = world.broker.topology.declare_queue

        def and_end(*given, **named):
            ends.close("a test")
            ends.finish()
            return declare(*given, **named)

        world.broker.topology.declare_queue = and_end
        world.tell(*frames)
        world.settle()
        assert world.ready("q") == 2 * COUNT and ends.closed
        assert not world.broker.counters["internal_errors"] and world.names()[0] == ["basic_ack", "queue_declare_ok"]


def test_who_is_gone_and_who_says_nothing_whole():
    with Many() as world:
        publish = content(1, "", "q", b"x" * 50)
        world.tell(publish[:-1], publish + publish[:3], b"", b"", b"")
        world.many.pop().socket.close()
        world.until(lambda: len(world.broker.connections) < COUNT)
        world.settle()
        assert world.names() == [[], ["basic_ack"], [], []]
        world.tell(publish[-1:], publish[3:], b"", b"")
        world.settle()
        assert world.names() == [["basic_ack"], ["basic_ack"], [], []]


def test_a_connection_with_more_than_its_buffer_holds_is_read_by_itself_then():
    with Many() as world:
        much = content(1, "", "q", b"x" * 1000) * 300
        world.many[0].todo = much
        world.until(lambda: world.ready("q") == COUNT + 300, world.many)
        assert not world.loop.bulky


def test_deliveries_that_are_held_are_watched():
    """As RabbitMQ's consumer_timeout has it: its session hears the time."""
    with Many() as world:
        consumer = world.client()
        consumer.ask(encoded("basic_consume", 1, 0, "q", "c", False, False, False, False, {}), "basic_consume_ok")
        world.until(lambda: len(consumer.found) >= COUNT, [consumer])
        slot = next(each for each in world.loop.used if world.loop.endpoints[each] is world.broker.connections[-1])
        world.loop.alarms.soon.clear()
        world.tell(content(1, "", "q", b"x"), b"", b"", b"", b"")
        world.loop.step(1)
        assert slot in world.loop.alarms.soon


def test_who_takes_what_is_sent_is_not_taken_for_one_who_hangs():
    """A tick may see octets that wait to be sent in the same step (limit send_timeout_ms)."""
    with Many() as world:
        connection = world.broker.connections[0]
        connection.stuck_since = world.broker.now
        world.tell(*[content(1, "", "q", b"x")] * COUNT)
        world.loop.step(1)
        assert world.names() == [["basic_ack"]] * COUNT and connection.stuck_since == -1


def a_step(random_):
    """What one client says."""
    kind = random_.randrange(8)
    if kind < 5:
        given = random_.choice(({}, PERSISTENT, {"headers": {"a": 1}}, {"expiration": "60000"}))
        key = random_.choice(("q", "q", "q", "nowhere"))
        return content(1, "", key, b"b" * random_.choice((0, 1, 300, 5000)), given, random_.random() < 0.2)
    if kind == 5:
        return encoded("basic_get", 1, 0, "q", random_.random() < 0.5)
    if kind == 6:
        return encoded("basic_nack", 1, 0, True, True)
    return encoded("queue_declare", 1, 0, "q", False, True, False, False, False, {})


def a_part_of_a_transaction(random_):
    """What one client says in a transaction: mostly what ends one."""
    kind = random_.randrange(8)
    return a_step(random_) if kind < 3 else ROLLBACK if kind == 3 else content(1, "", "q", b"b" * kind, PERSISTENT) * kind + COMMIT


@pytest.mark.parametrize("durable", (False, True))
@pytest.mark.parametrize("mode, step", ((("confirm_select", False), a_step), (TRANSACTIONS, a_part_of_a_transaction)))
def test_together_and_one_after_the_other_come_to_the_same(durable, mode, step):
    """One client at a time says something, in pieces: both brokers have the same tables, octets and log behind each step."""
    for seed in range(max(SEEDS // 16, 1)):
        random_ = random.Random(seed)
        with Many(durable, True, mode) as together, Many(durable, False, mode) as apart:
            for _ in range(60):
                client = random_.randrange(COUNT)
                octets = b"".join(step(random_) for _ in range(random_.choice((1, 1, 3))))
                cut = random_.choice((len(octets), random_.randrange(len(octets) + 1)))
                for world in (together, apart):
                    for part in filter(None, (octets[:cut], octets[cut:])):
                        world.many[client].socket.sendall(part)
                        arrived([world.many[client].socket])
                        world.settle()
                    for each in world.many:
                        each.move()
                assert [each.found for each in together.many] == [each.found for each in apart.many]
                assert shown(together) == shown(apart)
                assert together.broker.counters["commits"] == apart.broker.counters["commits"]
            if durable:
                logs = [world.broker.journal.log for world in (together, apart)]
                assert (
                    logs[0].appended == logs[1].appended
                    and logs[0].counters["log_payload_octets"] == logs[1].counters["log_payload_octets"]
                )


def shown(world):
    """How the queue and the channels stand."""
    tables = world.broker.tables
    queue = world.broker.queues["q"]
    return (
        list(tables.queues[queue.handle : queue.handle + layout.QUEUE_WIDTH]),
        list(tables.state[layout.POOL_BLOCKS : layout.POOL_ENTRIES + 3]),
        bytes(tables.channels),
    )


def test_no_more_than_a_call_takes():
    with Many() as world:
        taker = world.loop.ready
        connection = world.broker.connections[0]
        assert [taker.add(0, connection, 0) for _ in range(ready.MOST + 1)] == [True] * ready.MOST + [False]
        taker.added = []

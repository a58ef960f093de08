"""Dead letters that are made without reading a history (core/queue/letters.py): what receivers get is what dead_letter.py writes alone."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, assemble, content, encoded, new_broker
from peer_1_0 import Peer as Peer10

from leveret.core.amqp_0_9 import exact
from leveret.core.broker import crossing
from leveret.core.memory import layout
from leveret.core.message import annotations, reading
from leveret.core.queue import letters
from leveret.core.queue.features import dead_letter

LETTER = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
EPOCH = layout.EPOCH
GIVEN = (
    {},
    {"delivery_mode": 2, "message_id": "one", "headers": {"device": "a", "n": 1}},
    {"delivery_mode": 2, "message_id": "another", "content_type": "text/plain", "content_encoding": "x", "headers": {"site": "north"}},
    {"priority": 3, "timestamp": 1, "headers": {}},
    {"headers": {"CC": ["x"]}},
    {"headers": {"accident": "death"}},
    {"headers": {"x-first-death-reason": "made up"}},
    {"headers": {"x-death": [{"queue": "q", "reason": "expired", "count": 7}]}},
    {"expiration": "5000"},
    {"type": "CC"},
)


class Without:
    """As a board has it: no letters.py."""

    def __enter__(self):
        self.before = dead_letter.letters
        dead_letter.letters = None

    def __exit__(self, *error):
        dead_letter.letters = self.before


class Counted:
    """How often dead_letter.py read a history."""

    def __enter__(self):
        self.before = dead_letter.Rule.send_history
        self.count = 0

        def counting(rule, broker, queue, message, reason, failed=0):
            self.count += 1
            return self.before(rule, broker, queue, message, reason, failed)

        dead_letter.Rule.send_history = counting
        return self

    def __exit__(self, *error):
        dead_letter.Rule.send_history = self.before


def run(peer, milliseconds):
    """Let time pass in steps of 50 ms."""
    broker = peer.broker
    for _ in range(milliseconds // 50):
        broker.tick((broker.now + 50) & 0x3FFFFFFF, EPOCH + broker.seconds)
        broker.run()


def set_up(broker, arguments):
    """A peer, a queue with these arguments, and one for its dead letters."""
    peer = Peer(broker)
    broker.tick(1000, EPOCH + 1000)
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments=dict(LETTER, **arguments))
    peer.give(encoded("queue_bind", 1, 0, "q", "amq.fanout", "", False, {}))
    peer.frames()
    return peer


def taken(peer, name):
    """Everything in a queue: (properties, body) of each message."""
    peer.frames()
    peer.give(encoded("basic_consume", 1, 0, name, "d", False, True, False, False, {}))
    messages, frames = [], [None]
    while frames:
        run(peer, 50)
        frames = peer.frames()
        messages += [each[2:] for each in assemble([each for each in frames if each[0] != "basic_consume_ok"])]
    return messages


def got(peer):
    """What the dead letters say: (properties, body) of each."""
    return taken(peer, "dead")


def rejected(peer):
    """Reject all that is in the queue, one by one."""
    peer.give(encoded("basic_consume", 1, 0, "q", "c", False, False, False, False, {}))
    frames = [None]
    while frames:
        run(peer, 50)
        frames = peer.frames()
        for each in [each for each in frames if each[0] == "basic_deliver"]:
            peer.give(encoded("basic_reject", 1, each[2][1], False))
    peer.frames()


def letters_of(broker, arguments, reject):
    """What receivers get of messages like GIVEN, each three times, a second between the first and the second."""
    peer = set_up(broker, arguments)
    dead = []
    for second in range(3):
        broker.tick((broker.now + 1) & 0x3FFFFFFF, EPOCH + 1000 + second)
        for key, exchange in (("q", ""), ("\u00e4", "amq.fanout")):
            for number, given in enumerate(GIVEN):
                peer.give(content(1, exchange, key, b"%d" % number * number, given))
            run(peer, 100)
        if reject:
            rejected(peer)
            peer.give(encoded("basic_cancel", 1, "c", False))
        dead += taken(peer, "dead")
        peer.give(encoded("basic_cancel", 1, "d", False))
    return dead, dict(broker.counters)


def test_receivers_get_what_is_made_with_the_history():
    """x-death and its kin as RabbitMQ has them, whoever makes them; each message is lost to nobody."""
    for arguments, reject, logs in (({"x-message-ttl": 20}, 0, 0), ({"x-max-length": 0}, 0, 1), ({"x-max-length": 2}, 0, 0), ({}, 1, 1)):
        with Without(), Counted() as all_of_them:
            expected, counted = letters_of(durable_broker(MemoryStore())[0] if logs else new_broker(), arguments, reject)
        with Counted() as slow:
            given, counters = letters_of(durable_broker(MemoryStore())[0] if logs else new_broker(), arguments, reject)
        assert given == expected and len(given) >= 36
        assert counters == counted
        assert slow.count < all_of_them.count - 15  # some are made here


def test_the_second_death_has_both():
    """A message that dies again has its first death behind the second one, and what it said first of itself."""
    answers = []
    for plain in (True, False):
        peer = set_up(new_broker(), {"x-message-ttl": 20})
        peer.declare("again", arguments={"x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "end"})
        peer.declare("end")
        peer.give(encoded("queue_bind", 1, 0, "again", "amq.direct", "dead", False, {}))
        peer.broker.queues["q"].rules.dead_letter.exchange = "amq.direct"
        dead_letter.letters, before = (None if plain else letters), dead_letter.letters
        try:
            for _ in range(3):
                peer.give(content(1, "", "q", b"body", GIVEN[1]))
                run(peer, 200)
        finally:
            dead_letter.letters = before
        answers.append(taken(peer, "end"))
    assert answers[0] == answers[1]
    assert [each["queue"] for each in answers[1][2][0]["headers"]["x-death"]] == ["again", "q"]


def test_a_queue_that_is_its_own_end_drops_what_it_has_let_go():
    """A message without a rejection on its way would circle for ever."""
    broker = new_broker()
    peer = Peer(broker)
    broker.tick(1000, EPOCH + 1000)
    peer.declare("q", arguments={"x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    for _ in range(3):
        peer.give(content(1, "", "q", b"body"))
        run(peer, 200)
    assert broker.counters["dead_letters_lost"] == 3 and broker.queues["q"].message_count() == 0


def test_other_families_are_told_the_annotations_apart():
    """core/broker/crossing.py: the publisher's headers without those of the death, and these as annotations."""
    told = []
    for plain in (True, False):
        peer = set_up(new_broker(), {"x-message-ttl": 20})
        broker, tables = peer.broker, peer.broker.tables
        dead_letter.letters, before = (None if plain else letters), dead_letter.letters
        try:
            for given in GIVEN[:3] * 2:
                peer.give(content(1, "", "q", b"body", given))
                run(peer, 100)
        finally:
            dead_letter.letters = before
        messages = [tables.entries[entry + layout.ENTRY_MESSAGE] for entry in broker.entries_of(broker.queues["dead"])]
        kinds = [tables.messages[each + layout.MESSAGE_KIND] & layout.KIND_GRAFTED != 0 for each in messages]
        assert kinds == [False] * 6 if plain else kinds[1:] == [True] * 5, kinds
        told.append([])
        for each in messages:
            changes = crossing.annotations_of(tables, each)
            changes.pop("expiration", None)
            told[-1].append((crossing.neutral_of(tables, each)[0], changes))
            assert exact.exact(reading.merged(tables, each))["headers"]["x-death"] == changes["headers"]["x-death"]
        assert annotations.GONE not in changes["headers"].values()
    assert told[0] == told[1]


def test_a_broker_keeps_only_so_many_routes():
    """Its memory is bounded (letters.KNOWN_MAX)."""
    peer = set_up(new_broker(), {"x-max-length": 0})
    letters.KNOWN_MAX, before = 3, letters.KNOWN_MAX
    try:
        for number in range(20):
            peer.give(content(1, "amq.fanout", "key %d" % number, b"body"))
            assert len(letters.known_of(peer.broker)) <= 3
    finally:
        letters.KNOWN_MAX = before
    assert peer.broker.queues["dead"].message_count() == 20


def test_a_dead_letter_whose_properties_become_too_large_has_no_history():
    """annotated() leaves headers out then; so it is asked."""
    for plain in (True, False):
        broker = new_broker(properties_size_max=600, receive_buffer_size=2048, send_buffer_size=2048)
        peer = set_up(broker, {"x-max-length": 0})
        dead_letter.letters, before = (None if plain else letters), dead_letter.letters
        try:
            for size in (10, 10, 500, 10):
                peer.give(content(1, "", "q", b"body", {"message_id": "m" * min(size, 200), "headers": {"h": "h" * max(size - 200, 1)}}))
        finally:
            dead_letter.letters = before
        if plain:
            expected = got(peer)
    assert got(peer) == expected


def test_messages_of_two_families_with_one_route_die_one_after_the_other():
    """What 0-9-1's dead letters have in common is nothing for a message of AMQP 1.0: that one went to leveret.poison."""
    for logs in (False, True):
        broker = durable_broker(MemoryStore())[0] if logs else new_broker()
        peer = set_up(broker, {"x-max-length": 0})
        ten = Peer10(broker)
        ten.sender()
        for number in range(3):
            peer.give(content(1, "", "q", b"basic"))
            ten.send(number, b"ten")
        run(peer, 100)
        assert broker.counters["internal_errors"] == 0
        dead = got(peer)
        assert [body for _, body in dead] == [b"basic", b"ten"] * 3
        assert [each["headers"]["x-first-death-reason"] for each, _ in dead] == ["maxlen"] * 6


def walked(broker):
    """(what the near queue got, what the far one got) of dead letters to an exchange that has another one behind it."""
    peer = Peer(broker)
    broker.tick(1000, EPOCH + 1000)
    for name in ("dead", "far"):
        peer.declare(name)
    for name in ("near", "behind"):
        peer.ask("exchange_declare", "exchange_declare_ok", 0, name, "fanout", False, False, False, False, False, {})
    for queue, exchange in (("dead", "near"), ("far", "behind")):
        peer.ask("queue_bind", "queue_bind_ok", 0, queue, exchange, "", False, {})
    peer.ask("exchange_bind", "exchange_bind_ok", 0, "behind", "near", "", False, {})
    peer.declare("q", arguments={"x-dead-letter-exchange": "near", "x-message-ttl": 20})
    for number in range(4):
        peer.publish("q", b"%d" % number, given={"headers": {"n": number}})
        run(peer, 100)
    near = taken(peer, "dead")
    peer.give(encoded("basic_cancel", 1, "d", False))
    return near, taken(peer, "far")


def test_dead_letters_go_on_from_exchange_to_exchange():
    with Without(), Counted() as all_of_them:
        expected = walked(new_broker())
    with Counted() as slow:
        given = walked(new_broker())
    assert given == expected and [body for _, body in given[0]] == [body for _, body in given[1]] == [b"0", b"1", b"2", b"3"]
    assert (all_of_them.count, slow.count) == (4, 1), "all but the first are made here"

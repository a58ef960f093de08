"""What the broker has been asked to make, change or remove is durable before it is answered (core/SPEC.md, "Durability" and "Management"):
with a store whose sync takes long, with one whose sync fails, and over a power cut at every moment."""

import json

from memory_store import PERSISTENT, MemoryStore, SlowStore, durable_broker
from peer import Patient, Peer, encoded

from leveret.core.access import users
from leveret.core.access.permissions import User
from leveret.core.broker.policies import Policy
from leveret.core.log import definition_records
from leveret.core.outcomes import nobody

KEY = "amq.leveret.management"
REPLY = "amq.rabbitmq.reply-to"

ROOM = {"management_size_max": 4096, "content_size_max": 4096, "argument_size_max": 1024, "user_count_max": 8}

USER = {"name": "u", "password_hash": "", "tags": "management"}


def prepared(store):
    """A durable broker with a user, a policy, a queue, an exchange and a binding, and its peer, who consumes answers."""
    broker, _ = durable_broker(store, **ROOM)
    peer = Patient(broker)
    peer.consume(REPLY, no_ack=True)
    peer.declare("old", durable=True)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "ex", "direct", False, True, False, False, False, {})
    peer.ask("queue_bind", "queue_bind_ok", 0, "old", "ex", "k", False, {})
    for request in (
        {"request": "import", "definitions": {"users": [USER]}},
        {"request": "set-policy", "name": "p", "pattern": "^a", "definition": {"max-length": 1}},
    ):
        (answer,) = management(peer, request)
        assert answer["ok"], answer
    return broker, peer


def management(peer, request):
    """A management request: the answers that have come."""
    peer.publish(KEY, json.dumps(request).encode(), given={"reply_to": REPLY})
    return answers(peer)


def answers(peer):
    for _ in range(3):
        peer.broker.run()
    return [json.loads(str(body, "utf-8")) for _, _, _, body in peer.contents()]


REQUESTS = (
    ({"request": "remove-user", "name": "u"}, lambda broker: "u" not in broker.access.users),
    ({"request": "import", "definitions": {"users": [dict(USER, name="new")]}}, lambda broker: "new" in broker.access.users),
    (
        {"request": "import", "definitions": {"permissions": [{"user": "u", "configure": "c", "write": "w", "read": "r"}]}},
        lambda broker: broker.access.users["u"].permissions == ["c", "w", "r"],
    ),
    ({"request": "import", "definitions": {"queues": [{"name": "imported", "durable": True}]}}, lambda broker: "imported" in broker.queues),
    (
        {"request": "set-policy", "name": "p2", "pattern": "^b", "definition": {"max-length": 2}},
        lambda broker: "p2" in broker.policies.by_name,
    ),
    (
        {"request": "set-policy", "name": "p", "pattern": "^a", "definition": {"max-length": 3}},
        lambda broker: broker.policies.by_name["p"].definition == {"max-length": 3},
    ),
    ({"request": "remove-policy", "name": "p"}, lambda broker: "p" not in broker.policies.by_name),
)


def bindings(broker):
    """(destination, key) of all bindings of exchange ex."""
    return [(binding.destination.name, binding.key.decode()) for binding in broker.exchanges["ex"].bindings.values()]


METHODS = (
    (("queue_declare", 0, "made", False, True, False, False, False, {}), "queue_declare_ok", lambda broker: "made" in broker.queues),
    (("queue_delete", 0, "old", False, False, False), "queue_delete_ok", lambda broker: "old" not in broker.queues),
    (
        ("exchange_declare", 0, "ex2", "topic", False, True, False, False, False, {}),
        "exchange_declare_ok",
        lambda broker: "ex2" in broker.exchanges,
    ),
    (("exchange_delete", 0, "ex", False, False), "exchange_delete_ok", lambda broker: "ex" not in broker.exchanges),
    (("queue_bind", 0, "old", "ex", "k2", False, {}), "queue_bind_ok", lambda broker: ("old", "k2") in bindings(broker)),
    (("queue_unbind", 0, "old", "ex", "k", {}), "queue_unbind_ok", lambda broker: ("old", "k") not in bindings(broker)),
    (("exchange_bind", 0, "ex", "amq.fanout", "", False, {}), "exchange_bind_ok", lambda broker: len(broker.exchanges["ex"].bound) == 1),
    (("exchange_unbind", 0, "bound", "ex", "k", False, {}), "exchange_unbind_ok", lambda broker: not broker.exchanges["bound"].bound),
    (("queue_purge", 0, "full", False), "queue_purge_ok", lambda broker: broker.queues["full"].message_count() == 0),
    # As RabbitMQ has it, no name is the last queue that the channel has declared.
    (("queue_bind", 0, "", "ex", "k2", False, {}), "queue_bind_ok", lambda broker: ("full", "k2") in bindings(broker)),
    (("queue_unbind", 0, "", "ex", "k", {}), "queue_unbind_ok", lambda broker: ("full", "k") not in bindings(broker)),
    (("queue_delete", 0, "", False, False, False), "queue_delete_ok", lambda broker: "full" not in broker.queues),
    (("queue_purge", 0, "", False), "queue_purge_ok", lambda broker: broker.queues["full"].message_count() == 0),
)


def test_a_management_request_is_answered_when_its_change_is_durable():
    """No answer while the sync is under way; the change is there after a power cut as soon as it is answered."""
    for request, is_there in REQUESTS:
        store = SlowStore()
        broker, peer = prepared(store)
        assert not is_there(broker)
        store.stalls = True
        for told in (management(peer, request), answers(peer), answers(peer)):
            assert told == [], request
            assert not is_there(durable_broker(store.cut(), **ROOM)[0]), request
        store.stalls = False
        broker.run()
        assert [answer["ok"] for answer in answers(peer)] == [True], request
        assert is_there(durable_broker(store.cut(), **ROOM)[0]), request
        assert broker.counters["internal_errors"] == 0


def test_a_management_request_is_not_answered_while_the_sync_fails():
    """Nothing while it fails, also for what is asked then; it is carried out once, and answered when the log can be written again."""
    for request, is_there in REQUESTS:
        store = MemoryStore()
        broker, peer = prepared(store)
        store.sync_fails = True
        assert management(peer, request) == [], request
        other = Patient(broker)
        other.consume(REPLY, no_ack=True)
        assert management(other, {"request": "remove-policy", "name": "p"}) == [] and not is_there(durable_broker(store.cut(), **ROOM)[0])
        for _ in range(3):
            broker.tick(broker.now + 200, 0)
            assert answers(peer) == [], request
        store.sync_fails = False
        broker.tick(broker.now + 200, 0)
        broker.run()
        assert [answer["ok"] for answer in answers(peer)] == [True], request
        assert len(answers(other)) == 1
        assert broker.counters["internal_errors"] == 0


def test_a_method_is_answered_when_its_change_is_durable_to_who_made_it_and_to_who_makes_it_again():
    """declare-ok, bind-ok and their opposites (0-9-1 sections 1.6, 1.7); also those to a second client, who finds it done."""
    for method, reply, is_there in METHODS:
        store = SlowStore()
        broker, peer = prepared(store)
        other = Patient(broker)
        peer.ask("exchange_declare", "exchange_declare_ok", 0, "bound", "direct", False, True, False, False, False, {})
        peer.ask("exchange_bind", "exchange_bind_ok", 0, "bound", "ex", "k", False, {})
        for each in (peer, other):
            each.declare("full", durable=True)
        peer.ask("queue_bind", "queue_bind_ok", 0, "full", "ex", "k", False, {})
        peer.publish("full", b"x", given=PERSISTENT)
        for _ in range(3):
            broker.run()
        store.stalls = True
        for each in (peer, other):
            each.give(encoded(method[0], 1, *method[1:]))
            assert each.frames() == [], method
        broker.run()
        assert peer.frames() == other.frames() == [] and not is_there(durable_broker(store.cut(), **ROOM)[0]), method
        store.stalls = False
        for _ in range(3):
            broker.run()
        assert [each[0] for each in peer.frames() + other.frames()] == [reply, reply], method
        assert is_there(durable_broker(store.cut(), **ROOM)[0]), method


def test_definitions_are_told_when_they_are_durable_and_figures_at_once():
    """definitions says what the next start has; overview and counters wait for no disk."""
    store = SlowStore()
    broker, peer = prepared(store)
    other = Patient(broker)
    other.consume(REPLY, no_ack=True)
    store.stalls = True
    assert management(peer, {"request": "remove-policy", "name": "p"}) == []
    (answer,) = management(other, {"request": "counters"})
    assert answer["ok"]
    assert management(other, {"request": "definitions"}) == []
    store.stalls = False
    broker.run()
    (answer,) = answers(other)
    assert answer["items"].get("policies", []) == []


def test_an_answer_that_waits_goes_with_its_channel():
    """A client that leaves, or closes its channel, before the sync: nothing is kept for it, and the change is made."""
    for leave in (lambda peer: peer.connection.received(0), lambda peer: peer.connection.close()):
        store = SlowStore()
        broker, peer = prepared(store)
        before = broker.tables.state[2], broker.tables.state[5]
        store.stalls = True
        assert management(peer, {"request": "remove-policy", "name": "p"}) == []
        leave(peer)
        store.stalls = False
        broker.run()
        assert (broker.tables.state[2], broker.tables.state[5]) == before and "p" not in broker.policies.by_name
        assert broker.counters["internal_errors"] == 0


def test_a_broker_in_memory_answers_at_once():
    """There is no log to wait for."""
    from peer import new_broker

    broker = new_broker(**ROOM)
    peer = Peer(broker)
    peer.consume(REPLY, no_ack=True)
    (answer,) = management(peer, {"request": "set-policy", "name": "p", "pattern": "^a", "definition": {"max-length": 1}})
    assert answer["ok"]


def fails(*given):
    raise KeyError("a fault")


def texts(broker):
    """Every durable definition of a broker, as texts."""
    found = [{key: each[key] for key in each if key not in ("frames", "next")} for each in definition_records.all_definitions(broker)]
    return sorted([repr([(key, each[key]) for key in sorted(each)]) for each in found])


def user(name, tags, stored=None):
    return User(name, stored, tags, None, 64, 512)


def exchange(broker):
    broker.topology.declare_exchange(nobody, "e", "topic", False, True, False, False, {})


def bound(source):
    return lambda broker: broker.topology.bind(nobody, "q", source, b"a.#", {})


def policy(length):
    return lambda broker: broker.policies.set(broker, Policy("p", "q", {"max-length": length}))


def made(*tags, name="u"):
    return lambda broker: users.put(broker, user(name, tags))


def queue(name, arguments):
    return lambda broker: broker.topology.declare_queue(nobody, name, False, True, False, False, arguments)


# (what is there before, what fails once and is asked for again)
DEEDS = (
    ((), exchange),
    ((), queue("q2", {})),
    ((), queue("s", {"x-queue-type": "stream"})),
    ((), bound("amq.topic")),
    ((bound("amq.topic"),), lambda broker: broker.topology.unbind(nobody, "q", "amq.topic", b"a.#", {})),
    ((exchange, bound("e")), lambda broker: broker.topology.delete_exchange("e", False)),
    ((), made("monitoring")),
    ((made(),), made("monitoring")),
    ((made(),), lambda broker: users.permit(broker, broker.access.users["u"], ["a", "b", "c"])),
    ((lambda broker: users.remove(broker, "guest"),), made(name="guest")),
    ((), policy(5)),
    ((policy(5),), policy(6)),
    ((policy(5),), lambda broker: broker.policies.remove(broker, "p")),
)


def test_what_the_log_could_not_take_is_taken_when_it_is_asked_for_again():
    """It is not there for the broker when it is not in the log: else the second answer would be ok, and the next start without it."""
    for number, (before, deed) in enumerate(DEEDS):
        store = MemoryStore()
        broker, _ = durable_broker(store)
        queue("q", {})(broker)
        for each in before:
            each(broker)
        define = broker.journal.define
        broker.journal.define = fails
        try:
            deed(broker)
            raise AssertionError("no fault in deed %d" % number)
        except KeyError:
            broker.journal.define = define
        deed(broker)
        broker.run()
        broker.tick(1000, 1)
        broker.run()
        again, report = durable_broker(store.cut())
        assert ";" not in report and texts(again) == texts(broker), (number, report, texts(again), texts(broker))


def test_a_policy_that_cannot_be_applied_is_neither_here_nor_in_the_log():
    """What has it already goes back to what it was; the next start knows nothing of it."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    queue("q", {})(broker)
    queue("r", {})(broker)
    apply, given = broker.policies.apply_to_queue, []

    def fails_at_the_second(broker, found):
        given.append(found.name)
        if len(given) == 2:
            fails()
        apply(broker, found)

    broker.policies.apply_to_queue = fails_at_the_second
    try:
        broker.policies.set(broker, Policy("p", ".", {"max-length": 5}, 0, "queues"))
        raise AssertionError("no fault")
    except KeyError:
        assert broker.queues[given[0]].policy == "p" and broker.policies.by_name == {}
    for _ in range(3):
        broker.run()
        broker.tick(1000, 1)
    assert [found.policy for found in broker.queues.values()] == [None, None]
    assert durable_broker(store.cut())[0].policies.by_name == {}

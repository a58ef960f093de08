"""The broker's verbs without a codec of AMQP: queues' features, exchange types, outcomes, log, streams and limits, by the toy family."""

from memory_store import MemoryStore, durable_broker
from peer import new_broker
from toy_family import ToyPeer, installed

from leveret.core.outcomes import ACCEPTED, MODIFIED, REFUSED, REJECTED, RELEASED, TAKEN, UNROUTABLE
from leveret.core.stream.stream import EPOCH

DURABLE = {"delivery_mode": 2}


def answers(peer, *request):
    """The outcomes that a request is answered with."""
    return outcomes(peer.ask(*request))


def outcomes(lines):
    """The outcome of each publish that is answered, out of the ranges of the answers."""
    return [each[1] for each in lines if each[0] == "answer" for _ in range(each[2], each[3] + 1)]


def deliveries(lines):
    """(tag, how often it came back, body) of each delivery among what came."""
    return [(each[2], each[3], each[6]) for each in lines if each[0] == "message"]


def refused(peer, *request):
    """The condition with which a request ends its peer's connection."""
    return [each[1] for each in peer.ask(*request) if each[0] == "error"]


def header(name, value, **more):
    """Properties with one header."""
    return dict(more, headers={name: value})


def wait(broker, ms):
    """Let time pass."""
    for _ in range(ms // 50 + 1):
        broker.tick((broker.now + 50) & 0x3FFFFFFF, EPOCH + broker.seconds)
        broker.run()


# (arguments of the queue, publishes (body, properties), what happens before the consumer comes (ms), bodies that it gets, answers)
FEATURES = (
    ({}, (("a", {}), ("b", {})), 0, ["a", "b"], [TAKEN] * 2),
    ({"x-max-priority": 5}, (("low", {}), ("high", {"priority": 4}), ("mid", {"priority": 2})), 0, ["high", "mid", "low"], [TAKEN] * 3),
    ({"x-max-length": 2}, (("1", {}), ("2", {}), ("3", {})), 0, ["2", "3"], [TAKEN] * 3),
    ({"x-max-length": 1, "x-overflow": "reject-publish"}, (("1", {}), ("2", {})), 0, ["1"], [TAKEN, REFUSED]),
    ({"x-max-length-bytes": 4}, (("123", {}), ("45", {})), 0, ["45"], [TAKEN] * 2),
    ({"x-message-ttl": 100}, (("old", {}),), 200, [], [TAKEN]),
    ({}, (("old", {"expiration": "100"}), ("new", {})), 200, ["new"], [TAKEN] * 2),
    ({"x-last-value-key": "k"}, (("1", header("k", "x")), ("2", header("k", "y")), ("3", header("k", "x"))), 0, ["2", "3"], [TAKEN] * 3),
    (
        {"x-deduplication": 8},
        (("1", {"message_id": "a"}), ("2", {"message_id": "a"})),
        0,
        ["1"],
        [TAKEN] * 2,
    ),
    ({"x-single-active-consumer": True}, (("1", {}),), 0, ["1"], [TAKEN]),
    ({"x-group-key": "g"}, (("1", header("g", "x")), ("2", header("g", "x"))), 0, ["1", "2"], [TAKEN] * 2),
)


def test_each_feature_of_queues_has_its_effect_on_messages_of_any_family():
    with installed():
        for arguments, publishes, ms, bodies, expected in FEATURES:
            broker = new_broker()
            peer = ToyPeer(broker)
            peer.ask("queue", "q", False, arguments)
            assert sum([answers(peer, "publish", "", "q", body, given) for body, given in publishes], []) == expected, arguments
            wait(broker, ms)
            answer = deliveries(peer.ask("subscribe", "q", "t"))
            assert [body for _, _, body in answer] == bodies, (arguments, answer)
            peer.ask("settle", answer[0][0], answer[-1][0], ACCEPTED) if answer else None
            assert broker.queues["q"].unsettled_count() == 0 and broker.counters["internal_errors"] == 0, arguments


# (type, key of the binding, its arguments, what matches: key and headers, what does not)
EXCHANGES = (
    ("direct", "k", {}, ("k", {}), ("j", {})),
    ("fanout", "", {}, ("any", {}), None),
    ("topic", "a.*.#", {}, ("a.b.c", {}), ("b.a", {})),
    ("headers", "", {"x-match": "all", "n": "1"}, ("", {"n": "1"}), ("", {"n": "2"})),
    ("x-selector", "", {"x-selector": "n > 3"}, ("", {"n": 4}), ("", {"n": 3})),
    ("x-matcher", "", {"n": "a*"}, ("", {"n": "abc"}), ("", {"n": "b"})),
    ("x-property", "", {"content-type": "text/plain"}, ("", {}), None),
    ("x-consistent-hash", "1", {}, ("k", {}), None),
    ("x-local-random", "", {}, ("k", {}), None),
    ("x-delayed-message", "k", {}, ("k", {"x-delay": 50}), ("j", {"x-delay": 50})),
)


def test_each_exchange_type_routes_messages_of_any_family():
    with installed():
        for type_, key, arguments, yes, no in EXCHANGES:
            broker = new_broker()
            peer = ToyPeer(broker)
            peer.ask("exchange", "e", type_, False, {"x-delayed-type": "direct"} if type_ == "x-delayed-message" else {})
            peer.ask("queue", "q")
            peer.ask("bind", "q", "e", key, arguments)
            peer.ask("subscribe", "q", "t", 0, True)
            for case, bodies in ((yes, ["body"]), (no, [])):
                if case is not None:
                    answer = peer.ask("publish", "e", case[0], "body", {"content_type": "text/plain", "headers": case[1]}, True)
                    wait(broker, 100)
                    answer += peer.heard()
                    assert [body for _, _, body in deliveries(answer)] == bodies, (type_, answer)
                    if type_ != "x-delayed-message":
                        assert [each[0] for each in answer if each[0] == "returned"] == [] if bodies else ["returned"], (type_, answer)
            assert broker.counters["internal_errors"] == 0, type_


def test_a_mandatory_publish_without_a_route_is_returned_before_it_is_answered():
    with installed():
        peer = ToyPeer(new_broker())
        assert peer.ask("publish", "", "nowhere", "x", {}, True) == [["returned", "nowhere"], ["answer", UNROUTABLE, 1, 1]]
        assert peer.ask("publish", "", "nowhere", "x", {}, False) == [["answer", UNROUTABLE, 2, 2]]


def test_released_counts_as_no_delivery_and_modified_does():
    """AMQP 1.0 part 3, 3.4.4 and 3.4.5: released leaves the delivery-count, modified with delivery-failed raises it."""
    with installed():
        for outcome, came_back in ((RELEASED, [0, 0, 0, 0]), (MODIFIED, [0, 1, 2])):
            broker = new_broker()
            peer = ToyPeer(broker)
            peer.ask("queue", "q", False, {"x-delivery-limit": 2})
            peer.ask("publish", "", "q", "m", {})
            answer = deliveries(peer.ask("subscribe", "q", "t", 1))
            told = []
            for _ in range(4):
                if answer:
                    told.append(answer[0][1])
                    answer = deliveries(peer.ask("settle", answer[0][0], answer[0][0], outcome))
            assert told == came_back, (outcome, told)
            assert broker.counters["delivery_limit"] == (0 if outcome == RELEASED else 1)


def test_each_outcome_settles_a_range_of_deliveries_wherever_it_lies():
    """Settled: those from the first to the last and no others; what comes back comes in its old order."""
    with installed():
        for outcome, again, left in ((ACCEPTED, [], 0), (REJECTED, [], 0), (MODIFIED, ["2", "3", "4"], 3), (RELEASED, ["2", "3", "4"], 3)):
            for arguments in ({}, {"x-max-priority": 3}, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}):
                broker = new_broker()
                peer, other = ToyPeer(broker), ToyPeer(broker)
                other.ask("queue", "dead")
                other.ask("queue", "q", False, arguments)
                for number in range(6):
                    other.ask("publish", "", "q", str(number), {})
                tags = [tag for tag, _, _ in deliveries(peer.ask("subscribe", "q", "t", 6))]
                peer.ask("cancel", "t")
                peer.ask("settle", tags[2], tags[4], outcome)
                assert broker.queues["q"].unsettled_count() == 3, (outcome, arguments)
                assert broker.queues["q"].message_count() == left, (outcome, arguments)
                died = 3 if outcome == REJECTED and "x-dead-letter-exchange" in arguments else 0
                assert broker.queues["dead"].message_count() == died, (outcome, arguments)
                assert [body for _, _, body in deliveries(other.ask("subscribe", "q", "t", 9))] == again, (outcome, arguments)
                assert broker.counters["internal_errors"] == 0


def test_credit_is_a_window_of_unsettled_deliveries():
    with installed():
        peer = ToyPeer(new_broker())
        peer.ask("queue", "q")
        for number in range(5):
            peer.ask("publish", "", "q", str(number), {})
        answer = deliveries(peer.ask("subscribe", "q", "t", 2))
        assert [body for _, _, body in answer] == ["0", "1"]
        assert [body for _, _, body in deliveries(peer.ask("settle", answer[0][0], answer[0][0], ACCEPTED))] == ["2"]


def test_counted_credit_is_used_up_whatever_is_settled():
    """AMQP 1.0 part 2, 2.6.7: link-credit goes down with each delivery, and settling does not raise it."""
    with installed():
        for outcome in (ACCEPTED, REJECTED, RELEASED, MODIFIED):
            peer = ToyPeer(new_broker())
            peer.ask("queue", "q")
            for number in range(5):
                peer.ask("publish", "", "q", str(number), {})
            answer = deliveries(peer.ask("subscribe", "q", "t", 1))
            assert [body for _, _, body in answer] == ["0"]
            answer += deliveries(peer.ask("credit", "t", 2))
            assert [body for _, _, body in answer] == ["0", "1", "2"]
            assert deliveries(peer.ask("settle", answer[0][0], answer[2][0], outcome)) == [], outcome
            again = deliveries(peer.ask("credit", "t", 1))
            assert [body for _, _, body in again] == ["0" if outcome in (RELEASED, MODIFIED) else "3"], outcome


def test_the_log_keeps_messages_of_any_family_and_answers_leave_when_they_are_durable():
    with installed():
        store = MemoryStore()
        broker, _ = durable_broker(store)
        peer = ToyPeer(broker)
        peer.ask("queue", "q", True)
        given = {"delivery_mode": 2, "message_id": "m", "headers": {"a": 1}}
        assert answers(peer, "publish", "", "q", "kept", given) == [TAKEN]
        assert answers(peer, "publish", "", "q", "transient", {}) == [TAKEN]
        store.full = True
        assert answers(peer, "publish", "", "q", "never durable", DURABLE) == []
        again, _ = durable_broker(store.cut())
        answer = ToyPeer(again).ask("subscribe", "q", "t", 0)
        assert [each[6:] for each in answer if each[0] == "message"] == [["kept", given]], answer


def test_a_stream_gives_messages_of_any_family_with_their_offsets_and_keeps_them():
    with installed():
        peer = ToyPeer(new_broker())
        peer.ask("queue", "s", True, {"x-queue-type": "stream"})
        for number in range(3):
            peer.ask("publish", "", "s", str(number), header("x-stream-filter-value", "ab"[number % 2]))
        for _ in range(2):
            answer = peer.ask("subscribe", "s", "t", 2, False, {"x-stream-offset": 1})
            assert [(each[6], each[7]["offset"]) for each in answer if each[0] == "message"] == [("1", 1), ("2", 2)], answer
            peer.ask("cancel", "t")
        answer = peer.ask("subscribe", "s", "f", 2, False, {"x-stream-offset": "first"})
        assert [each[6] for each in answer if each[0] == "message"] == ["0", "1"]


def test_limits_are_refused_with_their_condition_and_a_publisher_without_room_waits():
    with installed():
        broker = new_broker(queue_count_max=3, queue_share_max=2, consumer_count_max=1)
        peer = ToyPeer(broker)
        peer.ask("queue", "a")
        peer.ask("queue", "b")
        assert refused(peer, "queue", "c") == ["resource-error"]
        assert peer.connection.ending
        peer = ToyPeer(broker)
        peer.ask("subscribe", "a", "t")
        assert refused(peer, "subscribe", "b", "u") == ["resource-error"]
        assert refused(ToyPeer(broker), "subscribe", "nowhere", "u") == ["not-found"]
        publisher = ToyPeer(broker)
        count = 0
        while answers(publisher, "publish", "", "a", "x" * 100, {}) == [TAKEN]:
            count += 1
            assert count < 10000
        assert not publisher.connection.reading and count > 2
        reader = ToyPeer(broker)
        reader.ask("subscribe", "a", "r", 0, True)
        assert outcomes(publisher.heard()) == [TAKEN] and publisher.connection.reading


def test_a_queue_that_goes_tells_its_consumers_why():
    with installed():
        broker = new_broker()
        peer, other = ToyPeer(broker), ToyPeer(broker)
        peer.ask("queue", "q")
        peer.ask("subscribe", "q", "t")
        other.ask("delete", "q")
        assert peer.heard() == [["cancelled", "t", "not-found"]]


def test_what_a_peer_has_not_settled_goes_back_when_it_is_lost():
    with installed():
        broker = new_broker()
        peer, other = ToyPeer(broker), ToyPeer(broker)
        peer.ask("queue", "q")
        other.ask("publish", "", "q", "m", {})
        assert len(deliveries(peer.ask("subscribe", "q", "t", 1))) == 1
        peer.connection.received(0)
        broker.run()
        assert [(came_back, body) for _, came_back, body in deliveries(other.ask("subscribe", "q", "t", 1))] == [(1, "m")]

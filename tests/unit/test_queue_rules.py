"""Queue rules by frames: each argument of core/queue/rules.py, as RabbitMQ (or the peer that has it) behaves."""

from peer import Peer, assemble, content, encoded, idle, new_broker, taken

from leveret.core.broker.policies import Policy
from leveret.core.memory.layout import MASK
from leveret.core.stream.stream import EPOCH


def pair(arguments, **overrides):
    """A broker with queue "q" under these arguments, queue "dead" bound to exchange "dlx", and a peer."""
    broker = new_broker(**overrides)
    peer = Peer(broker)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "dlx", "fanout", False, False, False, False, False, {})
    peer.declare("dead")
    peer.ask("queue_bind", "queue_bind_ok", 0, "dead", "dlx", "", False, {})
    peer.declare("q", arguments=arguments)
    return broker, peer


def pass_time(broker, milliseconds):
    """Let time pass in steps."""
    while milliseconds > 0:
        step = min(milliseconds, 100)
        milliseconds -= step
        a_second_more = broker.now // 1000 != (broker.now + step) // 1000
        broker.tick((broker.now + step) & 0x3FFFFFFF, EPOCH + broker.seconds + (1 if a_second_more else 0))
        for connection in list(broker.connections):
            connection.tick(broker.now)
        broker.run()


def bodies(peer, queue):
    """Only the bodies."""
    return [each[1] for each in taken(peer, queue)]


def test_arguments_that_make_no_sense_are_refused():
    """406 with RabbitMQ's words."""
    for arguments, text in (
        ({"x-message-ttl": "soon"}, "invalid arg 'x-message-ttl' for queue 'q' in vhost '/': \"expected integer, got longstr\""),
        ({"x-message-ttl": 315360000001}, "invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_too_large,315360000001}"),
        ({"x-expires": 1 << 62}, "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_too_large,4611686018427387904}"),
        ({"x-max-length": 1.5}, "invalid arg 'x-max-length' for queue 'q' in vhost '/': \"expected integer, got double\""),
        ({"x-single-active-consumer": 1}, "invalid arg 'x-single-active-consumer' for queue 'q' in vhost '/': {unacceptable_type"),
        ({"x-queue-version": 3}, "invalid arg 'x-queue-version' for queue 'q' in vhost '/': "),
        ({"x-last-value-key": "k" * 256}, "invalid arg 'x-last-value-key' for queue 'q' in vhost '/': a name has at most"),
        ({"x-queue-type": ["stream"]}, "invalid arg 'x-queue-type' for queue 'q' in vhost '/': {unacceptable_type,array}"),
        ({"x-expires": -1}, "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_negative,-1}"),
        ({"x-expires": 0}, "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}"),
        ({"x-max-priority": 256}, "invalid arg 'x-max-priority' for queue 'q' in vhost '/': {value_too_large,256}: it is from 0 to"),
        ({"x-overflow": "panic"}, "invalid arg 'x-overflow' for queue 'q' in vhost '/': expected one of drop-head, "),
        ({"x-dead-letter-routing-key": "k"}, "invalid arg 'x-dead-letter-routing-key' for queue 'q' in vhost '/': routing_key_but_no"),
        ({"x-max-age": "1D"}, "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"),
    ):
        peer = Peer(new_broker(argument_size_max=1024))
        peer.give(encoded("queue_declare", 1, 0, "q", False, False, False, False, False, arguments))
        code, answer, _, _ = peer.expect("channel_close")
        assert code == 406 and answer.startswith("PRECONDITION_FAILED - " + text), answer


def test_messages_expire_by_queue_and_by_message_and_are_dead_lettered():
    """x-message-ttl, expiration; the shorter counts; x-death tells why."""
    broker, peer = pair({"x-message-ttl": 1000, "x-dead-letter-exchange": "dlx"})
    before = broker.tables.state[2]
    peer.publish("q", b"short", given={"expiration": "300", "headers": {"mine": 1}})
    peer.publish("q", b"long", given={"expiration": "999999"})
    pass_time(broker, 400)
    assert bodies(peer, "dead") == [b"short"] and broker.queues["q"].message_count() == 1
    pass_time(broker, 700)
    properties, body = taken(peer, "dead")[0]
    death = properties["headers"]["x-death"][0]
    assert body == b"long" and "expiration" not in properties and death["original-expiration"] == "999999"
    assert (death["reason"], death["queue"], death["exchange"], death["routing-keys"], death["count"]) == ("expired", "q", "", ["q"], 1)
    assert properties["headers"]["x-first-death-queue"] == "q"
    assert broker.counters["expired"] == 2 and broker.tables.state[2] == before


def test_a_message_with_an_expiration_expires_in_any_queue_and_is_never_delivered_late():
    """A queue without arguments; and the message is looked at when it is delivered, not only now and then."""
    broker, peer = pair({})
    peer.publish("q", b"stays")
    peer.publish("q", b"goes", given={"expiration": "100"})
    peer.publish("q", b"also stays")
    broker.tick(broker.now + 150, 1700000000)
    found = peer.consume("q", no_ack=True)
    assert [each[3] for each in found] == [b"stays", b"also stays"]


def test_what_is_out_when_its_queue_begins_to_look_at_lifetimes_has_none():
    """By a message with an expiration, or by a policy: the place may have been another message's that had a deadline."""
    for policy in (False, True):
        broker, peer = pair({})
        peer.declare("other")
        peer.publish("other", b"gone", given={"expiration": "100"})
        assert bodies(peer, "other") == [b"gone"]
        peer.publish("q", b"stays")
        assert [each[3] for each in peer.consume("q")] == [b"stays"]
        pass_time(broker, 200)
        if policy:
            broker.policies.set(broker, Policy("p", "q", {"message-ttl": 1000}))
        else:
            peer.publish("other", b"goes", given={"expiration": "100"})
            peer.publish("q", b"goes", given={"expiration": "100"})
        pass_time(broker, 300)
        peer.contents()
        peer.give(encoded("basic_nack", 1, 0, True, True))
        assert [each[3] for each in peer.contents()] == [b"stays"]


def test_ttl_zero_and_far_deadlines():
    """x-message-ttl 0: only for a consumer that waits; a week does not wrap."""
    broker, peer = pair({"x-message-ttl": 0})
    peer.publish("q", b"x")
    pass_time(broker, 100)
    assert bodies(peer, "q") == []
    peer.consume("q", no_ack=True)
    for given in ({}, {"expiration": "0"}):
        peer.publish("q", b"y", given=given)
        assert [each[3] for each in peer.contents()] == [b"y"]
    broker, peer = pair({"x-message-ttl": 7 * 24 * 3600 * 1000})
    peer.publish("q", b"x")
    for _day in range(7):
        assert broker.queues["q"].message_count() == 1
        broker.tick(broker.now + 24 * 3600 * 1000 & MASK, EPOCH + broker.seconds + 24 * 3600)
    broker.tick(broker.now + 5000 & MASK, EPOCH + broker.seconds + 5)
    assert broker.queues["q"].message_count() == 0


def test_an_unused_queue_expires():
    """x-expires: not while it has a consumer, and counted from its last use."""
    broker, peer = pair({"x-expires": 500})
    peer.consume("q")
    pass_time(broker, 1000)
    peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
    pass_time(broker, 400)
    peer.give(encoded("basic_get", 1, 0, "q", True))
    assert peer.frames()[0][0] == "basic_get_empty"
    pass_time(broker, 400)
    assert "q" in broker.queues
    pass_time(broker, 400)
    assert "q" not in broker.queues and broker.counters["queues_expired"] == 1


def test_drop_head_is_a_ring():
    """x-max-length, x-max-length-bytes: the newest stay, the dropped are dead-lettered."""
    for arguments in ({"x-max-length": 3}, {"x-max-length-bytes": 30}):
        arguments["x-dead-letter-exchange"] = "dlx"
        broker, peer = pair(arguments)
        for letter in (b"a", b"b", b"c", b"d", b"e"):
            peer.publish("q", letter * 10)
        assert bodies(peer, "q") == [b"c" * 10, b"d" * 10, b"e" * 10]
        assert bodies(peer, "dead") == [b"a" * 10, b"b" * 10] and broker.counters["dropped_head"] == 2


def test_what_comes_back_to_a_full_ring_is_dropped_before_anybody_sees_the_queue():
    """RabbitMQ, x-max-length: the maximum holds for what is requeued, too, at once and not with the next tick."""
    broker, peer = pair({"x-max-length": 3})
    peer.give(encoded("basic_consume", 1, 0, "q", "t", False, False, False, False, {}))
    for letter in (b"a", b"b", b"c"):
        peer.publish("q", letter)
    peer.give(encoded("basic_cancel", 1, "t", False))
    for letter in (b"d", b"e", b"f"):
        peer.publish("q", letter)
    peer.frames()
    peer.give(encoded("basic_nack", 1, 0, True, True))
    assert broker.queues["q"].message_count() == 3
    peer.take()
    assert bodies(peer, "q") == [b"d", b"e", b"f"]


def test_reject_publish_gives_a_negative_confirm():
    """x-overflow reject-publish and reject-publish-dlx: basic.nack with the number of the publish, in order."""
    for overflow, dead in (("reject-publish", []), ("reject-publish-dlx", [b"c", b"d"])):
        broker, peer = pair({"x-max-length": 2, "x-overflow": overflow, "x-dead-letter-exchange": "dlx"})
        peer.ask("confirm_select", "confirm_select_ok", False)
        peer.give(b"".join([content(1, "", "q", letter) for letter in (b"a", b"b", b"c", b"d")]) + content(1, "", "dead", b"x"))
        assert peer.frames() == [
            ("basic_ack", 1, [2, True]),
            ("basic_nack", 1, [3, False, False]),
            ("basic_nack", 1, [4, False, False]),
            ("basic_ack", 1, [5, False]),
        ]
        assert bodies(peer, "q") == [b"a", b"b"] and bodies(peer, "dead") == dead + [b"x"]
        assert broker.counters["rejected_publishes"] == 2


def test_block_has_the_publisher_wait_between_two_marks():
    """x-overflow block: stop at the maximum, go on at four fifths of it."""
    broker, peer = pair({"x-max-length": 5, "x-overflow": "block"})
    writer = Peer(broker, capabilities={"connection.blocked": True})
    for number in range(6):
        writer.publish("q", str(number).encode())
    assert not writer.connection.reading and broker.queues["q"].message_count() == 5
    peer.give(encoded("basic_get", 1, 0, "q", True))
    peer.frames()
    assert writer.connection.reading and broker.queues["q"].message_count() == 5
    assert bodies(peer, "q") == [b"1", b"2", b"3", b"4", b"5"]


def test_rejected_messages_are_dead_lettered_with_their_history():
    """x-dead-letter-routing-key; counts grow for the same queue and reason."""
    broker, peer = pair({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q2"})
    peer.declare("q2", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    peer.publish("q", b"x", given={"headers": {"keep": "me"}, "delivery_mode": 2, "content_type": "t"})
    for turn in range(4):
        queue = ("q", "q2")[turn % 2]
        tag = peer.consume(queue, "c%d" % turn)[0][1][1]
        peer.give(encoded("basic_reject", 1, tag, False))
        peer.ask("basic_cancel", "basic_cancel_ok", "c%d" % turn, False)
    properties, _ = taken(peer, "q")[0]
    deaths = properties["headers"]["x-death"]
    assert [(each["queue"], each["count"]) for each in deaths] == [("q2", 2), ("q", 2)]
    assert properties["headers"]["keep"] == "me" and properties["delivery_mode"] == 2 and properties["content_type"] == "t"
    assert properties["headers"]["x-first-death-queue"] == "q" and broker.counters["dead_lettered"] == 4


def test_a_message_that_only_expires_in_a_circle_is_dropped():
    """RabbitMQ: no rejection on the way round means nobody would ever stop it."""
    broker, peer = pair({"x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    peer.publish("q", b"x")
    pass_time(broker, 500)
    assert broker.queues["q"].message_count() == 0 and broker.counters["dead_letters_lost"] == 1


def test_at_least_once_dead_letters_wait_for_a_route():
    """x-dead-letter-strategy: kept until there is a queue; without it the message is counted as lost."""
    for strategy, lost in (("at-least-once", 0), ("at-most-once", 1)):
        broker, peer = pair({"x-message-ttl": 100, "x-dead-letter-exchange": "later", "x-dead-letter-strategy": strategy})
        peer.publish("q", b"x")
        pass_time(broker, 300)
        peer.ask("exchange_declare", "exchange_declare_ok", 0, "later", "fanout", False, False, False, False, False, {})
        peer.ask("queue_bind", "queue_bind_ok", 0, "dead", "later", "", False, {})
        pass_time(broker, 300)
        assert bodies(peer, "dead") == [b"x"] * (1 - lost) and broker.counters["dead_letters_lost"] == lost


def test_priorities():
    """x-max-priority: higher first, first in first out within one, redelivered in place; above the maximum counts as the maximum."""
    _, peer = pair({"x-max-priority": 5})
    for priority, body in ((1, b"1a"), (5, b"5a"), (0, b"0a"), (9, b"5b"), (1, b"1b"), (None, b"0b"), (3, b"3a")):
        peer.publish("q", body, given={} if priority is None else {"priority": priority})
    peer.ask("basic_qos", "basic_qos_ok", 0, 3, False)
    found = peer.consume("q")
    assert [each[3] for each in found] == [b"5a", b"5b", b"3a"]
    peer.give(encoded("basic_cancel", 1, "c", True))
    peer.publish("q", b"5c", given={"priority": 5})
    peer.give(encoded("basic_nack", 1, 0, True, True))
    peer.publish("q", b"3b", given={"priority": 3})
    assert bodies(peer, "q") == [b"5a", b"5b", b"5c", b"3a", b"3b", b"1a", b"1b", b"0a", b"0b"]


def test_priorities_agree_with_sorting():
    """Random publishes, takes and requeues against a plain sorted list (seed 5)."""
    _, peer = pair({"x-max-priority": 3})
    model = []
    seed = 5
    count = 0
    for _ in range(400):
        seed = (seed * 1103515245 + 12345) & 0x3FFFFFFF
        what = (seed >> 8) % 5
        if what < 3:
            level = (seed >> 16) % 4
            peer.publish("q", str(count).encode(), given={"priority": level})
            model.append((-level, count))
            model.sort()
            count += 1
        elif model:
            peer.give(encoded("basic_get", 1, 0, "q", False))
            found = assemble(peer.frames())[0]
            assert found[3] == str(model[0][1]).encode()
            if what == 3:
                peer.give(encoded("basic_nack", 1, found[1][0], False, True))
            else:
                peer.give(encoded("basic_ack", 1, found[1][0], False))
                model.pop(0)
    assert bodies(peer, "q") == [str(each[1]).encode() for each in model]


def test_single_active_consumer():
    """Only the first consumer gets messages; the next one when it goes."""
    broker, peer = pair({"x-single-active-consumer": True})
    second = Peer(broker)
    peer.consume("q", no_ack=True)
    second.consume("q", no_ack=True)
    for _ in range(3):
        peer.publish("q", b"x")
    assert (len(peer.contents()), len(second.contents())) == (3, 0)
    peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
    peer.publish("q", b"x")
    assert len(second.contents()) == 1


def test_consumer_priorities():
    """x-priority of a consumer: the higher one while it can take, then the lower."""
    broker, low = pair({})
    high = Peer(broker)
    high.ask("basic_qos", "basic_qos_ok", 0, 2, False)
    low.consume("q", no_ack=True)
    high.consume("q", arguments={"x-priority": 10})
    for _ in range(5):
        low.publish("q", b"x")
    assert (len(high.contents()), len(low.contents())) == (2, 3)


def test_a_poison_message_is_dead_lettered():
    """x-delivery-limit 2: delivered three times, then dead."""
    broker, peer = pair({"x-delivery-limit": 2, "x-dead-letter-exchange": "dlx"})
    peer.publish("q", b"x")
    found = peer.consume("q")
    times = 0
    while found:
        times += 1
        peer.give(encoded("basic_nack", 1, found[0][1][1], False, True))
        found = peer.contents()
    assert times == 3 and broker.counters["delivery_limit"] == 1
    assert taken(peer, "dead")[0][0]["headers"]["x-death"][0]["reason"] == "delivery_limit"


def test_delayed_retry():
    """x-delayed-retry-min and -max: each return waits longer."""
    broker, peer = pair({"x-delayed-retry-min": 200, "x-delayed-retry-max": 300})
    peer.publish("q", b"x")
    tag = peer.consume("q")[0][1][1]
    for wait in (200, 300, 300):
        peer.give(encoded("basic_nack", 1, tag, False, True))
        pass_time(broker, wait - 100)
        assert peer.frames() == []
        pass_time(broker, 250)
        tag = peer.contents()[0][1][1]


def test_deduplication_in_a_bounded_window():
    """x-deduplication: by message-id; the publisher is confirmed; the oldest id is forgotten first."""
    broker, peer = pair({"x-deduplication": 2})
    for identity in ("a", "a", "b", "a", "c", "a", None, None):
        peer.publish("q", (identity or "none").encode(), given={} if identity is None else {"message_id": identity})
    assert bodies(peer, "q") == [b"a", b"b", b"c", b"a", b"none", b"none"] and broker.counters["deduplicated"] == 2


def test_last_value():
    """x-last-value-key: one message for each value, the newest."""
    broker, peer = pair({"x-last-value-key": "sensor"})
    for sensor, body in (("a", b"a1"), ("b", b"b1"), ("a", b"a2"), (None, b"n1"), (None, b"n2"), ("a", b"a3")):
        peer.publish("q", body, given={"headers": {} if sensor is None else {"sensor": sensor}})
    broker.fold_counters()
    assert bodies(peer, "q") == [b"b1", b"n1", b"n2", b"a3"] and broker.counters["replaced"] == 2
    for _ in range(100):
        peer.publish("q", b"x", given={"headers": {"sensor": "c"}})
    assert bodies(peer, "q") == [b"x"]


def test_a_delivery_that_is_not_settled_in_time_closes_its_channel():
    """x-consumer-timeout (and consumer_timeout_ms for all): 406, and the message goes back."""
    broker, peer = pair({"x-consumer-timeout": 1000})
    peer.publish("q", b"x")
    peer.consume("q")
    pass_time(broker, 800)
    assert peer.frames() == []
    pass_time(broker, 600)
    code, text, _, _ = peer.expect("channel_close")
    assert code == 406
    assert text.startswith("PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1000")
    assert broker.queues["q"].message_count() == 1 and broker.counters["settle_timeouts"] == 1


def test_a_length_of_nothing_with_every_other_rule():
    """x-max-length 0: each message goes at once, whatever other rules looked at it first."""
    broker, peer = pair(
        {"x-max-length": 0, "x-max-priority": 3, "x-message-ttl": 1000, "x-dead-letter-exchange": "dlx"}, argument_size_max=4096
    )
    before = idle(broker)
    for number in range(5):
        peer.publish("q", str(number).encode(), given={"priority": number, "expiration": "50"})
    assert broker.queues["q"].message_count() == 0 and bodies(peer, "dead") == [b"0", b"1", b"2", b"3", b"4"]
    assert idle(broker) == before


def test_rules_leave_nothing_behind():
    """All pools are full again when the queues are gone, whatever the rules held."""
    broker = new_broker()
    before = idle(broker)
    _, peer = broker, Peer(broker)
    for arguments in (
        {"x-max-priority": 3},
        {"x-last-value-key": "k"},
        {"x-delayed-retry-min": 1000},
        {"x-message-ttl": 100},
        {"x-dead-letter-exchange": "none", "x-dead-letter-strategy": "at-least-once", "x-max-length": 1},
    ):
        peer.declare("q", arguments=arguments)
        for number in range(6):
            peer.publish("q", bytes(100), given={"priority": number, "headers": {"k": number % 2}, "expiration": "5000"})
        for each in peer.consume("q"):
            peer.give(encoded("basic_nack", 1, each[1][1], False, True))
        peer.frames()
        peer.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    peer.connection.received(0)
    assert idle(broker) == before


def test_a_build_without_a_feature_refuses_what_asks_for_it():
    """A board leaves a feature's file out: 406, and queues without it are as they were."""
    from leveret.core.queue import rules

    carried = rules.feature_class
    rules.feature_class = lambda name: None if name == "priority" else carried(name)
    try:
        peer = Peer(new_broker())
        peer.give(encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {"x-max-priority": 3}))
        text = "PRECONDITION_FAILED - this build of the broker does not carry the argument 'x-max-priority'"
        assert peer.expect("channel_close")[:2] == [406, text]
        Peer(new_broker()).declare("q", arguments={"x-max-length": 3})
    finally:
        rules.feature_class = carried


def test_arguments_about_nodes_and_disks_are_taken_without_effect():
    """RabbitMQ's x-queue-mode and the like: applications declare them; a queue with them alone has no rules."""
    broker = new_broker()
    arguments = {"x-queue-mode": "lazy", "x-queue-version": 2, "x-queue-master-locator": "min-masters"}
    Peer(broker).declare("q", arguments=arguments)
    assert broker.queues["q"].rules is None and broker.queues["q"].arguments == arguments
    Peer(broker).declare("q", arguments=arguments)
    peer = Peer(broker)
    peer.give(encoded("queue_declare", 1, 0, "p", False, False, False, False, False, {"x-queue-mode": "fast"}))
    assert peer.expect("channel_close")[0] == 406


def test_messages_that_wait_for_a_moment_are_bounded():
    """waiting_count_max: a publisher that asks for a delay waits until a place is free; a message that comes back does so at once."""
    broker, peer = pair({"x-delayed-retry-min": 60000}, waiting_count_max=3)
    peer.ask(
        "exchange_declare",
        "exchange_declare_ok",
        0,
        "later",
        "x-delayed-message",
        False,
        False,
        False,
        False,
        False,
        {"x-delayed-type": "fanout"},
    )
    peer.declare("late")
    peer.ask("queue_bind", "queue_bind_ok", 0, "late", "later", "", False, {})
    other = Peer(broker)
    for number in range(3):
        peer.publish("", b"%d" % number, "later", {"headers": {"x-delay": 1000}})
    peer.publish("", b"3", "later", {"headers": {"x-delay": 1000}})
    assert len(peer.connection.writable()) == 0 and len(broker.waiting.heap) == 3
    other.publish("q", b"back")
    other.give(encoded("basic_get", 1, 0, "q", False))
    tag = other.contents()[0][1][0]
    other.give(encoded("basic_nack", 1, tag, False, True))
    assert bodies(other, "q") == [b"back"], "there is no place for it to wait"
    pass_time(broker, 1200)
    assert len(peer.connection.writable()) and bodies(other, "late") == [b"0", b"1", b"2"]
    pass_time(broker, 1200)
    assert bodies(other, "late") == [b"3"]


def test_dead_letters_without_room_wait_in_order_and_go_with_their_queue():
    """x-dead-letter-strategy at-least-once: those of one queue that goes are dropped, the others stay in the order in which they came."""
    broker, peer = pair({"x-dead-letter-exchange": "nowhere", "x-dead-letter-strategy": "at-least-once", "x-max-length": 1})
    peer.declare("r", arguments={"x-dead-letter-exchange": "nowhere", "x-dead-letter-strategy": "at-least-once", "x-message-ttl": 0})
    for number in range(4):
        peer.publish("q", b"%d" % number)
        peer.publish("r", b"r")
    pass_time(broker, 300)
    assert [found.name for found, _ in broker.dead_letters.all(broker)].count("q") == 3
    peer.ask("queue_delete", "queue_delete_ok", 0, "r", False, False, False)
    assert [found.name for found, _ in broker.dead_letters.all(broker)] == ["q"] * 3
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "nowhere", "fanout", False, False, False, False, False, {})
    peer.ask("queue_bind", "queue_bind_ok", 0, "dead", "nowhere", "", False, {})
    pass_time(broker, 300)
    assert bodies(peer, "dead") == [b"0", b"1", b"2"] and not list(broker.dead_letters.all(broker))

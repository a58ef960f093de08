"""Everything counts: a counter for each refusal, drop, return, dead letter, redelivery, expiry, block; each is moved by what it counts.

CASES has, for every counter of counters.COUNTERS, what makes it move and by how much. A counter that somebody adds needs its case here.
"""

import peer_file
from peer import Peer, content, encoded, new_broker
from peer_file import FilePeer, broker_of

from leveret.core.access.permissions import User
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER
from leveret.core.broker.counters import COUNTERS
from leveret.core.connection.connection import Connection
from leveret.core.management.overview import counters
from leveret.core.stream.stream import EPOCH


def pass_time(broker, milliseconds):
    while milliseconds > 0:
        step = min(milliseconds, 100)
        milliseconds -= step
        broker.tick((broker.now + step) & 0x3FFFFFFF, EPOCH + broker.seconds)
        for connection in list(broker.connections):
            connection.tick(broker.now)
        broker.run()


def fresh(arguments=None, **limits):
    """A broker with queue q, and a peer."""
    limits.setdefault("argument_size_max", 1024)
    broker = new_broker(**limits)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments=arguments)
    return broker, peer


def exchange(peer, name, type_, arguments=None):
    peer.ask("exchange_declare", "exchange_declare_ok", 0, name, type_, False, False, False, False, False, arguments or {})


def get(peer, no_ack=True):
    peer.give(encoded("basic_get", 1, 0, "q", no_ack))
    return peer.frames()


def with_dead_letters(arguments=None):
    """Queue q with dead letters to queue dead."""
    merged = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    merged.update(arguments or {})
    broker, peer = fresh(merged)
    peer.declare("dead")
    return broker, peer


def connections():
    broker = new_broker()
    for _ in range(3):
        Peer(broker)
    return broker, 3


def connections_refused():
    broker = new_broker(connection_count_max=1)
    Peer(broker)
    assert Connection(broker).closed and Connection(broker).closed
    return broker, 2


def strangers_closed():
    broker = new_broker(stranger_share_max=13)
    for _ in range(4):
        Connection(broker)
    return broker, 2


def fail_to_log_in(broker, address=""):
    peer = Peer(broker, log_in=False)
    peer.connection.address = address
    peer.give(HEADER)
    peer.frames()
    peer.give(encoded("connection_start_ok", 0, {}, "PLAIN", b"\0guest\0wrong", "en_US"))


def logins_refused():
    broker = new_broker()
    fail_to_log_in(broker)
    fail_to_log_in(broker)
    return broker, 2


def addresses_refused():
    broker = new_broker(login_failure_max=1)
    fail_to_log_in(broker, "10.0.0.1")
    assert Connection(broker, "x", False, "10.0.0.1").closed
    return broker, 1


def access_refused():
    broker, peer = fresh()
    broker.access.put(User("guest", broker.access.users["guest"].stored, (), ("", "", "")))
    peer.publish("q", b"x")
    assert peer.expect("channel_close")[0] == 403
    return broker, 1


def published():
    broker, peer = fresh()
    for key in ("q", "q", "nowhere"):
        peer.publish(key, b"x")
    return broker, 3


def delivered():
    broker, peer = fresh()
    for _ in range(3):
        peer.publish("q", b"x")
    peer.consume("q")
    return broker, 3


def got():
    broker, peer = fresh()
    for _ in range(4):
        peer.publish("q", b"x")
    for _ in range(3):  # in C the first one is Python's
        get(peer, no_ack=False)
    return broker, 3


def got_no_ack():
    broker, peer = fresh()
    for _ in range(3):
        peer.publish("q", b"x")
    for _ in range(4):  # the last one finds nothing
        get(peer)
    return broker, 3


def settled():
    broker, peer = fresh()
    for _ in range(3):
        peer.publish("q", b"x")
    peer.consume("q")
    peer.give(encoded("basic_ack", 1, 2, True))
    return broker, 2


def returned():
    broker, peer = fresh()
    peer.publish("nowhere", b"x", mandatory=True)
    assert peer.contents()[0][0] == "basic_return"
    return broker, 1


def unroutable():
    broker, peer = fresh()
    peer.publish("nowhere", b"x")
    return broker, 1


def alternate_routed():
    broker, peer = fresh()
    exchange(peer, "main", "direct", {"alternate-exchange": "amq.fanout"})
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.fanout", "", False, {})
    peer.publish("nowhere", b"x", "main")
    return broker, 1


def lost_on_purpose():
    broker, peer = fresh()
    exchange(peer, "holes", "x-lossy", {"x-loss": 1})
    peer.publish("k", b"x", "holes")
    return broker, 1


def delayed():
    broker, peer = fresh()
    exchange(peer, "later", "x-delayed-message", {"x-delayed-type": "fanout"})
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "later", "", False, {})
    peer.publish("k", b"x", "later", {"headers": {"x-delay": 100}})
    return broker, 1


def redelivered():
    broker, peer = fresh()
    for _ in range(3):
        peer.publish("q", b"x")
    peer.consume("q")
    peer.give(encoded("basic_cancel", 1, "c", False) + encoded("basic_nack", 1, 0, True, True))
    return broker, 3


def rejected():
    broker, peer = fresh()
    for _ in range(2):
        peer.publish("q", b"x")
    peer.consume("q")
    peer.give(encoded("basic_nack", 1, 0, True, False))
    peer.declare("letters", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    for _ in range(3):
        peer.publish("letters", b"x")
    peer.consume("letters", "l")
    peer.give(encoded("basic_nack", 1, 5, True, False))
    return broker, 5


def purged():
    broker, peer = fresh()
    for _ in range(2):
        peer.publish("q", b"x")
    peer.ask("queue_purge", "queue_purge_ok", 0, "q", False)
    return broker, 2


def held():
    broker, peer = fresh({"x-max-length": 1, "x-overflow": "block"})
    for _ in range(2):
        peer.publish("q", b"x")
    return broker, 1


def blocked():
    broker = new_broker()
    peer = Peer(broker, capabilities={"connection.blocked": True})
    peer.declare("q", arguments={"x-max-length": 1, "x-overflow": "block"})
    for _ in range(2):
        peer.publish("q", b"x")
    pass_time(broker, 500)
    peer.expect("connection_blocked")
    return broker, 1


def publishers_blocked():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q", arguments={"x-max-length": 1, "x-overflow": "block"})
    for _ in range(2):
        peer.publish("q", b"x")
    for _ in range(30):
        pass_time(broker, 100)
    return broker, 1


def internal_errors():
    broker, peer = fresh()

    def broken():
        peer.connection.session.one_frame = lambda: False
        raise KeyError("made by the test")

    peer.connection.session.one_frame = broken
    peer.give(encoded("basic_qos", 1, 0, 0, False))
    assert peer.expect("connection_close")[0] == 541
    return broker, 1


def channel_errors():
    broker, peer = fresh()
    peer.give(encoded("queue_purge", 1, 0, "nowhere", False))
    assert peer.expect("channel_close")[0] == 404
    return broker, 1


def connection_errors():
    broker, peer = fresh()
    peer.give(encoded("basic_qos", 7, 0, 0, False))
    assert peer.expect("connection_close")[0] == 504
    return broker, 1


def expired():
    broker, peer = fresh({"x-message-ttl": 100})
    for _ in range(2):
        peer.publish("q", b"x")
    pass_time(broker, 300)
    assert get(peer)[0][0] == "basic_get_empty"
    return broker, 2


def queues_expired():
    broker, peer = fresh({"x-expires": 100})
    pass_time(broker, 500)
    assert "q" not in broker.queues
    return broker, 1


def dropped_head():
    broker, peer = fresh({"x-max-length": 1})
    for _ in range(3):
        peer.publish("q", b"x")
    return broker, 2


def rejected_publishes():
    broker, peer = fresh({"x-max-length": 1, "x-overflow": "reject-publish"})
    for _ in range(3):
        peer.publish("q", b"x")
    return broker, 2


def dead_lettered():
    broker, peer = with_dead_letters()
    peer.publish("q", b"x")
    peer.consume("q")
    peer.give(encoded("basic_reject", 1, 1, False))
    assert broker.queues["dead"].message_count() == 1
    return broker, 1


def dead_letters_lost():
    broker, peer = fresh({"x-dead-letter-exchange": "absent", "x-max-length": 1})
    for _ in range(3):
        peer.publish("q", b"x")
    return broker, 2


def delivery_limit():
    broker, peer = fresh({"x-delivery-limit": 1})
    peer.publish("q", b"x")
    for _ in range(2):
        assert get(peer, False)[0][0] == "basic_get_ok"
        peer.give(encoded("basic_nack", 1, 0, True, True))
    assert get(peer)[0][0] == "basic_get_empty"
    return broker, 1


def deduplicated():
    broker, peer = fresh({"x-deduplication": 5})
    for _ in range(3):
        peer.publish("q", b"x", given={"message_id": "same"})
    return broker, 2


def replaced():
    broker, peer = fresh({"x-last-value-key": "k"})
    for _ in range(3):
        peer.publish("q", b"x", given={"headers": {"k": "same"}})
    return broker, 2


def settle_timeouts():
    broker, peer = fresh({"x-consumer-timeout": 100})
    peer.publish("q", b"x")
    peer.consume("q")
    pass_time(broker, 500)
    assert peer.expect("channel_close")[0] == 406
    return broker, 1


def commits():
    broker, peer = fresh()
    peer.ask("tx_select", "tx_select_ok")
    peer.ask("tx_commit", "tx_commit_ok")
    return broker, 1


def rollbacks():
    broker, peer = fresh()
    peer.ask("tx_select", "tx_select_ok")
    peer.ask("tx_rollback", "tx_rollback_ok")
    return broker, 1


def dropped_with_queue():
    """Ready, delivered and not settled, and waiting for its moment."""
    broker, peer = fresh({"x-delayed-retry-min": 5000})
    for _ in range(4):
        peer.publish("q", b"x")
    peer.ask("basic_qos", "basic_qos_ok", 0, 2, False)
    assert len(peer.consume("q")) == 2
    peer.give(encoded("basic_cancel", 1, "c", False) + encoded("basic_nack", 1, 1, False, True))
    peer.give(encoded("queue_delete", 1, 0, "q", False, False, False))
    assert peer.frames()[-1] == ("queue_delete_ok", 1, [2])
    return broker, 4


def stream(arguments=None):
    merged = {"x-queue-type": "stream"}
    merged.update(arguments or {})
    return fresh(merged)


def retained_out():
    """Retention lets two go; a purge is not retention."""
    broker, peer = stream({"x-max-length-bytes": 300})
    for _ in range(4):
        peer.publish("q", b"x" * 140)
    peer.ask("queue_purge", "queue_purge_ok", 0, "q", False)
    return broker, 2


def stream_duplicates():
    broker, peer = stream()
    for sequence in (1, 2, 2, 1):
        peer.publish("q", b"x", given={"headers": {"x-publisher-id": "p", "x-publisher-sequence": sequence}})
    return broker, 2


def readers_overtaken():
    broker, peer = stream({"x-max-length-bytes": 300})
    peer.ask("basic_qos", "basic_qos_ok", 0, 1, False)
    peer.publish("q", b"x" * 140)
    peer.consume("q", arguments={"x-stream-offset": "first"})
    for _ in range(5):
        peer.publish("q", b"x" * 140)
    return broker, 1


def consumers_cancelled():
    broker, peer = fresh()
    other = Peer(broker, capabilities={"consumer_cancel_notify": True})
    other.consume("q")
    peer.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    other.expect("basic_cancel")
    return broker, 1


def manage(peer, body):
    peer.declare("answers")
    peer.publish("amq.leveret.management", body, given={"reply_to": "answers"})


def management_requests():
    broker, peer = fresh(management_size_max=4096)
    manage(peer, b'{"request":"counters"}')
    return broker, 1


def management_failures():
    broker, peer = fresh(management_size_max=4096)
    manage(peer, b"not JSON")
    return broker, 1


def moved():
    broker, peer = fresh(management_size_max=4096)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    manage(peer, b'{"request":"bridge","stream":"s","queue":"q","count":5}')
    return broker, 2


def poison(count):
    """Messages of q that cannot become dead letters, in a broker whose poison holds four."""
    from leveret.core.queue.features import dead_letter

    broker, peer = with_dead_letters({"x-message-ttl": 100})
    broker.limits.message_count_max = 64

    def raising(*given):
        raise ValueError("no history")

    history, dead_letter.history = dead_letter.history, raising
    try:
        for _ in range(count):
            peer.publish("q", b"x")
        pass_time(broker, 300)
    finally:
        dead_letter.history = history
    return broker


def poisoned():
    return poison(3), 3


def poison_dropped():
    return poison(6), 2


def staged_expired():
    """Two contents that nobody goes on with; one that is published is not of them."""
    peer = FilePeer(broker_of())
    peer.do("queue_declare", queue="q")
    for identifier in ("a", "b"):
        peer.do("file_open", identifier=identifier, content_size=5)
    peer.send("c", b"hello")
    peer.connection.received(0)
    for _ in range(2):
        peer.broker.tick(peer.broker.now + 90000000, 1700000000)
    return peer.broker, 2


def stream_dropped():
    """Packets above the rate of their consumer, and one that its queue refuses."""
    peer = FilePeer(broker_of())
    peer.do("queue_declare", queue="full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.do("queue_declare", queue="q")
    peer.do("stream_qos", consume_rate=1)
    peer.do("stream_consume", queue="q", consumer_tag="c")
    for key in ("full", "full", "q", "q", "q"):
        peer.give(peer_file.content("stream_publish", b"packet", None, peer_file.STREAM, routing_key=key))
    return peer.broker, 3


CASES = (
    connections,
    connections_refused,
    strangers_closed,
    logins_refused,
    addresses_refused,
    access_refused,
    published,
    delivered,
    got,
    got_no_ack,
    settled,
    returned,
    unroutable,
    alternate_routed,
    lost_on_purpose,
    delayed,
    redelivered,
    rejected,
    purged,
    held,
    blocked,
    publishers_blocked,
    internal_errors,
    channel_errors,
    connection_errors,
    expired,
    queues_expired,
    dropped_head,
    rejected_publishes,
    dead_lettered,
    dead_letters_lost,
    delivery_limit,
    deduplicated,
    replaced,
    settle_timeouts,
    commits,
    rollbacks,
    dropped_with_queue,
    retained_out,
    stream_duplicates,
    readers_overtaken,
    consumers_cancelled,
    management_requests,
    management_failures,
    moved,
    poisoned,
    poison_dropped,
    staged_expired,
    stream_dropped,
)


def name_of(case):
    """A function's name, on both interpreters."""
    return case.__name__


def test_every_counter_has_a_case():
    assert sorted([name_of(case) for case in CASES]) == sorted(COUNTERS)
    assert len(set(COUNTERS)) == len(COUNTERS)


def test_every_counter_moves_by_what_it_counts():
    for case in CASES:
        broker, expected = case()
        found = counters(broker)
        assert found[name_of(case)] == expected, (name_of(case), found)


def test_an_idle_broker_counts_nothing_but_its_connection():
    broker = new_broker()
    Peer(broker)
    pass_time(broker, 2000)
    assert {name: count for name, count in counters(broker).items() if count} == {"connections": 1}


def test_a_message_that_is_taken_and_settled_is_in_no_counter_of_losses():
    broker, peer = fresh()
    peer.give(content(1, "", "q", b"x"))
    peer.consume("q")
    peer.give(encoded("basic_ack", 1, 1, False))
    pass_time(broker, 100)
    moved = {name: count for name, count in counters(broker).items() if count}
    assert moved == {"connections": 1, "published": 1, "delivered": 1, "settled": 1}

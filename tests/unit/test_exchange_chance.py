"""x-local-random and x-lossy: seeded draws, used up by a message that is taken and by no other."""

from peer import Peer, encoded, new_broker


def exchange(peer, name, type_, arguments=None):
    peer.ask("exchange_declare", "exchange_declare_ok", 0, name, type_, False, False, False, False, False, arguments or {})


def queue(peer, name, source, key=""):
    peer.declare(name)
    peer.ask("queue_bind", "queue_bind_ok", 0, name, source, key, False, {})


def purge(peer, name):
    return peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0]


def refused(broker, name, *arguments):
    peer = Peer(broker)
    peer.give(encoded(name, 1, *arguments))
    return peer.expect("channel_close")[:2]


def sequence(nonce, count=60):
    """Which of three queues each message goes to."""
    broker = new_broker()
    broker.nonce = nonce
    peer = Peer(broker)
    exchange(peer, "r", "x-local-random")
    for name in ("a", "b", "c"):
        queue(peer, name, "r")
    found = ""
    for _ in range(count):
        peer.publish("any", b"", "r")
        took = [name for name in ("a", "b", "c") if purge(peer, name)]
        assert len(took) == 1
        found += took[0]
    return found


def test_each_message_goes_to_one_queue_drawn_from_the_nonce():
    found = sequence(b"one")
    assert min([found.count(name) for name in "abc"]) > 8, found
    assert sequence(b"one") == found and sequence(b"two") != found


def test_bindings_that_local_random_refuses():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "r", "x-local-random")
    peer.declare("q")
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for method, name, key, text in (
        ("queue_bind", "q", "k", "Non empty binding 'k' key not permitted"),
        ("exchange_bind", "amq.direct", "", "Destination not found"),
        ("queue_bind", "s", "", "Queue type rabbit_stream_queue not valid for this exchange type"),
    ):
        assert refused(broker, method, 0, name, "r", key, False, {}) == [406, "PRECONDITION_FAILED - " + text]


def passed(broker, peer, loss, seed, count):
    """Which of `count` messages come through a lossy exchange."""
    exchange(peer, "l", "x-lossy", {"x-loss": loss, "x-seed": seed})
    queue(peer, "q", "l")
    found = ""
    for _ in range(count):
        peer.publish("k", b"", "l", mandatory=True)
        found += str(purge(peer, "q"))
    peer.ask("exchange_delete", "exchange_delete_ok", 0, "l", False, False)
    return found


def test_a_share_is_lost_the_same_one_for_a_seed():
    broker = new_broker()
    peer = Peer(broker)
    first = passed(broker, peer, 0.25, 7, 400)
    assert 70 < first.count("0") < 130
    assert broker.counters["lost_on_purpose"] == first.count("0") and broker.counters["returned"] == 0
    assert passed(broker, peer, "0.25", 7, 400) == first
    assert passed(broker, peer, 0.25, 8, 400) != first
    assert passed(broker, peer, 0, 7, 50) == "1" * 50 and passed(broker, peer, 1, 7, 50) == "0" * 50


def test_a_lost_message_is_confirmed_and_takes_no_alternate():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "rest", "fanout")
    queue(peer, "r", "rest")
    exchange(peer, "l", "x-lossy", {"x-loss": 1, "alternate-exchange": "rest"})
    queue(peer, "q", "l")
    peer.ask("confirm_select", "confirm_select_ok", False)
    peer.publish("k", b"", "l", mandatory=True)
    assert peer.expect("basic_ack") == [1, False]
    assert purge(peer, "q") == 0 and purge(peer, "r") == 0


def test_without_bindings_a_message_has_no_route_and_is_not_lost():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "l", "x-lossy", {"x-loss": 0})
    peer.publish("k", b"", "l", mandatory=True)
    assert peer.contents()[0][0] == "basic_return"


def test_a_lossy_exchange_stands_between_an_exchange_and_a_queue():
    """The figure of the draft's "Multiple Registrations": a direct exchange, the lossy one, the queue."""
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "l", "x-lossy", {"x-loss": 0.5, "x-seed": 1})
    peer.ask("exchange_bind", "exchange_bind_ok", 0, "l", "amq.direct", "k", False, {})
    queue(peer, "q", "l")
    peer.declare("all")
    peer.ask("queue_bind", "queue_bind_ok", 0, "all", "amq.direct", "k", False, {})
    for _ in range(100):
        peer.publish("k", b"", "amq.direct")
        peer.publish("other", b"", "amq.direct")
    lost = broker.counters["lost_on_purpose"]
    assert 30 < lost < 70 and purge(peer, "q") == 100 - lost and purge(peer, "all") == 100


def test_a_message_that_waits_for_room_keeps_its_draw():
    """Else it would be drawn for again and again until it is lost."""
    broker = new_broker(message_count_max=16, entry_count_max=16)
    peer = Peer(broker)
    exchange(peer, "l", "x-lossy", {"x-loss": 0.5, "x-seed": 3})
    queue(peer, "q", "l")
    while peer.connection.reading:
        peer.publish("k", b"", "l")
    lost = broker.counters["lost_on_purpose"]
    taken = broker.queues["q"].message_count()
    for _ in range(50):
        broker.run()
    assert broker.counters["lost_on_purpose"] == lost and broker.exchanges["l"].count == lost + taken
    assert purge(Peer(broker), "q") == taken
    broker.run()
    assert broker.queues["q"].message_count() == 1 and broker.exchanges["l"].count == lost + taken + 1


def test_arguments_that_lossy_refuses():
    broker = new_broker()
    share = "x-lossy needs the argument 'x-loss': the share of messages to drop, from 0 to 1"
    for arguments, text in (
        ({}, share),
        ({"x-loss": 1.5}, share),
        ({"x-loss": "much"}, share),
        ({"x-loss": True}, share),
        ({"x-loss": 0, "x-seed": "s"}, "the argument 'x-seed' of x-lossy must be a whole number"),
    ):
        assert refused(broker, "exchange_declare", 0, "l", "x-lossy", False, False, False, False, False, arguments) == [
            406,
            "PRECONDITION_FAILED - " + text,
        ]

"""The pair of links to /management, by frames: requests in, responses out, credit, halves, what is too much."""

from memory_store import SlowStore, durable_broker
from peer_1_0 import Peer, data, declare, error_in, new_broker, performative
from test_1_0_management import answered, request

from leveret.core.amqp_1_0 import link_management, types
from leveret.core.limits import BOARD

ADDRESS = "/management"


def pair(peer, credit=10, name="m", settles=1, **given):
    """Both links: handles 0 and 1."""
    source = ("source", {"address": ADDRESS})
    peer.attach(name, 0, False, ADDRESS, source=source, snd_settle_mode=settles)
    assert peer.expect("flow")[1]["link-credit"] == link_management.CREDIT
    peer.attach(name, 1, True, ADDRESS, target=("target", {"address": ADDRESS}), snd_settle_mode=1, **given)
    if credit:
        peer.credit(credit)


def ask(peer, number, *what, settled=True, more=False):
    """Send a request."""
    octets = request(*what)
    given = {"handle": 0, "delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": settled}
    if more:
        peer.give(performative("transfer", 0, octets[:20], more=True, **given))
        peer.give(performative("transfer", 0, octets[20:], handle=0))
    else:
        peer.give(performative("transfer", 0, octets, **given))


def responses(peer):
    """(status, body) of those that have come; each is settled."""
    found = []
    for name, fields, payload, _ in peer.frames():
        if name == "transfer":
            if fields["delivery-id"] is None:
                found[-1] += payload
            else:
                assert fields["settled"] and fields["handle"] == 1
                found.append(payload)
    return [answered(octets) for octets in found]


def test_a_request_is_answered_on_the_other_link():
    broker = new_broker()
    peer = Peer(broker)
    pair(peer)
    ask(peer, 0, "PUT", "/queues/q", {})
    ((status, body),) = responses(peer)
    assert status == "201" and body["name"] == "q" and "q" in broker.queues
    ask(peer, 1, "GET", "/queues/q", more=True)
    ask(peer, 2, "DELETE", "/queues/x")
    assert [each[0] for each in responses(peer)] == ["200", "200"]


def test_a_request_that_is_not_settled_is_accepted_and_credit_comes_back():
    peer = Peer(new_broker())
    pair(peer, 100, settles=2)
    for number in range(3 * link_management.CREDIT):
        ask(peer, number, "GET", "/queues/q", settled=False)
        names = [name for name, *_ in peer.frames()]
        assert "disposition" in names and "transfer" in names


def test_responses_wait_for_credit_and_drain():
    peer = Peer(new_broker())
    pair(peer, 0)
    ask(peer, 0, "GET", "/queues/a")
    ask(peer, 1, "GET", "/queues/b")
    assert responses(peer) == []
    peer.credit(1)
    assert [each[1] for each in responses(peer)] == ["queue 'a' in vhost '/' not found"]
    peer.credit(5, delivery_count=1, drain=True)
    frames = peer.frames()
    assert [name for name, *_ in frames] == ["transfer", "flow"] or [name for name, *_ in frames] == ["flow", "transfer"]
    peer.credit(5, delivery_count=2, drain=True)
    flow = peer.expect("flow")[1]
    assert flow["link-credit"] == 0 and flow["delivery-count"] == 7


def test_a_drain_waits_for_the_response_that_waits_for_its_log():
    """Section 2.6.7: all messages that are there go first, then the credit is used up, and the flow says drain (2.7.4)."""
    store = SlowStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    for _ in range(3):
        broker.run()
    pair(peer, 0)
    peer.frames()
    store.stalls = True
    ask(peer, 0, "PUT", "/queues/q", {})
    peer.credit(5, drain=True)
    assert [each[0] for each in peer.frames() if each[1]["handle"] == 1] == []
    store.stalls = False
    found = []
    for now in range(5):
        broker.tick(now, 0)
        peer.connection.tick(now)
        found += [each[:2] for each in peer.frames() if each[1]["handle"] == 1]
    assert [name for name, _ in found] == ["transfer", "flow"]
    assert [found[1][1][each] for each in ("delivery-count", "link-credit", "drain")] == [5, 0, True]


def test_responses_wait_for_the_sessions_window():
    peer = Peer(new_broker(), begins=False)
    peer.begin(incoming_window=0)
    pair(peer, 0)
    peer.credit(5, incoming_window=0)
    ask(peer, 0, "GET", "/queues/a")
    assert responses(peer) == []
    peer.credit(5, incoming_window=10)
    assert len(responses(peer)) == 1


def test_a_large_response_leaves_in_several_transfers_between_deliveries():
    broker = new_broker(binding_count_max=300, binding_share_max=300)
    peer = Peer(broker, max_frame_size=512)
    pair(peer, 50)
    declare(broker)
    for number in range(40):
        ask(peer, number, "POST", "/bindings", {"source": "amq.headers", "destination_queue": "q", "arguments": {"n": number}})
        peer.collect()
    peer.frames()
    ask(peer, 40, "GET", "/bindings?src=amq.headers&dstq=q&key=")
    ((status, body),) = responses(peer)
    assert status == "200" and len(body) == 40


def test_half_of_a_pair_answers_with_a_detach():
    peer = Peer(new_broker())
    peer.attach("m", 0, False, ADDRESS)
    peer.expect("flow")
    ask(peer, 0, "GET", "/queues/q")
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:precondition-failed"


def test_a_sender_of_requests_says_where_its_count_begins():
    """Section 2.7.3: initial-delivery-count "MUST NOT be null if role is sender"."""
    peer = Peer(new_broker())
    peer.attach("m", 0, False, ADDRESS, source=("source", {"address": ADDRESS}), initial_delivery_count=None)
    condition, text = error_in(peer.frames(), "detach")
    assert condition == "amqp:invalid-field" and "initial-delivery-count" in text
    peer.give(performative("detach", handle=0, closed=True))
    pair(peer)
    ask(peer, 0, "GET", "/queues/q")
    assert [each[0] for each in responses(peer)] == ["404"], "the session goes on"


def test_the_other_half_may_come_and_go():
    peer = Peer(new_broker())
    pair(peer)
    peer.give(performative("detach", 0, handle=1, closed=True))
    peer.expect("detach")
    ask(peer, 0, "GET", "/queues/q")
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:precondition-failed"
    peer.give(performative("detach", 0, handle=0, closed=True))
    pair(peer, 5)
    ask(peer, 1, "GET", "/queues/q")
    assert len(responses(peer)) == 1


def test_what_is_too_much_or_no_request_ends_the_link():
    for octets, condition in (
        (data(b"x" * (BOARD["management_size_max"] + 1)), "amqp:link:message-size-exceeded"),
        (b"\x00", "amqp:decode-error"),
        (types.encode(("described", ("ulong", 0x77), None)), "amqp:precondition-failed"),
    ):
        peer = Peer(new_broker())
        pair(peer)
        given = {"handle": 0, "delivery_id": 0, "delivery_tag": b"0", "settled": True}
        while octets:
            peer.give(performative("transfer", 0, octets[:900], more=len(octets) > 900, **given))
            octets = octets[900:]
            given = {"handle": 0}
        assert peer.expect("detach")[1]["error"]["condition"] == condition
    peer = Peer(new_broker())
    pair(peer, 0)
    for number in range(link_management.RESPONSES_MAX + 1):
        ask(peer, number, "GET", "/queues/q")
    detach = [fields for name, fields, _, _ in peer.frames() if name == "detach"]
    assert detach[0]["error"]["condition"] == "amqp:resource-limit-exceeded"


def test_a_response_that_its_receiver_does_not_take_ends_its_link():
    peer = Peer(new_broker())
    pair(peer, 5, max_message_size=20)
    ask(peer, 0, "GET", "/queues/q")
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:link:message-size-exceeded"


def test_the_session_may_end_while_responses_wait():
    broker = new_broker()
    peer = Peer(broker)
    pair(peer, 0)
    ask(peer, 0, "GET", "/queues/q")
    peer.give(performative("end"))
    peer.expect("end")
    peer.begin()
    pair(peer, 5)
    ask(peer, 0, "GET", "/queues/q")
    assert len(responses(peer)) == 1

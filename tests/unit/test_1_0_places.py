"""What peers of AMQP 1.0 can make grow has an end: links and what they keep, deliveries, heads, responses, dispositions that wait."""

from peer_1_0 import Peer, declare, error_in, new_broker, performative
from test_1_0_link_management import ask, pair, responses

from leveret.core.amqp_1_0 import bounds, dispositions
from leveret.core.limits import cost
from leveret.core.memory import layout

FULL = "amqp:resource-limit-exceeded"


def many(peer, first, count, **given):
    """Attach so many senders to the queue: the conditions of the detaches that come back."""
    found: list = []
    for handle in range(first, first + count):
        source, target = ("source", {}), ("target", dict(given, address="/queues/q"))
        fields = {"source": source, "target": target, "initial_delivery_count": 0}
        peer.give(performative("attach", name="n%d" % handle, handle=handle, role=False, **fields))
        found += [fields["error"]["condition"] for name, fields, _, _ in peer.frames() if name == "detach"]
    return found


def broker_of(**given):
    broker = new_broker(**given)
    declare(broker)
    return broker


def test_there_are_no_more_links_than_places_and_those_that_go_leave_theirs():
    broker = broker_of(link_count_max=8)
    peer, other = Peer(broker), Peer(broker, container="other")
    places = peer.connection.session.places
    assert many(peer, 0, 7) == [FULL] and places.left == 2, "three quarters are one connection's"
    assert many(other, 0, 3) == [FULL] and places.left == 0
    for handle in range(7):
        peer.give(performative("detach", handle=handle, closed=True))
        peer.frames()
    assert places.left == 6
    assert many(peer, 0, 6) == []
    peer.give(performative("end"))
    assert places.left == 6
    other.connection.received(0)
    broker.run()
    assert places.left == 8 and places.deliveries_left == broker.limits.entry_count_max // 4


def test_a_link_that_keeps_much_takes_several_places_and_one_that_keeps_too_much_is_detached():
    broker = broker_of(link_count_max=16, receive_buffer_size=16384, frame_size_max=16384)
    peer = Peer(broker)
    places = peer.connection.session.places
    assert many(peer, 0, 1, capabilities=["c%d" % number for number in range(100)]) == []
    taken = 16 - places.left
    assert taken == 1 + cost([peer.connection.session.mapped[0].links[0].name]) // 1024 + 2, taken
    assert many(peer, 1, 1, capabilities=["c%d" % number for number in range(500)]) == [FULL]
    assert many(peer, 2, 1) == [] and places.left == 16 - taken - 1


def test_a_filter_counts_by_its_operations():
    broker = broker_of(link_count_max=40)
    peer = Peer(broker)
    places = peer.connection.session.places
    taken = []
    for number, count in ((0, 1), (1, 30), (2, 60)):
        text = "1" + "+1" * count + "=2"
        selector = {("symbol", "f"): ("described", ("symbol", "apache.org:selector-filter:string"), text)}
        before = places.left
        peer.attach("in%d" % number, number, True, None, source=("source", {"address": "/queues/q", "filter": selector}))
        taken.append(before - places.left)
    assert taken[0] < taken[1] < taken[2] and taken[2] >= 8, taken


def test_links_that_were_refused_and_are_not_detached_end_the_session_when_they_are_many():
    broker = broker_of(link_count_max=1)
    peer = Peer(broker)
    assert many(peer, 0, 1 + bounds.REFUSED_MAX) == [FULL] * bounds.REFUSED_MAX
    source, target = ("source", {}), ("target", {"address": "/queues/q"})
    peer.give(performative("attach", name="one more", handle=100, role=False, source=source, target=target, initial_delivery_count=0))
    assert error_in(peer.frames(), "end")[0] == FULL
    assert peer.connection.session.refused == 0 and peer.connection.session.places.left == 1


def test_many_links_have_less_credit_each_and_all_have_one():
    """limits: entry_count_max // 4 deliveries together, beside one a link."""
    broker = broker_of(entry_count_max=256, message_count_max=256, link_count_max=100, channel_max=100)
    peer = Peer(broker)
    credit = [peer.sender("/queues/q", "n%d" % handle, handle) for handle in range(12)]
    assert credit == [32, 16, 8, 4, 2, 1, 1, 1, 1, 1, 1, 1], credit


def test_messages_whose_bodies_have_not_begun_keep_no_more_than_one_may():
    broker = broker_of(properties_size_max=1000, management_size_max=2048, receive_buffer_size=2048, send_buffer_size=4096)
    peer = Peer(broker)
    peer.frames()
    for handle in range(3):
        peer.sender("/queues/q", "n%d" % handle, handle)
    head = b"\x00\x53\x72\xd1" + (2000).to_bytes(4, "big") + b"\x00\x00\x00\x02\xa3\x01a\xb1\x00\x00\x07\xc0" + bytes(880)
    for handle in range(3):
        peer.give(performative("transfer", 0, head, handle=handle, delivery_id=handle, delivery_tag=b"%d" % handle, more=True))
    assert 1700 < peer.connection.session.lead_octets < 2048 + 512
    peer.give(performative("transfer", 0, b"", handle=2, more=False))
    (told,) = [fields for name, fields, _, _ in peer.frames() if name == "disposition"]
    assert told["first"] == 2 and told["state"][1]["error"]["condition"] == FULL
    peer.give(performative("transfer", handle=0, aborted=True) + performative("detach", handle=1, closed=True))
    assert peer.connection.session.lead_octets == 0 and broker.counters["internal_errors"] == 0


def test_a_container_id_has_an_end():
    broker = broker_of()
    peer = Peer(broker, opens=False)
    peer.log_in()
    peer.give(performative("open", container_id="c" * (broker.limits.argument_size_max // 4 + 1)))
    assert error_in(peer.frames(), "close")[0] == FULL


def test_of_an_outcome_that_waits_to_be_settled_only_its_name_is_kept_and_many_in_a_row_are_one():
    broker = broker_of()
    peer = Peer(broker)
    peer.sender()
    for number in range(60):
        peer.send(number, b"x", settled=True)
        peer.frames()
    peer.receiver(credit=60)
    peer.frames()
    session = peer.connection.session.mapped[0]
    most = dispositions.RANGES_MAX
    broker.tables.channels[session.handle + layout.CHANNEL_TAG] = 2 * most + 60  # so many deliveries were sent
    session.session.is_durable = lambda number: False  # a log whose disk takes its time
    large = {("symbol", "a"): "b" * 500}
    for number in range(2, 2 * most + 2, 2):
        peer.settle(number, ("modified", {"delivery-failed": False, "message-annotations": large}), settled=False)
    assert len(session.settled) == most and all(state == ("modified", {}) for _, _, state, _ in session.settled)
    peer.settle(2 * most + 1, ("modified", {}), settled=False)
    assert session.settled[-1][:2] == (2 * most, 2 * most + 1) and peer.connection.reading
    peer.settle(50, ("released", {}), settled=False)
    assert len(session.settled) == most and not peer.connection.reading, "it waits, and its session goes on"
    del session.session.is_durable
    peer.connection.session.flush()
    broker.run()
    broker.tick(200, 0)
    broker.run()
    told = [fields["first"] for name, fields, _, _ in peer.frames() if name == "disposition"]
    assert told[-1] == 50 and peer.connection.reading and not session.settled, told


def test_responses_that_are_not_taken_have_an_end_over_all_sessions():
    broker = broker_of(management_size_max=2048, properties_size_max=128, binding_count_max=100, binding_share_max=100)
    peer = Peer(broker)
    pair(peer, 0)
    for number in range(60):
        broker.topology.bind(peer.connection, "q", "amq.direct", b"key %d" % number, {})
    for number in range(4):
        ask(peer, number, "GET", "/bindings?src=amq.direct&dstq=q&key=key%20" + str(number))
    waits = sum([len(each[1]) for each in peer.connection.session.mapped[0].responses])
    assert 0 < waits <= 8192 + 1024
    peer.credit(10)
    assert [status for status, _ in responses(peer)] == ["200"] * 4


def test_the_error_says_which_limit():
    broker = broker_of(link_count_max=1)
    peer = Peer(broker)
    assert many(peer, 0, 1) == []
    peer.give(performative("attach", name="x", handle=9, role=True, source=("source", {"address": "/queues/q"}), target=("target", {})))
    condition, text = error_in(peer.frames(), "detach")
    assert condition == FULL and "link_count_max" in text

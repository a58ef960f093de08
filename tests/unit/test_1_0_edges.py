"""Edges of parts 2 to 5 of AMQP 1.0 that a second reading by another reader looked for: each test names its section."""

from peer_1_0 import Peer, answers, data, declare, error_in, new_broker, one_by_one, performative
from test_1_0_transactions import VALUE, new

from leveret.core.amqp_1_0 import composites, frame, types
from leveret.core.outcomes import nobody

FIRST = {"handle": 0, "delivery_id": 0, "delivery_tag": b"t", "message_format": 0}
EMPTY = frame.write(frame.AMQP, 0, b"")


def transfer(octets, **given):
    return performative("transfer", 0, octets, **given)


def ready(messages=0, **given):
    """A peer with a sender to q, and so many messages there."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    peer.sender(**given)
    for number in range(messages):
        peer.send(number, b"%d" % number)
    peer.frames()
    return peer


def logged_in():
    """A peer that has not opened."""
    peer = Peer(new_broker(), opens=False)
    peer.log_in()
    return peer


def in_pieces(octets, make):
    """What comes back for many octets, however they are cut, and the last peer: `answers`, at fewer places."""
    first = peer = None
    for size in (len(octets), 1, 7, 64):
        peer = make()
        for at in range(0, len(octets), size):
            peer.give(octets[at : at + size])
        found = peer.frames()
        assert first is None or one_by_one(found) == one_by_one(first), size
        first = found
    return first, peer


def states_in(frames):
    """(delivery-id, name of the state) of each delivery in dispositions."""
    return [(fields["first"], fields["state"][0]) for name, fields, _, _ in one_by_one(frames) if name == "disposition"]


# Connections


def test_an_empty_frame_stands_behind_the_open_too():
    """Sections 2.4.1 and 2.4.5: the first frame has an open; "Empty frames can only be sent after the open frame is sent.\""""
    found, _ = answers(EMPTY, logged_in)
    assert [each[0] for each in found] == ["open", "close"]
    assert error_in(found, "close")[0] == "amqp:illegal-state"
    found, _ = answers(EMPTY + performative("close"))
    assert [each[0] for each in found] == ["close"] and error_in(found, "close") is None


def test_any_frame_on_a_channel_above_channel_max_is_a_framing_error():
    """Sections 2.7.1, channel-max, 2.4.3 and 2.4.5: a close and an empty frame come on any channel up to the highest."""
    for octets in (performative("close", 4), frame.write(frame.AMQP, 4, b""), performative("open", 4, container_id="x")):
        found, peer = answers(octets, channel_max=3)
        assert error_in(found, "close")[0] == "amqp:connection:framing-error" and peer.connection.ending
    discarded = performative("end", 2) + performative("end", 4) + frame.write(frame.AMQP, 4, b"")  # section 2.4.6, DISCARDING
    found, peer = answers(discarded, channel_max=3)
    assert error_in(found, "close")[0] == "amqp:illegal-state" and not peer.connection.ending
    found, _ = answers(frame.write(frame.AMQP, 3, b"") + performative("close", 3), channel_max=3)
    assert [(each[0], each[1]["error"]) for each in found] == [("close", None)]


def test_an_idle_time_out_of_zero_is_none():
    """Section 2.7.1: "A value of zero is the same as if it was not set.\""""
    peer = Peer(new_broker(heartbeat_s=0), idle_time_out=0)
    assert peer.opened["idle-time-out"] is None
    peer.frames()
    for now in (1000, 100000, 10000000):
        peer.broker.tick(now, 0)
        peer.connection.tick(now)
        assert peer.frames() == []


def test_an_attach_whose_answer_is_too_large_for_its_peer_ends_the_session():
    """Sections 2.7.3 and 2.8.15, frame-size-too-small: the connection and its other sessions go on."""
    broker = new_broker()
    declare(broker)
    for role in (False, True):
        peer = Peer(broker, max_frame_size=512)
        peer.begin(1)
        terminus = {"address": "/queues/q", "capabilities": ["c%060d" % number for number in range(10)]}
        given = {"target": ("target", terminus), "initial_delivery_count": 0} if not role else {"source": ("source", terminus)}
        peer.give(performative("attach", 0, name="large", handle=0, role=role, **given))
        found = peer.frames()
        assert error_in(found, "end")[0] == "amqp:frame-size-too-small" and [each[3] for each in found] == [0]
        peer.give(performative("end"))
        peer.attach("small", 0, role, "/queues/q", channel=1)
        assert len(broker.queues["q"].consumers) == role
        peer.give(performative("close"))
        assert peer.connection.ending and broker.counters["internal_errors"] == 0


# Sessions


def test_transfer_ids_go_around():
    """Section 2.5.6, RFC 1982: next-incoming-id behind 2^32 - 1, of transfers and of a flow; the largest window."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker, begins=False)
    peer.begin(next_outgoing_id=0xFFFFFFFE, incoming_window=0xFFFFFFFF, outgoing_window=0xFFFFFFFF)
    peer.sender()
    windows = {"incoming_window": 0xFFFFFFFF, "outgoing_window": 0xFFFFFFFF, "echo": True}
    for number in range(3):
        peer.send(number, b"%d" % number)
        peer.frames()
        peer.give(performative("flow", next_incoming_id=0, next_outgoing_id=(0xFFFFFFFF + number) & 0xFFFFFFFF, **windows))
        ((_, fields, _, _),) = peer.frames()
        assert fields["next-incoming-id"] == (0xFFFFFFFF + number) & 0xFFFFFFFF and fields["handle"] is None
    peer.receiver(credit=0)
    peer.credit(0xFFFFFFFF, incoming_window=0xFFFFFFFF)
    assert len(peer.messages()) == 3


def test_a_delivery_count_goes_around():
    """Section 2.6.7, RFC 1982: a sender begins anywhere."""
    peer = ready(initial_delivery_count=0xFFFFFFFE)
    for number in range(3):
        peer.send(number, b"")
    flow = {"next_incoming_id": 0, "incoming_window": 9, "next_outgoing_id": 3, "outgoing_window": 9}
    peer.frames()
    peer.give(performative("flow", handle=0, delivery_count=3, echo=True, **flow))
    fields = peer.frames()[-1][1]
    assert fields["delivery-count"] == 3


# Links


def test_a_receiver_that_has_not_seen_our_attach_counts_from_its_delivery_count():
    """Section 2.6.7: without delivery-count a flow is counted from the initial one, however much was sent meanwhile."""
    for messages in (8, 3):
        peer = ready(messages)
        peer.attach("in", 1, True, "/queues/q")
        peer.credit(3, delivery_count=None)
        assert len(peer.messages()) == 3
        peer.credit(3, delivery_count=None)
        assert peer.messages() == []
        peer.credit(5, delivery_count=None)
        peer.send(messages, b"more")
        peer.send(messages + 1, b"more")
        peer.send(messages + 2, b"more")
        assert len(peer.messages()) == 2


def test_a_controllers_attach_says_its_delivery_count():
    """Section 2.7.3, initial-delivery-count: not null where the role is sender."""
    peer = ready()
    peer.give(performative("attach", name="txn", handle=3, role=False, target=("coordinator", {})))
    found = peer.frames()
    assert [each[0] for each in found] == ["attach", "detach"] and found[0][1]["target"] is None
    assert error_in(found, "detach")[0] == "amqp:invalid-field"


NO_TERMINI = (5, True, "text", b"octets", [], {}, ("uint", 1), ("described", ("ulong", 0x99), []), ("accepted", {}))


def test_a_terminus_that_is_none_is_refused_at_both_ends():
    """Section 2.7.3: a source is a source, a target a target or a coordinator (4.5.1), also where the peer says its own."""
    for given in NO_TERMINI:
        for role in (False, True):
            for end in ("source", "target"):
                peer = ready()
                fields = {"source": ("source", {"address": "/queues/q"}), "target": ("target", {"address": "/queues/q"})}
                fields[end] = given
                peer.give(performative("attach", name="x", handle=5, role=role, initial_delivery_count=0, **fields))
                found = peer.frames()
                assert [each[0] for each in found] == ["attach", "detach"], (given, role, end, found)
                assert error_in(found, "detach")[0] == "amqp:invalid-field" and found[0][1]["source" if role else "target"] is None
                peer.send(0, b"x")
                assert states_in(peer.frames()) == [(0, "accepted")] and peer.broker.counters["internal_errors"] == 0


def test_a_dynamic_node_goes_with_the_session_of_its_link():
    """Sections 3.5.6, session-end, and 3.5.10 to 3.5.13: a link ends with its session; nodes that wait for messages wait."""
    for role in (False, True):
        for policy, stays in ((0x2B, False), (0x2C, False), (0x2D, True), (0x2E, True)):
            peer = ready()
            peer.begin(1)
            node = {"dynamic": True, "dynamic-node-properties": {("symbol", "lifetime-policy"): ("described", ("ulong", policy), [])}}
            given = {"source": ("source", node)} if role else {"target": ("target", node), "initial_delivery_count": 0}
            peer.give(performative("attach", 1, name="d", handle=0, role=role, **given))
            address = peer.expect("attach")[1]["source" if role else "target"][1]["address"]
            peer.frames()
            peer.sender(address, "s", 5)
            peer.send(0, b"x", 5)
            peer.frames()
            peer.give(performative("detach", handle=5, closed=True) + performative("end", 1))
            assert [each[0] for each in peer.frames()] == ["detach", "end"]
            assert (len(peer.broker.queues) == 2) is stays, (role, policy)


def test_a_resumed_delivery_that_we_do_not_know_is_ignored_in_every_settle_mode_and_by_every_target():
    """Sections 2.6.13 and 2.7.5, resume: no link ends for it, no request is done, and the next delivery counts."""
    for mode in (0, 1, 2):
        peer = ready(snd_settle_mode=mode)
        for more in (False, True):
            given = dict(FIRST, delivery_id=int(more), settled=mode == 1)
            peer.give(transfer(data(b"x"), resume=True, more=more, **given) + (transfer(b"", handle=0) if more else b""))
        assert peer.frames() == [] and peer.broker.queues["q"].message_count() == 0
        peer.send(2, b"new", settled=mode == 1)
        assert states_in(peer.frames()) == ([] if mode == 1 else [(2, "accepted")])
        assert peer.broker.queues["q"].message_count() == 1
    peer, _ = new()
    peer.transfer(9, VALUE + composites.write("declare", {}), resume=True)
    assert peer.frames() == [] and peer.connection.session.mapped[0].works == {}
    assert peer.begin_work()
    peer.sender("/management", "m", 4)
    peer.attach("m", 5, True, "/management")
    peer.credit(10, 5)
    peer.frames()
    octets = composites.write("properties", {"message-id": ("ulong", 1), "to": "/queues/made", "subject": "PUT", "reply-to": "$me"})
    peer.transfer(4, octets + VALUE + types.encode({}), resume=True)
    assert peer.frames() == [] and "made" not in peer.broker.queues
    peer.transfer(4, octets + VALUE + types.encode({}))
    assert sorted([each[0] for each in peer.frames() if each[0] != "flow"]) == ["disposition", "transfer"] and "made" in peer.broker.queues


def test_a_subscription_that_goes_with_its_link_says_so():
    """Section 2.6.3: our attach reports the terminus as it was made; 3.5.5 and 3.5.6."""
    asked = {"address": "/topic/a", "durable": 0, "expiry-policy": "never", "timeout": 60}
    peer = ready()
    source = peer.attach("t", 1, True, None, source=("source", asked))["source"][1]
    assert (source["durable"], source["expiry-policy"], source["timeout"]) == (0, "link-detach", 0)
    peer.give(performative("detach", handle=1))
    peer.frames()
    assert list(peer.broker.queues) == ["q"]
    source = peer.attach("d", 1, True, None, source=("source", dict(asked, durable=1)))["source"][1]
    assert (source["durable"], source["expiry-policy"]) == (1, "never")
    peer.give(performative("detach", handle=1))
    peer.frames()
    assert len(peer.broker.queues) == 2


def test_a_handle_is_free_at_once_behind_its_detach():
    """Sections 2.6.2 and 2.8.4, in one write; a link of the other direction takes it, and an attach that was refused gives it back."""
    target = ("target", {"address": "/queues/q"})
    none = ("target", {"address": "/queues/none"})
    source = ("source", {"address": "/queues/q"})
    octets = performative("detach", handle=0, closed=True) + performative("attach", name="r", handle=0, role=True, source=source)
    octets += performative("detach", handle=0) + performative(
        "attach", name="n", handle=0, role=False, target=none, initial_delivery_count=0
    )
    octets += performative("detach", handle=0) + performative(
        "attach", name="s", handle=0, role=False, target=target, initial_delivery_count=0
    )
    found, peer = in_pieces(octets, ready)
    assert [each[0] for each in found] == ["detach", "attach", "detach", "attach", "detach", "attach", "flow"]
    peer.send(0, b"x")
    assert states_in(peer.frames()) == [(0, "accepted")] and peer.broker.queues["q"].message_count() == 1


def test_detaches_that_cross_end_the_link_once():
    """Section 2.6.4: our detach for an error and the peer's own, which answers it."""
    for closed in (False, True):
        peer = ready()
        peer.receiver()
        peer.broker.topology.delete_queue(nobody, "q", False, False)
        peer.give(performative("detach", handle=1, closed=closed, error={"condition": "amqp:internal-error"}))
        assert [each[0] for each in peer.frames()] == ["detach"]
        declare(peer.broker)
        peer.receiver()
        assert peer.frames() == []


def test_what_was_pipelined_behind_an_attach_that_is_refused_is_dropped():
    """Sections 2.6.3 and 2.6.5: flows, transfers and dispositions were on their way."""
    none = {"address": "/queues/none"}
    octets = performative("attach", name="s", handle=2, role=False, target=("target", none), initial_delivery_count=0)
    octets += transfer(data(b"x"), **dict(FIRST, handle=2)) + performative("attach", name="r", handle=3, role=True, source=("source", none))
    octets += performative("flow", handle=3, link_credit=5, drain=True, echo=True, **BEGIN_FLOW)
    octets += performative("disposition", role=True, first=0, last=9, settled=True) + transfer(data(b"y"), **dict(FIRST, delivery_id=1))
    found, peer = in_pieces(octets, ready)
    assert [each[0] for each in found] == ["attach", "detach", "attach", "detach", "disposition"]
    assert states_in(found) == [(1, "accepted")] and peer.broker.queues["q"].message_count() == 1


BEGIN_FLOW = {"next_incoming_id": 0, "incoming_window": 100, "next_outgoing_id": 1, "outgoing_window": 100}


def test_a_flow_says_the_drain_that_its_receiver_said_last():
    """Sections 2.6.7 and 2.7.4: drain without credit, then credit without drain: nothing of that is used up."""
    peer = ready()
    peer.receiver(credit=0)
    peer.credit(0, drain=True)
    ((_, fields, _, _),) = peer.frames()
    assert (fields["delivery-count"], fields["link-credit"], fields["drain"]) == (0, 0, True)
    peer.credit(3, drain=True)
    ((_, fields, _, _),) = peer.frames()
    assert (fields["delivery-count"], fields["link-credit"], fields["drain"]) == (3, 0, True)
    peer.credit(4, delivery_count=3)
    assert peer.frames() == []
    peer.credit(4, delivery_count=3, echo=True)
    ((_, fields, _, _),) = peer.frames()
    assert (fields["delivery-count"], fields["link-credit"], fields["drain"]) == (3, 4, False)
    peer.send(0, b"x")
    assert len(peer.messages()) == 1


# Dispositions


def test_a_role_is_about_its_own_deliveries():
    """Section 2.7.6, role: delivery-ids of both directions are alike, and mean others."""
    peer = ready(3)
    peer.receiver()
    ours = [each[0] for each in peer.messages()]
    peer.give(performative("disposition", role=False, first=0, last=10, settled=True, state=("accepted", {})))
    assert peer.broker.queues["q"].unsettled_count() == 3 and peer.frames() == []
    peer.settle(ours[0], ("accepted", {}), ours[-1])
    assert peer.broker.queues["q"].unsettled_count() == 0 and peer.broker.queues["q"].message_count() == 0


def test_what_is_settled_stays_settled():
    """Section 2.6: a delivery goes from unsettled to settled and never back: a second outcome is without effect."""
    peer = ready(2)
    peer.receiver()
    first, second = [each[0] for each in peer.messages()]
    peer.settle(first, ("accepted", {}))
    peer.settle(first, ("released", {}), second)
    assert [(number, body) for number, body in peer.messages()] == [(second + 1, b"1")]
    assert peer.broker.queues["q"].message_count() + peer.broker.queues["q"].unsettled_count() == 1


# The anonymous terminus


def test_a_settled_message_over_the_anonymous_terminus_to_an_exchange_without_a_binding_is_dropped():
    """AMQP Anonymous Terminus 1.0, 2.2.2.2, and section 3.4.4: its exchange is there; no queue takes it, and nobody waits for an outcome.
    An unsettled one is released, and one to no exchange is rejected."""
    for part in (False, True):
        peer = ready()
        peer.attach("anon", 4, False, None)
        peer.expect("flow")

        def send(number, to, part=part, peer=peer, **given):
            octets = composites.write("properties", {"to": to}) + data(b"x")
            fields = dict(FIRST, handle=4, delivery_id=number, **given)
            peer.give(transfer(octets[:9], more=True, **fields) + transfer(octets[9:], handle=4) if part else transfer(octets, **fields))

        send(0, "/exchanges/amq.direct/nobody", settled=True)
        assert peer.frames() == [] and peer.broker.counters["returned"] == 1
        send(1, "/exchanges/amq.direct/nobody")
        send(2, "/exchanges/none/nobody")
        send(3, "/queues/q", settled=True)
        send(4, "/queues/q")
        assert states_in(peer.frames()) == [(1, "released"), (2, "rejected"), (4, "accepted")]
        assert peer.broker.queues["q"].message_count() == 2


# Transactions


def test_a_txn_id_of_any_type_is_answered():
    """Sections 4.3 and 4.5.8: an identifier that is no transaction's, also one that no table of ours could have as a key."""
    for id_ in ([], {}, [{}], ("array", "uint", [1]), ("described", ("ulong", 1), []), "text", ("uuid", bytes(16))):
        peer, _ = new(1)
        assert peer.discharge(id_)[1]["error"]["condition"] == "amqp:transaction:unknown-id", id_
        peer.transfer(0, data(b"a"), state=("transactional-state", {"txn-id": id_}))
        assert error_in(peer.frames(), "detach")[0] == "amqp:transaction:unknown-id"
        peer.receiver()
        ((number, _),) = peer.messages()
        peer.retire(id_, number)
        assert error_in(peer.frames(), "end")[0] == "amqp:transaction:unknown-id"
        assert peer.broker.counters["internal_errors"] == 0


def test_a_request_to_the_management_of_hubs_of_any_type_is_answered():
    """Section 3.2.5: values of application-properties may be of any type; one that is not a text names no type of entity."""
    peer = ready()
    peer.sender("$management", "m", 4)
    peer.attach("m", 5, True, "$management")
    peer.credit(10, 5)
    peer.frames()
    for number, type_ in enumerate(([], {}, ("array", "uint", [1]), None, 5)):
        asked = {"operation": "READ", "type": type_, "name": "h"}
        octets = composites.write("properties", {"message-id": ("ulong", 1)})
        octets += types.encode(("described", ("ulong", 0x74), asked)) + VALUE + types.encode(None)
        peer.give(transfer(octets, handle=4, delivery_id=number, delivery_tag=b"t"))
        ((_, _, payload, _),) = [each for each in peer.frames() if each[0] == "transfer"]
        assert types.encode({"status-code": ("int", 501)})[3:] in payload, type_

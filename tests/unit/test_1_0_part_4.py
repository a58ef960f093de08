"""Parts 4 (transactions) and 5 (security) of AMQP 1.0, sentence by sentence: what other files of tests do not show. Each test names its
section."""

from peer_1_0 import Peer, data, error_in, new_broker, performative, sasl
from test_1_0_transactions import VALUE, new

from leveret.core.amqp_1_0 import composites, frame, types
from leveret.core.amqp_1_0.spec_1_0 import HEADER_SASL
from leveret.core.memory import invariants


def in_work(id_):
    return ("transactional-state", {"txn-id": id_})


def settled_state(peer):
    return [fields["state"] for name, fields, _, _ in peer.frames() if name == "disposition"]


# Part 4


def test_a_discharge_while_a_delivery_is_half_sent_ends_the_control_link():
    """Section 4.4.1: "It is an error for the controller to attempt to discharge a transaction against which a partial delivery has been
    posted. If this happens, the control link MUST be terminated with the transaction-rollback error."""
    for fail in (False, True):
        peer, queue = new()
        id_, other = peer.begin_work(), peer.begin_work()
        peer.post(id_, b"whole")
        octets = data(bytes(1500))
        peer.transfer(0, octets[:900], state=in_work(id_), more=True)
        peer.transfer(9, VALUE + composites.write("discharge", {"txn-id": id_, "fail": fail}))
        assert error_in(peer.frames(), "detach")[0] == "amqp:transaction:rollback"
        peer.give(performative("transfer", 0, octets[900:], handle=0))
        ((name, fields),) = settled_state(peer)  # the transaction is over: so is what was posted in it
        assert name == "rejected" and fields["error"]["condition"] == "amqp:transaction:unknown-id"
        assert queue.message_count() == 0 and other not in peer.connection.session.mapped[0].works
        assert peer.broker.tables.transactions_left == peer.broker.limits.transaction_count_max
        invariants.check(peer.broker.tables)


def test_a_half_sent_delivery_of_another_transaction_does_not_matter():
    peer, queue = new()
    id_, other = peer.begin_work(), peer.begin_work()
    peer.post(id_, b"whole")
    octets = data(bytes(1500))
    peer.transfer(0, octets[:900], state=in_work(other), more=True)
    assert peer.discharge(id_) == ("accepted", {}) and queue.message_count() == 1
    peer.give(performative("transfer", 0, octets[900:], handle=0, state=in_work(other)))
    assert peer.heard()[0] == "transactional-state"
    assert peer.discharge(other) == ("accepted", {}) and queue.message_count() == 2


def test_all_transfers_of_a_delivery_are_of_one_transaction():
    """Section 4.4.1: "If delivery is split across several transfer frames then all frames MUST be explicitly associated with the same
    transaction." Those that say nothing go with the first; another transaction ends the link."""
    for first, second in ((0, 1), (None, 0)):
        peer, queue = new()
        ids = [peer.begin_work(), peer.begin_work()]
        octets = data(bytes(1000))
        given = {} if first is None else {"state": in_work(ids[first])}
        peer.transfer(0, octets[:500], more=True, **given)
        peer.give(performative("transfer", 0, octets[500:], handle=0, state=in_work(ids[second])))
        assert error_in(peer.frames(), "detach")[0] == "amqp:invalid-field"
        assert queue.message_count() == 0
        invariants.check(peer.broker.tables)


def test_an_outcome_for_a_delivery_of_another_transaction_ends_the_control_link():
    """Section 4.4.2: "the delivery MUST NOT be associated with a different non discharged transaction than the outcome. If this happens
    then the control link MUST be terminated with a transaction-rollback error." Retired in another one, or acquired."""
    for acquires in (False, True):
        peer, queue = new(1)
        ids = [peer.begin_work(), peer.begin_work()]
        peer.receiver(credit=0)
        peer.credit(1, **({"properties": {("symbol", "txn-id"): ids[0]}} if acquires else {}))
        ((number, _),) = peer.messages()
        if not acquires:
            peer.retire(ids[0], number)
        peer.retire(ids[1], number)
        frames = peer.frames()
        assert error_in(frames, "detach")[0] == "amqp:transaction:rollback" and not [each for each in frames if each[0] == "end"]
        peer.give(performative("detach", handle=9, closed=True))
        peer.broker.run()
        assert queue.message_count() + queue.unsettled_count() == 1 and not peer.connection.session.mapped[0].works
        assert peer.broker.tables.transactions_left == peer.broker.limits.transaction_count_max
        invariants.check(peer.broker.tables)


def test_an_outcome_for_a_delivery_of_another_transaction_ends_no_other_control_link():
    """Section 4.4.2: "the control link MUST be terminated", the one that declared the outcome's transaction."""
    peer, queue = new(1)
    id_ = peer.begin_work()
    peer.attach("second", 8, False, None, target=("coordinator", {}))
    peer.expect("flow")
    peer.transfer(8, VALUE + composites.write("declare", {}))
    other = peer.heard()[1]["txn-id"]
    peer.receiver()
    ((number, _),) = peer.messages()
    peer.retire(id_, number)
    peer.retire(other, number)
    assert [fields["handle"] for name, fields, _, _ in peer.frames() if name == "detach"] == [8]
    assert peer.discharge(id_) == ("accepted", {}) and queue.message_count() + queue.unsettled_count() == 0
    invariants.check(peer.broker.tables)


def test_what_was_settled_in_a_transaction_that_fails_comes_to_the_default_outcome_of_its_source():
    """Section 4.4.4.2: "the resource MUST apply the default outcome": released where the source names none."""
    for default, count in ((None, 0), (("released", {}), 0), (("modified", {"delivery-failed": True}), 1), (("rejected", {}), None)):
        peer, queue = new(1)
        peer.receiver(credit=1, source=("source", {"address": "/queues/q", "default-outcome": default}))
        ((number, _),) = peer.messages()
        id_ = peer.begin_work()
        peer.retire(id_, number)
        assert peer.discharge(id_, True) == ("accepted", {})
        assert queue.unsettled_count() == 0 and queue.message_count() == (0 if count is None else 1)
        if count is not None:
            peer.credit(1, delivery_count=1)
            ((_, _, octets, _),) = [each for each in peer.frames() if each[0] == "transfer"]
            name, fields, _ = composites.read(octets, 0, len(octets)) if count else ("header", {"delivery-count": 0}, 0)
            assert (name, fields["delivery-count"]) == ("header", count) and (count or octets == data(b"old"))


def test_a_settled_posting_that_cannot_be_taken_keeps_its_transaction_from_its_discharge():
    """Section 4.4.4.1: "Should the resource be unable to process the delivery it MUST NOT allow the successful discharge of the associated
    transaction." Without a route, and no message at all."""
    for address, octets, ends in (("/exchanges/amq.direct/nowhere", data(b"x"), False), ("/queues/q", b"\x00\x53\x01\x45", True)):
        peer, queue = new()
        peer.attach("settles", 5, False, address, snd_settle_mode=1)
        id_, other = peer.begin_work(), peer.begin_work()
        peer.post(id_, b"whole")
        peer.transfer(5, octets, settled=True, state=in_work(id_))
        assert (error_in(peer.frames(), "detach")[0] == "amqp:decode-error") if ends else not settled_state(peer)
        name, fields = peer.discharge(id_)
        assert name == "rejected" and fields["error"]["condition"] == "amqp:transaction:rollback" and queue.message_count() == 0
        peer.post(other, b"y")
        assert peer.discharge(other) == ("accepted", {}) and queue.message_count() == 1


def test_a_controller_whose_source_does_not_take_rejected_is_detached():
    """Section 4.2: "If the source does not support the rejected outcome, the transactional resource MUST detach the link to the
    coordinator, with the detach performative carrying the transaction-error"; where it does, the message is rejected with that."""
    for outcomes in (["amqp:accepted:list"], ["amqp:accepted:list", "amqp:rejected:list"], []):
        peer = Peer(new_broker())
        source = ("source", {"outcomes": outcomes})
        peer.attach("txn", 9, False, None, source=source, target=("coordinator", {}))
        peer.frames()
        octets = VALUE + composites.write("discharge", {"txn-id": b"none"})
        peer.give(performative("transfer", 0, octets, handle=9, delivery_id=0, delivery_tag=b"0"))
        frames = peer.frames()
        if len(outcomes) == 1:
            assert error_in(frames, "detach")[0] == "amqp:transaction:unknown-id"
        else:
            (state,) = [fields["state"] for name, fields, _, _ in frames if name == "disposition"]
            assert state[0] == "rejected" and state[1]["error"]["condition"] == "amqp:transaction:unknown-id"


def test_a_transaction_of_another_control_link_or_session_is_refused_with_where_it_can_be_used():
    """Section 4.5.8, unknown-id; 4.5.7: without amqp:multi-ssns-per-txn a transaction stays within its session."""
    peer, queue = new()
    id_ = peer.begin_work()
    peer.attach("txn 2", 8, False, None, target=("coordinator", {}))
    peer.expect("flow")
    peer.transfer(8, VALUE + composites.write("discharge", {"txn-id": id_, "fail": False}))
    error = peer.heard()[1]["error"]
    assert error["condition"] == "amqp:transaction:unknown-id"
    assert "was declared over another control link: discharge it over that one" in error["description"]
    peer.begin(1)
    peer.attach("txn 3", 9, False, None, 1, target=("coordinator", {}))
    peer.expect("flow")
    octets = VALUE + composites.write("discharge", {"txn-id": id_, "fail": False})
    peer.give(performative("transfer", 1, octets, handle=9, delivery_id=0, delivery_tag=b"0"))
    error = peer.heard()[1]["error"]
    assert error["condition"] == "amqp:transaction:unknown-id"
    assert "was declared in the session on channel 0: use and discharge it in that session" in error["description"]
    peer.attach("out 1", 0, False, "/queues/q", 1)
    peer.expect("flow")
    peer.give(performative("transfer", 1, data(b"x"), handle=0, delivery_id=1, delivery_tag=b"1", state=in_work(id_)))
    condition, text = error_in(peer.frames(), "detach")
    assert condition == "amqp:transaction:unknown-id" and "in the session on channel 0" in text
    assert peer.post(id_, b"a")[0] == "transactional-state" and peer.discharge(id_) == ("accepted", {})
    assert queue.message_count() == 1
    error = peer.discharge(id_)[1]["error"]
    assert "is the txn-id of no transaction of this session" in error["description"]


def test_other_sections_of_a_message_to_a_coordinator_are_ignored():
    """Section 4.2: "Other standard message sections such as the header section SHOULD be ignored."""
    peer, _ = new()
    lead = composites.write("header", {"durable": True, "ttl": 1}) + b"\x00\x53\x74" + types.encode({"a": 1})
    peer.transfer(9, lead + VALUE + composites.write("declare", {}))
    assert peer.heard()[0] == "declared"


def test_a_txn_id_has_at_most_32_octets():
    """Section 4.5.5."""
    assert len(new()[0].begin_work()) <= 32


def test_transactions_end_with_their_connection_as_failed():
    """Section 4.2: what is not discharged when the control link goes is rolled back."""
    peer, queue = new(1)
    id_ = peer.begin_work()
    peer.receiver(credit=5)
    ((number, _),) = peer.messages()
    peer.retire(id_, number)
    peer.post(id_, b"x")
    peer.connection.received(0)
    peer.broker.run()
    assert (queue.message_count(), queue.unsettled_count()) == (1, 0)
    assert peer.broker.tables.transactions_left == peer.broker.limits.transaction_count_max
    invariants.check(peer.broker.tables)


# Part 5


def begun(broker=None):
    """A peer behind the mechanisms."""
    peer = Peer(broker or new_broker(), opens=False)
    peer.give(HEADER_SASL)
    assert peer.take(8) == HEADER_SASL
    peer.expect("sasl-mechanisms")
    return peer


PLAIN = sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00guest")


def test_bytes_6_and_7_and_an_extended_header_of_a_sasl_frame_are_ignored():
    """Section 5.3.1: "Bytes 6 and 7 of the header are ignored"; "the extended header is ignored"."""
    for octets in (
        PLAIN[:6] + b"\xff\xfe" + PLAIN[8:],
        bytes((0, 0, 0, len(PLAIN) + 8, 4)) + PLAIN[5:8] + b"extended" + PLAIN[8:],
    ):
        for step in (0, 1):
            peer = begun()
            peer.step = step
            peer.give(octets)
            assert peer.expect("sasl-outcome")[1]["code"] == 0


def test_an_empty_sasl_frame_and_one_that_is_none_end_the_connection():
    """Section 5.3.1: "Receipt of an empty frame is an irrecoverable error"; "the frame body MUST contain exactly one AMQP type, whose type
    encoding MUST have provides=sasl-frame"."""
    for octets in (
        frame.write(frame.SASL, 0, b""),
        frame.write(frame.SASL, 0, types.encode(5)),
        frame.write(frame.SASL, 0, composites.write("open", {"container-id": "x"})),
        frame.write(frame.SASL, 0, PLAIN[8:] + b"\x40"),
        frame.write(frame.AMQP, 0, PLAIN[8:]),
        sasl("sasl-response", response=b"x"),
        sasl("sasl-outcome", code=0),
        sasl("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"]),
    ):
        for step in (0, 1):
            peer = begun()
            peer.step = step
            peer.give(octets + PLAIN)
            assert peer.connection.closed or peer.connection.state != "served", octets
            assert not [each for each in peer.frames() if each[0] == "sasl-outcome" and each[1]["code"] == 0], octets
            assert peer.broker.counters["internal_errors"] == 0


def test_our_sasl_frames_and_our_open_have_at_most_512_octets():
    """Sections 5.3.1 and 2.4.1: no frame is larger before max-frame-size is known (MIN-MAX-FRAME-SIZE)."""
    broker = new_broker()
    peer = Peer(broker, opens=False)
    peer.give(HEADER_SASL)
    peer.collect()
    assert 8 < len(peer.inbox) <= 8 + 512 and peer.inbox[13] == frame.SASL and peer.inbox[12] == 2
    peer = Peer(broker, opens=False)
    peer.log_in()
    peer.give(performative("open", container_id="x"))
    peer.collect()
    assert len(peer.inbox) <= 512


def test_a_peer_that_is_silent_during_the_log_in_is_let_go():
    """Section 2.4.5 begins with the open: before it the broker's login_timeout holds."""
    broker = new_broker()
    peer = begun(broker)
    broker.tick(broker.now + broker.limits.login_timeout_ms + 1000, 0)
    peer.connection.tick(broker.now)
    assert peer.connection.closed or peer.connection.state != "served"


def test_nothing_is_told_beside_the_code_of_an_outcome():
    """Section 5.3.3.6: additional-data is not set where the log-in has failed."""
    peer = begun()
    peer.give(sasl("sasl-init", mechanism="NONE", initial_response=b""))
    peer.broker.tick(2000, 0)
    peer.connection.tick(2000)
    name, fields, _, _ = peer.expect("sasl-outcome")
    assert (fields["code"], fields["additional-data"]) == (1, None)

"""Links of AMQP 1.0: part 2, sections 2.6.1 to 2.6.6 and 2.7.3, 2.7.7; part 3, section 3.5."""

from peer_1_0 import Peer, answers, data, declare, error_in, new_broker, one_by_one, performative

from leveret.core.outcomes import nobody

SOURCE = ("source", {"address": "/queues/q"})
TARGET = ("target", {"address": "/queues/q"})


def ready(**limits):
    """A peer with a session, and a queue."""
    broker = new_broker(**limits)
    declare(broker)
    return Peer(broker)


def test_an_attach_of_a_sender_is_answered_octet_for_octet_with_credit_behind_it():
    """Sections 2.7.3 and 2.6.7."""
    peer = ready()
    peer.give(performative("attach", name="a", handle=3, role=False, target=TARGET, initial_delivery_count=5))
    attach = peer.take(200)
    size = int.from_bytes(attach[:4], "big")
    flow, attach = attach[size:], attach[:size]
    assert attach[8:].startswith(bytes.fromhex("005312c0")) and b"\xa1\x01a\x52\x03\x41\x50\x02\x50\x00" in attach
    assert attach.endswith(b"\x80\x00\x00\x00\x00\x00\x00\x30\x00\x40\x40\x40"), attach
    assert flow[8:].hex() == "005313c0170b" + "43" + "7000000800" + "43" + "707fffffff" + "5203" + "5205" + "5228" + "40" * 4


def test_the_answer_to_an_attach_says_both_settle_modes_and_both_termini():
    """Sections 2.7.3 and 2.8.2, 2.8.3."""
    for role in (False, True):
        for sender in (0, 1, 2):
            for receiver in (0, 1):
                peer = ready()
                given = {"snd_settle_mode": sender, "rcv_settle_mode": receiver, "source": SOURCE, "target": TARGET}
                fields = peer.attach("a", 0, role, "/queues/q", **given)
                assert fields["role"] is not role and fields["handle"] == 0 and fields["name"] == "a"
                assert fields["rcv-settle-mode"] == (receiver if role else 0)  # second: test_1_0_dispositions
                assert fields["snd-settle-mode"] == (sender if not role else 1 if sender == 1 else 0)
                assert fields["source"][1]["address"] == fields["target"][1]["address"] == "/queues/q"
                assert (fields["initial-delivery-count"] == 0) is role
                if role:
                    assert fields["source"][1]["default-outcome"] == ("released", {})
                    assert fields["source"][1]["distribution-mode"] == "move" and len(fields["source"][1]["outcomes"]) == 4
                else:
                    assert fields["max-message-size"] == peer.broker.limits.content_size_max


REFUSED = [
    (False, {"target": ("target", {"address": "/queues/none"})}, "amqp:not-found"),
    (False, {"target": ("target", {"address": "/exchanges/none"})}, "amqp:not-found"),
    (False, {"target": ("target", {"address": "/none/q"})}, "amqp:invalid-field"),
    (False, {"target": None}, "amqp:invalid-field"),
    (False, {"target": ("accepted", {})}, "amqp:invalid-field"),
    (False, {"target": TARGET, "initial_delivery_count": None}, "amqp:invalid-field"),
    (True, {"source": ("source", {"address": "/queues/none"})}, "amqp:not-found"),
    (True, {"source": None}, "amqp:not-found"),  # asks for the subscription of its name (JMS mapping, 8.8)
    (
        True,
        {"source": ("source", {"address": "/queues/q", "default-outcome": ("received", {"section-number": 0, "section-offset": 0})})},
        "amqp:invalid-field",
    ),
]


def test_an_attach_that_cannot_be_is_answered_by_one_without_our_terminus_and_a_detach():
    """Section 2.6.3."""
    for role, given, condition in REFUSED:
        fields = {"initial_delivery_count": 0}
        fields.update(given)
        octets = performative("attach", name="a", handle=0, role=role, **fields)
        found, peer = answers(octets, ready)
        assert [each[0] for each in found] == ["attach", "detach"]
        attach, detach = found[0][1], found[1][1]
        assert attach["source" if role else "target"] is None
        assert detach["closed"] and detach["error"]["condition"] == condition, detach["error"]
        peer.give(performative("detach", handle=0, closed=True))
        assert peer.frames() == []
        peer.sender()


def test_permissions_are_those_of_0_9_1():
    """Section 2.8.15, unauthorized-access: write on the exchange of a target, read on the queue of a source."""
    for role, permissions in ((False, (".*", "^none$", ".*")), (True, (".*", ".*", "^none$"))):
        peer = ready()
        peer.broker.access.users["guest"].permit(permissions)
        peer.give(performative("attach", name="a", handle=0, role=role, source=SOURCE, target=TARGET, initial_delivery_count=0))
        assert error_in(peer.frames(), "detach")[0] == "amqp:unauthorized-access"
        assert peer.broker.counters["access_refused"] == 1


def test_an_exclusive_queue_of_another_connection_is_locked():
    """Section 2.8.15, resource-locked."""
    peer = ready()
    other = Peer(peer.broker)
    peer.broker.topology.declare_queue(other.connection, "own", False, False, True, False, {})
    peer.give(performative("attach", name="a", handle=0, role=True, source=("source", {"address": "/queues/own"})))
    assert error_in(peer.frames(), "detach")[0] == "amqp:resource-locked"


def test_a_detach_is_answered_as_it_came_and_gives_back_what_is_not_settled():
    """Section 2.6.5: closed or not; the handle is free behind it."""
    for closed in (False, True):
        peer = ready()
        peer.sender()
        for number in range(3):
            peer.send(number, b"%d" % number)
        peer.frames()
        peer.receiver()
        assert len(peer.messages()) == 3
        peer.give(performative("detach", handle=1, closed=closed))
        ((name, fields, _, _),) = peer.frames()
        assert (name, fields["handle"], fields["closed"], fields["error"]) == ("detach", 1, closed, None)
        queue = peer.broker.queues["q"]
        assert queue.message_count() == 3 and queue.unsettled_count() == 0 and not queue.consumers
        peer.receiver(name="again")
        assert [each[1] for each in peer.messages()] == [b"0", b"1", b"2"]


def test_the_second_link_of_a_name_steals_the_first_also_from_another_connection_of_the_container():
    """Section 2.6.1; 2.8.18, stolen."""
    for role in (False, True):
        peer = ready()
        peer.attach("a", 0, role, "/queues/q")
        peer.frames()
        peer.give(performative("attach", name="a", handle=1, role=role, source=SOURCE, target=TARGET, initial_delivery_count=0))
        found = [each for each in peer.frames() if each[0] in ("attach", "detach")]
        assert [each[0] for each in found] == ["detach", "attach"] and found[0][1]["handle"] == 0
        assert found[0][1]["error"]["condition"] == "amqp:link:stolen"
        other = Peer(peer.broker)
        other.attach("a", 0, role, "/queues/q")
        assert error_in(peer.frames(), "detach")[0] == "amqp:link:stolen"
        stranger = Peer(peer.broker, container="another")
        stranger.attach("a", 0, role, "/queues/q")
        assert not [each for each in other.frames() if each[0] == "detach"]
        assert len(peer.broker.queues["q"].consumers) == (2 if role else 0)


def test_a_link_whose_queue_is_deleted_is_detached():
    """Section 2.8.15, resource-deleted."""
    peer = ready()
    peer.receiver()
    peer.broker.topology.delete_queue(nobody, "q", False, False)
    assert error_in(peer.frames(), "detach") == ("amqp:resource-deleted", "the queue 'q' was deleted")
    peer.give(performative("detach", handle=1, closed=True))
    assert peer.frames() == []


def test_a_sender_hears_with_its_next_message_that_its_queue_was_deleted():
    """Section 2.8.15, resource-deleted, as RabbitMQ 4 has it: the link would lead nowhere. What came before has its outcome."""
    for settled in (False, True):
        peer = ready()
        peer.sender("/queues/q", "to-q", 5)
        peer.send(0, b"a", 5, settled=settled)
        peer.broker.topology.delete_queue(nobody, "q", False, False)
        further = [performative("transfer", 0, data(b"b"), handle=5, delivery_id=each, delivery_tag=b"%d" % each) for each in (1, 2)]
        peer.give(b"".join(further))
        found = one_by_one(peer.frames())
        outcomes = [(fields["first"], fields["state"][0]) for name, fields, _, _ in found if name == "disposition"]
        assert outcomes == ([] if settled else [(0, "accepted")])
        assert error_in(found, "detach") == ("amqp:resource-deleted", "the queue 'q' was deleted")
        peer.give(performative("detach", handle=5, closed=True))
        assert peer.frames() == [] and peer.broker.counters["internal_errors"] == 0


def test_links_beyond_those_that_a_connection_may_have_and_names_that_are_too_long():
    peer = ready(channel_max=2)
    peer.sender(name="a", handle=0)
    peer.sender(name="b", handle=1)
    peer.give(performative("attach", name="c", handle=2, role=False, target=TARGET, initial_delivery_count=0))
    assert error_in(peer.frames(), "detach") == ("amqp:resource-limit-exceeded", "this broker takes 2 links of a connection")
    peer = ready()
    peer.give(performative("attach", name="n" * 100, handle=2, role=False, target=TARGET, initial_delivery_count=0))
    assert error_in(peer.frames(), "detach")[0] == "amqp:resource-limit-exceeded"


def dynamic(peer, role, policy, handle=0, name="d"):
    """The address of a node that is made for a link."""
    properties = {} if policy is None else {("symbol", "lifetime-policy"): ("described", ("ulong", policy), [])}
    given = {"dynamic": True, "dynamic-node-properties": properties}
    fields = {"source": ("source", given)} if role else {"target": ("target", given), "initial_delivery_count": 0}
    peer.give(performative("attach", name=name, handle=handle, role=role, **fields))
    fields = peer.expect("attach")[1]
    made = fields["source" if role else "target"][1]
    assert made["dynamic"] and made["address"].startswith("/queues/")
    return made["address"]


def test_a_dynamic_node_lives_as_its_policy_says():
    """Sections 3.5.3, 3.5.4 and 3.5.9 to 3.5.13."""
    for role in (False, True):
        for policy, for_links, for_messages in ((None, 0, 0), (0x2B, 0, 0), (0x2C, 1, 0), (0x2D, 0, 1), (0x2E, 1, 1)):
            peer = ready()
            queues = peer.broker.queues
            address = dynamic(peer, role, policy)
            assert len(queues) == 2
            peer.frames()
            peer.sender(address, "s", 5)
            peer.send(0, b"x", 5)
            peer.frames()
            peer.give(performative("detach", handle=0, closed=True))
            assert [each[0] for each in peer.frames()] == ["detach"]
            assert (len(queues) == 2) == bool(for_links or for_messages), policy
            peer.give(performative("detach", handle=5, closed=True))
            peer.frames()
            assert (len(queues) == 2) == bool(for_messages), policy
            if for_messages:
                peer.receiver(address, handle=7)
                ((number, body),) = peer.messages()
                peer.settle(number, ("accepted", {}))
                peer.give(performative("detach", handle=7, closed=True))
                peer.frames()
                assert len(queues) == 1, policy
            assert peer.broker.counters["internal_errors"] == 0


def test_a_dynamic_node_ends_with_its_connection():
    peer = ready()
    dynamic(peer, True, 0x2D)
    peer.connection.received(0)
    assert list(peer.broker.queues) == ["q"]


def test_a_source_that_is_an_exchange_has_a_queue_of_its_own():
    peer = ready()
    peer.receiver("/topic/a.*", "t", 1)
    assert len(peer.broker.queues) == 2
    peer.sender("/exchanges/amq.topic/a.b")
    peer.send(0, b"x")
    assert [each[1] for each in peer.messages()] == [b"x"]
    peer.give(performative("detach", handle=1, closed=True))
    peer.frames()
    assert list(peer.broker.queues) == ["q"]

"""Links of AMQP 1.0 that are stolen (section 2.6.1): "the second attach succeeds and the first attach MUST then be closed with a link error
of stolen". An attach that is refused steals nothing."""

from peer_1_0 import Peer, declare, error_in, new_broker, performative
from test_1_0_links import REFUSED

from leveret.core.outcomes import nobody

STOLEN = "amqp:link:stolen"
COORDINATOR = ("coordinator", {})


def pair(**limits):
    """Two connections of one container, and the queue q."""
    broker = new_broker(**limits)
    declare(broker)
    return Peer(broker), Peer(broker)


def error_of(peer):
    """The condition of the only detach among the frames that came; None: there is no detach."""
    frames = [each for each in peer.frames() if each[0] == "detach"]
    return error_in(frames, "detach")[0] if frames else None


def attach(peer, role, handle=0, **given):
    """An attach of the link "a"."""
    fields = {"name": "a", "handle": handle, "role": role, "source": ("source", {}), "target": ("target", {})}
    fields["initial_delivery_count"] = None if role else 0
    fields.update(given)
    peer.give(performative("attach", **fields))


def first_frames(peer):
    """(turns that the broker took until frames came, their names)."""
    for turns in range(60):
        names = [each[0] for each in peer.frames()]
        if names:
            return turns, names
    return 60, []


def works(peer, role):
    """The link "a" on handle 0 takes a message, or delivers one."""
    count = peer.broker.queues["q"].message_count()
    if role:
        helper = Peer(peer.broker, container="helper")
        helper.sender()
        helper.send(0, b"x")
        peer.credit(1, 0)
        return [each[0] for each in peer.frames() if each[0] == "transfer"] == ["transfer"]
    peer.send(0, b"x")
    return peer.broker.queues["q"].message_count() == count + 1


def test_an_attach_that_is_refused_leaves_the_first_link_as_it_was():
    """Section 2.6.1, for every reason in REFUSED; the second comes on the same connection, or on another."""
    for role, given, condition in REFUSED:
        for place in (0, 1):
            peers = pair()
            peers[0].attach("a", 0, role, "/queues/q")
            peers[0].frames()
            attach(peers[place], role, 1, **given)
            if place:
                assert error_of(peers[0]) is None
            assert error_of(peers[place]) == condition, (role, given)
            assert works(peers[0], role), (role, given)
            assert peers[0].broker.counters["internal_errors"] == 0


def test_who_lacks_permission_steals_nothing():
    """Sections 2.6.1 and 2.8.15, unauthorized-access."""
    for role, permissions in ((False, (".*", "^none$", ".*")), (True, (".*", ".*", "^none$"))):
        first, second = pair()
        first.attach("a", 0, role, "/queues/q")
        first.frames()
        first.broker.access.users["guest"].permit(permissions)
        attach(second, role, source=("source", {"address": "/queues/q"}), target=("target", {"address": "/queues/q"}))
        assert error_of(second) == "amqp:unauthorized-access" and error_of(first) is None


def test_a_queue_that_is_anothers_alone_is_not_stolen_for():
    """Sections 2.6.1 and 2.8.15, resource-locked: the queue is exclusive to another connection."""
    first, second = pair()
    first.broker.topology.declare_queue(Peer(first.broker).connection, "own", False, False, True, False, {})
    first.receiver(name="a", handle=0, credit=0)
    first.frames()
    attach(second, True, source=("source", {"address": "/queues/own"}))
    assert error_of(second) == "amqp:resource-locked" and error_of(first) is None
    assert works(first, True)


def test_a_link_that_reads_its_queue_alone_is_stolen():
    """A durable subscription is exclusive to its link: that of its name takes it over, and gets what the first had not settled."""
    for place in (0, 1):
        peers = pair()
        source = ("source", {"address": "/topic/t", "durable": 2, "expiry-policy": "never"})
        given = {"source": source, "target": ("target", {})}
        peers[0].attach("a", 0, True, source[1]["address"], **given)
        peers[0].frames()
        peers[0].sender("/topic/t", "out", 5)
        peers[0].send(0, b"m", 5)
        peers[0].credit(1, 0)
        assert [each[0] for each in peers[0].frames() if each[0] == "transfer"] == ["transfer"]
        attach(peers[place], True, 1, **given)
        assert [each[0] for each in peers[place].frames() if each[0] in ("attach", "detach")][-1] == "attach"
        if place:
            assert error_of(peers[0]) == STOLEN
        peers[place].credit(1, 1, next_incoming_id=1 - place)
        assert [each[0] for each in peers[place].frames() if each[0] == "transfer"] == ["transfer"]


def test_a_subscription_whose_link_is_stolen_may_have_another_topic():
    """What the first link alone reads is no obstacle: the second succeeds."""
    first, second = pair()
    given = {"durable": 2, "expiry-policy": "never"}
    attach(first, True, source=("source", dict(given, address="/topic/t")))
    first.frames()
    attach(second, True, source=("source", dict(given, address="/topic/u")))
    assert second.expect("attach")[1]["source"] is not None
    assert error_of(first) == STOLEN and error_of(second) is None
    (bound,) = first.broker.queues["subscription/unit/a"].bound.values()
    assert bound.key == b"u"


def test_a_link_is_stolen_where_the_broker_has_no_consumer_left():
    """The place of the first is the second's; another name finds none, and steals nothing."""
    first, second = pair(consumer_count_max=1)
    first.receiver(name="a", handle=0, credit=0)
    first.frames()
    second.give(performative("attach", name="b", handle=3, role=True, source=("source", {"address": "/queues/q"})))
    assert error_of(second) == "amqp:resource-limit-exceeded" and error_of(first) is None
    attach(second, True, source=("source", {"address": "/queues/q"}))
    assert second.expect("attach")[1]["source"] is not None
    assert error_of(first) == STOLEN and works(second, True)


def test_a_queue_that_goes_with_its_last_consumer_stays_for_the_link_that_steals():
    """The second link reads the queue from where the first is closed: there is no moment without a consumer."""
    first, second = pair()
    first.broker.topology.declare_queue(nobody, "brief", False, False, False, True, {})
    first.receiver("/queues/brief", "a", 0, 0)
    first.frames()
    attach(second, True, source=("source", {"address": "/queues/brief"}))
    assert second.expect("attach")[1]["source"] is not None
    assert error_of(first) == STOLEN and len(first.broker.queues["brief"].consumers) == 1
    second.give(performative("detach", handle=0, closed=True))
    second.frames()
    assert "brief" not in first.broker.queues


def test_a_sender_that_finds_no_place_for_its_target_steals_nothing():
    """Sections 2.6.1 and 2.6.13: rcv-settle-mode second, where the broker keeps targets of others already, as many as it can."""
    first, second = pair(target_count_max=1)
    durable = ("target", {"address": "/queues/q", "durable": 2, "expiry-policy": "never"})
    first.attach("other", 7, False, "/queues/q", target=durable, rcv_settle_mode=1)
    first.frames()
    first.attach("a", 0, False, "/queues/q")
    first.frames()
    attach(second, False, target=durable, rcv_settle_mode=1)
    assert error_of(second) == "amqp:resource-limit-exceeded" and error_of(first) is None
    assert works(first, False)


def test_links_of_every_kind_are_stolen():
    """A browser, a coordinator, and both halves of the pair to the management."""
    browser = ("source", {"address": "/queues/q", "distribution-mode": "copy"})
    management = {"source": ("source", {"address": "/management"}), "target": ("target", {"address": "/management"})}
    for role, given in ((True, {"source": browser}), (False, {"target": COORDINATOR}), (False, management), (True, management)):
        first, second = pair()
        attach(first, role, **given)
        first.frames()
        attach(second, role, **given)
        assert error_of(first) == STOLEN and second.expect("attach")[1]["name"] == "a" and error_of(second) is None


def test_a_link_with_much_to_give_back_is_stolen_over_several_turns():
    """The second attach waits until the deliveries of the first are in their queue again; of its attempts nothing stays."""
    first, second = pair()
    first.sender(name="out", handle=5)
    for number in range(50):
        first.send(number, b"%d" % number, 5)
        first.frames()
    first.receiver(name="a", handle=0, credit=50)
    assert len(first.messages()) == 50
    first.broker.tables.engine.effort = 7
    attach(second, True, source=("source", {"address": "/queues/q"}))
    turns, names = first_frames(second)
    assert turns > 3 and names == ["attach"] and error_of(first) == STOLEN
    queue = first.broker.queues["q"]
    assert len(queue.consumers) == 1 and queue.message_count() == 50 and first.broker.counters["internal_errors"] == 0


def test_a_subscription_of_many_deliveries_changes_its_topic_over_several_turns():
    """As above, where the queue of the first has to go before that of the second is made."""
    first, second = pair()
    given = {"durable": 2, "expiry-policy": "never"}
    attach(first, True, source=("source", dict(given, address="/topic/t")))
    first.frames()
    first.sender("/topic/t", "out", 5)
    for number in range(50):
        first.send(number, b"%d" % number, 5)
        first.frames()
    first.credit(50, 0)
    assert len(first.messages()) == 50
    first.broker.tables.engine.effort = 7
    attach(second, True, source=("source", dict(given, address="/topic/u")))
    turns, names = first_frames(second)
    assert turns > 3 and names == ["attach"] and error_of(first) == STOLEN
    assert first.broker.queues["subscription/unit/a"].message_count() == 0 and first.broker.counters["internal_errors"] == 0

"""Part 3 (messaging) of AMQP 1.0, sentence by sentence: what other files of tests do not show. Each test names its section."""

from memory_store import MemoryStore, durable_broker
from peer_1_0 import Peer, declare, error_in, new_broker, performative
from sections_1_0 import message, section

from leveret.core.amqp_1_0 import composites, properties, sections, types
from leveret.core.memory import invariants, layout


def ready(store=None, **given):
    """A broker with the queue q, and a peer with a sender of it."""
    broker = new_broker(**given) if store is None else durable_broker(store)[0]
    declare(broker)
    peer = Peer(broker)
    peer.sender()
    return broker, peer


def send(peer, octets, number=0):
    """A message of these sections: the state of its disposition, or the error that ends the link or session."""
    peer.give(performative("transfer", 0, octets, handle=0, delivery_id=number, delivery_tag=b"%d" % number))
    for name, fields, _, _ in peer.frames():
        if name == "disposition":
            return fields["state"][0]
        if name in ("detach", "end", "close"):
            return fields["error"]["condition"]
    return None


def deliveries(peer):
    """[(delivery-id, octets)] of what has come."""
    return [(fields["delivery-id"], octets) for name, fields, octets, _ in peer.frames() if name == "transfer"]


def header_of(octets):
    at, _, _ = sections.split(octets, 0, len(octets))
    return properties.facts(octets, 0, at).get("header", {})


# first-acquirer (section 3.2.1)


FIRST = message(b"x", header={"durable": True, "first-acquirer": True, "ttl": 100000})


def test_the_first_receiver_alone_is_told_that_it_is_the_first():
    """ "If this value is true, then this message has not been acquired by any other link": as its publisher said until a link has it."""
    for outcome in (("released", {}), ("modified", {"delivery-failed": False}), None):
        broker, peer = ready()
        assert send(peer, FIRST) == "accepted"
        peer.receiver(credit=10)
        ((number, octets),) = deliveries(peer)
        assert octets == FIRST
        if outcome is None:
            peer.give(performative("detach", handle=1, closed=True))
            peer.frames()
            peer.receiver(name="again")
        else:
            peer.settle(number, outcome)
        ((number, octets),) = deliveries(peer)
        assert octets == message(b"x", header={"durable": True, "ttl": 100000}), outcome
        invariants.check(broker.tables)


def test_messages_whose_way_is_known_are_no_others():
    """What a link sends again and again goes the quick way."""
    broker, peer = ready()
    octets = message(b"x", header={"first-acquirer": True})
    for number in range(5):
        assert send(peer, octets, number) == "accepted"
    peer.receiver(credit=20)
    got = deliveries(peer)
    assert [each for _, each in got] == [octets] * 5
    peer.settle(got[0][0], ("released", {}), got[-1][0])
    assert [each for _, each in deliveries(peer)] == [message(b"x", header={})] * 5


def test_a_failed_delivery_a_restart_and_a_receiver_of_another_family():
    store = MemoryStore()
    broker, peer = ready(store)
    assert send(peer, FIRST) == "accepted"
    peer.receiver(credit=10)
    ((number, octets),) = deliveries(peer)
    peer.settle(number, ("modified", {"delivery-failed": True}))
    assert header_of(deliveries(peer)[0][1])["delivery-count"] == 1
    broker, _ = durable_broker(store.cut())
    peer = Peer(broker)
    peer.receiver(credit=10)
    assert not header_of(deliveries(peer)[0][1])["first-acquirer"]


def test_what_no_link_acquires_leaves_the_first_its_word():
    """A browser's copy (section 3.5.7) acquires nothing. The ttl that is left is told beside it."""
    broker, peer = ready()
    assert send(peer, FIRST) == "accepted"
    peer.attach("b", 2, True, None, source=("source", {"address": "/queues/q", "distribution-mode": "copy"}))
    peer.credit(5, 2)
    assert [octets for _, octets in deliveries(peer)] == [FIRST]
    broker.tick(broker.now + 10000, layout.EPOCH + broker.seconds + 10)
    peer.receiver(credit=10)
    ((_, octets),) = deliveries(peer)
    header = header_of(octets)
    assert header["first-acquirer"] and 80000 < header["ttl"] < 100000


def test_a_message_that_says_false_or_nothing_is_as_it_was():
    broker, peer = ready()
    for number, header in enumerate(({"first-acquirer": False}, {}, {"durable": True})):
        octets = message(b"x", header=header)
        assert send(peer, octets, number) == "accepted"
        peer.receiver(name="in%d" % number, credit=1)
        ((came, first),) = deliveries(peer)
        peer.settle(came, ("released", {}))
        peer.credit(1, delivery_count=1)
        ((came, again),) = deliveries(peer)
        assert first == again == octets
        peer.settle(came, ("accepted", {}))
        peer.give(performative("detach", handle=1, closed=True))
        peer.frames()


# Dynamic nodes (section 3.5.9)


MODES = ("symbol", "supported-dist-modes")
LIFETIME = ("symbol", "lifetime-policy")
BOTH = ("array", "symbol", ["move", "copy"])


def attach_dynamic(peer, role, asked, is_dynamic=True, handle=3):
    """The fields of the terminus of our attach, and the condition of the detach behind it."""
    given = {"dynamic": is_dynamic, "dynamic-node-properties": asked}
    if not is_dynamic:
        given["address"] = "/queues/q"
    fields = {"source": ("source", given)} if role else {"target": ("target", given), "initial_delivery_count": 0}
    peer.give(performative("attach", name="d%d" % handle, handle=handle, role=role, **fields))
    frames = peer.frames()
    ((_, attached, _, _),) = [each for each in frames if each[0] == "attach"]
    node = attached["source" if role else "target"]
    return (None if node is None else node[1]), error_in(frames, "detach")[0] if "detach" in [each[0] for each in frames] else None


def test_our_attach_says_the_properties_that_a_dynamic_node_has():
    """ "This field contains the actual properties of the dynamically created node" (sections 3.5.3 and 3.5.4)."""
    for role in (False, True):
        broker, peer = ready()
        for handle, (asked, policy) in enumerate(
            (
                (None, 0x2B),
                ({}, 0x2B),
                ({LIFETIME: ("described", ("ulong", 0x2E), [])}, 0x2E),
                ({LIFETIME: ("described", ("symbol", "amqp:delete-on-no-links:list"), [])}, 0x2C),
                ({MODES: ("symbol", "move")}, 0x2B),
                ({MODES: ("array", "symbol", ["copy", "move"]), LIFETIME: ("described", ("ulong", 0x2D), [])}, 0x2D),
                ({("symbol", "x-unknown"): 5}, 0x2B),
            )
        ):
            node, error = attach_dynamic(peer, role, asked, handle=handle + 2)
            assert error is None and node["address"], asked
            given = node["dynamic-node-properties"]
            assert given == {LIFETIME: ("described", ("ulong", policy), []), MODES: BOTH}, asked
            assert len(broker.queues) == handle + 2


def test_both_distribution_modes_of_a_dynamic_node():
    broker, peer = ready()
    node, _ = attach_dynamic(peer, False, {MODES: ("symbol", "copy")})
    peer.give(performative("transfer", 0, message(b"x"), handle=3, delivery_id=0, delivery_tag=b"0", settled=True))
    for handle, mode in ((4, "copy"), (5, "copy"), (6, "move")):
        source = ("source", {"address": node["address"], "distribution-mode": mode})
        assert peer.attach("r%d" % handle, handle, True, None, source=source)["source"][1]["distribution-mode"] == mode
        peer.credit(1, handle)
        assert [octets for _, octets in deliveries(peer)] == [message(b"x")]


def test_properties_that_no_node_can_have_are_refused_and_nothing_is_made():
    """The value of supported-dist-modes "MUST be one or more symbols which are valid distribution-modes"; that of lifetime-policy "MUST be
    of a type which provides the lifetime-policy archetype"."""
    for role in (False, True):
        for asked in (
            {MODES: ("symbol", "multicast")},
            {MODES: "move"},
            {MODES: ("array", "symbol", [])},
            {MODES: ("array", "string", ["move"])},
            {MODES: [("symbol", "move")]},
            {MODES: ("array", "symbol", ["move", "x"])},
            {LIFETIME: ("symbol", "delete-on-close")},
            {LIFETIME: ("described", ("ulong", 0x24), [])},
        ):
            broker, peer = ready()
            node, error = attach_dynamic(peer, role, asked)
            assert node is None and error == "amqp:invalid-field", asked
            assert len(broker.queues) == 1 and not broker.counters["internal_errors"]


def test_properties_without_dynamic_are_left_unset():
    """ "If the dynamic field is not set to true this field MUST be left unset": by us; a peer's are not looked at."""
    for role in (False, True):
        _, peer = ready()
        node, error = attach_dynamic(peer, role, {MODES: "nonsense"}, False)
        assert error is None and node["dynamic-node-properties"] is None and not node["dynamic"]


# application-properties (section 3.2.5)


def test_values_of_application_properties_that_are_no_simple_types_are_kept_octet_for_octet():
    """ "The values are restricted to be of simple types only, that is, excluding map, list, and array types": the bare message is its
    sender's alone (section 3.2), and its receiver's to judge: RabbitMQ 4 and Artemis keep such values too. Keys are texts."""
    for value in ([1, "two", [3]], {"a": {("symbol", "b"): 5}}, ("array", "int", [1, 2]), ("described", ("ulong", 5), [1])):
        for store in (None, MemoryStore()):
            broker, peer = ready(store)
            octets = composites.write("header", {"durable": True}) + section(sections.APPLICATION_PROPERTIES, {"k": value}) + message(b"x")
            assert send(peer, octets) == "accepted"
            peer.receiver(credit=1)
            assert [each for _, each in deliveries(peer)] == [octets]
    for key in (None, ("ulong", 1), 5, b"k"):
        broker, peer = ready()
        octets = b"\x00\x53\x74" + types.encode({key: "v"}) + message(b"x")
        assert send(peer, octets) == "amqp:decode-error", key

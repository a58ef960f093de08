"""How many values a frame of AMQP 1.0 may have, and how much of a call links that search may take (core/amqp_1_0/bounds.py)."""

from peer_1_0 import Peer, composites, data, declare, error_in, new_broker, performative
from sections_1_0 import section

from leveret.core.amqp_1_0 import bounds, sections, types

LARGE = {
    "frame_size_max": 131072,
    "receive_buffer_size": 131072,
    "send_buffer_size": 131072,
    "properties_size_max": 65536,
    "content_size_max": 65536,
    "arena_size": 1 << 20,
}


def ready():
    broker = new_broker(**LARGE)
    declare(broker)
    peer = Peer(broker)
    peer.sender()
    return peer


def test_values_are_counted_without_being_made():
    for value, count in (
        (None, 1),
        ([1, "two", None], 4),
        ([], 1),
        ({"a": [1, 2], ("symbol", "b"): ("uuid", bytes(16))}, 7),
        (("described", ("ulong", 5), [1]), 4),
        (("array", "ubyte", [1, 2, 3]), 4),
        (("array", "symbol", ["a" * 300, "b"]), 3),
        ("x" * 300, 1),
        (b"x" * 300, 1),
        ([[[None] * 300]], 303),
        (("decimal128", bytes(16)), 1),
        ({}, 1),
    ):
        octets = types.encode(value)
        assert types.count(octets, 0, len(octets), 10000) == count, value
        assert types.count(octets, 0, len(octets), 1) >= min(count, 2)
        for end in range(len(octets)):
            assert types.count(octets, 0, end, 10000) <= count + len(octets)  # it never fails
    octets = types.encode(("array", "list", [[1, 2], [3]]))
    assert types.count(octets, 0, len(octets), 10000) >= 6  # by its octets


def test_the_end_of_a_performative_in_front_of_its_payload():
    for name in ("transfer", "flow", "attach"):
        fields = (
            {"handle": 0, "delivery-id": 1} if name == "transfer" else {"incoming-window": 1, "next-outgoing-id": 1, "outgoing-window": 1}
        )
        if name == "attach":
            fields = {"name": "n" * 300, "handle": 1, "role": True}
        octets = composites.write(name, fields)
        long = b"\x00\x80" + bytes(7) + octets[2:]
        symbol = types.encode(("symbol", "amqp:%s:list" % name))
        for each in (octets, long, b"\x00" + symbol + octets[3:]):
            assert types.end_of_list(each + b"payload", 0, len(each) + 7) == len(each)
            for end in range(len(each)):
                assert types.end_of_list(each, 0, end) == end
    assert types.end_of_list(b"\x00\xc0\x01\x00" + octets, 0, len(octets) + 4) == len(octets) + 4  # no descriptor of ours


def test_a_performative_of_too_many_values_ends_the_connection():
    """A performative that cannot be read has no link or session: amqp:resource-limit-exceeded (section 2.8.15)."""
    for count, is_taken in ((types.VALUES_MAX - 100, True), (types.VALUES_MAX, False), (100000, False)):
        peer = ready()
        fields = {("symbol", "k"): [None] * count}
        peer.give(performative("attach", name="in", handle=1, role=True, properties=fields, source=("source", {"address": "/queues/q"})))
        frames = peer.frames()
        if is_taken:
            assert [each[0] for each in frames] == ["attach"]
        else:
            assert error_in(frames, "close")[0] == "amqp:resource-limit-exceeded"


def test_a_map_of_4096_deliveries_that_are_not_settled_is_taken():
    """As many as are resumed (section 2.6.13)."""
    peer = ready()
    unsettled = {b"%010d" % each: ("described", ("ulong", 0x24), []) for each in range(4096)}
    peer.give(performative("attach", name="in", handle=1, role=True, source=("source", {"address": "/queues/q"}), unsettled=unsettled))
    assert [each[0] for each in peer.frames()] == ["attach"]


def test_a_section_of_too_many_values_ends_the_link():
    for code, key in (
        (sections.DELIVERY_ANNOTATIONS, ("symbol", "k")),
        (sections.MESSAGE_ANNOTATIONS, ("symbol", "k")),
        (sections.APPLICATION_PROPERTIES, "k"),
    ):
        for count, is_taken in ((sections.VALUES_MAX - 10, True), (sections.VALUES_MAX + 1, False)):
            peer = ready()
            octets = section(code, {key: [None] * count}) + data(b"x")
            peer.give(performative("transfer", 0, octets, handle=0, delivery_id=0, delivery_tag=b"0"))
            frames = peer.frames()
            if is_taken:
                assert frames[-1][1]["state"] == ("accepted", {})
            else:
                assert error_in(frames, "detach")[0] == "amqp:link:message-size-exceeded"


def test_a_body_may_have_any_number_of_values():
    peer = ready()
    octets = section(sections.VALUE, [None] * 60000)
    peer.give(performative("transfer", 0, octets, handle=0, delivery_id=0, delivery_tag=b"0"))
    assert peer.frames()[-1][1]["state"] == ("accepted", {})


def test_a_terminus_of_too_many_values_is_refused_and_does_not_come_back():
    for role in (False, True):
        peer = ready()
        large = {("symbol", "f"): [None] * bounds.TERMINI_MAX}
        fields = {"source": ("source", {"address": "/queues/q", "filter": large}), "target": ("target", {"address": "/queues/q"})}
        if not role:
            fields["initial_delivery_count"] = 0
        peer.give(performative("attach", name="large", handle=7, role=role, **fields))
        frames = peer.frames()
        ((_, attached, _, _),) = [each for each in frames if each[0] == "attach"]
        assert attached["source"] is None and error_in(frames, "detach")[0] == "amqp:resource-limit-exceeded"


def test_what_searches_cost_is_shared_by_the_links_of_a_call_and_all_come_to_their_end():
    peer = ready()
    for number in range(150):
        peer.send(number, b"%d" % number)
        peer.frames()
    text = {("symbol", "f"): ("described", ("symbol", "apache.org:selector-filter:string"), "a = 1")}
    for mode in ("copy", "move"):
        for handle in range(2, 8):
            source = ("source", {"address": "/queues/q", "distribution-mode": mode, "filter": text})
            peer.attach("%s%d" % (mode, handle), handle, True, None, source=source)
        protocol = peer.connection.session
        seen = []
        before = protocol.drain

        def drain():
            before()
            seen.append(len(protocol.draining))

        protocol.drain = drain
        flows = b"".join(
            [
                performative("flow", 0, handle=handle, link_credit=5, delivery_count=0, drain=True, next_incoming_id=0, **WINDOW)
                for handle in range(2, 8)
            ]
        )
        peer.give(flows)
        for _ in range(100):
            peer.broker.run()
        frames = peer.frames()
        told = [fields["handle"] for name, fields, _, _ in frames if name == "flow" and fields["drain"] and fields["link-credit"] == 0]
        assert sorted(told) == list(range(2, 8)) and protocol.draining == [], mode
        if mode == "copy":
            assert seen[0] > 0, "not all of them in one call"
        del protocol.drain
        for handle in range(2, 8):
            peer.give(performative("detach", handle=handle, closed=True))
        peer.frames()


WINDOW = {"incoming_window": 100, "next_outgoing_id": 0, "outgoing_window": 100}

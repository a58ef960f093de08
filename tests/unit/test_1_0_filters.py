"""Filter sets of sources of AMQP 1.0: what is taken, what it means, what is left out of the echo, and messages of two families."""

from peer import Peer, new_broker

from leveret.core.amqp_1_0 import composites, filters, types
from leveret.core.amqp_1_0.addresses import INVALID_FIELD
from leveret.core.errors import ProtocolError
from leveret.core.memory import layout
from leveret.core.message.formats import AMQP_1_0
from leveret.core.message.route import pack


def one(descriptor, value, name="f"):
    """A filter set of one filter."""
    return {("symbol", name): ("described", ("symbol" if isinstance(descriptor, str) else "ulong", descriptor), value)}


def taken(given, is_stream=False, is_bound=False):
    """Of a filter set."""
    return filters.read_set(given, is_stream, is_bound, 1000000)


class Message:
    """A message of AMQP 1.0 in a broker."""

    def __init__(self, properties=None, application=None, header=None, annotations=None):
        self.broker = new_broker()
        octets = composites.write("header", header or {})
        if annotations is not None:
            octets += types.encode(("described", ("ulong", 0x72), annotations))
        octets += composites.write("properties", properties or {})
        octets += types.encode(("described", ("ulong", 0x74), application or {})) + b"\x00\x53\x75\xa0\x01"
        tables = self.broker.tables
        route = pack(b"", b"q")
        kind = AMQP_1_0 | (layout.KIND_HAS_PRIORITY | header["priority"] << layout.KIND_PRIORITY if header and "priority" in header else 0)
        self.message = tables.new_message(route, len(octets), 1, 0, kind, layout.NONE)
        tables.append(self.message, octets, 0, len(octets))
        tables.append(self.message, b"x", 0, 1)

    def fits(self, given, is_stream=False):
        """True when it fits a filter set, of which all is taken."""
        made = taken(given, is_stream)
        assert made.echo == given, given
        return made.fits(self.broker, self.message)


PROPERTIES = {
    "message-id": ("ulong", 7),
    "user-id": b"u",
    "to": "/queues/q",
    "subject": "order.new",
    "correlation-id": "c1",
    "content-type": "text/plain",
    "creation-time": 1500,
    "group-id": "g",
    "group-sequence": 3,
}


def test_a_selector_reads_application_properties_and_names_of_jms():
    message = Message(PROPERTIES, {"a": ("int", 5), "b": "x", "c": True, "d": ("symbol", "s")}, {"priority": 7, "durable": True})
    for text in (
        "a = 5 AND b LIKE 'x%' AND c AND d = 's'",
        "JMSPriority = 7 AND JMSDeliveryMode = 'PERSISTENT' AND JMSType = 'order.new'",
        "JMSMessageID = 'ID:AMQP_ULONG:7' AND JMSCorrelationID = 'c1' AND JMSTimestamp = 1500 AND JMSXGroupID = 'g' AND JMSXGroupSeq = 3",
        "JMSXUserID = 'u' AND JMSDestination = '/queues/q' AND JMSXDeliveryCount = 1 AND NOT JMSRedelivered AND missing IS NULL",
    ):
        for descriptor in ("apache.org:selector-filter:string", 0x0000468C00000004):
            assert message.fits(one(descriptor, text)), text
    assert not message.fits(one(0x0000468C00000004, "a > 5"))
    assert Message().fits(one(0x0000468C00000004, "JMSPriority = 4 AND JMSDeliveryMode = 'NON_PERSISTENT'"))
    noted = Message(annotations={("symbol", "x-opt-offset"): "12"})
    assert noted.fits(one(0x0000468C00000004, "\"amqp.annotation.x-opt-offset\" = '12'"))
    for wrong in ("a >", "JMSFoo = 1", "x" * 5000):
        try:
            taken(one(0x0000468C00000004, wrong))
        except ProtocolError as error:
            assert error.condition == INVALID_FIELD
        else:
            raise AssertionError(wrong)
    assert taken(one(0x0000468C00000004, b"octets")).echo == {}


def test_a_filter_of_properties_compares_each_field_with_its_reference():
    message = Message(PROPERTIES)
    for descriptor in ("amqp:properties-filter", 0x173):
        for fields in (
            {"message-id": ("ulong", 7), "user-id": b"u"},
            {"subject": "order.new", "to": "/queues/q"},
            {"subject": "&p:order.", "group-id": "&s:g", "reply-to": None},
            {"content-type": ("symbol", "text/plain")},
            {"content-type": "text/plain"},
            {"creation-time": ("timestamp", 1500), "group-sequence": ("uint", 3)},
        ):
            assert message.fits(one(descriptor, {("symbol", name): fields[name] for name in fields})), fields
    for fields in ({"subject": "&p:x"}, {"subject": "&s:x"}, {"reply-to": "r"}, {"subject": "order.new", "to": "x"}, {"reply-to": "&p:"}):
        assert not message.fits(one(0x173, {("symbol", name): fields[name] for name in fields})), fields
    assert Message({"subject": "&x"}).fits(one(0x173, {("symbol", "subject"): "&&x"}))


def test_a_filter_of_application_properties_asks_for_each():
    message = Message(
        None, {"n": ("ubyte", 5), "f": 5.0, "t": "text", "b": True, "null": None, "s": ("symbol", "sym"), "z": ("timestamp", 9)}
    )
    for descriptor in ("amqp:application-properties-filter", 0x174):
        for pairs in (
            {"n": 5, "f": ("int", 5)},
            {"t": "&p:te", "s": "&s:ym", "b": True},
            {"null": None, "t": None, "z": ("timestamp", 9)},
        ):
            assert message.fits(one(descriptor, pairs)), pairs
    for pairs in ({"n": 6}, {"missing": None}, {"missing": 1}, {"b": 1}, {"n": "5"}, {"n": "&p:5"}, {"null": 0}):
        assert not message.fits(one(0x174, pairs)), pairs


def test_sql_reads_the_sections_that_it_names():
    message = Message(PROPERTIES, {"a": ("int", 5), "b c": "x"}, {"priority": 7})
    message.broker.seconds = 10
    for text in (
        "a = 5 AND [b c] = 'x' AND application_properties.a = 5 AND a.a = 5",
        "header.priority = 7 AND h.priority > 6",
        "properties.subject LIKE 'order%' AND p.message_id = 7 AND p.user_id = 0x75 AND p.creation_time < UTC()",
        "p.reply_to IS NULL AND p.group_sequence IN (1, a - 2)",
    ):
        for descriptor in ("amqp:sql-filter", 0x120):
            assert message.fits(one(descriptor, text)), text
    assert Message().fits(one(0x120, "header.priority = 4"))
    assert not message.fits(one(0x120, "a = 6"))


def test_a_message_of_0_9_1_is_seen_as_a_receiver_of_1_0_gets_it():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    given = {
        "headers": {"region": "emea", "n": 3},
        "priority": 2,
        "type": "t",
        "message_id": "m",
        "delivery_mode": 2,
        "content_type": "text/x",
    }
    peer.publish("q", b"body", given=given)
    message = broker.tables.entries[broker.queues["q"].head()]
    for given in (
        one(0x0000468C00000004, "region = 'emea' AND n = 3 AND JMSPriority = 2 AND JMSMessageID = 'm' AND JMSDeliveryMode = 'PERSISTENT'"),
        one(0x120, "region = 'emea' AND h.priority = 2 AND p.content_type = 'text/x'"),
        one(0x174, {"region": "&p:em", "n": 3}),
        one(0x173, {("symbol", "message-id"): "m"}),
    ):
        assert taken(given).fits(broker, message), given
    assert not taken(one(0x174, {"region": "us"})).fits(broker, message)


def test_the_selectors_of_a_set_have_a_length_together():
    selector = 0x0000468C00000004
    half = "a = '" + "x" * (filters.TEXT_MAX // 2 - 6) + "'"
    both = one(selector, half)
    both.update(one(selector, half, "g"))
    assert taken(both).echo == both
    both.update(one(selector, "a = 1", "h"))
    try:
        taken(both)
    except ProtocolError as error:
        assert error.condition == INVALID_FIELD
    else:
        raise AssertionError("too many characters")


def test_a_look_is_charged_to_the_round_and_the_reading_to_the_turn():
    message = Message()
    tables = message.broker.tables
    engine = tables.engine
    costs = []
    for text in ("a = 1", " OR ".join(["a = 1"] * 400), "a IN (" + ",".join(["1"] * 1600) + ")"):
        given = one(0x0000468C00000004, text)
        before = engine.left
        assert not message.fits(given)
        costs.append(before - engine.left)
        tables.begin_turn()
        filters.charge(message.broker, given)
        costs.append(engine.effort - tables.state[layout.STATE_LEFT])
    short, short_reading, long, long_reading, listed, listed_reading = costs
    assert 0 < short <= engine.deliveries // 64 and long >= engine.deliveries // 6 and listed >= engine.deliveries // 6
    assert 0 < short_reading <= engine.effort // 8 and long_reading >= engine.effort and listed_reading >= engine.effort
    tables.begin_turn()
    filters.charge(message.broker, None)
    assert tables.state[layout.STATE_LEFT] == engine.effort


def test_filters_of_streams_become_arguments():
    for value, offset in (
        ("first", "first"),
        (("symbol", "next"), "next"),
        ("10m", ("T", 999400)),
        ("2h", ("T", 992800)),
        ("99Y", ("T", 0)),
        (5, 5),
        (("uint", 5), 5),
        (("timestamp", 1500), ("T", 1)),
    ):
        made = taken(one(filters.STREAM_OFFSET, value), True)
        assert made.arguments == {"x-stream-offset": offset} and len(made.echo) == 1, value
    for value in (
        -1,
        ("ulong", 1 << 63),
        "stored",
        "10x",
        "m",
        "\u0662h",
        1.5,
        True,
        None,
        ("float", 1.0),
        [1],
        b"1",
        ("described", "a", 1),
    ):
        made = taken(one(filters.STREAM_OFFSET, value), True)
        assert made.arguments == {} and made.echo == {}, value
    made = taken(one(filters.STREAM_FILTER, ["a", 1, "b"]), True)
    assert made.arguments == {"x-stream-filter": ["a", "b"]}
    assert taken(one(filters.STREAM_FILTER, "a"), True).arguments == {"x-stream-filter": "a"}
    assert taken(one(filters.STREAM_UNFILTERED, True), True).arguments == {"x-stream-match-unfiltered": True}
    assert taken(one(filters.STREAM_UNFILTERED, 1), True).echo == {} and taken(one(filters.STREAM_FILTER, 5), True).echo == {}
    assert taken(one(filters.STREAM_OFFSET, "first"), False).echo == {}
    assert taken({("symbol", filters.STREAM_OFFSET): "first"}, True).arguments == {"x-stream-offset": "first"}


def test_a_binding_filter_is_the_key_of_a_private_queues_binding():
    for descriptor in (0x0000468C00000000, "apache.org:legacy-amqp-topic-binding:string"):
        given = one(descriptor, "a.#")
        assert filters.binding_key(given) == b"a.#" and taken(given, False, True).echo == given
        assert taken(given).echo == {}
    assert (
        filters.binding_key(None) is None
        and filters.binding_key(one(0x173, "x")) is None
        and filters.binding_key(one(0x468C00000000, 5)) is None
    )


def test_what_is_not_known_or_has_no_sense_is_left_out_of_the_echo():
    for given in (
        one("apache.org:no-local-filter:list", []),
        one("unknown", "x"),
        one(99, "x"),
        {("symbol", "f"): "not described"},
        {"f": 5},
        {("symbol", "f"): ("described", 5, "x")},
        {("symbol", "f"): ("described", ("uuid", b"0" * 16), "x")},
        one(0x120, "a ="),
        one(0x120, "footer.x = 1"),
        one(0x120, "properties.message-id = 1"),
        one(0x120, 5),
        one(0x173, {}),
        one(0x173, {("symbol", "unknown"): "x"}),
        one(0x173, {("symbol", "subject"): 5}),
        one(0x173, {("symbol", "subject"): "&x"}),
        one(0x173, {("symbol", "user-id"): "text"}),
        one(0x173, {("symbol", "subject"): True}),
        one(0x173, "x"),
        one(0x173, {5: "x"}),
        one(0x174, {str(number): 1 for number in range(17)}),
        one(0x174, {"a": [1]}),
        one(0x174, {"a": {}}),
        one(0x174, {"a": ("described", 1, 2)}),
    ):
        made = taken(given, True, True)
        assert made.echo == {} and made.tests == [] and made.arguments == {}, given
    assert taken(None).echo == {} and taken(None).fits(None, 0)


def test_of_sql_and_properties_only_the_first_kind_is_taken_and_each_section_once():
    a, b = one(0x120, "a = 1", "sql"), one(0x174, {"a": 1}, "app")
    c, d = one(0x173, {("symbol", "subject"): "s"}, "prop"), one(0x174, {"a": 2}, "app2")
    both = dict(a)
    both.update(b)
    assert list(taken(both).echo) == list(b)
    both = dict(b)
    both.update(a)
    both.update(c)
    both.update(d)
    made = taken(both)
    assert sorted(name[1] for name in made.echo) == ["app", "prop"] and len(made.tests) == 2
    many = {}
    for number in range(40):
        many.update(one(0x0000468C00000004, "a = 1", str(number)))
    assert len(taken(many).echo) == filters.FILTERS_MAX


def test_hostile_maps_end_soon():
    deep = "x"
    for _ in range(8):
        deep = {"a": deep}
    for value in (deep, ("array", "string", ["a"] * 1000), ["a"] * 1000, ("char", "x"), ("decimal64", b"0" * 8)):
        for descriptor in list(filters.NAMES) + [filters.STREAM_OFFSET, filters.STREAM_FILTER, filters.STREAM_UNFILTERED]:
            taken(one(descriptor, value), True, True)

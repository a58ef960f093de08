"""headers (0-9-1 section 3.1.3.4), and property and matcher of the 2005 draft, which compare in the same way."""

from peer import Peer, encoded, new_broker

from leveret.core.exchange import arguments_match
from leveret.core.patterns.wildcard import SEARCHED_MAX, TEXT_MAX, matches, pieces_of, searches

# arguments of the binding, headers of the message, whether it fits; as RabbitMQ 3.10 answers (tests/interop/test_exchange_features.py)
CASES = (
    ({}, {}, True),
    ({}, {"a": 1}, True),
    ({"x-match": "all"}, {}, True),
    ({"x-match": "any"}, {"a": 1}, False),
    ({"a": 1}, {"a": 1, "b": 2}, True),
    ({"a": 1, "b": 2}, {"a": 1}, False),
    ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "any", "a": 1}, {"a": 2}, False),
    ({"a": None}, {"a": 1}, True),
    ({"a": None}, {"a": None}, True),
    ({"a": None}, {}, False),
    ({"a": 1}, {"a": None}, False),
    ({"x-match": "any", "a": None}, {"a": "z"}, True),
    ({"a": 1}, {"a": True}, False),
    ({"a": True}, {"a": 1}, False),
    ({"a": 1}, {"a": 1.0}, False),
    ({"a": 1.0}, {"a": 1.0}, True),
    ({"a": "1"}, {"a": 1}, False),
    ({"a": ""}, {"a": ""}, True),
    ({"a": 1 << 40}, {"a": 1 << 40}, True),
    ({"a": [1, "x"]}, {"a": [1, "x"]}, True),
    ({"a": {"b": 1}}, {"a": {"b": 1}}, True),
    ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
    ({"x-a": 1}, {}, True),
    ({"x-match": "all-with-x", "x-a": 1}, {}, False),
    ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
    ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"x-match": "any-with-x", "x-a": 1, "b": 1}, {"b": 1}, True),
)


def fits(peer, exchange, arguments, given):
    """Bind, publish, count, unbind."""
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", exchange, "", False, arguments)
    peer.publish("k", b"", exchange, given)
    answer = peer.ask("queue_purge", "queue_purge_ok", 0, "q", False)[0]
    peer.ask("queue_unbind", "queue_unbind_ok", 0, "q", exchange, "", arguments)
    return answer == 1


def test_what_fits():
    peer = Peer(new_broker())
    peer.declare("q")
    for arguments, given, fit in CASES:
        assert arguments_match.fits(arguments, given) == fit, (arguments, given)
        assert fits(peer, "amq.headers", arguments, {"headers": given}) == fit, (arguments, given)
    assert fits(peer, "amq.match", {"x-match": "all"}, {}) and not fits(peer, "amq.match", {"a": None}, {})


def test_many_bindings_are_found_by_what_they_ask_for_and_compared_only_then():
    """A message is compared with the bindings that its headers name: with two of 300, of which one fits."""
    broker = new_broker(binding_count_max=2048, binding_share_max=2048, argument_size_max=512)
    peer = Peer(broker)
    for name in ("q", "other"):
        peer.declare(name)
    for number in range(100):
        for arguments in (
            {"kind": "sensor", "number": number},
            {"x-match": "any", "number": number, "unit": "u%d" % number},
            {"kind": "sensor", "number": str(number)},
        ):
            peer.ask("queue_bind", "queue_bind_ok", 0, "other", "amq.headers", "", False, arguments)
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.headers", "", False, {"kind": "sensor", "room": 5})
    compared = [0]
    fits_before = arguments_match.fits

    def counting(*given):
        compared[0] += 1
        return fits_before(*given)

    arguments_match.fits = counting
    try:
        for given, here, there in (
            ({"kind": "sensor", "room": 5}, 1, 0),
            ({"kind": "sensor", "number": 7}, 0, 1),
            ({"unit": "u9"}, 0, 1),
            ({"kind": "sensor"}, 0, 0),
            ({"number": True}, 0, 0),
            ({"number": "3"}, 0, 0),
        ):
            before = compared[0]
            peer.publish("", b"", "amq.headers", {"headers": given})
            for name, count in (("q", here), ("other", there)):
                assert peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0] == count, given
            assert compared[0] - before <= 3, (given, compared[0] - before)
    finally:
        arguments_match.fits = fits_before
    exchange = broker.exchanges["amq.headers"]
    peer.ask("queue_delete", "queue_delete_ok", 0, "other", False, False, False)
    peer.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    assert not exchange.index and not exchange.places and not exchange.always


def test_x_match_is_checked():
    broker = new_broker()
    Peer(broker).declare("q")
    for value, text in (
        ("some", 'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x'),
        (5, "Invalid x-match field type signedint (value 5); expected longstr"),
    ):
        peer = Peer(broker)
        peer.give(encoded("queue_bind", 1, 0, "q", "amq.headers", "", False, {"x-match": value}))
        assert peer.expect("channel_close")[:2] == [406, "PRECONDITION_FAILED - " + text]


def test_property_looks_at_properties_and_headers():
    peer = Peer(new_broker())
    peer.declare("q")
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "p", "x-property", False, False, False, False, False, {})
    given = {"content_type": "text/plain", "priority": 3, "headers": {"unit": "C", "priority": 9}}
    for arguments, fit in (
        ({"content-type": "text/plain"}, True),
        ({"content-type": "text/*"}, False),
        ({"priority": 3}, True),
        ({"priority": 9}, False),
        ({"unit": "C", "content-type": None}, True),
        ({"message-id": None}, False),
        ({"x-match": "any", "message-id": "m", "unit": "C"}, True),
        ({}, True),
    ):
        assert fits(peer, "p", arguments, given) == fit, arguments


def test_matcher_compares_with_wild_cards():
    peer = Peer(new_broker())
    peer.declare("q")
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "m", "x-matcher", False, False, False, False, False, {})
    given = {"content_type": "text/plain", "priority": 3, "headers": {"unit": "C", "on": True, "path": "a*b", "none": None}}
    for arguments, fit in (
        ({"content-type": "text/*"}, True),
        ({"content-type": "*/*"}, True),
        ({"content-type": "text/?"}, False),
        ({"priority": "?"}, True),
        ({"priority": 3}, True),
        ({"priority": "4*"}, False),
        ({"on": True}, True),
        ({"on": "*"}, False),
        ({"path": "a\\*b"}, True),
        ({"unit": "\\*"}, False),
        ({"none": None}, True),
        ({"none": "*"}, False),
        ({"x-match": "any", "unit": "F*", "path": "a*"}, True),
    ):
        assert fits(peer, "m", arguments, given) == fit, arguments


def test_a_pattern_that_ends_in_its_escape_is_refused():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "m", "x-matcher", False, False, False, False, False, {})
    peer.give(encoded("queue_bind", 1, 0, "q", "m", "", False, {"a": "b\\"}))
    assert peer.expect("channel_close")[0] == 406


def test_patterns():
    """Any run, any one, escape; against a plain definition for short texts."""

    def plain(pattern, text):
        if not pattern:
            return not text
        if pattern[0] == "*":
            return plain(pattern[1:], text) or (text != "" and plain(pattern, text[1:]))
        return text != "" and pattern[0] in ("?", text[0]) and plain(pattern[1:], text[1:])

    texts = [""]
    for _ in range(4):
        texts.extend([text + letter for text in texts[-16:] for letter in "ab"])
    for pattern in ("", "*", "?", "a", "a*", "*a", "*a*", "a*b", "?*", "*?", "a?b", "**", "*ab*", "a*b*a", "*a?", "?a*b", "ab*ab", "*b*a*"):
        for text in texts:
            assert matches(pieces_of(pattern, "*", "?", ""), text) == plain(pattern, text), (pattern, text)
    for pattern in ("*a?*", "*?a*", "*a?b*", "*?*", "*??*b", "*a??*", "*?b?*", "a*?b*"):
        for text in texts:
            assert matches(pieces_of(pattern, "*", "?", ""), text) == plain(pattern, text), (pattern, text)
    assert pieces_of("a%", "%", "_", "%") is None
    assert matches(pieces_of("*a?c*b?d*", "*", "?", ""), "xxaacabcbbdz") and not matches(pieces_of("*a?c*b?d*", "*", "?", ""), "bbdabc")
    assert matches(pieces_of("100!%", "%", "_", "!"), "100%") and not matches(pieces_of("100!%", "%", "_", "!"), "1000")


def test_a_pattern_with_single_cards_is_looked_for_in_a_bounded_text_and_counts_as_many_bindings():
    """What one message costs is bounded: pieces with ? between two * are looked for in SEARCHED_MAX characters, text in TEXT_MAX."""
    middle, plain = pieces_of("*a?c*", "*", "?", ""), pieces_of("*abc*", "*", "?", "")
    for size, fits in ((SEARCHED_MAX - 3, True), (SEARCHED_MAX - 2, False)):
        assert matches(middle, "x" * size + "abc") is fits
        assert matches(plain, "x" * size + "abc")
    assert matches(plain, "x" * (TEXT_MAX - 3) + "abc") and not matches(plain, "x" * TEXT_MAX + "abc")
    assert searches(middle) == 1 and searches(plain) == searches(pieces_of("?*b?", "*", "?", "")) == 0
    broker = new_broker(binding_count_max=256, binding_share_max=256)
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "m", "x-matcher", False, False, False, False, False, {})
    for number in range(2):
        peer.ask("queue_bind", "queue_bind_ok", 0, "q", "m", "", False, {"a": "*b?%d*" % number})
    peer.give(encoded("queue_bind", 1, 0, "q", "m", "", False, {"a": "*c?d*"}))
    assert peer.frames()[0][2][0] == 506

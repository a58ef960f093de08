"""x-selector and its language (Java Message Service 2.0, section 3.8.1)."""

from peer import Peer, encoded, new_broker

from leveret.core.errors import ProtocolError
from leveret.core.patterns.selector import DEPTH_MAX, Selector

MESSAGE = {
    "message_id": "m-1",
    "priority": 7,
    "timestamp": 1700000000,
    "delivery_mode": 2,
    "type": "reading",
    "user_id": "guest",
    "headers": {
        "n": 5,
        "f": 2.5,
        "text": "it's",
        "yes": True,
        "no": False,
        "empty": "",
        "x-long": 1 << 40,
        "list": [1],
        "city": "York",
        "a.b": 1,
        "null": None,
        "$d_1": "d",
        "big": 0x7FFFFFFFFFFFFFFF,
    },
}

TRUE = (
    "",
    "  ",
    "n = 5",
    "n=5",
    "5 = n",
    "N IS NULL",
    "n <> 6",
    "n < 6 AND n > 4",
    "n <= 5 and n >= 5",
    "f = 2.5",
    "f > 2",
    "n = 5.0",
    "text = 'it''s'",
    "yes",
    "yes = TRUE",
    "NOT no",
    "no = false",
    "not (n = 6)",
    "NOT n = 6",
    "n = 6 OR yes",
    "n = 6 OR n = 5 AND yes",
    "yes OR no AND no",
    "(yes OR no) AND yes",
    "n BETWEEN 5 AND 5",
    "n BETWEEN 1 AND 10 AND yes",
    "n NOT BETWEEN 6 AND 10",
    "n BETWEEN 2 + 2 AND 2 * 3",
    "6 NOT BETWEEN n + 2 AND 10",
    "city IN ('York')",
    "city IN ('a', 'York', 'b')",
    "city NOT IN ('a')",
    "n IN (1, 5)",
    "n IN (-1, 5)",
    "city LIKE 'Y%'",
    "city LIKE '_o_k'",
    "city LIKE '%'",
    "city NOT LIKE 'L%'",
    "text LIKE '%''s'",
    "city LIKE 'Y!ork' ESCAPE '!'",
    "city IS NOT NULL",
    "missing IS NULL",
    "list IS NULL",
    '"null" IS NULL',
    "empty = ''",
    "n + 1 = 6",
    "n - 1 = 4",
    "n * 2 = 10",
    "n / 2 = 2",
    "-n / 2 = -2",
    "f / 2 = 1.25",
    "n / 2.0 = 2.5",
    "2 + 3 * 4 = 14",
    "(2 + 3) * 4 = 20",
    "10 - 4 - 3 = 3",
    "-n = -5",
    "+n = 5",
    "- -n = 5",
    "-(n + 1) = -6",
    "n / 0 = 1 OR TRUE",
    "1e3 = 1000",
    "7. = 7",
    ".5 = 0.5",
    "0x1F = 31",
    "5L = n",
    "2.5d = f",
    '"x-long" = 1099511627776',
    "a.b = 1",
    "$d_1 = 'd'",
    "big + 1 < 0",
    "JMSMessageID = 'm-1'",
    "JMSPriority > 5",
    "JMSTimestamp = 1700000000000",
    "JMSDeliveryMode = 'PERSISTENT'",
    "JMSType = 'reading'",
    "JMSCorrelationID IS NULL",
    "JMSXUserID = 'guest'",
    "TRUE",
    "((((yes))))",
    "n = 5 -- 0",
)

# What is not true: false, or unknown.
NOT_TRUE = (
    "n = 6",
    "no",
    "FALSE",
    "n = '5'",
    "n <> '5'",
    "yes = 1",
    "text > 5 OR no",
    "missing = 1",
    "NOT missing = 1",
    "missing <> 1",
    "NOT (missing = 1 OR no)",
    "missing = 1 AND no",
    "missing",
    "NOT missing",
    "n BETWEEN 6 AND 9",
    "missing BETWEEN 1 AND 2",
    "missing NOT BETWEEN 1 AND 2",
    "city IN ('york')",
    "missing IN ('a')",
    "missing NOT IN ('a')",
    "city LIKE 'y%'",
    "n LIKE '5'",
    "missing LIKE '%'",
    "missing NOT LIKE '%'",
    "text + 1 = 6",
    "n / 0 = 0",
    "NOT n / 0 = 0",
    "yes + 1 = 2",
    "list = 1",
    "city",
    "n = 6 AND n = 5 OR no",
    "no OR no AND yes",
    "f NOT BETWEEN 1 AND 3",
    "no AND missing",
    "city NOT IN ('York', 'x')",
    "JMSPriority BETWEEN 0 AND 4",
    "missing + 1 > 0 OR missing < 1",
)

# A text that is wrong, and the position that the error names.
WRONG = (
    ("n =", 4),
    ("= 5", 1),
    ("n = 5 6", 7),
    ("(n = 5", 1),
    ("n = 5)", 6),
    ("n = 'a", 5),
    ("n ? 5", 3),
    ("5", 1),
    ("'text'", 1),
    ("n + 1", 1),
    ("n BETWEEN 1", 3),
    ("n BETWEEN 1 OR 2", 3),
    ("n NOT = 5", 7),
    ("n IS 5", 6),
    ("n IN 5", 6),
    ("n IN ()", 7),
    ("n IN (1", 8),
    ("n LIKE 5", 8),
    ("n LIKE 'a' ESCAPE 'bb'", 19),
    ("n LIKE 'a!' ESCAPE '!'", 8),
    ("5 LIKE 'a'", 3),
    ("n + 1 IN (2)", 7),
    ("5 IS NULL", 3),
    ("1 = 'a'", 3),
    ("TRUE = 1", 6),
    ("'a' < 'b'", 5),
    ("n < TRUE", 3),
    ("(n = 5) + 1 = 2", 9),
    ("n = 5 = 6", 3 + 4),
    ("NOT 5", 1),
    ("5 AND n", 3),
    ("JMSExpiration > 1", 1),
    ("5x = 1", 1),
    ("0x = 1", 1),
    ("1e = 1", 1),
    ("9223372036854775808 = n", 1),
    ('"" = 1', 1),
    ("n = 5 AND", 10),
    ("n = = 5", 5),
    ("()", 2),
    ("n BETWEEN 1 AND", 16),
    ("a b", 3),
    ("-'a' = 1", 1),
    ("and", 1),
    ("NOT", 4),
)


def test_conditions_that_are_true():
    for text in TRUE:
        assert Selector(text).fits(MESSAGE), text


def test_conditions_that_are_false_or_unknown():
    for text in NOT_TRUE:
        assert not Selector(text).fits(MESSAGE), text


def test_three_valued_logic():
    """JMS 3.8.1.2, tables 3-4 to 3-6; u is unknown."""
    for left, right, conjunction, disjunction in (
        ("yes", "yes", 1, 1),
        ("yes", "no", 0, 1),
        ("yes", "u", None, 1),
        ("no", "no", 0, 0),
        ("no", "u", 0, None),
        ("u", "u", None, None),
    ):
        for first, second in ((left, right), (right, left)):
            for operator, result in (("AND", conjunction), ("OR", disjunction)):
                text = "(%s %s %s)" % (first, operator, second)
                assert Selector(text).fits(MESSAGE) == (result == 1), text
                assert Selector("NOT " + text).fits(MESSAGE) == (result == 0), text


def test_wrong_texts_are_refused_with_the_position():
    for text, position in WRONG:
        try:
            Selector(text)
        except ProtocolError as error:
            assert error.condition == "precondition-failed"
            assert error.text.startswith("invalid selector at position %d: " % position), (text, error.text)
        else:
            raise AssertionError("%r is not refused" % text)


def test_depth_is_bounded_and_length_is_not():
    assert Selector("(" * DEPTH_MAX + "yes" + ")" * DEPTH_MAX).fits(MESSAGE)
    for text in ("(" * (DEPTH_MAX + 1) + "yes" + ")" * (DEPTH_MAX + 1), "NOT " * (DEPTH_MAX + 1) + "yes", "-" * (DEPTH_MAX + 1) + "n = 1"):
        try:
            Selector(text)
        except ProtocolError as error:
            assert "position" in error.text
        else:
            raise AssertionError(text)
    assert Selector(" AND ".join(["n = 5"] * 300)).fits(MESSAGE)


def test_every_beginning_of_a_long_condition_is_a_condition_or_refused():
    text = (
        "NOT (a.b + -1.5e3 * f >= 0x1F OR city NOT LIKE '_%''!%' ESCAPE '!') AND \"x-long\" NOT BETWEEN 1 AND 2 "
        "OR n IN (1, 'b') AND yes IS NOT NULL"
    )
    whole = 0
    for end in range(len(text) + 1):
        try:
            Selector(text[:end]).fits(MESSAGE)
            whole += 1
        except ProtocolError:
            pass
    assert 0 < whole < end


def test_the_exchange():
    """The statement is an argument of the binding; an empty one takes everything."""
    broker = new_broker()
    peer = Peer(broker)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "s", "x-selector", False, False, False, False, False, {})
    for name, text in (("hot", "metric = 'temperature' AND value > 30"), ("urgent", "JMSPriority > 5"), ("all", "")):
        peer.declare(name)
        peer.ask("queue_bind", "queue_bind_ok", 0, name, "s", "", False, {"x-selector": text} if text else {})
    for given in (
        {"headers": {"metric": "temperature", "value": 31.5}},
        {"headers": {"metric": "temperature", "value": 29}},
        {"priority": 9},
        {},
    ):
        peer.publish("k", b"", "s", given)
    counts = [peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0] for name in ("hot", "urgent", "all")]
    assert counts == [1, 1, 4]
    peer.ask("queue_unbind", "queue_unbind_ok", 0, "all", "s", "", {})
    peer.publish("k", b"", "s", {"priority": 9})
    counts = [peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0] for name in ("hot", "urgent", "all")]
    assert counts == [0, 1, 0]
    assert len(broker.exchanges["s"].selectors) == 2


def test_a_long_statement_counts_for_more_than_one_binding():
    """What it costs each message, and in memory, is within binding_count_max."""
    broker = new_broker(argument_size_max=4096, binding_count_max=60, binding_share_max=60)
    peer = Peer(broker)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "s", "x-selector", False, False, False, False, False, {})
    peer.declare("q")
    text = {"x-selector": " OR ".join(["n = 1"] * 50)}
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "s", "", False, text)
    assert broker.topology.binding_count == 1 + 199 // 4
    peer.give(encoded("queue_bind", 1, 0, "q", "s", "second", False, text))
    assert peer.frames()[0][2][0] == 506
    peer = Peer(broker)
    peer.ask("queue_unbind", "queue_unbind_ok", 0, "q", "s", "", text)
    assert broker.topology.binding_count == 0


def test_a_wrong_statement_is_refused_when_it_is_bound():
    broker = new_broker()
    peer = Peer(broker)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "s", "x-selector", False, False, False, False, False, {})
    peer.declare("q")
    for value, text in (("a = ", "invalid selector at position 5: expected a value"), (7, "the argument 'x-selector' must be a longstr")):
        other = Peer(broker)
        other.give(encoded("queue_bind", 1, 0, "q", "s", "", False, {"x-selector": value}))
        assert other.expect("channel_close")[:2] == [406, "PRECONDITION_FAILED - " + text]
    assert broker.topology.binding_count == 0

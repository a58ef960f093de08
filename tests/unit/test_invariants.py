"""core/memory/invariants: a broker's own tables pass, and a number that contradicts another is named, in whatever record it stands."""

from peer import Peer, encoded, new_broker

from leveret.core.memory import invariants, layout

# record -> fields of it that other numbers determine: one more in any of them is a contradiction.
DETERMINED = {
    "MESSAGE": ("FIRST", "LAST", "ROUTE", "PROPERTIES", "BODY", "FILLED", "BLOCKS"),
    "ENTRY": ("MESSAGE", "NEXT", "PREVIOUS", "QUEUE"),
    "QUEUE": ("HEAD", "TAIL", "LENGTH", "UNSETTLED", "BLOCKS", "OCTETS", "CONSUMERS", "ACTIVE", "RETURNED", "RETURNING"),
    "CHANNEL": ("UNSETTLED_HEAD", "UNSETTLED_TAIL", "UNSETTLED", "CONSUMERS", "INDEXED"),
    "CONSUMER": ("QUEUE", "CHANNEL", "NEXT"),
}


def busy():
    """The tables of a broker with messages of one block and of several: ready, given back and unsettled, of two consumers of a channel."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.declare("other")
    peer.ask("basic_qos", "basic_qos_ok", 0, 2, False)
    peer.consume("q", "one")
    peer.consume("other", "two")
    for number in range(4):
        peer.publish("q", b"%d" % number * (1 + 300 * number), given={"headers": {"n": number}})
    peer.publish("other", b"x")
    assert [each[3][:1] for each in peer.contents()] == [b"0", b"1", b"x"]
    peer.give(encoded("basic_cancel", 1, "one", False) + encoded("basic_nack", 1, 1, False, True))
    return peer, broker.tables


def wrong(tables, **known):
    """What the check says, or ''."""
    try:
        invariants.check(tables, **known)
    except invariants.Wrong as error:
        return str(error)
    return ""


def test_one_more_in_any_number_that_others_determine_is_told_with_its_record():
    _, tables = busy()
    assert wrong(tables) == ""
    alive = invariants.pools(tables, 0)
    for record, table in (
        ("MESSAGE", tables.messages),
        ("ENTRY", tables.entries),
        ("QUEUE", tables.queues),
        ("CHANNEL", tables.channels),
        ("CONSUMER", tables.consumers),
    ):
        assert alive[record], record
        for name in DETERMINED[record]:
            for handle in alive[record]:
                at = handle + getattr(layout, record + "_" + name)
                table[at] += 1
                assert wrong(tables), (record, name, handle)
                table[at] -= 1
    assert wrong(tables) == ""


def test_a_value_that_no_such_field_can_have_is_told_with_its_range():
    _, tables = busy()
    alive = invariants.pools(tables, 0)
    for record, name, value, text in (
        ("QUEUE", "LOGGED", -1, "LOGGED is to be in 0..1073741823, and is -1"),
        ("QUEUE", "ACTIVE", 2, "ACTIVE is to be in 0..1, and is 2"),
        ("CHANNEL", "CONFIRM", 2, "CONFIRM is to be in 0..1, and is 2"),
        ("CONSUMER", "CREDIT", -1, "CREDIT is to be in 0..%d, and is -1" % layout.CREDIT_UNLIMITED),
    ):
        table = {"QUEUE": tables.queues, "CHANNEL": tables.channels, "CONSUMER": tables.consumers}[record]
        handle = list(alive[record])[0]
        at = handle + getattr(layout, record + "_" + name)
        before, table[at] = table[at], value
        assert wrong(tables) == "%s %d: %s" % (record.lower(), handle, text)
        table[at] = before
    assert wrong(tables) == ""


def test_the_numbers_that_say_what_the_tables_are_have_to_be_theirs():
    _, tables = busy()
    for name in ("BLOCK_SIZE", "ROUTE_SLOTS", "TAGS"):
        at = getattr(layout, "STATE_" + name)
        tables.state[at] += 1 if name != "TAGS" else layout.CHANNEL_WIDTH
        assert wrong(tables), name
        tables.state[at] -= 1 if name != "TAGS" else layout.CHANNEL_WIDTH
    tables.state[layout.STATE_ACTIVE_TAIL] += 1
    assert wrong(tables).startswith("state 0: ACTIVE_TAIL is to be %d" % layout.NONE)


def test_references_are_counted_where_it_is_known_who_else_has_one():
    """`held`: a message has one reference for each entry, and those."""
    _, tables = busy()
    message = list(invariants.pools(tables, 0)["MESSAGE"])[0]
    assert wrong(tables, aside=(), held={}) == ""
    assert wrong(tables, held={message: 1}).startswith("message %d: REFERENCES is to be 2, and is 1" % message)
    tables.messages[message + layout.MESSAGE_REFERENCES] += 1
    assert wrong(tables) == "" and wrong(tables, held={message: 1}) == ""
    assert wrong(tables, held={}).startswith("message %d: REFERENCES is to be 1, and is 2" % message)
    tables.messages[message + layout.MESSAGE_REFERENCES] -= 1


def test_windows_are_what_consumers_may_have_and_have():
    """A consumer with a prefetch of 2: what it has not settled, and its credit, are 2 together."""
    _, tables = busy()
    assert list(invariants.check(tables).values()) == [2]

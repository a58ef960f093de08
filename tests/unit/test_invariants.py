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


EMPTIED = [("m", 4, each, 0) for each in ("ROUTE", "PROPERTIES", "BODY", "FILLED", "BLOCKS")] + [("q", 1, "BLOCKS", 0)]
# What is written into the tables of `busy` (record, which of those in use, field, value), and what the check says then. "e2" is the third
# entry in use, and so on: m message, e entry, q queue, c channel, r consumer, w slot of routes ("s": the one state, "p": what
# a pool has left). "free" is a record that is not in use.
CONTRADICTIONS = (
    # A queue's ready list: first given back, then third and fourth.
    ([("e", 2, "POSITION", 3), ("e", 3, "POSITION", 2)], "entry {e3}: POSITION is to be behind 3, and is 2"),
    ([("e", 2, "POSITION", 3)], "entry {e3}: POSITION is to be behind 3, and is 3"),
    ([("e", 3, "POSITION", 4)], "queue {q0}: POSITION is to be behind 4, and is 4"),
    ([("q", 0, "HEAD", "free_e")], "entry {free_e}: is in the list of queue {q0}, and is not in use"),
    ([("e", 3, "NEXT", "e0")], "entry {e0}: is in the list of queue {q0}, and in the list of queue {q0}"),
    ([("e", 2, "PREVIOUS", "e3")], "entry {e2}: PREVIOUS is to be {e0}, and is {e3}"),
    ([("q", 0, "TAIL", "e2")], "queue {q0}: TAIL is to be {e3}, and is {e2}"),
    ([("e", 2, "QUEUE", "q1")], "entry {e2}: QUEUE is to be {q0}, and is {q1}"),
    # Levels of a queue with priorities.
    (
        [("q", 0, "LIMITS", layout.LIMIT_LEVELS), ("e", 2, "REDELIVERED", 1 << layout.ENTRY_LEVEL)],
        "entry {e2}: its level is to be at most 0, and is 1",
    ),
    (
        [("q", 0, "LIMITS", layout.LIMIT_LEVELS), ("e", 0, "REDELIVERED", 1 << layout.ENTRY_LEVEL)],
        "entry {e3}: TAG is to be {above_e0}, and is 0",
    ),
    (
        [("q", 0, "LIMITS", layout.LIMIT_LEVELS), ("e", 0, "REDELIVERED", 1 << layout.ENTRY_LEVEL), ("e", 3, "TAG", "above_e0")],
        "",
    ),
    # The tree of what came back: left by ENTRY_TAG, right by ENTRY_CONSUMER.
    ([("q", 0, "RETURNED", "e1")], "queue {q0}: RETURNED is to have its ready entries, each once, and has {e1}"),
    (
        [("q", 0, "RETURNED", "e2"), ("e", 2, "TAG", "e2"), ("e", 2, "CONSUMER", -1)],
        "queue {q0}: RETURNED is to have its ready entries, each once, and has {e2}",
    ),
    (
        [("q", 0, "RETURNED", "e2"), ("e", 2, "TAG", "e3"), ("e", 2, "CONSUMER", -1), ("e", 3, "TAG", -1), ("e", 3, "CONSUMER", -1)],
        "entry {e3}: its place in the tree of RETURNED is to be between None and 2",
    ),
    (
        [("q", 0, "RETURNED", "e2"), ("e", 2, "TAG", -1), ("e", 2, "CONSUMER", "e0"), ("e", 0, "TAG", -1), ("e", 0, "CONSUMER", -1)],
        "entry {e0}: its place in the tree of RETURNED is to be between 2 and None",
    ),
    (
        [("q", 0, "RETURNED", "e2"), ("e", 2, "TAG", "e0"), ("e", 2, "CONSUMER", "e3"), ("e", 3, "TAG", -1), ("e", 3, "CONSUMER", -1)]
        + [("e", 0, "TAG", -1), ("e", 0, "CONSUMER", -1)],
        "",
    ),
    # A channel's unsettled list: tags 2 of q, of a consumer that has left, and 3 of other.
    ([("e", 4, "TAG", 2)], "entry {e4}: TAG is to be behind 2, and is 2"),
    ([("c", 0, "TAG", 2)], "channel {c0}: TAG is to be 3 or behind it, and is 2"),
    ([("e", 4, "CONSUMER", "free_r")], "entry {e4}: CONSUMER is to be in use, and is {free_r}"),
    ([("e", 4, "QUEUE", "q0")], "entry {e4}: QUEUE is to be {q1}, and is {q0}"),
    ([("e", 1, "QUEUE", "free_q")], "entry {e1}: QUEUE is to be in use, and is {free_q}"),
    ([("r", 0, "CHANNEL", "free_c")], "consumer {r0}: CHANNEL is to be {c0}, and is {free_c}"),
    ([("c", 0, "UNSETTLED", 3)], "channel {c0}: UNSETTLED is to be 2, and is 3"),
    ([("c", 0, "GOT", 1)], "channel {c0}: GOT is to be 0, and is 1"),
    ([("e", 1, "CONSUMER", layout.GOT)], "channel {c0}: UNSETTLED is to be 1, and is 2"),
    ([("e", 1, "CONSUMER", layout.GOT), ("c", 0, "UNSETTLED", 1)], "channel {c0}: GOT is to be 1, and is 0"),
    ([("e", 1, "CONSUMER", layout.GOT), ("c", 0, "UNSETTLED", 1), ("c", 0, "GOT", 1)], ""),
    ([("e", 1, "CONSUMER", layout.RETURNING), ("c", 0, "UNSETTLED", 1)], "queue {q0}: RETURNING is to be 1, and is 0"),
    ([("c", 0, "INDEXED", "e0")], "channel {c0}: INDEXED is to be one of its unsettled entries, and is {e0}"),
    ([("c", 0, "INDEXED", "e1")], "slot 0 of the tags: is to have entry {e1}, and has not"),
    ([("s", 0, "SETTLED_LIST", "e2")], "entry {e2}: is in the list of queue {q0}, and settled, for the journal"),
    # Sums of a queue.
    ([("q", 0, "HEAD", -1), ("q", 0, "TAIL", -1)], "queue {q0}: LENGTH is to be 0, and is 3"),
    ([("q", 0, "OCTETS", 1504)], "queue {q0}: OCTETS is to be 1503, and is 1504"),
    ([("q", 1, "UNSETTLED", 0)], "queue {q1}: UNSETTLED is to be 1, and is 0"),
    ([("q", 1, "BLOCKS", 2)], "queue {q1}: BLOCKS is to be 1, and is 2"),
    ([("e", 2, "MESSAGE", "free_m")], "entry {e2}: MESSAGE is to be in use, and is {free_m}"),
    ([("q", 0, "HEAD", -1), ("q", 0, "TAIL", -1), ("e", 0, "QUEUE", "free_q")], "entry {e0}: QUEUE is to be in use, and is {free_q}"),
    # A message and its chain.
    ([("m", 0, "REFERENCES", 0)], "message {m0}: REFERENCES is to be 1, and is 0"),
    ([("m", 0, "FILLED", 18)], "message {m0}: FILLED is to be 17, and is 18"),
    ([("m", 0, "FILLED", 16)], "message {m0}: FILLED is to be 17, and is 16"),
    ([("m", 0, "BLOCKS", 2), ("q", 0, "BLOCKS", 32), ("p", 0, "BLOCKS", 351)], "message {m0}: BLOCKS is to be 1, and is 2"),
    ([("m", 0, "ROUTE", 2), ("m", 0, "PROPERTIES", 14)], "message {m0}: ROUTE is to be 3, and is 2"),
    ([("m", 4, "ROUTE", 8), ("m", 4, "PROPERTIES", 1)], "message {m4}: ROUTE is to be 7, and is 8"),
    (
        [("m", 4, "ROUTE", 9), ("m", 4, "PROPERTIES", 0), ("m", 4, "KIND", layout.KIND_ANNOTATED)],
        "message {m4}: KIND says that it has annotations, and it has 1 octets behind its route",
    ),
    (
        EMPTIED,
        "message {m4}: FIRST is to be -1, and is {first_m4}",
    ),
    (
        EMPTIED + [("m", 4, "FIRST", -1), ("m", 4, "LAST", -1)],
        "pool of block 0: FREE is to be {block_count}, and is {first_m4}",
    ),
    (
        [("m", 0, "FIRST", "first_m4"), ("m", 0, "LAST", "first_m4")],
        "message {m4}: FIRST is to lead to 1 blocks more of its own, and leads to {first_m4}",
    ),
    ([("m", 1, "LAST", "first_m4")], "message {m1}: LAST is to be {last_m1}, and is {first_m4}"),
    # Consumers.
    ([("r", 0, "NEXT", "r0")], "channel {c0}: CONSUMERS is to lead to each of its consumers once, and leads to {r0}"),
    ([("c", 0, "CONSUMERS", "free_r")], "channel {c0}: CONSUMERS is to lead to each of its consumers once, and leads to {free_r}"),
    ([("c", 0, "CONSUMERS", -1)], "consumer {r0}: CHANNEL is to be a channel that lists it, and is {c0}"),
    ([("q", 1, "CONSUMERS", 2)], "queue {q1}: CONSUMERS is to be 1, and is 2"),
    (
        [("r", 0, "QUEUE", "free_q"), ("e", 4, "CONSUMER", -1), ("q", 1, "CONSUMERS", 0)],
        "queue {free_q}: has 1 consumers, and is not in use",
    ),
    # Queues in turn.
    ([("s", 0, "ACTIVE_HEAD", "free_q")], "state 0: ACTIVE_HEAD is to lead to each active queue once, and leads to {free_q}"),
    (
        [("s", 0, "ACTIVE_HEAD", "q1"), ("q", 1, "NEXT_ACTIVE", "q1")],
        "state 0: ACTIVE_HEAD is to lead to each active queue once, and leads to {q1}",
    ),
    ([("s", 0, "ACTIVE_HEAD", "q1"), ("s", 0, "ACTIVE_TAIL", "q1")], "queue {q1}: ACTIVE is to be 1, and is 0"),
    ([("q", 1, "ACTIVE", 1)], "queue {q1}: ACTIVE is to be 0, and is 1"),
    ([("s", 0, "ACTIVE_HEAD", "q1"), ("s", 0, "ACTIVE_TAIL", "q1"), ("q", 1, "ACTIVE", 1)], ""),
    # The route cache: the slots of q and other, of one queue each.
    ([("s", 0, "ROUTE_OCTETS", 257)], "state 0: ROUTE_OCTETS is to be at most 256, and is 257"),
    ([("s", 0, "ROUTE_TARGETS", 17)], "state 0: ROUTE_TARGETS is to be at most 16, and is 17"),
    ([("s", 0, "ROUTE_LAST", 1)], "state 0: ROUTE_LAST is to be a slot, and is 1"),
    ([("s", 0, "ROUTE_LAST", "slots")], "state 0: ROUTE_LAST is to be a slot, and is {slots}"),
    ([("w", 0, "SIZE", 0)], "route {w0}: SIZE is to be in 1..{octets_of_w0}, and is 0"),
    ([("w", 0, "OCTETS", -1)], "route {w0}: SIZE is to be in 1..11, and is {size_of_w0}"),
    ([("w", 0, "COUNT", 0)], "route {w0}: COUNT is to be in 1..1, and is 0"),
    ([("w", 0, "COUNT", 2)], "route {w0}: COUNT is to be in 1..1, and is 2"),
    ([("w", 0, "TARGETS", 0), ("w", 0, "COUNT", 2)], ""),
)
# Pools: (name of its list, what is written, which number of it), and what the check says.
POOLS = (
    ("queue", 1, 1, "pool of queue 0: NEXT is to be a record, and is 1"),
    ("queue", 1, -1, "pool of queue 0: NEXT is to be a record, and is -1"),
    ("consumer", 0, 1, "pool of consumer 0: FREE is to list each free record once, and lists 1"),
    ("consumer", 0, 1200, "pool of consumer 0: FREE is to list each free record once, and lists 1200"),
    ("channel", 2, 16, "pool of channel 0: LEFT is to be 15, and is 16"),
    ("chunk", 2, 27, "pool of chunk 0: LEFT is to be 28, and is 27"),
)


def names_in(tables):
    """({name of a row of CONTRADICTIONS: number}, {record's letter: (its table, its name, handles)})."""
    alive = invariants.pools(tables, 0)
    routes = [at for at in range(0, len(tables.routes), layout.ROUTE_WIDTH) if tables.routes[at + layout.ROUTE_EPOCH]]
    routes.sort(key=lambda at: -tables.routes[at + layout.ROUTE_TARGETS])  # the last one that was looked up comes first
    rows = {
        "m": (tables.messages, "MESSAGE", sorted(alive["MESSAGE"])),
        "e": (tables.entries, "ENTRY", sorted(alive["ENTRY"])),
        "q": (tables.queues, "QUEUE", sorted(alive["QUEUE"])),
        "c": (tables.channels, "CHANNEL", sorted(alive["CHANNEL"])),
        "r": (tables.consumers, "CONSUMER", sorted(alive["CONSUMER"])),
        "s": (tables.state, "STATE", [0]),
        "p": (tables.state, "POOL", [2]),
        "w": (tables.routes, "ROUTE", routes),
    }
    known = {"slots": len(tables.routes), "above_e0": -2 - rows["e"][2][0], "block_count": len(alive["BLOCK"])}
    for letter, pool in (("m", tables.state[4]), ("e", tables.state[7]), ("q", tables.queue_pool[1]), ("c", tables.channel_pool[1])):
        known["free_" + letter] = pool
    known["free_r"] = tables.consumer_pool[0]
    for letter, (_, _, handles) in rows.items():
        for number, handle in enumerate(handles):
            known["%s%d" % (letter, number)] = handle
    first, last = layout.MESSAGE_FIRST, layout.MESSAGE_LAST
    known["first_m4"], known["last_m1"] = tables.messages[known["m4"] + first], tables.messages[known["m1"] + last]
    known["size_of_w0"] = tables.routes[known["w0"] + layout.ROUTE_SIZE]
    known["octets_of_w0"] = tables.state[layout.STATE_ROUTE_OCTETS] - tables.routes[known["w0"] + layout.ROUTE_OCTETS]
    return known, rows


def test_each_contradiction_is_told_with_what_was_wanted():
    _, tables = busy()
    known, rows = names_in(tables)
    for cells, sentence in CONTRADICTIONS:
        before = []
        for letter, number, field, value in cells:
            table, record, handles = rows[letter]
            at = handles[number] + getattr(layout, record + "_" + field)
            before.insert(0, (table, at, table[at]))
            table[at] = known.get(value, value)
        assert wrong(tables) == sentence.format(**known), (cells, wrong(tables))
        for table, at, value in before:
            table[at] = value
    assert wrong(tables) == ""


def test_a_pool_has_each_record_once():
    _, tables = busy()
    for name, at, value, sentence in POOLS:
        pool = getattr(tables, name + "_pool")
        before, pool[at] = pool[at], value
        assert wrong(tables) == sentence
        pool[at] = before
    left = tables.state[layout.POOL_BLOCKS + 2]
    tables.state[layout.POOL_BLOCKS + 2] += 1
    assert wrong(tables) == "pool of block 0: LEFT is to be %d, and is %d" % (left, left + 1)


def test_an_entry_belongs_to_a_list_or_to_who_keeps_it_aside():
    """`aside`: entries in no list that objects outside of the tables keep. Not known: each entry in no list is one."""
    _, tables = busy()
    known, _ = names_in(tables)
    assert wrong(tables, aside=(known["free_e"],)) == "entry %d: is kept aside, and is not in use" % known["free_e"]
    assert wrong(tables, aside=(known["e0"],)) == "entry %d: is in the list of queue %d, and kept aside" % (known["e0"], known["q0"])
    tables.queues[known["q0"] + layout.QUEUE_HEAD] = tables.queues[known["q0"] + layout.QUEUE_TAIL] = layout.NONE
    text = "entry %d: is in use and has no owner: it is in no list (as 2 others)"
    assert wrong(tables, aside=()) == text % known["e0"]
    tables.queues[known["q0"] + layout.QUEUE_LENGTH] = tables.queues[known["q0"] + layout.QUEUE_OCTETS] = 0
    assert wrong(tables, aside=(known["e0"], known["e2"], known["e3"])) == "" and wrong(tables) == ""


def test_who_holds_a_message_that_is_not_in_use_is_told():
    _, tables = busy()
    known, _ = names_in(tables)
    assert wrong(tables, held={known["free_m"]: 2}) == "message %d: is held 2 times, and is not in use" % known["free_m"]


def test_a_queue_with_rules_of_order_and_one_of_late_messages_need_no_order_of_positions():
    _, tables = busy()
    known, _ = names_in(tables)
    position, queue = known["e2"] + layout.ENTRY_POSITION, known["q0"]
    tables.entries[position] = 3
    assert wrong(tables) and not wrong(tables, in_order=False)
    tables.queues[queue + layout.QUEUE_LIMITS] = layout.LIMIT_GROUPS
    assert not wrong(tables)
    tables.queues[queue + layout.QUEUE_LIMITS], tables.queues[queue + layout.QUEUE_PLAIN] = 0, layout.NOT_PLAIN
    assert not wrong(tables)


def test_what_a_commit_has_promised_is_not_on_the_account_of_entries():
    _, tables = busy()
    left = layout.POOL_ENTRIES + 2
    tables.state[left] -= 2
    assert not wrong(tables, promised=2)
    assert wrong(tables) == "pool of entry %d: LEFT is to be %d, and is %d" % (
        layout.POOL_ENTRIES,
        tables.state[left] + 2,
        tables.state[left],
    )


def test_windows_are_those_of_consumers_with_a_limit_of_prefetch():
    """Without a limit there is none (basic.qos, prefetch-count 0), nor where credit is counted, as by AMQP 1.0 (part 2, 2.6.7)."""
    _, tables = busy()
    known, _ = names_in(tables)
    for field, value in (("CREDIT", layout.CREDIT_UNLIMITED), ("MODE", layout.COUNTED)):
        at = known["r0"] + getattr(layout, "CONSUMER_" + field)
        before, tables.consumers[at] = tables.consumers[at], value
        assert invariants.check(tables) == {}
        tables.consumers[at] = before


def test_the_index_of_tags_has_each_unsettled_entry_in_the_slot_of_its_tag():
    """Acknowledgements out of order make it; SPREAD and the tag are the slot."""
    broker = new_broker(entry_count_max=2048, message_count_max=64)
    peer = Peer(broker)
    peer.declare("q")
    peer.consume("q")
    for _ in range(20):
        peer.publish("q", b"x")
    peer.contents()
    peer.give(encoded("basic_ack", 1, 10, False))
    broker.run()
    tables = broker.tables
    state, channels = tables.state, tables.channels
    assert wrong(tables) == "" and channels[layout.CHANNEL_INDEXED] != layout.NONE
    slots, mask = state[layout.STATE_TAGS], state[layout.STATE_TAG_MASK]
    entry, channel = channels[layout.CHANNEL_UNSETTLED_HEAD], 0
    slot = (channel // layout.CHANNEL_WIDTH * invariants.SPREAD ^ tables.entries[entry + layout.ENTRY_TAG]) & mask
    assert channels[slots + slot] == entry + 1
    empty = [each for each in range(mask + 1) if not channels[slots + each]][0]
    channels[slots + empty] = entry + 1
    text = "slot %d of the tags: is to have indexed entries with such tags, and has %d"
    assert wrong(tables) in (text % (empty, entry), text % (slot, entry))
    channels[slots + empty] = channels[slots + slot] = 0
    assert wrong(tables) == "slot %d of the tags: is to have entry %d, and has not" % (slot, entry)
    channels[slots + slot] = entry + 1
    assert wrong(tables) == ""
    state[layout.STATE_TAG_MASK], state[layout.STATE_TAGS] = mask - 1, slots + 1
    assert wrong(tables) == "state 0: TAG_MASK is to be one less than a power of two, and is %d" % (mask - 1)

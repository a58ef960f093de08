"""Bad input through the connection contract: whatever arrives, and however it is cut, the laws of cases.py hold.

The seed of a run is printed when it fails; LEVERET_FUZZ_SEED=N runs it again, LEVERET_FUZZ_ROUNDS=N runs N times as many cases. A case
that broke a law is kept in crashes/ and replayed by every later run.
"""

import gc
import glob
import json
import os
import random
import struct
import tracemalloc

import amqp_tables
import amqp_wire
import cases
import hypothesis
import hypothesis.strategies as st
import pytest
from cases import OPEN, Healthy, Link, checked, give, new_broker
from sequences import lively, mutate, sequence
from test_connection_errors import CASES as WRONG

SEED = int(os.environ.get("LEVERET_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
ROUNDS = int(os.environ.get("LEVERET_FUZZ_ROUNDS", "1"))
READY = OPEN + amqp_wire.method(1, "channel.open") + amqp_wire.method(2, "channel.open")
BUSY = (
    READY
    + amqp_wire.method(1, "confirm.select")
    + amqp_wire.method(1, "queue.declare", queue="a")
    + amqp_wire.method(1, "queue.bind", queue="a", exchange="amq.topic", routing_key="#")
    + amqp_wire.publish(1, "amq.topic", "k", b"m" * 200) * 3
    + amqp_wire.method(2, "basic.consume", queue="a", consumer_tag="t")
)
PREFIXES = {"nothing": b"", "header": amqp_wire.PROTOCOL_HEADER, "log-in": cases.LOG_IN, "open": OPEN, "ready": READY, "busy": BUSY}

with open(os.path.join(cases.HERE, os.pardir, "vectors", "amqp_0_9_1.json"), encoding="utf-8") as _file:
    RECORDED = [(row["sender"] + " " + row["name"], bytes.fromhex(row["frame"])) for row in json.load(_file)]


def source_of(name):
    """Random numbers of this run for one test; the seed is in the output of a failure."""
    print("LEVERET_FUZZ_SEED=%d" % SEED)
    return random.Random("%d %s" % (SEED, name))


def cut_in_pieces(source, octets):
    """give and take steps that hand over the octets in random pieces, with time passing and now and then nobody reading."""
    steps = []
    at = 0
    while at < len(octets):
        size = source.choice((1, 3, 7, 8, 50, 400, 3000))
        step = give(octets[at : at + size], source.choice((0, 0, 1, 5)))
        if source.random() < 0.2:
            step.append("without reading")
        steps.append(step)
        at += size
        if source.random() < 0.1:
            steps.append(["tick", source.choice((1, 100, 5000))])
        if source.random() < 0.2:
            steps.append(["take", source.choice((1, 20, 4000))])
    return steps


@pytest.mark.parametrize("path", sorted(glob.glob(os.path.join(cases.CRASHES, "*.json"))), ids=os.path.basename)
def test_what_once_broke_a_law_keeps_it_now(path):
    with open(path, encoding="utf-8") as file:
        case = json.load(file)
    cases.run(case["steps"], **case["limits"])


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_prefixes_themselves(prefix):
    found = checked([give(PREFIXES[prefix])])
    assert not [one for one in found if one.name.endswith(".close")], found


@pytest.mark.parametrize("prefix", PREFIXES)
def test_random_octets(prefix):
    source = source_of("octets " + prefix)
    for _ in range(60 * ROUNDS):
        octets = source.randbytes(source.choice((1, 8, 20, 200, 3000)))
        checked([give(PREFIXES[prefix])] + cut_in_pieces(source, octets))


@pytest.mark.parametrize("prefix", ["ready", "busy"])
def test_random_frames_with_random_payloads(prefix):
    """The framing is right, the payload is not."""
    source = source_of("payloads " + prefix)
    for _ in range(150 * ROUNDS):
        octets = b""
        for _ in range(source.randrange(1, 5)):
            payload = source.randbytes(source.choice((0, 1, 4, 12, 14, 40, 300)))
            if source.random() < 0.7:
                payload = struct.pack(">HH", *source.choice(amqp_tables.METHODS)[:2]) + payload
            octets += amqp_wire.frame(source.choice((1, 1, 1, 2, 3, 8)), source.choice((0, 1, 1, 2, 9)), payload)
        checked([give(PREFIXES[prefix])] + cut_in_pieces(source, octets))


@pytest.mark.parametrize("wounded", [False, True], ids=["whole", "wounded"])
def test_random_sequences(wounded):
    source = source_of("sequences %s" % wounded)
    for _ in range(400 * ROUNDS):
        octets = b"".join(sequence(source, source.choice((3, 10, 40))))
        if wounded:
            octets = mutate(source, octets)
        checked([give(READY)] + cut_in_pieces(source, octets))


def test_random_sequences_with_queue_rules_and_transactions():
    """Time-outs, lengths, priorities, dead letters, streams, exchanges of all types, CC and reply-to, all over each other, by a peer that
    opens its channels again and settles what it got: so that a case lives long enough to get into trouble."""
    source = source_of("rules")
    kinds = {}
    for _ in range(150 * ROUNDS):
        steps = [give(READY + amqp_wire.method(3, "channel.open"))]
        for octets in lively(source, source.choice((10, 40, 80))):
            steps += [give(octets), ["polite"]]
            if source.random() < 0.3:
                steps.append(["settle", source.choice(("basic.ack", "basic.nack", "basic.reject")), source.randrange(30)])
            if source.random() < 0.1:
                steps.append(["tick", source.choice((1, 600, 1500, 6000))])
        for one in checked(steps):
            kinds[one.name] = kinds.get(one.name, 0) + 1
    # A third of what a usual seed gives: this holds that the cases live, whatever the seed.
    assert kinds["basic.deliver"] > 150 * ROUNDS and kinds["tx.commit-ok"] > 15 * ROUNDS and kinds["basic.ack"] > 100 * ROUNDS, kinds


def test_frames_of_a_sequence_swapped_lost_and_doubled():
    source = source_of("shuffled")
    for _ in range(150 * ROUNDS):
        frames = split_frames(READY[8:] + b"".join(sequence(source, 12)))
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(frames))
            kind = source.randrange(3)
            if kind == 0:
                frames.insert(source.randrange(len(frames)), frames.pop(at))
            elif kind == 1 and len(frames) > 1:
                del frames[at]
            else:
                frames.insert(at, frames[at])
        checked([give(READY[:8])] + cut_in_pieces(source, b"".join(frames)))


def split_frames(octets):
    frames = []
    at = 0
    while at < len(octets):
        size = struct.unpack_from(">I", octets, at + 3)[0] + 8
        frames.append(octets[at : at + size])
        at += size
    return frames


@pytest.mark.parametrize("prefix", ["header", "ready"])
def test_every_recorded_frame_cut_at_every_octet_and_the_peer_is_gone(prefix):
    """Half a frame is waited for, and nothing of it stays. One broker serves them all: the cheapest way to see a leak."""
    broker = new_broker()
    healthy = Healthy(broker)
    start = cases.free_places(broker)
    for name, octets in RECORDED:
        for size in range(1, len(octets)):
            link = Link(broker)
            link.give(PREFIXES[prefix] + octets[:size])
            link.take()
            link.check_frames()
            if not link.connection.closed:
                link.end()
        healthy.is_answered()
        assert broker.counters["internal_errors"] == 0, name
        assert cases.free_places(broker) == start, name
    healthy.is_served()


def test_every_recorded_method_with_a_payload_cut_short_is_told_so():
    """The frame is whole, its payload ends at every octet: a close with a code and a text comes, whatever was cut."""
    broker = new_broker()
    healthy = Healthy(broker)
    start = cases.free_places(broker)
    for name, octets in RECORDED:
        if octets[0] != amqp_wire.METHOD or not name.startswith("client"):
            continue
        for size in range(len(octets) - 8):
            link = Link(broker)
            link.give(READY + amqp_wire.frame(1, struct.unpack_from(">H", octets, 1)[0], octets[7 : 7 + size]))
            link.take()
            found = link.check_frames()
            closes = [one for one in found if one.name == "connection.close"]
            assert len(closes) == 1, "%s cut to %d octets: %r" % (name, size, found)
            assert closes[0]["reply_code"] in (501, 502, 503, 504, 505, 540), (name, size, closes)
            if not link.connection.closed:
                link.end()
        assert broker.counters["internal_errors"] == 0, name
        assert cases.free_places(broker) == start, name
    healthy.is_served()


@pytest.mark.parametrize("octets, codes", [case[1:3] for case in WRONG], ids=[case[0].replace(" ", "-") for case in WRONG])
def test_every_wrong_input_is_told_so_however_it_is_split(octets, codes):
    """The table of the interop tests: one connection.close with an allowed code and a text, whole, octet by octet and at every split."""
    broker = new_broker()
    healthy = Healthy(broker)
    start = cases.free_places(broker)
    answers = set()
    for place in range(len(octets)):
        link = Link(broker)
        link.give(OPEN + amqp_wire.method(1, "channel.open"))
        link.give(octets[:place], step=1 if place == 1 else 0)
        link.give(octets[place:], step=1 if place == 1 else 0)
        link.take()
        closes = [one for one in link.check_frames() if one.name == "connection.close"]
        assert len(closes) == 1 and closes[0]["reply_code"] in codes, (place, closes)
        answers.add((closes[0]["reply_code"], closes[0]["reply_text"]))
        if not link.connection.closed:
            link.end()
        healthy.tidy()
    assert len(answers) == 1, answers
    assert cases.free_places(broker) == start and broker.counters["internal_errors"] == 0
    healthy.is_served()


def conversation():
    """A connection that does a bit of everything, without an answer that depends on when the consumer on channel 2 gets its deliveries."""
    steps = (
        BUSY,
        amqp_wire.method(1, "exchange.declare", exchange="x", type="topic"),
        amqp_wire.method(1, "queue.declare", queue="b", arguments={"note": [1, {"x": None}]}),
        amqp_wire.method(1, "queue.bind", queue="b", exchange="x", routing_key="*.r", arguments={"a": 1}),
        amqp_wire.publish(1, "amq.direct", "nobody", b"back", {"headers": {"a": 1}}, mandatory=True),
        amqp_wire.publish(1, "x", "q.r", b"z" * 5000, {"content_type": "text/plain"}, frame_size_max=4096),
        amqp_wire.method(1, "basic.get", queue="b"),
        amqp_wire.method(1, "basic.reject", delivery_tag=1, requeue=True),
        amqp_wire.method(1, "basic.get", queue="b"),
        amqp_wire.method(1, "basic.recover", requeue=True),
        amqp_wire.method(1, "queue.purge", queue="b"),
        amqp_wire.frame(8, 0, b""),
        amqp_wire.method(1, "basic.get", queue="missing"),
        amqp_wire.method(1, "channel.close-ok"),
        amqp_wire.method(1, "channel.open"),
        amqp_wire.method(1, "queue.delete", queue="b"),
        amqp_wire.method(1, "exchange.delete", exchange="x"),
        amqp_wire.method(1, "channel.close", reply_code=200),
    )
    return b"".join(steps)


def by_channel(found):
    """What each channel was told. Which channel comes first, how a body is parted into frames and which acks are made one may hang on how
    the input was cut; the order within a channel may not."""
    told = {}
    for one in found:
        said = told.setdefault(one.channel, [])
        content = one["delivery_tag"] if one.name == "basic.ack" else one.payload
        if said and said[-1][0] == one.name == "body":
            content = said.pop()[1] + content
        elif said and said[-1][0] == one.name == "basic.ack":
            said.pop()
        said.append((one.name, content))
    return told


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 64, 509])
def test_a_conversation_in_pieces_of_one_size_has_the_same_answers(step):
    whole = checked([give(conversation())])
    assert not [one for one in whole if one.name == "connection.close"] and len(whole) > 30, whole
    assert by_channel(checked([give(conversation(), step)])) == by_channel(whole)


def test_a_conversation_split_in_two_anywhere_has_the_same_answers():
    octets = conversation()
    whole = by_channel(checked([give(octets)]))
    source = source_of("splits")
    # Around every frame border, and at random inside: every octet of 8 KB of zeros would say the same again.
    at = 8
    places = set(range(1, 60))
    for one in split_frames(octets[8:]):
        places |= {at + offset for offset in range(-3, 12)}
        at += len(one)
    places |= {source.randrange(1, len(octets)) for _ in range(200 * ROUNDS)}
    for place in sorted(place for place in places if 0 < place < len(octets)):
        assert by_channel(checked([give(octets[:place]), give(octets[place:])])) == whole, place


def test_the_peer_goes_at_every_point_of_a_conversation():
    octets = conversation()
    source = source_of("gone")
    at = 8
    places = set()
    for one in split_frames(octets[8:]):
        places |= {at - 1, at, at + 1, at + 7, at + 8, at + 11, at + 12, at + source.randrange(len(one))}
        at += len(one)
    for place in sorted(places):
        checked([give(octets[:place])])
        checked([give(octets[:place]) + ["without reading"], ["take", 50]])


@hypothesis.seed(SEED)
@hypothesis.settings(
    max_examples=150 * ROUNDS, deadline=None, database=None, print_blob=True, suppress_health_check=list(hypothesis.HealthCheck)
)
@hypothesis.given(st.data())
def test_methods_with_any_values(data):
    """Hypothesis chooses methods, values of every kind, contents and cuts, and makes a failing case small."""
    octets = READY
    for _ in range(data.draw(st.integers(1, 8))):
        octets += any_method(data)
    sizes = data.draw(st.lists(st.integers(1, 200), max_size=4))
    steps = []
    at = 0
    for size in sizes:
        steps.append(give(octets[at : at + size]))
        at += size
    checked(steps + [give(octets[at:], data.draw(st.sampled_from((0, 1, 100))))])


TEXTS = st.one_of(st.sampled_from(("", "a", "b", "amq.direct")), st.binary(max_size=40), st.text(max_size=20).map(str.encode))
VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.none(),
        st.text(max_size=20),
        st.builds(amqp_wire.Typed, st.just("D"), st.tuples(st.integers(0, 255), st.integers(0, 2**32 - 1))),
        st.builds(amqp_wire.Typed, st.just("T"), st.integers(0, 2**64 - 1)),
        st.builds(amqp_wire.Typed, st.sampled_from("Sx"), st.binary(max_size=20)),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=10), inner, max_size=3)),
    max_leaves=8,
)
TABLE = st.one_of(
    st.dictionaries(
        st.one_of(st.text(max_size=10), st.sampled_from(("x-match", "x-max-length", "x-queue-type", "x-max-length-bytes"))),
        st.one_of(VALUES, st.sampled_from(("all", "any", "stream", "classic"))),
        max_size=4,
    ),
    st.binary(max_size=30).map(lambda octets: struct.pack(">I", len(octets)) + octets),
)
KINDS = {
    "bit": st.booleans(),
    "octet": st.integers(0, 255),
    "short": st.integers(0, 65535),
    "long": st.integers(0, 2**32 - 1),
    "longlong": st.integers(0, 2**64 - 1),
    "shortstr": TEXTS,
    "longstr": st.binary(max_size=60),
    "table": TABLE,
}


def any_method(data):
    row = data.draw(st.sampled_from([row for row in amqp_tables.METHODS if "c" in row[3]]))
    channel = data.draw(st.sampled_from((0, 1, 2, 3) if row[0] != 10 else (0, 0, 0, 1)))
    values = {field: data.draw(KINDS[kind]) for field, kind in [item.split(":") for item in row[5].split()]}
    octets = amqp_wire.method(channel, row[2], **values)
    if not row[4]:
        return octets
    body = data.draw(st.binary(max_size=300))
    size = len(body) if data.draw(st.booleans()) else data.draw(st.integers(0, 2**64 - 1))
    headers = data.draw(st.one_of(st.just(b"\0\0"), TABLE.map(lambda table: {"headers": table}), st.binary(max_size=30)))
    return octets + amqp_wire.header(channel, size, headers) + amqp_wire.frame(3, channel, body)


def test_a_peer_that_never_reads_makes_the_broker_hold_a_bounded_amount():
    """Ten thousand methods that each want an answer, returns, gets and deliveries, and nobody takes an octet."""
    source = source_of("deaf")
    broker = new_broker(connection_count_max=4)
    healthy = Healthy(broker)
    start = cases.free_places(broker)
    link = Link(broker)
    link.give(BUSY)
    frames = [
        amqp_wire.method(1, "basic.qos"),
        amqp_wire.publish(1, "amq.direct", "nobody", b"r" * 100, mandatory=True),
        amqp_wire.method(1, "basic.get", queue="a"),
        amqp_wire.publish(1, "", "a", b"d" * 100),
        amqp_wire.method(2, "basic.ack"),
        amqp_wire.method(1, "queue.declare", queue="a", passive=True),
    ]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(10000):
        link.give(source.choice(frames), reading=False)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000, "%d octets more are held" % grown
    healthy.is_answered()
    link.end()
    healthy.tidy()
    healthy.is_served()
    assert cases.free_places(broker) == start and broker.counters["internal_errors"] == 0


def test_connections_that_come_and_go_leave_nothing_in_memory():
    source = source_of("churn")
    broker = new_broker()
    healthy = Healthy(broker)
    start = cases.free_places(broker)
    tracemalloc.start()
    before = 0
    for number in range(300):
        link = Link(broker)
        link.give(mutate(source, conversation()) if number % 2 else conversation()[: source.randrange(9000)])
        link.take()
        if not link.connection.closed:
            link.end()
        healthy.tidy()
        healthy.link.said.clear()
        healthy.link.checked = 0
        del link
        if number == 100:
            gc.collect()  # a connection and its session know each other: only the collector frees them
            before = tracemalloc.get_traced_memory()[0]
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000, "%d octets more after 200 connections" % grown
    assert cases.free_places(broker) == start and broker.counters["internal_errors"] == 0


def test_silence_at_every_stage_ends_by_the_clock():
    """Half a header, half a log-in, half a content: time closes them, and what they held comes back."""
    half_content = READY + amqp_wire.publish(1, "", "a", b"x" * 9000, frame_size_max=4096)[:-5000]
    for octets in (b"", b"AMQ", amqp_wire.PROTOCOL_HEADER, cases.LOG_IN, cases.LOG_IN[:40], half_content):
        broker = new_broker()
        healthy = Healthy(broker)
        start = cases.free_places(broker)
        link = Link(broker)
        link.give(octets)
        now = 1000
        while not link.connection.closed and now < 200_000:
            now += 1000
            broker.tick(now, cases.SECONDS)
            link.connection.tick(now)
            link.take()
            healthy.link.connection.tick(now)
            healthy.link.give(amqp_wire.frame(8, 0, b""))
        assert link.connection.closed, "still there after 199 s with %r" % octets[:50]
        link.check_frames()
        assert cases.free_places(broker) == start
        healthy.is_served()

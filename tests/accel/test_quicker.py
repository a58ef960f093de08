"""CPython's own forms of some hot functions (core/shim.py, `quicker`) do what the plain ones say; routes spread in both."""

import importlib.util
import random
import struct

import pytest
import test_quicker_records

from leveret.core import shim
from leveret.core.amqp_0_9 import hot_in as hot_in_0_9
from leveret.core.amqp_0_9 import hot_in_quicker, hot_out, method, method_quicker, spec_0_8, spec_0_9, spec_0_9_1
from leveret.core.amqp_1_0 import hot_in, hot_transfers
from leveret.core.broker import publish
from leveret.core.errors import ProtocolError
from leveret.core.memory import hot, hot_quicker, layout

SLOTS = 4096
FORMS = {"put_frame": hot_out, "put_size": hot_transfers, "put_id": hot_transfers}  # by a form of struct
READERS = ("header_end", "body_end", "check_properties")  # of hot_in_quicker.py
METHODS = ("find", "decode", "encode")  # of method_quicker.py
MOVING = (*test_quicker_records.RECORDS, *test_quicker_records.TRANSFERS)  # messages: tested there
DIALECTS = (spec_0_8, spec_0_9, spec_0_9_1)
CHAINS = ("append", "extract")  # of hot_quicker.py


@pytest.fixture(scope="module")
def plain():
    """{name: function} as MicroPython runs them."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shim, "quicker", lambda function, form=None: found.setdefault(function.__name__, function))
        for module in (hot, publish, hot_out, hot_in, hot_transfers, hot_in_0_9, method):
            spec = importlib.util.spec_from_file_location(module.__name__ + "_plain", module.__file__)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert sorted(found) == sorted(("put_number", "route_hash", "high_octets", "is_named", *FORMS, *READERS, *METHODS, *MOVING))
    return found


def test_numbers_and_heads_of_frames_are_the_same_octets(plain):
    random_ = random.Random(random.randrange(1 << 30))
    for _ in range(300):
        numbers = {
            "put_number": (random_.getrandbits(random_.choice((1, 30))), random_.getrandbits(random_.choice((1, 30)))),
            "put_frame": (random_.randrange(256), random_.randrange(1 << 16), random_.getrandbits(random_.choice((8, 30)))),
            "put_size": [random_.randrange(1 << 16) for _ in range(2)],
            "put_id": [random_.randrange(256)] + [random_.randrange(1 << 16) for _ in range(5)],
        }
        for name, given in numbers.items():
            targets = [memoryview(bytearray(20)) for _ in range(2)]
            at = random_.randrange(10)
            plain[name](targets[0], at, *given)
            getattr(FORMS.get(name, hot_out), name)(targets[1], at, *given)
            assert targets[0] == targets[1], (name, given)


def test_octets_that_are_not_ascii_are_counted(plain):
    random_ = random.Random(random.randrange(1 << 30))
    for _ in range(300):
        octets = bytes([random_.choice((0, 65, 127, 128, 255)) for _ in range(20)])
        at = random_.randrange(20)
        end = random_.randrange(at, 20)
        for form in (plain["high_octets"], hot_in.high_octets):
            assert form(memoryview(octets), at, end) == sum(octet > 127 for octet in octets[at:end])


def test_the_name_of_a_publisher_is_looked_for(plain):
    """What has no such name may only be told to have one by the plain form, which compares four of its octets."""
    random_ = random.Random(random.randrange(1 << 30))
    for _ in range(300):
        octets = bytes([random_.choice(b"x-pd\x00ab") for _ in range(30)])
        assert not publish.is_named(memoryview(octets), 0, len(octets))
        at = random_.randrange(len(octets) - 13)
        octets = octets[:at] + b"x-publisher-id" + octets[at + 14 :]
        for form in (plain["is_named"], publish.is_named):
            assert form(memoryview(octets), 0, len(octets)) and not form(memoryview(octets), 0, 13)


def routes():
    """Families of routes as people name them: (what they are, exchange and key as two short strings each)."""

    def route(exchange, key):
        return bytes((len(exchange),)) + exchange.encode() + bytes((len(key),)) + key.encode()

    yield "numbers", [route("t", "key.%d" % number) for number in range(1000)]
    yield "numbers in front", [route("amq.topic", "%d.temperature" % number) for number in range(1000)]
    yield "queues", [route("", "device-%06d" % number) for number in range(0, 3000, 3)]
    yield "two numbers", [route("amq.topic", "site.%d.device.%d.humidity" % (one, two)) for one in range(10) for two in range(100)]
    yield "short", [route("", chr(one) + chr(two)) for one in range(97, 123) for two in range(97, 123)]
    yield "powers", [route("x", "k" * number) for number in range(250)]


@pytest.mark.parametrize("form", ("plain", "CPython"))
def test_routes_find_a_slot_near_where_they_are_looked_for(plain, form):
    """A quarter of the slots is taken: at most one route in a hundred finds none among those that are looked at."""
    route_hash = plain["route_hash"] if form == "plain" else publish.route_hash
    for what, octets in routes():
        taken, without = set(), 0
        for route in octets:
            first = route_hash(route, 0, len(route))
            assert 0 <= first < 1 << 28
            slot = next((first + probe & SLOTS - 1 for probe in range(layout.ROUTE_PROBES) if first + probe & SLOTS - 1 not in taken), None)
            without += slot is None
            taken.add(slot)
        assert without <= len(octets) // 100, (what, without, len(octets))


def test_the_hash_is_of_the_octets_named_and_of_nothing_else():
    octets = b"abcdefgh" * 40
    for size in range(257):
        assert publish.route_hash(octets, 3, size) == publish.route_hash(memoryview(octets)[3 : 3 + size], 0, size)


def state_of(**given):
    """The state that the readers of a content look at: limits that some of the contents here are beyond."""
    state = [0] * layout.STATE_WIDTH
    usual = {"END": 0, "FRAME_MAX": 200, "SIZE": 300, "PROPERTIES_MAX": 100, "CONTENT_MAX": 250}
    for name, value in {**usual, **given}.items():
        state[getattr(layout, "STATE_" + name)] = value
    return state


def a_value(random_, depth):
    """A field value (0-9-1 section 4.2.1, with the letters of RabbitMQ's), which may be of no letter that there is."""
    letter = random_.choice(b"VtbBsuIifDlLdTSxAFq" if depth < 10 else b"Vt")
    size = {86: 0, 115: 2, 117: 2, 73: 4, 105: 4, 102: 4, 68: 5, 108: 8, 76: 8, 100: 8, 84: 8}.get(letter, 1)
    octets = random_.randbytes(size)
    if letter in b"SxAF":
        octets = random_.randbytes(random_.randrange(4))
        if letter in b"AF":
            maker = a_value if letter == 65 else a_pair
            octets = b"".join([maker(random_, depth + 1) for _ in range(random_.randrange(3))])
        octets = struct.pack(">I", len(octets)) + octets
    return bytes([letter]) + octets


def a_pair(random_, depth):
    name = random_.choice((b"CC", b"BCC", b"XCC", b"unit", b"", "naïve".encode(), b"x" * 20))
    return bytes([len(name)]) + name + a_value(random_, depth)


def some_properties(random_):
    """Property flags and list of class basic (section 4.2.6.1), nearly always valid."""
    flags, octets = 0, b""
    for bit in range(13):
        if random_.random() < 0.4:
            flags |= 0x8000 >> bit
            if bit == 2:
                table = b"".join([a_pair(random_, 1) for _ in range(random_.randrange(4))])
                octets += struct.pack(">I", len(table)) + table
            elif bit in (3, 4):
                octets += bytes([random_.randrange(4)])
            elif bit == 9:
                octets += random_.randbytes(8)
            else:
                text = random_.choice((b"", b"text", b"r" * 21, b"30", b"60000", b"123456789", b"4x"))
                octets += bytes([len(text)]) + text
    return struct.pack(">H", flags | (random_.random() < 0.03)) + octets


def damaged(random_, octets):
    """Sometimes with another octet at one place."""
    if octets and random_.random() < 0.3:
        at = random_.randrange(len(octets))
        octets = octets[:at] + bytes([random_.choice((0, octets[at] ^ 1, octets[at] + 1 & 255, 255))]) + octets[at + 1 :]
    return octets


def test_properties_are_checked_alike(plain):
    """What is valid, what its columns are, and what is for the session (hot_in.check_properties)."""
    random_ = random.Random(random.randrange(1 << 30))
    answers = set()
    for _ in range(4000):
        octets = damaged(random_, some_properties(random_))
        source = memoryview(b"head" + octets + b"\xce" + random_.randbytes(3))
        end = 4 + len(octets)
        states = [state_of(), state_of()]
        forms = plain["check_properties"], hot_in_quicker.check_properties
        one, other = (form(state, source, 4, end) for form, state in zip(forms, states))
        columns = [(state[layout.STATE_KIND], state[layout.STATE_LIFETIME]) for state in states]
        assert one == other and columns[0] == columns[1], bytes(octets)
        answers.add(one)
    assert answers == {0, 1, 2} and hot_in_0_9.check_properties is hot_in_quicker.check_properties


def test_a_table_in_tables_is_valid_to_a_depth_alike(plain):
    for depth in range(12):
        octets = b""
        for _ in range(depth):
            octets = b"\1aF" + struct.pack(">I", len(octets)) + octets
        octets = b"\x20\0" + struct.pack(">I", len(octets)) + octets
        forms = plain["check_properties"], hot_in_quicker.check_properties
        answers = [form(state_of(), octets + b"\xce", 0, len(octets)) for form in forms]
        assert answers == [int(depth < 8)] * 2, depth


def test_the_frames_of_a_content_are_read_alike(plain):
    """The header's and the body's: where they end, that they are incomplete, or that they are not as usual."""
    random_ = random.Random(random.randrange(1 << 30))
    answers = set()
    for _ in range(4000):
        properties, bodies = some_properties(random_)[:120], [random_.randbytes(random_.choice((0, 1, 90, 201))) for _ in range(2)]
        size = sum(map(len, bodies)) + (random_.random() < 0.1)
        header = struct.pack(">BHIHHQ", 2, 7, 12 + len(properties), 60, 0, size | (random_.random() < 0.05) << 29) + properties + b"\xce"
        body = b"".join([struct.pack(">BHI", 3, 7, len(each)) + each + b"\xce" for each in bodies if each or random_.random() < 0.2])
        octets = b"\1\0\7" + damaged(random_, header) + damaged(random_, body)
        state = state_of(END=random_.choice((len(octets), random_.randrange(3, len(octets) + 1))), SIZE=random_.choice((300, 700)))
        source = memoryview(octets + bytes(30))
        headers = [form(state, source, 0, 3) for form in (plain["header_end"], hot_in_quicker.header_end)]
        ends = [form(state, source, 0, 3 + len(header), size) for form in (plain["body_end"], hot_in_quicker.body_end)]
        assert headers[0] == headers[1] and ends[0] == ends[1], bytes(octets)
        answers.update([(name, min(answer, 0)) for name, answer in (("header", headers[0]), ("body", ends[0]))])
    assert answers == {(name, answer) for name in ("header", "body") for answer in (0, layout.INCOMPLETE, layout.ASK)}


def some_arguments(random_, row):
    """Arguments for the fields of a row, which nearly always fit."""
    numbers = {"o": 8, "s": 16, "l": 32, "L": 64}
    made = []
    for code in row[method.FIELDS]:
        if code in numbers:
            made.append(random_.getrandbits(numbers[code]) if random_.random() < 0.99 else 1 << numbers[code])
        elif code == "b":
            made.append(random_.random() < 0.5)
        elif code in "Ff":
            made.append({"key": "value", "number": 7, "within": {"list": [True]}} if random_.random() < 0.3 else {})
        elif code == "T":
            made.append(random_.randbytes(random_.randrange(9)))
        else:
            made.append(random_.choice(("", "q", "naïve", b"octets", "x" * 255)) if random_.random() < 0.98 else "x" * 256)
    return made


def told(function, *given):
    """What a form answers: the octets or arguments, or the error with its words."""
    try:
        return function(*given)
    except ProtocolError as error:
        return error.condition, error.text
    except (ValueError, struct.error, AssertionError) as error:
        return type(error), str(error)


def test_methods_are_encoded_and_decoded_alike(plain):
    """Every row of every dialect (0-9-1 section 4.2.4), also where the payload is damaged, too short or too long."""
    random_ = random.Random(random.randrange(1 << 30))
    refused = set()
    for dialect in DIALECTS:
        for row in dialect.METHODS:
            assert method.find(dialect.METHODS, row[method.CODE]) is plain["find"](dialect.METHODS, row[method.CODE]) is row
            for _ in range(25):
                given = some_arguments(random_, row)
                octets = told(method.encode, row, 7, given)
                expected = told(plain["encode"], row, 7, given)
                if not isinstance(octets, bytes):
                    assert type(octets) is type(expected) and not isinstance(expected, bytes), (row, given)
                    continue
                assert octets == expected, (row, given)
                payload = damaged(random_, octets[11:-1])
                payload = payload[: random_.choice((len(payload), random_.randrange(len(payload) + 1)))]
                source = memoryview(b"head" + payload + random_.randbytes(random_.choice((0, 0, 3))))
                end = random_.choice((4 + len(payload), len(source)))
                found = [told(form, row, source, 4, end) for form in (method.decode, plain["decode"])]
                assert repr(found[0]) == repr(found[1]), (row, bytes(source), end)
                if isinstance(found[0], tuple):
                    refused.add(found[0][1].split(" ", 1)[-1])
    assert {"ends before its last argument", "has a short string that is not UTF-8"} <= refused
    assert method.decode is method_quicker.decode and method.encode is method_quicker.encode
    for code in (0, 1, 0xFFFFFFFF):
        assert method.find(spec_0_9_1.METHODS, code) is plain["find"](spec_0_9_1.METHODS, code) is None


def pool(random_, block_size, count):
    """(blocks, state) of an arena of so many blocks, of which some were used and freed, in runs of any length and order."""
    blocks, state = shim.table(count), shim.table(layout.STATE_WIDTH)
    state[layout.STATE_BLOCK_SIZE] = block_size
    state[layout.POOL_BLOCKS] = layout.NONE
    state[layout.POOL_BLOCKS + 1] = used = random_.choice((0, 0, random_.randrange(count)))
    while used:
        first = max(used - random_.randrange(1, 30), 0)
        run = list(range(first, used))
        if random_.random() < 0.2:
            random_.shuffle(run)
        if random_.random() < 0.8:  # else another message has them
            for block in reversed(run):
                blocks[block], state[layout.POOL_BLOCKS] = state[layout.POOL_BLOCKS], block
        used = first
    return blocks, state


def test_chains_of_blocks_are_the_same_tables_and_octets(plain):
    """A message of three appends in an arena in which blocks lie as they come; then parts of it, from any place."""
    assert hot.append is hot_quicker.append and hot.extract is hot_quicker.extract
    random_ = random.Random(random.randrange(1 << 30))
    for _ in range(200):
        block_size, count, seed = random_.choice((8, 13, 64)), 300, random_.getrandbits(30)
        parts = [random_.randrange(1, block_size * random_.choice((1, 3, 25))) for _ in range(3)]
        octets = bytes(random_.getrandbits(8) for _ in range(sum(parts)))
        sides = []
        for form in (plain["append"], hot_quicker.append):
            blocks, state = pool(random.Random(seed), block_size, count)
            arena, messages = shim.octets(block_size * count), shim.table(layout.MESSAGE_WIDTH)
            messages[layout.MESSAGE_FIRST] = messages[layout.MESSAGE_LAST] = layout.NONE
            at = 0
            for size in parts:
                form(arena, blocks, messages, state, 0, memoryview(octets), at, size)
                at += size
            sides.append((arena, blocks, messages, state))
        assert sides[0] == sides[1]
        arena, blocks, messages, state = sides[0]
        for _ in range(10):
            at = random_.randrange(len(octets))
            size = random_.randrange(len(octets) - at + 1)
            found = []
            for form in (plain["extract"], hot_quicker.extract):
                target = memoryview(bytearray(size + 3))
                form(arena, blocks, state, messages[layout.MESSAGE_FIRST], at, target, 2, size)
                rest = state[layout.STATE_CURSOR_BLOCK], state[layout.STATE_CURSOR_OFFSET]
                found.append((bytes(target), rest))
            assert found[0] == found[1] and found[0][0][2:-1] == octets[at : at + size]


def test_expressions_of_sections_are_few(plain):
    """Each takes milliseconds to be made, while the loop waits: there is one for each count of properties' fields, one for pairs."""
    quicker = importlib.import_module(hot_in.__name__ + "_quicker")
    for code in (0x73, 0x74):
        for count in range(256):
            quicker._is_usual(code, count, b"\xa1\x01k\x41" * 130, 0, 4 * (count >> 1))
    assert len(quicker._tests) == len(quicker._FIELDS) + 2

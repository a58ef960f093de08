"""What a record of the log must say to be believed (recovery/record_check.py): the last values that are good, the first that are not."""

import json
import struct

from leveret.core.log import segments
from leveret.core.log.definition_records import plain
from leveret.core.recovery import record_check
from leveret.core.recovery.record_check import DEPTH_MAX, IDENTITY_MAX, POSITION_MAX, check_value, fault_of

QUEUE = {"kind": "queue", "name": "q", "id": 1, "auto_delete": False, "arguments": {}}
STREAM = dict(QUEUE, arguments={"x-queue-type": "stream"}, stream="s", next=0, kept={})
BINDING = {"kind": "binding", "name": "q", "source": "e", "to": "queue", "key": b"", "arguments": {}}
USER = {"kind": "user", "name": "u", "password": "p", "tags": [], "permissions": None}
CLOCK = {"kind": "clock", "name": "c", "frames": [[1, 2, 3]]}


def fault(type_, octets):
    """The fault of a record in the middle of other octets."""
    return fault_of(type_, b"\xff\xff" + octets + b"\xff", 2, len(octets))


def of_definition(**fields):
    return fault(segments.DEFINED, json.dumps(plain(fields)).encode())


def changed(definition, **fields):
    return of_definition(**dict(definition, **fields))


def test_settled_ranges_are_as_many_as_the_record_says_each_of_one_position_at_least():
    def settled(identity, count, *ranges):
        octets = struct.pack(">IH", identity, count)
        for first, length in ranges:
            octets += struct.pack(">QI", first, length)
        return fault(segments.SETTLED, octets)

    assert settled(1, 0) == settled(IDENTITY_MAX - 1, 1, (POSITION_MAX - 1, 1)) == settled(1, 2, (1, 1), (5, 9)) == ""
    assert settled(1, 1) == "its size is not that of 1 ranges" and settled(1, 1, (1, 1), (2, 2)) != ""
    assert settled(IDENTITY_MAX, 1, (1, 1)) != ""
    for bad in ((1, 0), (POSITION_MAX, 1)):
        assert settled(1, 1, bad) == settled(1, 2, (1, 1), bad) == settled(1, 2, bad, (1, 1)) == "it has a range that is none"


def test_a_kept_offset_is_one():
    assert fault(segments.KEPT, struct.pack(">IQ", 1, POSITION_MAX - 1)) == ""
    assert fault(segments.KEPT, struct.pack(">IQ", 1, POSITION_MAX) + b"c") == "it has no offset"
    assert fault(segments.KEPT, struct.pack(">IQ", 1, 1)[:-1]) != ""


def test_a_queue_is_what_its_kind_has():
    assert changed(QUEUE) == changed(QUEUE, id=IDENTITY_MAX - 1) == changed(STREAM) == ""
    for number in (0, -1, IDENTITY_MAX, True):
        assert changed(QUEUE, id=number) != "", number
    assert changed(QUEUE, stream="s") == changed(QUEUE, arguments=STREAM["arguments"]) == "its arguments are not those of its kind"
    assert changed(STREAM, next=POSITION_MAX - 1, kept={"a": 0, "b": POSITION_MAX - 1}) == ""
    for fields in (
        {"next": POSITION_MAX},
        {"next": -1},
        {"next": True},
        {"next": "1"},
        {"kept": {"a": 1, "b": -1}},
        {"kept": []},
        {"stream": 7},
    ):
        assert changed(STREAM, **fields) == "the offsets of a stream are none", fields


def test_names_have_at_most_255_octets_and_other_texts_65535():
    assert changed(QUEUE, name="é" * 127 + "x") == changed(USER, password="p" * 65535) == ""
    assert changed(QUEUE, name="é" * 128) == "it has a name of more than 255 octets"
    assert changed(USER, password="p" * 65536) == "the password of a definition is too long"


def test_each_field_is_of_its_type_and_there():
    for definition in (QUEUE, STREAM, BINDING, USER, CLOCK):
        for name in definition:
            left = {key: definition[key] for key in definition if key != name}
            assert of_definition(**left) != "", (definition["kind"], name)
            assert changed(definition, **{name: 3.5}) != "", (definition["kind"], name)


def test_a_binding_is_to_a_queue_or_an_exchange_with_a_key_of_255_octets():
    assert changed(BINDING) == changed(BINDING, to="exchange", key=b"k" * 255) == ""
    for fields in ({"to": "user"}, {"to": ""}, {"key": b"k" * 256}):
        assert changed(BINDING, **fields) == "a binding to nothing", fields


def test_a_removal_says_what_is_gone():
    assert of_definition(gone="queue", name="q", id=1) == of_definition(gone="policy", name="p") == ""
    for fields in (
        {"gone": "queue", "name": "q"},
        {"gone": 1, "name": "q"},
        {"gone": "queue", "name": 1, "id": 1},
    ):
        assert of_definition(**fields) != "", fields
    assert of_definition(gone="queue", name="q", id=-1) == of_definition(name="q") == "it is no definition"
    assert fault(segments.DEFINED, b"7") == "it is no definition" and fault(segments.DEFINED, b"{") != ""


def test_a_user_has_three_permissions_or_none_and_words_for_tags():
    good = [None, ["", ".*", "a"]]
    assert [changed(USER, permissions=each) for each in good] == ["", ""] and changed(USER, permissions=None, tags=["administrator"]) == ""
    for fields in ({"permissions": ["", ""]}, {"permissions": ["", "", 7]}, {"permissions": None, "tags": [7]}, {"permissions": "abc"}):
        assert changed(USER, **fields) != "", fields


def test_frames_of_the_clock_are_three_numbers_each():
    edge = POSITION_MAX - 1
    assert changed(CLOCK) == changed(CLOCK, frames=[[edge, -edge, 0], [1, 2, 3]]) == ""
    for frames in ([[1, 2]], [[1, 2, 3, 4]], [[1, 2, "3"]], [[POSITION_MAX, 1, 1]], [[1, -POSITION_MAX, 1]], [[1, 2, 3], []]):
        assert changed(CLOCK, frames=frames) == "a frame of the clock is none", frames
    assert changed(CLOCK, frames=[]) == "it has no frame"


def refused(value, depth=DEPTH_MAX):
    try:
        check_value(value, depth)
    except ValueError as error:
        return str(error)
    return ""


def test_values_are_those_that_a_field_table_can_give():
    """Whole numbers of 64 bits with a sign, timestamps of 64 bits without one, and so many levels."""
    for number in (0, (1 << 63) - 1, -(1 << 63), 1.5, True, None, "é", b"\xff", ("T", 0), ("T", (1 << 64) - 1)):
        assert refused(number) == refused([number]) == refused({"k": [{"k": number}]}) == "", number
    for number in (1 << 63, -(1 << 63) - 1):
        assert refused(number) == refused([1, number]) == refused({"a": 1, "k": number}) == "a number of more than 64 bits", number
    for stamp in (("T", -1), ("T", 1 << 64), ("T",), ("T", 1, 2), ("U", 1), ("T", 1.5)):
        assert refused(stamp) == refused([stamp]) == "a timestamp that is none", stamp


def test_values_have_so_many_levels_and_no_more():
    deep: object = 1
    for _ in range(DEPTH_MAX - 1):
        deep = [deep]
    assert refused(deep) == "" and refused([deep]) == refused({"k": deep}) == "too deep"


def test_a_check_that_finds_no_memory_is_no_fault_of_the_record():
    """A record that is passed over is lost: a start that has no memory for it ends with that error and leaves the log as it is."""
    for error, told in ((MemoryError(), "raised"), (ValueError("no number"), "it cannot be read (no number)")):

        def check(payload, at, size, error=error):
            raise error

        record_check.CHECKS[250] = check
        try:
            fault = fault_of(250, b"", 0, 0)
        except MemoryError:
            fault = "raised"
        finally:
            del record_check.CHECKS[250]
        assert fault == told

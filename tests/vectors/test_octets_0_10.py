"""Golden octets of AMQP 0-10, a row for each control, command and struct: those that Qpid's client has written (amqp_0_10.json), and by
hand those of the classes file and stream, which it does not know. Each is read, cut at every octet, and written again.
"""

import json
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "unit"))

from peer_0_10 import Peer, new_broker  # noqa: E402 - its path has to be set first

from leveret.core.amqp_0_10 import frame, structs  # noqa: E402 - with what the path above brings
from leveret.core.amqp_0_10.spec_0_10 import COMMANDS, CONTROLS, STRUCTS  # noqa: E402 - the same
from leveret.core.errors import ProtocolError  # noqa: E402 - the same

with open(os.path.join(HERE, "amqp_0_10.json"), encoding="utf-8") as _file:
    RECORDED = json.load(_file)

# By hand: code, session header, packing flags (the first field's is the lowest bit of the first octet), fields.
BY_HAND = (
    ["file_qos", {"prefetch_size": 1, "prefetch_count": 2, "global": True}, "090101000700000000010002"],
    ["file_qos_ok", {}, "090201000000"],
    ["file_consume", {"queue": "q", "consumer_tag": "c", "no_ack": True}, "090301000b0001710163"],
    ["file_consume_ok", {"consumer_tag": "c"}, "0904010001000163"],
    ["file_cancel", {"consumer_tag": "c"}, "0905010001000163"],
    ["file_open", {"identifier": "ab", "content_size": 3}, "0906010003000261620000000000000003"],
    ["file_open_ok", {"staged_size": 2}, "0907010001000000000000000002"],
    ["file_stage", {}, "090801000000"],
    ["file_publish", {"routing_key": "q", "mandatory": True, "identifier": "a"}, "09090100160001710161"],
    ["file_return", {"reply_code": 312, "reply_text": "no", "routing_key": "q"}, "090a01000b000138026e6f0171"],
    [
        "file_deliver",
        {"consumer_tag": "c", "delivery_tag": 5, "redelivered": True, "routing_key": "q", "identifier": "a"},
        "090b010037000163000000000000000501710161",
    ],
    ["file_ack", {"delivery_tag": 5, "multiple": True}, "090c010003000000000000000005"],
    ["file_reject", {"delivery_tag": 5, "requeue": True}, "090d010003000000000000000005"],
    ["stream_qos", {"consume_rate": 9}, "0a010100040000000009"],
    ["stream_qos_ok", {}, "0a0201000000"],
    ["stream_consume", {"queue": "q", "consumer_tag": "c", "exclusive": True}, "0a0301000b0001710163"],
    ["stream_consume_ok", {"consumer_tag": "c"}, "0a04010001000163"],
    ["stream_cancel", {"consumer_tag": "c"}, "0a05010001000163"],
    ["stream_publish", {"routing_key": "q", "immediate": True}, "0a0601000a000171"],
    ["stream_return", {"reply_code": 313, "reply_text": "no", "exchange": "e"}, "0a07010007000139026e6f0165"],
    ["stream_deliver", {"consumer_tag": "c", "delivery_tag": 5, "queue": "q"}, "0a0801000b00016300000000000000050171"],
    ["session-header", {"sync": True}, "0101"],
    ["command-fragment", {"command_id": 2, "byte_ranges": {"octets": "00" * 15 + "04"}}, "00000002001000000000000000000000000000000004"],
    ["reply-to", {"exchange": "e", "routing_key": "k"}, "000603000165016b"],
    ["file-properties", {"priority": 3, "filename": "a"}, "0000000709014800030161"],
    ["stream-properties", {"content_type": "t", "priority": 3}, "000000070a010900017403"],
)
# Qpid's client writes an array of nothing without type and count, which the text has of every array.
EMPTY, WHOLE_EMPTY = "00000000", "00000005ab00000000"
ENDS_EMPTY = ("session_expected", "session_confirmed", "recover-result")

# A conversation in octets: attach, a queue, a subscription with credit for one, a transfer, sync, a flush of what is completed.
SAID = (
    "0f0000130000000000000000" + "0201" + "0100" + "000173",
    "0f00001c0000000000000000" + "0207" + "0300" + "00000000" + "0000000000000000",
    "0f0100140001000000000000" + "0801" + "0100" + "0100" + "0171",
    "0f0100180001000000000000" + "0407" + "0100" + "0f00" + "0171" + "0164" + "01" + "00",
    "0f0100190001000000000000" + "040a" + "0100" + "0700" + "0164" + "00" + "00000001",
    "0f0100190001000000000000" + "040a" + "0100" + "0700" + "0164" + "01" + "ffffffff",
    "0b0100150001000000000000" + "0401" + "0100" + "0700" + "00" + "01" + "00",
    "030200170001000000000000" + "00000007" + "0401" + "1002" + "02" + "0171",
    "070300100001000000000000" + "626f6479",
    "0f0100120001000000000000" + "0301" + "0100" + "0000",
    "0f0000100000000000000000" + "020c" + "0400",
)
ANSWERED = (
    "0f0000130000000000000000" + "0202" + "0100" + "000173",
    "0f00001c0000000000000000" + "0207" + "0300" + "00000000" + "0000000000000000",
    "0b0100160001000000000000" + "0401" + "0100" + "0700" + "0164" + "01" + "00",
    "030200180001000000000000" + "00000008" + "0401" + "1003" + "02" + "00" + "0171",
    "070300100001000000000000" + "626f6479",
)
COMPLETED = bytes.fromhex("020a")


def value(given):
    """A value as our tables have it, of one in the file: {"octets": hexadecimal}, lists of pairs."""
    if isinstance(given, dict):
        return bytes.fromhex(given["octets"]) if set(given) == {"octets"} else {name: value(each) for name, each in given.items()}
    return [tuple(each) if isinstance(each, list) else each for each in given] if isinstance(given, list) else given


ROWS = [(name, value(fields), octets) for name, fields, octets in (*RECORDED, *BY_HAND)]


def read(name, octets):
    """The fields that are there, of the segment or struct."""
    if name in structs.RESULTS:
        title, fields, _ = structs.command(octets)
    elif "-" not in name and "_" in name:
        title, fields = structs.control(octets)
    else:
        title = name
        fields, end = structs.read(name, octets, 0, len(octets))
        assert end == len(octets)
    assert title == name
    return {each: fields[each] for each in fields if fields[each] not in (None, False)}


def write(name, fields):
    if name in structs.RESULTS:
        return structs.write_command(name, fields)
    return structs.write_control(name, fields) if "-" not in name and "_" in name else structs.write(name, fields)


def test_every_control_command_and_struct_has_its_golden_octets():
    assert sorted(row[0] for row in ROWS) == sorted([row[1] for row in CONTROLS + COMMANDS] + [row[0] for row in STRUCTS])


@pytest.mark.parametrize("name, fields, octets", ROWS, ids=[row[0] for row in ROWS])
def test_they_are_read_refused_at_every_cut_and_written_again(name, fields, octets):
    octets = bytes.fromhex(octets)
    if name == "execution_result":
        fields = dict(fields, value=structs.write("xa-result", fields["value"])[4:])
    assert read(name, octets) == fields
    for cut in range(len(octets)):
        with pytest.raises(ProtocolError):
            read(name, octets[:cut])
    written = write(name, fields)
    if name in ENDS_EMPTY:
        assert written.hex().endswith(WHOLE_EMPTY) and octets.hex().endswith(EMPTY)
        written = bytes.fromhex(written.hex()[: -len(WHOLE_EMPTY)] + EMPTY)
        octets, written = octets[4 * (name == "recover-result") :], written[4 * (name == "recover-result") :]  # its size is another, too
    assert written == octets


@pytest.mark.parametrize("name, fields, octets", ROWS, ids=[row[0] for row in ROWS])
def test_its_frame_is_not_whole_at_any_cut(name, fields, octets):
    """Section "framing": flags, segment type, size, track, channel, with another frame behind it."""
    octets = bytes.fromhex(octets)
    kind = frame.COMMAND if name in structs.RESULTS else frame.CONTROL
    whole = bytes((15, kind)) + (len(octets) + 12).to_bytes(2, "big") + bytes((0, kind)) + (9).to_bytes(2, "big") + bytes(4) + octets
    for cut in range(len(whole)):
        assert frame.read(whole, 0, cut, 65535) is None
    assert frame.read(whole + whole, 0, 2 * len(whole), 65535) == (15, kind, kind, 9, 12, len(whole))
    assert frame.write(frame.WHOLE, kind, 9, octets) == whole


def answers(pieces):
    """The frames that a broker answers to the conversation in pieces, but for what is completed; and that, as the last says it."""
    peer = Peer(new_broker(), attaches=False)
    for piece in pieces:
        peer.give(piece)
    peer.collect()
    frames = frame.each_of(bytes(peer.inbox))
    completed = [each for each in frames if each[12:14] == COMPLETED]
    return [each.hex() for each in frames if each not in completed], completed[-1].hex()


def test_a_conversation_is_answered_with_its_golden_octets_at_every_split():
    octets = bytes.fromhex("".join(SAID))
    expected = list(ANSWERED), "0f00001a0000000000000000020a010000080000000000000005"
    assert answers([octets]) == expected
    assert answers([octets[at : at + 1] for at in range(len(octets))]) == expected
    for cut in range(1, len(octets)):
        assert answers([octets[:cut], octets[cut:]]) == expected, cut

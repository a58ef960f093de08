"""One conversation of AMQP 1.0 in octets, written by hand from the specification: what comes in, what goes out, for a row of each section.

Nulls at the end of our lists are written (section 1.4 allows it: azure-eventhub reads them), but for transfers. Nothing here is written or
read by our codec. Each row comes whole, octet by octet and at every split (MicroPython: some),
behind the rows before it.
"""

import sys

from peer_1_0 import Peer, declare, new_broker, ways

QUEUE = "005329c00c01a1092f7175657565732f71"  # a target (0x29) with the address /queues/q
# the same as it is made: durable 0, session-end, timeout 0, not dynamic
TARGET = "005329c01c05a1092f7175657565732f71" + "43" + "a30b73657373696f6e2d656e64" + "43" + "42"
OUTCOMES = [b"amqp:accepted:list", b"amqp:rejected:list", b"amqp:released:list", b"amqp:modified:list"]
SYMBOLS = "e04e04a3" + "".join(["%02x" % len(each) + each.hex() for each in OUTCOMES])
SOURCE = "005328c00c01a1092f7175657565732f71"
# section, what it is, what comes in, what goes out (None: it names a version; its head is looked at)
ROWS = (
    (
        "5.3.1, 5.3.3.1",
        "the header of SASL; mechanisms",
        "414d515003010000",
        "414d515003010000" + "0000002602010000005340c01901e01602a305504c41494e0d534352414d2d5348412d323536",
    ),
    (
        "5.3.3.2, 5.3.3.6",
        "sasl-init: PLAIN; outcome ok",
        "0000002302010000" + "005341" + "c01602" + "a305504c41494e" + "a00c006775657374006775657374",
        "0000001002010000" + "005344" + "c00301" + "5000",
    ),
    ("2.2", "the header of AMQP", "414d515000010000", "414d515000010000"),
    ("2.7.1", "open: container-id g, max-frame-size 4096", "0000001702000000" + "005310" + "c00a03" + "a10167" + "40" + "7000001000", None),
    ("2.4.5", "an empty frame", "0000000802000000", ""),
    (
        "2.7.2",
        "begin: next-outgoing-id 0, both windows 5; our windows 2048 and 2^31-1, handle-max 255",
        "0000001402000000" + "005311" + "c00704" + "40" + "43" + "5205" + "5205",
        "0000002102000000" + "005311" + "c01408" + "600000" + "43" + "7000000800" + "707fffffff" + "52ff" + "404040",
    ),
    (
        "2.7.3, 3.5.4",
        "attach: we send; a flow gives the credit",
        "0000002a02000000" + "005312" + "c01d0a" + "a1016c" + "43" + "42" + "404040" + QUEUE + "404043",
        "0000004802000000"
        + "005312c03b0e"
        + "a1016c43415002500040"
        + TARGET
        + "404040"
        + "800000000000003000"
        + "404040"
        + ("0000002202000000" + "005313c0150b" + "43" + "7000000800" + "43" + "707fffffff" + "43" + "43" + "5228" + "40404040"),
    ),
    (
        "2.7.5, 3.2.1, 3.2.6",
        "transfer: delivery 0, tag t, a durable message; accepted and settled",
        "0000002302000000" + "005314" + "c00805" + "43" + "43" + "a00174" + "43" + "42" + "005370c0020141" + "005375a0026869",
        "0000001702000000" + "005315c00a06" + "41" + "43" + "40" + "41" + "00532445" + "40",
    ),
    (
        "2.7.3, 3.5.3",
        "attach: we receive",
        "0000002702000000" + "005312" + "c01a06" + "a10172" + "5201" + "41" + "4040" + SOURCE,
        "0000009d02000000"
        + "005312c0900e"
        + "a1017252014250005000"
        + ("005328c0780a" + "a1092f7175657565732f71" + "43" + "a30b73657373696f6e2d656e64" + "43" + "42" + "40")
        + ("a3046d6f7665" + "40" + "00532645" + SYMBOLS)
        + "40404043"
        + "40404040",
    ),
    (
        "2.7.4, 2.6.7",
        "flow: one credit; the message, octet for octet",
        "0000001a02000000" + "005313" + "c00d07" + "43" + "5205" + "5201" + "5205" + "5201" + "43" + "5201",
        "0000002c02000000" + "005314c01106" + "52017000000001a004000000014342" + "42" + "005370c0020141" + "005375a0026869",
    ),
    (
        "2.7.6, 3.4.2",
        "disposition: accepted and settled",
        "0000001702000000" + "005315" + "c00a05" + "41" + "5201" + "40" + "41" + "00532445",
        "",
    ),
    (
        "4.5.1",
        "attach: to a coordinator",
        "0000001e02000000" + "005312" + "c0110a" + "a10163" + "5202" + "42" + "404040" + "00533045" + "404043",
        "0000006202000000"
        + "005312c0550e"
        + "a101635202415002500040"
        + ("005330c03501e03202a3" + "17" + b"amqp:local-transactions".hex() + "17" + b"amqp:multi-txns-per-ssn".hex())
        + "404040"
        + "800000000000000200"
        + "404040"
        + ("0000002502000000" + "005313c0180b" + "5201" + "7000000800" + "5201" + "707fffffff" + "5202" + "43" + "5214" + "40404040"),
    ),
    (
        "4.5.2, 4.5.5",
        "declare; declared",
        "0000001e02000000" + "005314" + "c00a05" + "5202" + "5201" + "a00164" + "43" + "42" + "005377" + "00533145",
        "0000002202000000" + "005315c01506" + "41" + "5201" + "40" + "41" + "005333c00901" + "a006000000000001" + "40",
    ),
    (
        "4.5.3",
        "discharge; accepted",
        "0000002902000000"
        + "005314"
        + "c00a05"
        + "5202"
        + "5202"
        + "a00165"
        + "43"
        + "42"
        + "005377"
        + "005332c00a02"
        + "a006000000000001"
        + "42",
        "0000001802000000" + "005315c00b06" + "41" + "5202" + "40" + "41" + "00532445" + "40",
    ),
    (
        "2.7.7",
        "detach, closed",
        "0000001002000000" + "005316" + "c00302" + "43" + "41",
        "0000001102000000" + "005316" + "c00403" + "43" + "41" + "40",
    ),
    ("2.7.8", "end", "0000000c02000000" + "00531745", "0000000f02000000" + "005317" + "c00201" + "40"),
    ("2.7.9", "close", "0000000c02000000" + "00531845", "0000000f02000000" + "005318" + "c00201" + "40"),
)


EACH = 12 if sys.implementation.name == "micropython" else 1


def said(peer, octets):
    """What goes out for octets, as hexadecimal."""
    peer.give(octets)
    peer.collect()
    found, peer.inbox = "".join(["%02x" % octet for octet in peer.inbox]), b""
    return found


def behind(count):
    """A peer that has said so many rows."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker, opens=False)
    for row in ROWS[:count]:
        said(peer, bytes.fromhex(row[2]))
    return peer


def test_every_row_is_answered_octet_for_octet_however_it_is_cut():
    for place, (section, words, given, wanted) in enumerate(ROWS):
        for number, pieces in enumerate(ways(bytes.fromhex(given))):
            if number % EACH > 1:
                continue
            peer = behind(place)
            found = "".join([said(peer, piece) for piece in pieces])
            if wanted is None:
                assert found[8:22] == "02000000005310", (section, words, found)
                assert len(found) == 2 * int(found[:8], 16) <= 2 * 512  # section 2.4.1: what each peer takes
            else:
                assert found == wanted, (section, words, len(pieces), found, wanted)
    assert peer.connection.closed or peer.connection.ending

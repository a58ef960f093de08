"""Each frame of 0-9-1 ends with 0xCE (section 4.2.3): another octet there is a frame-error, 501, and what the frame says is not done."""

from peer import Peer, content, encoded, new_broker

from leveret.core.amqp_0_9 import frame

DECLARE = encoded("queue_declare", 1, 0, "made", False, False, False, False, False, {})
CONTENT = content(1, "", "q", b"body")
METHOD_END = 7 + int.from_bytes(CONTENT[3:7], "big")  # where the first of three frames ends
HEADER_END = METHOD_END + 8 + int.from_bytes(CONTENT[METHOD_END + 4 : METHOD_END + 8], "big")
HEARTBEAT = frame.encode(8, 0, b"")


def test_a_frame_with_another_end_closes_the_connection_and_is_not_carried_out():
    for octets, at in (
        (DECLARE, len(DECLARE) - 1),
        (CONTENT, METHOD_END),
        (CONTENT, HEADER_END),
        (CONTENT, len(CONTENT) - 1),
        (HEARTBEAT, len(HEARTBEAT) - 1),
    ):
        for other in (0x00, 0xCF, 0x4E):
            broker = new_broker()
            peer = Peer(broker)
            peer.declare("q")
            assert octets[at] == 0xCE
            peer.give(octets[:at] + bytes([other]) + octets[at + 1 :])
            code, text, _, _ = peer.expect("connection_close")
            assert code == 501 and text.startswith("FRAME_ERROR - a "), text
            assert text.endswith("frame that does not end with 0xCE but with 0x%02X" % other), text
            assert "made" not in broker.queues and broker.queues["q"].message_count() == 0


def test_names_of_a_publish_are_utf_8():
    """Section 4.2.5.3: an exchange name of other octets is a syntax error, 502, and nothing is routed."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    octets = content(1, "caf\u00e9", "q", b"body")
    at = octets.index(b"\xc3\xa9")
    peer.give(octets[:at] + b"\xc3\x28" + octets[at + 2 :])
    code, text, _, _ = peer.expect("connection_close")
    assert code == 502 and text == "SYNTAX_ERROR - basic.publish has an exchange name that is not UTF-8", text

"""AMQP 0-8 and 0-9: each reply code of their tables, with its text, and whether it closes the channel (soft) or the connection (hard).

REPLIES leads: a row for each, and what a peer does for it. Texts are RabbitMQ's, by which their clients know them.
"""

from peer import new_broker
from test_older import HEADERS, Old

from leveret.core.amqp_0_9 import frame, method, properties

CHANNEL, CONNECTION, RETURN = "channel_close", "connection_close", "basic_return"
NO_ACK, MANDATORY, IMMEDIATE = True, True, True


def publish(peer, exchange, key, size, mandatory=False, immediate=False):
    """basic.publish with the header of a body of so many octets, and the body where it is short."""
    peer.say("basic_publish", 1, 0, exchange, key, mandatory, immediate)
    peer.give(frame.content_header(1, size, properties.encode({})))
    if size <= 8:
        peer.give(frame.encode(frame.BODY, 1, b"x" * size))


def shut(peer):
    peer.connection.session.shut("an operator ends it")


def break_it(peer):
    """An error of the broker's own."""
    peer.connection.broke(ValueError("of the test"))


def locked(peer):
    """A queue that another connection has for itself."""
    other = Old(peer.header, peer.spec, peer.broker)
    other.say("queue_declare", 1, 0, "own", False, False, True, False, False, {})
    peer.say("queue_declare", 1, 0, "own", False, False, False, False, False, {})
    assert "own" in peer.broker.queues


def raw(kind, channel, octets):
    """A function that sends a frame."""
    return lambda peer: peer.give(frame.encode(kind, channel, octets))


def without_end(peer):
    peer.give(frame.encode(frame.METHOD, 1, b"\x00\x32\x00\x0a")[:-1] + b"\x00")


def tag_again(peer):
    """A consumer tag that is in use."""
    for _ in range(2):
        peer.say("basic_consume", 1, 0, "q", "c", False, NO_ACK, False, False, {})


# (condition, code, the method that says it, the text, what a peer does)
REPLIES = (
    (
        "content-too-large",
        311,
        CHANNEL,
        "CONTENT_TOO_LARGE - a body of 100000 octets; this broker",
        lambda peer: publish(peer, "", "q", 100000),
    ),
    ("no-route", 312, RETURN, "NO_ROUTE", lambda peer: publish(peer, "", "nowhere", 1, MANDATORY)),
    ("connection-forced", 320, CONNECTION, "CONNECTION_FORCED - an operator ends it", shut),
    (
        "access-refused",
        403,
        CHANNEL,
        "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix",
        lambda peer: peer.say("queue_declare", 1, 0, "amq.mine", False, False, False, False, False, {}),
    ),
    (
        "not-found",
        404,
        CHANNEL,
        "NOT_FOUND - no queue 'none' in vhost '/'",
        lambda peer: peer.say("queue_declare", 1, 0, "none", True, False, False, False, False, {}),
    ),
    ("not-found", 404, CHANNEL, "NOT_FOUND - no exchange 'none' in vhost '/'", lambda peer: publish(peer, "none", "q", 1)),
    ("resource-locked", 405, CHANNEL, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'own'", locked),
    ("precondition-failed", 406, CHANNEL, "PRECONDITION_FAILED - unknown delivery tag 7", lambda peer: peer.say("basic_ack", 1, 7, False)),
    ("frame-error", 501, CONNECTION, "FRAME_ERROR - a frame that does not end with 0xCE but with 0x00", without_end),
    ("frame-error", 501, CONNECTION, "FRAME_ERROR - unknown frame type 9", raw(9, 1, b"")),
    ("syntax-error", 502, CONNECTION, "SYNTAX_ERROR - ", raw(frame.METHOD, 1, b"\x00\x32\x00\x0a\x00")),
    (
        "command-invalid",
        503,
        CONNECTION,
        "COMMAND_INVALID - there is no class 99 with a method 1",
        raw(frame.METHOD, 1, b"\x00\x63\x00\x01"),
    ),
    ("channel-error", 504, CONNECTION, "CHANNEL_ERROR - ", lambda peer: peer.say("basic_get", 5, 0, "q", NO_ACK)),
    ("unexpected-frame", 505, CONNECTION, "UNEXPECTED_FRAME - ", lambda peer: peer.give(frame.content_header(1, 1, properties.encode({})))),
    ("not-allowed", 530, CONNECTION, "NOT_ALLOWED - attempt to reuse consumer tag 'c'", tag_again),
    ("not-implemented", 540, CONNECTION, "NOT_IMPLEMENTED - immediate=true", lambda peer: publish(peer, "", "q", 1, False, IMMEDIATE)),
    ("internal-error", 541, CONNECTION, "INTERNAL_ERROR - ", break_it),
)
ELSEWHERE = {
    "reply-success": "no error",
    "not-delivered": "of classes file and stream alone, which say no-route (test_older_file.py)",
    "no-consumers": "of classes file and stream (test_older_file.py, test_older_stream.py)",
    "invalid-path": "test_an_unknown_virtual_host_is_an_invalid_path",
    "resource-error": "test_a_broker_without_room_is_a_resource_error",
}


class Stranger(Old):
    """A peer that has not logged in."""

    def log_in(self, capabilities):
        """Not yet."""


def said(peer, wanted):
    """(the method, its code, its text) of the first method of this name that comes."""
    for _ in range(3):
        for name, arguments in peer.methods():
            if name == wanted:
                return name, arguments[0], arguments[1]
        peer.broker.run()
    return None


def test_each_reply_code_comes_with_its_text_and_closes_what_its_table_says():
    for header, spec in HEADERS:
        rows = {name: (code, hard) for name, code, hard in spec.REPLIES}
        for condition, code, wanted, text, act in REPLIES:
            peer = Old(header, spec).declared()
            act(peer)
            found = said(peer, wanted)
            assert found is not None, (header, condition, wanted)
            assert found[1] == code and found[2].startswith(text), (header, condition, found)
            if wanted != RETURN:
                assert rows[condition] == (code, wanted == CONNECTION), condition
            if wanted == CHANNEL:  # the connection lives on, and the channel may be opened again
                peer.say("channel_close_ok", 1)
                peer.say("channel_open", 1, "")
                peer.asked("channel_open_ok")
        assert set(rows) <= {row[0] for row in REPLIES} | set(ELSEWHERE)


def test_an_unknown_virtual_host_is_an_invalid_path():
    """invalid-path, 402: "The client tried to work with an unknown virtual host"; RabbitMQ's 530 is for 0-9-1."""
    for header, spec in HEADERS:
        peer = Stranger(header, spec)
        peer.give(header)
        peer.asked("connection_start")
        peer.say("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US")
        peer.asked("connection_tune")
        peer.say("connection_tune_ok", 0, 0, 0, 0)
        peer.say("connection_open", 0, "none", "", False)
        assert said(peer, CONNECTION) == (CONNECTION, 402, "INVALID_PATH - vhost none not found")
        assert peer.connection.session.closing_method == method.named(spec.METHODS, "connection_open")[0]


def test_a_broker_without_room_is_a_resource_error():
    """resource-error, 506, which is hard."""
    for header, spec in HEADERS:
        peer = Old(header, spec, new_broker(queue_count_max=1, queue_share_max=1)).declared()
        peer.say("queue_declare", 1, 0, "more", False, False, False, False, False, {})
        assert said(peer, CONNECTION) == (CONNECTION, 506, "RESOURCE_ERROR - this broker holds 1 queues at most")

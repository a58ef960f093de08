"""Every method of 0-9-1 and of RabbitMQ's table, one after the other: what a client sends is answered as the specification or RabbitMQ has
it, and what only a server sends is refused. METHODS leads; a method without a row here fails the test.

CALLS: method, arguments, and what comes back: names of frames in order, or (code, name of the close). Each on a fresh connection with
channel 1 open, queue q with one message, and exchange e (fanout).
"""

from peer import Peer, content, encoded, new_broker

from leveret.core.amqp_0_9 import method
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER, METHODS

# method, channel, arguments, what comes back
CALLS = (
    ("connection_start_ok", 0, ({}, "PLAIN", b"\0guest\0guest", "en_US"), (530, "connection_close")),  # 504 from RabbitMQ; begun is begun
    ("connection_secure_ok", 0, (b"",), (530, "connection_close")),
    ("connection_tune_ok", 0, (0, 0, 0), (530, "connection_close")),
    ("connection_open", 0, ("/", "", False), (530, "connection_close")),
    ("connection_close", 0, (200, "bye", 0, 0), ("connection_close_ok",)),
    ("connection_close_ok", 0, (), (504, "connection_close")),
    ("connection_update_secret", 0, (b"secret", "why"), ("connection_update_secret_ok",)),
    ("channel_open", 1, ("",), (504, "connection_close")),
    ("channel_flow", 1, (True,), ("channel_flow_ok",)),
    ("channel_flow", 1, (False,), (540, "connection_close")),  # as RabbitMQ; section 1.5.2.3 has it
    ("channel_flow_ok", 1, (True,), ()),
    ("channel_close", 1, (200, "bye", 0, 0), ("channel_close_ok",)),
    ("channel_close_ok", 1, (), (504, "connection_close")),
    ("access_request", 1, ("/data", False, True, True, True, True), ("access_request_ok",)),
    ("exchange_declare", 1, (0, "new", "direct", False, False, False, False, False, {}), ("exchange_declare_ok",)),
    ("exchange_declare", 1, (0, "new", "direct", False, False, False, False, True, {}), ()),
    ("exchange_delete", 1, (0, "e", False, False), ("exchange_delete_ok",)),
    ("exchange_delete", 1, (0, "e", False, True), ()),
    ("exchange_bind", 1, (0, "e", "amq.fanout", "", False, {}), ("exchange_bind_ok",)),
    ("exchange_bind", 1, (0, "e", "amq.fanout", "", True, {}), ()),
    ("exchange_unbind", 1, (0, "e", "amq.fanout", "", False, {}), ("exchange_unbind_ok",)),
    ("exchange_unbind", 1, (0, "e", "amq.fanout", "", True, {}), ()),
    ("queue_declare", 1, (0, "new", False, False, False, False, False, {}), ("queue_declare_ok",)),
    ("queue_declare", 1, (0, "new", False, False, False, False, True, {}), ()),
    ("queue_bind", 1, (0, "q", "e", "", False, {}), ("queue_bind_ok",)),
    ("queue_bind", 1, (0, "q", "e", "", True, {}), ()),
    ("queue_unbind", 1, (0, "q", "e", "", {}), ("queue_unbind_ok",)),
    ("queue_purge", 1, (0, "q", False), ("queue_purge_ok",)),
    ("queue_purge", 1, (0, "q", True), ()),
    ("queue_delete", 1, (0, "q", False, False, False), ("queue_delete_ok",)),
    ("queue_delete", 1, (0, "q", False, False, True), ()),
    ("basic_qos", 1, (0, 1, False), ("basic_qos_ok",)),
    ("basic_qos", 1, (1, 0, False), (540, "connection_close")),  # as from RabbitMQ: no prefetch in octets
    ("basic_consume", 1, (0, "q", "c", False, False, False, False, {}), ("basic_consume_ok", "basic_deliver", "header", "body")),
    ("basic_consume", 1, (0, "q", "c", False, False, False, True, {}), ("basic_deliver", "header", "body")),
    ("basic_cancel", 1, ("nobody", False), ("basic_cancel_ok",)),  # a tag that is not there: as from RabbitMQ
    ("basic_cancel", 1, ("nobody", True), ()),
    ("basic_cancel_ok", 1, ("c",), ()),  # the answer to our notification
    ("basic_publish", 1, None, ("basic_return", "header", "body")),
    ("basic_publish", 1, (0, "", "q", False, True), (540, "connection_close")),  # immediate, as from RabbitMQ
    ("basic_get", 1, (0, "q", True), ("basic_get_ok", "header", "body")),
    ("basic_ack", 1, (1, False), (406, "channel_close")),
    ("basic_ack", 1, (0, True), ()),  # all of none
    ("basic_reject", 1, (1, False), (406, "channel_close")),
    ("basic_nack", 1, (1, False, True), (406, "channel_close")),
    ("basic_nack", 1, (0, True, True), ()),
    ("basic_recover_async", 1, (True,), ()),
    ("basic_recover_async", 1, (False,), (540, "connection_close")),  # as from RabbitMQ: nobody can redeliver to the same consumer
    ("basic_recover", 1, (True,), ("basic_recover_ok",)),
    ("basic_recover", 1, (False,), (540, "connection_close")),
    ("confirm_select", 1, (False,), ("confirm_select_ok",)),
    ("confirm_select", 1, (True,), ()),
    ("tx_select", 1, (), ("tx_select_ok",)),
    ("tx_commit", 1, (), (406, "channel_close")),  # not a transactional channel
    ("tx_rollback", 1, (), (406, "channel_close")),
)

# In the order of a session: method, arguments, what comes back. Here each has what it settles or ends.
SESSION = (
    ("basic_consume", (0, "q", "c", False, False, False, False, {}), ("basic_consume_ok", "basic_deliver", "header", "body")),
    ("basic_recover", (True,), ("basic_recover_ok", "basic_deliver", "header", "body")),
    ("basic_recover_async", (True,), ("basic_deliver", "header", "body")),
    ("basic_nack", (3, False, True), ("basic_deliver", "header", "body")),
    ("basic_reject", (4, True), ("basic_deliver", "header", "body")),
    ("basic_nack", (5, False, True), ("basic_deliver", "header", "body")),
    ("channel_flow", (True,), ("channel_flow_ok",)),
    ("basic_ack", (6, False), ()),
    ("basic_cancel", ("c", False), ("basic_cancel_ok",)),
    ("tx_select", (), ("tx_select_ok",)),
    ("tx_select", (), ("tx_select_ok",)),
    ("confirm_select", (False,), (406, "channel_close")),
)


def furnished():
    """A broker and a peer on it."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "e", "fanout", False, False, False, False, False, {})
    peer.publish("q", b"x")
    return broker, peer


def back(peer):
    """Names of what came, or (code, name) of a close."""
    frames = peer.frames()
    if len(frames) == 1 and frames[0][0] in ("connection_close", "channel_close"):
        return frames[0][2][0], frames[0][0]
    return tuple([each[0] for each in frames])


def test_every_method_of_a_client_is_answered():
    for name, channel, arguments, expected in CALLS:
        broker, peer = furnished()
        if arguments is None:
            peer.give(content(channel, "amq.direct", "nowhere", b"x", None, True))
        else:
            peer.give(encoded(name, channel, *arguments))
        found = back(peer)
        assert found == expected, (name, arguments, found)
        if expected and expected[-1] not in ("connection_close", "channel_close", "connection_close_ok", "channel_close_ok"):
            peer.ask("basic_qos", "basic_qos_ok", 0, 0, False)  # and the channel goes on
        assert broker.counters["internal_errors"] == 0, name


def test_no_method_is_left_out_and_what_only_a_server_sends_is_refused():
    covered = {row[0] for row in CALLS}
    for row in METHODS:
        name = row[method.NAME]
        if row[method.SENDER] & method.CLIENT:
            assert name in covered, name
            continue
        assert name not in covered, name
        peer = furnished()[1]
        values = {"o": 0, "s": 0, "l": 0, "L": 0, "S": "", "T": b"", "F": {}, "b": False}
        peer.give(encoded(name, 0 if name.startswith("connection") else 1, *[values[code] for code in row[method.FIELDS]]))
        code, text, class_id, method_id = peer.expect("connection_close")
        assert code == 503 and "is not a client's to send" in text, (name, code, text)
        assert class_id << 16 | method_id == row[method.CODE]


def test_a_method_that_no_table_has_is_named_with_its_numbers():
    peer = furnished()[1]
    peer.give(b"\x01\x00\x01\x00\x00\x00\x04\x00\x46\x00\x0a\xce")
    code, text, _, _ = peer.expect("connection_close")
    assert code == 503 and "class 70 with a method 10" in text


def test_the_methods_of_a_consumer_in_the_order_of_a_session():
    peer = furnished()[1]
    for name, arguments, expected in SESSION:
        peer.give(encoded(name, 1, *arguments))
        found = back(peer)
        assert found == expected, (name, arguments, found)


def test_the_handshake_takes_its_methods_in_order():
    """Sections 1.4.2 and 2.2.4: start-ok, tune-ok, open; each but the one that is due is refused with 503."""
    steps = (
        ("connection_start_ok", ({}, "PLAIN", b"\0guest\0guest", "en_US"), ("connection_tune",)),
        ("connection_tune_ok", (0, 0, 0), ()),
        ("connection_open", ("/", "", False), ("connection_open_ok",)),
    )
    for due in range(len(steps)):
        for wrong in range(len(steps)):
            peer = Peer(new_broker(), log_in=False)
            peer.give(HEADER)
            peer.expect("connection_start")
            for name, arguments, expected in steps[:due]:
                peer.give(encoded(name, 0, *arguments))
                assert back(peer) == expected
            name, arguments, expected = steps[wrong]
            peer.give(encoded(name, 0, *arguments))
            assert back(peer) == (expected if wrong == due else (503, "connection_close")), (due, name)

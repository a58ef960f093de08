"""AMQP 0-10: rules of the text that a second reader found without a test, with the sentence that each test is about."""

from peer_0_10 import Peer, command, control, frame, new_broker, properties, structs, transfer

from leveret.core.amqp_0_10.spec_0_10 import HEADER

ROOM = {"content_size_max": 4096, "argument_size_max": 2048, "receive_buffer_size": 8192, "send_buffer_size": 8192}
ENDLESS = 0xFFFFFFFF


def declared(**limits):
    peer = Peer(new_broker(**dict(ROOM, **limits)))
    peer.do("queue_declare", queue="q")
    peer.all()
    return peer


def names(peer):
    return [each[0] for each in peer.all()]


def raised(peer):
    """The fields of the exception that has come, or None."""
    found = [fields for name, fields, _, _, _ in peer.all() if name == "execution_exception"]
    return found[0] if found else None


def passed(peer, milliseconds):
    """Time passes."""
    broker = peer.broker
    broker.tick(broker.now + milliseconds, broker.seconds)
    if not peer.connection.closed:
        peer.connection.tick(broker.now)


# Class connection


def test_more_than_was_proposed_ends_the_connection_without_a_word():
    """connection.tune-ok channel-max, max-frame-size: "the server MUST close the connection without attempting a negotiated close"."""
    for given in ({"channel_max": 65535, "max_frame_size": 4096}, {"channel_max": 1, "max_frame_size": 65535}):
        peer = Peer(new_broker(**ROOM), opens=False)
        peer.log_in()
        peer.give(control("connection_tune_ok", heartbeat=0, **given))
        assert names(peer) == [] and (peer.connection.closed or peer.connection.ending), given
        assert peer.broker.counters["connection_errors"] == 1


def test_a_mechanism_that_was_not_proposed_ends_the_connection_without_a_word():
    """connection.start-ok mechanism: "the server MUST close the connection without sending any further data"."""
    for mechanism, words in (("NONE", []), ("", []), ("PLAIN", ["connection_close"])):
        peer = Peer(new_broker(login_pause_ms=0, **ROOM), opens=False)
        peer.give(HEADER)
        assert peer.take(8) == HEADER
        peer.expect("connection_start")
        peer.give(control("connection_start_ok", mechanism=mechanism, response=b"\x00guest\x00wrong", locale="en_US"))
        found = []
        for _ in range(5):
            peer.broker.run()
            found += names(peer)
            passed(peer, 3000)
            found += names(peer)
        assert found == words and peer.connection.closed, mechanism


def test_heartbeats_and_a_close_may_come_before_connection_open():
    """connection.heartbeat: "when a connection is idle"; connection.close is for both peers to handle (MUST)."""
    for before in (b"", control("connection_tune_ok", channel_max=8, max_frame_size=4096, heartbeat=1) + control("connection_heartbeat")):
        peer = Peer(new_broker(**ROOM), opens=False)
        peer.log_in()
        peer.give(before)
        assert names(peer) == []
        peer.give(control("connection_close", reply_code=200, reply_text="bye"))
        assert names(peer) == ["connection_close_ok"]


# Frames and assemblies


def test_a_control_has_one_segment_and_a_body_is_the_last_one():
    """close-code framing-error: of assemblies that no control and no command has."""
    moves = structs.write_command("message_transfer", {"destination": "", "accept_mode": 1, "acquire_mode": 0})
    flush = structs.write_control("session_flush", {"completed": True})
    first, ends = frame.FIRST_SEGMENT, frame.FIRST_FRAME | frame.LAST_FRAME
    begun = frame.segment(first, frame.COMMAND, 0, moves, 65535) + frame.segment(0, frame.HEADER, 0, b"", 65535)
    for octets in (
        frame.write(ends | first, frame.CONTROL, 0, flush),
        frame.write(ends | frame.LAST_SEGMENT, frame.CONTROL, 0, flush),
        begun + frame.write(ends, frame.BODY, 0, b"x"),
        begun + frame.write(frame.FIRST_FRAME, frame.BODY, 0, b"x"),
    ):
        peer = declared()
        peer.give(octets)
        closes = [fields["reply_code"] for name, fields, _, _, _ in peer.all() if name == "connection_close"]
        assert closes == [501] and peer.broker.queues["q"].message_count() == 0


def test_segments_that_cannot_be_decoded_end_the_session_alone():
    """error-code command-invalid: "The command segments could not be decoded"; the exception names the command as far as it is known."""
    sync, whole = structs.write_command("execution_sync", {}), frame.WHOLE
    cases = (
        (frame.write(whole, frame.COMMAND, 0, b"\x04"), 0, 0),
        (frame.write(whole, frame.COMMAND, 0, b"\x04\x7f\x00"), 4, 0x7F),
        (frame.write(whole, frame.COMMAND, 0, sync + b"\x00"), 3, 1),
        (frame.write(whole, frame.COMMAND, 0, sync[:-1] + b"\x80"), 3, 1),
        (command("message_cancel", destination="d")[:-1].replace(b"\x00\x14", b"\x00\x13"), 4, 8),
        (transfer(b"m").replace(b"\x00\x00\x00\x05\x04\x01", b"\x00\x00\x00\x06\x04\x01"), 4, 1),
    )
    for octets, class_code, code in cases:
        peer = declared()
        peer.give(octets)
        found = raised(peer)
        assert found is not None and found["error_code"] == 503, octets
        assert (found["command_id"], found["class_code"], found["command_code"]) == (1, class_code, code)
        peer.give(control("session_detached", name=b"unit", code=0))
        peer.attach(b"another")


def test_arguments_out_of_their_domain_are_illegal():
    """error-code illegal-argument: "it does not fall within the specified domain"."""
    for fields in ({"accept_mode": 2}, {"acquire_mode": 2}, {"accept_mode": 255}):
        for before in (0, 2):
            peer = declared()
            for _ in range(before):
                peer.publish(b"before")
            peer.publish(b"m", **fields)
            assert raised(peer)["error_code"] == 531 and peer.broker.queues["q"].message_count() == before, fields


# Class session


def test_session_attached_where_no_session_is_says_nothing():
    """Session rule: "any control other than attach, attached, detach, or detached" is answered with not-attached."""
    peer = Peer(new_broker(**ROOM))
    for title in ("session_attached", "session_detached"):
        peer.give(control(title, 5, name=b"x"))
        assert names(peer) == [], title
    peer.give(control("session_timeout", 5, timeout=5))
    assert names(peer) == ["session_detached"]


# Class message


def consumed(peer, count, accept=0, **given):
    """So many messages, delivered."""
    for number in range(count):
        peer.publish(b"%d" % number)
    peer.subscribe(accept=accept, messages=ENDLESS, **given)
    assert len(peer.transfers()) == count


def test_redelivered_stays_redelivered():
    """redelivered: "If the redelivered flag is set on transfer to a Server, then any delivery of the message from that Server to a Client
    must also have the redelivered flag set to true"; each way that a delivery is made."""
    for octets in (ENDLESS, 100000):
        for given in ({}, {"ttl": 50000, "priority": 4, "delivery_mode": 2}):
            peer = declared()
            for is_old in (True, False):
                peer.publish(b"m", delivery=dict(given, redelivered=is_old))
            peer.subscribe(octets=octets, accept=0)
            came = [header[properties.DELIVERY]["redelivered"] for header, _ in peer.transfers()]
            assert came == [True, False], (octets, given)
            peer.do("message_release", transfers=[(0, 1)], set_redelivered=True)
            assert [header[properties.DELIVERY]["redelivered"] for header, _ in peer.transfers()] == [True, True]
            peer.do("message_release", transfers=[(2, 3)])
            assert [header[properties.DELIVERY]["redelivered"] for header, _ in peer.transfers()] == [True, True]


def test_release_without_set_redelivered_changes_nothing():
    """message.release: "If this flag is not set, then an acquired message will retain its original redelivered status"."""
    peer = declared()
    consumed(peer, 2)
    peer.do("message_release", transfers=[(0, 1)])
    came = peer.transfers()
    assert [(header[properties.DELIVERY]["redelivered"], body) for header, body in came] == [(False, b"0"), (False, b"1")]


def test_the_mode_of_flow_changes_without_any_credit_alone():
    """message.set-flow-mode: "Mode switching may only occur if both the byte and message credit balance are zero"."""
    for unit in (0, 1):
        for value, code in ((5, 409), (ENDLESS, 409), (None, 409), (0, None)):
            peer = declared()
            peer.do("message_subscribe", queue="q", destination="d", accept_mode=0, acquire_mode=0)
            peer.do("message_flow", destination="d", unit=unit, value=value)
            peer.do("message_set_flow_mode", destination="d", flow_mode=1)  # as it is
            peer.do("message_set_flow_mode", destination="d", flow_mode=0)
            found = raised(peer)
            assert (found and found["error_code"]) == code, (unit, value)
    for title in ("message_stop", "message_flush"):
        peer = declared()
        peer.subscribe()
        peer.do(title, destination="d")
        peer.do("message_set_flow_mode", destination="d", flow_mode=0)
        assert raised(peer) is None, title


def test_sets_are_settled_in_whatever_order_they_come_and_all_or_none():
    """Accept, reject, release over sets: ids that are settled already are passed over; with one that was not sent none is settled."""
    for title, left, back in (("message_accept", 4, 0), ("message_reject", 4, 0), ("message_release", 4, 6)):
        peer = declared()
        consumed(peer, 10)
        queue = peer.broker.queues["q"]
        peer.do("message_stop", destination="d")
        peer.do(title, transfers=[(7, 8), (2, 2), (0, 2), (5, 5), (8, 8)])
        assert (queue.unsettled_count(), queue.message_count()) == (left, back), title
        peer.do(title, transfers=[(0, 9)])
        assert (queue.unsettled_count(), queue.message_count()) == (0, back and 10), title
        peer = declared()
        consumed(peer, 3)
        peer.do(title, transfers=[(0, 1), (3, 3)])
        assert raised(peer)["error_code"] == 531
        peer.broker.run()
        assert peer.broker.queues["q"].message_count() == 3, title  # they go back with their session


def test_a_set_that_takes_several_turns_is_that_set():
    """The same where one turn is too short for it: nothing between its ranges is settled."""
    peer = declared()
    consumed(peer, 60)
    peer.do("message_stop", destination="d")
    queue, engine, turns = peer.broker.queues["q"], peer.broker.tables.engine, []
    before, engine.effort = engine.effort, 4
    try:
        peer.give(command("message_accept", transfers=[(30, 45), (0, 9), (20, 21)]))
        while queue.unsettled_count() > 60 - 28 and len(turns) < 50:
            turns.append(queue.unsettled_count())
            peer.connection.process()
    finally:
        engine.effort = before
    assert queue.unsettled_count() == 60 - 28 and len(turns) > 3
    peer.do("message_release", transfers=[(0, 59)])
    assert queue.message_count() == 60 - 28 and queue.unsettled_count() == 0


def test_credit_of_octets_counts_header_and_body():
    """message.set-flow-mode: "decremented by the payload size of each transmitted frame with segment type header or body"; what does not
    fit whole waits ("the sender must either wait")."""
    peer = declared()
    for _ in range(3):
        peer.publish(b"x" * 50)
    peer.do("message_subscribe", queue="q", destination="d", accept_mode=0, acquire_mode=0)
    peer.do("message_set_flow_mode", destination="d", flow_mode=0)
    peer.do("message_flow", destination="d", unit=0, value=ENDLESS)
    peer.do("message_flow", destination="d", unit=1, value=ENDLESS - 1)
    sizes = [len(header) + len(body) for name, _, header, body, _ in peer.all() if name == "message_transfer"]
    assert len(sizes) == 3 and len(set(sizes)) == 1
    peer.do("message_stop", destination="d")
    peer.do("message_release", transfers=[(0, 2)])
    for value, count in ((sizes[0] - 1, 0), (1, 1), (2 * sizes[0] - 1, 1), (0, 0), (1, 1)):
        peer.do("message_flow", destination="d", unit=1, value=value)
        peer.do("message_flow", destination="d", unit=0, value=1)
        assert len(peer.transfers()) == count, value


def test_credit_that_is_not_limited_stays_so_until_stop_or_flush():
    """message.flow: "This disables any limit for the given unit until the credit balance is zeroed with message.stop or message.flush"."""
    for value in (ENDLESS, None):
        peer = declared()
        peer.do("message_subscribe", queue="q", destination="d", accept_mode=1, acquire_mode=0)
        peer.do("message_set_flow_mode", destination="d", flow_mode=0)
        for unit in (0, 1):
            peer.do("message_flow", destination="d", unit=unit, value=value)
            peer.do("message_flow", destination="d", unit=unit, value=1)
        for _ in range(5):
            peer.publish(b"x" * 100)
        assert len(peer.transfers()) == 5
        peer.do("message_stop", destination="d")
        for unit in (0, 1):
            peer.do("message_flow", destination="d", unit=unit, value=0)
        peer.publish(b"y")
        assert peer.transfers() == []


def test_completions_behind_a_stop_give_no_credit():
    """message.stop: "no further messages will be sent until such a time as further credit is received"; transfers from before it are not
    of the window that comes behind it."""
    peer = declared()
    for number in range(10):
        peer.publish(b"%d" % number)
    peer.subscribe(messages=3, accept=0)
    assert len(peer.transfers()) == 3
    peer.do("message_stop", destination="d")
    peer.give(control("session_completed", commands=[(0, 0)]))
    assert peer.transfers() == []
    for unit, value in ((1, ENDLESS), (0, 2)):
        peer.do("message_flow", destination="d", unit=unit, value=value)
    assert len(peer.transfers()) == 2
    peer.give(control("session_completed", commands=[(1, 2)]))
    assert peer.transfers() == []
    peer.give(control("session_completed", commands=[(3, 4)]))
    assert len(peer.transfers()) == 2


def test_a_cancelled_subscriptions_transfers_are_settled_as_before():
    """message.cancel: "Canceling a subscription MUST NOT affect pending transfers ... MUST be able to be accepted, released, acquired, or
    rejected"."""
    peer = declared()
    consumed(peer, 4)
    peer.do("message_cancel", destination="d")
    queue = peer.broker.queues["q"]
    peer.do("message_accept", transfers=[(0, 0)])
    peer.do("message_reject", transfers=[(1, 1)])
    peer.do("message_release", transfers=[(2, 2)])
    assert (queue.unsettled_count(), queue.message_count()) == (1, 1) and raised(peer) is None
    peer.do("message_subscribe", queue="q", destination="b", accept_mode=0, acquire_mode=1)
    for unit in (0, 1):
        peer.do("message_flow", destination="b", unit=unit, value=500)
    assert [body for _, body in peer.transfers()] == [b"2"]
    peer.do("message_cancel", destination="b")
    peer.do("message_acquire", transfers=[(0, 9)])
    octets = [fields["value"] for name, fields, _, _, _ in peer.all() if name == "execution_result"][0]
    found = structs.read("acquired", len(octets).to_bytes(4, "big") + octets, 0, len(octets) + 4)[0]
    assert found == {"transfers": [(4, 4)]} and queue.message_count() == 0


def test_who_discards_what_is_unroutable_hears_of_no_reject():
    """discard-unroutable: "If set on a message that is not routable the broker can discard it. If not set, an unroutable message should be
    handled by reject when accept-mode is explicit"."""
    for discard, immediate, wanted in (
        (True, False, ["message_accept"]),
        (False, False, ["message_reject"]),
        (True, True, ["message_accept"]),
        (False, True, ["message_reject"]),
    ):
        peer = declared()
        peer.publish(
            b"m", key="q" if immediate else "nowhere", delivery={"discard_unroutable": discard, "immediate": immediate}, accept_mode=0
        )
        came = peer.all()
        assert [name for name, _, _, _, _ in came if name.startswith("message")] == wanted, (discard, immediate)
        assert [fields["commands"] for name, fields, _, _, _ in came if name == "session_completed"] == [[(0, 1)]]


# Ids of commands


def test_a_command_point_says_the_next_id_also_amid_a_session():
    """session.command-point: "The subsequent command data will be numbered starting with the values supplied"; "at least once", so again;
    what was executed is passed over, and what was left out is expected."""
    peer = declared()
    peer.publish(b"1")
    peer.give(control("session_command_point", command_id=1, command_offset=0))
    peer.publish(b"1 again")
    peer.publish(b"2")
    peer.give(control("session_command_point", command_id=10, command_offset=0))
    peer.publish(b"10")
    assert peer.broker.queues["q"].message_count() == 3
    assert peer.completed() == [(0, 2), (10, 10)]
    peer.give(control("session_flush", expected=True))
    assert peer.expect("session_expected")["commands"] == [(3, 9), (11, 11)]
    peer.give(control("session_command_point", command_id=3, command_offset=0))
    for _ in range(3, 13):
        peer.publish(b"x")
    assert peer.broker.queues["q"].message_count() == 3 + 7 + 2 and peer.completed() == [(0, 12)]
    peer.give(control("session_command_point", command_id=13, command_offset=5))  # of a fragment of a command that is not here
    assert [fields["code"] for name, fields, _, _, _ in peer.all() if name == "session_detached"] == [4]


def test_ids_go_around():
    """sequence-no: RFC 1982; the same of sets, gaps and what an exception names."""
    peer = declared()
    peer.give(control("session_command_point", command_id=0xFFFFFFFE, command_offset=0))
    for number in range(4):
        peer.publish(b"%d" % number)
    assert peer.completed() == [(0xFFFFFFFE, 1)] and peer.broker.queues["q"].message_count() == 3  # 0 was the declaration
    peer.give(control("session_gap", commands=[(2, 4)]) + control("session_known_completed", commands=[(0xFFFFFFFE, 0xFFFFFFFF)]))
    assert peer.completed() == [(0, 4)]
    peer.do("message_cancel", destination="none")
    found = raised(peer)
    assert (found["command_id"], found["class_code"], found["command_code"]) == (5, 4, 8)


def test_a_timely_reply_is_an_echo_and_is_not_sent_unasked():
    """session.completed timely-reply: "the sender is no longer free to delay the known-completed reply", "an exact echo"."""
    peer = declared()
    consumed(peer, 3)
    peer.give(control("session_completed", commands=[(0, 0)]))
    assert names(peer) == []
    peer.give(control("session_completed", commands=[(1, 1), (2, 2)], timely_reply=True))
    ((name, fields, _, _, _),) = peer.all()
    assert (name, fields["commands"]) == ("session_known_completed", [(1, 1), (2, 2)])

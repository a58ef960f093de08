"""AMQP 0-10: what a peer may not say, command by command, and which exception or close it gets for it (core/amqp_0_10)."""

from peer_0_10 import Peer, command, control, frame, new_broker, properties, structs, transfer

from leveret.core.amqp_0_10 import definitions
from leveret.core.amqp_0_10.conditions import SessionError
from leveret.core.amqp_0_10.spec_0_10 import DETACHES
from leveret.core.errors import ProtocolError

ROOM = {"content_size_max": 4096, "argument_size_max": 2048, "receive_buffer_size": 8192, "send_buffer_size": 8192}
XID = {"format": 1, "global_id": b"g", "branch_id": b"b"}
# execution.error-code
UNAUTHORIZED, NOT_FOUND, RESOURCE_LIMIT, NOT_ALLOWED = 403, 404, 506, 530
ILLEGAL_ARGUMENT, ILLEGAL_STATE, INVALID_ARGUMENT = 531, 409, 542


def ready(broker, name=b"unit"):
    peer = Peer(broker, name=name)
    peer.do("queue_declare", queue="q")
    peer.do("exchange_declare", exchange="e", type="fanout")
    peer.do("message_subscribe", queue="q", destination="d", accept_mode=0, acquire_mode=0)
    peer.all()
    return peer


def outcome(peer):
    """(error-code, description) of the exception that has come, (reply-code, text) of the close, or None."""
    for name, fields, _, _, _ in peer.all():
        if name == "execution_exception":
            return fields["error_code"], fields["description"] or ""
        if name == "connection_close":
            return fields["reply_code"], fields["reply_text"]
    return None


# (error code, a part of its description, command, its fields)
REFUSED = (
    (ILLEGAL_ARGUMENT, "the field exchange is missing", "exchange_declare", {"type": "direct"}),
    (ILLEGAL_ARGUMENT, "the field exchange is missing", "exchange_bind", {"queue": "q"}),
    (ILLEGAL_ARGUMENT, "the field queue is missing", "exchange_bind", {"exchange": "e"}),
    (ILLEGAL_ARGUMENT, "the field queue is missing", "queue_declare", {}),
    (ILLEGAL_ARGUMENT, "the field queue is missing", "queue_purge", {}),
    (ILLEGAL_ARGUMENT, "the field queue is missing", "queue_query", {}),
    (INVALID_ARGUMENT, "the field queue is empty", "exchange_bind", {"queue": "", "exchange": "e"}),
    (NOT_FOUND, "none", "exchange_unbind", {"queue": "q", "exchange": "none", "binding_key": "k"}),
    (NOT_FOUND, "none", "exchange_unbind", {"queue": "none", "exchange": "e", "binding_key": "k"}),
    (
        NOT_FOUND,
        "is not bound to exchange 'e' with the key 'other'",
        "exchange_unbind",
        {"queue": "q", "exchange": "e", "binding_key": "other"},
    ),
    (INVALID_ARGUMENT, "the field exchange is empty", "exchange_declare", {"exchange": "", "type": "direct"}),
    (NOT_ALLOWED, "'amq.'", "exchange_declare", {"exchange": "amq.mine", "type": "topic"}),
    (None, "", "exchange_declare", {"exchange": "amq.topic", "type": "topic"}),
    (NOT_ALLOWED, "'amq.topic' is of type topic, and not fanout", "exchange_declare", {"exchange": "amq.topic", "type": "fanout"}),
    (None, "", "exchange_declare", {"exchange": "e", "passive": True}),
    (None, "", "exchange_declare", {"exchange": "e", "type": "fanout", "passive": True}),
    (NOT_ALLOWED, "'e' is of type fanout, and not direct", "exchange_declare", {"exchange": "e", "type": "direct", "passive": True}),
    (NOT_FOUND, "none", "exchange_declare", {"exchange": "none", "passive": True}),
    (NOT_FOUND, "none", "exchange_delete", {"exchange": "none"}),
    (NOT_FOUND, "none", "queue_delete", {"queue": "none"}),
    (NOT_ALLOWED, "a subscription 'd' is there already", "message_subscribe", {"queue": "q", "destination": "d"}),
    (ILLEGAL_ARGUMENT, "accept-mode is 2", "message_subscribe", {"queue": "q", "destination": "x", "accept_mode": 2}),
    (ILLEGAL_ARGUMENT, "acquire-mode is 2", "message_subscribe", {"queue": "q", "destination": "x", "acquire_mode": 2}),
    (None, "", "message_subscribe", {"queue": "q", "destination": "x", "accept_mode": 1, "acquire_mode": 1}),
    (INVALID_ARGUMENT, "", "message_subscribe", {"queue": "q", "destination": "x", "arguments": {"x-filter-jms-selector": "a ="}}),
    (NOT_FOUND, "none", "message_subscribe", {"queue": "none", "destination": "x"}),
    (NOT_FOUND, "there is no subscription 'none'", "message_cancel", {"destination": "none"}),
    (NOT_FOUND, "there is no subscription 'none'", "message_flow", {"destination": "none", "unit": 0, "value": 1}),
    (NOT_FOUND, "there is no subscription 'none'", "message_stop", {"destination": "none"}),
    (ILLEGAL_ARGUMENT, "credit-unit 2", "message_flow", {"destination": "d", "unit": 2, "value": 1}),
    (ILLEGAL_ARGUMENT, "flow-mode 2", "message_set_flow_mode", {"destination": "d", "flow_mode": 2}),
    (None, "", "message_set_flow_mode", {"destination": "d", "flow_mode": 1}),
    (ILLEGAL_STATE, "not selected for distributed transactions", "dtx_start", {"xid": XID}),
    (ILLEGAL_STATE, "not selected for distributed transactions", "dtx_end", {"xid": XID}),
    (ILLEGAL_ARGUMENT, "a branch without xid", "dtx_prepare", {}),
    (NOT_FOUND, "there is no branch", "dtx_prepare", {"xid": XID}),
    (NOT_FOUND, "there is no branch", "dtx_commit", {"xid": XID}),
    (NOT_FOUND, "there is no branch", "dtx_rollback", {"xid": XID}),
    (ILLEGAL_ARGUMENT, "execution.result of command 0, which was not sent", "execution_result", {"command_id": 0}),
)


def test_each_refusal_of_a_command_has_its_code_and_its_words():
    broker = new_broker(**ROOM)
    for number, (code, words, title, given) in enumerate(REFUSED):
        peer = ready(broker, b"s%d" % number)
        peer.do(title, **given)
        was = outcome(peer)
        assert (was and was[0]) == code and words in (was or ("", ""))[1], (title, given, was)
        assert not peer.connection.closed
        peer.connection.lose()


# (error code, a part of its description, fields of the transfer, of its delivery-properties, of its message-properties)
MESSAGES = (
    (ILLEGAL_ARGUMENT, "acquire-mode not-acquired", {"acquire_mode": 1}, {}, None),
    (ILLEGAL_ARGUMENT, "priority is 10", {}, {"priority": 10}, None),
    (None, "", {}, {"priority": 9}, None),
    (UNAUTHORIZED, "user-id", {}, {}, {"user_id": b"other"}),
    (UNAUTHORIZED, "user-id", {}, {}, {"user_id": b"\xff"}),
    (None, "", {}, {}, {"user_id": b"guest"}),
    (NOT_FOUND, "none", {"destination": "none"}, {}, None),
)


def test_each_refusal_of_a_message_has_its_code_and_its_words():
    broker = new_broker(**ROOM)
    for number, (code, words, fields, delivery, header) in enumerate(MESSAGES):
        peer = ready(broker, b"s%d" % number)
        before = broker.queues["q"].message_count()
        peer.give(transfer(b"m", key="q", delivery=delivery, header=header, **fields))
        was = outcome(peer)
        assert (was and was[0]) == code and words in (was or ("", ""))[1], (fields, delivery, header, was)
        assert broker.queues["q"].message_count() == before + (code is None)
        peer.connection.lose()


def test_a_body_may_follow_a_command_without_a_header():
    peer = ready(new_broker(**ROOM))
    peer.do("exchange_bind", queue="q", exchange="e")
    fields = {"destination": "e", "accept_mode": 1, "acquire_mode": 0}
    peer.give(frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, structs.write_command("message_transfer", fields), 65535))
    peer.give(frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, b"body", 65535))
    assert outcome(peer) is None and peer.broker.queues["q"].message_count() == 1


def closed_by(octets):
    """(reply-code, text) of the close that a session's octets bring, or None."""
    peer = ready(new_broker(**ROOM))
    peer.give(octets)
    return outcome(peer)


def test_frames_that_are_out_of_their_place_end_the_connection_or_the_session():
    sync = structs.write_command("execution_sync", {})
    moves = structs.write_command("message_transfer", {"destination": "", "accept_mode": 1, "acquire_mode": 0})
    flush = structs.write_control("session_flush", {"completed": True})
    whole = frame.WHOLE
    first, last = frame.FIRST_SEGMENT, frame.LAST_SEGMENT
    cases = (
        ("has no header and no body", frame.write(whole & ~frame.LAST_SEGMENT, frame.COMMAND, 0, sync)),
        ("where one of type 1 is due", frame.write(whole, frame.HEADER, 0, b"")),
        ("where one of type 1 is due", frame.write(whole, frame.BODY, 0, b"")),
        ("where one of type 1 is due", frame.write(whole & ~frame.FIRST_FRAME, frame.COMMAND, 0, sync)),
        ("where one of type 1 is due", frame.write(whole & ~first, frame.COMMAND, 0, sync)),
        (
            "where one of type 2 is due",
            frame.segment(first, frame.COMMAND, 0, moves, 65535) + frame.write(whole & ~first, frame.COMMAND, 0, sync),
        ),
        (
            "where one of type 3 is due",
            frame.segment(first, frame.COMMAND, 0, moves, 65535)
            + frame.segment(0, frame.HEADER, 0, b"", 65535)
            + frame.write(last | frame.FIRST_FRAME | frame.LAST_FRAME, frame.HEADER, 0, b""),
        ),
        ("class code 0x01 and code 0xff", frame.write(whole, frame.COMMAND, 0, b"\x01\xff\x00\x00")),
        ("a command of 1 octets", frame.write(whole, frame.COMMAND, 0, b"\x01")),
        ("octets behind its fields", frame.write(whole, frame.COMMAND, 0, sync + b"\x00")),
        ("packing flags", frame.write(whole, frame.COMMAND, 0, sync[:-2] + b"\x00\x80")),
        ("a control's frame with flags", frame.write(whole & ~frame.FIRST_FRAME, frame.CONTROL, 0, flush)),
        (
            "a control's frame with flags",
            frame.write(whole & ~frame.LAST_FRAME, frame.CONTROL, 0, flush[:1]) + frame.write(whole, frame.CONTROL, 0, flush[1:]),
        ),
        ("a control of more than 2048 octets", frame.write(whole & ~frame.LAST_FRAME, frame.CONTROL, 0, b"\x02" * 2049)),
        ("with a name of 0 octets", control("session_attach", 1, name=b"")),
        ("with a name of 1025 octets", control("session_attach", 1, name=b"n" * 1025)),
        ("more than 2048 octets", frame.write(whole & ~frame.LAST_FRAME, frame.COMMAND, 0, b"\x01" * 2049)),
    )
    for words, octets in cases:
        was = closed_by(octets)
        assert was is not None and words in was[1], (words, was)
    assert closed_by(control("session_attach", 1, name=b"n" * 1024)) is None
    assert closed_by(frame.write(whole & ~frame.LAST_FRAME, frame.COMMAND, 0, sync)) is None  # its last frame may come yet


def test_what_was_not_sent_cannot_be_completed_or_confirmed():
    peer = ready(new_broker(**ROOM))
    flush = structs.write_control("session_flush", {"completed": True})
    peer.give(frame.write(frame.WHOLE & ~frame.LAST_FRAME, frame.CONTROL, 0, flush[:1]))
    assert peer.all() == []
    peer.give(frame.write(frame.WHOLE & ~frame.FIRST_FRAME, frame.CONTROL, 0, flush[1:]))
    assert [each[0] for each in peer.all()] == ["session_completed"]  # a control in two frames
    for title in ("completed", "confirmed"):
        was = closed_by(control("session_" + title, commands=[(5, 5)]))
        assert was[0] == ILLEGAL_STATE and "session.%s of command 5, which was not sent" % title in was[1], was


def test_a_session_that_another_broker_had_may_complete_what_that_one_sent():
    """session.command-point: the peer's first command here is not its first. session.completed "informs the sender of all commands
    completed", who "MUST eventually reply with a known-completed set that covers the completed ids"."""
    peer = ready(new_broker(**ROOM))
    peer.give(control("session_detach", name=b"unit"))
    peer.give(control("session_attach", name=b"carried over"))
    peer.give(control("session_command_point", command_id=87, command_offset=0))
    peer.all()
    peer.give(control("session_confirmed", commands=[(0, 270)]))
    peer.give(control("session_completed", commands=[(0, 270)], timely_reply=True))
    ((name, fields, _, _, _),) = peer.all()
    assert name == "session_known_completed" and fields["commands"] == [(0, 270)]


def test_a_transport_has_one_session_on_a_channel():
    peer = ready(new_broker(**ROOM))
    for name, wanted in ((b"other", "session_detached"), (b"unit", "session_attached"), (b"", "session_detached")):
        peer.give(control("session_attach", 0, name=name))
        ((title, fields, _, _, _),) = peer.all()
        assert title == wanted and fields["name"] == name and fields.get("code", DETACHES["transport-busy"]) == DETACHES["transport-busy"]
    peer.do("execution_sync")
    assert outcome(peer) is None


def test_a_session_that_is_not_there_is_told():
    peer = ready(new_broker(**ROOM))
    peer.give(command("execution_sync", 3))
    ((name, fields, _, _, number),) = peer.all()
    assert (name, number) == ("session_detached", 3) and fields["code"] == DETACHES["not-attached"], fields
    peer.give(control("session_detach", 3, name=b"x"))
    assert [each[0] for each in peer.all()] == ["session_detached"]


# Arguments of Qpid's brokers: what is given, what the broker makes of it.
QUEUE_ARGUMENTS = (
    ({"qpid.max_count": 5}, {"x-max-length": 5}),
    ({"qpid.max_size": 5}, {"x-max-length-bytes": 5}),
    ({"qpid.alert_count": 5, "qpid.file_size": 1, "no-local": True}, {}),
    ({"qpid.policy_type": "ring"}, {"x-overflow": "drop-head"}),
    ({"qpid.policy_type": "ring-strict"}, {"x-overflow": "drop-head"}),
    ({"qpid.policy_type": "self-destruct"}, {"x-overflow": "reject-publish"}),
    ({"qpid.policy_type": "reject"}, {"x-overflow": "reject-publish"}),
    ({"qpid.policy_type": "flow_to_disk"}, {}),
    ({"x-overflow": "reject-publish"}, {"x-overflow": "reject-publish"}),
    ({"qpid.auto_delete_timeout": 5}, {"x-expires": 5000}),
    ({"qpid.auto_delete_timeout": "5"}, {"x-expires": "5"}),
    ({"x-expires": 5}, {"x-expires": 5}),
    ({"qpid.priorities": 0}, {"x-max-priority": 1}),
    ({"qpid.priorities": 2}, {"x-max-priority": 1}),
    ({"x-qpid-priorities": 10}, {"x-max-priority": 9}),
    ({"x-qpid-priorities": 256}, {"x-max-priority": 255}),
    ({"x-qpid-priorities": 1000}, {"x-max-priority": 255}),
    ({"qpid.priorities": "ten"}, {"x-max-priority": "ten"}),
    ({"qpid.LVQ_key": "k", "qpid.group_header_key": "g"}, {"x-last-value-key": "k", "x-group-key": "g"}),
    ({"anything": 1}, {"anything": 1}),
)


def test_arguments_of_qpids_queues_are_the_brokers():
    for given, wanted in QUEUE_ARGUMENTS:
        assert definitions.queue_arguments(given) == wanted, given
    assert definitions.broker_arguments({"x-match": "all", "no-local": True, "x-filter-jms-selector": "a"}) == {"x-match": "all"}
    assert definitions.broker_arguments(None) == {}


def result(peer, title, **given):
    """The struct that a command results in."""
    peer.all()
    peer.do(title, **given)
    octets = [fields for name, fields, _, _, _ in peer.all() if name == "execution_result"][0]["value"]
    return structs.read(structs.RESULTS[title], len(octets).to_bytes(4, "big") + octets, 0, len(octets) + 4)[0]


def test_the_default_exchange_is_bound_to_each_queue_by_its_name():
    peer = ready(new_broker(**ROOM))
    assert result(peer, "exchange_query", name="") == {"type": "direct", "durable": True, "not_found": False, "arguments": {}}
    for given, is_matched in (
        ({"queue": "q", "binding_key": "q"}, True),
        ({"queue": "q", "binding_key": "k"}, False),
        ({"queue": "q"}, True),
    ):
        bound = result(peer, "exchange_bound", exchange="", **given)
        assert bound["key_not_matched"] is not is_matched and not bound["exchange_not_found"], (given, bound)
    peer.do("exchange_bind", queue="q", exchange="amq.direct", binding_key="k")
    bound = result(peer, "exchange_bound", exchange="amq.direct", binding_key="k")
    assert not bound["key_not_matched"] and not bound["queue_not_matched"]
    assert result(peer, "exchange_bound", exchange="amq.direct", binding_key="other")["key_not_matched"]


def test_an_alternate_exchange_gets_what_no_queue_takes_and_what_consumers_reject():
    peer = ready(new_broker(**ROOM))
    peer.do("queue_declare", queue="rest")
    peer.do("exchange_bind", queue="rest", exchange="e")
    peer.do("exchange_declare", exchange="first", type="direct", alternate_exchange="e")
    peer.do("queue_declare", queue="with", alternate_exchange="e")
    assert result(peer, "queue_query", queue="with")["alternate_exchange"] == "e"
    assert result(peer, "queue_query", queue="none")["queue"] is None
    peer.give(transfer(b"lost", destination="first", key="nowhere"))
    peer.ids += 1
    peer.publish(b"bad", key="with")
    peer.subscribe("with", "w", accept=0)
    peer.all()
    peer.do("message_reject", transfers=[(2, 2)])  # behind two results
    peer.all()
    peer.broker.run()
    assert peer.broker.queues["rest"].message_count() == 2 and peer.broker.queues["with"].unsettled_count() == 0


def test_who_may_not_read_or_write_makes_no_forward():
    broker = new_broker(**ROOM)
    user = broker.access.users["guest"]
    user.permit(("^.*$", "^e$", "^read.*$"))
    peer = Peer(broker)
    peer.do("exchange_declare", exchange="e", type="fanout")
    for title, name, target, is_allowed in (
        ("queue_declare", "read-1", "e", True),
        ("queue_declare", "write-1", "e", False),
        ("queue_declare", "read-2", "f", False),
        ("exchange_declare", "read-3", "e", True),
        ("exchange_declare", "read-4", "f", False),
    ):
        other = Peer(broker, name=name.encode("utf-8"))
        kind = title.split("_")[0]
        other.do(title, alternate_exchange=target, **({kind: name, "type": "fanout"} if kind == "exchange" else {kind: name}))
        was = outcome(other)
        assert (was is None) == is_allowed and (is_allowed or was[0] == UNAUTHORIZED), (title, name, target, was)
        other.connection.lose()


def test_a_struct_is_refused_with_its_reason():
    octets = structs.write(properties.DELIVERY, {"routing_key": "q"})

    def refusal(function, *arguments):
        try:
            function(*arguments)
        except (ProtocolError, SessionError) as error:
            return error.text
        return None

    size = len(octets)
    assert refusal(structs.read, properties.DELIVERY, octets, 0, size) is None
    assert "where" in refusal(structs.read, properties.MESSAGE, octets, 0, size)
    longer = (size - 4 + 1).to_bytes(4, "big") + octets[4:] + b"\x00"
    assert "1 octets behind its fields" in refusal(structs.read, properties.DELIVERY, longer, 0, size + 1)
    for cut in range(size):
        assert refusal(structs.read, properties.DELIVERY, octets[:cut], 0, cut) is not None, cut
        assert cut == 0 or refusal(structs.each_struct, octets[:cut], 0, cut) is not None, cut
    assert structs.each_struct(octets + octets, 0, 2 * size) == [(properties.DELIVERY, 0, size), (properties.DELIVERY, size, 2 * size)]
    assert structs.each_struct(b"\x00\x00\x00\x02\xff\xff", 0, 6) == [(None, 0, 6)]
    assert "a struct of 1 octets" in refusal(structs.each_struct, b"\x00\x00\x00\x01\xff", 0, 5)
    assert "a struct of 3 octets where 2 are left" in refusal(structs.each_struct, b"\x00\x00\x00\x03\xff\xff", 0, 6)
    try:
        structs.write(properties.DELIVERY, {"no such field": 1})
    except KeyError as error:
        assert "no such field" in str(error)
    else:
        raise AssertionError("a field that is not there was written")


def test_permissions_are_those_of_the_broker():
    """Configure of what is declared and deleted; of a binding write of its queue and read of its exchange; read of what is read."""
    broker = new_broker(**ROOM)
    Peer(broker, name=b"first").do("queue_declare", queue="w")
    user = broker.access.users["guest"]
    for permissions, title, given, is_allowed in (
        (("^c$", "", ""), "exchange_declare", {"exchange": "c", "type": "fanout"}, True),
        (("^c$", "", ""), "exchange_declare", {"exchange": "d", "type": "fanout"}, False),
        (("^c$", "", ""), "queue_declare", {"queue": "d"}, False),
        (("", "^w$", "^c$"), "exchange_bind", {"queue": "w", "exchange": "c"}, True),
        (("", "^w$", ""), "exchange_bind", {"queue": "w", "exchange": "c"}, False),
        (("", "", "^c$"), "exchange_bind", {"queue": "w", "exchange": "c"}, False),
        (("", "", "^w$"), "queue_purge", {"queue": "w"}, True),
        (("^w$", "^w$", ""), "queue_purge", {"queue": "w"}, False),
        (("", "", "^w$"), "message_subscribe", {"queue": "w", "destination": "x"}, True),
        (("^w$", "^w$", ""), "message_subscribe", {"queue": "w", "destination": "x"}, False),
        (("", "", "^w$"), "stream_consume", {"queue": "w", "consumer_tag": "x"}, True),
        (("^w$", "^w$", ""), "stream_consume", {"queue": "w", "consumer_tag": "x"}, False),
        (("", "", "^w$"), "file_consume", {"queue": "w", "consumer_tag": "x"}, True),
        (("^w$", "^w$", ""), "file_consume", {"queue": "w", "consumer_tag": "x"}, False),
        (("", "^.*$", "^.*$"), "queue_delete", {"queue": "w"}, False),
        (("", "^.*$", "^.*$"), "exchange_delete", {"exchange": "c"}, False),
        (("^c$", "", ""), "exchange_delete", {"exchange": "c"}, True),
        (("^w$", "", ""), "queue_delete", {"queue": "w"}, True),
    ):
        user.permit(permissions)
        peer = Peer(broker, name=b"other")
        peer.do(title, **given)
        was = outcome(peer)
        assert (was is None) == is_allowed and (is_allowed or was[0] == UNAUTHORIZED), (permissions, title, given, was)
        peer.connection.lose()
    assert "w" not in broker.queues and "c" not in broker.exchanges


def test_a_message_that_is_to_be_delivered_at_once_is_completed_and_told_of_where_nobody_reads():
    for accept, wanted in ((0, "returned"), (1, "unroutable")):
        broker = new_broker(**ROOM)
        peer = Peer(broker)
        peer.do("queue_declare", queue="q")
        peer.all()
        peer.publish(b"now", delivery={"immediate": True}, accept_mode=accept)
        peer.give(control("session_flush", completed=True))
        came = peer.all()
        rejects = [fields for name, fields, _, _, _ in came if name == "message_reject"]
        assert [(each["transfers"], each["code"]) for each in rejects] == ([([(1, 1)], 2)] if accept == 0 else [])
        assert [fields["commands"] for name, fields, _, _, _ in came if name == "session_completed"][-1] == [(0, 1)]
        assert broker.counters[wanted] == 1 and broker.counters["returned"] + broker.counters["unroutable"] == 1
        assert broker.queues["q"].message_count() == 0


def test_a_session_that_is_detached_is_answered_and_its_channel_is_free():
    peer = ready(new_broker(**ROOM))
    peer.give(control("session_detach", name=b"unit"))
    ((name, fields, _, _, _),) = peer.all()
    assert (name, fields["code"], fields["name"]) == ("session_detached", DETACHES["normal"], b"unit")
    assert not list(peer.broker.consumers.open_sessions())
    peer.attach(b"again")
    peer.do("execution_sync")
    assert peer.completed() == [(0, 0)]
    peer.give(control("session_detached", name=b"again", code=0))  # by itself
    peer.attach(b"third")

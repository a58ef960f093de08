"""The actions of states.SESSION: what controls and frames of commands do to a session that is attached, and its end.

Those of controls are given (session, fields); `command` is given (session, flags, segment type, octets, where the payload begins, where it
ends).
"""

from ..errors import COMMAND_INVALID, FRAME_ERROR, RESOURCE_ERROR, UNEXPECTED_FRAME, ProtocolError
from ..memory import layout, serial
from ..outcomes import NO_ROOM, NOT_YET, TAKEN
from ..parts import needed, part
from ..shim import const
from . import commands, dtx, frame, moving, numbers, replay, sessions, structs, subscription, transfer
from .conditions import ILLEGAL_STATE, SessionError, error_code
from .moving import come_back, fail, lose  # noqa: F401 - actions of states.SESSION
from .ranges import ascending, overlaps
from .spec_0_10 import DETACHES

HEAD_FREE = const(256)  # octets of a command or header segment that are not counted beside those of other sessions
# Commands with a header and a body, or that publish: the file whose TAKERS takes them.
_TAKERS = {"file_stage": "file_class", "file_publish": "file_class", "stream_publish": "stream_class"}
_OURS = ("file_return", "stream_return", "stream_deliver")  # commands with a content that a broker alone sends


def refuse(condition, input_, state, session, *given):
    """Raise for an input that a state does not allow."""
    raise ProtocolError(condition, "%s in the state '%s' of the session on channel %d" % (input_, state, session.number))


# Controls


def attach(session, fields):
    """session.attach of the session that is attached here: "MUST succeed and result in an attached response"."""
    if fields["name"] != session.name:
        session.control("session_detached", {"name": fields["name"] or b"", "code": DETACHES["transport-busy"]})
        return
    session.control("session_attached", {"name": session.name})


def request_timeout(session, fields):
    """session.request-timeout: "the maximum allowed value less than or equal to the requested timeout"."""
    granted = sessions.of(session.broker).grant(session, fields["timeout"])
    journal = session.broker.journal
    needs = journal.promise() if granted and journal is not None else 0
    session.session.control(session.number, "session_timeout", {"timeout": granted}, needs)


def command_point(session, fields):
    """session.command-point: the id of the peer's next command. A command that began on another transport is not known here."""
    if fields["command_offset"]:
        session.step("unknown")
        return
    drop_partial(session)
    session.received.check()
    if session.expected is None and not session.received.runs:
        session.is_begun_elsewhere = bool(fields["command_id"])
    session.expected = fields["command_id"] or 0


def expected(session, fields):
    """session.expected, of commands of ours: what the peer has not seen was sent again without being asked for."""


def confirmed(session, fields):
    """session.confirmed: commands of ours that "will definitely be completed" need not be sent again."""
    ranges = fields["commands"] or []
    replay.confirmed(session, ascending(sent_of(session, ranges, "confirmed")), False)


def sent_of(session, ranges, title_):
    """Those ids of ranges whose commands we have sent. Others are illegal-state, unless the peer has begun its session with another
    broker, or with this one before a start, which has sent them.
    """
    tail = numbers.tail(session)
    known = []
    for first, last in ranges:
        if serial.distance(last, tail) > 0:
            known.append((first, last))
        elif not session.is_begun_elsewhere:
            raise SessionError(ILLEGAL_STATE, "session.%s of command %d, which was not sent" % (title_, last))
        elif serial.distance(first, tail) > 0:
            known.append((first, serial.after(tail, -1)))
    return known


def completed(session, fields):
    """session.completed: of our commands. It gives credit to subscriptions in window mode, and is answered where the peer wants it."""
    ranges = fields["commands"] or []
    arrived(session, ascending(sent_of(session, ranges, "completed")))
    if fields["timely_reply"]:
        session.control("session_known_completed", {"commands": ranges})


def arrived(session, known):
    """The peer has completed a set (Ranges) of our commands."""
    if session.timeout_s or session.kept or session.sent:
        replay.confirmed(session, known, True)
        subscription.completed(session, known.runs)


def known_completed(session, fields):
    """session.known-completed: these need not be told again."""
    session.known(ascending(fields["commands"] or []))


def flush(session, fields):
    """session.flush: the sets that it asks for. What is confirmed is what is completed ("a simple implementation")."""
    if fields["expected"]:
        session.control("session_expected", {"commands": missing(session)})
    if fields["completed"] and not fields["confirmed"]:
        session.is_new = True  # it is asked for: once is enough
    session.write_waiting()
    if fields["confirmed"]:
        session.control("session_confirmed", {"commands": session.completed.runs})
    if fields["completed"]:
        session.tell_completed(bool(fields["confirmed"]))


def missing(session):
    """The ids that are expected: those between executed ones, and the next; none of a session that holds no state."""
    runs = session.received.runs
    ids = [(serial.after(runs[at][1], 1), serial.after(runs[at + 1][0], -1)) for at in range(len(runs) - 1)]
    if runs and (session.expected is None or serial.distance(session.expected, runs[-1][1]) >= 0):
        ids.append((serial.after(runs[-1][1], 1),) * 2)
    elif session.expected is not None:
        ids.append((session.expected,) * 2)
    return ids


def gap(session, fields):
    """session.gap: nothing more comes of these commands."""
    ranges = ascending(fields["commands"] or [])
    for first, last in ranges.runs:
        is_due = session.expected is not None and serial.distance(first, session.expected) >= 0 <= serial.distance(session.expected, last)
        if is_due or session.fragments is not None and overlaps(session.fragments.ids.runs, [(first, last)]):
            drop_partial(session)
        if is_due:
            session.expected = serial.after(last, 1)
        session.has_executed = session.is_new = True
    session.received.merge(ranges)
    session.completed.merge(ranges)
    session.received.check()
    session.session.wants_to_write(session)


def ignore(session, *given):
    """Nothing: what the peer has sent before it saw our end."""


# Commands


def command(session, flags, type_, octets, at, end):
    """A frame of a command; false when it must wait, and then nothing has changed."""
    if session.expected is None:
        session.step("unknown")
        return True
    is_first = bool(flags & frame.FIRST_FRAME)
    if session.is_passing or starts(session) and session.received.has(session.expected):
        return pass_over(session, flags, octets, at, end)
    begins = is_first and bool(flags & frame.FIRST_SEGMENT)
    if is_first == session.goes_on or type_ != session.wants and not skips_header(session, type_, is_first) or begins != starts(session):
        raise ProtocolError(
            UNEXPECTED_FRAME,
            "a frame with flags 0x%02x of a segment of type %d where one of type %d is due" % (flags, type_, session.wants),
        )
    whole = bool(flags & frame.LAST_FRAME)
    if type_ == frame.BODY:
        if not flags & frame.LAST_SEGMENT:
            raise ProtocolError(FRAME_ERROR, "a body segment that is not the last one of its command")
        return session.taker.body(session, octets, at, end, whole)
    payload = session.part + bytes(octets[at:end])
    limits = session.broker.limits
    if len(payload) > (limits.argument_size_max if type_ == frame.COMMAND else limits.properties_size_max):
        raise SessionError(RESOURCE_ERROR, "a command or header segment of more than %d octets" % (len(payload) - 1))
    is_last = bool(flags & frame.LAST_SEGMENT)
    if len(payload) > HEAD_FREE and not (whole and is_last):
        check_heads(session, len(payload))
    if whole and (begun(session, payload, is_last) if type_ == frame.COMMAND else session.taker.header(session, payload, is_last)) is False:
        return False
    session.part = b"" if whole else payload
    session.goes_on = not whole
    return True


def check_heads(session, size):
    """Raise resource-error when command and header segments of a connection whose messages have not begun are larger than one message's
    may be: `size` octets of this session's and those of its others."""
    limits = session.broker.limits
    most = limits.argument_size_max + limits.properties_size_max
    others = [len(each.part) + len(each.header) for each in session.session.attached.values() if each is not session]
    if size + sum(others) > most:
        raise SessionError(RESOURCE_ERROR, "command and header segments of more than %d octets in the sessions of a connection" % most)


def pass_over(session, flags, octets, at, end):
    """A frame of a command that is executed already: it is completed, and nothing is done. A transfer that was taken before the broker was
    started is accepted once more."""
    if bool(flags & frame.FIRST_FRAME and flags & frame.FIRST_SEGMENT) == session.is_passing:
        raise ProtocolError(UNEXPECTED_FRAME, "a frame with flags 0x%02x in a command that has come before" % flags)
    if not session.is_passing:
        session.is_accepted_again = session.in_log.has(session.expected) and is_explicit(flags, octets, at, end)
    session.is_passing = not (flags & frame.LAST_SEGMENT and flags & frame.LAST_FRAME)
    if not session.is_passing:
        id_ = session.expected
        session.expected = serial.after(id_, 1)
        if not session.is_pending(id_):
            if session.is_accepted_again:
                session.tell_outcome(TAKEN, [(id_, id_)])
            session.now_completed(id_)
            session.session.wants_to_write(session)
    return True


def is_explicit(flags, octets, at, end):
    """True for the frame of a message.transfer with accept-mode explicit."""
    if not flags & frame.LAST_FRAME:
        return False
    name, fields, _ = structs.command(bytes(octets[at:end]))
    return name == "message_transfer" and fields["accept_mode"] in (None, 0)


def starts(session):
    """True when the next frame begins an assembly."""
    return session.wants == frame.COMMAND and not session.goes_on


def skips_header(session, type_, is_first):
    """True for a body behind a command: a transfer needs no header."""
    return session.wants == frame.HEADER and type_ == frame.BODY and is_first and not session.goes_on


def begun(session, payload, is_last):
    """A command segment is whole: false when the command must wait."""
    session.name_of, session.fields, session.id = "", {}, session.expected
    session.code = payload[0] << 8 | payload[1] if len(payload) > 1 else 0
    name, fields, _ = structs.command(payload)
    replay.check_kept(session)
    session.name_of, session.fields = name, fields
    if name in _OURS:
        raise SessionError(COMMAND_INVALID, "%s is for a client to receive" % title(name))
    session.taker = taker_of(session, name)
    if session.taker is not None:
        session.taker.begin(session, fields)
        if is_last:
            return session.taker.header(session, b"", True)
        session.wants = frame.HEADER
        return True
    if not is_last:
        raise ProtocolError(FRAME_ERROR, "%s has no header and no body" % title(name))
    answer = commands.execute(session, name, fields)
    if answer is False:
        return False
    session.took(session.id)
    session.expected = serial.after(session.id, 1)
    if not session.closing:
        session.done(session.id, answer if isinstance(answer, dict) else None)
    return True


def taker_of(session, name):
    """What takes the content of a command (begin, header, body, end: as transfer.py has them), or None: it has none."""
    if name == "message_transfer":
        return transfer if session.fragments is None else fragments()
    if name not in _TAKERS:
        return None
    if session.fragments is not None:
        raise SessionError(ILLEGAL_STATE, "%s amid the fragments of a message" % title(name))
    return needed("amqp_0_10." + _TAKERS[name], "this class").TAKERS[name]


def fragments():
    """The part for messages in fragments. Raises not-implemented."""
    return needed("amqp_0_10.fragments", "messages in fragments")


def title(name):
    """A command's name as the specification writes it."""
    class_, _, rest = name.partition("_")
    return class_ + "." + rest.replace("_", "-")


def complete(session):
    """The message of a transfer is whole: publish it, keep it for the commit, or wait."""
    incoming = session.incoming
    state = session.broker.tables.state
    entries = state[layout.POOL_ENTRIES + 2]
    in_transaction = incoming.transaction is not None
    outcome = session.publishing(incoming.complete)
    state[layout.STATE_LEFT] -= max(entries - state[layout.POOL_ENTRIES + 2], 0)  # a place in a queue counts as a frame
    if outcome == NO_ROOM:
        session.session.hold(session)
        return
    if outcome == NOT_YET:
        session.session.hold_for_log(session)
        return
    for first, last in session.ids():
        session.took(first, last)
    if in_transaction:
        session.message_done(outcome)
    session.fragments = None


# The end


def drop_partial(session):
    """What is half here of a command will not be whole."""
    if session.session.held is session:
        session.session.held = None
        session.connection.wait_for_turn()
    interrupt(session)
    drop_content(session)
    session.part, session.header = b"", b""
    session.wants, session.goes_on, session.is_passing = frame.COMMAND, False, False


def interrupt(session):
    """Keep what there is of a message under way, for message.resume (fragments.py)."""
    if session.name_of == "message_transfer" and session.header or session.fragments is not None:
        kept = part("amqp_0_10.fragments")
        if kept is not None:
            kept.keep(session)
    session.fragments = None


def drop_content(session):
    """Forget the content under way; those that wait for a commit stay."""
    transaction, session.incoming.transaction = session.incoming.transaction, None
    session.incoming.abandon()
    session.incoming.transaction = transaction


def release(session):
    """Give back what a session holds: its subscriptions go, its deliveries are on their way back to their queues."""
    if session.session.held is session:
        session.session.held = None
        session.connection.wait_for_turn()
    if (
        session.state != "detaching"
    ):  # an exception waits for the end of the delivery that is half written: frames of commands keep their order
        session.session.outgoing.abandon(session.session, session)
    if session.is_dtx:
        dtx.left(session)
    interrupt(session)
    session.incoming.abandon()
    if session.files is not None:
        needed("amqp_0_10.file_class", "class file").release(session)
    for each in session.subscriptions.values():
        if each.consumer is None:
            each.let_others()
    session.subscriptions = {}
    session.browsed = {}
    session.kept, session.kept_size = {}, 0
    session.sent = []
    session.transfers = []
    session.undurable = []
    if session in session.session.writing:
        session.session.writing.remove(session)
    if session.timeout_s:
        sessions.of(session.broker).forget(session)
    session.broker.consumers.close_session(session)
    moving.end(session)


def detach(session, fields):
    """The peer's session.detach: the session lives on as long as its timeout says; one that does not is answered when its deliveries have
    gone back; false until then."""
    protocol = session.session
    if session.timeout_s and session.handle != layout.NONE and session not in session.broker.consumers.leaving:
        session.state = "attached"
        session.step("lose")
        protocol.attached.pop(session.number, None)
        protocol.control(session.number, "session_detached", {"name": session.name, "code": DETACHES["normal"]})
        return True
    if session.handle != layout.NONE and session not in session.broker.consumers.leaving:
        release(session)
    if session in session.broker.consumers.leaving:
        return session.session.go_on_later()
    session.session.attached.pop(session.number, None)
    session.control("session_detached", {"name": session.name, "code": DETACHES["normal"]})
    return True


def detached(session, fields):
    """The peer has detached by itself."""
    protocol = session.session
    session.state = "attached"
    session.lose()
    protocol.attached.pop(session.number, None)


def ended(session, fields):
    """The peer has answered our detach."""
    session.session.attached.pop(session.number, None)


def send_unknown(session):
    """Command data before any command-point: detached with unknown-ids."""
    release(session)
    session.session.attached.pop(session.number, None)
    session.control("session_detached", {"name": session.name, "code": DETACHES["unknown-ids"]})


def send_exception(session, condition, text):
    """An exception ends the session: execution.exception, which names the command, then session.detach."""
    broker, connection = session.broker, session.connection
    session.undurable = [each for each in session.undurable if each[1] != session.id]
    session.state = "attached"
    session.write_waiting()  # what came before the error was done
    broker.counters["channel_errors"] += 1
    broker.inform(
        "%s: session %r of user '%s' ended with %s %s" % (connection.name, session.name[:64], connection.user.name, condition, text), True
    )
    say_exception(session, condition, text)
    session.state = "detaching"
    release(session)


def say_exception(session, condition, text):
    """execution.exception, and the detach behind it."""
    session.kept, session.kept_size = {}, 0
    if session.replay_at is not None:  # nothing more is sent again
        session.replay_at, session.has_point = None, False
    octets = text.encode("utf-8")[:1000]
    fields = {"error_code": error_code(condition), "description": str(octets, "utf-8", "ignore")}
    if session.name_of is not None:
        fields.update({"command_id": session.id, "class_code": session.code >> 8, "command_code": session.code & 255})
    session.command("execution_exception", fields)
    session.control("session_detach", {"name": session.name})


def detach_failed(session, fields):
    """The peer knows that its session has ended, or detaches it before it does: all that the session held goes back."""
    session.session.attached.pop(session.number, None)
    if "code" not in fields:
        session.control("session_detached", {"name": session.name, "code": DETACHES["normal"]})
    release(session)

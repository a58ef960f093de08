"""The actions of states.SESSION: what frames do to a session that is mapped to a channel (section 2.5), and its end.

Those of frames are given (session, fields of the performative, octets, where the payload begins, where it ends).
"""

from ..errors import FRAME_ERROR, NOT_ALLOWED, ProtocolError
from ..memory import layout, serial
from . import browsing, dispositions, link_in, link_management, link_out
from .bounds import HANDLE_MAX
from .conditions import HANDLE_IN_USE, WINDOW_VIOLATION, SessionError, error_of, symbol_of


def refuse(condition, input_, state, session, *given):
    """Raise for a frame that a state does not allow."""
    raise ProtocolError(condition, "%s in the state '%s' of the session on channel %d" % (input_, state, session.number))


def attach(session, fields, octets, at, end):
    """An attach (section 2.7.3): a link, from the peer (its role is sender) or to it."""
    handle = fields["handle"]
    if handle > HANDLE_MAX:
        raise ProtocolError(FRAME_ERROR, "an attach with handle %d; handle-max is %d (section 2.7.2)" % (handle, HANDLE_MAX))
    if handle > session.handle_max:
        raise SessionError(NOT_ALLOWED, "an attach with handle %d, and handle-max of its sender is %d" % (handle, session.handle_max))
    if handle in session.links:
        raise SessionError(HANDLE_IN_USE, "handle %d is that of link '%s'" % (handle, session.links[handle].name[:80]))
    kind = (
        link_management.kind_of(fields)
        or browsing.kind_of(fields, session.broker)
        or (link_out.OutgoingLink if fields["role"] else link_in.IncomingLink)
    )
    target = fields["target"]
    if not fields["role"] and isinstance(target, tuple) and target[0] == "coordinator":
        kind = link_in.transactions().Coordinator
    if fields["unsettled"] and session.broker.consumers.leaving:
        return session.session.go_on_later()  # deliveries of another connection are on their way back: perhaps those of this link
    link = session.links[handle] = kind(session, fields)
    if link.attach(fields):
        return True
    session.forget(link)
    return False


def flow(session, fields, octets, at, end):
    """A flow (section 2.7.4): the peer's windows, and the state of a link."""
    link = None if fields["handle"] is None else session.link_at(fields["handle"])
    session.next_incoming_id = fields["next-outgoing-id"]
    session.remote_outgoing_window = fields["outgoing-window"]
    seen = fields["next-incoming-id"]  # None: the peer has not seen our begin, and counts from its first id, which is 0
    session.remote_incoming_window = fields["incoming-window"] - serial.distance(seen or 0, session.next_outgoing_id)
    if session.remote_incoming_window > 0:
        session.wake()
        if session.outgoing.active() or session.responses:
            session.wants_to_write()
    if link is not None:
        return session.do_on_link(link, link.step, "flow", fields, octets, at, end)
    if fields["echo"]:
        session.say_flow()
    return True


def transfer(session, fields, octets, at, end):
    """A transfer (section 2.7.5): false when it must wait, and then nothing has changed."""
    if session.incoming_window <= 0:
        raise SessionError(WINDOW_VIOLATION, "a transfer beyond the incoming window of the session on channel %d" % session.number)
    link = session.link_at(fields["handle"])
    if session.do_on_link(link, link.step, "transfer", fields, octets, at, end) is False:
        return False
    if not session.closing:
        session.count_transfer(fields["delivery-id"])
    return True


def disposition(session, fields, octets, at, end):
    """A disposition (section 2.7.6): of deliveries of ours by their receiver, or of the peer's own."""
    return (dispositions.by_receiver if fields["role"] else dispositions.by_sender)(session, fields)


def detach(session, fields, octets, at, end):
    """A detach (section 2.7.7); false until what the link has not settled has gone back."""
    link = session.link_at(fields["handle"])
    return session.do_on_link(link, link.step, "detach", fields, octets, at, end)


def give_back(session):
    """Give back what a session holds; false until all of it is back in its queues, and nodes that were made for its links are gone."""
    release(session)
    return session.handle == layout.NONE and session.session.dynamic.link_ended(session) or session.session.go_on_later()


def end(session, fields, octets, at, behind):
    """An end of the peer's (section 2.7.8): answered when its deliveries have gone back; false until then."""
    if not give_back(session):
        return False
    session.session.reply(session.number, "end", {})
    del session.session.mapped[session.number]
    return True


def ended(session, fields, octets, at, end):
    """The peer has answered our end, or its own has crossed ours."""
    if not give_back(session):
        return False
    del session.session.mapped[session.number]
    return True


def send_end(session, condition, text):
    """End for an error (section 2.5.5, END SENT); what comes until the peer's end is not looked at."""
    broker, connection = session.broker, session.connection
    dispositions.write(session)  # what came before the error was taken
    release(session)
    broker.counters["channel_errors"] += 1
    broker.inform(
        "%s: session %d of user '%s' ended with %s %s"
        % (connection.name, session.number, connection.user.name, symbol_of(condition), text),
        True,
    )
    session.session.reply(session.number, "end", {"error": error_of(condition, text)})


def release(session):
    """Give back what a session holds: its links go, and its deliveries are on their way back to their queues."""
    for link in list(session.links.values()):
        link.step("release")
        session.forget(link)
    if session.broker.kept is not None:
        session.broker.kept.ended(session)
    session.outgoing.abandon()
    session.received = {}
    session.answers = {}
    session.flows = []
    session.responses = []
    session.broker.consumers.close_session(session)


def ignore(session, *given):
    """Nothing: what a peer has sent before it saw our end."""

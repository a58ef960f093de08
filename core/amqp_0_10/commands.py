"""The commands but message.transfer: each one's requests to the broker. One function a command, in the file of its class.

A function is given (session, fields). It answers False when it must wait (the frame is read again, in another turn), the fields of its
result's struct where it has one, else anything. What it has done is completed when the log has it (Session.done).
"""

from ..errors import NOT_ALLOWED, NOT_FOUND, NOT_IMPLEMENTED, ProtocolError
from ..memory import layout, serial
from ..outcomes import ACCEPTED, MODIFIED, REJECTED, RELEASED
from ..parts import needed, part
from . import browsing, definitions, dtx, mapping, numbers, subscribing, subscription
from .conditions import ILLEGAL_ARGUMENT, ILLEGAL_STATE, SessionError
from .ranges import ascending

if False:  # for the type checker alone
    pass

OCTETS = 1  # credit-unit: "byte"


def execute(session, name, fields):
    """Do a command: its function's answer."""
    for place in (globals(), vars_of(definitions), vars_of(subscribing), vars_of(dtx)):
        function = place.get(name)
        if function is not None:
            return function(session, fields)
    if name[:5] == "file_":
        function = vars_of(needed("amqp_0_10.file_class", "class file")).get(name)
    elif name[:7] == "stream_":
        function = vars_of(needed("amqp_0_10.stream_class", "class stream")).get(name)
    if function is not None:
        return function(session, fields)
    raise SessionError(NOT_IMPLEMENTED, "%s is not served" % mapping.title(name))


def vars_of(module):
    """The functions of a module by name."""
    return module.__dict__


# execution


def execution_sync(session, fields):
    """Nothing: it is completed when all before it is, since they are in their order."""


def execution_result(session, fields):
    """We ask for no result."""
    raise SessionError(ILLEGAL_ARGUMENT, "execution.result of command %d, which was not sent" % (fields["command_id"] or 0))


def execution_exception(session, fields):
    """The peer has met an error in a command of ours: the session ends."""
    session.broker.inform(
        "%s: the peer raised exception %d: %s" % (session.connection.name, fields["error_code"] or 0, (fields["description"] or "")[:200]),
        True,
    )


# message: what becomes of transfers of ours


def message_accept(session, fields):
    """Accept: the messages are done with."""
    return settle(session, fields, ACCEPTED)


def message_reject(session, fields):
    """Reject: dropped, or dead-lettered ("MUST deliver that message to the alternate-exchange on the queue")."""
    return settle(session, fields, REJECTED)


def message_release(session, fields):
    """Release: back to the queue, marked as redelivered where the peer wants that."""
    return settle(session, fields, MODIFIED if fields["set_redelivered"] else RELEASED)


def settle(session, fields, outcome):
    """Settle the transfers of a set, as far as this turn goes; false: some are left. Ids that are settled already, or of other commands,
    are passed over; with one that was not sent none is settled."""
    tables, given = session.broker.tables, fields["transfers"] or []
    for _, last in given:
        if serial.distance(last, numbers.tail(session)) <= 0:
            raise SessionError(ILLEGAL_ARGUMENT, "transfer %d was not sent" % last)
    for first, last in ascending(given).runs if len(given) > 1 else given:
        if session.settling is not None:
            if serial.distance(session.settling, last) < 0:
                continue  # an earlier turn has done these
            first = session.settling
        entry = numbers.entry_from(session, first, last)
        while entry != layout.NONE:
            if tables.state[layout.STATE_LEFT] <= 0:
                session.settling = numbers.of(session, entry)
                return session.session.go_on_later()
            entry = settle_run(session, entry, last, outcome)
        session.settling = None
    session.settling = None
    return True


def settle_run(session, entry, last, outcome):
    """Settle entries from one on as far as the turn and the range go: the next entry, NONE: none is left."""
    tables = session.broker.tables
    entries = tables.entries
    cost = session.broker.consumers.look_cost()
    left = tables.state[layout.STATE_LEFT] - cost
    end, behind = entry, entries[entry + layout.ENTRY_NEXT]
    transaction = session.incoming.transaction
    if transaction is not None and outcome == ACCEPTED:
        if session.is_dtx:
            transaction.hold_accepted(session, entry)
        else:
            transaction.keep(whole_tag(session, entry), False, outcome)
    else:
        while behind != layout.NONE and left > 0 and serial.distance(numbers.of(session, behind), last) >= 0:
            end = behind
            left -= cost
            behind = entries[behind + layout.ENTRY_NEXT]
        session.broker.consumers.settle(session, entry, end, outcome)
    tables.state[layout.STATE_LEFT] = left
    if behind == layout.NONE or serial.distance(numbers.of(session, behind), last) < 0:
        return layout.NONE
    return behind


def whole_tag(session, entry):
    """The delivery tag of an unsettled entry."""
    return needed("broker.transaction", "transactions").whole_tag(session.broker.tables, session, entry)


def message_acquire(session, fields):
    """Acquire: which of the transfers that a browsing subscription was sent are the session's now."""
    return {"transfers": browsing.acquire(session, fields["transfers"] or [])}


def message_resume(session, fields):
    """Resume: how much of an interrupted message is here."""
    kept = part("amqp_0_10.fragments")
    return {"offset": 0 if kept is None else kept.resume(session, fields)}


# message: credit


def subscription_of(session, fields):
    """The subscription of a destination. Raises not-found."""
    name = fields["destination"] or ""
    subscribed = session.subscriptions.get(name)
    if subscribed is None:
        raise ProtocolError(NOT_FOUND, "there is no subscription '%s' in this session" % name[:80])
    return subscribed


def message_set_flow_mode(session, fields):
    """Set-flow-mode: window or credit, "only if both the byte and message credit balance are zero"."""
    chosen = subscription_of(session, fields)
    mode = fields["flow_mode"] or 0
    if mode not in (subscription.CREDIT, subscription.WINDOW):
        raise SessionError(ILLEGAL_ARGUMENT, "flow-mode %d" % mode)
    if mode != chosen.mode and (chosen.messages or chosen.octets):
        raise SessionError(ILLEGAL_STATE, "message.set-flow-mode of '%s', which has credit" % chosen.destination[:80])
    chosen.mode = mode


def message_flow(session, fields):
    """Flow: more credit."""
    chosen = subscription_of(session, fields)
    unit = fields["unit"] or 0
    if unit not in (0, OCTETS):
        raise SessionError(ILLEGAL_ARGUMENT, "credit-unit %d" % unit)
    chosen.grant(unit == OCTETS, fields["value"])


def message_stop(session, fields):
    """Stop: no credit any more."""
    subscription_of(session, fields).stop()


def message_flush(session, fields):
    """Flush: all that is there goes, as far as the credit; then there is none. False: not all of it yet."""
    chosen = subscription_of(session, fields)
    if not subscribing.has_all(chosen):
        return session.session.go_on_later()
    chosen.stop()
    return True


# tx


def tx_select(session, fields):
    """Select: transfers, accepts and rejects from here on wait for the commit."""
    if session.incoming.transaction is not None or session.is_dtx:
        raise SessionError(ILLEGAL_STATE, "tx.select of a session that is transactional already")
    if [each for each in session.subscriptions.values() if each.accept_none and each.lasts]:
        raise SessionError(NOT_ALLOWED, "tx.select of a session that has a subscription with accept-mode none")
    session.incoming.transaction = needed("broker.transaction", "transactions").Transaction(session.broker.tables)
    session.broker.tables.channels[session.handle + layout.CHANNEL_PLAIN] = 0


def transaction_of(session):
    """The session's transaction."""
    if session.incoming.transaction is None or session.is_dtx:
        raise SessionError(ILLEGAL_STATE, "the session is not transactional (tx.select)")
    return session.incoming.transaction


def tx_commit(session, fields):
    """Commit: all of it takes effect; false: not yet."""
    transaction = transaction_of(session)
    session.is_committing = True
    try:
        return session.publishing(lambda: transaction.commit(session))
    finally:
        session.is_committing = False


def tx_rollback(session, fields):
    """Rollback: nothing of it takes effect; what was accepted in it is unsettled as before."""
    transaction_of(session).rollback(session.broker)

"""message.subscribe and message.cancel: the consumer behind a subscription.

Arguments of a subscription are the broker's own (x-priority, x-stream-offset ...) and, as Qpid's clients send them, x-filter-jms-selector
(a JMS selector) and no-local.
"""

from ..access.permissions import READ, check
from ..broker import getting, selecting
from ..errors import NOT_ALLOWED, NOT_FOUND, PRECONDITION_FAILED, RESOURCE_LOCKED, ProtocolError
from ..memory import layout
from ..parts import needed
from . import definitions
from .browsing import Browsing
from .conditions import ILLEGAL_ARGUMENT, INVALID_ARGUMENT, SessionError
from .subscription import Subscription

NOT_ACQUIRED = 1  # acquire-mode
SELECTOR = "x-filter-jms-selector"
PREFETCH = 1  # any number: credit is counted (Consumers.add_credit)
QPIDS = (SELECTOR, "no-local", "qpid.no-local", "x-qpid-no-local", "x-exclusive", "exclusive")  # arguments that are not the broker's


def message_subscribe(session, fields):
    """Subscribe: a consumer without credit."""
    broker = session.broker
    name, destination = definitions.name_in(fields, "queue"), fields["destination"] or ""
    if destination in session.subscriptions:
        raise ProtocolError(NOT_ALLOWED, "a subscription '%s' is there already" % destination[:80])
    for field, most in (("accept_mode", 1), ("acquire_mode", 1)):
        if (fields[field] or 0) > most:
            raise SessionError(ILLEGAL_ARGUMENT, "%s is %d" % (field.replace("_", "-"), fields[field]))
    if fields["accept_mode"] == 1 and session.incoming.transaction is not None and not session.is_dtx:
        raise SessionError(NOT_ALLOWED, "a subscription with accept-mode none in a session with tx.select")
    check(broker, session.connection.user, READ, "queue", name)
    queue = definitions.queue_of(session, name)
    if queue.exclusive_consumer or fields["exclusive"] and queue.consumers:
        raise SessionError(RESOURCE_LOCKED, broker.topology.called("queue", name) + " has subscriptions, and one is to be the only one")
    given = fields["arguments"] or {}
    arguments = {each: given[each] for each in given if each not in QPIDS}
    more = {each: fields[each] for each in ("resume_id", "resume_ttl")} if fields["resume_id"] else {}
    test = test_of(broker, given[SELECTOR]) if given.get(SELECTOR) else None
    if fields["acquire_mode"] == NOT_ACQUIRED and not queue.is_stream:
        browsing = session.subscriptions[destination] = Browsing(session, destination, fields["accept_mode"] == 1, queue, test)
        browsing.more = more
        browsing.is_exclusive = queue.exclusive_consumer = bool(fields["exclusive"])
        return
    made = Subscription(session, destination, fields["accept_mode"] == 1)
    made.more = more
    made.holds = made.accept_none and session.timeout_s > 0
    no_ack = made.accept_none and not queue.is_stream and not made.holds
    made.consumer = broker.consumers.subscribe(session, name, destination, no_ack, fields["exclusive"], arguments, PREFETCH)
    session.subscriptions[destination] = made
    broker.consumers.add_credit(made.consumer, 0)  # it has that which the peer gives, and no window
    if test is not None:
        try:
            needed("queue.wishes", "filters").attach(broker, made.consumer, test, False)
        except Exception:  # all or nothing: the peer has no subscription then
            cancel(session, made)
            raise


def test_of(broker, text):
    """As selecting.test_of. Raises invalid-argument for a text that is no selector."""
    try:
        return selecting.test_of(broker, text)
    except ProtocolError as error:
        if error.condition != PRECONDITION_FAILED:
            raise
        raise SessionError(INVALID_ARGUMENT, error.text) from None


def message_cancel(session, fields):
    """Cancel: the subscription ends; its deliveries stay with the session."""
    name = fields["destination"] or ""
    made = session.subscriptions.get(name)
    if made is None:
        raise ProtocolError(NOT_FOUND, "there is no subscription '%s' in this session" % name[:80])
    cancel(session, made)


def cancel(session, made):
    """End a subscription."""
    del session.subscriptions[made.destination]
    if made.consumer is not None:
        session.broker.consumers.cancel(made.consumer)
    else:
        made.let_others()


def has_all(made):
    """True when nothing that is there can go to this subscription now (message.flush)."""
    consumer, broker = made.consumer, made.broker
    if consumer is None:
        return made.go_on()
    queue = consumer.queue
    if queue.is_stream:
        return consumer.cursor_offset >= queue.readable_offset() or not broker.consumers.has_credit(consumer)
    engine = broker.tables.engine
    engine.begin_round(0, engine.deliveries)
    if not getting.serve(broker, queue):
        return False
    if not broker.consumers.has_credit(consumer) or getting.state(broker, queue) == getting.EMPTY:
        return True
    is_short = made.session.connection.send.is_short() or made.session.session.outgoing.active()
    return not is_short and not broker.tables.queues[queue.handle + layout.QUEUE_ACTIVE] and queue.head() != layout.NONE

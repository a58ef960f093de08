"""A session loses its transport and comes to another: actions of states.SESSION for one that lives beyond its transport (sessions.py)."""

from ..parts import needed
from . import branches, replay, sessions
from .away import Away
from .conditions import ILLEGAL_STATE


def lose(session):
    """The transport is lost, or detached: the session waits for another one until its timeout."""
    protocol, connection, broker = session.session, session.connection, session.broker
    end_commit(session)
    session.settling = None
    protocol.outgoing.abandon(protocol, session)
    if session in protocol.writing:
        protocol.writing.remove(session)
    if session.files is not None:
        needed("amqp_0_10.file_class", "class file").release(session)
    for each in session.subscriptions.values():
        if not each.lasts:
            fail(session, ILLEGAL_STATE, "consumers of the classes file and stream end with their transport")
        if each in protocol.browsing:
            protocol.browsing.remove(each)
        if each.consumer is not None:
            each.pause()
    for consumer in session.consumers.values():
        connection.send.forget(consumer)
    sessions.of(broker).note(session)
    away = Away(broker, connection.user)
    move_queues(session, connection, away)
    session.session = session.connection = session.promises.protocol = away
    session.expected = None
    session.until = broker.uptime_s + session.timeout_s


def end_commit(session):
    """What is half here will not be whole on this transport. A commit that has begun to take effect is done."""
    transaction = session.incoming.transaction
    has_begun = transaction is not None and transaction.sender is not None
    session.drop_partial()
    if session.committing is not None:
        branch, session.committing = session.committing, None
        status = branches.of(session.broker).finish(branch)
        session.took(session.id)
        session.done(session.id, {"status": status})
    if not has_begun:
        return
    session.is_committing = True
    try:
        transaction.finish(session.broker)
    except Exception as error:  # an error of ours, or a refused message: the commit is done, and the session hears of it
        session.broker.guard.trouble("a commit of connection %s", session.connection.name, error)
        session.failure = "internal-error", "a message of the transaction could not be taken"
    finally:
        session.is_committing = False
    session.took(session.id)
    session.done(session.id)


def move_queues(session, before, after):
    """The exclusive queues that a session has declared belong to it, and not to its transport."""
    for queue in list(session.owned):
        if queue.owner is before and queue in before.exclusive_queues:
            before.exclusive_queues.remove(queue)
            after.exclusive_queues = list(after.exclusive_queues) + [queue]
            queue.owner = after
        else:
            session.owned.remove(queue)


def come_back(session, protocol):
    """session.attach of a session that has waited: it goes on."""
    away, broker = session.connection, session.broker
    session.session = session.promises.protocol = protocol
    session.connection = protocol.connection
    session.promises.journal = broker.journal  # one that the log has given back was made before the journal was
    move_queues(session, away, session.connection)
    session.is_new = len(session.completed.runs) > 0
    if session.failure is not None:
        tell_failure(session)
        return
    replay.begin(session)
    protocol.wants_to_write(session)
    if session.replay_at is None:
        for each in session.subscriptions.values():
            each.tell_broker()


def tell_failure(session):
    """Say what is completed, and that the session has ended. It ends when the peer has answered: the exception may be lost with its
    transport, and with it what was completed."""
    condition, text = session.failure
    session.name_of = None
    session.has_point = False
    session.tell_completed(True)
    session.say_exception(condition, text)
    session.state = "failing"


def fail(session, condition, text):
    """An error met a session without a transport: it ends when the peer can hear so."""
    if session.failure is None:
        session.failure = condition, text


def end(session):
    """A session has ended: of the exclusive queues that it has declared those with auto-delete go with it, the others are nobody's now
    ("that queue cannot be used by any other session until the declaring session closes")."""
    for queue in session.owned:
        owner = queue.owner
        if owner is not session.connection or session.broker.queues.get(queue.name) is not queue:
            continue
        if queue.auto_delete and queue.farewell is None:
            session.broker.topology.drop_queue(queue)
            continue
        owner.exclusive_queues.remove(queue)
        queue.owner = None
        if queue.auto_delete:
            queue.farewell(queue)
    session.owned = []

"""Class file: its commands, one function each as commands.py has them, and what a session has of it.

What a client stages and publishes: file_content.py. What is delivered to it: file_delivery.py.
"""

from ..access.permissions import READ, check
from ..errors import NOT_ALLOWED, NOT_FOUND, NOT_IMPLEMENTED, RESOURCE_LOCKED, ProtocolError
from ..memory import layout
from ..outcomes import ACCEPTED, MODIFIED, REJECTED
from ..staging import delivering
from ..staging.account import Account
from ..staging.contents import contents_of
from . import commands, definitions, file_content, numbers
from .conditions import ILLEGAL_ARGUMENT, ILLEGAL_STATE, SessionError
from .file_delivery import FileConsumer, go_on
from .subscribing import cancel

TAKERS = {"file_stage": file_content.Stage, "file_publish": file_content.Publish}


class Files(Account):
    """What a session has of class file."""

    def __init__(self, session):
        Account.__init__(self, session)
        self.session = session

    def feed(self):
        """Deliver again: there is more window, or a delivery has been staged."""
        for each in self.session.subscriptions.values():
            if isinstance(each, FileConsumer):
                self.session.broker.activate(each.consumer.queue)


def files_of(session):
    """The Files of a session."""
    if session.files is None:
        session.files = Files(session)
    return session.files


def file_qos(session, fields):
    """Qos: windows of what is delivered in advance, of this session or of all sessions of the connection."""
    sessions = session.session.attached.values() if fields["global"] else [session]
    for each in list(sessions):
        files = files_of(each)
        files.prefetch_size, files.prefetch_count = fields["prefetch_size"] or 0, fields["prefetch_count"] or 0
        files.feed()
    session.command("file_qos_ok", {})


def file_consume(session, fields):
    """Consume: deliveries begin at once."""
    queue = check_consume(session, fields)
    if queue.is_stream:
        raise SessionError(NOT_IMPLEMENTED, "file.consume of a stream")
    files_of(session)
    contents = contents_of(session.broker)
    contents.is_reading = True
    try:
        subscribe(session, FileConsumer(session, fields["consumer_tag"], fields["no_ack"]), queue, fields)
    finally:
        contents.is_reading = False
    if not fields["nowait"]:
        session.command("file_consume_ok", {"consumer_tag": fields["consumer_tag"]})


def check_consume(session, fields):
    """The queue of a file.consume or stream.consume. Raises ProtocolError for what its fields must not be."""
    broker = session.broker
    tag, name = fields["consumer_tag"] or "", fields["queue"] or ""
    if not tag or not name:
        raise SessionError(NOT_ALLOWED, "a consumer needs a tag and a queue")
    for each in session.session.attached.values():
        if tag in each.subscriptions:
            raise SessionError(NOT_ALLOWED, "a consumer '%s' is there already" % tag[:80])
    check(broker, session.connection.user, READ, "queue", name)
    queue = definitions.queue_of(session, name)
    if queue.exclusive_consumer or fields["exclusive"] and queue.consumers:
        raise SessionError(RESOURCE_LOCKED, broker.topology.called("queue", name) + " has consumers, and one of them is to be the only one")
    return queue


def subscribe(session, made, queue, fields):
    """Make the broker's consumer of a FileConsumer or StreamConsumer."""
    tag = fields["consumer_tag"]
    session.subscriptions[tag] = made
    try:
        made.consumer = session.broker.consumers.subscribe(
            session, queue.name, tag, made.accept_none, fields["exclusive"], fields["arguments"] or {}, 0
        )
    except Exception:  # all or nothing: there is no consumer
        del session.subscriptions[tag]
        raise


def file_cancel(session, fields):
    """Cancel: "This does not affect already delivered messages"."""
    cancel_one(session, fields, FileConsumer)


def cancel_one(session, fields, class_):
    """Cancel a consumer of this class."""
    tag = fields["consumer_tag"] or ""
    made = session.subscriptions.get(tag)
    if not isinstance(made, class_):
        raise ProtocolError(NOT_FOUND, "there is no consumer '%s' in this session" % tag[:80])
    cancel(session, made)


def file_open(session, fields):
    """Open: begin to stage a content, or go on where that stopped."""
    files = files_of(session)
    files.stop_staging()
    identifier, size = fields["identifier"] or "", fields["content_size"] or 0
    content = contents_of(session.broker).open(session.connection.user, identifier, size, session)
    files.staging = content
    session.command("file_open_ok", {"staged_size": content.staged()})


def file_open_ok(session, fields):
    """Open-ok: the peer says what it has of a content that we deliver; false when that must wait."""
    files = session.files
    if files is None or files.out is None:
        raise SessionError(ILLEGAL_STATE, "file.open-ok without a file.open of ours")
    staged = fields["staged_size"] or 0
    if staged > files.out.size:
        raise SessionError(ILLEGAL_ARGUMENT, "%d octets are staged of a content that has %d" % (staged, files.out.size))
    return go_on(session, files, staged)


def file_ack(session, fields):
    """Ack: deliveries up to a tag, or one; 0 with multiple is all. False: some are left."""
    tag = fields["delivery_tag"] or 0
    tags = tags_of(session, tag, fields["multiple"])
    return settle(session, tags, ACCEPTED)


def file_reject(session, fields):
    """Reject: discarded or dead-lettered, or back to the queue, for others than this session."""
    tags = tags_of(session, fields["delivery_tag"] or 0, False)
    if not fields["requeue"]:
        return settle(session, tags, REJECTED)
    entry = entry_of(session, tags[0])
    if entry != layout.NONE:
        readers = [each.consumer for each in session.subscriptions.values() if isinstance(each, FileConsumer)]
        delivering.refuse(session.broker, entry, readers)
    return settle(session, tags, MODIFIED)


def tags_of(session, tag, multiple):
    """The delivery tags that a peer means. Raises illegal-argument for one that is not, or no longer, unsettled."""
    tags = files_of(session).tags(tag, multiple)
    if tags is None:
        raise SessionError(ILLEGAL_ARGUMENT, "there is no unacknowledged delivery %d in this session" % tag)
    return tags


def entry_of(session, tag):
    """The unsettled entry of a delivery tag, NONE: it has gone."""
    return numbers.entry_from(session, tag - 1, tag - 1)


def settle(session, tags, outcome):
    """Settle deliveries, as far as this turn goes; false: some are left."""
    files, tables = session.files, session.broker.tables
    if files is None:
        return True
    gone = {}
    for tag in tags:
        if tables.state[layout.STATE_LEFT] <= 0:
            break
        entry = entry_of(session, tag)
        if entry != layout.NONE:
            commands.settle_run(session, entry, tag - 1, outcome)
        gone[tag] = True
    files.delivered = [each for each in files.delivered if each[0] not in gone]
    if len(gone) < len(tags):
        return session.session.go_on_later()
    files.feed()
    return True


def release(session):
    """A session ends."""
    files, session.files = session.files, None
    files.stop_staging()
    if session.broker.contents is not None:  # it makes none now: the disk may refuse
        session.broker.contents.let_go(session)

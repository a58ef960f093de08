"""Class file of AMQP 0-8, 0-9 and the drafts of 2005: its methods, one function each as verbs.py has them, and a channel's account of it.

Those with contents: older_actions.py. What is delivered: file_delivery.py.
"""

from ..access.permissions import READ, check
from ..broker import crossing
from ..errors import COMMAND_INVALID, CONTENT_TOO_LARGE, NOT_IMPLEMENTED, PRECONDITION_FAILED, ProtocolError
from ..memory import layout
from ..message.formats import NUMBER
from ..outcomes import ACCEPTED, MODIFIED, NO_ROOM, REJECTED, TAKEN
from ..parts import needed
from ..staging import delivering
from ..staging.account import Account
from ..staging.contents import contents_of
from . import properties, verbs
from .file_delivery import FileReader, go_on

if False:  # for the type checker alone
    from typing import Any

SELECTOR = "x-filter-jms-selector"


class Files(Account):
    """What a channel has of class file."""

    properties: "Any" = None  # octets of class basic, of the content whose body comes
    kind = 0  # of its message

    def __init__(self, channel):
        Account.__init__(self, channel)
        self.channel = channel
        self.prefetch_size, self.prefetch_count = channel.session.file_window
        self.kept: "list" = []  # of `delivered`: acknowledged in the channel's transaction

    def feed(self):
        """Deliver again: there is more window, or a delivery has been staged."""
        for reader in self.channel.readers.values():
            self.channel.session.broker.activate(reader.consumer.queue)

    def finish(self):
        """All of a stage has come: TAKEN once it is durable, NO_ROOM: ask again. Raises ProtocolError."""
        contents = contents_of(self.channel.session.broker)
        size_max = self.channel.session.broker.limits.properties_size_max
        try:
            if len(self.properties) > size_max:
                raise ProtocolError(CONTENT_TOO_LARGE, "properties of %d octets; this broker takes %d" % (len(self.properties), size_max))
            if not contents.finish(self.staging, self.channel, self.kind, self.properties):
                return NO_ROOM
        except ProtocolError:
            self.stop_staging()
            raise
        self.stop_staging()
        return TAKEN

    def stop_staging(self):
        """The peer stages nothing now."""
        self.properties = None
        Account.stop_staging(self)

    def properties_of(self, staged):
        """(properties as class basic has them, kind) of a message for a content, which a client of another version may have staged."""
        if staged.kind & NUMBER == 0:
            return self.channel.session.properties_of_file(staged.properties), staged.kind
        given = crossing.source_of(staged.kind).exact(staged.properties)
        given = {name: given[name] for name, _ in properties.PROPERTIES if name in given}
        return properties.encode(given), staged.kind & ~NUMBER

    def end_transaction(self, is_committed):
        """What was acknowledged in the transaction is settled, or is unsettled again."""
        if not is_committed:
            self.delivered = sorted(self.delivered + self.kept)
        self.kept = []


# Consumers


def file_qos(session, channel, arguments):
    """file.qos: the window of what is delivered in advance, of this channel or of all of the connection."""
    size, count, is_global = arguments
    if is_global:
        session.file_window = size, count
    for each in list(session.channels.values()) if is_global else [channel]:
        files = each.files_of()
        files.prefetch_size, files.prefetch_count = size, count
        files.feed()
    session.reply(channel.number, "file_qos_ok", ())


def file_consume(session, channel, arguments):
    """file.consume: deliveries begin at once."""
    _, name, tag, _, no_ack, exclusive, no_wait = arguments[:7]
    channel.files_of()
    contents = contents_of(session.broker)
    contents.is_reading = True
    try:
        consumer = subscribe(session, channel, name, tag, no_ack, exclusive, arguments[7:], "file")
    finally:
        contents.is_reading = False
    add_reader(channel, FileReader(session, channel, consumer))
    verbs.answer(session, channel, no_wait, "file_consume_ok", (consumer.tag,))


def subscribe(session, channel, name, tag, no_ack, exclusive, table, class_name):
    """The broker's consumer of a file.consume or stream.consume. `table`: [the filter of 0-9], or nothing."""
    broker = session.broker
    name = verbs.current_queue(channel, name)
    check(broker, session.connection.user, READ, "queue", name)
    queue = broker.topology.queue(name, session.connection)
    if queue.is_stream:
        raise ProtocolError(NOT_IMPLEMENTED, "%s.consume of a stream that keeps its messages" % class_name)
    if tag == "":
        channel.tags_made += 1
        tag = "amq.ctag-%d-%d" % (channel.number, channel.tags_made)
    size_max = broker.limits.name_size_max
    if len(tag.encode("utf-8")) > size_max:
        raise ProtocolError(PRECONDITION_FAILED, "this consumer tag is longer than the %d octets that this broker takes" % size_max)
    given = table[0] if table else {}
    fits = needed("broker.selecting", "selectors").test_of(broker, given[SELECTOR]) if given.get(SELECTOR) else None
    given = {each: given[each] for each in given if each != SELECTOR}
    consumer = broker.consumers.subscribe(channel, queue.name, tag, no_ack, exclusive, given, 0)
    if fits is not None:
        needed("queue.wishes", "filters").attach(broker, consumer, fits, False)
    return consumer


def add_reader(channel, reader):
    """A consumer of one of the two classes is made; those that have ended are forgotten."""
    channel.readers = {tag: each for tag, each in channel.readers.items() if channel.consumers.get(tag) is each.consumer}
    channel.readers[reader.consumer.tag] = reader


def file_cancel(session, channel, arguments):
    """file.cancel: "This does not affect already delivered messages"."""
    cancel(session, channel, arguments, "file_cancel_ok", FileReader)


def cancel(session, channel, arguments, answer, class_):
    """Cancel a consumer of this class; a tag that is not there is cancelled already."""
    tag, no_wait = arguments
    reader = channel.readers.get(tag)
    if isinstance(reader, class_) and channel.consumers.get(tag) is reader.consumer:
        del channel.readers[tag]
        session.broker.consumers.cancel(reader.consumer)
    verbs.answer(session, channel, no_wait, answer, (tag,))


# Staging


def file_open(session, channel, arguments):
    """file.open: begin to stage a content, or go on where that stopped."""
    identifier, size = arguments
    files = channel.files_of()
    files.stop_staging()
    files.staging = contents_of(session.broker).open(session.connection.user, identifier, size, channel)
    session.reply(channel.number, "file_open_ok", (files.staging.staged(),))


def file_open_ok(session, channel, arguments):
    """file.open-ok: the peer says what it has of a content that we deliver; false when that must wait."""
    files = channel.files
    if files is None or files.out is None:
        raise ProtocolError(COMMAND_INVALID, "file.open-ok without a file.open of ours")
    if arguments[0] > files.out.size:
        text = "%d octets are staged of a content that has %d"
        raise ProtocolError(PRECONDITION_FAILED, text % (arguments[0], files.out.size))
    return go_on(session, channel, files, arguments[0])


# Acknowledgements


def file_ack(session, channel, arguments):
    """file.ack: deliveries up to a tag, or one; 0 with multiple is all. False: some are left."""
    return settle(session, channel, tags_of(channel, arguments[0], arguments[1]), ACCEPTED)


def file_reject(session, channel, arguments):
    """file.reject: discarded or dead-lettered, or back to the queue, for others than this channel. At once, in a transaction too."""
    tag, requeue = arguments
    tags_of(channel, tag, False)
    entry = entry_of(channel, tag)
    if requeue and entry != layout.NONE:
        delivering.refuse(session.broker, entry, [each.consumer for each in channel.readers.values() if isinstance(each, FileReader)])
    transaction, channel.transaction = channel.transaction, None
    try:
        return settle(session, channel, [tag], MODIFIED if requeue else REJECTED)
    finally:
        channel.transaction = transaction


def tags_of(channel, tag, multiple):
    """The delivery tags that a peer means. Raises precondition-failed for one that is no unacknowledged delivery of a file."""
    tags = channel.files_of().tags(tag, multiple)
    if tags is None:
        raise ProtocolError(PRECONDITION_FAILED, "unknown delivery tag %d" % tag)
    return tags


def entry_of(channel, tag):
    """The unsettled entry of a delivery tag, NONE: it has gone."""
    return channel.session.broker.tables.engine.find_tag(channel.handle, tag & layout.MASK)


def settle(session, channel, tags, outcome):
    """Settle deliveries, or keep that for the commit, as far as this turn goes; false: some are left."""
    files, tables = channel.files, session.broker.tables
    if files is None:
        return True
    gone = {}
    for tag in tags:
        if tables.state[layout.STATE_LEFT] <= 0:
            break
        entry = entry_of(channel, tag)
        if entry != layout.NONE and channel.transaction is not None:
            channel.transaction.keep(tag, False, outcome)
        elif entry != layout.NONE:
            session.broker.consumers.settle(channel, entry, entry, outcome)
        tables.state[layout.STATE_LEFT] -= 1
        gone[tag] = True
    if channel.transaction is not None:
        files.kept += [each for each in files.delivered if each[0] in gone]
    files.delivered = [each for each in files.delivered if each[0] not in gone]
    if len(gone) < len(tags):
        return session.go_on_later()
    files.feed()
    return True


# Transactions: what they do of class tx, and what a channel knows of the contents and deliveries in one


def tx_commit(session, channel, arguments):
    """tx.commit."""
    if verbs.tx_commit(session, channel, arguments) is False:
        return False
    end_transaction(channel, True)
    return True


def tx_rollback(session, channel, arguments):
    """tx.rollback."""
    verbs.tx_rollback(session, channel, arguments)
    end_transaction(channel, False)


def end_transaction(channel, is_committed):
    """A transaction has ended."""
    channel.classes = None
    if channel.files is not None:
        channel.files.end_transaction(is_committed)


VERBS = {
    "file_qos": file_qos,
    "file_consume": file_consume,
    "file_cancel": file_cancel,
    "file_open": file_open,
    "file_open_ok": file_open_ok,
    "file_ack": file_ack,
    "file_reject": file_reject,
    "tx_commit": tx_commit,
    "tx_rollback": tx_rollback,
}

"""The methods of a channel: each one's requests to the broker, and its answer. The first functions are the actions of states.CHANNEL.

One function a method, named as the method (section 1.5 to 1.9): (session, channel, arguments); `request` looks it up by that name.
"""

from .. import limits
from ..broker import getting
from ..errors import NOT_FOUND, NOT_IMPLEMENTED, PRECONDITION_FAILED, ProtocolError
from ..memory import layout
from ..outcomes import ACCEPTED, MODIFIED, REJECTED
from ..parts import needed
from ..queue import turns
from . import content, deliver, method, permissions
from .content import begin_body, end_content, header, publish  # noqa: F401 - actions of states.CHANNEL
from .handshake import refuse  # noqa: F401 - an action of states.CHANNEL


def request(session, channel, row, octets, at, end):
    """A method on an open channel but basic.publish; false: it must wait for room in the broker and be tried again."""
    name = row[method.NAME]
    handler = session.verbs_beside.get(name) or globals().get(name)
    arguments = method.decode(row, octets, at, end)
    if handler is None:
        raise ProtocolError(NOT_IMPLEMENTED, "%s is not served" % method.title(row))
    names = DEFINING.get(name, -1)
    for place in range(1, names + 1):
        if "\r" in arguments[place] or "\n" in arguments[place]:
            arguments[place] = arguments[place].replace("\r", "").replace("\n", "")
    permissions.allow(session, channel, name, arguments)
    if names >= 0:
        if has_to_wait(session.broker, name, arguments):
            if session.settling >= 0:
                session.settling = layout.NONE  # the channel is then resumed as any other
                session.send.feed()
            return False
        for place in range(1, max(names, 1) + 1):  # an error, too, reveals changes of other clients to these names
            promise(session, arguments[place])
    return handler(session, channel, arguments)


def closed(session, channel, *method_frame):
    """channel.close-ok: the channel ends when its deliveries are back in their queues; false until then (section 1.5.2.6)."""
    session.release_channel(channel)
    if channel.handle != layout.NONE:
        return session.go_on_later()
    del session.channels[channel.number]
    return True


def closed_too(session, channel, *method_frame):
    """channel.close of the client's: the same, and it is answered."""
    if not closed(session, channel):
        return False
    session.reply(channel.number, "channel_close_ok", ())
    return True


def release(session, channel):
    """Release everything that an open channel holds."""
    session.number_channel(channel.number, layout.NONE)
    content.abandon(session, channel)
    session.broker.consumers.close_session(channel)


def release_content(session, channel):
    """Release a channel whose content is incomplete."""
    session.begun -= 1
    release(session, channel)


def drop_returns(session, channel):
    """Release the returns of a closing channel."""
    content.drop_returns(session, channel)


def ignore(session, channel, *frame):
    """Discard a frame that a client has sent before it saw our channel.close (section 1.5.2.5)."""
    return True


def open_channel(session, channel, row, octets, at, end):
    """channel.open (section 1.5.2.1)."""
    session.may_be_new(channel.number)
    method.decode(row, octets, at, end)
    session.open_channel(channel)


# channel


def channel_close(session, channel, arguments):
    """The client is done with the channel."""
    session.release_channel(channel)
    return session.step_of(channel, "channel_close")


def channel_flow(session, channel, arguments):
    """Section 1.5.2.3; as in RabbitMQ deliveries cannot be stopped with it (540): prefetch is for that."""
    if not arguments[0]:
        raise ProtocolError(NOT_IMPLEMENTED, "active=false")
    session.reply(channel.number, "channel_flow_ok", (True,))


def channel_flow_ok(session, channel, arguments):
    """We send no channel.flow, so nothing is answered."""


# access


def access_request(session, channel, arguments):
    """Class access of 0-8, which old clients use on 0-9-1: granted, as from RabbitMQ; what a user may do is looked at with each method."""
    session.reply(channel.number, "access_request_ok", (1,))


# exchange


def exchange_declare(session, channel, arguments):
    """Section 1.6.2.1."""
    _, name, type_, passive, durable, auto_delete, internal, no_wait, table = arguments
    session.broker.topology.declare_exchange(session.connection, name, type_, passive, durable, auto_delete, internal, table)
    answer_durably(session, channel, no_wait, "exchange_declare_ok", (), name)


def exchange_delete(session, channel, arguments):
    """Section 1.6.2.3."""
    _, name, if_unused, no_wait = arguments
    if not session.broker.topology.delete_exchange(name, if_unused):
        return False  # more bindings than one turn is for
    answer_durably(session, channel, no_wait, "exchange_delete_ok", (), name)
    return True


def exchange_bind(session, channel, arguments):
    """RabbitMQ's exchange to exchange binding."""
    _, destination, source, key, no_wait, table = arguments
    session.broker.topology.bind_exchange(session.connection, destination, source, key.encode("utf-8"), table)
    answer_durably(session, channel, no_wait, "exchange_bind_ok", (), destination)


def exchange_unbind(session, channel, arguments):
    """The end of such a binding."""
    _, destination, source, key, no_wait, table = arguments
    session.broker.topology.unbind_exchange(destination, source, key.encode("utf-8"), table)
    answer_durably(session, channel, no_wait, "exchange_unbind_ok", (), destination)


# queue


def queue_declare(session, channel, arguments):
    """Section 1.7.2.1. A server asks so whether who awaits a direct reply-to is there (RabbitMQ): passive or not, nothing is made."""
    _, name, passive, durable, exclusive, auto_delete, no_wait, table = arguments
    if name.startswith(content.REPLY_QUEUE):
        if name not in session.broker.queues and name != content.REPLY_QUEUE:
            session.broker.topology.queue(name, session.connection)
        answer(session, channel, no_wait, "queue_declare_ok", (name, 0, 1))
        return
    queue = session.broker.topology.declare_queue(
        session.connection, served(session, name), passive, durable, exclusive, auto_delete, table
    )
    channel.last_queue = queue.name
    session.broker.consumers.end_unclaimed(queue)
    answer_durably(session, channel, no_wait, "queue_declare_ok", (queue.name, queue.message_count(), len(queue.consumers)), queue.name)


def queue_bind(session, channel, arguments):
    """Section 1.7.2.3. With neither queue nor key, the key is the queue's name."""
    _, name, exchange, key, no_wait, table = arguments
    queue = current_queue(channel, name)
    if name == "" and key == "":
        key = queue
    session.broker.topology.bind(session.connection, queue, exchange, key.encode("utf-8"), table)
    answer_durably(session, channel, no_wait, "queue_bind_ok", (), queue)


def queue_unbind(session, channel, arguments):
    """Section 1.7.2.5."""
    _, name, exchange, key, table = arguments
    queue = current_queue(channel, name)
    if name == "" and key == "":
        key = queue
    session.broker.topology.unbind(session.connection, queue, exchange, key.encode("utf-8"), table)
    answer_durably(session, channel, False, "queue_unbind_ok", (), queue)


def queue_purge(session, channel, arguments):
    """Section 1.7.2.7; false while that takes further turns. As many messages go as there were at the first one, and their number is told
    when they have gone: also where somebody deletes the queue meanwhile."""
    _, name, no_wait = arguments
    broker = session.broker
    name = current_queue(channel, name)
    left = channel.left
    if left < 0 or name in broker.queues:
        queue = broker.topology.queue(name if left >= 0 else served(session, name), session.connection)
        if left < 0:
            left = queue.message_count()
        count = broker.purge(queue, left)
        channel.purged += count
        channel.left = left - count
        if left > count and queue.message_count():
            return session.go_on_later()
        name = None if queue.id_in_log else name
    answer_durably(session, channel, no_wait, "queue_purge_ok", (channel.purged,), name)
    channel.left, channel.purged = -1, 0
    return True


def queue_delete(session, channel, arguments):
    """Section 1.7.2.9. The consumers of the connection that deletes hear of it after delete-ok, as from RabbitMQ."""
    _, name, if_unused, if_empty, no_wait = arguments
    name = served(session, current_queue(channel, name))
    count = session.broker.topology.delete_queue(session.connection, name, if_unused, if_empty)
    if count is None:  # more bindings than one turn is for
        return session.go_on_later()
    answer_durably(session, channel, no_wait, "queue_delete_ok", (count,), name)
    return True


# basic


def basic_qos(session, channel, arguments):
    """Section 1.8.3.1, with RabbitMQ's reading of global: false sets each consumer to come, true the channel as a whole."""
    size, count, global_ = arguments
    if size:
        raise ProtocolError(NOT_IMPLEMENTED, "prefetch_size!=0 (%d)" % size)
    if global_:
        session.broker.tables.channels[channel.handle + layout.CHANNEL_PREFETCH] = count
        session.effort += len(channel.consumers)
        for consumer in channel.consumers.values():
            session.broker.activate(consumer.queue)
    else:
        channel.prefetch = count
    session.reply(channel.number, "basic_qos_ok", ())


def basic_consume(session, channel, arguments):
    """Section 1.8.3.3. no-local is taken and, as in RabbitMQ, has no effect."""
    _, name, tag, _, no_ack, exclusive, no_wait, table = arguments
    queue = reply_queue(session, channel, no_ack) if name == content.REPLY_QUEUE else current_queue(channel, name)
    if tag == "":
        channel.tags_made += 1
        tag = "amq.ctag-%d-%d" % (channel.number, channel.tags_made)
    size_max = session.broker.limits.name_size_max
    if len(tag.encode("utf-8")) > size_max:
        raise ProtocolError(PRECONDITION_FAILED, "this consumer tag is longer than the %d octets that this broker takes" % size_max)
    consumer = session.broker.consumers.subscribe(channel, queue, tag, no_ack, exclusive, table, channel.prefetch)
    consumer.prefix = deliver.prefix(channel.number, tag)
    consumer.prefix_at = session.broker.tables.engine.octets(consumer.prefix)
    consumer.frame_size_max = session.frame_size_max
    consumer.row = session.hot
    session.broker.tables.engine.see_consumer(consumer)
    answer(session, channel, no_wait, "basic_consume_ok", (tag,))


def reply_queue(session, channel, no_ack):
    """The queue behind RabbitMQ's direct reply-to: exclusive, made when the pseudo-queue is consumed, gone with its consumer."""
    if not no_ack:
        raise ProtocolError(PRECONDITION_FAILED, "reply consumer cannot acknowledge")
    if channel.reply_queue is not None:
        raise ProtocolError(PRECONDITION_FAILED, "reply consumer already set")
    name = session.broker.topology.generated_name(content.REPLY_QUEUE + ".")
    session.broker.topology.check_queue_room(session.connection)
    session.broker.topology.make_queue(session.connection, name, False, True, True, {})
    channel.reply_queue = name
    if session.hot.see_requests is not None:
        session.hot.see_requests(session, channel)
    return name


def basic_cancel(session, channel, arguments):
    """Section 1.8.3.5; a tag that is not there is cancelled already."""
    tag, no_wait = arguments
    consumer = channel.consumers.get(tag)
    if consumer is not None:
        if consumer.queue.name == channel.reply_queue:
            channel.reply_queue = None
        session.effort += (
            len(channel.consumers) // 4
            + 40 * session.broker.tables.channels[channel.handle + layout.CHANNEL_UNSETTLED] // session.broker.tables.engine.effort
        )
        session.broker.consumers.cancel(consumer)
    answer(session, channel, no_wait, "basic_cancel_ok", (tag,))


def basic_cancel_ok(session, channel, arguments):
    """The client's answer to our consumer cancel notification."""


def basic_get(session, channel, arguments):
    """Section 1.8.3.10. A stream answers with its state."""
    _, name, no_ack = arguments
    queue = session.broker.topology.queue(current_queue(channel, name), session.connection)
    served = getting.serve(session.broker, queue)
    if session.state == "closing":
        return True  # that broke it
    if not served:
        return session.go_on_later()
    if session.outgoing.active() or session.send.room() < limits.REPLY_ROOM:
        return False  # a consumer of this connection has got so much
    if queue.is_stream:
        if not no_ack:
            raise ProtocolError(
                NOT_IMPLEMENTED, "basic.get with acknowledgement on stream '%s'; with no-ack it tells the stream's state" % queue.name
            )
        deliver.get_stream(session, channel, queue)
        return True
    outcome = getting.state(session.broker, queue)
    if outcome == getting.LATER:
        return False
    if session.hot.see_get is not None:
        session.hot.see_get(session, name, queue)
    if outcome == getting.READY:
        return deliver.get(session, channel, queue, no_ack)
    session.reply(channel.number, "basic_get_empty", ("",))
    return True


def basic_ack(session, channel, arguments):
    """Section 1.8.3.13."""
    tag, multiple = arguments
    if session.settling >= 0 and channel.transaction is None:
        return settle_up_to(session, channel, ACCEPTED)
    last = unsettled(session, channel, tag, multiple)
    if channel.transaction is not None:
        return keep(session, channel, tag, multiple, ACCEPTED)
    if last != layout.NONE:
        if multiple:
            session.settling = session.broker.tables.entries[last + layout.ENTRY_TAG]
            return settle_up_to(session, channel, ACCEPTED)
        session.broker.consumers.settle(channel, last, last, ACCEPTED)
    return None


def settle_up_to(session, channel, how):
    """Settle what a channel has up to the delivery tag session.settling, the oldest first; false while that takes further turns."""
    return session.broker.consumers.settle_some(channel, session.settling, how) or session.go_on_later()


def give_back(session, channel, last=None):
    """Requeue what a channel has up to the unsettled entry `last`, or (None) to the delivery tag session.settling: what an earlier turn has
    left. False while that takes further turns; none of their queues delivers anything before the last one."""
    broker = session.broker
    tables = broker.tables
    begins = last is not None
    if not begins:
        last = broker.consumers.last_unsettled(channel)
        while last != layout.NONE and (session.settling - tables.entries[last + layout.ENTRY_TAG]) & 0x20000000:
            last = tables.entries[last + layout.ENTRY_PREVIOUS]
    last = broker.consumers.return_some(channel, last)
    if last == layout.NONE:
        broker.consumers.wake_consumers(channel, last, True)
        return True
    if begins:
        tables.engine.leave(channel.handle, last, layout.MASK)
    session.settling = tables.entries[last + layout.ENTRY_TAG]
    return session.go_on_later()


def keep(session, channel, tag, multiple, outcome):
    """Keep a settlement for the commit; tag 0 (all so far) becomes the last tag that it can be about; false while that takes turns."""
    tag = tag or channel.transaction.last_open(session.broker, channel)
    if tag == layout.NONE:
        return session.go_on_later()
    if tag:
        channel.transaction.keep(tag, multiple, outcome)
    return True


def basic_reject(session, channel, arguments):
    """Section 1.8.3.14."""
    tag, requeue = arguments
    return basic_nack(session, channel, (tag, False, requeue))


def basic_nack(session, channel, arguments):
    """RabbitMQ's reject for many."""
    tag, multiple, requeue = arguments
    if session.settling >= 0 and channel.transaction is None:
        return give_back(session, channel) if requeue else settle_up_to(session, channel, REJECTED)
    last = unsettled(session, channel, tag, multiple)
    if channel.transaction is not None:
        return keep(session, channel, tag, multiple, MODIFIED if requeue else REJECTED)
    if last != layout.NONE:
        if multiple and requeue:
            return give_back(session, channel, last)
        if multiple:
            session.settling = session.broker.tables.entries[last + layout.ENTRY_TAG]
            return settle_up_to(session, channel, REJECTED)
        session.broker.consumers.settle(channel, last, last, MODIFIED if requeue else REJECTED)
    return None


def basic_recover(session, channel, arguments):
    """Section 1.8.3.16; as in RabbitMQ only with requeue."""
    if basic_recover_async(session, channel, arguments) is False:
        return False
    session.reply(channel.number, "basic_recover_ok", ())
    return None


def basic_recover_async(session, channel, arguments):
    """Section 1.8.3.15."""
    if not arguments[0]:
        raise ProtocolError(NOT_IMPLEMENTED, "requeue=false")
    if channel.transaction is None:
        return give_back(session, channel, session.broker.consumers.last_unsettled(channel) if session.settling < 0 else None)
    if not channel.transaction.recover(session.broker, channel):
        return session.go_on_later()
    session.broker.consumers.wake_consumers(channel, layout.NONE, True)
    return None


# confirm


def confirm_select(session, channel, arguments):
    """RabbitMQ's publisher confirms: from here on publishes are counted, from 1."""
    if channel.transaction is not None:
        raise ProtocolError(PRECONDITION_FAILED, "cannot switch from tx to confirm mode")
    session.broker.tables.channels[channel.handle + layout.CHANNEL_CONFIRM] = 1
    answer(session, channel, arguments[0], "confirm_select_ok", ())


# tx


def tx_select(session, channel, arguments):
    """Section 1.9.2.1."""
    if session.broker.tables.channels[channel.handle + layout.CHANNEL_CONFIRM]:
        raise ProtocolError(PRECONDITION_FAILED, "cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = needed("broker.transaction", "transactions").Transaction(session.broker.tables)
        session.broker.tables.channels[channel.handle + layout.CHANNEL_PLAIN] = 2
    session.reply(channel.number, "tx_select_ok", ())


def tx_commit(session, channel, arguments):
    """Section 1.9.2.3; false while there is no room for what was published, and at the end of a turn."""
    if not transactional(channel).commit(channel):
        return False
    promise(session, None)
    committed(session, channel)
    return True


def committed(session, channel):
    """A commit has taken effect: answer it."""
    session.flush()  # what is returned goes before commit-ok
    session.reply(channel.number, "tx_commit_ok", ())


def tx_rollback(session, channel, arguments):
    """Section 1.9.2.5: what was acknowledged stays unsettled, and is not delivered again by this."""
    transactional(channel).rollback(session.broker)
    session.reply(channel.number, "tx_rollback_ok", ())


def transactional(channel):
    """The channel's transaction."""
    if channel.transaction is None:
        raise ProtocolError(PRECONDITION_FAILED, "channel is not transactional")
    return channel.transaction


# parts


def answer(session, channel, no_wait, name, arguments):
    """The reply, unless the client does not wait for one."""
    if not no_wait:
        session.reply(channel.number, name, arguments)


def answer_durably(session, channel, no_wait, name, arguments, defined):
    """The reply, unless the client does not wait for one, once all that was made of the name `defined` and has been logged is durable."""
    if not no_wait:
        promise(session, defined)
        session.reply(channel.number, name, arguments)


def has_to_wait(broker, name, arguments):
    """True while a method would change what there is, and a commit takes effect in the queues that were seen to have room for it, or the
    log cannot be written."""
    if broker.commit is None and (broker.journal is None or not broker.journal.log.trouble):
        return False
    there = name == "queue_declare" and arguments[1] in broker.queues or name == "exchange_declare" and arguments[1] in broker.exchanges
    return not there


def promise(session, name):
    """The replies to come wait until what the log has of `name` is durable; with None: all that has happened so far."""
    journal = session.broker.journal
    if journal is not None and (name is None or name in journal.defining):
        session.promise(journal.promise() if name is None else journal.defined(name))


def served(session, name):
    """The name of a queue, if it is there, whose consumers have now got what they can: what it holds is to be counted."""
    queue = session.broker.queues.get(name)
    if queue is not None:
        turns.serve(session.broker, queue)
    return name


def current_queue(channel, name):
    """The queue of a method: an empty name is the last one that this channel declared (section 1.7.2.3)."""
    if name:
        return name
    if not channel.last_queue:
        raise ProtocolError(NOT_FOUND, "no previously declared queue")
    return channel.last_queue


def unsettled(session, channel, tag, multiple):
    """The entry of a delivery tag; NONE for "all" (tag 0, multiple) when there are none. An unknown tag is a precondition failure."""
    tables = session.broker.tables
    if tag == 0 and multiple:
        return tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_TAIL]
    entry = layout.NONE
    high = tables.channels[channel.handle + layout.CHANNEL_TAG_HIGH]
    if high - 1 <= tag >> 30 <= high:
        entry = tables.engine.find_tag(channel.handle, tag & layout.MASK)
    if entry == layout.NONE or channel.transaction is not None and channel.transaction.holds(tag):
        raise ProtocolError(PRECONDITION_FAILED, "unknown delivery tag %d" % tag)
    return entry


# Methods that make or remove something or tell of it, and how many first names they have that are taken without CR and LF: those of
# RabbitMQ, which takes all others as they are.
DEFINING = {
    "exchange_declare": 1,
    "exchange_delete": 1,
    "exchange_bind": 2,
    "exchange_unbind": 2,
    "queue_declare": 1,
    "queue_bind": 2,
    "queue_unbind": 2,
    "queue_purge": 0,
    "queue_delete": 1,
}

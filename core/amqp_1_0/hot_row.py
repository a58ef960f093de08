"""The engine's part of AMQP 1.0, for whole runs of messages: transfers in, dispositions of receivers, transfers out.

The functions are those of hot_in.py and hot_transfers.py; c_accel/amqp_1_0.py has them in C. The engine processes frames in the receive
buffer as long as they are one link's: transfers that are a whole message each, in the order of their delivery-ids and within credit and
window, to a node whose route is known, and dispositions that accept and settle. At the first frame of another kind it stops, and nothing of
that one has been done; in C it has read a receiver's flow (`flowed`). The run is answered as one range of delivery-ids (dispositions.Run).
"""

from ..access.permissions import WRITE
from ..limits import REPLY_ROOM
from ..memory import hot, layout, serial
from ..message.route import exchange_of
from ..outcomes import ACCEPTED, TAKEN
from ..shim import quicker, table
from . import dispositions, hot_in, hot_transfers, link_layout
from .link_in import IncomingLink, packed

if False:  # for the type checker alone
    from typing import Any

_TRANSFER = 0x14  # codes of descriptors
_DISPOSITION = 0x15
_FLOW = 0x13
NULLS = 5  # fields of a transfer behind the usual six (section 2.7.5)
_LEAST = 16  # octets of a frame that it may be about


class Link:
    """The engine's record of a link, as c_accel/amqp_1_0.h has it; or of a session alone."""

    flow_size = 0  # no flow is read
    accepted = 0  # the engine writes nothing by itself

    def __init__(self):
        self.channel = self.record = self.route_size = self.settles = 0
        self.handle = layout.NONE
        self.is_next = self.next_id = 0
        self.credit = self.taken = self.is_settled = 0


class Windows:
    """What a session and an engine count together, as leveret_amqp_1_0_windows of c_accel/amqp_1_0.h."""

    def __init__(self):
        self.remote_incoming_window = self.remote_outgoing_window = 0
        self.next_outgoing_id = self.next_incoming_id = 0
        self.is_held = False


class Sender:
    """What an outgoing link and an engine count together, as leveret_amqp_1_0_sender."""

    def __init__(self):
        self.delivery_count = 0


class Row:
    """The row in Python. `name`: by which an engine knows another form of the row (c_accel/amqp_1_0.py has one in C)."""

    name = "amqp_1_0"
    reads_flows = False
    take_in: "Any" = None  # where an engine reads from sockets
    read_stream: "Any" = None  # where an engine delivers from streams
    notes_routes = False  # each message's, in its annotations
    wire: "Any" = None  # where an engine delivers by itself, in turns of queues

    def __init__(self, tables):
        self.tables = tables
        self.numbers = table(link_layout.LINK_WIDTH)

    def link(self):
        """A Link."""
        return Link()

    def windows(self):
        """A Windows."""
        return Windows()

    def sender(self):
        """A Sender."""
        return Sender()

    def octets(self, octets):
        """The argument that functions get for octets (bytes)."""
        return memoryview(octets)

    def ingest(self, link, way, source):
        """See hot_in.ingest: transfers of a link, and dispositions of its session."""
        tables, numbers = self.tables, self.numbers
        numbers[link_layout.LINK_CHANNEL] = link.channel
        numbers[link_layout.LINK_RECORD] = link.record
        numbers[link_layout.LINK_HANDLE] = link.handle
        numbers[link_layout.LINK_ROUTE] = link.route_size
        numbers[link_layout.LINK_SETTLES] = link.settles
        numbers[link_layout.LINK_IS_NEXT] = link.is_next
        numbers[link_layout.LINK_NEXT] = link.next_id & layout.MASK
        numbers[link_layout.LINK_NEXT_HIGH] = link.next_id >> 30
        numbers[link_layout.LINK_CREDIT] = link.credit
        numbers[link_layout.LINK_TAKEN] = link.taken
        numbers[link_layout.LINK_IS_SETTLED] = link.is_settled
        answer = hot_in.ingest(
            tables.arena,
            tables.blocks,
            tables.messages,
            tables.entries,
            tables.queues,
            tables.channels,
            tables.consumers,
            tables.state,
            tables.routes,
            tables.route_octets,
            tables.route_targets,
            numbers,
            way,
            source,
        )
        link.is_next = numbers[link_layout.LINK_IS_NEXT]
        link.next_id = numbers[link_layout.LINK_NEXT_HIGH] << 30 | numbers[link_layout.LINK_NEXT]
        link.credit = numbers[link_layout.LINK_CREDIT]
        link.taken = numbers[link_layout.LINK_TAKEN]
        link.is_settled = numbers[link_layout.LINK_IS_SETTLED]
        return answer

    def deliver(self, consumer, limit, prefix, prefix_size, settled, noted, frame_size_max, target, at, end):
        """Deliveries to a consumer, as hot.pump: the position behind them. It stops at the first message that its receiver gets otherwise
        than it was published. `prefix`: see hot_transfers.write; `noted`: not here (notes_routes)."""
        return deliver_run(self.tables, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end)


def deliver_run(tables, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
    """See Row.deliver: messages that go out as they were published."""
    state = tables.state
    while limit > 0:
        run = hot_transfers.first_time(
            tables.blocks, tables.messages, tables.entries, tables.queues, tables.consumers, state, consumer, limit
        )
        before = state[layout.STATE_DELIVERED]
        at = hot.pump(
            tables.arena,
            tables.blocks,
            tables.messages,
            tables.entries,
            tables.queues,
            tables.channels,
            tables.consumers,
            state,
            consumer,
            run,
            prefix,
            prefix_size,
            frame_size_max,
            hot_transfers.size_of,
            hot_transfers.write,
            target,
            at,
            end,
        )
        if not run or (state[layout.STATE_DELIVERED] - before) & layout.MASK != run:
            break
        limit -= run
    return at


deliver_run = quicker(deliver_run)


def ingest(protocol):
    """Have the engine process as many received frames as it can. Returns why it stopped (core/memory/layout.py)."""
    receive = protocol.receive
    octets, at = receive.octets, receive.start
    if receive.end - at < _LEAST or octets[at + 5] or octets[at + 8] or octets[at + 9] != 0x53 or not protocol.may_take("transfer"):
        return layout.ASK
    session = protocol.mapped.get(octets[at + 6] << 8 | octets[at + 7])
    protocol.quick = None
    if session is None or session.closing or session.settling is not None:
        return layout.ASK
    link: "Any" = None
    if octets[at + 10] == _TRANSFER:
        link = session.links.get(handle_at(octets, at + 11))
        if link is None or not is_plain(link):
            return layout.ASK
    elif octets[at + 10] != _DISPOSITION and not (octets[at + 10] == _FLOW and protocol.hot.reads_flows):
        return layout.ASK
    answer = run_engine(protocol, session, link)
    if answer == layout.INCOMPLETE and protocol.hot.take_in is not None:
        protocol.quick = session, link
    return answer


def handle_at(octets, at):
    """The handle of the transfer whose list is at `at`; -1 for another form than usual."""
    at += 3 if octets[at] == 0xC0 else 9
    if octets[at] == 0x43:
        return 0
    return octets[at + 1] if octets[at] == 0x52 else -1


def is_plain(link):
    """True for a link whose transfers the engine may process: no delivery is under way or remembered, and all go one way."""
    return (
        type(link) is IncomingLink
        and link.state == "attached"
        and link.delivery is None
        and link.kept is None
        and not link.second
        and link.route is not None
        and link.route[1] is not None
    )


def flat_of(protocol, session, link):
    """The engine's record of a link, or (None) of a session alone: made at the first call, and updated. Its place in `state` is too."""
    owner, hot = session if link is None else link, protocol.hot
    flat = owner.flat
    if flat is None:
        flat = owner.flat = hot.link()
        flat.channel, flat.record, flat.handle = session.number, session.handle, -1
        if link is not None:
            owner.way = packed(link.route, None)
            owner.way_at = hot.octets(owner.way)
            flat.handle, flat.route_size, flat.settles = link.handle, len(owner.way), link.settles
        else:
            owner.way_at = hot.octets(b"\0")
        if hot.reads_flows:
            flat.output, flat.windows = protocol.send.output, session.windows
    flat.taken = flat.accepted = 0
    if link is not None:
        flat.credit = max(min(link.credit, session.incoming_window), 0)
        number = session.next_delivery_id
        if number is None:
            flat.is_next = flat.next_id = 0
        else:
            flat.is_next, flat.next_id = 1, number
        flat.may_accept = dispositions.may_accept(session)
    elif hot.reads_flows:
        flat.credit = 0
        hot.receive(flat, session.receiver)
    broker, receive = protocol.broker, protocol.receive
    state, journal = broker.tables.state, broker.journal
    state[layout.STATE_SIZE] = receive.size
    state[layout.STATE_FRAME_MAX] = protocol.frame_max_in
    state[layout.STATE_USER] = protocol.connection.user.number
    state[layout.STATE_LOG_ROOM] = 0 if journal is None else journal.log.room_for(2 * receive.size)
    return flat


def run_engine(protocol, session, link):
    """Call the engine, and note the transfers that it has processed. Returns why it stopped."""
    receive, state = protocol.receive, protocol.broker.tables.state
    flat = flat_of(protocol, session, link)
    state[layout.STATE_AT] = receive.start
    state[layout.STATE_END] = receive.end
    answer = protocol.hot.ingest(flat, session.way_at if link is None else link.way_at, receive.address)
    return finish(protocol, session, link, flat, answer)


def finish(protocol, session, link, flat, answer):
    """Go on where the engine has stopped for a route or a flow; note the transfers that it has processed. Returns why it stopped."""
    receive, journal, state = protocol.receive, protocol.broker.journal, protocol.broker.tables.state
    way = session.way_at if link is None else link.way_at
    while answer == layout.ASK_ROUTE and find_way(protocol, link) or flat.flow_size and not flat.taken and flowed(session, flat):
        answer = protocol.hot.ingest(flat, way, receive.address)
    receive.start = state[layout.STATE_AT]
    logged = state[layout.STATE_LOGGED_HEAD] != layout.NONE
    try:
        if logged:
            journal.log_pushed()
    except Exception:  # all or nothing: no queue keeps a message that the log lacks
        journal.withdraw()
        raise
    if flat.taken:
        took(session, link, flat, logged)
    return answer


def take_in(protocol, descriptor, most):
    """Have the engine read from a socket and ingest, for the link or session whose frames came last and were all of them for it: the octets
    read; None: none now; 0: the peer is gone; -1: the port has to read. `took_in` is to follow."""
    session, link = protocol.quick
    receive, connection = protocol.receive, protocol.connection
    if receive.start != receive.end or protocol.state != "open" or protocol.held is not None or not connection.has_turn:
        return -1
    if session.state != "mapped" or session.settling is not None or protocol.leaving or protocol.draining or protocol.replies:
        return -1
    if link is not None and not is_plain(link):
        return -1
    tables, hot = protocol.broker.tables, protocol.hot
    state = tables.state
    tables.begin_turn()
    receive.start = receive.end = state[layout.STATE_AT] = state[layout.STATE_END] = 0
    protocol.most_taken = receive.size if most is None else min(receive.size, most)
    way = session.way_at if link is None else link.way_at
    count = hot.take_in(flat_of(protocol, session, link), way, receive.address, protocol.most_taken, descriptor)
    if count < 0:
        return None
    receive.end = count
    return count


def took_in(protocol):
    """Note what the engine has ingested in `take_in`. Returns why it stopped."""
    session, link = protocol.quick
    flat = (session if link is None else link).flat
    answer = finish(protocol, session, link, flat, protocol.hot.answer[0])
    if flat.accepted:
        protocol.send.touch()
    return answer


def flowed(session, flat):
    """Do as mapping.flow and OutgoingLink.flow do with a flow that the engine has read: it gives credit, and asks for no answer. False: its
    link is of another kind, or in another state."""
    link, broker, windows = session.links.get(flat.flow_handle), session.broker, session.windows
    if link is None or not link.is_plain_receiver or link.state != "attached" or link.consumer is None:
        return False
    windows.next_incoming_id = flat.flow_next_outgoing_id
    windows.remote_outgoing_window = flat.flow_outgoing_window
    was_open = windows.remote_incoming_window > 0
    window = flat.flow_incoming_window - serial.distance(flat.flow_next_incoming_id, windows.next_outgoing_id)
    windows.remote_incoming_window = window
    if window > 0 and not was_open:
        session.wake()
        if session.outgoing.active() or session.responses:
            session.wants_to_write()
    credit = flat.flow_link_credit - max(serial.distance(flat.flow_delivery_count, link.sender.delivery_count), 0)
    broker.consumers.add_credit(link.consumer, min(max(credit, 0), layout.CREDIT_UNLIMITED - 1) - link.left())
    if link.work is not None:
        link.work = None
        see(link)
    link.drain = False
    session.receiver = link
    state = broker.tables.state
    state[layout.STATE_AT] += flat.flow_size
    state[layout.STATE_LEFT] -= 1
    return True


def find_way(protocol, link):
    """Have the route cache know where a link's messages go; false when the user is not known to be allowed to write there, or it takes more
    than a look-up: then the link looks, and a permission that was taken back counts."""
    exchange, user = exchange_of(link.way), protocol.connection.user
    return exchange in user.granted[WRITE] and protocol.broker.remember_route(user.number, exchange, link.way)


def took(session, link, flat, logged):
    """Transfers were processed: reduce windows and credit, and note those that are not settled for an answer."""
    count = flat.taken
    session.next_delivery_id = flat.next_id
    session.took(count)
    link.delivery_count = serial.after(link.delivery_count, count)
    link.credit -= count
    if flat.is_settled:
        pass
    elif flat.accepted or dispositions.put_now(session, serial.after(flat.next_id, -count), count):
        session.published = (session.published + count) & layout.MASK
    else:
        number = (session.published + 1) & layout.MASK
        session.published = (session.published + count) & layout.MASK
        session.answers[number] = dispositions.Run(link, number, serial.after(flat.next_id, -count), count)
        link.in_runs += count
        if logged:
            session.promises.logged()
        session.promises.decided(session.published, TAKEN, number)
        session.wants_to_write()
    link.give_credit()


def windows(protocol):
    """The Windows of a session."""
    return Windows() if protocol.hot is None else protocol.hot.windows()


def sender(protocol):
    """The Sender of a link."""
    return Sender() if protocol.hot is None else protocol.hot.sender()


def see(link):
    """The deliveries of an outgoing link begin, or another transaction acquires them: have the engine make them by itself where it can."""
    consumer, protocol = link.consumer, link.protocol
    if protocol.hot is None or protocol.hot.wire is None or consumer is None:
        return
    is_plain = not (link.paired or consumer.queue.is_stream) and is_plain_reader(link)
    if is_plain or consumer.prefix_at is not None:
        consumer.frame_size_max = protocol.frame_max_out
        protocol.hot.deliver_to(consumer, link.sender if is_plain else None, link.session.windows, prefix_of(link), link.settled)


def is_plain_reader(link):
    """True for a link whose deliveries the engine may make: nothing is remembered of each."""
    is_any_size = not 0 < link.size_max < link.protocol.frame_max_out
    return is_any_size and not link.second and link.resuming is None and link.work is None


def prefix_of(link, nulls=0):
    """The octets of a link's transfers up to their delivery-id, with none for the size of the frame. `nulls`: fields at their end."""
    handle = b"\x43" if link.handle == 0 else b"\x52" + bytes((link.handle,))
    octets = b"\0\0\0\0\x02\0" + bytes((link.session.number >> 8, link.session.number & 255))
    return octets + b"\x00\x53\x14\xc0" + bytes((15 + len(handle) + nulls, 6 + nulls)) + handle


def deliver(link, most):
    """Have the engine deliver up to `most` messages to a link: how many."""
    session, consumer = link.session, link.consumer
    protocol, broker, send = session.session, link.broker, session.connection.send
    most = min(most, session.remote_incoming_window, link.left())
    if most <= 0 or link.paired and not protocol.hot.notes_routes or not is_plain_reader(link):
        return 0
    if link.prefix is None:
        link.prefix = prefix_of(link) + (b"\x43\x41\x42" if link.settled else b"\x43\x42\x42")  # message-format, settled, more
        link.prefix_at = protocol.hot.octets(link.prefix)
    state = broker.tables.state
    send.room()
    before = state[layout.STATE_DELIVERED]
    size_max, end = protocol.frame_max_out, send.size - REPLY_ROOM
    send.wrote(
        protocol.hot.deliver(
            consumer.handle, most, link.prefix_at, len(link.prefix) - 3, link.settled, link.paired, size_max, send.address, send.end, end
        )
    )
    count = (state[layout.STATE_DELIVERED] - before) & layout.MASK
    if count:
        session.next_outgoing_id = serial.after(session.next_outgoing_id, count)
        session.remote_incoming_window -= count
        link.delivery_count = serial.after(link.delivery_count, count)
        if consumer.no_ack:
            broker.tables.consumers[consumer.handle + layout.CONSUMER_CREDIT] -= count
    return count


def may_read_stream(link):
    """True for a link to which the engine may deliver from its stream: it wants all messages, and nothing is remembered of each."""
    hot, consumer = link.protocol.hot, link.consumer
    if hot is None or hot.read_stream is None or consumer.filter is not None or getattr(consumer, "wanted", None) is not None:
        return False
    return is_plain_reader(link)


def read_stream(link, most):
    """Have the engine deliver up to `most` messages of a stream to a link at its cursor: how many."""
    session, consumer, broker, hot = link.session, link.consumer, link.broker, link.protocol.hot
    if consumer is None or consumer.cursor == layout.NONE or not session.may_send():
        return 0
    most = min(most, session.remote_incoming_window, link.left())
    if most <= 0:
        return 0
    nulls = NULLS if link.writes_all else 0
    if link.prefix is None:
        link.prefix = prefix_of(link, nulls)
    session.connection.send.room()
    count, first, last = hot.read_stream(link, most, consumer.queue.readable_offset(), link.prefix, nulls)
    if count:
        session.next_outgoing_id = serial.after(session.next_outgoing_id, count)
        session.remote_incoming_window -= count
        link.delivery_count = serial.after(link.delivery_count, count)
        if link.settled:
            broker.consumers.settle(session, first, last, ACCEPTED)
    return count

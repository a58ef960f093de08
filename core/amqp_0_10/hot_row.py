"""The engine's part of AMQP 0-10, for whole runs of messages: transfers in (hot_in.py), and transfers out (hot_transfers.py).

Transfers in are taken in the receive buffer as long as their commands are octet for octet the same; those of a run are answered as one
range. Transfers out are made as long as their receiver has credit by messages, and no limit by octets.
"""

from ..access.permissions import WRITE
from ..errors import ProtocolError
from ..limits import REPLY_ROOM
from ..memory import layout, serial
from ..message.formats import AMQP_0_10
from ..message.route import exchange_of, pack
from ..outcomes import TAKEN
from ..shim import const, octets, table
from . import frame, hot_in, hot_layout, hot_transfers, structs

if False:  # for the type checker alone
    from typing import Any

EXPLICIT = const(0)  # accept-mode: "explicit", the default, or none
NONE = const(1)
NOT_ACQUIRED = const(1)  # acquire-mode
BEGINS = frame.FIRST_SEGMENT | frame.FIRST_FRAME | frame.LAST_FRAME  # flags of a command whose header follows
LEAST = const(26)  # octets of the frame of message.transfer up to its packing flags, and more
WHOLE_LEAST = const(16)  # octets of a frame that says something of commands, and more
WAY_MAX = const(512)  # two short strings
LOW_CREDIT = const(1 << 20)  # of a consumer whose credit has no limit: then it gets more


class Run:
    """What the engine knows of a session's transfers: `lead`, the octets of their command's frame, and what these say."""

    def __init__(self, session):
        self.numbers = table(hot_layout.IN_WIDTH)
        self.numbers[hot_layout.IN_RECORD] = session.handle
        self.lead: "Any" = b""
        self.way = octets(WAY_MAX)
        self.explicit = False

    def see(self, source, at, end, size_max):
        """Note the command at `at`: false when it is no transfer, or one that transfer.py has to see."""
        try:
            head = frame.read(source, at, end, size_max)
            if head is None or head[0] != BEGINS or head[1] != frame.COMMAND:
                return False
            name, fields, _ = structs.command(bytes(source[head[4] : head[5]]))
        except ProtocolError:
            return False
        if name != "message_transfer" or fields["acquire_mode"] or (fields["accept_mode"] or 0) > NONE:
            return False
        exchange = (fields["destination"] or "").encode("utf-8")
        route = pack(exchange, b"")
        self.way[: len(route)] = route
        self.lead = memoryview(bytes(source[at : head[5]]))
        self.explicit = fields["accept_mode"] in (None, EXPLICIT)
        self.numbers[hot_layout.IN_LEAD] = len(self.lead)
        self.numbers[hot_layout.IN_EXCHANGE] = len(route) - 1
        return True


def ingest(protocol):
    """Take as many transfers of the receive buffer as need no decision. Returns why that ended (core/memory/layout.py)."""
    receive = protocol.receive
    source, at = receive.octets, receive.start
    settle = protocol.hot.settle
    if receive.end - at < WHOLE_LEAST or protocol.replies:
        return layout.ASK
    if source[at] == frame.WHOLE and settle is not None:
        return settle(protocol)
    if receive.end - at < LEAST or source[at] != BEGINS or source[at + 12] != 4 or source[at + 13] != 1:
        return layout.ASK
    session = protocol.attached.get(source[at + 6] << 8 | source[at + 7])
    if session is None or not session.may_run():
        return layout.ASK
    run = session.run
    if run is None:
        run = session.run = Run(session)
    size = len(run.lead)
    if not size or source[at : at + size] != run.lead:
        if not run.see(source, at, receive.end, protocol.frame_max_in):
            return layout.ASK
    answer = ingest_run(protocol, session, run)
    if settle is not None and run.numbers[hot_layout.IN_TAKEN]:
        return layout.TURN_OVER  # what follows may be for it
    return layout.INCOMPLETE if answer == layout.ASK and is_begun(receive, len(run.lead)) else answer


def is_begun(receive, lead):
    """True when a transfer of the run has begun to come, and there is room for all of it: it is looked at when it is whole. `lead`: octets
    of its command's frame."""
    octets, at, end = receive.octets, receive.start, receive.end
    room, header = at + receive.size, at + lead
    if end - header < frame.HEAD:
        return end >= header and header + frame.HEAD <= room
    body = header + (octets[header + 2] << 8 | octets[header + 3])
    if octets[header] != 3 or octets[header + 1] != frame.HEADER or octets[header + 7] != octets[at + 7] or body < header + frame.HEAD:
        return False
    if end - body < frame.HEAD:
        return body + frame.HEAD <= room
    return octets[body + 1] == frame.BODY and end < body + (octets[body + 2] << 8 | octets[body + 3]) <= room


def ingest_run(protocol, session, run):
    """Call the engine, and note what it has taken."""
    broker, receive = protocol.broker, protocol.receive
    tables, numbers, journal = broker.tables, run.numbers, broker.journal
    state = tables.state
    numbers[hot_layout.IN_TAKEN] = 0
    numbers[hot_layout.IN_MOST] = session.may_run()
    state[layout.STATE_FRAME_MAX] = protocol.frame_max_in
    state[layout.STATE_USER] = protocol.connection.user.number
    state[layout.STATE_LOG_ROOM] = 0 if journal is None else journal.log.room_for(2 * receive.size)
    state[layout.STATE_AT] = receive.start
    state[layout.STATE_END] = receive.end
    answer = protocol.hot.ingest(run, receive.address)
    while answer == layout.ASK_ROUTE and find_way(protocol, bytes(run.way[: numbers[hot_layout.IN_ROUTE]])):
        answer = protocol.hot.ingest(run, receive.address)
    receive.start = state[layout.STATE_AT]
    logged = state[layout.STATE_LOGGED_HEAD] != layout.NONE
    try:
        if logged:
            journal.log_pushed()
    except Exception:  # all or nothing: no queue keeps a message that the log lacks
        journal.withdraw()
        raise
    count = numbers[hot_layout.IN_TAKEN]
    if count:
        if logged:
            session.promises.logged()
        first = session.expected
        session.expected = serial.after(first, count)
        session.took(first, serial.after(first, count - 1))
        session.transfers_done(first, count, run.explicit, TAKEN)
    return answer


def find_way(protocol, way):
    """Have the route cache know where messages go; false when the user is not known to be allowed to write there, or it takes more than a
    look-up: then transfer.py looks, and a permission that was taken back counts."""
    exchange, user = exchange_of(way), protocol.connection.user
    return exchange in user.granted[WRITE] and protocol.broker.remember_route(user.number, exchange, way)


class Row:
    """The functions for a broker's tables. `converts`: whether `pump` delivers messages of other families too, where they are simple."""

    name = "amqp_0_10"
    converts = False
    settle: "Any" = None  # where the engine takes accepts and completions of deliveries: those of a protocol, why that ended

    def __init__(self, tables):
        self.tables = tables

    def ingest(self, run, source):
        """See hot_in.ingest."""
        tables = self.tables
        return hot_in.ingest(
            tables.arena,
            tables.blocks,
            tables.messages,
            tables.entries,
            tables.queues,
            tables.channels,
            tables.state,
            tables.routes,
            tables.route_octets,
            tables.route_targets,
            run.numbers,
            run.lead,
            run.way,
            source,
        )

    def pump(self, consumer, limit, lead, frame_max, target, at, end):
        """See hot_transfers.pump."""
        tables = self.tables
        return hot_transfers.pump(
            tables.arena,
            tables.blocks,
            tables.messages,
            tables.entries,
            tables.queues,
            tables.channels,
            tables.consumers,
            tables.state,
            consumer,
            limit,
            lead,
            len(lead) - 2 * frame.HEAD,
            frame_max,
            target,
            at,
            end,
        )


def row(tables):
    """The Row of a broker; None: its engine takes message by message."""
    engine = tables.engine
    if not engine.ingests:
        return None
    return engine.row(Row)


def lead_of(subscribed):
    """The frame of the command of a subscription's transfers, and the heads of the two frames behind it."""
    number, frame_max = subscribed.session.number, subscribed.session.session.frame_max_out
    whole = frame.FIRST_FRAME | frame.LAST_FRAME
    lead = frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, number, subscribed.command, frame_max)
    lead += frame.head(whole, frame.HEADER, number, 0) + frame.head(whole | frame.LAST_SEGMENT, frame.BODY, number, 0)
    return memoryview(lead)


def lead_for(subscribed):
    """`lead_of`, kept as long as the subscription has the same protocol."""
    protocol = subscribed.session.session
    if subscribed.lead is None or subscribed.lead_of is not protocol:
        subscribed.lead, subscribed.lead_of = lead_of(subscribed), protocol
    return subscribed.lead


def deliver(subscribed, most):
    """Have the engine make up to `most` deliveries: how many."""
    session, broker, consumer = subscribed.session, subscribed.broker, subscribed.consumer
    protocol, send, state = session.session, session.connection.send, broker.tables.state
    lead = lead_for(subscribed)
    send.room()
    before, end = state[layout.STATE_DELIVERED], send.size - REPLY_ROOM
    at = protocol.hot.pump(consumer.handle, most, lead, protocol.frame_max_out, send.address, send.end, end)
    count = (state[layout.STATE_DELIVERED] - before) & layout.MASK
    if count:
        send.wrote(at)
        subscribed.used_run(count)
    return count


def waits_for_room(subscribed, message):
    """True when the engine would deliver this message, whose turn it is, if the send buffer had more room."""
    tables, send = subscribed.broker.tables, subscribed.session.connection.send
    kind, body = tables.messages[message + layout.MESSAGE_KIND], tables.messages[message + layout.MESSAGE_BODY]
    if kind & (layout.KIND_REWORKED | layout.KIND_GRAFTED | layout.KIND_FOR_US) != AMQP_0_10 or not body:
        return False
    size = hot_transfers.FRONT + tables.size_of(message) + len(lead_for(subscribed))
    return send.room() - REPLY_ROOM < size <= send.size - REPLY_ROOM

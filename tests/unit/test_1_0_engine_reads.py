"""An engine that reads flows and sockets by itself (core/amqp_1_0/hot_row.py; c_accel/amqp_1_0.py does) changes nothing that a peer sees:
the same conversations with a row in Python that reads as much, and with one that leaves flows and sockets to the session."""

from peer_1_0 import Peer, data, declare, new_broker, performative
from test_1_0_streams import from_offset

from leveret.core.amqp_1_0 import composites, frame, hot_row
from leveret.core.broker import engine as engines
from leveret.core.memory import layout

ALL = 1 << 20


class Reading(hot_row.Row):
    """A row that reads flows that ask for no answer, and sockets. `socket`: what comes, in pieces (None: nothing now; b"": it is gone)."""

    reads_flows = True

    def __init__(self, tables):
        hot_row.Row.__init__(self, tables)
        self.answer = [0]
        self.socket: list = []
        self.rooms: list = []
        self.seen: list = []  # (link, whether the engine may deliver to it by itself)
        self.flows = 0

    def receive(self, flat, link):
        flat.receiver = link

    def ingest(self, link, way, source):
        answer = hot_row.Row.ingest(self, link, way, source)
        link.flow_size = 0
        state = self.tables.state
        at, end = state[layout.STATE_AT], state[layout.STATE_END]
        head = frame.read(source, at, end, ALL) if answer == layout.ASK else None
        if head is not None and head[2] + 3 < head[3] and source[head[2] + 2] == 0x13:
            name, fields, _ = composites.read(bytes(source[at:end]), head[2] - at, head[3] - at)
            is_plain = fields["handle"] is not None and not fields["echo"] and not fields["drain"] and not fields["properties"]
            if name == "flow" and is_plain and fields["next-incoming-id"] is not None and fields["link-credit"] is not None:
                self.flows += 1
                link.flow_size = head[3] - at
                for field in ("handle", "next-incoming-id", "incoming-window", "next-outgoing-id", "outgoing-window", "link-credit"):
                    setattr(link, "flow_" + field.replace("-", "_"), fields[field])
                link.flow_delivery_count = fields["delivery-count"] or 0
        return answer

    def take_in(self, link, way, source, room, descriptor):
        octets = self.socket.pop(0)
        self.rooms.append((descriptor, room))
        if octets is None:
            return -1
        source[: len(octets)] = octets
        self.tables.state[layout.STATE_AT], self.tables.state[layout.STATE_END] = 0, len(octets)
        self.answer[0] = self.ingest(link, way, source)
        return len(octets)


class Delivering(Reading):
    """One that delivers by itself as well."""

    wire = "known"

    def deliver_to(self, consumer, sender, windows, prefix, settled):
        self.seen.append((prefix, settled, sender is not None, windows is not None))
        consumer.prefix_at = None if sender is None else prefix


def peer_with(row, queues=("q",), **given):
    """(row, peer) at a broker whose engine has a row of this class."""
    chosen, engines.chosen = engines.chosen, engines.Plain  # the one in C has a row of its own
    try:
        broker = new_broker()
    finally:
        engines.chosen = chosen
    engine = broker.tables.engine
    made = engine.rows[hot_row.Row] = row(broker.tables)
    send_buffer = engine.send_buffer

    def with_output(size):
        buffer = send_buffer(size)
        buffer.output = None  # where the one in C writes by itself
        return buffer

    engine.send_buffer = with_output
    for name in queues:
        declare(broker, name)
    return made, Peer(broker, **given)


def flow(credit, handle=1, **given):
    fields = {"next_incoming_id": 0, "incoming_window": 100, "next_outgoing_id": 6, "outgoing_window": 100, "delivery_count": 0}
    fields.update(given)
    return performative("flow", 0, handle=handle, link_credit=credit, **fields)


# Flows behind six messages in q and one in other, whose receivers are 1 and 2: what each means is in sections 2.6.7 and 2.7.4.
FLOWS = (
    (flow(3),),
    (flow(3), flow(4)),
    (flow(3), flow(3, next_incoming_id=3, delivery_count=3)),
    (flow(4), flow(1, next_incoming_id=4, delivery_count=2)),  # two are on their way: less than nothing is left
    (flow(2), flow(0, delivery_count=2), flow(1, delivery_count=2)),
    (flow(5, incoming_window=2), flow(5, incoming_window=2, next_incoming_id=2)),  # the window closes and opens
    (flow(5, incoming_window=0), flow(5, incoming_window=1)),
    (flow(5, incoming_window=1), flow(1, 2, incoming_window=3), flow(1, 2, incoming_window=8)),
    (flow(1, 2), flow(2), flow(1, 2, delivery_count=1, next_incoming_id=1)),
    (flow(0xFFFFFFFF),),
    (flow(2, delivery_count=0xFFFFFFFF),),
    (flow(2, next_outgoing_id=9, outgoing_window=7), flow(4, outgoing_window=0)),
    (flow(2, echo=True), flow(3, drain=True), flow(4)),
    (flow(3, drain=True), flow(6, delivery_count=3, next_incoming_id=3)),
    (flow(5, 0),),  # of the link on which the peer sends: nobody's credit
    (flow(1, 9), flow(1)),  # of no link
    (flow(2, next_incoming_id=None), flow(4)),
    (performative("flow", 0, next_incoming_id=0, incoming_window=9, next_outgoing_id=6, outgoing_window=9), flow(2)),
)


def after(peer, octets):
    """What a peer and a session say when these octets have come."""
    peer.give(octets)
    found = peer.frames()
    broker = peer.broker
    session = peer.connection.session.mapped.get(0)
    said: list = [found, broker.queues["q"].message_count(), broker.queues["q"].unsettled_count(), peer.connection.closed]
    if session is not None:
        windows = session.windows
        said += [windows.remote_incoming_window, windows.remote_outgoing_window, windows.next_incoming_id, windows.next_outgoing_id]
        links = [each for each in session.links.values() if each.handle in (1, 2)]
        said += [(each.handle, each.left(), each.delivery_count, each.drain) for each in sorted(links, key=lambda link: link.handle)]
    return said


def with_messages(row, settles=False):
    """(row, peer) that has sent six messages and one more, and has two receivers."""
    made, peer = peer_with(row, ("q", "other"))
    peer.sender()
    peer.sender("/queues/other", "more", 3)
    for number in range(6):
        peer.send(number, b"%d" % number, settled=True)
    peer.send(6, b"other", 3, settled=True)
    mode = 1 if settles else 0
    peer.receiver(credit=0, snd_settle_mode=mode)
    peer.receiver("/queues/other", "in2", 2, credit=0, snd_settle_mode=mode)
    peer.frames()
    return made, peer


def test_a_flow_that_the_engine_reads_gives_the_credit_and_the_window_that_one_of_the_session_gives():
    for flows in FLOWS:
        for settles in (False, True):
            row, reading = with_messages(Reading, settles)
            _, plain = with_messages(hot_row.Row, settles)
            for octets in flows:
                assert after(reading, octets) == after(plain, octets), (flows, settles)
            if flows[0] == FLOWS[0][0]:
                assert row.flows, "the engine has read it"


def test_flows_and_messages_in_one_buffer_come_to_the_same():
    """A flow between transfers, and behind dispositions; the receive buffer ends in the middle of either."""
    message = performative("transfer", 0, data(b"x"), handle=0, delivery_id=7, delivery_tag=b"t", message_format=0, settled=True)
    settled = performative("disposition", 0, role=True, first=1, last=2, settled=True, state=("accepted", {}))
    together = flow(3) + message + settled + flow(2, delivery_count=3, next_incoming_id=3) + flow(1, 2)
    for cut in range(0, len(together), 13):
        row, reading = with_messages(Reading)
        _, plain = with_messages(hot_row.Row)
        for octets in (together[:cut], together[cut:]):
            assert after(reading, octets) == after(plain, octets), cut
        assert row.flows


def test_the_receiver_whose_flow_came_last_is_told_to_the_engine():
    row, peer = with_messages(Reading)
    session = peer.connection.session.mapped[0]
    peer.give(flow(1))
    assert session.receiver is session.links[1]
    peer.give(flow(1, 2))
    assert session.receiver is session.links[2] and session.flat.receiver is session.links[1], "it is told with the next call"
    peer.give(flow(1, 2, delivery_count=1))
    assert session.flat.receiver is session.links[2] and session.flat.credit == 0 and row.flows == 3


def taking():
    """(row, peer, connection) of a connection whose last frames were all a sender's: the engine may read."""
    row, peer = peer_with(Reading)
    peer.sender()
    for number in range(2):
        peer.send(number, b"%d" % number, settled=True)
    peer.frames()
    peer.broker.run()
    return row, peer, peer.connection


def transfer(number, body=b"in", settled=True):
    tag = b"%d" % number
    return performative("transfer", 0, data(body), handle=0, delivery_id=number, delivery_tag=tag, message_format=0, settled=settled)


def test_an_engine_that_reads_from_the_socket_takes_whole_frames_and_leaves_the_rest_to_the_session():
    row, peer, connection = taking()
    queue = peer.broker.queues["q"]
    size = connection.receive.size
    octets = transfer(2) + transfer(3, settled=False)
    row.socket = [octets, None, b"", octets[:0] + transfer(4)[:9], None]
    assert connection.take_in(5, None) == len(octets) and queue.message_count() == 4
    assert [(name, fields["first"]) for name, fields, _, _ in peer.frames()] == [("disposition", 3)]
    assert connection.take_in(5, 77) is None and connection.take_in(5, 77 + size) == 0
    assert row.rooms == [(5, size), (5, 77), (5, size)]
    assert connection.most_taken == size
    assert connection.take_in(5, None) == 9 and queue.message_count() == 4, "half of a frame stays in the buffer"
    assert connection.take_in(5, None) == -1 and len(row.socket) == 1, "and the port reads its rest"
    peer.give(transfer(4)[9:])
    assert queue.message_count() == 5 and connection.take_in(5, None) is None


def test_a_frame_of_another_kind_that_the_engine_has_read_is_the_sessions():
    row, peer, connection = taking()
    row.socket = [transfer(2) + performative("detach", 0, handle=0, closed=True)]
    assert connection.take_in(5, None) > 0
    assert peer.broker.queues["q"].message_count() == 3 and peer.expect("detach")[1]["handle"] == 0


def test_the_port_reads_where_the_engine_may_not():
    """A connection that is held, closes, drains or has answers to give; a session that ends or gives back; a link whose transfers are not
    the engine's."""
    row, peer, connection = taking()
    protocol = connection.session
    session, link = protocol.quick
    for owner, name, value in (
        (protocol, "quick", None),
        (protocol, "state", "closing"),
        (protocol, "held", link),
        (protocol, "leaving", [link]),
        (protocol, "draining", [link]),
        (protocol, "replies", [b"x"]),
        (connection, "has_turn", False),
        (session, "state", "ending"),
        (session, "settling", ()),
        (link, "state", "detached"),
        (link, "delivery", ()),
        (link, "kept", ()),
        (link, "second", True),
        (link, "route", None),
    ):
        kept = getattr(owner, name)
        setattr(owner, name, value)
        assert protocol.take_in(5, None) == -1, name
        setattr(owner, name, kept)
    assert row.rooms == []
    row.socket = [None]
    assert protocol.take_in(5, None) is None


# What a receiver's link has: its attach, and whether the engine may deliver to it by itself.
LINKS = (
    ({}, True),
    ({"snd_settle_mode": 1}, True),
    ({"rcv_settle_mode": 1}, False),  # what it has settled first is remembered (2.6.12)
    ({"max_message_size": 100}, False),  # each message is measured (2.6.13)
    ({"max_message_size": 1 << 20}, True),
    ({"max_message_size": 0}, True),  # "no maximum"
)


def test_an_engine_that_delivers_by_itself_delivers_where_nothing_is_remembered_of_each_message():
    for given, is_by_itself in LINKS:
        row, peer = peer_with(Delivering)
        peer.receiver(credit=0, **given)
        if is_by_itself:
            ((prefix, settled, has_sender, has_windows),) = row.seen
            assert settled == (given.get("snd_settle_mode") == 1) and has_sender and has_windows
            # Section 2.3.1: room for the size, where the body begins in words of four octets, type AMQP, the channel; then a transfer
            # (2.7.5), a list of six fields that begins with the handle.
            assert prefix == b"\0\0\0\0\x02\0\0\0" + b"\x00\x53\x14\xc0" + bytes((17, 6)) + b"\x52\x01"
        else:
            assert row.seen == []
        peer.connection.received(0)


def test_the_handle_nought_is_one_octet_in_the_engines_frames_as_in_others():
    row, peer = peer_with(Delivering)
    peer.receiver(credit=0, handle=0)
    assert row.seen[0][0][-3:] == bytes((16, 6)) + b"\x43"
    link = peer.connection.session.mapped[0].links[0]
    link.session.number = 258
    assert hot_row.prefix_of(link)[4:8] == b"\x02\x00\x01\x02"


class Streaming(Reading):
    """One that delivers from streams: `calls`: what it was asked for; it delivers nothing."""

    def __init__(self, tables):
        Reading.__init__(self, tables)
        self.calls: list = []

    def read_stream(self, link, most, end, prefix, nulls):
        self.calls.append((most, end, len(prefix), nulls))
        return 0, layout.NONE, layout.NONE


def test_an_engine_that_delivers_from_a_stream_is_asked_for_what_window_and_credit_leave():
    """Sections 2.5.6 and 2.6.7; not where each is remembered (2.6.12) or measured (2.6.13). What the engine leaves the session delivers."""
    for attached, credit, window, wanted, count in (
        ({}, 5, 100, [5, 4, 3, 2], 4),
        ({}, 3, 100, [3, 2, 1], 3),
        ({}, 5, 2, [2, 1], 2),
        ({}, 0, 9, [], 0),
        ({"rcv_settle_mode": 1}, 5, 100, [], 4),
        ({"max_message_size": 100}, 5, 100, [], 4),
    ):
        row, peer = peer_with(Streaming, ())
        declare(peer.broker, "s", {"x-queue-type": "stream"})
        peer.sender("/queues/s")
        for number in range(4):
            peer.send(number, b"%d" % number, settled=True)
        peer.attach("in", 1, True, None, source=from_offset("first"), **attached)
        peer.give(flow(credit, incoming_window=window))
        assert [body for _, body in peer.messages()] == [b"%d" % number for number in range(count)]
        assert row.calls == [(most, 4, 16, 0) for most in wanted], (attached, credit, window)

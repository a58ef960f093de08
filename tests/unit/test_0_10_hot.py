"""The hot path of 0-10 (amqp_0_10/hot_in.py, hot_transfers.py) does what transfer.py and subscription.py do frame by frame: frames that are
cut, frames with a wrong octet, runs of transfers, credit in both modes. One broker has the hot path, the other takes frame by frame."""

from peer_0_10 import Peer, control, new_broker, transfer
from peer_1_0 import declare

from leveret.core.amqp_0_10 import convert, hot_row
from leveret.core.memory import layout

BODY = b"body of a message"
LARGE = {"arena_size": 1 << 18, "message_count_max": 1024, "entry_count_max": 1024}  # limits
UUID = bytes(range(16))
DELIVERY = {"priority": 3, "delivery_mode": 2, "ttl": 900000, "timestamp": 1700000000, "expiration": 5, "exchange": "given"}
MESSAGE = {
    "content_length": len(BODY),
    "message_id": UUID,
    "correlation_id": b"\xff\x00c",
    "reply_to": {"exchange": "amq.direct", "routing_key": "back"},
    "content_type": "text/plain",
    "content_encoding": "zip",
    "app_id": b"app",
    "application_headers": {"a": 1, "b": "text", "c": b"\x00\xff", "d": None, "e": ("B", 200), "f": -3, "g": ("T", 9)},
}


def peer_of(ingests=True, limits=None, **given):
    """A peer at a broker with queue q that has the hot path or has not."""
    broker = new_broker(**(limits or {}))
    broker.tables.engine.ingests = ingests
    declare(broker)
    return Peer(broker, **given)


def united(found):
    """What has come, with what the broker said of completed and accepted commands as sets of ids."""
    ids: dict = {}
    others = []
    for each in found:
        fields = each[1]
        place = {"session_completed": "commands", "message_accept": "transfers"}.get(each[0])
        if place is None:
            others.append(each)
            continue
        for first, last in fields[place]:
            ids.setdefault(each[0], set()).update(range(first, last + 1))
    return others, ids


def seen(peer):
    """What a peer and a broker's tables say of what has come."""
    broker = peer.broker
    answers = united(peer.all())
    tables, queue = broker.tables, broker.queues["q"]
    columns = []
    entry = queue.head()
    while entry != layout.NONE:
        message = tables.entries[entry]
        places = (layout.MESSAGE_ROUTE, layout.MESSAGE_PROPERTIES, layout.MESSAGE_BODY, layout.MESSAGE_KIND, layout.MESSAGE_LIFETIME)
        columns.append([tables.messages[message + place] for place in places] + [bytes(tables.octets(message, 0, tables.size_of(message)))])
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    assert broker.counters["internal_errors"] == 0
    return answers, columns, queue.unsettled_count()


def whole(accept=1, **given):
    """A transfer with all that the hot path knows."""
    return transfer(BODY, key="q", accept_mode=accept, delivery=given.get("delivery", DELIVERY), header=given.get("header", MESSAGE))


def unseen(peer):
    """A list to which the payloads of commands are added that come to the session, frame by frame, and are lost there."""
    found: list = []
    peer.connection.session.command_frame = lambda *given: found.append(given)
    return found


def test_a_whole_transfer_is_not_looked_at_frame_by_frame():
    peer = peer_of()
    peer.give(whole())  # whether its user may write there is looked up once
    found = unseen(peer)
    peer.give(whole() + whole())
    assert found == [] and peer.broker.queues["q"].message_count() == 3


def test_a_transfer_that_is_cut_comes_to_the_same():
    """At each octet, with another one behind it; and octet by octet."""
    octets = whole(0) + whole(0)
    peer = peer_of(False)
    peer.give(octets)
    right = seen(peer)
    assert len(right[1]) == 2 and right[0][1]["message_accept"] == {0, 1}
    for size in range(1, len(octets), 3):
        peer = peer_of()
        peer.give(octets[:size])
        peer.give(octets[size:])
        assert seen(peer) == right, size
    peer = peer_of(step=1)
    peer.give(octets)
    assert seen(peer) == right


def test_a_transfer_that_has_begun_is_looked_at_when_it_is_whole():
    """Wherever it is cut no frame of it comes to the session; one without a body, or too large for the buffer, waits for nothing."""
    peer = peer_of(limits=LARGE)
    octets = whole(0)
    peer.give(octets)
    process, found = peer.connection.session.command_frame, unseen(peer)
    cuts = range(hot_row.LEAST, len(octets))
    for size in cuts:
        peer.give(octets[:size])
        peer.give(octets[size:])
    assert found == [] and peer.broker.queues["q"].message_count() == 1 + len(cuts)
    peer.connection.session.command_frame = process
    peer.give(transfer(b"", key="q", accept_mode=0))
    assert peer.broker.queues["q"].message_count() == len(cuts) + 2
    size = peer.connection.receive.size
    for _ in range(2):  # command, header and the greatest frame of a body are more than the buffer holds
        large = transfer(b"b" * (size - 12), key="q", accept_mode=0, delivery=DELIVERY, header=MESSAGE)
        peer.give(large[: len(large) - 5])
        peer.give(large[len(large) - 5 :])
    assert peer.broker.queues["q"].message_count() == len(cuts) + 4 and not [each for each in peer.all() if each[0] == "connection_close"]


def test_no_header_is_made_for_a_delivery_that_finds_no_room():
    """What waits for room in the send buffer alone is tried again when there is some: convert.py, which is slow, is not asked."""
    peer = peer_of(limits=LARGE)
    made, header_segment = [], convert.header_segment
    convert.header_segment = lambda *given: (made.append(given), header_segment(*given))[1]
    try:
        for _ in range(200):
            peer.give(whole(0))
        peer.subscribe("q", "d", 0xFFFFFFFF, 0xFFFFFFFF, 1)
        came = [each for each in peer.all() if each[0] == "message_transfer"]
    finally:
        convert.header_segment = header_segment
    assert len(came) == 200 and made == []


def test_a_transfer_with_one_wrong_octet_comes_to_the_same_as_frame_by_frame():
    """Every octet but those of the body, with one of its bits turned."""
    octets = whole()
    for place in range(len(octets) - len(BODY)):
        wrong = bytearray(octets)
        wrong[place] ^= 1 << place % 8
        found = []
        for ingests in (True, False):
            peer = peer_of(ingests)
            peer.give(octets + bytes(wrong) + octets)
            found.append(seen(peer))
        assert found[0] == found[1], place


def test_transfers_of_other_forms_come_to_the_same():
    """Each between two of the usual form: to what is no route, to be discarded then, at once, without a body, not for an exchange."""
    others = (
        {"key": "nowhere"},
        {"key": "nowhere", "accept_mode": 0},
        {"key": "nowhere", "accept_mode": 0, "delivery": {"discard_unroutable": True}},
        {"key": "q", "delivery": {"immediate": True}, "accept_mode": 0},
        {"key": "q", "header": {"user_id": b"guest"}},
        {"key": "q", "header": {"user_id": b"another"}},
        {"key": "q", "header": {"application_headers": {"list": [1, 2], "n": {"a": 1}}}},
        {"key": "q\u00e9"},
        {"key": "q", "destination": "amq.fanout"},
        {"key": "q", "destination": "no such"},
        {"key": "q", "acquire_mode": 1},
        {"key": "q", "body": b""},
        {"key": "q", "body": b"long" * 1000},
        {"key": "q", "delivery": {"resume_id": "r", "resume_ttl": 5}},
        {"key": "q", "delivery": {"priority": 10}},
        {"key": "q", "delivery": {"ttl": 1 << 40}},
        {"key": "q", "delivery": {"expiration": 1 << 40}},
        {"key": "", "destination": "amq.fanout"},
    )
    for given in others:
        fields = dict(given)
        octets = whole(0) * 2 + transfer(fields.pop("body", BODY), **fields) + whole(0)
        found = []
        for ingests in (True, False):
            peer = peer_of(ingests)
            peer.give(octets)
            found.append(seen(peer))
        assert found[0] == found[1], given


def test_a_repeated_transfer_is_not_taken_twice():
    """Session: "commands that have already been executed" are passed over, by their ids."""
    found = []
    for ingests in (True, False):
        peer = peer_of(ingests)
        peer.give(whole(0) * 4)
        peer.give(control("session_command_point", 0, command_id=2, command_offset=0))
        peer.give(whole(0) * 4)
        found.append(seen(peer))
        assert peer.broker.queues["q"].message_count() == 6
    assert found[0] == found[1]


def deliveries_of(ingests, mode, messages, accept, **given):
    """All that a consumer gets of messages of several forms, completed one after the other."""
    peer = peer_of(ingests)
    deliveries = ({}, DELIVERY, {"exchange": "x"}, {"resume_id": "r"})
    forms = [whole(delivery=each, header=header) for each in deliveries for header in (MESSAGE, None)]
    peer.give(b"".join(forms) + transfer(b"", key="q") + b"".join(forms))
    peer.subscribe(messages=0, octets=0, accept=accept)
    peer.do("message_set_flow_mode", destination="d", flow_mode=mode)
    peer.do("message_flow", destination="d", unit=0, value=messages)
    peer.do("message_flow", destination="d", unit=1, value=given.get("octets", 0xFFFFFFFF))
    found = []
    for _ in range(8):
        come = peer.all()
        found += come
        ids = [each for each in come if each[0] == "message_transfer"]
        if not ids:
            break
        peer.count = getattr(peer, "count", 0) + len(ids)
        ranges = [(0, peer.count - 1)]
        if not accept:
            peer.do("message_accept", transfers=ranges)
        peer.give(control("session_completed", 0, commands=ranges))
    return united(found), seen(peer)


def test_deliveries_are_the_same_octets():
    """In window and in credit mode, with little credit, without limit, and with a limit by octets."""
    for mode in (0, 1):
        for messages in (1, 3, 0xFFFFFFFF):
            for accept in (0, 1):
                for given in ({}, {"octets": 900}):
                    both = [deliveries_of(ingests, mode, messages, accept, **given) for ingests in (True, False)]
                    assert both[0] == both[1], (mode, messages, accept, given)
    assert len([each for each in both[0][0][0] if each[0] == "message_transfer"]) > 0


def test_what_comes_back_is_said_to_be_redelivered():
    for ingests in (True, False):
        peer = peer_of(ingests)
        peer.give(whole() * 3)
        peer.subscribe(messages=3, accept=0)
        peer.all()
        peer.do("message_release", transfers=[(0, 2)], set_redelivered=True)
        peer.do("message_flow", destination="d", unit=0, value=3)
        said = [header["delivery-properties"]["redelivered"] for header, _ in peer.transfers()]
        assert said == [True, True, True]


def test_runs_are_counted_as_one_range():
    """A run is one row of those that wait for their outcome, and counts each of its transfers."""
    peer = peer_of()
    session = peer.connection.session.attached[0]
    session.transfers_done(5, 1000, False, 0)
    assert len(session.transfers) == 1 and session.waiting_count() == 1000
    assert session.is_pending(5) and session.is_pending(1004) and not session.is_pending(1005) and not session.is_pending(4)


def test_a_broker_that_takes_frame_by_frame_has_no_row():
    assert peer_of(False).connection.session.hot is None
    assert peer_of().connection.session.hot.name == hot_row.Row.name

"""What we send again on another transport: commands of ours that the peer has not confirmed (session.expected, completed, confirmed).

Of commands but transfers the octets are kept. A transfer is made again out of the delivery that its session still holds; one of accept-mode
none is held for this until the peer has completed it. Transfers whose delivery is settled or gone are in a session.gap; so are those of
streams, whose reader goes back instead: its messages come with new ids.
"""

from ..errors import RESOURCE_ERROR
from ..memory import layout, serial
from ..outcomes import ACCEPTED, RELEASED
from ..parts import part
from ..shim import const
from . import convert, numbers, subscription
from .conditions import SessionError
from .ranges import overlaps

KEPT_MAX = const(1024)  # commands of a session whose completion the peer owes us
KEPT_SIZE_MAX = const(1 << 20)  # octets of them, if they are more than one
ROOM = const(1024)  # octets in the send buffer for a command and what goes before it
TURN = const(64)  # commands that are looked at before others have their turn


def keep(session, octets, header):
    """A command is sent: keep it until the peer has confirmed it."""
    session.kept[numbers.tail(session)] = octets, header
    before = session.kept_size
    session.kept_size += size_of(octets, header)
    if len(session.kept) == KEPT_MAX // 2 or before <= KEPT_SIZE_MAX // 2 < session.kept_size:
        session.control("session_flush", {"completed": True})


def size_of(octets, header):
    """The octets of a command that is kept."""
    return len(octets) + len(header or b"")


def may_keep(session):
    """False for a peer that has confirmed and completed nothing for too long."""
    return len(session.kept) < KEPT_MAX and (session.kept_size <= KEPT_SIZE_MAX or len(session.kept) <= 1)


def check_kept(session):
    """Raise resource-error for a peer that has confirmed and completed nothing for too long."""
    if session.kept_size > KEPT_SIZE_MAX and len(session.kept) > 1:
        raise SessionError(RESOURCE_ERROR, "commands of %d octets are neither confirmed nor completed" % session.kept_size)
    if len(session.kept) >= KEPT_MAX:
        raise SessionError(RESOURCE_ERROR, "%d commands are neither confirmed nor completed" % KEPT_MAX)


def confirmed(session, ranges, is_completed):
    """The peer has confirmed, or completed, commands of ours: a set (Ranges) of their ids."""
    for id_ in [each for each in session.kept if ranges.has(each)]:
        octets, header = session.kept.pop(id_)
        session.kept_size -= size_of(octets, header)
    if is_completed:
        session.confirmed = session.confirmed.without(ranges)
    else:
        session.confirmed.merge(ranges)
    for _, first, last in overlaps([run for run in session.sent if run[2].holds], ranges.runs):
        settle(session, first, last)
    session.confirmed.check()


def settle(session, first, last):
    """Transfers of accept-mode none have arrived: their deliveries are done with."""
    entries = session.broker.tables.entries
    entry = numbers.entry_from(session, first, last)
    if entry == layout.NONE:
        return
    end, behind = entry, entries[entry + layout.ENTRY_NEXT]
    while behind != layout.NONE and serial.distance(numbers.of(session, behind), last) >= 0:
        end, behind = behind, entries[behind + layout.ENTRY_NEXT]
    session.broker.consumers.settle(session, entry, end, ACCEPTED)


# Again


def begin(session):
    """The session has another transport: what was not confirmed is sent again."""
    session.has_point = False
    session.replay_at = next_id(session, None)


def next_id(session, at):
    """The id, from `at` on (None: of all), of the next command that may be sent again; None: there is none."""
    tail = numbers.tail(session)
    head = session.broker.tables.channels[session.handle + layout.CHANNEL_UNSETTLED_HEAD]
    if at is None:
        ids = list(session.kept) + list(session.browsed) + [run[0] for run in session.sent[:1]]
        if head != layout.NONE:
            ids.append(numbers.of(session, head))
    else:
        ids = [each for each in list(session.kept) + list(session.browsed) if serial.distance(at, each) >= 0]
        entry = numbers.entry_from(session, at, serial.after(tail, -1)) if at != tail else layout.NONE
        if entry != layout.NONE:
            ids.append(numbers.of(session, entry))
    first = None
    for each in ids:
        if first is None or serial.distance(each, first) > 0:
            first = each
    return first


def go_on(session):
    """Send again as many as there is room for: true when none is left."""
    protocol = session.session
    left = TURN
    while session.replay_at is not None:
        if protocol.replies or protocol.outgoing.active() or protocol.send.room() < ROOM or left == 0:
            protocol.send.busy = True
            return False
        left -= 1
        id_ = next_id(session, session.replay_at)
        tail = numbers.tail(session)
        behind = tail if id_ is None else id_
        if behind != session.replay_at:
            gap(session, session.replay_at, serial.after(behind, -1))
            session.replay_at = behind
        elif not again(session, id_):
            return False
        else:
            session.replay_at = serial.after(id_, 1)
        if session.replay_at == tail:
            session.replay_at = None
    for each in session.subscriptions.values():
        each.tell_broker()
    return True


def gap(session, first, last):
    """Nothing more comes of these commands of ours."""
    session.control("session_gap", {"commands": [(first, last)]})
    subscription.completed(session, [(first, last)])
    session.has_point = False


def say_point(session, id_):
    """Say that the next command has this id, where the peer cannot know."""
    if not session.has_point:
        session.has_point = True
        session.control("session_command_point", {"command_id": id_, "command_offset": 0})


def again(session, id_):
    """Send a command again, or say that it is not sent; false: there is no room for it now."""
    kept = session.kept.get(id_)
    if kept is not None:
        say_point(session, id_)
        session.send_command(kept[0], kept[1])
        return True
    runs = [session.sent[place] for place, _, _ in overlaps(session.sent, [(id_, id_)])]
    entry = numbers.entry_from(session, id_, id_)
    is_browsed = entry == layout.NONE
    if is_browsed:
        entry = browsed(session, id_)
    tables = session.broker.tables
    is_there = entry != layout.NONE and len(runs) > 0 and not is_confirmed(session, id_)
    if is_there and not is_browsed and session.broker.queue_objects[tables.entries[entry + layout.ENTRY_QUEUE]].is_stream:
        go_back(session, entry, runs[0])
        is_there = False
    elif not runs and serial.distance(session.lasts_from, id_) >= 0 or is_confirmed(session, id_):
        session.has_point = False  # completed, or it will be
        return True
    elif not runs and not is_browsed:
        session.broker.consumers.settle(session, entry, entry, RELEASED)  # sent before the session had a timeout: nobody knows for whom
    if not is_there:
        gap(session, id_, id_)
        return True
    return transfer(session, id_, entry, runs[0][2])


def is_confirmed(session, id_):
    """True for a command that the peer has confirmed, and not completed."""
    return session.confirmed.has(id_)


def browsed(session, id_):
    """The entry of a message that was browsed and that nobody has taken since; NONE."""
    if id_ not in session.browsed:
        return layout.NONE
    queue, entry, position = session.browsed[id_]
    wishes = part("queue.wishes")
    broker = session.broker
    if wishes is None or broker.queues.get(queue.name) is not queue or not wishes.is_ready(broker, queue, entry, position):
        del session.browsed[id_]
        return layout.NONE
    return entry


def transfer(session, id_, entry, subscribed):
    """Send a transfer again; false: there is no room for it now."""
    broker = session.broker
    entries = broker.tables.entries
    message = entries[entry + layout.ENTRY_MESSAGE]
    header = convert.header_segment(broker, message, bool(entries[entry + layout.ENTRY_REDELIVERED] & 255), subscribed.more)
    pieces = subscription.pieces_of(broker, message)
    size = len(header) + subscription.body_size(broker.tables, message, pieces)
    if not subscription.has_room(session, subscribed, len(header), size):
        session.session.send.busy = True
        return False
    say_point(session, id_)
    subscription.write(subscribed, message, header, pieces)
    return True


def go_back(session, entry, run):
    """Have the reader of a stream begin again at a delivery that has not arrived, with the credit that the delivery took."""
    subscribed = run[2]
    consumer = subscribed.consumer
    if subscribed.mode == subscription.CREDIT and run[3] != subscription.SPENT:
        subscribed.grant(False, 1)
        subscribed.grant(True, run[3])
    position = session.broker.tables.entries[entry + layout.ENTRY_POSITION]
    back = (consumer.cursor_offset - position) & layout.MASK
    session.broker.consumers.settle(session, entry, entry, RELEASED)
    has_passed = back <= layout.MASK >> 1  # else an earlier delivery has taken the reader back further
    if has_passed and consumer.channel.consumers.get(consumer.tag) is consumer:
        consumer.cursor, consumer.cursor_offset = consumer.queue.seek(consumer.cursor_offset - back)

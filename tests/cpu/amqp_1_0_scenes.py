"""Scenes of peers of AMQP 1.0: what one frame of theirs may be about, at its largest."""

from crowd import Quick
from peer_1_0 import Peer, data, performative
from scenes import row, shuffled

from leveret.core.amqp_1_0 import composites, dispositions
from leveret.core.memory import layout

WINDOW = 0x7FFFFFFF
VALUE = b"\x00\x53\x77"
ACCEPTED = ("accepted", {})
SLOW = 20000  # messages of a row that takes long to fill with more, or to run
POSTED = 50  # transfers in a row, for which a link has credit


class Quick10(Peer):
    """A peer of AMQP 1.0 that throws away what it does not look at, once it has logged in."""

    send_octets = Quick.send
    rest = Quick.rest
    drop = Quick.drop

    def __init__(self, crowd, **given):
        self.crowd = crowd
        Peer.__init__(self, crowd.broker, begins=False, **given)
        self.begin(incoming_window=WINDOW, outgoing_window=WINDOW)
        self.sent = 0

    def say(self, *frames):
        """Frames, each call timed."""
        self.send_octets(b"".join(frames))

    def first(self):
        """The delivery-id of the oldest delivery that is not settled."""
        session = list(self.connection.session.mapped.values())[0]
        return dispositions.number_of(session, self.broker.tables.channels[session.handle + layout.CHANNEL_UNSETTLED_HEAD])

    def newest(self):
        """The delivery-id of the last delivery; None: none is unsettled."""
        session = list(self.connection.session.mapped.values())[0]
        if self.broker.tables.channels[session.handle + layout.CHANNEL_UNSETTLED_HEAD] == layout.NONE:
            return None
        return dispositions.tail_number(session)

    def reads(self, count, **given):
        """A receiver of queue q with so much credit."""
        self.receiver(credit=0, **given)
        self.say(credit(count))

    def posts(self, count, handle=0, **given):
        """So many messages of one octet."""
        octets = data(b"x")
        for first in range(self.sent, self.sent + count, POSTED):
            numbers = range(first, min(first + POSTED, self.sent + count))
            self.say(
                *[
                    performative("transfer", 0, octets, handle=handle, delivery_id=each, delivery_tag=b"%d" % each, **given)
                    for each in numbers
                ]
            )
        self.sent += count

    def coordinates(self):
        """A coordinator on handle 9: the txn-id of a transaction."""
        self.attach("txn", 9, False, None, target=("coordinator", {}))
        self.expect("flow")
        self.ask_coordinator("declare")
        name, fields = [each[1]["state"] for each in self.frames() if each[0] == "disposition"][0]
        return fields["txn-id"]

    def ask_coordinator(self, name, **given):
        """A message to the coordinator."""
        number, self.sent = self.sent, self.sent + 1
        octets = VALUE + composites.write(name, {key.replace("_", "-"): given[key] for key in given})
        frame = performative("transfer", 0, octets, handle=9, delivery_id=number, delivery_tag=b"%d" % number)
        if name == "declare":
            self.give(frame)
        else:
            self.say(frame)


def credit(count, handle=1):
    fields = {"next_incoming_id": 0, "incoming_window": WINDOW, "next_outgoing_id": 0, "outgoing_window": WINDOW}
    return performative("flow", 0, handle=handle, link_credit=count, delivery_count=0, **fields)


def settled(first, last, state=ACCEPTED, is_settled=True):
    return performative("disposition", 0, role=True, first=first, last=last, settled=is_settled, state=state)


def within(id_, outcome=ACCEPTED):
    return ("transactional-state", {"txn-id": id_, "outcome": outcome})


def holding(crowd, n, arguments=None, **given):
    """A peer of 1.0 that has n messages of queue q, unsettled, that one of 1.0 has sent."""
    other = crowd.peer()
    other.queue("q", arguments)
    other.queue("dead")
    peer = Quick10(crowd)
    peer.sender()
    peer.posts(n, settled=True)
    peer.reads(n, **given)
    assert crowd.broker.queues["q"].unsettled_count() == n
    return peer


def all_settled(name, most, state, is_settled=True, arguments=None):
    """A row: one disposition about all that is unsettled."""

    @row("1.0: disposition of all, " + name, most)
    def scene(crowd, n):
        peer = holding(crowd, n, arguments)
        first = peer.first()
        yield
        peer.say(settled(first, first + n - 1, state, is_settled))
        crowd.pass_time(1000)
        assert name == "released" or crowd.broker.queues["q"].unsettled_count() == 0


DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
all_settled("accepted", 100000, ACCEPTED)
all_settled("accepted, to be settled by us", 100000, ACCEPTED, False)
all_settled("released", 100000, ("released", {}))
all_settled("rejected", 100000, ("rejected", {}))
all_settled("rejected, to dead letters", 20000, ("rejected", {}), True, DEAD)
all_settled("modified", 100000, ("modified", {"delivery-failed": True, "undeliverable-here": True}))


def refused_by_all(name, arguments):
    """A row: receivers, each of which refuses what the others have refused before it, so that searches pass by many messages."""

    @row("1.0: what several links refuse, " + name, 1000)
    def scene(crowd, n):
        other = crowd.peer()
        other.queue("q", arguments)
        sender = Quick10(crowd)
        sender.sender()
        peers = [Quick10(crowd, container="c%d" % each) for each in range(4)]
        for peer in peers:
            peer.receiver(credit=0)
        yield
        sender.posts(n, settled=True)
        for peer in peers:
            peer.say(credit(n))
        for _ in range(len(peers)):
            for peer in peers:
                newest = peer.newest()
                if newest is not None:
                    peer.say(settled(peer.first(), newest, ("modified", {"undeliverable-here": True})))
        crowd.pass_time(1000)
        assert crowd.broker.queues["q"].message_count() + crowd.broker.queues["q"].unsettled_count() == n


refused_by_all("plain", None)
refused_by_all("with a single active consumer", {"x-single-active-consumer": True})
refused_by_all("with priorities", {"x-max-priority": 5})
refused_by_all("with groups", {"x-group-key": "group"})


@row("1.0: a disposition of deliveries one by one, at random", SLOW)
def disposition_random(crowd, n):
    peer = holding(crowd, n)
    first = peer.first()
    frames = [settled(first + tag - 1, None) for tag in shuffled(n)]
    yield
    peer.say(*frames)
    assert crowd.broker.queues["q"].unsettled_count() == 0


@row("1.0: dispositions of nothing, from the middle on", SLOW)
def disposition_nothing(crowd, n):
    peer = holding(crowd, n)
    first = peer.first()
    peer.say(settled(first + n // 4, first + n // 2))
    yield
    peer.say(*[settled(first + n // 4 + each, first + n // 2 - each) for each in range(n // 50)])


@row("1.0: detach beside what is unsettled", 100000)
def detach(crowd, n):
    peer = holding(crowd, n)
    yield
    peer.say(performative("detach", 0, handle=1, closed=True))
    crowd.pass_time(1000)


@row("1.0: detach and come back, beside what is unsettled", 100000)
def detach_again(crowd, n):
    peer = holding(crowd, n)
    yield
    for _ in range(3):
        peer.say(performative("detach", 0, handle=1, closed=False))
        peer.say(
            performative("attach", 0, name="in", handle=1, role=True, source=("source", {"address": "/queues/q"}), target=("target", {}))
        )
        peer.say(credit(n))


@row("1.0: end beside what is unsettled", 100000)
def end(crowd, n):
    peer = holding(crowd, n)
    yield
    peer.say(performative("end", 0))
    crowd.pass_time(1000)
    assert crowd.broker.queues["q"].message_count() == n


def posted(name, fails):
    @row("1.0: a transaction of postings, " + name, SLOW)
    def scene(crowd, n):
        crowd.peer().queue("q")
        peer = Quick10(crowd)
        peer.sender()
        id_ = peer.coordinates()
        peer.posts(n, state=within(id_))
        yield
        peer.ask_coordinator("discharge", txn_id=id_, fail=fails)
        crowd.pass_time(1000)
        assert crowd.broker.queues["q"].message_count() == (0 if fails else n)


posted("discharged", False)
posted("which fails", True)


def retired(name, most, fails, is_settled):
    @row("1.0: a transaction that retires all, " + name, most)
    def scene(crowd, n):
        peer = holding(crowd, n)
        id_ = peer.coordinates()
        first = peer.first()
        yield
        peer.say(settled(first, first + n - 1, within(id_), is_settled))
        peer.ask_coordinator("discharge", txn_id=id_, fail=fails)
        crowd.pass_time(1000)
        assert fails or crowd.broker.queues["q"].unsettled_count() == 0


retired("discharged", 100000, False, True)
retired("discharged, to be settled by us", 100000, False, False)
retired("and fails", 100000, True, True)


@row("1.0: a transaction that acquires all, and fails", SLOW)
def fail_acquired(crowd, n):
    other = crowd.peer()
    other.queue("q")
    other.fill("q", n)
    peer = Quick10(crowd)
    id_ = peer.coordinates()
    peer.receiver(credit=0)
    fields = {"next_incoming_id": 0, "incoming_window": WINDOW, "next_outgoing_id": 0, "outgoing_window": WINDOW}
    peer.say(performative("flow", 0, handle=1, link_credit=n, delivery_count=0, properties={("symbol", "txn-id"): id_}, **fields))
    assert crowd.broker.queues["q"].unsettled_count() == n
    yield
    peer.ask_coordinator("discharge", txn_id=id_, fail=True)
    crowd.pass_time(1000)


@row("1.0: attach with a large map of what is unsettled", 5000)
def attach_unsettled(crowd, n):
    crowd.peer().queue("q")
    peer = Quick10(crowd)
    yield
    for role, handle in ((False, 0), (True, 1)):
        unsettled = {b"%d" % each: None if role else composites.described(*ACCEPTED) for each in range(n)}
        fields = {"source": ("source", {"address": "/queues/q"}), "target": ("target", {"address": "/queues/q"}), "unsettled": unsettled}
        if not role:
            fields["initial_delivery_count"] = 0
        peer.say(performative("attach", 0, name="l%d" % handle, handle=handle, role=role, **fields))
    assert len(crowd.broker.connections) == 2


@row("1.0: attach with a filter set as large as can be", 400)
def attach_filters(crowd, n):
    other = crowd.peer()
    other.queue("q")
    peer = Quick10(crowd)
    text = " AND ".join(["a%d = %d" % (each, each) for each in range(n)])
    filters = {("symbol", "f"): ("described", ("symbol", "apache.org:selector-filter:string"), text[:3900])}
    yield
    for handle in range(1, 20):
        source = ("source", {"address": "/queues/q", "filter": filters})
        peer.say(performative("attach", 0, name="l%d" % handle, handle=handle, role=True, source=source, target=("target", {})))
        peer.say(credit(10, handle))
    other.fill("q", 200)


@row("1.0: attach at once of links whose filters are long lists", 1800)
def attach_lists(crowd, n):
    crowd.peer().queue("q")
    peer = Quick10(crowd)
    text = "a IN (" + ",".join(["1"] * n) + ")"
    filters = {("symbol", "f"): ("described", ("symbol", "apache.org:selector-filter:string"), text)}
    frames = []
    for handle in range(14):
        source = ("source", {"address": "/queues/q", "filter": filters})
        frames.append(performative("attach", 0, name="l%d" % handle, handle=handle, role=True, source=source, target=("target", {})))
    yield
    peer.say(*frames)
    crowd.pass_time(100)


@row("1.0: attach and detach of many links", 1000)
def links(crowd, n):
    crowd.peer().queue("q")
    peer = Quick10(crowd)
    yield
    frames = []
    for each in range(n):
        frames.append(
            performative(
                "attach",
                0,
                name="l%d" % each,
                handle=each % 60,
                role=True,
                source=("source", {"address": "/queues/q"}),
                target=("target", {}),
            )
        )
        if each >= 30:
            frames.append(performative("detach", 0, handle=(each - 30) % 60, closed=True))
    peer.say(*frames)


@row("1.0: transfers, settled and not", 20000)
def transfers(crowd, n):
    crowd.peer().queue("q")
    peer = Quick10(crowd)
    peer.sender()
    yield
    peer.posts(n // 2)
    peer.posts(n // 2, settled=True)
    assert crowd.broker.queues["q"].message_count() == n


@row("1.0: delivery of messages of 0-9-1", 20000)
def deliver_crossing(crowd, n):
    other = crowd.peer()
    other.queue("q")
    other.fill("q", n)
    peer = Quick10(crowd)
    yield
    peer.reads(n)
    assert crowd.broker.queues["q"].unsettled_count() == n


@row("1.0: messages of 1.0 delivered to 0-9-1", 20000)
def deliver_crossed(crowd, n):
    other = crowd.peer()
    other.queue("q")
    peer = Quick10(crowd)
    peer.sender()
    peer.posts(n, settled=True)
    yield
    other.read("q")
    assert crowd.broker.queues["q"].unsettled_count() == n

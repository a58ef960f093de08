"""What clients of AMQP 1.0 keep over connections and lives of the broker, and what it has to come to.

An Account is a container that wants each of its messages exactly once: a sender with receiver-settle-mode second and a durable target that
never expires, and a receiver of the same queue with that mode. Both attach again with their maps of what is unsettled (section 2.6.13), on
whichever connection. Nobody else has to do with the queue. Each message that the sender has seen accepted is processed once, no other is.

A Ledger has the transactions (part 4) on a queue of its own: after each recovery, and at the end, the queue holds what the discharged ones
have posted and not retired. Those whose answer was lost count whole, or not at all.
"""

from model import Wrong, body_of

from leveret.core.amqp_1_0 import composites, types

ACCEPTED = ("accepted", {})
NEVER = {"durable": 2, "expiry-policy": "never"}
UNKNOWN_MAX = 7  # transactions whose end nobody knows before no more are begun


def message_of(name, size, header=None, annotated=False, split=0):
    """The octets of a message of 1.0. `split`: octets of its first data section where it has two."""
    octets = composites.write("header", dict({"durable": True}, **(header or {})))
    if annotated:
        octets += b"\x00\x53\x72" + types.encode({("symbol", "x-opt-sim"): ("uint", size)})
    octets += b"\x00\x53\x74" + types.encode({"key": "abc"[size % 3]})
    body = body_of(name, size)
    if split:
        octets += b"\x00\x53\x75" + types.encode(body[:split])
        body = body[split:]
    return octets + b"\x00\x53\x75" + types.encode(body)


class Owner:
    """Who hears of a client's End, and does nothing about it."""

    def __init__(self, world):
        self.world = world

    def name_of(self, body):
        """The id of a delivered message, whose body has to be whole."""
        name = str(body.split(b"|")[0], "utf-8")
        if body != body_of(name, len(body)):
            raise Wrong("a delivered body is not what was published: %r" % body[:60])
        self.world.counts["delivered"] += 1
        return name

    def attached(self, end, fields):
        """The link is there."""

    def delivered(self, end, number, tag, message, fields, octets):
        """A message has come."""

    def told(self, end, number, given, state, settled):
        """What one of our deliveries came to."""

    def settled(self, end, number):
        """The broker has settled one of its deliveries."""

    def gone(self, end):
        """The link is gone."""

    def settle_all(self, end):
        """All that came on the link is accepted."""


class Sending(Owner):
    """The sender of an Account."""

    def __init__(self, account):
        Owner.__init__(self, account.world)
        self.account = account
        self.end = None
        self.known = {}  # tag -> [message, octets, outcome or None, delivery-id or None]
        self.is_partial = False  # the broker's map had not all
        self.plan = []  # (tag, True: the broker knows it) to be sent again
        self.done = []  # accepted and settled
        self.refused = set()  # came to another outcome

    def attach(self, client):
        """Attach, with the map of what is unsettled."""
        given = {tag: None if each[2] is None else composites.described(*each[2]) for tag, each in self.known.items()}
        target = ("target", dict(NEVER, address="/queues/" + self.account.queue))
        fields = {"target": target, "source": ("source", {}), "rcv_settle_mode": 1, "unsettled": given or None}
        found = client.attach(self, self.account.name + ".out", False, fields)
        if found is not None:
            self.end = found

    def attached(self, end, fields):
        """The broker has told which of the deliveries it has accepted."""
        if end is not self.end:
            return
        theirs = fields["unsettled"] or {}
        self.world.counts["attached_again"] += bool(self.known)
        self.plan = []
        self.is_partial = fields["incomplete-unsettled"]
        for tag, each in self.known.items():
            if each[2] == ACCEPTED and tag not in theirs and not fields["incomplete-unsettled"]:
                raise Wrong("%s was accepted, its sender has not settled it, and the broker has forgotten it" % each[0])
            each[3] = None
            if tag in theirs or each[2] is None and not fields["incomplete-unsettled"]:
                self.plan.append((tag, tag in theirs))
        for tag in [tag for tag, each in self.known.items() if each[2] not in (None, ACCEPTED)]:
            self.forget(tag, self.known[tag][2])

    def send(self, client):
        """The next delivery: one that is to be sent again, or a new one."""
        chance = self.world.tens
        if not client.may_send(self.end):
            return
        if self.plan:
            tag, resumed = self.plan.pop(0)
            each = self.known[tag]
            if resumed and chance.one_in(2):
                client.deliver(self.end, tag, each[1], tag, resume=True, settled=True)
                self.forget(tag, ACCEPTED)
            else:
                each[3] = client.deliver(self.end, tag, each[1], tag, chance.pick((400, 60)), resume=resumed or None)
            return
        if len(self.known) < 5 and not self.is_partial:
            message = self.account.next_message()
            octets = message_of(message, chance.pick((0, 20, 60, 300, 700)), {"priority": chance.pick((None, 0, 9))}, chance.one_in(3))
            self.known[message.encode()] = each = [message, octets, None, None]
            each[3] = client.deliver(self.end, message.encode(), octets, message.encode(), chance.pick((400, 400, 30)))

    def told(self, end, number, tag, state, settled):
        """An outcome: it counts when this side has settled it."""
        each = self.known.get(tag)
        if end is not self.end or each is None or each[3] != number:
            return
        if settled:
            raise Wrong("%s was settled by its receiver, with receiver-settle-mode second" % each[0])
        if each[2] is not None and each[2] != (state[0], {}):
            raise Wrong("%s came to %s and then to %s" % (each[0], each[2][0], state[0]))
        each[2] = (state[0], {})
        if state == ACCEPTED:
            self.world.confirmed(each[0])
        if self.world.tens.below(3):
            self.settle(end.client)

    def settle(self, client):
        """Settle what has come to an outcome."""
        if self.end is None or not self.end.usable() or self.end.client is not client:
            return
        for tag, each in list(self.known.items()):
            if each[2] is not None and each[3] is not None:
                client.dispose(False, each[3], None, True, each[2])
                client.sent.pop(each[3], None)
                self.forget(tag, each[2])

    def forget(self, tag, outcome):
        """A delivery is settled."""
        message = self.known.pop(tag)[0]
        if outcome == ACCEPTED:
            self.done.append(message)
        else:
            self.refused.add(message)


class Receiving(Owner):
    """The receiver of an Account."""

    def __init__(self, account):
        Owner.__init__(self, account.world)
        self.account = account
        self.end = None
        self.holding = {}  # tag -> [message, outcome or None, delivery-id or None]
        self.processed = {}  # message -> how often

    def attach(self, client):
        """Attach, with the map of what is unsettled."""
        given = {}
        for tag, each in self.holding.items():
            state = each[1]
            if state is None and self.world.tens.one_in(4):
                state = ("received", {"section-number": 0, "section-offset": 0})
            given[tag] = None if state is None else composites.described(*state)
        source = ("source", dict(NEVER, address="/queues/" + self.account.queue))
        fields = {"source": source, "target": ("target", {}), "rcv_settle_mode": 1, "unsettled": given or None}
        found = client.attach(self, self.account.name + ".in", True, fields)
        if found is not None:
            self.end = found

    def attached(self, end, fields):
        """What the broker does not have unsettled is settled, or will come anew."""
        if end is not self.end:
            return
        theirs = fields["unsettled"] or {}
        self.world.counts["attached_again"] += bool(self.holding)
        for tag, each in list(self.holding.items()):
            each[2] = None
            if tag not in theirs:
                del self.holding[tag]
            elif each[1] is not None:
                raise Wrong("%s came to %s, and the broker has it unsettled" % (each[0], each[1][0]))
        self.credit(end.client)

    def credit(self, client):
        """Some credit."""
        if self.end is not None and self.end.usable() and self.end.client is client:
            held = len([each for each in self.holding.values() if each[2] is not None])
            client.flow(self.end, max(self.world.tens.between(1, 5) - held, 0), drain=self.world.tens.one_in(8) or None)

    def delivered(self, end, number, tag, message, fields, octets):
        """A message: one that is resumed, or a new one."""
        if end is not self.end:
            return
        each = self.holding.get(tag)
        if each is not None and (not fields["resume"] or each[0] != message or each[2] is not None):
            raise Wrong("%s comes with the tag %s of %s, which is not settled" % (message, tag.hex(), each[0]))
        if each is None and fields["resume"]:
            raise Wrong("%s is resumed, and its receiver does not know it" % message)
        self.world.counts["resumed"] += each is not None
        self.holding[tag] = [message, None, number]

    def decide(self, client, accepts=False):
        """Process one, or give it back."""
        if self.end is None or not self.end.usable() or self.end.client is not client:
            return
        chance = self.world.tens
        open_ = [tag for tag, each in self.holding.items() if each[1] is None and each[2] is not None]
        if not open_:
            return
        each = self.holding[chance.pick(open_)]
        each[1] = ACCEPTED
        if not accepts and chance.one_in(6):
            each[1] = chance.pick((("released", {}), ("modified", {"delivery-failed": True}), ("modified", {})))
        else:
            self.process(each[0])
        client.dispose(True, each[2], None, False, each[1])

    def process(self, message):
        """Do what a message asks for."""
        self.processed[message] = self.processed.get(message, 0) + 1
        self.world.counts["exactly_once"] += 1
        if self.processed[message] > 1:
            raise Wrong("%s is processed twice" % message)
        if message in self.account.sending.refused:
            raise Wrong("%s was refused, and is delivered" % message)

    def settled(self, end, number):
        """The broker has settled one."""
        if end is not self.end:
            return
        for tag, each in list(self.holding.items()):
            if each[2] == number:
                if each[1] is None:
                    raise Wrong("%s was settled, and nothing had come of it" % each[0])
                del self.holding[tag]


class Account:
    """One container. A loss that nobody has to answer for (`doubtful`) ends all that is known: another queue, other names."""

    def __init__(self, world, number):
        self.world = world
        self.container = "eo%d" % number
        self.generation = 0
        self.begin()

    def begin(self):
        """With nothing known."""
        self.name = "%s.%d" % (self.container, self.generation)
        self.queue = "x" + self.name
        self.count = 0
        self.former = []  # queues of former generations
        self.sending = Sending(self)
        self.receiving = Receiving(self)

    def doubtful(self):
        """Something was lost that no broker could keep."""
        former = self.former + [self.queue]
        self.generation += 1
        self.begin()
        self.former = former

    def next_message(self):
        """The id of the next one; nobody says in which order they come."""
        self.count += 1
        return "%sd-%d" % (self.name, self.count)

    def is_open(self, broker):
        """True while there is something that has not come to its end."""
        queue = broker.queues.get(self.queue)
        ready = queue is not None and queue.message_count() + queue.unsettled_count() > 0
        return ready or bool(self.sending.known) or bool(self.receiving.holding)

    def verify(self):
        """At the end, when all is settled: what was accepted was processed."""
        missing = [message for message in self.sending.done if message not in self.receiving.processed]
        if missing:
            raise Wrong("%s: accepted, and never delivered: %s" % (self.name, missing[:5]))
        more = [message for message in self.receiving.processed if message not in self.sending.done]
        if more:
            raise Wrong("%s: delivered, and not accepted: %s" % (self.name, more[:5]))


class Work:
    """A transaction: `result` True: all of it was done, False: nothing, None: nobody knows (`asked`), or it goes on."""

    def __init__(self, client):
        self.client = client
        self.id = None
        self.posts = []
        self.retired = []
        self.pending = 0  # posts that are not answered
        self.asked = False
        self.fails = False
        self.result = None


class Ledger:
    """All transactions since the last recovery. `before`: what the queue held then."""

    queue = "t0"

    def __init__(self, world):
        self.world = world
        self.before = set()
        self.works = []

    def unknown(self):
        """The transactions that may have been done."""
        return [work for work in self.works if work.result is None and work.asked and not work.fails]

    def retired(self, message):
        """True for a message that is gone: a transaction that has retired it was done."""
        return any(work.result and message in work.retired for work in self.works)

    def check(self, present):
        """Compare with what the queue holds, and go on from there."""
        held = set(present)
        if len(held) != len(present):
            raise Wrong("queue %s holds a message twice: %s" % (self.queue, present))
        unknown = self.unknown()
        done = [work for work in self.works if work.result]
        for choice in range(1 << len(unknown)):
            chosen = done + [work for place, work in enumerate(unknown) if choice >> place & 1]
            expected = set(self.before)
            retired = []
            for work in chosen:
                expected.update(work.posts)
                retired += work.retired
            if len(set(retired)) == len(retired) and expected - set(retired) == held:
                self.world.counts["transactions"] += len(chosen)
                self.begin(held)
                return
        expected = set(self.before).union(*[work.posts for work in done]).difference(*[work.retired for work in done])
        raise Wrong(
            "transactions: missing %s, too many %s; %d whose end nobody knows: %s"
            % (sorted(expected - held), sorted(held - expected), len(unknown), [(each.posts, each.retired) for each in unknown])
        )

    def begin(self, held):
        """Begin anew."""
        self.before = set(held)
        self.works = []

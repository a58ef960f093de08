"""Sessions of AMQP 0-10 that live beyond their transport, out of a seed: a producer and a consumer, connections that are cut within a
frame, and power cuts at any operation of the store. What the producer published is counted once, and so is what the consumer accepted.

The clients remember what a client has to: the commands that are not completed, which they send again by their ids, and the ids of the
transfers that they have seen. A session of the consumer's that a restart has ended is followed by another; what it had not heard to be
completed may come again, and no other message.
"""

from chance import Chance
from faulty_store import FaultyStore, PowerCut
from memory_store import durable_broker
from model import Wrong
from peer_0_10 import Peer, command, control, transfer

from leveret.core.memory import layout, serial

LIMITS = {"content_size_max": 4096, "argument_size_max": 1024, "receive_buffer_size": 8192, "send_buffer_size": 8192}
STEPS = 160
MESSAGES = 60
ROUNDS = 400  # in which all comes to its end


class End:
    """A client's session: commands that are not completed, by id, and the transport that it has now."""

    def __init__(self, world, name):
        self.world = world
        self.chance = world.chance
        self.begin_anew(name)

    def begin_anew(self, name):
        """Another session."""
        self.name = name
        self.generation = getattr(self, "generation", 0) + 1
        self.next = 0
        self.pending: dict = {}  # id -> octets
        self.peer = None
        self.theirs = 0  # the id of their next command
        self.seen: set = set()  # of their transfers

    def title(self):
        return b"%s-%d" % (self.name, self.generation)

    def do(self, octets):
        """A command of ours: sent, as far as the line bears it, and kept until it is completed."""
        self.pending[self.next] = octets
        self.next = serial.after(self.next, 1)
        self.give(octets)

    def give(self, octets):
        """Send octets; the line may break within."""
        if self.peer is None:
            return
        if self.chance.one_in(20):
            self.push(octets[: self.chance.below(len(octets))])
            self.lose()
        else:
            self.push(octets)

    def push(self, octets=b""):
        """Send octets behind those that the broker has not taken; it may stop reading for a while."""
        self.waiting += octets
        self.waiting = self.waiting[self.peer.give(self.waiting) :]

    def lose(self):
        """The line breaks, perhaps with what the broker had sent on it."""
        if self.peer is None:
            return
        peer, self.peer = self.peer, None
        if self.chance.one_in(2):
            self.hear(peer, False)
        peer.connection.finish()

    def attach(self):
        """Another line: what is not completed is sent again."""
        peer = self.peer = Peer(self.world.broker, attaches=False)
        self.waiting = b""
        peer.give(control("session_attach", name=self.title(), force=True) + control("session_flush", expected=True))
        self.is_known = None
        self.listen()
        if self.peer is None:
            return
        if self.is_known is False:
            self.is_new()
        if self.is_known is None:
            self.lose()
            return
        self.push(control("session_request_timeout", timeout=600))
        at = None
        for id_ in sorted(self.pending):
            if at != id_ and self.peer is not None:
                self.push(control("session_command_point", command_id=id_, command_offset=0))
            self.give(self.pending[id_])
            at = serial.after(id_, 1)
        if at != self.next and self.peer is not None:
            self.push(control("session_command_point", command_id=self.next, command_offset=0))

    def is_new(self):
        """The broker holds no state of the session: all is sent as it was, or (a consumer) anew."""

    def listen(self):
        """Read what has come."""
        if self.peer is not None:
            self.push()
            self.hear(self.peer, True)

    def hear(self, peer, answers):
        """Read what a line has brought."""
        for name, fields, _, body, _ in peer.all():
            if name == "session_expected":
                self.is_known = bool(fields["commands"])
            elif name == "session_completed":
                for first, last in fields["commands"]:
                    for id_ in [each for each in self.pending if first <= each <= last]:
                        self.completed(id_)
                        del self.pending[id_]
                if answers and self.chance.one_in(2):
                    self.push(control("session_known_completed", commands=fields["commands"]))
            elif name == "session_command_point":
                self.theirs = fields["command_id"]
            elif name in ("execution_exception", "session_detached", "connection_close"):
                self.ended(name, fields)
                return
            elif name == "message_transfer":
                self.transfer(self.theirs, body)
            if not name.startswith(("session", "connection")):
                if answers:
                    self.push(control("session_completed", commands=[(self.theirs, self.theirs)]))
                self.theirs = serial.after(self.theirs, 1)

    def completed(self, id_):
        """A command of ours is completed."""

    def transfer(self, id_, body):
        """A message has come."""

    def ended(self, name, fields):
        """The broker has ended the session."""
        raise Wrong("%s: %s %s" % (self.title(), name, fields))


class Producer(End):
    """Publishes MESSAGES numbered messages."""

    made = 0

    def step(self):
        if self.made < MESSAGES:
            self.made += 1
            body = b"%d." % self.made + b"x" * self.chance.pick((0, 10, 900, 3000))
            self.do(transfer(body, key="q", delivery={"delivery_mode": 2}))


class Consumer(End):
    """Accepts each message that comes, sooner or later."""

    def __init__(self, world, name):
        self.accepts: dict = {}  # id of an accept -> message numbers
        self.holding: list = []  # (id, number) that are not accepted
        self.done: set = set()  # numbers whose accept is completed
        self.doubtful: set = set()  # numbers that ended sessions had, and have not heard of
        self.got: set = set()  # numbers of this session
        End.__init__(self, world, name)

    def begin_anew(self, name):
        for numbers in self.accepts.values():
            self.doubtful |= numbers
        self.doubtful |= {number for _, number in self.holding}
        self.accepts, self.holding, self.got = {}, [], set()
        End.begin_anew(self, name)
        for each in (
            command("message_subscribe", queue="q", destination="d", accept_mode=0, acquire_mode=0),
            command("message_flow", destination="d", unit=0, value=6),
            command("message_flow", destination="d", unit=1, value=0xFFFFFFFF),
        ):
            self.do(each)

    def is_new(self):
        if self.next != 3 or len(self.pending) != 3:
            self.begin_anew(self.name)
            self.is_known = None

    def ended(self, name, fields):
        if not self.world.cuts:
            End.ended(self, name, fields)
        if self.peer is not None:
            self.peer.give(control("session_detached", name=self.title(), code=0))
            self.peer.connection.finish()
        self.begin_anew(self.name)

    def transfer(self, id_, body):
        number = int(body.split(b".")[0])
        if id_ in self.seen:
            return
        self.seen.add(id_)
        if number in self.done or number in self.got:
            raise Wrong("message %d came again as transfer %d of %s" % (number, id_, self.title()))
        self.got.add(number)
        self.holding.append((id_, number))

    def completed(self, id_):
        self.done |= self.accepts.pop(id_, set())

    def step(self):
        self.listen()
        if self.holding:
            at = self.chance.below(len(self.holding))
            id_, number = self.holding.pop(at)
            self.accepts[self.next] = {number}
            self.do(command("message_accept", transfers=[(id_, id_)]))


class World:
    """One seed."""

    def __init__(self, seed, power=True):
        self.chance = Chance(seed)
        self.power = power
        self.store = FaultyStore(Chance(seed ^ 0x5E55))
        self.cuts = self.breaks = 0
        self.broker = durable_broker(self.store, **LIMITS)[0]
        first = Peer(self.broker, name=b"first")
        first.do("queue_declare", queue="q", durable=True)
        self.broker.run()
        self.producer, self.consumer = Producer(self, b"p"), Consumer(self, b"c")

    def guarded(self, action):
        """Do something; the power may go."""
        try:
            action()
        except PowerCut:
            self.store.lose_power()
            self.store.faults.cut_at = 0
            self.cuts += 1
            self.producer.peer = self.consumer.peer = None
            self.broker = durable_broker(self.store, **LIMITS)[0]

    def step(self):
        """One step of one of both."""
        end = self.chance.pick((self.producer, self.consumer))
        if end.peer is not None and end.peer.connection.closed:
            end.peer = None
        if end.peer is None:
            end.attach()
        elif self.chance.one_in(12):
            self.breaks += 1
            end.lose()
        else:
            end.step()
        if self.chance.one_in(3):
            end.listen()
        self.broker.tick(self.broker.now + 20, self.broker.seconds + layout.EPOCH)
        self.broker.run()

    def run(self):
        """All steps, and the count."""
        for _ in range(STEPS):
            if self.power and not self.store.faults.cut_at and self.chance.one_in(25):
                self.store.faults.cut_at = self.store.operations + self.chance.between(1, 12)
            self.guarded(self.step)
        self.store.faults.cut_at = 0
        for _ in range(ROUNDS):
            if self.producer.made == MESSAGES and not self.producer.pending and len(self.consumer.done) == MESSAGES:
                break
            self.guarded(self.step)
        if self.broker.counters["internal_errors"]:
            raise Wrong("errors of the broker's own")
        if len(self.consumer.done) != MESSAGES:
            missing = sorted(set(range(1, MESSAGES + 1)) - self.consumer.done)
            raise Wrong("messages %s were not consumed; the producer has %d commands open" % (missing, len(self.producer.pending)))
        self.broker.run()
        if self.broker.queues["q"].message_count():
            raise Wrong("%d messages are left in the queue" % self.broker.queues["q"].message_count())

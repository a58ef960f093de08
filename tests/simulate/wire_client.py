"""A client of the simulation: one connection, driven through the endpoint contract in pieces of any size; nothing in it waits.

Channel 1 publishes with confirms, channel 2 in transactions, channel 3 consumes. What it learns it tells the world: what was confirmed,
committed, delivered. A channel that the broker closes is opened again.
"""

from peer import content, decoded, encoded

from leveret.core.amqp_0_9.spec_0_9_1 import HEADER
from leveret.core.connection.connection import Connection

CONFIRMS, TRANSACTIONS, CONSUMES = 1, 2, 3


class Side:
    """What a client knows of one of its channels."""

    def __init__(self, number):
        self.number = number
        self.open = False
        self.asked = []  # (reply's name, function of its arguments) in order
        self.published = 0
        self.unconfirmed = {}  # number -> message id
        self.uncommitted = []  # message ids
        self.unsettled = []  # (tag, message id) in order
        self.consumers = {}  # tag -> queue name
        self.arriving = None  # [name, arguments, size, properties, body]


class WireClient:
    """One connection of `world`."""

    def __init__(self, world, name):
        self.world = world
        self.name = name
        self.connection = Connection(world.broker, name, True)
        self.outbox = b""
        self.inbox = b""
        self.sides = {number: Side(number) for number in (CONFIRMS, TRANSACTIONS, CONSUMES)}
        self.log_in()

    def log_in(self):
        """The whole handshake, and the three channels."""
        self.outbox = HEADER
        self.outbox += encoded(
            "connection_start_ok", 0, {"capabilities": {"consumer_cancel_notify": True}}, "PLAIN", b"\x00guest\x00guest", "en_US"
        )
        for _ in range(8):
            self.move(1 << 20)
            self.world.broker.run()
        self.outbox += encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, "/", "", False)
        for number in self.sides:
            self.open(number)
        for _ in range(8):
            self.move(1 << 20)
            self.world.broker.run()

    def open(self, number):
        """Open a channel and set its mode."""
        side = self.sides[number] = Side(number)
        self.ask(side, "channel_open", "channel_open_ok", None, "")
        if number == CONFIRMS:
            self.ask(side, "confirm_select", "confirm_select_ok", None, False)
        elif number == TRANSACTIONS:
            self.ask(side, "tx_select", "tx_select_ok", None)
        else:
            self.ask(side, "basic_qos", "basic_qos_ok", None, 0, 20, False)
        side.open = True

    # Octets

    def move(self, most):
        """Send and receive up to `most` octets each way; false when nothing moved."""
        connection = self.connection
        moved = False
        while most > 0 and self.outbox and not connection.closed:
            view = connection.writable()
            size = min(len(view), len(self.outbox), most)
            if size == 0:
                break
            target = view[:size]
            target[:] = self.outbox[:size]
            self.outbox = self.outbox[size:]
            connection.received(size)
            most -= size
            moved = True
        return self.take(most) or moved

    def take(self, most):
        """Read up to `most` octets."""
        moved = False
        while most > 0:
            view = self.connection.pending()
            size = min(len(view), most)
            if size == 0:
                break
            self.inbox += bytes(view[:size])
            self.connection.sent(size)
            most -= size
            moved = True
        self.parse()
        return moved

    def parse(self):
        """Take the frames that are whole."""
        while len(self.inbox) >= 7:
            size = int.from_bytes(self.inbox[3:7], "big") + 8
            if len(self.inbox) < size:
                break
            octets = self.inbox[:size]
            self.inbox = self.inbox[size:]
            self.frame(decoded(octets))

    def send(self, number, name, *arguments):
        """A method that is not answered."""
        self.outbox += encoded(name, number, *arguments)

    def ask(self, side, name, reply, then, *arguments):
        """A method that is answered: `then` (or None) gets the arguments of the reply."""
        side.asked.append((reply, then))
        self.send(side.number, name, *arguments)

    # What comes

    def frame(self, found):
        """One decoded frame."""
        name, number, arguments = found
        if number == 0:
            if name == "connection_close":
                self.world.note("connection_close %s" % (arguments,))
                self.outbox = encoded("connection_close_ok", 0)
            return
        side = self.sides[number]
        if name == "header":
            side.arriving[2:5] = [arguments[0], arguments[1], b""]
            self.whole(side)
        elif name == "body":
            side.arriving[4] += arguments
            self.whole(side)
        elif name in ("basic_deliver", "basic_get_ok", "basic_return"):
            side.arriving = [name, arguments, -1, None, b""]
        elif name == "basic_ack" or name == "basic_nack":
            self.confirmed(side, name == "basic_ack", arguments)
        elif name == "channel_close":
            self.world.note("channel_close %s" % (arguments,))
            self.send(number, "channel_close_ok")
            self.open(number)
        elif name == "basic_cancel":
            side.consumers.pop(arguments[0], None)
        else:
            self.answered(side, name, arguments)

    def answered(self, side, name, arguments):
        """The reply to what was asked first."""
        assert side.asked, (name, arguments)
        reply, then = side.asked.pop(0)
        if reply == "basic_get_ok" and name == "basic_get_empty":
            return
        assert reply == name, (reply, name, arguments)
        if then is not None:
            then(arguments)

    def confirmed(self, side, taken, arguments):
        """A confirm."""
        tag, multiple = arguments[0], arguments[1]
        for number in sorted(side.unconfirmed) if multiple else [tag]:
            if number <= tag:
                message = side.unconfirmed.pop(number)
                if taken:
                    self.world.confirmed(message)

    def whole(self, side):
        """A content is complete when all of its octets are there."""
        name, arguments, size, given, body = side.arriving
        if len(body) < size:
            return
        side.arriving = None
        if name == "basic_get_ok":
            self.answered(side, name, arguments)
        if name == "basic_return" or "x-stream-id" in (given.get("headers") or {}):
            return
        self.world.delivered(self, side, name, arguments, given, body)

    # What it does

    def publish(self, number, exchange, key, message, body, given, mandatory):
        """basic.publish on channel 1 or 2."""
        side = self.sides[number]
        self.outbox += content(number, exchange, key, body, given, mandatory)
        side.published += 1
        if number == CONFIRMS:
            side.unconfirmed[side.published] = message
        else:
            side.uncommitted.append(message)

    def commit(self):
        """tx.commit."""
        side = self.sides[TRANSACTIONS]
        messages, side.uncommitted = side.uncommitted, []

        def committed(_):
            for message in messages:
                self.world.confirmed(message)

        self.ask(side, "tx_commit", "tx_commit_ok", committed)

    def roll_back(self):
        """tx.rollback."""
        side = self.sides[TRANSACTIONS]
        side.uncommitted = []
        self.ask(side, "tx_rollback", "tx_rollback_ok", None)

    def busy(self):
        """True while answers or confirms are to come."""
        return bool(self.outbox) or any(side.asked or side.unconfirmed for side in self.sides.values())

    def settle_all(self):
        """Everything that was delivered is acknowledged."""
        side = self.sides[CONSUMES]
        if side.unsettled:
            self.send(CONSUMES, "basic_ack", side.unsettled[-1][0], True)
            side.unsettled = []

    def open_in_words(self):
        """What it waits for."""
        return [(side.asked, side.unconfirmed) for side in self.sides.values()]

    def lose(self):
        """The link is gone."""
        self.connection.received(0)

"""The places for connections: which connection has one, which is closed for another, and the buffers of closed ones.

A connection that has not logged in is a stranger: the broker may close it to make room for a further connection. Beyond
connection_count_max a few connections get a place only so that the broker can refuse them in their protocol's words.
"""

from ..access.login_failures import most_numerous
from ..access.permissions import LIMITS
from ..errors import RESOURCE_ERROR, ProtocolError
from ..limits import SURPLUS_RECEIVE, SURPLUS_SEND, stranger_count
from ..memory.receive_buffer import ReceiveBuffer
from ..outcomes import nobody
from ..parts import needed


class Places:
    """The places of one broker."""

    subject = "queues of connections that have gone%s"

    def __init__(self, broker):
        self.broker = broker
        self.strangers = []  # connections that have not logged in, the oldest first
        self.surplus = []  # connections beyond the maximum, which will be refused
        self.buffers = []  # (receive, send) pairs of closed connections
        self.surplus_buffers = []

    def attach(self, connection):
        """A place for a new connection: (receive buffer, send buffer), or None when there is none, or its address is refused."""
        if self.broker.failures.refuses(connection.address):
            self.broker.counters["addresses_refused"] += 1
            self.broker.inform("%s: refused, for too many log-ins from there have failed" % connection.name, True)
            return None
        limits = self.broker.limits
        full = len(self.broker.connections) - len(self.surplus) >= limits.connection_count_max
        if self.strangers and (full or len(self.strangers) >= stranger_count(limits)):
            self.broker.counters["strangers_closed"] += 1
            stranger = most_numerous(self.strangers)
            self.broker.inform("%s: has not logged in and gives way to a further connection" % stranger.name, True)
            stranger.finish()
            full = False
        if full:
            self.broker.counters["connections_refused"] += 1
            self.broker.inform(
                "%s: refused, for this broker holds %d connections already (connection_count_max)"
                % (connection.name, limits.connection_count_max),
                True,
            )
            if limits.surplus_count_max == 0:
                return None
            if len(self.surplus) >= limits.surplus_count_max:
                self.surplus[0].finish()
        buffers = self.surplus_buffers if full else self.buffers
        if not buffers:
            self.make_buffers(1, full)
        self.broker.connections.append(connection)
        try:
            (self.surplus if full else self.strangers).append(connection)
        except MemoryError:
            self.broker.connections.remove(connection)
            raise
        if not full:
            self.broker.counters["connections"] += 1
        pair = buffers.pop()
        pair[0].reset()
        pair[1].reset()
        return pair

    def make_buffers(self, count, full=False):
        """Make the buffers of so many more connections (`full`: of connections beyond the maximum).

        Where the heap may fall into pieces it is done for all of them at the start. Raises MemoryError.
        """
        limits = self.broker.limits
        engine = self.broker.tables.engine
        for _ in range(count):
            receive = ReceiveBuffer(SURPLUS_RECEIVE if full else limits.receive_buffer_size, engine)
            send = engine.send_buffer(SURPLUS_SEND if full else limits.send_buffer_size)
            (self.surplus_buffers if full else self.buffers).append((receive, send))

    def admit(self, connection, user):
        """A connection has logged in."""
        connection.user = user
        self.strangers.remove(connection)

    def introduced(self, connection, properties, mechanism):
        """A peer says what it is (properties by name, or None) as it begins to log in: nothing keeps that but ports that show it."""

    def opened(self, connection):
        """The connection of a user is open. Raises not-allowed where there are as many as there may be, of the user or of all."""
        if self.broker.parameters is not None:
            self.broker.parameters.check_connection(connection)
        if connection.user.limits:
            needed(*LIMITS).check_connection(self.broker, connection)
        self.broker.inform("%s: user '%s' has opened a connection" % (connection.name, connection.user.name))

    def refuse_surplus(self, connection):
        """Raise for a connection beyond the maximum, whose place is only for the refusal."""
        if connection in self.surplus:
            raise ProtocolError(
                RESOURCE_ERROR,
                "this broker holds %d connections at most (connection_count_max)" % self.broker.limits.connection_count_max,
                True,
            )

    def work(self):
        """A job, after an error: remove the exclusive queues of closed connections."""
        for queue in list(self.broker.queues.values()):
            if queue.owner is not None and queue.owner.closed:
                self.broker.topology.drop_queue(queue)

    def detach(self, connection):
        """A connection is closed: remove its exclusive queues, keep its buffers for the next one."""
        for queue in list(connection.exclusive_queues):
            try:
                self.broker.topology.drop_queue(queue)
            except Exception as error:  # an error of ours: told, and tried again
                self.broker.guard.job_failed(self, error)
        for queue in self.broker.queues.values():
            if queue.declared_by is connection:
                queue.declared_by = nobody
        for exchange in self.broker.exchanges.values():
            for binding in exchange.bindings.values():
                if binding.made_by is connection:
                    binding.made_by = nobody
        self.broker.connections.remove(connection)
        if connection in self.strangers:
            self.strangers.remove(connection)
        if connection in self.broker.held:
            self.broker.held.remove(connection)
        if connection in self.broker.behind:
            self.broker.behind.remove(connection)
        connection.send.reset()  # bodies may wait in it that are still in their blocks
        buffers = self.buffers
        if connection in self.surplus:
            self.surplus.remove(connection)
            buffers = self.surplus_buffers
        buffers.append((connection.receive, connection.send))

    def login_refused(self, address, sentence, name=None, counts=True):
        """A peer at `address` failed to log in, as `name` where it claimed one: log the failure, and count it against both if it
        `counts`."""
        self.broker.counters["logins_refused"] += 1
        self.broker.log(sentence)
        for sentence in self.broker.failures.failed(address, name, self.broker.now) if counts else ():
            self.broker.log(sentence)

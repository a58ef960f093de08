"""The client of AMQP 0-8 and 0-9: 0-9-1's, with their headers and tables (spec_0_8.py, spec_0_9.py) and with access tickets.

    client = Client08(events, user="guest", password="guest")
    events.opened() -> channel.open() -> "channel_open_ok" -> channel.access_request() -> "access_request_ok" -> channel.queue_declare("q")

Laws
- These versions have no confirms and no basic.nack: asking for one is ValueError. What a broker has kept is told by tx.commit-ok alone.
- The ticket that a channel was granted goes into each method of it that has a place for one; before that it is 0.
- Nothing goes out that the plain tables do not have, unless it is asked for: client-properties are texts, and 0-8's basic.consume has the
  table at its end, which is Qpid's, only where there are arguments. Message properties go out as given.
- connection.open insists, so that no broker answers with connection.redirect; channel.alert, a notice, is passed over.
"""

from .. import method, spec_0_8, spec_0_9
from .channel import Channel
from .client import Client

_WITH_TICKETS = (40, 50, 60)  # classes exchange, queue, basic: where a request begins with a short, that is the ticket


class OlderChannel(Channel):
    """A channel with the ticket that it was granted."""

    ticket = 0

    def reset(self):
        """As of 0-9-1; tickets end with their channel."""
        Channel.reset(self)
        self.take_ticket(0)

    def take_ticket(self, ticket):
        """Let later methods have this ticket."""
        self.ticket = ticket
        self.publish_head = b"\x00\x3c\x00\x28" + ticket.to_bytes(2, "big")

    def access_request(self, realm="/data", exclusive=False, passive=True, active=True, write=True, read=True):
        """Reply access_request_ok: [ticket]."""
        return self.request("access_request", realm, exclusive, passive, active, write, read)

    def basic_nack(self, delivery_tag, multiple=False, requeue=True):
        """Raise ValueError."""
        raise ValueError("AMQP %s has no basic.nack; basic_reject gives one delivery back" % self.client.version)

    def _ask(self, name, arguments):
        assert not self.waiting, "one request at a time on a channel"
        try:
            row = method.named(self.client.dialect.METHODS, name)
        except KeyError:
            raise ValueError("AMQP %s has no %s" % (self.client.version, name.replace("_", ".", 1))) from None
        fields = row[method.FIELDS]
        replies = row[method.REPLIES]
        if fields[:1] == "s" and row[method.CODE] >> 16 in _WITH_TICKETS:
            arguments = (self.ticket,) + arguments[1:]
        if fields[-1:] == "f" and not arguments[-1]:
            row = row[: method.FIELDS] + (fields[:-1],) + row[method.SENDER :]
            arguments = arguments[:-1]
        if not self.client.output.write(self, method.encode(row, self.number, arguments)):
            return False
        self.waiting = replies
        return True

    def on_reply(self, row, view, at, end):
        """As of 0-9-1, and channel.alert."""
        if row is None or row[method.NAME] != "channel_alert":
            Channel.on_reply(self, row, view, at, end)

    def _replied(self, name, arguments):
        if name == "access_request_ok":
            self.take_ticket(arguments[0])
        Channel._replied(self, name, arguments)


class _Older(Client):
    """What both share."""

    channel_class = OlderChannel
    insist = True
    client_properties: dict = {"product": "Leveret client", "version": "0.1.0"}

    def on_start(self, arguments):
        """As of 0-9-1. A client that cannot speak the version that the broker names closes the stream (connection.start)."""
        if tuple(arguments[:2]) != self.dialect.VERSION:
            return self.finish(0, "the broker speaks AMQP %d-%d, not %s" % (arguments[0], arguments[1], self.version))
        return Client.on_start(self, arguments)


class Client08(_Older):
    """The client of 0-8."""

    dialect = spec_0_8
    version = "0-8"


class Client09(_Older):
    """The client of 0-9."""

    dialect = spec_0_9
    version = "0-9"

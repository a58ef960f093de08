"""What stands in the place of its connection, and of its protocol, while a session has no transport (sessions.py).

The session's record, its subscriptions and the deliveries that it holds are the broker's as before; nothing is delivered, and nothing is
written: what the session has to say it says when it is attached again.
"""


class Away:
    """Of one session of a user (access/permissions.py, or his name alone in `name_only`)."""

    closed = False
    closing = False
    reading = True
    state = "away"
    held = None
    frame_max_out = 0

    def __init__(self, broker, user):
        self.broker = broker
        self.user = user
        self.name = "a session without transport"
        self.exclusive_queues: "list" = []
        self.browsing: "list" = []
        self.attached: "dict" = {}
        self.connection = self.send = self.outgoing = self
        self.replies = self.writing = ()

    # As a connection

    def wait_for_turn(self):
        """No turn comes."""

    def resume(self):
        """Nothing waits here for room or for the log."""

    def broke(self, error):
        """An error of ours met the session."""
        self.broker.guard.trouble("connection %s", self.name, error)

    # As a send buffer, and as the delivery that is half written

    def forget(self, consumer):
        """No consumer waits for room."""

    def abandon(self, protocol, session=None):
        """No delivery is half written."""

    # As a protocol

    def deliver(self, consumer, most, before=0):
        """Deliver nothing (contract.Protocol)."""
        return 0

    def cancelled(self, consumer, condition):
        """The queue of a subscription is gone: its session hears so when it is attached again."""
        consumer.channel.consumer_ended(consumer)

    def wants_to_write(self, session):
        """Not now."""

    def go_on_later(self):
        """False: nothing goes on."""
        return False


class User:
    """The name of a user who had a session before the broker was started."""

    limits = None

    def __init__(self, name):
        self.name = name
        self.tags = ()

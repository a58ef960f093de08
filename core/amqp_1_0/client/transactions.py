"""The client's side of transactions (part 4): a link to the coordinator, and the states that name a transaction.

    controller = transactions.controller(client.session); controller.attach() -> events.attached(controller)
    number = controller.declare()          -> events.settled(controller, number, "declared", {"txn-id": b"..."})
    sender.work = transactions.state(id)   what it sends from now on is posted; b"": not any more
    receiver.settle(message, *transactions.outcome(id, "accepted"))
    number = controller.discharge(id, fail=False)   -> events.settled(controller, number, "accepted" or "rejected", fields)

Laws: the outcome told of a posted message is the provisional one; nothing has happened before the discharge is accepted.
"""

from .. import composites, types
from .link import Sender
from .message import section

_VALUE = 0x77
CAPABILITIES = ["amqp:local-transactions"]


class Controller(Sender):
    """A link to the coordinator of the peer."""

    def say_modes(self, fields, theirs, ours):
        """The fields of attach: a target that is a coordinator."""
        Sender.say_modes(self, fields, theirs, ours)
        fields["target"] = ("coordinator", {"capabilities": CAPABILITIES})

    def declare(self):
        """Ask for a transaction: the number of that message, or 0 as Sender.send."""
        return self.send(section(_VALUE, composites.described("declare", {})))

    def discharge(self, id_, fail=False):
        """Discharge a transaction: commit it, or roll it back. Returns the number of the message sent, or 0 as Sender.send."""
        return self.send(section(_VALUE, composites.described("discharge", {"txn-id": id_, "fail": fail})))


def controller(session):
    """A Controller."""
    return session.place(Controller(session, len(session.links), None, False, {}))


def state(id_):
    """The octets of the state of a transfer that is posted in a transaction."""
    return types.encode(composites.described("transactional-state", {"txn-id": id_}))


def outcome(id_, name, fields=None):
    """(name, fields) of an outcome that is given in a transaction, for Receiver.settle."""
    return "transactional-state", {"txn-id": id_, "outcome": (name, fields or {})}

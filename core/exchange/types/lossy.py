"""x-lossy: all bound queues, but a share of the messages is dropped at random (amqp-fast-0.9a5-rfc006, "Exchange Types", type 7, and
"Multiple Registrations", where it stands between another exchange and a queue: bind it to that exchange with exchange.bind).

`x-loss` is the share, from 0 to 1 (a number, or text such as "0.05"); `x-seed`, a whole number, repeats a run. A message is dropped for all
destinations at once. Its publisher gets a confirm and no basic.return, as when a network or an application fails behind
the broker; the counter lost_on_purpose counts the message.
"""

from ..base import refuse
from ..chance import SPAN, Chance


class Type(Chance):
    """A fanout with holes."""

    type = "x-lossy"
    arguments_served = ("x-loss", "x-seed")

    def __init__(self, *given):
        Chance.__init__(self, *given)
        self.threshold = int(share_of(self.arguments) * SPAN)
        if "x-seed" in self.arguments:
            self.seed = str(self.arguments["x-seed"]).encode()

    @staticmethod
    def check_arguments(arguments):
        """x-loss is a share; x-seed, when given, a whole number."""
        if share_of(arguments) is None:
            refuse("x-lossy needs the argument 'x-loss': the share of messages to drop, from 0 to 1")
        seed = arguments.get("x-seed", 0)
        if isinstance(seed, bool) or not isinstance(seed, int):
            refuse("the argument 'x-seed' of x-lossy must be a whole number")

    def loses(self):
        """True when the next message is dropped."""
        return self.next_number() < self.threshold

    def match(self, key, properties):
        """All destinations, for a message that is not dropped."""
        return self.destinations


def share_of(arguments):
    """x-loss as a number from 0 to 1, or None."""
    share = arguments.get("x-loss")
    if isinstance(share, str):
        try:
            share = float(share)
        except ValueError:
            return None
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        return None
    return share

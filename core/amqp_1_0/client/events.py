"""Reports of the client: the calls that an application overrides.

Laws: called from within `received` and `tick`, one at a time; they may attach, send and settle, and must not move bytes.
"""


class Events:
    """Inherit and override; each does nothing by itself."""

    def opened(self):
        """The connection is open and its session begun: links may be attached."""

    def attached(self, link):
        """The peer has attached its end of a Sender or a Receiver: `link.source` and `link.target` are the peer's."""

    def detached(self, link, condition, text):
        """The link is over, or was refused: the peer's condition, as "amqp:not-found", and its words; both empty after `leave`.

        Messages sent and not settled get no outcome any more.
        """

    def credited(self, link):
        """The peer has granted further credit to a Sender."""

    def settled(self, link, number, outcome, fields):
        """The peer's outcome for message `number` of a Sender: "accepted", "rejected", "released", "modified", or "" where the peer settled
        it without saying; `fields` of the outcome by name. Of a Receiver in mode second: the sender has settled delivery `number`."""

    def delivered(self, message):
        """A Message has come on a Receiver."""

    def refused(self, message, text):
        """A Message that came without its body, and why: it is too large. It stays unsettled; reject it, or it comes again."""

    def drained(self, link):
        """The sender has used up the credit of a Receiver, or has nothing more to send for it."""

    def ended(self, condition, text):
        """The connection is over: the peer's or our condition and words; no condition where the stream ended without one."""

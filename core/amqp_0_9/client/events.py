"""Reports of the client: the calls that an application overrides.

Laws: called from within `received` and `tick`, one at a time; they may ask, publish and acknowledge, and must not move bytes.
"""


class Events:
    """Inherit and override; each does nothing by itself."""

    def opened(self):
        """The connection is open: channels may be."""

    def replied(self, channel, name, arguments):
        """The outstanding request of `channel` was answered by the method `name`, as "queue_declare_ok"; for "basic_get_ok": [message]."""

    def delivered(self, message):
        """A consumer's Message."""

    def returned(self, message):
        """A mandatory Message that had no route."""

    def refused(self, message, text):
        """A Message that came without its body, and why: it is too large. It stays unacknowledged; reject it, or it comes again."""

    def confirmed(self, channel, sequence, positive):
        """The broker has accepted message number `sequence` of `channel`; `positive` false: it has refused it."""

    def cancelled(self, channel, consumer_tag):
        """The broker ended a consumer, as when its queue was deleted."""

    def channel_closed(self, channel, code, text):
        """The broker closed the channel with a reply code and text."""

    def blocked(self, text):
        """The broker accepts no messages for now (connection.blocked)."""

    def unblocked(self):
        """The broker accepts messages again."""

    def flow(self, channel, active):
        """The broker stops publishing on the channel (channel.flow), or with `active` allows it again."""

    def ended(self, code, text):
        """The connection is over: the reply code of a connection.close, or 0 when the stream ended without one."""

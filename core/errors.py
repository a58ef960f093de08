"""Neutral error conditions: what went wrong, before any protocol gives it a number.

Each wire family maps a condition to its own code and scope (channel or connection); see amqp_0_9/replies.py.
"""

CONTENT_TOO_LARGE = "content-too-large"
CONNECTION_FORCED = "connection-forced"
ACCESS_REFUSED = "access-refused"
NOT_FOUND = "not-found"
RESOURCE_LOCKED = "resource-locked"
PRECONDITION_FAILED = "precondition-failed"
FRAME_ERROR = "frame-error"
SYNTAX_ERROR = "syntax-error"
COMMAND_INVALID = "command-invalid"
CHANNEL_ERROR = "channel-error"
UNEXPECTED_FRAME = "unexpected-frame"
RESOURCE_ERROR = "resource-error"
NOT_ALLOWED = "not-allowed"
NOT_IMPLEMENTED = "not-implemented"
INTERNAL_ERROR = "internal-error"


class ProtocolError(Exception):
    """A peer did what the protocol forbids, or asked for what cannot be given.

    `condition` is one of the names above; `text` says what was wrong, in words for the peer's log;
    `hard` forces the scope to the whole connection where the condition's own scope is the channel.
    """

    def __init__(self, condition, text, hard=False):
        super().__init__(condition, text)
        self.condition = condition
        self.text = text
        self.hard = hard


def words_of(error):
    """An error in words for people: its type and its text."""
    return "an error told before" if error is None else "%s: %s" % (type(error).__name__, error)

"""The hot path of a draft's sessions: 0-9-1's behind frames that are read as 0-9-1's (hot_in_quicker.py), and deliveries of its own
(hot_out_quicker.py).

Boards do without: their sessions go frame by frame.
"""

from ...memory import layout
from .. import hot_row
from .hot_in_quicker import JMS, Intake  # noqa: F401 - JMS for the form in C
from .hot_out_quicker import Delivering


class Asked:
    """The frames of 0-9-1 from that publish on whose route is not cached: read as a receive buffer."""

    octets = b""
    end = 0


class Row(hot_row.Row):
    """The row in Python of all sessions; `of` makes one's own. c_accel/amqp_0_9_drafts.py has the form in C."""

    name = "amqp_0_9_drafts"

    def of(self, session):
        """The row of one session."""
        return Own(session)


class Own(hot_row.Row):
    """A session's row."""

    def __init__(self, session):
        hot_row.Row.__init__(self, session.broker.tables)
        self.session = session
        self.intake = Intake(session)
        self.delivering = Delivering(session)
        self.asked = Asked()

    def ingest(self, numbers, source):
        """See ..hot_in.ingest; the positions in the state are those of the draft's frames."""
        state = self.tables.state
        start, end = state[layout.STATE_AT], state[layout.STATE_END]
        parts, ends, why = self.intake.frames(self.session.receive.octets, start, end, state[layout.STATE_FRAME_MAX])
        if not ends:
            return why
        octets = b"".join(parts)
        state[layout.STATE_AT], state[layout.STATE_END] = 0, len(octets)
        answer = hot_row.Row.ingest(self, numbers, octets)
        at = state[layout.STATE_AT]
        state[layout.STATE_END] = end
        behind = start
        for made, behind_it in [ends[-1]] if at == len(octets) else ends:
            if made <= at:
                behind = behind_it
        state[layout.STATE_AT] = behind
        if at == len(octets):
            return why
        if answer == layout.ASK_ROUTE:
            self.asked.octets, self.asked.end = octets[at:], len(octets) - at
        return answer

    def see_consumer(self, consumer):
        """A consumer is delivered to from now on."""

    def deliver(self, consumer, most):
        """Write deliveries that are whole for this way: how many."""
        return self.delivering.deliver(consumer, most)

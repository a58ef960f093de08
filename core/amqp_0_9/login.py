"""One log-in of a session: it moves a mechanism's octets, and answers a refusal only after a pause (0-9-1 section 4.10).

Nothing waits here: `take` is called by the handshake, `work` by the broker while a password is being calculated, `tick` by the session.
While it works or pauses the session reads no frames. A refusal counts against the peer's address (core/failures.py).
"""

from .. import sasl as outcome_of
from ..errors import ACCESS_REFUSED, ProtocolError
from ..shim import elapsed
from . import sasl


class Login:
    """`mechanism`: its name as the peer gave it. When it succeeds `accepted(session)` is called, when it asks for more `asked(session)`."""

    def __init__(self, session, mechanism, accepted, asked):
        self.session = session
        self.mechanism = mechanism
        self.accepted = accepted
        self.asked = asked
        self.attempt = None
        self.failure = None  # the ProtocolError that the peer is told after the pause
        self.failed_at = 0

    def take(self, response):
        """The peer's next octets."""
        try:
            if self.attempt is None:
                self.attempt = sasl.begin(self.mechanism, self.session)
            self.judge(self.attempt.take(response))
        except ProtocolError as error:
            self.fail(error, "there is no such mechanism for it" if self.attempt is None else error.text)

    def work(self):
        """Go on with the calculation; the broker calls this, outside of any frame."""
        connection = self.session.connection
        if not connection.closed and not connection.ending:
            self.session.paused = False
            connection.guarded(self.work_on)
            if not self.session.paused and not connection.closed:
                connection.process()

    def work_on(self):
        """A slice."""
        self.judge(self.attempt.work())

    def judge(self, outcome):
        """What a step of the mechanism came to."""
        session = self.session
        if outcome == outcome_of.ACCEPTED and not session.broker.access.has(self.attempt.user):
            outcome = self.attempt.refuse("the user was removed meanwhile")
        if outcome == outcome_of.WORKING:
            session.paused = True
            session.broker.jobs.append(self)
        elif outcome == outcome_of.CONTINUE:
            self.asked(session)
        elif outcome == outcome_of.ACCEPTED:
            session.login = None
            session.broker.failures.succeeded(session.connection.address)
            self.accepted(session, self.attempt.user)
        else:
            self.fail(ProtocolError(ACCESS_REFUSED, "Login was refused using authentication mechanism %s. For details see the broker "
                                    "logfile." % self.mechanism, True), self.attempt.reason)

    def fail(self, error, reason):
        """The attempt has failed: count it, say why in the log, and let the peer wait."""
        session = self.session
        self.failure = error
        self.failed_at = session.broker.now
        session.paused = True
        claimed = "" if self.attempt is None else self.attempt.claimed
        session.broker.login_refused(session.connection.address, "the log-in of %r from %s with mechanism %r was refused: %s"
                                     % (claimed[:64], session.connection.name, self.mechanism[:32], reason))

    def tick(self, now):
        """Time passes: when the pause is over, a word to those who announced that they understand it, the end for all."""
        session = self.session
        if self.failure is None or elapsed(now, self.failed_at) < session.broker.limits.login_pause_ms:
            return
        session.paused = False
        if self.failure.condition != ACCESS_REFUSED or session.capabilities.get("authentication_failure_close"):
            session.closing_method = (0, 0)
            raise self.failure
        session.connection.end()

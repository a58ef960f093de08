"""One log-in of a protocol's peer: it moves a mechanism's octets, and answers a refusal only after a pause (0-9-1 section 4.10).

A log-in never blocks: the family calls `receive` with each response of its peer and `tick` as time passes, the broker calls `work` while a
password is being calculated. Meanwhile the family processes no frames. A refusal counts against the user and the peer's address; after too
many, the broker refuses without checking the password, or answers late (login_failures.py).
"""

from ..errors import ACCESS_REFUSED, ProtocolError
from ..shim import elapsed
from .sasl import ACCEPTED, CONTINUE, WORKING

if False:  # for the type checker alone
    from typing import Any

RESPONSE_MAX = 1024  # octets of a response, which a log-in holds until its end


class Login:
    """`mechanisms`: those that the family offers (sasl.Mechanism); `mechanism`: the name that the peer gave.

    The outcome of a log-in is an input of the protocol's states: `step("accepted", user)`; `step("challenge")`, the peer responds to the
    challenge of `attempt`; after the pause `step("refused", error)`, which raises or ends the connection.
    """

    def __init__(self, session, mechanisms, mechanism, step):
        self.session = session
        self.mechanisms = mechanisms
        self.mechanism = mechanism
        self.step = step
        self.attempt: "Any" = None
        self.failure: "Any" = None  # the ProtocolError for the peer after the pause; None: the peer is logged in
        self.judged_at = 0
        self.pause_ms = None  # None: there is no outcome yet

    def receive(self, response):
        """The peer's next octets."""
        try:
            if len(response) > RESPONSE_MAX:
                raise ProtocolError(ACCESS_REFUSED, "a response of %d octets; this broker takes %d" % (len(response), RESPONSE_MAX), True)
            if self.attempt is None:
                self.attempt = attempt_by(self.mechanisms, self.mechanism, self.session.connection)
            self.judge(self.attempt.receive(response))
        except ProtocolError as error:
            self.fail(error, "there is no such mechanism for it" if self.attempt is None else error.text)

    subject = "a log-in%s"

    def work(self):
        """Go on with the calculation; the broker calls this, outside of `process`. The peer may have gone meanwhile."""
        connection = self.session.connection
        if connection.state == "served" and self.session.login is self:
            connection.guarded(self.work_on)
            if not connection.closed:
                connection.process()

    def work_on(self):
        """A slice."""
        self.judge(self.attempt.work())

    def judge(self, outcome, late=False):
        """Act on the outcome of a step of the mechanism; `late`: the peer has waited already."""
        session = self.session
        attempt = self.attempt
        failures = session.broker.failures
        address = session.connection.address
        counts = True
        if attempt.guessable and not late and failures.refuses_user(address, attempt.claimed):
            counts = False
            outcome = attempt.refuse("too many that failed came before it, and its password was not looked at")
        elif outcome == ACCEPTED and not session.broker.access.has(attempt.user):
            outcome = attempt.refuse("the user was removed meanwhile")
        if outcome == WORKING:
            aside = session.broker.aside
            if aside is None:
                session.broker.jobs.append(self)
            else:
                aside.calculate(attempt.check.derivation, self)
        elif outcome == CONTINUE:
            self.step("challenge")
        elif outcome == ACCEPTED:
            self.judged_at = session.broker.now
            self.pause_ms = failures.answers_after_ms(address, attempt.claimed) if attempt.guessable and not late else 0
            if self.pause_ms == 0:
                self.let_in()
        else:
            self.fail(
                ProtocolError(
                    ACCESS_REFUSED,
                    "Login was refused using authentication mechanism %s. For details see the broker logfile." % self.mechanism,
                    True,
                ),
                attempt.reason,
                counts,
            )

    def let_in(self):
        """The log-in has succeeded."""
        session = self.session
        session.login = None
        session.broker.failures.succeeded(session.connection.address, self.attempt.user.name)
        self.step("accepted", self.attempt.user)

    def fail(self, error, reason, counts=True):
        """The attempt has failed: count it unless the password was not checked, log the reason, and let the peer wait."""
        session = self.session
        broker = session.broker
        connection = session.connection
        claimed = "" if self.attempt is None else self.attempt.claimed
        name = claimed if claimed and self.attempt.guessable else None
        self.failure = error
        self.judged_at = broker.now
        self.pause_ms = broker.limits.login_pause_ms
        if name is not None:
            self.pause_ms = max(self.pause_ms, broker.failures.answers_after_ms(connection.address, name))
        broker.places.login_refused(
            connection.address,
            "the log-in of %r from %s with mechanism %r was refused: %s" % (claimed[:64], connection.name, self.mechanism[:32], reason),
            name,
            counts,
        )

    def tick(self, now):
        """Time passes: when the pause is over, accept or refuse the peer."""
        session = self.session
        if self.pause_ms is None or elapsed(now, self.judged_at) < self.pause_ms:
            return
        if self.failure is None:
            self.pause_ms = None
            self.judge(ACCEPTED, True)
            session.process()
        else:
            self.step("refused", self.failure)


def offered(mechanisms, connection):
    """The names of the mechanisms offered to the peer of a connection."""
    return [each.name for each in mechanisms if each.announced(connection.broker.access, connection)]


def attempt_by(mechanisms, name, connection):
    """An attempt with the mechanism called `name`; access-refused when it is not offered to this peer."""
    broker = connection.broker
    for each in mechanisms:
        if each.name == name and each.offered(broker.access, connection):
            return each(broker.access, connection, broker.limits)
    names = " ".join(offered(mechanisms, connection))
    raise ProtocolError(ACCESS_REFUSED, "mechanism '%s' is not served; %s are" % (name, names), True)

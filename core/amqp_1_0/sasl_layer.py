"""The SASL layer (section 5.3): the actions of states.CONNECTION up to the log-in, which is core/access/login.py's.

peer  header 3 1 0 0    we  header 3 1 0 0, sasl-mechanisms
peer  sasl-init         we  sasl-challenge, as often as the mechanism has one, each answered by a sasl-response
                        we  sasl-outcome; then the peer begins anew with the header of AMQP
"""

from ..access.login import Login, offered
from ..access.mechanisms import MECHANISMS
from . import composites, frame
from .spec_1_0 import HEADER_AMQP, HEADER_SASL

_OK = 0  # sasl-code (section 5.3.3.6)
_AUTH = 1


def write(protocol, name, fields):
    """Write a SASL frame."""
    protocol.write(frame.write(frame.SASL, 0, composites.write(name, fields)))


def offer(protocol):
    """The peer wants to log in: tell it how it can (section 5.3.3.1)."""
    protocol.write(HEADER_SASL)
    names = offered(MECHANISMS, protocol.connection)
    write(protocol, "sasl-mechanisms", {"sasl-server-mechanisms": names})


def sasl_init(protocol, channel, fields, octets, at, end):
    """The peer chooses a mechanism (section 5.3.3.2)."""
    protocol.hostname = fields["hostname"] or ""
    protocol.mechanism = fields["mechanism"]
    protocol.login = Login(protocol, MECHANISMS, fields["mechanism"], protocol.step)
    protocol.login.receive(fields["initial-response"] or b"")


def ask(protocol):
    """The mechanism wants another step (section 5.3.3.3)."""
    write(protocol, "sasl-challenge", {"challenge": protocol.login.attempt.challenge})


def sasl_response(protocol, channel, fields, octets, at, end):
    """The peer's next step (section 5.3.3.4)."""
    protocol.login.receive(fields["response"])


def admit(protocol, user):
    """The log-in has succeeded (section 5.3.3.5)."""
    protocol.user = user
    write(protocol, "sasl-outcome", {"code": _OK})


def refused(protocol, error):
    """The log-in has failed."""
    write(protocol, "sasl-outcome", {"code": _AUTH})
    protocol.connection.end()


def without_sasl(protocol):
    """The peer begins with AMQP itself: it is who ANONYMOUS stands for, where that is configured; else it is told of SASL (section
    5.3.1)."""
    connection = protocol.connection
    access = protocol.broker.access
    user = access.find(access.anonymous, connection.from_loopback) if access.anonymous else None
    if user is None:
        protocol.state = "ended"
        other_header(protocol)
        return
    protocol.user = user
    protocol.write(HEADER_AMQP)


def no_tls(protocol):
    """The peer asks for TLS, which its stream has already or its listener cannot have (section 5.2; ports/tls_header.py has what can)."""
    name = protocol.connection.name
    protocol.broker.inform("%s: the peer asks for TLS by its header, and this listener has no certificate for that" % name, True)
    other_header(protocol)


def other_header(protocol):
    """The header of a layer or a version that is not served, here or at all: answered with one that is (section 2.2)."""
    protocol.write(HEADER_AMQP if protocol.user is not None else HEADER_SASL)
    protocol.connection.end()

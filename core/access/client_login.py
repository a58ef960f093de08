"""The client's side of log-in mechanisms (SASL, RFC 4422): PLAIN, ANONYMOUS, EXTERNAL; SCRAM-SHA-256: client_scram.py.

A mechanism answers `first()` with its initial response, `next(challenge)` with a further one, and `finished(octets)`: whether what came
with the outcome, or before it, proves the peer where the mechanism lets it. All octets are bytes.
"""

from ..errors import ACCESS_REFUSED, ProtocolError


class Simple:
    """A mechanism of one response: PLAIN (RFC 4616), ANONYMOUS (RFC 4505), EXTERNAL (RFC 4422 appendix A)."""

    def __init__(self, response):
        self._response = response

    def first(self):
        """The response."""
        return self._response

    def next(self, challenge):
        """Answer a challenge with the mechanism's one response; a server may ask for it again with an empty challenge."""
        if challenge:
            raise ProtocolError(ACCESS_REFUSED, "the peer asks for more than the log-in has")
        return self._response

    def finished(self, octets):
        """True: the mechanism asks for no proof of the server."""
        return True


def mechanism(name, user, password, nonce):
    """The mechanism of a name. Raises ValueError for one that there is not."""
    if name == "PLAIN":
        return Simple(b"\x00" + user.encode("utf-8") + b"\x00" + password.encode("utf-8"))
    if name == "ANONYMOUS":
        return Simple(user.encode("utf-8"))
    if name == "EXTERNAL":
        return Simple(b"")
    if name == "SCRAM-SHA-256":
        if not nonce:
            raise ValueError("SCRAM-SHA-256 needs a nonce")
        from .client_scram import Scram  # a board that logs in with PLAIN does not carry it

        return Scram(user, password, nonce)
    raise ValueError("there is no log-in mechanism %r" % (name,))

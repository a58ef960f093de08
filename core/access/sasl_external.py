"""The log-in mechanism EXTERNAL (RFC 4422), for every wire: by the certificate that a peer has shown.

Boards have no TLS, and no such file.
"""

from . import sasl


class External(sasl.Mechanism):
    """The user is the one that the peer's TLS certificate names; the response is not looked at."""

    name = "EXTERNAL"
    guessable = False

    @staticmethod
    def offered(access, peer):
        """True for a peer that has shown a certificate."""
        return bool(identities_of(peer))

    @classmethod
    def announced(cls, access, peer):
        """True where the certificate names a user: py-amqp and others take EXTERNAL wherever they are told of it, before their password."""
        return any(access.find(name, peer.from_loopback) is not None for name in identities_of(peer))

    def receive(self, response):
        """Log in the user of the first name in the certificate that is a user's."""
        names = identities_of(self.peer)
        self.claimed = names[0]
        for name in names:
            self.user = self.access.find(name, self.peer.from_loopback)
            if self.user is not None:
                return sasl.ACCEPTED
        return self.refuse("the certificate names no user")


def identities_of(peer):
    """The names in the peer's certificate; none without one."""
    return () if peer.identities is None else peer.identities()

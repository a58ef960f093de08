"""The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding:

n,,n=USER,r=NONCE                    the broker: r=NONCE+THEIRS,s=SALT,i=ROUNDS
c=biws,r=NONCE+THEIRS,p=PROOF        the broker: v=SIGNATURE, with the outcome or in a challenge
"""

import hashlib

from ..errors import ACCESS_REFUSED, ProtocolError
from . import passwords


class Scram:
    """A mechanism of client_login.py. `nonce`: random text in bytes, another one each time."""

    def __init__(self, user, password, nonce):
        self._password = password.encode("utf-8")
        self._bare = b"n=" + user.replace("=", "=3D").replace(",", "=2C").encode("utf-8") + b",r=" + nonce
        self._nonce = nonce
        self._proof = b""  # the peer's, which we wait for

    def first(self):
        """client-first-message."""
        return b"n,," + self._bare

    def next(self, challenge):
        """client-final-message for the server's salt and rounds; nothing for its proof."""
        if self._proof:
            if not self.finished(challenge):
                raise ProtocolError(ACCESS_REFUSED, "the peer does not know the password")
            return b""
        given = {part[:1]: part[2:] for part in challenge.split(b",")}
        nonce = given.get(b"r", b"")
        rounds = str(given.get(b"i", b""), "ascii")
        if not nonce.startswith(self._nonce) or not rounds.isdigit() or not 0 < int(rounds) <= passwords.ROUNDS_MAX:
            raise ProtocolError(ACCESS_REFUSED, "the peer's challenge is none of SCRAM-SHA-256")
        derivation = passwords.Derivation(self._password, passwords.from_base64(given.get(b"s", b"")), int(rounds))
        while not derivation.work():
            pass
        salted = derivation.key
        final = b"c=biws,r=" + nonce
        message = self._bare + b"," + challenge + b"," + final
        client_key = passwords.hmac_sha256(salted, b"Client Key")
        signature = passwords.hmac_sha256(hashlib.sha256(client_key).digest(), message)
        proof = bytes([client_key[place] ^ signature[place] for place in range(len(signature))])
        server = passwords.hmac_sha256(passwords.hmac_sha256(salted, b"Server Key"), message)
        self._proof = b"v=" + passwords.base64(server).encode("utf-8")
        return final + b",p=" + passwords.base64(proof).encode("utf-8")

    def finished(self, octets):
        """The server's proof has come, with the outcome or in a challenge."""
        if octets and passwords.same(octets, self._proof):
            self._password = b""
        return self._password == b""

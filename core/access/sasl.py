"""Log-in mechanisms (SASL, RFC 4422), for every wire: PLAIN, ANONYMOUS, SCRAM-SHA-256; EXTERNAL: sasl_external.py.

A mechanism is an object that lives for one attempt: `receive(response)` gets the peer's octets and `work()` continues a long calculation.
Both answer one of the outcomes below. A wire folder moves the octets and decides how the peer hears of a refusal.
"""

import hashlib

from ..errors import SYNTAX_ERROR, ProtocolError
from . import passwords

if False:  # for the type checker alone
    from typing import Any

CONTINUE = 0  # `challenge` goes to the peer
ACCEPTED = 1  # `user` has logged in
REFUSED = 2  # `reason` is for our log only
WORKING = 3  # call `work`


class Mechanism:
    """One attempt. `peer` has `from_loopback` and `identities`, a function that gives the names in the peer's certificate, or None."""

    offered: "Any"

    name = ""
    guessable = True  # by trying many passwords: core/access/login_failures.py

    def __init__(self, access, peer, limits):
        self.access = access
        self.peer = peer
        self.limits = limits
        self.user = None
        self.claimed = ""  # who the peer says it is
        self.challenge = b""
        self.reason = ""
        self.check: "Any" = None

    @classmethod
    def announced(cls, access, peer):
        """True when the peer is told of the mechanism: wherever it is offered."""
        return cls.offered(access, peer)

    def refuse(self, reason):
        """REFUSED, with the reason."""
        self.reason = reason
        return REFUSED

    def with_password(self, name, secret):
        """Begin to compare a password (bytes) with the one of the user called `name`."""
        self.claimed = name
        user = self.access.find(name, self.peer.from_loopback)
        if user is None and name in self.access.users:
            return self.refuse("guest may only come from the broker's own machine: make a user")
        if user is None:
            return self.refuse("there is no such user here")
        if user.stored is None:
            return self.refuse("this user has no password")
        if not secret:
            return self.refuse("the password is empty")
        self.user = user
        self.check = user.stored.check(secret)
        return self.work() if self.check.at_once() else WORKING

    def work(self):
        """Work for one slice of the comparison."""
        if not self.check.work():
            return WORKING
        return ACCEPTED if self.check.good else self.refuse("the password is wrong")


def offered_to_all(access, peer):
    """A mechanism that every peer may use."""
    return True


class Plain(Mechanism):
    """RFC 4616: authorization identity, NUL, user, NUL, password. Nobody may act as somebody else."""

    name = "PLAIN"
    offered = staticmethod(offered_to_all)

    def receive(self, response):
        """The whole response: PLAIN has one message."""
        parts = response.split(b"\x00")
        if len(parts) != 3:
            raise ProtocolError(SYNTAX_ERROR, "a PLAIN response is authorization identity, NUL, user, NUL, password")
        name = text_of(parts[1])
        if parts[0] not in (b"", parts[1]):
            self.claimed = name
            return self.refuse("it asks to act as another user")
        return self.with_password(name, parts[2])


class Anonymous(Mechanism):
    """RFC 4505: no proof at all; the configuration says who these peers are."""

    name = "ANONYMOUS"
    guessable = False

    @staticmethod
    def offered(access, peer):
        """True where an anonymous user is configured."""
        return access.anonymous != ""

    def receive(self, response):
        """The response, of any content: it is only a trace for the log."""
        self.claimed = self.access.anonymous
        self.user = self.access.find(self.access.anonymous, self.peer.from_loopback)
        return self.refuse("there is no such user here") if self.user is None else ACCEPTED


class Scram(Mechanism):
    """RFC 5802 with SHA-256 (RFC 7677), without channel binding:

        client  n,,n=USER,r=NONCE           server  r=NONCE+OURS,s=SALT,i=ROUNDS
        client  c=biws,r=NONCE+OURS,p=PROOF  server  v=SIGNATURE
        client  an empty response

    The stored PBKDF2 key is the SaltedPassword, so nothing long is calculated here. A user that is not there gets a salt like all
    others and fails at the proof.
    """

    name = "SCRAM-SHA-256"
    offered = staticmethod(offered_to_all)

    def __init__(self, access, peer, limits):
        Mechanism.__init__(self, access, peer, limits)
        self.step = self.first
        self.asked = None
        self.message = b""  # the AuthMessage so far
        self.gs2 = b""
        self.nonce = b""

    def receive(self, response):
        """The next message of the client."""
        return self.step(response)

    def first(self, response):
        """client-first-message: the user's name and a nonce."""
        parts = response.split(b",")
        attributes = scram_attributes(parts[2:])
        if len(parts) < 4 or parts[0] not in (b"n", b"y") or attributes is None or [name for name, _ in attributes[:2]] != [b"n", b"r"]:
            return self.refuse("its first message is not of the form n,,n=user,r=nonce")
        name = text_of(attributes[0][1].replace(b"=2C", b",").replace(b"=3D", b"="))
        if parts[1] not in (b"", b"a=" + attributes[0][1]) or not attributes[1][1]:
            self.claimed = name
            return self.refuse("it asks to act as another user, or has no nonce")
        self.claimed = name
        self.asked = self.access.find(name, self.peer.from_loopback)
        stored = None if self.asked is None else self.asked.stored
        if isinstance(stored, passwords.Pbkdf2):
            salt, rounds = stored.salt, stored.rounds
        else:
            self.asked = None
            salt, rounds = self.access.constant(repr(name))[: passwords.SALT_SIZE], self.limits.password_rounds
        self.gs2 = parts[0] + b"," + parts[1] + b","
        self.nonce = attributes[1][1] + passwords.base64(self.access.secret(b"scram")[:18]).encode("utf-8")
        self.challenge = b"r=" + self.nonce + (",s=%s,i=%d" % (passwords.base64(salt), rounds)).encode("utf-8")
        self.message = response[len(self.gs2) :] + b"," + self.challenge
        self.step = self.final
        return CONTINUE

    def final(self, response):
        """client-final-message: the proof."""
        attributes = scram_attributes(response.split(b","))
        binding = passwords.base64(self.gs2).encode("utf-8")
        if (
            attributes is None
            or len(attributes) < 3
            or attributes[0] != (b"c", binding)
            or attributes[1] != (b"r", self.nonce)
            or attributes[-1][0] != b"p"
        ):
            return self.refuse("its proof is not of the form c=%s,r=nonce,p=proof" % str(binding, "utf-8"))
        message = self.message + b"," + response[: response.rfind(b",p=")]
        if self.asked is None:
            return self.refuse("there is no user of that name with a password that SCRAM can use")
        salted = self.asked.stored.key
        client_key = passwords.hmac_sha256(salted, b"Client Key")
        signature = passwords.hmac_sha256(hashlib.sha256(client_key).digest(), message)
        proof = bytes([client_key[index] ^ signature[index] for index in range(len(client_key))])
        if not passwords.same(attributes[-1][1], passwords.base64(proof).encode("utf-8")):
            return self.refuse("the password is wrong")
        server = passwords.hmac_sha256(passwords.hmac_sha256(salted, b"Server Key"), message)
        self.challenge = b"v=" + passwords.base64(server).encode("utf-8")
        self.step = self.last
        return CONTINUE

    def last(self, response):
        """The client has seen our signature: AMQP has no word for "accepted, and here is more" but a challenge that is answered by
        nothing."""
        if response:
            return self.refuse("an answer to the last message that is not empty")
        self.user = self.asked
        return ACCEPTED


def scram_attributes(parts):
    """[(name, value)] of a message's parts, as b"r=abc"; None when one is not of that form."""
    attributes = [(part[:1], part[2:]) for part in parts]
    for part in parts:
        if part[1:2] != b"=":
            return None
    return attributes


def text_of(octets):
    """A name as text; what is not UTF-8 is nobody's name and stays as it is."""
    try:
        return str(octets, "utf-8")
    except UnicodeError:
        return octets

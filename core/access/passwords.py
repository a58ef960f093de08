"""Passwords as they are kept: salted and hashed, never the text itself.

    pbkdf2-sha256$ROUNDS$SALT$KEY     PBKDF2-HMAC-SHA-256 (RFC 8018 section 5.2), salt and key in base64
    base64(salt, SHA-256)             RabbitMQ's rabbit_password_hashing_sha256: 4 octets of salt, then the hash of salt and password;
                                      of SHA-512 and MD5: rabbit_hashes.py. Taken over, never made: quick to guess

The PBKDF2 key is SCRAM's SaltedPassword (RFC 5802 section 3), so one stored text serves every mechanism: it is worth a password to who
steals it and must be kept as one. Where the interpreter has PBKDF2 built in it is one call; elsewhere in slices, so that a log-in on a
board does not delay other connections. A password stands for its UTF-8 octets; there is no SASLprep.
"""

import binascii
import hashlib

from ..parts import part
from ..shim import const, pbkdf2_sha256

if False:  # for the type checker alone
    from typing import Any

PREFIX = "pbkdf2-sha256$"
SALT_SIZE = 16
KEY_SIZE = 32
ROUNDS_MAX = 1 << 24

_SLICE = const(32)  # rounds of one `work` without a built-in PBKDF2: about 20 ms of a Pico
_RABBIT_SALT_SIZE = const(4)
_BLOCK = const(64)  # octets of a SHA-256 block


def octets_of(text):
    """bytes of a str; bytes stay as they are."""
    return text.encode("utf-8") if isinstance(text, str) else bytes(text)


def base64(octets):
    """Base64 as text, without a line end."""
    return str(binascii.b2a_base64(octets), "utf-8").strip()


def from_base64(text):
    """The octets of a base64 text (str or bytes). Raises ValueError for anything but the one way to write them."""
    given = octets_of(text)
    try:
        octets = binascii.a2b_base64(given)
    except Exception:  # micropython-lib's binascii raises plain Exception
        octets = None
    if octets is None or base64(octets).encode("utf-8") != given:
        raise ValueError("%r is not base64" % (text,))
    return octets


def pads(key):
    """The two blocks of HMAC (RFC 2104) for a key."""
    if len(key) > _BLOCK:
        key = hashlib.sha256(key).digest()
    key = key + bytes(_BLOCK - len(key))
    return bytes([octet ^ 0x36 for octet in key]), bytes([octet ^ 0x5C for octet in key])


def hmac_sha256(key, octets):
    """HMAC-SHA-256, 32 octets."""
    inner, outer = pads(key)
    return hashlib.sha256(outer + hashlib.sha256(inner + octets).digest()).digest()


def same(left, right):
    """True when two bytes are equal, in a time that does not depend on where they differ."""
    difference = len(left) ^ len(right)
    for index in range(min(len(left), len(right))):
        difference |= left[index] ^ right[index]
    return difference == 0


class Derivation:
    """PBKDF2-HMAC-SHA-256 of a password (bytes) to 32 octets, a slice at a time: `key` is there when `work` answers true."""

    def __init__(self, password, salt, rounds):
        self.password = password
        self.salt = salt
        self.rounds = rounds
        self.done = 0
        self.key = None
        self.inner, self.outer = pads(password)
        self.last = b""
        self.sum = 0

    def at_once(self):
        """True when one slice of work ends the derivation."""
        return self.rounds <= _SLICE

    def work(self):
        """Work for one slice; true when the key is derived."""
        if self.key is not None:
            return True
        if pbkdf2_sha256 is not None:
            self.key = pbkdf2_sha256(self.password, self.salt, self.rounds)
            return True
        sha256 = hashlib.sha256
        last = self.last if self.done else self.salt + b"\x00\x00\x00\x01"
        count = min(_SLICE, self.rounds - self.done)
        for _ in range(count):
            last = sha256(self.outer + sha256(self.inner + last).digest()).digest()
            self.sum ^= int.from_bytes(last, "big")
        self.last = last
        self.done += count
        if self.done == self.rounds:
            self.key = self.sum.to_bytes(KEY_SIZE, "big")
        return self.key is not None


class Pbkdf2:
    """A stored PBKDF2 hash."""

    algorithm = "leveret_password_hashing_pbkdf2_sha256"

    def __init__(self, salt, rounds, key):
        self.salt = salt
        self.rounds = rounds
        self.key = key

    def text(self):
        """The hash as text, as a file has it."""
        return "%s%d$%s$%s" % (PREFIX, self.rounds, base64(self.salt), base64(self.key))

    def check(self, password):
        """A Check of a password (bytes)."""
        return Check(self.key, Derivation(password, self.salt, self.rounds))


class Rabbit:
    """A stored hash of RabbitMQ."""

    algorithm = "rabbit_password_hashing_sha256"

    def __init__(self, salt, digest):
        self.salt = salt
        self.key = digest

    def text(self):
        """The hash as text, as RabbitMQ's definitions have it."""
        return base64(self.salt + self.key)

    def check(self, password):
        """A Check of a password (bytes)."""
        return Check(self.key, Salted(hashlib.sha256(self.salt + password).digest()))


class Salted:
    """A derivation that is done already."""

    def __init__(self, key):
        self.key = key

    def at_once(self):
        """True: there is nothing left to do."""
        return True

    def work(self):
        """True: there is nothing left to do."""
        return True


class Check:
    """A password being compared: `work` until it answers true, then `good` says whether it is the one."""

    def __init__(self, expected, derivation):
        self.expected = expected
        self.derivation = derivation
        self.good = False

    def at_once(self):
        """True when one call of `work` decides, in next to no time."""
        return self.derivation.at_once()

    def work(self):
        """Work for one slice; true when `good` is decided."""
        if not self.derivation.work():
            return False
        self.good = same(self.derivation.key, self.expected)
        return True


def hashed(password, salt, rounds):
    """A Pbkdf2 of a password (str or bytes). Slow: for configuration, not for log-ins."""
    derivation = Derivation(octets_of(password), salt, rounds)
    while not derivation.work():
        pass
    return Pbkdf2(salt, rounds, derivation.key)


def stored(text):
    """The Pbkdf2 or Rabbit of a text. Raises ValueError with a sentence."""
    if text.startswith(PREFIX):
        parts = text.split("$")
        rounds = int(parts[1]) if len(parts) == 4 and parts[1].isdigit() and len(parts[1]) < 9 else 0
        if not 0 < rounds <= ROUNDS_MAX:
            raise ValueError("a PBKDF2 hash is %sROUNDS$SALT$KEY with at most %d rounds" % (PREFIX, ROUNDS_MAX))
        salt, key = from_base64(parts[2]), from_base64(parts[3])
        if len(key) != KEY_SIZE or not salt:
            raise ValueError("a PBKDF2 hash has a salt and a key of %d octets" % KEY_SIZE)
        return Pbkdf2(salt, rounds, key)
    octets = from_base64(text)
    made: "Any" = Rabbit
    if len(octets) != _RABBIT_SALT_SIZE + KEY_SIZE:
        further = part("access.rabbit_hashes")
        made = None if further is None else further.of_size(len(octets) - _RABBIT_SALT_SIZE)
    if made is None:
        raise ValueError("a password hash is %sROUNDS$SALT$KEY, or 20, 36 or 68 octets in base64 as RabbitMQ writes it" % PREFIX)
    return made(octets[:_RABBIT_SALT_SIZE], octets[_RABBIT_SALT_SIZE:])

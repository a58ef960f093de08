"""RabbitMQ's password hashes of SHA-512 and MD5: four octets of salt, and the digest of salt and password. A hash's size says which it is.

Users come with them from a RabbitMQ; this broker makes none.
"""

import hashlib

from .passwords import Check, Rabbit, Salted


class Sha512(Rabbit):
    """A stored hash of SHA-512. Raises ValueError where this machine has not got the function."""

    algorithm = "rabbit_password_hashing_sha512"
    function = "sha512"

    def __init__(self, salt, digest):
        Rabbit.__init__(self, salt, digest)
        try:
            self.made(b"")
        except Exception:  # MicroPython has few of them, and a machine may forbid MD5: each in its own way
            raise ValueError("there is no %s on this machine to check a password by" % self.function) from None

    def made(self, octets):
        """The digest of octets."""
        return getattr(hashlib, self.function)(octets).digest()

    def check(self, password):
        """A Check of a password (bytes)."""
        return Check(self.key, Salted(self.made(self.salt + password)))


class Md5(Sha512):
    """A stored hash of MD5, which RabbitMQ had before 3.6."""

    algorithm = "rabbit_password_hashing_md5"
    function = "md5"


def of_size(size):
    """The class for a digest of so many octets, or None."""
    return {16: Md5, 64: Sha512}.get(size)

"""Password hashes: PBKDF2-HMAC-SHA-256, RabbitMQ's own format, HMAC, and what is not a hash."""

import hashlib

from leveret.core import shim
from leveret.core.access import passwords, rabbit_hashes

# The inputs of RFC 6070 with SHA-256 as the hash (RFC 7914 section 11 has the same form); the key's first 32 octets.
PBKDF2 = (
    (b"password", b"salt", 1, "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b"),
    (b"password", b"salt", 2, "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43"),
    (b"password", b"salt", 4096, "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a"),
    (b"passwordPASSWORDpassword", b"saltSALTsaltSALTsaltSALTsaltSALTsalt", 64, None),
    (b"x" * 200, b"a key longer than a block of the hash", 33, None),
    (b"pass\x00word", b"sa\x00lt", 4, None),
)

# RFC 4231 sections 4.3 and 4.7: a short key, and one longer than a block.
HMAC = (
    (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    (
        b"\xaa" * 131,
        b"Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    ),
)


class WithoutBuiltIn:
    """The derivation in Python, also where the interpreter has PBKDF2 built in."""

    def __enter__(self):
        self.kept = passwords.pbkdf2_sha256
        passwords.pbkdf2_sha256 = None

    def __exit__(self, *_):
        passwords.pbkdf2_sha256 = self.kept


def in_slices(secret, salt, rounds):
    derivation = passwords.Derivation(secret, salt, rounds)
    steps = 1
    while not derivation.work():
        steps += 1
    return derivation.key, steps


def test_pbkdf2_in_slices_gives_the_published_keys():
    with WithoutBuiltIn():
        for secret, salt, rounds, expected in PBKDF2:
            key, steps = in_slices(secret, salt, rounds)
            assert steps == (rounds + 31) // 32
            if expected is not None:
                assert key.hex() == expected, (secret, rounds)


def test_the_built_in_pbkdf2_and_the_slices_agree():
    for secret, salt, rounds, _expected in PBKDF2:
        with WithoutBuiltIn():
            key, _ = in_slices(secret, salt, rounds)
        assert (shim.pbkdf2_sha256 or (lambda *_: key))(secret, salt, rounds) == key
        assert passwords.hashed(secret, salt, rounds).key == key


def test_hmac():
    for key, octets, expected in HMAC:
        assert passwords.hmac_sha256(key, octets).hex() == expected


def good(stored, secret):
    check = stored.check(secret)
    while not check.work():
        pass
    return check.good


def test_a_hash_is_written_and_read_and_knows_its_password():
    made = passwords.hashed("gr\u00fcn", b"0123456789abcdef", 40)
    again = passwords.stored(made.text())
    assert made.text().startswith("pbkdf2-sha256$40$MDEyMzQ1Njc4OWFiY2RlZg==$")
    assert (again.salt, again.rounds, again.key) == (b"0123456789abcdef", 40, made.key)
    assert good(again, "gr\u00fcn".encode("utf-8"))
    for wrong in (b"", b"grun", "gr\u00fcn".encode("utf-8") + b" ", b"x" * 1000):
        assert not good(again, wrong), wrong


def test_rabbitmqs_hash():
    """The example of RabbitMQ's guide to passwords: salt 908D C60A, password test12."""
    stored = passwords.stored("kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR")
    assert stored.salt == bytes([0x90, 0x8D, 0xC6, 0x0A])
    assert good(stored, b"test12") and not good(stored, b"test13")
    made = passwords.base64(b"salt" + hashlib.sha256(b"saltsecret").digest())
    assert good(passwords.stored(made), b"secret") and passwords.stored(made).text() == made


def test_rabbitmqs_hashes_of_every_algorithm_are_told_by_their_size():
    """rabbit_password_hashing_md5, _sha256, _sha512: four octets of salt before the digest of salt and password."""
    for name in ("md5", "sha256", "sha512"):
        algorithm = getattr(hashlib, name, None)
        if algorithm is None:  # MicroPython
            continue
        text = passwords.base64(b"salt" + algorithm(b"saltpassword").digest())
        stored = passwords.stored(text)
        assert stored.text() == text and stored.algorithm == "rabbit_password_hashing_" + name
        for password, good in ((b"password", True), (b"Password", False), (b"", False)):
            check = stored.check(password)
            assert check.at_once() and check.work() and check.good is good


def test_a_hash_that_this_machine_cannot_make_is_a_sentence():
    class Poor:
        """MicroPython's hashlib, or one of a machine that forbids MD5."""

        @staticmethod
        def md5(octets):
            raise ValueError("disabled")

    kept, rabbit_hashes.hashlib = rabbit_hashes.hashlib, Poor
    try:
        for size, name in ((20, "md5"), (68, "sha512")):
            try:
                passwords.stored(passwords.base64(bytes(size)))
            except ValueError as error:
                assert str(error) == "there is no %s on this machine to check a password by" % name
            else:
                raise AssertionError(name)
    finally:
        rabbit_hashes.hashlib = kept


def test_what_is_not_a_hash_is_a_sentence():
    right = passwords.hashed("x", b"salt", 1).text()
    for text in (
        "",
        "x",
        "guest",
        "AAAA",
        "a" * 48 + "=",
        right[:-1],
        right + "A",
        right.replace("$1$", "$0$"),
        right.replace("$1$", "$-1$"),
        right.replace("$1$", "$99999999$"),
        right.replace("$1$", "$$"),
        right + "$",
        "pbkdf2-sha256$1$$" + right.split("$")[3],
        "pbkdf2-sha256$1$c2FsdA==$c2FsdA==",
        "\u00e4" * 48,
    ):
        try:
            passwords.stored(text)
        except ValueError as error:
            assert len(str(error)) > 15 and "\n" not in str(error), text
        else:
            raise AssertionError(text)


def test_comparison_is_exact():
    assert passwords.same(b"", b"") and passwords.same(b"abc", b"abc")
    for left, right in ((b"abc", b"abd"), (b"abc", b"ab"), (b"", b"a"), (b"abc", b"\x00bc")):
        assert not passwords.same(left, right)

"""`leveret password`: the text for `password_hash` in the configuration, made of a password.

    leveret password [--rounds N] < file      the first line of standard input
    leveret password [--rounds N]             asks at a terminal, twice, without showing it

Standard output has the hash and nothing else; the password is never an argument, where other users of the machine would see it.
"""

import getpass
import os
import sys

from leveret.core.access.passwords import ROUNDS_MAX, SALT_SIZE, hashed
from leveret.core.limits import GATEWAY

from .usage import UsageError


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument(
        "--rounds",
        type=int,
        default=GATEWAY["password_rounds"],
        help=f"rounds of PBKDF2 (default {GATEWAY['password_rounds']}); more take longer to guess, and to log in with",
    )


def ask():
    """The password. Raises UsageError."""
    if sys.stdin.isatty():
        password = getpass.getpass("password: ")
        if getpass.getpass("again: ") != password:
            raise UsageError("the two are not the same")
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise UsageError("an empty password cannot be used")
    return password


def run(options):
    """Print the hash; the exit status."""
    if not 0 < options.rounds <= ROUNDS_MAX:
        raise UsageError(f"--rounds must be from 1 to {ROUNDS_MAX}")
    print(hashed(ask(), os.urandom(SALT_SIZE), options.rounds).text())
    return 0

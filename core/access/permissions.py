"""Users, their tags and permissions (RabbitMQ's access control, documented in core/SPEC.md).

A permission is a regular expression (patterns/expression.py) for each of configure, write and read; a name is permitted when the expression
matches anywhere in it, and an empty expression permits nothing. A user remembers the names that were granted, so that a publish costs one
look-up in a set. Users come from the configuration or from definitions; nothing that a peer sends makes a user.
"""

import hashlib

from ..errors import ACCESS_REFUSED, ProtocolError
from ..limits import pattern_size_max
from ..parts import needed
from ..patterns.expression import Pattern
from . import passwords

if False:  # for the type checker alone
    from typing import Any

CONFIGURE = 0
WRITE = 1
READ = 2

EVERYTHING = (".*", ".*", ".*")

GUEST = "guest"  # its default password is known to all: it comes from the loopback only, whatever its password (RabbitMQ's loopback_users)
LIMITS = ("access.user_limits", "limits of users")  # the part that looks at User.limits, and the words for it


class User:
    """`stored`: a hash of core/access/passwords.py, or None (no password logs in). `permissions`: three expressions, or None: no way into
    the virtual host. `pattern_max`: octets that a compiled expression may take. Raises ValueError, with a sentence, for one that is
    none."""

    numbers = 0
    limits: "Any" = None  # {name: number} of user_limits.py; None: as much as the broker has
    topics: "Any" = None  # topic_permissions.Topics; None: no routing key is looked at
    access: "Any" = None  # the user's Access, which counts the granted names that all its users remember

    def __init__(self, name, stored, tags=(), permissions=None, granted_max=256, pattern_max=8192):
        self.name = name
        self.stored = stored
        self.tags = tuple(tags)
        self.granted: tuple = (set(), set(), set())  # names known to be permitted, for each permission
        self.granted_max = granted_max
        self.pattern_max = pattern_max
        self.predeclared = False  # there without being asked for
        self.configured = False  # from the configuration file, which has the last word on it
        self.permit(permissions)

    def permit(self, permissions):
        """Change the permissions; they hold for the next method of every session of this user."""
        self.patterns = None if permissions is None else [pattern(each, self.pattern_max) for each in permissions]
        self.permissions = permissions
        User.numbers += 1
        self.number = User.numbers  # routes cached under the old permissions have another number
        self.forget_granted()

    def may(self, permission, name):
        """True when `permission` on something called `name` is given."""
        known = self.granted[permission]
        if name in known:
            return True
        if self.patterns is None or self.patterns[permission] is None or not self.patterns[permission].matches(name or "amq.default"):
            return False
        if self.access is not None and (self.topics is None or permission != WRITE or not self.topics.has(name)):
            self.access.make_place(self.granted_max)
            known.add(name)
        return True

    def forget_granted(self):
        """Forget every name remembered as permitted."""
        for names in self.granted:
            if names:
                self.access.granted_count -= len(names)
                names.clear()


class Access:
    """The users by name. `anonymous`: the user whom the ANONYMOUS mechanism logs in; empty: it is off.

    `nonce` (bytes that differ from run to run) makes secrets that must not be guessed.
    """

    def __init__(self, users, nonce=b"", anonymous=""):
        self.users = {}
        self.granted_count = 0
        self.nonce = nonce
        self.anonymous = anonymous
        self.secrets_made = 0
        self.guestless = False  # the predeclared guest was removed
        self.insider = None
        for user in users:
            self.put(user)

    def make_place(self, granted_max):
        """Make space to remember one more permitted name: when the maximum is reached, forget all."""
        if self.granted_count >= granted_max:
            for user in self.users.values():
                user.forget_granted()
            if self.insider is not None:
                self.insider.forget_granted()
        self.granted_count += 1

    def inside(self):
        """The user of sessions in the broker's own process: no name or certificate logs in as this user, only the object itself does."""
        if self.insider is None:
            self.insider = User("amq.inside", None, ("administrator",), EVERYTHING)
            self.insider.access = self
        return self.insider

    def find(self, name, from_loopback):
        """The user called `name`, if that user may log in from there, or None."""
        if name is self.insider and name is not None:
            return name
        return None if name == GUEST and not from_loopback else self.users.get(name)

    def put(self, user):
        """Add a user, or copy its password, tags and permissions into the existing user of that name, who may be logged in."""
        known = self.users.get(user.name)
        if known is None:
            self.users[user.name] = user
            user.access = self
            return
        known.predeclared = False
        known.stored = user.stored
        known.tags = user.tags
        known.permit(user.permissions)

    def has(self, user):
        """True unless this user has been removed."""
        return user is self.insider or self.users.get(user.name) is user

    def remove(self, name):
        """Remove a user; sessions that it has may do nothing more, and core/access/users.py ends them."""
        user = self.users.pop(name, None)
        if user is not None:
            user.permit(None)

    def secret(self, purpose):
        """32 octets that no peer can guess, others each time."""
        self.secrets_made += 1
        return hashlib.sha256(self.nonce + purpose + str(self.secrets_made).encode("utf-8")).digest()

    def constant(self, text):
        """32 octets that no peer can guess, the same each time for the same text: so an unknown user looks like a known one."""
        return hashlib.sha256(self.nonce + b"constant" + text.encode("utf-8")).digest()


def default(limits, nonce, rounds=1):
    """guest with the password guest and all rights, as RabbitMQ has it when nothing is configured. One round is enough for a password
    that everybody knows; more are only of use to SCRAM clients that insist on them."""
    salt = hashlib.sha256(nonce + b"guest").digest()[: passwords.SALT_SIZE]
    guest = User(
        GUEST, passwords.hashed(GUEST, salt, rounds), ("administrator",), EVERYTHING, limits.granted_count_max, pattern_size_max(limits)
    )
    guest.predeclared = True
    return Access([guest], nonce)


def check(broker, user, permission, kind, name, key=None):
    """Raise access-refused, in RabbitMQ's words, unless `user` has the permission on the `kind` ("exchange", "queue") called `name`, and
    there for the routing key `key` (None: it is about no key)."""
    if not user.may(permission, name):
        broker.counters["access_refused"] += 1
        raise ProtocolError(
            ACCESS_REFUSED, "access to %s refused for user '%s'" % (broker.topology.called(kind, name or "amq.default"), user.name)
        )
    if key is not None and user.topics is not None and kind == "exchange" and user.topics.has(name):
        needed("access.topic_permissions", "topic permissions").check(broker, user, permission, name, key)


def pattern(expression, size_max):
    """A compiled expression; None for the empty one, which permits nothing. Raises ValueError with a sentence."""
    if not isinstance(expression, str):
        raise ValueError("a permission is a regular expression as text, not %r" % (expression,))
    if expression == "":
        return None
    try:
        return Pattern(expression, size_max)
    except ValueError as error:
        raise ValueError("the regular expression %r of a permission %s" % (expression[:80], error)) from None

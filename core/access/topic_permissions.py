"""Topic permissions, as RabbitMQ has them: what a user may publish to a topic exchange, and bind there, by the routing key.

Of a user and an exchange: two expressions, for write (the keys that a publish names, those of CC and BCC too) and for read (the key of a
binding that is made or removed). An expression permits a key when it matches anywhere in it; the empty one permits the empty key alone.
{username} and {vhost} in it stand for the user's name and the virtual host. An exchange that has none for this user, or that is of another
type, is free of them.
"""

from ..errors import ACCESS_REFUSED, ProtocolError
from ..patterns.expression import Pattern
from . import users
from .permissions import READ, WRITE

TOPIC = "topic"  # the type of exchanges that are looked at
EXCHANGES_MAX = 64  # of one user
TEXT_MAX = 255  # octets of an exchange's name, and of an expression
PLACES = {WRITE: 0, READ: 1}


class Topics:
    """Those of a user: `rows`, {exchange: (write, read)}, and the same compiled. Raises ValueError, with a sentence."""

    def __init__(self, user, host, rows):
        if len(rows) > EXCHANGES_MAX:
            raise ValueError("a user has topic permissions for %d exchanges at most" % EXCHANGES_MAX)
        self.rows = rows
        self.patterns = {exchange: [compiled(user, host, each) for each in rows[exchange]] for exchange in rows}

    def has(self, exchange):
        """True for an exchange whose keys are looked at."""
        return exchange in self.rows


def compiled(user, host, expression):
    """The Pattern of an expression. Raises ValueError."""
    if len(expression.encode("utf-8")) > TEXT_MAX:
        raise ValueError("an expression of a topic permission is longer than %d octets" % TEXT_MAX)
    text = expression.replace("{username}", user.name).replace("{vhost}", host)
    try:
        return Pattern(text or "^$", user.pattern_max)
    except ValueError as error:
        raise ValueError("the regular expression %r of a topic permission %s" % (expression[:80], error)) from None


def put(broker, user, exchange, given):
    """Change a user's topic permissions for an exchange: (write, read). Raises ValueError."""
    rows = {} if user.topics is None else dict(user.topics.rows)
    rows[exchange] = tuple(given)
    change(broker, user, rows)


def clear(broker, user):
    """Take all of a user's topic permissions away."""
    change(broker, user, {})


def change(broker, user, rows):
    """Have these in force, and in the log; the predeclared guest is then a user like others."""
    before, had, was = users.definition_of(user), user.topics, user.predeclared
    give(broker, user, rows)
    user.predeclared = False
    try:
        users.note(broker, user, before)
    except Exception:  # all or nothing: what is not in the log is not in force
        give(broker, user, {} if had is None else had.rows)
        user.predeclared = was
        raise


def give(broker, user, rows):
    """Have these in force. Raises ValueError."""
    user.topics = Topics(user, broker.virtual_host, rows) if rows else None
    user.permit(user.permissions)  # nothing is remembered as permitted, and no route


def restored(broker, user, rows):
    """Those of a logged definition: {exchange: [write, read]}, or None."""
    try:
        give(broker, user, {exchange: tuple(rows[exchange]) for exchange in rows or {}})
    except ValueError as error:  # another interpreter has logged it
        user.permit(None)
        broker.log("user '%s' comes back without permissions: %s" % (user.name, error))


def check(broker, user, permission, exchange, key):
    """Raise access-refused, in RabbitMQ's words, unless the user may do this with a key (bytes) of an exchange."""
    there = broker.exchanges.get(exchange)
    if there is None or there.type != TOPIC:
        return
    text = str(key, "utf-8", "replace") if isinstance(key, (bytes, bytearray)) else key
    if not user.topics.patterns[exchange][PLACES[permission]].matches(text):
        broker.counters["access_refused"] += 1
        words = "access to topic '%s' in %s refused for user '%s'"
        raise ProtocolError(ACCESS_REFUSED, words % (text, broker.topology.called("exchange", exchange), user.name))

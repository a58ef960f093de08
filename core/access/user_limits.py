"""How many connections and channels a user may have at a time, over all protocols: RabbitMQ's limits of users, in its words.

A session of AMQP 1.0 or 0-10 counts as a channel. A limit that is lowered ends nothing: it holds for what is opened from then on.
"""

from ..errors import NOT_ALLOWED, ProtocolError
from ..shim import json_text
from . import users

CONNECTIONS, CHANNELS = "max-connections", "max-channels"
NAMES = (CONNECTIONS, CHANNELS)
NUMBER_MAX = 1 << 63  # of a limit: RabbitMQ's are unbounded


def checked(limits):
    """Limits by name, as users have them: those below 0 are none. Raises ValueError for another name or no whole number."""
    check_limits(limits, NAMES, "user-limits")
    return {name: limits[name] for name in limits if limits[name] >= 0} or None


def check_limits(limits, names, kind):
    """Raise ValueError, in RabbitMQ's words, unless these are whole numbers by the given names; `kind`: of limits, as the words name it."""
    for name in limits:
        if name not in names:
            raise ValueError("Unrecognised terms [{%s,%s}] in %s" % (word(name), word(limits[name]), kind))
    for name in limits:
        if type(limits[name]) is not int or not -NUMBER_MAX <= limits[name] < NUMBER_MAX:
            raise ValueError("%s should be a number, actually was %s" % (name, word(limits[name])))


def word(value):
    """A value as RabbitMQ's errors have it, at most 80 characters."""
    return '<<"%s">>' % value[:74] if isinstance(value, str) else json_text(value)[:80]


def put(broker, user, limits):
    """Change a user's limits ({name: number}, whole); the predeclared guest is then a user like others. Raises ValueError."""
    before, had, was = users.definition_of(user), user.limits, user.predeclared
    user.limits = checked(limits)
    user.predeclared = False
    try:
        users.note(broker, user, before)
    except Exception:  # all or nothing: what is not in the log is not in force
        user.limits = had
        user.predeclared = was
        raise


def check_connection(broker, connection):
    """Raise not-allowed where the user of a connection that opens has as many as he may."""
    user = connection.user
    most = user.limits.get(CONNECTIONS)
    if most is None:
        return
    if len([1 for each in broker.connections if each.user is user and not each.closed and not each.is_refused]) > most:
        connection.is_refused = True
        raise ProtocolError(
            NOT_ALLOWED, "connection refused for user '%s': user connection limit (%d) is reached" % (user.name, most), True
        )


def check_session(broker, connection):
    """Raise not-allowed where the user of a connection has as many channels as he may."""
    user = connection.user
    most = user.limits.get(CHANNELS)
    if most is not None and sum([len(each.sessions()) for each in broker.connections if each.user is user]) >= most:
        text = "number of channels opened for user '%s' has reached the maximum allowed user limit of (%d)"
        raise ProtocolError(NOT_ALLOWED, text % (user.name, most), True)

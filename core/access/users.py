"""Users that are made, changed and removed while a broker runs, by definitions or management. The log keeps hashes, never a password.

Those of the configuration are not logged, and go before those of the log: who writes a user's line in the file decides what it may do after
a start. The guest of a broker without users is not logged either, but that it was removed is.
"""

from ..errors import NOT_FOUND, PRECONDITION_FAILED, RESOURCE_ERROR, ProtocolError
from ..limits import pattern_size_max
from ..parts import needed
from . import passwords
from .permissions import GUEST, User

NO_GUEST = {"kind": "no-guest", "name": GUEST}


def put(broker, user):
    """Add a user, or take its password and tags over into the one of that name. Raises ProtocolError when there are too many."""
    users = broker.access.users
    known = users.get(user.name)
    if known is None and len(users) >= broker.limits.user_count_max:
        raise ProtocolError(RESOURCE_ERROR, "this broker holds %d users at most" % broker.limits.user_count_max)
    before = definition_of(known)
    if known is not None:
        user.permit(known.permissions)
        had = known.stored, known.tags, known.predeclared
    broker.access.put(user)
    try:
        note(broker, users[user.name], before)
    except Exception:  # all of it or nothing: what is put again, and there, is not logged again
        if known is None:
            broker.access.remove(user.name)
        else:
            known.stored, known.tags, known.predeclared = had
        raise
    if user.name == GUEST and broker.access.guestless:
        define(broker, {"gone": NO_GUEST["kind"], "name": GUEST})
        broker.access.guestless = False


def permit(broker, user, permissions):
    """Change a user's permissions; the predeclared guest is then a user like others. Raises ValueError for an invalid expression."""
    before, had, was = definition_of(user), user.permissions, user.predeclared
    user.permit(permissions)
    user.predeclared = False
    try:
        note(broker, user, before)
    except Exception:  # all or nothing: what is not in the log is not in force
        user.permit(had)
        user.predeclared = was
        raise


def remove(broker, name):
    """Remove a user; its sessions may do nothing more, and its connections are closed. Raises ProtocolError."""
    user = broker.access.users.get(name)
    if user is None:
        raise ProtocolError(NOT_FOUND, "there is no user '%s'" % name)
    if user.configured:
        raise ProtocolError(PRECONDITION_FAILED, "user '%s' is in the configuration file: remove it there" % name)
    if name == GUEST:  # the log knows it too where it was changed, and without it a start would make the predeclared one
        define(broker, NO_GUEST)
        broker.access.guestless = True
    if not user.predeclared:
        define(broker, {"gone": "user", "name": name})
    broker.access.remove(name)
    end(broker, user)


def end(broker, user):
    """Ask the broker to close the connections of a deleted user before it delivers anything again."""
    if broker.jobs and isinstance(broker.jobs[0], Removal):
        broker.jobs[0].users.append(user)
    else:
        broker.jobs.insert(0, Removal(broker, user))


class Removal:
    """A job of the broker (Broker.run): not done at once, because it may be one of these connections that asks for the removal."""

    subject = "the connections of a removed user%s"

    def __init__(self, broker, user):
        self.broker = broker
        self.users = [user]

    def work(self):
        """Close the user's connections, in RabbitMQ's words."""
        for connection in list(self.broker.connections):
            if connection.user in self.users:
                connection.guarded(lambda connection=connection: connection.close("user '%s' is deleted" % connection.user.name))


def definition_of(user):
    """A user as the log has it; None for one that it does not have."""
    if user is None or user.configured or user.predeclared:
        return None
    definition = {
        "kind": "user",
        "name": user.name,
        "password": "" if user.stored is None else user.stored.text(),
        "tags": list(user.tags),
        "permissions": None if user.permissions is None else list(user.permissions),
    }
    if user.limits:
        definition["limits"] = dict(user.limits)
    if user.topics is not None:
        definition["topics"] = {exchange: list(user.topics.rows[exchange]) for exchange in user.topics.rows}
    return definition


def note(broker, user, before):
    """Log the definition of a user that has changed."""
    definition = definition_of(user)
    if definition is not None and definition != before:
        define(broker, definition)


def define(broker, definition):
    """Log a definition, where there is a log."""
    if broker.journal is not None:
        broker.journal.define(definition)


def definitions(broker):
    """The definitions of all users, in an order in which they can be made again."""
    if broker.access.guestless:
        yield NO_GUEST
    for user in broker.access.users.values():
        definition = definition_of(user)
        if definition is not None:
            yield definition


def restore(broker, definition):
    """Restore users from logged definitions. Raises ProtocolError when the limits have no room."""
    access = broker.access
    name = definition["name"]
    known = access.users.get(name)
    if definition["kind"] == NO_GUEST["kind"]:
        access.guestless = True
        if known is not None and known.predeclared:
            access.remove(name)
    elif known is None or not known.configured:
        put(
            broker,
            User(
                name,
                passwords.stored(definition["password"]) if definition["password"] else None,
                definition["tags"],
                None,
                broker.limits.granted_count_max,
                pattern_size_max(broker.limits),
            ),
        )
        access.users[name].limits = definition.get("limits")
        try:
            access.users[name].permit(definition["permissions"])
        except ValueError as error:  # another interpreter has logged it
            access.users[name].permit(None)
            broker.log("user '%s' comes back without permissions: %s" % (name, error))
        if definition.get("topics") or access.users[name].topics is not None:
            needed("access.topic_permissions", "topic permissions").restored(broker, access.users[name], definition.get("topics"))

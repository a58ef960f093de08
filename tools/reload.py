"""A running broker reads its configuration file anew (SIGHUP): users with their permissions, and policies. The rest is for a start.

Laws: a file with a mistake changes nothing, in one sentence. One user a step: a password in the clear takes a long calculation, and nobody
waits for all of them. A user that is gone from the file is removed as by management, its connections end; users of the log or of
definitions stay. A policy stays until it is removed by its name, as over a start with --data; one that is gone from the file is named.
"""

from leveret.core.access import users
from leveret.core.errors import ProtocolError

from . import config
from .operator_log import ERROR, WARNING
from .usage import UsageError

STARTS = {"listen": "listen", "http": "http", "limits": "[limits]", "data": "[data]", "node": "[[node]]", "bridge": "[[bridge]]"}


class Reload:
    """One reading of the file at `path`. `at_start`: config.read_at_start of then; `named`: the policies that it named when it was
    read last; `say(sentence, level)`."""

    def __init__(self, broker, path, at_start, named, say):
        self.broker = broker
        self.path = path
        self.named = named
        self.say = say
        self.made = {}
        self.tables = ()
        self.policies: list = []
        self.left: list | None = None  # tables of users to come
        try:
            now = config.read_at_start(path)
            self.tables, self.anonymous = config.user_tables(path)
            self.policies = config.policies(path)
            self.left = list(self.tables)
        except UsageError as error:
            self.refuse(error)
            return
        for key, name in STARTS.items():
            if now[key] != at_start[key]:
                say(f"{path} has another {name} than at the start: it takes effect with the next one", WARNING)

    def refuse(self, error):
        """The file has a mistake."""
        self.left = None
        self.say(f"users and policies stay as they are: {error}", ERROR)

    def step(self):
        """Go on; true when it is over."""
        if self.left is None:
            return True
        try:
            if self.left:
                made = config.user(self.path, self.left.pop(0), self.broker.limits)
                self.made[made.name] = made
                return False
            config.check_users(self.path, self.made, self.tables, self.anonymous)
        except UsageError as error:
            self.refuse(error)
            return True
        told = self.put_users()
        self.put_policies()
        self.say(
            f"read anew from {self.path}: {told}, {len(self.policies)} policies; listeners, limits, data and bridges are read at a "
            "start only"
        )
        return True

    def put_users(self):
        """Make the file's users those that it has now; what came of it, in words."""
        access = self.broker.access
        if not self.made:
            if any(user.configured for user in access.users.values()):
                self.say(
                    f"{self.path} names no [[user]] any more: users stay as they are until the next start, which would make guest", WARNING
                )
            return "no users"
        added = 0
        for user in self.made.values():
            if user.name not in access.users:
                if len(access.users) >= self.broker.limits.user_count_max:
                    self.say(f"user {user.name!r} is left out: there are {len(access.users)} already (user_count_max)", ERROR)
                    continue
                added += 1
            access.put(user)
            access.users[user.name].configured = True
        gone = [user for user in access.users.values() if (user.configured or user.predeclared) and user.name not in self.made]
        for user in gone:
            access.remove(user.name)
            if user.configured:
                users.define(self.broker, {"gone": "user", "name": user.name})  # one of its name that the log had is not to come back
            users.end(self.broker, user)
        access.anonymous = self.anonymous
        return f"{len(self.made)} users ({added} new, {len(gone)} removed)"

    def put_policies(self):
        """Set the file's policies."""
        names = [policy.name for policy in self.policies]
        for policy in self.policies:
            try:
                self.broker.policies.set(self.broker, policy)
            except ProtocolError as error:
                self.say(config.of_policy(policy.name, error), ERROR)
        for name in self.named:
            if name not in names and name in self.broker.policies.by_name:
                self.say(f"policy {name!r} is not in {self.path} any more; it stays until it is removed by its name", WARNING)
        self.named = names

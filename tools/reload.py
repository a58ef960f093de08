"""A running broker reads its configuration file anew (SIGHUP, `leveret reload`): users with their permissions, policies, bridges, the
limits of LIVE, the log's level. It says what changed, and what waits for a start.

Laws: a file with a mistake changes nothing, in one sentence: everything is looked at before anything changes. One user a step: a password
in the clear takes a long calculation, and nobody waits for all of them. A user that is gone from the file is removed as by management, its
connections end; users of the log or of definitions stay. A policy stays until it is removed by its name, as over a start with --data; one
that is gone from the file is named. A bridge whose table has changed ends, with what it owes confirmed, and begins anew.
"""

from leveret.core.access import users
from leveret.core.errors import ProtocolError
from leveret.core.limits import GATEWAY

from . import config
from .operator_log import ERROR, INFO, LEVELS, WARNING
from .usage import UsageError

STARTS = {
    "listen": "listen",
    "http": "http",
    "events": "events",
    "vhost": "vhost",
    "vhost_aliases": "vhost_aliases",
    "data": "[data]",
    "node": "[[node]]",
}
# Limits that nothing was made by: each is looked at when it matters.
LIVE = (
    "stranger_share_max",
    "content_timeout_ms",
    "heartbeat_s",
    "consumer_timeout_ms",
    "send_timeout_ms",
    "login_timeout_ms",
    "login_pause_ms",
    "login_failure_max",
    "login_user_failure_max",
    "login_refusal_ms",
    "password_rounds",
    "session_timeout_s",
    "staged_age_s",
)


class Reload:
    """One reading of the file at `path`. `at_start`: config.read_at_start of then; `named`: the policies that it named when it was
    read last; `say(sentence, level)`; `bridges`: a live.LiveBridges, or None; `log`: the OperatorLog whose level the file has, or None.
    `failed`: the file has a mistake."""

    def __init__(self, broker, path, at_start, named, say, bridges=None, log=None):
        self.broker = broker
        self.path = path
        self.named = named
        self.say = say
        self.bridges = bridges
        self.log = log
        self.failed = False
        self.made = {}
        self.tables = ()
        self.policies: list = []
        self.left: list | None = None  # tables of users to come
        try:
            self.now = config.read_at_start(path)
            self.check()
        except UsageError as error:
            self.refuse(error)
            return
        for key, name in STARTS.items():
            if self.now[key] != at_start[key]:
                say(f"{path} has another {name} than at the start: it takes effect with the next one", WARNING)
        if self.waiting(self.now) != self.waiting(at_start):
            say(f"{path} has another [limits] than at the start: it takes effect with the next one", WARNING)

    def check(self):
        """Look at all of the file but passwords. Raises UsageError."""
        path = self.path
        for look in (config.listeners, config.http, config.virtual_host, config.made_on_use):
            look(path)
        self.tables, self.anonymous = config.user_tables(path)
        self.policies = config.policies(path)
        self.settings = config.bridges(path)
        self.limits = config.limits_changed(path, self.broker.limits, LIVE)
        self.left = list(self.tables)

    @staticmethod
    def waiting(settings):
        """The names in [limits] that wait for the next start, of config.read_at_start's settings."""
        return {name: value for name, value in (settings["limits"] or {}).items() if name not in LIVE}

    def refuse(self, error):
        """The file has a mistake."""
        self.left = None
        self.failed = True
        self.say(f"users and policies stay as they are, and all else too: {error}", ERROR)

    def step(self):
        """Go on; true when it is over."""
        if self.left is None:
            return True
        try:
            if self.left:
                made = config.user(self.path, self.left.pop(0), self.broker.limits, self.broker.virtual_host)
                self.made[made.name] = made
                return False
            config.check_users(self.path, self.made, self.tables, self.anonymous)
            self.check_count()
            self.put_policies()
        except UsageError as error:
            self.refuse(error)
            return True
        changes = [self.put_users(), f"{len(self.policies)} policies", *self.put_limits()]
        if self.bridges is not None:
            changes += self.bridges.change(config.bridge_tables(self.path), self.settings)
        level = LEVELS[self.now["log_level"] or "info"]
        if self.log is not None and level != self.log.least:
            changes.append(f"log_level {self.now['log_level'] or 'info'}")
            self.log.least = max(level, self.log.least)  # the sentence below is told in any case
        self.say(f"read anew from {self.path}: {', '.join(changes)}; listeners, data and the other limits are read at a start only", INFO)
        if self.log is not None:
            self.log.least = level
        return True

    def check_count(self):
        """Raise UsageError when the file has more users than there is room for."""
        known = self.broker.access.users
        kept = [user for user in known.values() if not user.configured and not user.predeclared and user.name not in self.made]
        if len(kept) + len(self.made) > self.broker.limits.user_count_max and any(name not in known for name in self.made):
            raise UsageError(
                f"{self.path} has {len(self.made)} users, and there are {len(kept)} others: "
                f"this broker holds {self.broker.limits.user_count_max} (user_count_max)"
            )

    def put_users(self):
        """Make the file's users those that it has now; what came of it, in words."""
        access = self.broker.access
        if not self.made:
            if any(user.configured for user in access.users.values()):
                self.say(
                    f"{self.path} names no [[user]] any more: users stay as they are until the next start, which would make guest", WARNING
                )
            return "no users"
        gone = [user for user in access.users.values() if (user.configured or user.predeclared) and user.name not in self.made]
        for user in gone:
            access.remove(user.name)
            if user.configured:
                users.define(self.broker, {"gone": "user", "name": user.name})  # one of its name that the log had is not to come back
            users.end(self.broker, user)
        added = 0
        for user in self.made.values():
            added += user.name not in access.users
            known = access.users.get(user.name, user)
            known.topics, known.limits = user.topics, user.limits  # those that the log had for it before it came into the file do not count
            access.put(user)
            known.configured = True
        access.anonymous = self.anonymous
        return f"{len(self.made)} users ({added} new, {len(gone)} removed)"

    def put_policies(self):
        """Set the file's policies, all or none. Raises UsageError."""
        broker, known = self.broker, dict(self.broker.policies.by_name)
        done: list = []
        try:
            for policy in self.policies:
                done.append(policy)
                broker.policies.set(broker, policy)
        except ProtocolError as error:
            for policy in done[:-1]:
                before = known.get(policy.name)
                if before is None:
                    broker.policies.remove(broker, policy.name)
                else:
                    broker.policies.set(broker, before)
            raise UsageError(f"{self.path}: {config.of_policy(done[-1].name, error)}") from None
        names = [policy.name for policy in self.policies]
        for name in self.named:
            if name not in names and name in broker.policies.by_name:
                self.say(f"policy {name!r} is not in {self.path} any more; it stays until it is removed by its name", WARNING)
        self.named = names

    def put_limits(self):
        """Change the limits that may be; each in words."""
        given = self.now["limits"] or {}
        for name in LIVE:
            value = getattr(self.limits, name) if name in given else GATEWAY[name]
            before = getattr(self.broker.limits, name)
            if value != before:
                setattr(self.broker.limits, name, value)
                yield f"{name} {value} (was {before})"

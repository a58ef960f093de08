"""`leveret users`: who may log in to a running broker, and what each may.

    leveret users list [--json] [URL]
    leveret users add NAME [--tags TAG,TAG] [--password-hash HASH] [--replace] [URL]    asks for the password, or reads it
    leveret users grant NAME [--configure RE] [--write RE] [--read RE] [URL]     what is left out permits nothing
    leveret users grant-topic NAME EXCHANGE [--write RE] [--read RE] [URL]     routing keys that it may publish, and bind, there
    leveret users clear-topics NAME [URL]
    leveret users limit NAME [--connections N] [--channels N] [URL]            at a time; -1: no limit
    leveret users remove NAME [URL]

They need the tag administrator. Passwords are hashed here: the broker gets the hash alone. With `serve --data` what they change is kept.
Users of the configuration file are changed there.
"""

import os

from leveret.core.access.passwords import SALT_SIZE, hashed, stored
from leveret.core.access.permissions import User
from leveret.core.limits import GATEWAY
from leveret.core.management import rabbitmq_definitions

from . import manage
from .asking import add_url, answers, manager
from .password import ask
from .rows import show
from .usage import UsageError

COLUMNS = ("name", "tags", "configure", "write", "read", "topics", "limits")
PERMISSIONS = ("configure", "write", "read")


def add_users(parser):
    """The arguments of `users`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("list", "show users with their tags and permissions"),
        ("add", "add a user; its password comes from standard input, or is asked for"),
        ("grant", "set a user's permissions"),
        ("grant-topic", "set what a user may do at a topic exchange, by the routing key"),
        ("clear-topics", "take a user's topic permissions away: the routing key is not looked at"),
        ("limit", "set how many connections and channels a user may have at a time"),
        ("remove", "remove a user, and close its connections"),
    ):
        action = actions.add_parser(name, help=text)
        if name == "list":
            action.add_argument("--json", action="store_true", help="an array of objects")
        else:
            action.add_argument("name", metavar="NAME", help="of the user")
        if name == "add":
            action.add_argument("--tags", default="", metavar="TAG,TAG", help="administrator, policymaker, monitoring, management")
            action.add_argument("--password-hash", metavar="HASH", help="as `leveret password` prints it, or RabbitMQ's SHA-256 hash")
            action.add_argument("--replace", action="store_true", help="give a user who is there this password and these tags")
        if name == "grant":
            for permission in PERMISSIONS:
                action.add_argument("--" + permission, default="", metavar="RE", help="regular expression of names (default: none)")
        if name == "grant-topic":
            action.add_argument("exchange", metavar="EXCHANGE", help="a topic exchange")
            for permission in ("write", "read"):
                action.add_argument("--" + permission, default="", metavar="RE", help="regular expression of routing keys (default: none)")
        if name == "limit":
            for kind in ("connections", "channels"):
                action.add_argument("--" + kind, type=int, metavar="N", help="at a time; -1: no limit")
        add_url(action)


def users(options):
    """Do one of the actions."""
    with manager(options.url) as asked:
        ACTIONS[options.action](asked, options)


def listed(asked, options):
    """Show them."""
    _, items = asked.pages("definitions")
    permissions = {row["user"]: row for row in items.get("permissions", [])}
    rows = []
    for user in items.get("users", []):
        name = user["name"]
        topics = {row["exchange"]: [row["write"], row["read"]] for row in items.get("topic_permissions", []) if row["user"] == name}
        rows.append({**user, **{each: permissions.get(name, {}).get(each) for each in PERMISSIONS}, "topics": topics})
    show(COLUMNS, sorted(rows, key=lambda row: row["name"]), options.json)


def the_user(asked, name):
    """The definition of a user, or None."""
    _, items = asked.pages("definitions")
    return next((row for row in items.get("users", []) if row["name"] == name), None)


def add(asked, options):
    """Add a user, or replace password and tags."""
    if not options.replace and the_user(asked, options.name) is not None:
        raise manage.ManageFailed(f"there is a user {options.name!r} already (--replace gives it a new password and tags)")
    try:
        hash_ = stored(options.password_hash) if options.password_hash else hashed(ask(), os.urandom(SALT_SIZE), GATEWAY["password_rounds"])
    except ValueError as error:
        raise UsageError(f"--password-hash: {error}") from None
    tags = [tag.strip() for tag in options.tags.split(",") if tag.strip()]
    imported(asked, users=[rabbitmq_definitions.a_user(User(options.name, hash_, tags))])


def grant(asked, options):
    """Set permissions."""
    granted = {name: getattr(options, name) for name in PERMISSIONS}
    imported(asked, permissions=[dict(granted, user=options.name)])


def grant_topic(asked, options):
    """Set topic permissions of an exchange."""
    row = {"user": options.name, "exchange": options.exchange, "write": options.write, "read": options.read}
    imported(asked, topic_permissions=[row])


def limit(asked, options):
    """Set limits; those that are not given stay as they are."""
    user = the_user(asked, options.name)
    if user is None:
        raise manage.ManageFailed(f"there is no user {options.name!r}")
    given = {"max-connections": options.connections, "max-channels": options.channels}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        raise UsageError("give --connections, --channels, or both")
    imported(asked, users=[{**user, "limits": {**user.get("limits", {}), **given}}])


def imported(asked, **sections):
    """Load definitions, all or none of them. Raises ManageFailed."""
    left_out = asked.ask("import", definitions=sections)["left_out"]
    if left_out:
        raise manage.ManageFailed("; ".join(left_out))


ACTIONS = {
    "list": listed,
    "add": add,
    "grant": grant,
    "grant-topic": grant_topic,
    "clear-topics": lambda asked, options: asked.ask("clear-topic-permissions", name=options.name),
    "limit": limit,
    "remove": lambda asked, options: asked.ask("remove-user", name=options.name),
}
COMMANDS = {"users": (add_users, answers("users", users))}

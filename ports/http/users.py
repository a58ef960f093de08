"""Users, their permissions, topic permissions and limits, and what this broker has none of, which is listed empty.

Passwords come in the clear or as a hash of RabbitMQ's SHA-256; those in the clear are kept as PBKDF2. Users of the configuration file are
changed there.
"""

import hashlib
import os
from typing import Any

from ...core.access import passwords, topic_permissions, user_limits
from ...core.access import users as known
from ...core.access.permissions import User
from ...core.limits import pattern_size_max
from ...core.management import rabbitmq_definitions
from . import answers, listing
from .answers import Answer, bad
from .call import Call, flag, is_text, missing, text
from .changes import done, new_or_not
from .credentials import COOKIE
from .listing import Work

SALT_SIZE = 16
RABBIT_SALT_SIZE = 4


def whoami(call: Call) -> Answer:
    """/api/whoami."""
    return answers.of({"name": call.user.name, "tags": list(call.user.tags)})


def log_in(call: Call) -> Answer:
    """POST /api/login of who is logged in by Basic authentication: a cookie that stands for it, which no script can read and no other site
    can use. A browser keeps it for as long as it runs."""
    return Answer(204, headers=cookie(call, call.server.sessions.begin(call.user), ""))


def log_out(call: Call) -> Answer:
    """DELETE /api/login."""
    call.server.sessions.end(call.headers.get("cookie", ""))
    return Answer(204, headers=cookie(call, "", "; Max-Age=0"))


def cookie(call: Call, token: str, more: str) -> tuple[tuple[str, str], ...]:
    """The header that sets the cookie (RFC 6265 section 4.1; SameSite: RFC 6265bis)."""
    secure = "; Secure" if call.stream_has_tls() else ""
    return (("set-cookie", f"{COOKIE}={token}; Path=/api; HttpOnly; SameSite=Strict{secure}{more}"),)


def all_users(call: Call) -> Work:
    """/api/users."""
    return listing.plain(call, [rabbitmq_definitions.a_user(user) for user in call.broker.access.users.values()])


def without_permissions(call: Call) -> Work:
    """/api/users/without-permissions."""
    users = [user for user in call.broker.access.users.values() if user.permissions is None]
    return listing.plain(call, [rabbitmq_definitions.a_user(user) for user in users])


def the_user(call: Call) -> Any:
    """The user that the path names. Raises Refused."""
    user = call.broker.access.users.get(call.names["user"])
    if user is None:
        raise answers.not_found()
    return user


def user(call: Call) -> Answer:
    """/api/users/NAME."""
    return listing.one(call, rabbitmq_definitions.a_user(the_user(call)))


def changed(call: Call) -> Any:
    """The user that the path names, which may be changed here. Raises Refused."""
    user_ = the_user(call)
    refuse_configured(user_)
    return user_


def refuse_configured(user: Any) -> None:
    """Raise for a user whom the configuration file has."""
    if user is not None and user.configured:
        raise bad(f"user '{user.name}' is in the configuration file: change it there and reload")


def put_user(call: Call) -> Answer:
    """PUT /api/users/NAME: password or password_hash, tags."""
    given = call.json()
    name = call.names["user"]
    before = call.broker.access.users.get(name)
    refuse_configured(before)
    if not 0 < len(name.encode()) <= 255:
        raise bad("a user's name has 1 to 255 octets")
    limits = call.broker.limits
    stored: Any = None
    if "tags" not in given and "administrator" in given:  # RabbitMQ's word for the one tag of old
        given["tags"] = "administrator" if flag(given, "administrator") else ""
    if "tags" not in given:
        raise bad("tags_not_present")
    if "password" in given and "password_hash" in given:
        raise bad("both_password_and_password_hash_are_provided")
    if given.get("password"):
        stored = passwords.hashed(text(given, "password"), os.urandom(SALT_SIZE), limits.password_rounds)
    else:
        try:
            stored = rabbitmq_definitions.stored({key: value for key, value in given.items() if value is not None})
        except ValueError as error:
            raise bad(str(error)) from None
    made = User(name, stored, tags_of(given["tags"]), None, limits.granted_count_max, pattern_size_max(limits))
    known.put(call.broker, made)
    return new_or_not(call, before is None)


def tags_of(given: Any) -> list[str]:
    """Tags: a text with commas, or a list."""
    tags = [tag.strip() for tag in given.split(",") if tag.strip()] if isinstance(given, str) else given
    if (
        not isinstance(tags, list)
        or len(tags) > 16
        or any(not isinstance(tag, str) or not is_text(tag) or len(tag.encode()) > 255 for tag in tags)
    ):
        raise bad("tags are a text with commas, or a list, of at most 16 words")
    return tags


def delete_user(call: Call) -> Answer:
    """DELETE /api/users/NAME."""
    known.remove(call.broker, changed(call).name)
    return done(call)


def delete_users(call: Call) -> Answer:
    """POST /api/users/bulk-delete: {"users": [name, ...]}."""
    names = call.json().get("users")
    if not isinstance(names, list) or any(not isinstance(name, str) for name in names):
        raise bad("[{key_missing,users}]")
    for name in names:
        user_ = call.broker.access.users.get(name)
        if user_ is None:
            raise answers.Refused(400, "bad_request", ["no_such_user", name[:64]])
        refuse_configured(user_)
    for name in names:
        if name in call.broker.access.users:  # a name may stand there twice
            known.remove(call.broker, name)
    return done(call)


def hash_password(call: Call) -> Answer:
    """/api/auth/hash_password/PASSWORD: {"ok": a hash of it, as RabbitMQ's definitions have them}, for password_hash."""
    salt = os.urandom(RABBIT_SALT_SIZE)
    return answers.of({"ok": passwords.Rabbit(salt, hashlib.sha256(salt + call.names["password"].encode()).digest()).text()})


def queues_of(call: Call) -> Work:
    """/api/users/NAME/queues: those that the user has declared. Nobody notes who declares a queue, but of the exclusive ones."""
    name = call.names["user"]
    shape = call.server.shapes.queue
    owned = [each for each in call.broker.queues.values() if each.owner is not None and each.owner.user.name == name]
    return listing.plain(call, [row for each in owned if (row := shape(each)) is not None] if call.sees_into() else [])


# Permissions


def rows(call: Call, users: list[Any]) -> Work:
    """The permissions of users."""
    host = call.broker.virtual_host
    return listing.plain(call, [rabbitmq_definitions.a_permission(host, each) for each in users if each.permissions is not None])


def permissions(call: Call) -> Work:
    """/api/permissions, /api/vhosts/VHOST/permissions."""
    call.host()
    return rows(call, list(call.broker.access.users.values()))


def permissions_of(call: Call) -> Work:
    """/api/users/NAME/permissions."""
    return rows(call, [the_user(call)])


def permission(call: Call) -> Answer:
    """/api/permissions/VHOST/USER."""
    call.host()
    user_ = the_user(call)
    if user_.permissions is None:
        raise answers.not_found()
    return listing.one(call, rabbitmq_definitions.a_permission(call.broker.virtual_host, user_))


def permitted(call: Call) -> Any:
    """The user whose permissions in the virtual host of the path a request changes. Raises Refused in RabbitMQ's words."""
    if not call.is_ours() or call.names["user"] not in call.broker.access.users:
        raise bad("vhost_or_user_not_found")
    return changed(call)


def put_permission(call: Call) -> Answer:
    """PUT /api/permissions/VHOST/USER."""
    user_ = permitted(call)
    given = call.json()
    is_new = user_.permissions is None
    expressions = [text(given, name) for name in ("configure", "write", "read")]
    if any(len(each.encode()) > call.broker.limits.argument_size_max for each in expressions):
        raise bad("a permission is too long")
    try:
        known.permit(call.broker, user_, expressions)
    except ValueError as error:
        raise bad(str(error)) from None
    return new_or_not(call, is_new)


def delete_permission(call: Call) -> Answer:
    """DELETE /api/permissions/VHOST/USER."""
    call.host()
    user_ = changed(call)
    if user_.permissions is None:
        raise answers.not_found()
    known.permit(call.broker, user_, None)
    return done(call)


# Topic permissions


def topic_rows(call: Call, users: list[Any]) -> Work:
    """The topic permissions of users."""
    host = call.broker.virtual_host
    return listing.plain(call, [row for each in users for row in rabbitmq_definitions.topic_rows(host, each)])


def topics(call: Call) -> Work:
    """/api/topic-permissions, /api/vhosts/VHOST/topic-permissions."""
    call.host()
    return topic_rows(call, list(call.broker.access.users.values()))


def topics_of(call: Call) -> Work:
    """/api/users/NAME/topic-permissions."""
    return topic_rows(call, [the_user(call)])


def topics_of_one(call: Call) -> Work:
    """/api/topic-permissions/VHOST/USER."""
    call.host()
    user_ = the_user(call)
    if user_.topics is None:
        raise answers.not_found()
    return topic_rows(call, [user_])


def put_topic(call: Call) -> Answer:
    """PUT /api/topic-permissions/VHOST/USER: {"exchange", "write", "read"}."""
    user_ = permitted(call)
    given = call.json()
    is_new = user_.topics is None
    exchange, *expressions = [text(given, name) for name in ("exchange", "write", "read")]
    if len(exchange.encode()) > topic_permissions.TEXT_MAX:
        raise bad(f"an exchange's name has at most {topic_permissions.TEXT_MAX} octets")
    try:
        topic_permissions.put(call.broker, user_, exchange, expressions)
    except ValueError as error:
        raise bad(str(error)) from None
    return new_or_not(call, is_new)


def delete_topics(call: Call) -> Answer:
    """DELETE /api/topic-permissions/VHOST/USER: all of the user's."""
    call.host()
    user_ = changed(call)
    if user_.topics is None:
        raise answers.not_found()
    topic_permissions.clear(call.broker, user_)
    return done(call)


def delete_topic(call: Call) -> Answer:
    """DELETE /api/topic-permissions/VHOST/USER/EXCHANGE: those of one exchange."""
    call.host()
    user_ = changed(call)
    if user_.topics is None:
        raise answers.not_found()
    rows = {name: row for name, row in user_.topics.rows.items() if name != call.names["exchange"]}
    if len(rows) < len(user_.topics.rows):
        topic_permissions.change(call.broker, user_, rows)
    return done(call)


# Limits


def limits(call: Call) -> Work:
    """/api/user-limits: of those who have any."""
    return listing.plain(call, [limits_row(each) for each in call.broker.access.users.values() if each.limits])


def limits_of(call: Call) -> Work:
    """/api/user-limits/NAME: one's own, or an administrator's to see."""
    if call.names["user"] != call.user.name and not call.has_tag("administrator"):
        raise answers.forbidden("User not authorised to access object")
    user_ = the_user(call)
    return listing.plain(call, [limits_row(user_)] if user_.limits else [])


def limits_row(user: Any) -> dict[str, Any]:
    """A user's limits."""
    return {"user": user.name, "value": dict(user.limits)}


def put_limit(call: Call) -> Answer:
    """PUT /api/user-limits/NAME/LIMIT: {"value": number}, below 0 none."""
    given = call.json()
    if call.names["user"] not in call.broker.access.users:
        raise answers.Refused(400, "bad_request", ["no_such_user", call.names["user"][:64]])
    missing(given, "value")
    return with_limits(call, {call.names["name"]: given["value"]})


def delete_limit(call: Call) -> Answer:
    """DELETE /api/user-limits/NAME/LIMIT."""
    return with_limits(call, {call.names["name"]: -1})


def with_limits(call: Call, new: dict[str, Any]) -> Answer:
    """Change a user's limits."""
    user_ = changed(call)
    try:
        user_limits.put(call.broker, user_, {**(user_.limits or {}), **new})
    except ValueError as error:
        raise bad(str(error)) from None
    return done(call)


# What there is not


def nothing(call: Call) -> Answer:
    """A list of what this broker has none of."""
    call.host()
    return answers.of([])

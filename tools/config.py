"""The configuration file of `leveret serve`: TOML, every key checked.

The tables below have a row for each key; tools/SETTINGS.md shows them all, [board] and [[bridge]] too, with an example.
A mistake is one sentence that names the file, the key and what is allowed; an unknown key is a mistake. It opens nothing but the file.
"""

import os
from typing import Any

from leveret.core.access import passwords, permissions, topic_permissions
from leveret.core.amqp_1_0 import nodes
from leveret.core.broker.policies import APPLY_TO, PATTERN_SIZE_MAX, PRIORITY_MAX, Policy
from leveret.core.errors import ProtocolError
from leveret.core.limit_words import WORDS
from leveret.core.limits import ROWS, Limits, check_range, pattern_size_max
from leveret.core.patterns.expression import Pattern
from leveret.ports.setting_rows import is_tables, is_texts, octets_of, passing, quoted, reading, rows
from leveret.ports.settings import Table

from . import address, data
from .operator_log import LEVELS
from .usage import UsageError, checked, meant, read_toml

TAGS = ("administrator", "policymaker", "monitoring", "management", "impersonator")
NONCE_SIZE = 32
FRAME_OF_0_10 = 4096  # octets of a frame that each peer of AMQP 0-10 takes
MEMORY_MAX = "memory_max"  # in [limits]: what all of them together may take


def is_name(value):
    """True for what a virtual host may be called."""
    return isinstance(value, str) and 0 < len(value.encode()) <= 255 and value.isprintable()


def is_topics(value):
    """True for tables with write and read, by names of exchanges."""
    return isinstance(value, dict) and all(
        isinstance(each, dict) and set(each) == {"write", "read"} and is_texts(list(each.values())) for each in value.values()
    )


def limit(unit, words):
    """The kind of a limit: a number, or octets as a text; core/limits.py has its range."""
    return reading(words, lambda value: octets_of(value) if isinstance(value, str) and unit.startswith("octets") else value)


def in_table(name):
    """The kind of a setting that is a table."""
    return passing(f"a table, written [{name}]", lambda value: isinstance(value, dict))


def in_tables(name):
    """The kind of a setting that is any number of tables."""
    return passing(f"tables, each written [[{name}]]", is_tables)


VHOST = '{path}: {name} has {value!r}: a name is a text of 1 to 255 octets without control characters, as "/production"'
USER_NAME = '{path}: a [[user]] has a name of 1 to 255 octets, as name = "sensor"'
USER_PASSWORD = "{path}: user {user!r}: its password or password_hash is not a text, or an empty one"
TWO_PASSWORDS = "{path}: user {user!r}: it has both password and password_hash; one is enough"
ANONYMOUS = '{path}: anonymous is {value!r}; it must be {words}, as anonymous = "visitor"'
POLICY = "{path}: a [[policy]] has a name, a pattern and a definition"
KINDS = {
    "urls": passing('a list of URLs, as ["amqp://127.0.0.1:5672"]', is_texts),
    "vhost": passing("a name", is_name, VHOST),
    "level": quoted(*LEVELS),
    "yes-or-no": passing("true or false", lambda value: isinstance(value, bool)),
    "names": passing('a list of names, as ["/"]', lambda value: isinstance(value, list)),
    "user": passing("the name of a [[user]]", lambda value: isinstance(value, str), ANONYMOUS),
    "limit": limit("octets", "a whole number, or a text as 500K, 64M, 2G"),
    "user-name": passing("a name", lambda value: isinstance(value, str) and 0 < len(value.encode()) <= 255, USER_NAME),
    "password": passing("a text", lambda value: isinstance(value, str) and value != "", USER_PASSWORD),
    "tags": passing('a list of words, as ["administrator"]', is_texts),
    "permission": passing("a regular expression", lambda value: value is not None),
    "topics": passing('{ EXCHANGE = { write = "a regular expression", read = "another" } }', is_topics),
    "policy-name": passing("a name", lambda value: isinstance(value, str), POLICY),
    "pattern": passing("a regular expression", lambda value: isinstance(value, str), POLICY),
    "node-pattern": passing("a regular expression", lambda value: isinstance(value, str)),
    # core/broker/policies.py refuses others, for whoever makes a policy
    "definition": passing("a table of RabbitMQ's keys", lambda value: value is not None),
    "priority": passing(f"a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}", lambda value: value is not None),
    "apply-to": passing("one of " + ", ".join(APPLY_TO), lambda value: value is not None),
    **{f"[{name}]": in_table(name) for name in ("limits", "data", "board")},
    "node-kind": quoted(*nodes.KINDS),
    **{f"[[{name}]]": in_tables(name) for name in ("user", "node", "policy", "bridge")},
}
FILE = Table(
    rows(
        f"""
listen | urls | ["amqp://127.0.0.1:5672"] | | where; {address.FORMS}
http | urls | [] | | where the management API listens; {address.HTTP_FORMS}
log_level | level | "info" | | sentences of less weight are not told: info, warning or error; the option --log-level goes before it
events | yes-or-no | false | | whether what happens is told to the exchange amq.rabbitmq.event (tools/EVENTS.md)
vhost | vhost | "/" | at most 255 octets | the name of the one virtual host
vhost_aliases | names | [] | | other names by which clients may open it
limits | [limits] | | | below
data | [data] | | | below: messages kept on disk
anonymous | user | "" | | whom the ANONYMOUS mechanism logs in; without it that mechanism is off
user | [[user]] | | | below; left out: guest with the password guest and all rights, from loopback only
node | [[node]] | | | below: what AMQP 1.0 makes on use
policy | [[policy]] | | | below; with [data] a policy stays until it is removed by its name
bridge | [[bridge]] | | | below
board | [board] | | | below, for `leveret flash`
""",
        KINDS,
    ),
    "{path}: there is no setting {name!r}{hint}; there are {names}",
    "{path}: {name} must be {words}",
    hint=meant,
)
LIMITS = Table(
    rows(f"{MEMORY_MAX} | limit | | octets | what all limits may add up to; left out: half of what the machine has", KINDS)
    + tuple((name, limit(WORDS[name][0], f"a whole number ({WORDS[name][0]})"), gateway, *WORDS[name]) for name, gateway, *_ in ROWS),
    "{path}: there is no limit {name!r} in [limits]{hint}; there are {names}",
    "{path}: [limits] {name} is {value!r}; it must be {words}, or a text as 500K, 64M, 2G",
    hint=meant,
)
USER = Table(
    rows(
        f"""
name | user-name | | at most 255 octets | of the user
password | password | | | in the clear; without it and password_hash only a certificate (EXTERNAL) logs the user in
password_hash | password | | | what `leveret password` prints, or RabbitMQ's SHA-256 hash
tags | tags | [] | | of {", ".join(TAGS)}
configure | permission | | | names that the user may declare and delete; left out, as the others: none
write | permission | | | names that it may publish to and bind
read | permission | | | names that it may consume and bind from
topic_permissions | topics | | at most {topic_permissions.EXCHANGES_MAX} | keys that it may publish (write) and bind (read), by topic
 exchange: `{{ "amq.topic" = {{ write = "^{{username}}[.]", read = "" }} }}`
""",
        KINDS,
    ),
    "{path}: there is no setting {name!r} in [[user]]; there are {names}",
    "{path}: user {user!r}: {name} must be {words}",
    (
        ((), lambda values: values["name"] is not None, USER_NAME),
        (("password",), lambda values: values["password_hash"] is None, TWO_PASSWORDS),
    ),
)
POLICY_TABLE = Table(
    rows(
        """
name | policy-name | | | of the policy
pattern | pattern | | | the names that it is for
definition | definition | | | as RabbitMQ's: { message-ttl = 60000, max-length = 1000 }
priority | priority | 0 | rank | of several for a name the highest counts
apply-to | apply-to | "all" | | what of the names that fit has it
""",
        KINDS,
    ),
    "{path}: there is no setting {name!r} in [[policy]]; there are {names}",
    POLICY,
    (((), lambda values: values["name"] is not None and values["pattern"] is not None, POLICY),),
)


NODE = Table(
    rows(
        """
pattern | node-pattern | | | the names that it is for: a regular expression
kind | node-kind | "queue" | | queue (classic), quorum, stream, or an exchange of this type; durable
""",
        KINDS,
    ),
    "{path}: there is no setting {name!r} in [[node]]; there are {names}",
    "{path}: [[node]] {name} must be {words}",
    (((), lambda values: values["pattern"] is not None, "{path}: a [[node]] has a pattern"),),
)


def read(path):
    """The settings of the file at `path` by name, looked at each by itself; {} without a file. `path` may hold them already
    (tools/fleet.py's Filled). Raises UsageError."""
    if not path:
        return {}
    settings = getattr(path, "settings", None)
    if settings is None:
        settings = read_toml(path, "the configuration file {path} cannot be read: {reason}")
    checked(FILE.check, settings, path=path)
    return settings


def load(path):
    """(listener URLs, Limits) of the file at `path`. Raises UsageError."""
    settings = read(path)
    return _listen(path, settings.get("listen", [])), _limits(path, settings.get("limits", {}))


def virtual_host(path):
    """(name of the virtual host, its aliases) of the file at `path`; ("/", ()) without a file. Raises UsageError."""
    settings = read(path)
    name, aliases = settings.get("vhost", "/"), settings.get("vhost_aliases", [])
    wrong = [alias for alias in aliases if not is_name(alias)]
    if wrong:
        raise UsageError(VHOST.format(path=path, name="vhost_aliases", value=wrong[0]))
    if len({name, *aliases}) <= len(aliases):
        raise UsageError(f"{path}: vhost and vhost_aliases have a name twice")
    return name, tuple(aliases)


def listeners(path):
    """The URLs of `listen` in the file; none without a file. Raises UsageError."""
    return _listen(path, read(path).get("listen", []))


def http(path):
    """The places of `http` in the file; none without a file. Raises UsageError."""
    places = read(path).get("http", [])
    for place in places:
        try:
            address.parse_http(place)
        except UsageError as error:
            raise UsageError(f"{path}: http: {error}") from None
    return places


def limits_over(path, numbers):
    """Limits of the file's [limits] over `numbers`. Raises UsageError."""
    return _limits(path, read(path).get("limits", {}), numbers)


def users(path, limits):
    """[(table, core.access.permissions.User)] of the file's [[user]]. Raises UsageError."""
    access(path, limits)
    return [(table, user(path, table, limits)) for table in read(path).get("user", [])]


def kept(options):
    """The data.Data that the command line and the file choose, or None: messages stay in memory. Raises UsageError."""
    return data.chosen(options, options.config, read(options.config).get("data", {}))


def policies(path):
    """The Policies of the file at `path`; none without a file. Raises UsageError."""
    return [_policy(path, table) for table in read(path).get("policy", [])]


def made_on_use(path):
    """((Pattern, kind), ...) of the file's [[node]]: what AMQP 1.0 makes on use (core/amqp_1_0/nodes.py). Raises UsageError."""
    made = []
    for table in read(path).get("node", []):
        values = checked(NODE.full, table, path=path)
        try:
            made.append((Pattern(values["pattern"], PATTERN_SIZE_MAX), values["kind"]))
        except ValueError as error:
            raise UsageError(f"{path}: [[node]]: the pattern {values['pattern'][:80]!r} {error}") from None
    return tuple(made)


def _policy(path, table):
    values = checked(POLICY_TABLE.full, table, path=path)
    try:
        return Policy(*values.values())
    except ProtocolError as error:
        raise UsageError(f"{path}: {of_policy(table['name'], error)}") from None


def of_policy(name, error):
    """A ProtocolError about a policy, in words that name it."""
    return error.text if repr(name) in error.text else f"policy {name!r}: {error.text}"


def bridges(path):
    """The Settings of the [[bridge]] tables of the file at `path`; none without a file. Raises UsageError."""
    tables = read(path).get("bridge", [])
    if not tables:
        return []
    from leveret.ports.bridge.settings import Settings

    made = []
    for table in tables:
        try:
            made.append(Settings(table))
        except ValueError as error:
            raise UsageError(f"{path}: [[bridge]] {table.get('name', '')!r}: {error}") from None
        for other in made[:-1]:
            if other.name == made[-1].name:
                raise UsageError(f"{path}: there are two [[bridge]] of the name {other.name!r}")
            if other.gateway is not None and other.gateway == made[-1].gateway:
                raise UsageError(
                    f"{path}: [[bridge]] {other.name!r} and {made[-1].name!r} have the same gateway: their numbers "
                    "would be taken for doubles of each other; give each its own"
                )
    return made


def bridge_tables(path):
    """{name: table} of the file's [[bridge]]. Raises UsageError."""
    return {table.get("name"): table for table in read(path).get("bridge", [])}


def events(path):
    """Whether events are told. Raises UsageError."""
    return read(path).get("events", False)


def log_level(path):
    """The word for it in the file. Raises UsageError."""
    return read(path).get("log_level", "info")


def limits_changed(path, limits, names):
    """`limits` with those of the file's [limits] that are in `names`; the others are looked at. Raises UsageError."""
    given, _ = given_limits(path)
    try:
        for row in ROWS:
            if row[0] in given:
                check_range(row, given[row[0]])
        return Limits(**{row[0]: given[row[0]] if row[0] in names and row[0] in given else getattr(limits, row[0]) for row in ROWS})
    except ValueError as error:
        raise UsageError(f"{path}: [limits] {error}") from None


def access(path, limits):
    """The Access of the file at `path`, or with "" the one of a broker without a file. Raises UsageError."""
    tables, anonymous = user_tables(path)
    nonce = os.urandom(NONCE_SIZE)
    made = (
        permissions.Access([user(path, table, limits) for table in tables], nonce)
        if tables
        else permissions.default(limits, nonce, limits.password_rounds)
    )
    check_users(path, made.users, tables, anonymous)
    made.anonymous = anonymous
    return made


def user_tables(path):
    """(the [[user]] tables, the name of the user `anonymous`) of the file at `path`, as they stand there. Raises UsageError."""
    settings = read(path)
    return settings.get("user", []), settings.get("anonymous", "")


def check_users(path, names, tables, anonymous):
    """Raise UsageError unless `names` are those of so many tables, and of `anonymous`."""
    if len(names) < len(tables):
        raise UsageError(f"{path}: there are two [[user]] of the same name")
    if anonymous != "" and anonymous not in names:
        raise UsageError(f"{path}: anonymous is {anonymous!r}, and there is no [[user]] of that name")


def read_at_start(path):
    """{key: value} of what a broker reads at its start; of a later reading only a few count (tools/reload.py). Raises UsageError."""
    settings = read(path)
    return {key: settings.get(key) for key in ("listen", "http", "events", "log_level", "vhost", "vhost_aliases", "limits", "data", "node")}


def user(path, table, limits, host=None):
    """The User of a [[user]] table; a password in the clear takes `password_rounds` of calculation. `host`: the virtual host, None: the
    file's. Raises UsageError."""
    name = table.get("name")
    values = checked(USER.full, table, path=path, user=name)
    rights = [values[key] for key in ("configure", "write", "read")]
    granted = None if rights == [None] * 3 else tuple("" if each is None else each for each in rights)
    try:
        made = permissions.User(name, _stored(values, limits), values["tags"], granted, limits.granted_count_max, pattern_size_max(limits))
    except ValueError as error:
        raise UsageError(f"{path}: user {name!r}: {error}") from None
    try:
        rows = {exchange: (each["write"], each["read"]) for exchange, each in (values["topic_permissions"] or {}).items()}
        if any(len(exchange.encode()) > topic_permissions.TEXT_MAX for exchange in rows):
            raise ValueError(f"an exchange's name has at most {topic_permissions.TEXT_MAX} octets")
        made.topics = topic_permissions.Topics(made, virtual_host(path)[0] if host is None else host, rows) if rows else None
    except ValueError as error:
        raise UsageError(f"{path}: user {name!r}: topic_permissions: {error}") from None
    made.configured = True
    return made


def remarks(path):
    """Sentences about settings of a checked file that are valid, and may not do what their author meant."""
    said = []
    for table in read(path).get("user", []):
        name = table["name"]
        if "password" not in table and "password_hash" not in table:
            said.append(
                f"user {name!r} has no password: only a certificate (EXTERNAL) logs it in, or ANONYMOUS where anonymous names it; "
                "`leveret password` makes a password_hash"
            )
        for tag in table.get("tags", []):
            if tag not in TAGS:
                said.append(f"user {name!r}: the tag {tag!r} means nothing to this broker{meant(tag, TAGS)}; there are {', '.join(TAGS)}")
    return said


def _stored(values, limits):
    """The hash of a [[user]]'s password, or None when it has none. Raises ValueError."""
    if values["password_hash"] is not None:
        return passwords.stored(values["password_hash"])
    if values["password"] is None:
        return None
    return passwords.hashed(values["password"], os.urandom(passwords.SALT_SIZE), limits.password_rounds)


def _listen(path, urls):
    for url in urls:
        try:
            address.parse(url)
        except UsageError as error:
            raise UsageError(f"{path}: listen: {error}") from None
    return urls


def given_limits(path):
    """The limits of the file's [limits]: ({limit: number}, memory_max or None); ({}, None) without a file. Raises UsageError."""
    values = checked(LIMITS.check, read(path).get("limits", {}), path=path)
    return {name: value for name, value in values.items() if name != MEMORY_MAX}, values.get(MEMORY_MAX)


def _limits(path, values, numbers=None):
    given = checked(LIMITS.check, values, path=path)
    given.pop(MEMORY_MAX, None)
    try:
        made: Any = Limits(**dict(numbers or {}, **given))
    except ValueError as error:
        raise UsageError(f"{path}: [limits] {error}") from None
    if numbers is None and made.receive_buffer_size < FRAME_OF_0_10:  # a board says itself whether it serves 0-10
        raise UsageError(
            f"{path}: [limits] receive_buffer_size is {made.receive_buffer_size}: a peer of AMQP 0-10 may send frames of {FRAME_OF_0_10} "
            "octets (MIN-MAX-FRAME-SIZE), which have to fit in it"
        )
    return made

"""The configuration file of `leveret serve`: TOML, every key checked.

    listen = ["amqp://127.0.0.1:5672"]
    vhost = "/production"        # the name of the one virtual host; "/" when left out
    vhost_aliases = ["/"]        # other names by which clients may open it
    anonymous = "visitor"        # the user whom the ANONYMOUS mechanism logs in; without it that mechanism is off
    [limits]                     # names, units, ranges and effects: core/limits.py; what is not given is chosen by the machine's memory
    memory_max = "256M"          # what they may add up to; without it half of what the machine has (tools/memory.py)
    arena_size = "64M"           # octets may be a text; 67108864 is the same
    [data]                       # messages kept on disk; the keys: tools/data.py
    directory = "/var/lib/leveret"
    [[user]]                     # any number; without one there is guest with the password guest and all rights, from loopback only
    name = "sensor"
    password = "..."             # or password_hash: what `leveret password` prints, or RabbitMQ's SHA-256 hash; or neither (EXTERNAL)
    tags = ["monitoring"]
    configure = "^sensor\\."     # regular expressions, as RabbitMQ's permissions; one that is left out permits nothing
    write = "^sensors$"
    read = ".*"
    [[policy]]                   # any number; definition: as RabbitMQ's. With --data a policy stays until it is removed by its name
    name = "short"
    pattern = "^sensor\\."
    definition = { message-ttl = 60000, max-length = 1000 }
    priority = 0
    apply-to = "queues"          # all (when left out), queues, exchanges, streams, classic_queues
    [[bridge]]                   # any number; every setting: ports/bridge/settings.py
    name = "uplink"
    gateway = "gw7"              # an id that no other bridge has: x-gateway on every message, beside x-sequence
    stream = "readings"          # or queue = "..."
    upstream = ["amqps://gw7:secret@broker.example/?ca=/etc/leveret/ca.pem"]
    exchange = "telemetry"
    [board]                      # for `leveret flash` (tools/flash_settings.py); `leveret serve` passes over it

A mistake is one sentence that names the file, the key and what is allowed; an unknown key is a mistake. It opens nothing but the file.
"""
import os
import tomllib

from leveret.core import access as core_access
from leveret.core import password
from leveret.core.errors import ProtocolError
from leveret.core.limit_words import WORDS
from leveret.core.limits import ROWS, Limits, pattern_size_max
from leveret.core.policies import Policy

from . import address, data
from .usage import UsageError, meant

KEYS = ("listen", "vhost", "vhost_aliases", "limits", "data", "anonymous", "user", "policy", "bridge", "board")
USER_KEYS = ("name", "password", "password_hash", "tags", "configure", "write", "read")
POLICY_KEYS = ("name", "pattern", "definition", "priority", "apply-to")
TAGS = ("administrator", "policymaker", "monitoring", "management", "impersonator")
NONCE_SIZE = 32
MEMORY_MAX = "memory_max"  # in [limits]: what all of them together may take


def _read(path):
    """The file's settings, their names checked."""
    try:
        with open(path, "rb") as file:
            settings = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"the configuration file {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also for a number of thousands of digits
        raise UsageError(f"{path} is not TOML: {error}") from None
    for key in settings:
        if key not in KEYS:
            raise UsageError(f"{path}: there is no setting {key!r}{meant(key, KEYS)}; there are {', '.join(KEYS)}")
    return settings


def load(path):
    """(listener URLs, Limits) of the file at `path`. Raises UsageError."""
    settings = _read(path)
    return _listen(path, settings.get("listen", [])), _limits(path, settings.get("limits", {}))


def virtual_host(path):
    """(name of the virtual host, its aliases) of the file at `path`; ("/", ()) without a file. Raises UsageError."""
    settings = _read(path) if path else {}
    name, aliases = settings.get("vhost", "/"), settings.get("vhost_aliases", [])
    if not isinstance(aliases, list):
        raise UsageError(f"{path}: vhost_aliases must be a list of names, as [\"/\"]")
    for key, given in [("vhost", name)] + [("vhost_aliases", alias) for alias in aliases]:
        if not isinstance(given, str) or not 0 < len(given.encode()) <= 255 or not given.isprintable():
            raise UsageError(f"{path}: {key} has {given!r}: a name is a text of 1 to 255 octets without control "
                             "characters, as \"/production\"")
    if len({name, *aliases}) <= len(aliases):
        raise UsageError(f"{path}: vhost and vhost_aliases have a name twice")
    return name, tuple(aliases)


def listeners(path):
    """The URLs of `listen` in the file; none without a file. Raises UsageError."""
    return _listen(path, _read(path).get("listen", [])) if path else []


def board(path):
    """The [board] table of the file at `path`. Raises UsageError."""
    table = _read(path).get("board", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: board must be a table, written [board]")
    return table


def limits_over(path, numbers):
    """Limits of the file's [limits] over `numbers`. Raises UsageError."""
    return _limits(path, _read(path).get("limits", {}), numbers)


def users(path, limits):
    """[(table, core.access.User)] of the file's [[user]]. Raises UsageError."""
    access(path, limits)
    return [(table, user(path, table, limits)) for table in _read(path).get("user", [])]


def kept(options):
    """The data.Data that the command line and the file choose, or None: messages stay in memory. Raises UsageError."""
    table = _read(options.config).get("data", {}) if options.config else {}
    return data.chosen(options, options.config, table)


def names_users(path):
    """True when the file says who may log in."""
    return bool(path and _read(path).get("user"))


def policies(path):
    """The Policies of the file at `path`; none without a file. Raises UsageError."""
    tables = _read(path).get("policy", []) if path else []
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: policy must be tables, each written [[policy]]")
    return [_policy(path, table) for table in tables]


def _policy(path, table):
    unknown = [key for key in table if key not in POLICY_KEYS]
    if unknown:
        raise UsageError(f"{path}: there is no setting {unknown[0]!r} in [[policy]]; there are {', '.join(POLICY_KEYS)}")
    if not isinstance(table.get("name"), str) or not isinstance(table.get("pattern"), str):
        raise UsageError(f"{path}: a [[policy]] has a name, a pattern and a definition")
    try:
        return Policy(table["name"], table["pattern"], table.get("definition"), table.get("priority", 0), table.get("apply-to", "all"))
    except ProtocolError as error:
        raise UsageError(f"{path}: {of_policy(table['name'], error)}") from None


def of_policy(name, error):
    """A ProtocolError about a policy, in words that name it."""
    return error.text if repr(name) in error.text else f"policy {name!r}: {error.text}"


def bridge_tables(path):
    """The [[bridge]] tables of the file at `path`, as they stand there; none without a file. Raises UsageError."""
    tables = _read(path).get("bridge", []) if path else []
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: bridge must be tables, each written [[bridge]]")
    return tables


def bridges(path):
    """The Settings of the [[bridge]] tables of the file at `path`; none without a file. Raises UsageError."""
    tables = bridge_tables(path)
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
                raise UsageError(f"{path}: [[bridge]] {other.name!r} and {made[-1].name!r} have the same gateway: their numbers "
                                 "would be taken for doubles of each other; give each its own")
    return made


def access(path, limits):
    """The Access of the file at `path`, or with "" the one of a broker without a file. Raises UsageError."""
    tables, anonymous = user_tables(path)
    nonce = os.urandom(NONCE_SIZE)
    made = core_access.Access([user(path, table, limits) for table in tables], nonce) if tables else \
        core_access.default(limits, nonce, limits.password_rounds)
    check_users(path, made.users, tables, anonymous)
    made.anonymous = anonymous
    return made


def user_tables(path):
    """(the [[user]] tables, the name of the user `anonymous`) of the file at `path`, as they stand there. Raises UsageError."""
    settings = _read(path) if path else {}
    tables = settings.get("user", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: user must be tables, each written [[user]]")
    anonymous = settings.get("anonymous", "")
    if not isinstance(anonymous, str):
        raise UsageError(f"{path}: anonymous is {anonymous!r}; it must be the name of a [[user]], as anonymous = \"visitor\"")
    return tables, anonymous


def check_users(path, names, tables, anonymous):
    """Raise UsageError unless `names` are those of so many tables, and of `anonymous`."""
    if len(names) < len(tables):
        raise UsageError(f"{path}: there are two [[user]] of the same name")
    if anonymous != "" and anonymous not in names:
        raise UsageError(f"{path}: anonymous is {anonymous!r}, and there is no [[user]] of that name")


def read_at_start(path):
    """{key: value} of what a running broker does not read anew. Raises UsageError."""
    settings = _read(path) if path else {}
    return {key: settings.get(key) for key in ("listen", "vhost", "vhost_aliases", "limits", "data", "bridge")}


def user(path, table, limits):
    """The User of a [[user]] table; a password in the clear takes `password_rounds` of calculation. Raises UsageError."""
    unknown = [key for key in table if key not in USER_KEYS]
    if unknown:
        raise UsageError(f"{path}: there is no setting {unknown[0]!r} in [[user]]; there are {', '.join(USER_KEYS)}")
    name = table.get("name")
    if not isinstance(name, str) or not 0 < len(name.encode()) <= 255:
        raise UsageError(f"{path}: a [[user]] has a name of 1 to 255 octets, as name = \"sensor\"")
    tags = table.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise UsageError(f"{path}: user {name!r}: tags must be a list of words, as [\"administrator\"]")
    rights = tuple(table.get(key, "") for key in ("configure", "write", "read"))
    given = any(key in table for key in ("configure", "write", "read"))
    try:
        made = core_access.User(name, _stored(table, limits), tags, rights if given else None, limits.granted_count_max,
                                pattern_size_max(limits))
    except ValueError as error:
        raise UsageError(f"{path}: user {name!r}: {error}") from None
    made.configured = True
    return made


def remarks(path):
    """Sentences about what a checked file has that is taken, and may not do what was meant."""
    found = []
    for table in _read(path).get("user", []) if path else []:
        name = table["name"]
        if "password" not in table and "password_hash" not in table:
            found.append(f"user {name!r} has no password: only a certificate (EXTERNAL) logs it in, or ANONYMOUS where anonymous names it; "
                         "`leveret password` makes a password_hash")
        for tag in table.get("tags", []):
            if tag not in TAGS:
                found.append(f"user {name!r}: the tag {tag!r} means nothing to this broker{meant(tag, TAGS)}; there are {', '.join(TAGS)}")
    return found


def _stored(table, limits):
    """The hash of a [[user]]'s password, or None when it has none. Raises ValueError."""
    if "password" in table and "password_hash" in table:
        raise ValueError("it has both password and password_hash; one is enough")
    text = table.get("password", table.get("password_hash"))
    if text is None:
        return None
    if not isinstance(text, str) or text == "":
        raise ValueError("its password or password_hash is not a text, or an empty one")
    if "password_hash" in table:
        return password.stored(text)
    return password.hashed(text, os.urandom(password.SALT_SIZE), limits.password_rounds)


def _listen(path, urls):
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise UsageError(f"{path}: listen must be a list of URLs, as [\"amqp://127.0.0.1:5672\"]")
    for url in urls:
        try:
            address.parse(url)
        except UsageError as error:
            raise UsageError(f"{path}: listen: {error}") from None
    return urls


def given_limits(path):
    """What the file's [limits] gives: ({limit: number}, memory_max or None); ({}, None) without a file. Raises UsageError."""
    values = _given(path, _read(path).get("limits", {})) if path else {}
    return {name: value for name, value in values.items() if name != MEMORY_MAX}, values.get(MEMORY_MAX)


def _limits(path, values, numbers=None):
    found = _given(path, values)
    found.pop(MEMORY_MAX, None)
    try:
        return Limits(**dict(numbers or {}, **found))
    except ValueError as error:
        raise UsageError(f"{path}: [limits] {error}") from None


def _given(path, values):
    """[limits] with its names checked and sizes as numbers."""
    if not isinstance(values, dict):
        raise UsageError(f"{path}: limits must be a table, written [limits]")
    known = [MEMORY_MAX] + [row[0] for row in ROWS]
    for name in values:
        if name not in known:
            raise UsageError(f"{path}: there is no limit {name!r} in [limits]{meant(name, known)}; there are {', '.join(known)}")
    units = dict({name: words[0] for name, words in WORDS.items()}, memory_max="octets")
    for name, value in values.items():
        if isinstance(value, str) and units[name].startswith("octets"):
            found = data.octets_of(value)
            if found is None:
                raise UsageError(f"{path}: [limits] {name} is {value!r}; it must be a whole number ({units[name]}), or a text as 500K, "
                                 "64M, 2G")
            values = dict(values, **{name: found})
    return dict(values)

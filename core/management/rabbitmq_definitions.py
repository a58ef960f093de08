"""Definitions as RabbitMQ's JSON has them: users, permissions, policies, exchanges, queues and bindings of one virtual host.

Laws: what this broker does not serve is left out and named, never taken in silence; an item is loaded whole or not at all, but for single
keys that are named; loading the same item again changes nothing. Exclusive queues, the predeclared exchanges and the default exchange's
bindings are not definitions. What comes in was parsed from JSON and is checked here like anything else that comes from outside.
"""

import binascii

from ..access import passwords, users
from ..access.permissions import User
from ..broker.policies import Policy
from ..errors import ProtocolError
from ..exchange.base import ALTERNATE
from ..limits import pattern_size_max
from ..outcomes import nobody
from ..parts import needed, part
from ..queue import rules

SECTIONS = (
    "users",
    "permissions",
    "topic_permissions",
    "policies",
    "parameters",
    "global_parameters",
    "exchanges",
    "queues",
    "bindings",
)  # in the order of loading

RABBIT_HASH = passwords.Rabbit.algorithm  # where none is named

PARAMETERS = ("management.parameters", "parameters")  # the part that loads and shows them, and the word for them

DEPTH_MAX = 8  # as in a field table

ONE_HOST = "this broker has one virtual host, and '%s' was chosen (--vhost)"

IN_FILE = "the configuration file has this user and the last word on it: change it there and reload"

# In


def checked(document):
    """Raise ValueError with a sentence unless this is a dict whose sections are lists of dicts; other keys tell where it is from."""
    if not isinstance(document, dict):
        raise ValueError("definitions are a JSON object with lists called " + ", ".join(SECTIONS))
    for name in document:
        items = document[name]
        if name in SECTIONS and not isinstance(items, list):
            raise ValueError("'%s' of definitions must be a list" % name)
        if isinstance(items, list):
            for item in items:
                if not isinstance(item, dict):
                    raise ValueError("'%s' of definitions has something in it that is not an object: %r" % (name, item))


def ours(items, host):
    """The items of the virtual host that is chosen; RabbitMQ's export of one virtual host names none."""
    return [item for item in items if item.get("vhost", host) == host]


def left_out(document, host):
    """Sentences about what a checked document has beside the virtual host that is chosen: others, parameters, lists; with counts."""
    sentences = []
    for name in sorted(document):
        items = document[name]
        if not isinstance(items, list) or not items:
            continue
        if name == "vhosts":
            others = sorted([str(item.get("name")) for item in items if item.get("name") != host])
            if others:
                sentences.append("%s: %d left out ('%s'): %s" % (name, len(others), "', '".join(others), ONE_HOST % host))
        elif name in SECTIONS:
            sentences.extend(of_other_hosts(name, items, host))
        else:
            sentences.append("%s: %d left out: this broker does not know such definitions" % (name, len(items)))
    return sentences


def of_other_hosts(name, items, host):
    """One sentence for each virtual host that is not chosen."""
    counts: dict = {}
    for item in items:
        other = item.get("vhost", host)
        if other != host:
            counts[str(other)] = counts.get(str(other), 0) + 1
    return ["%s: %d of vhost '%s' left out: %s" % (name, counts[other], other, ONE_HOST % host) for other in sorted(counts)]


def load(broker, section, item):
    """Take one item of a section: (whether it was loaded, a sentence about what of it was left out and why, or "")."""
    try:
        note = LOADERS[section](broker, item)
        return True, note and "%s: loaded without %s" % (title(section, item), note)
    except ProtocolError as error:
        return False, "%s left out: %s" % (title(section, item), error.text)
    except ValueError as error:  # UnicodeError too: text that has no UTF-8
        return False, "%s left out: %s" % (title(section, item), error)


def title(section, item):
    """An item as sentences name it."""
    if section == "bindings":
        return "binding from exchange %r to %s %r with key %r" % (
            item.get("source"),
            item.get("destination_type", "queue"),
            item.get("destination"),
            item.get("routing_key"),
        )
    if section == "permissions":
        return "permissions of user %r" % (item.get("user"),)
    if section == "topic_permissions":
        return "topic permissions of user %r for exchange %r" % (item.get("user"), item.get("exchange"))
    return "%s %r" % ({"policies": "policy"}.get(section, section[:-1]), item.get("name"))


def load_user(broker, item):
    """A user without permissions, or a new password and new tags for one that is there."""
    name = text(item, "name", 255)
    tags = item.get("tags", [])
    if isinstance(tags, str):
        tags = [tag.strip() for tag in tags.split(",") if tag.strip()]
    if not isinstance(tags, list) or len(tags) > 16 or [tag for tag in tags if not isinstance(tag, str) or len(tag.encode("utf-8")) > 255]:
        raise ValueError("its tags are not a list of at most 16 words")
    limits = item.get("limits") or {}
    if not isinstance(limits, dict):
        raise ValueError("its limits are no table")
    user_limits = part("access.user_limits") if limits else None
    if user_limits is not None:
        limits = user_limits.checked(limits) or {}
    hash_ = stored(item)
    known = broker.access.users.get(name)
    if known is not None and known.configured:
        texts = [None if each is None else each.text() for each in (hash_, known.stored)]
        return of_file(texts[0] == texts[1] and tuple(tags) == known.tags and limits == (known.limits or {}))
    users.put(broker, User(name, hash_, tags, None, broker.limits.granted_count_max, pattern_size_max(broker.limits)))
    if user_limits is not None:
        user_limits.put(broker, broker.access.users[name], limits)
    return "limits: this build of the broker does not carry them" if limits and user_limits is None else ""


def of_file(is_same):
    """What an item about a user of the configuration file comes to: nothing where it says the same. Raises ValueError for a change, which
    the next start would undo."""
    if not is_same:
        raise ValueError(IN_FILE)
    return ""


def stored(item):
    """The password hash of a user, or None when none logs in. Raises ValueError."""
    written = text(item, "password_hash", 1024, "")
    algorithm = text(item, "hashing_algorithm", 255, RABBIT_HASH)
    if written == "":
        return None
    if algorithm == passwords.Pbkdf2.algorithm:
        return passwords.stored(str(passwords.from_base64(written), "utf-8"))
    made = passwords.stored(written)
    if made.algorithm not in (algorithm, passwords.Pbkdf2.algorithm):
        raise ValueError("its password_hash is one of %s, not of %s" % (made.algorithm, algorithm))
    return made


def load_permission(broker, item):
    """Three regular expressions for a user that is there."""
    name = text(item, "user", 255)
    user = broker.access.users.get(name)
    if user is None:
        raise ValueError("there is no such user")
    expressions = [text(item, key, broker.limits.argument_size_max) for key in ("configure", "write", "read")]
    if user.configured:
        return of_file(user.permissions is not None and expressions == list(user.permissions))
    users.permit(broker, user, expressions)
    return ""


def load_topic_permission(broker, item):
    """Two regular expressions for a user that is there, and an exchange."""
    topics = part("access.topic_permissions")
    user = broker.access.users.get(text(item, "user", 255))
    if topics is None or user is None:
        raise ValueError("there is no such user" if topics is not None else "this build of the broker does not carry topic permissions")
    exchange, expressions = text(item, "exchange", 255), [text(item, key, topics.TEXT_MAX) for key in ("write", "read")]
    if user.configured:
        return of_file(user.topics is not None and list(user.topics.rows.get(exchange, ())) == expressions)
    topics.put(broker, user, exchange, expressions)
    return ""


def load_policy(broker, item):
    """A policy, less the keys that this broker does not serve; one that has no other keys is left out."""
    given = table(item, "definition")
    served = {key: given[key] for key in given if key == ALTERNATE or key == "max-age" or rules.row_of("x-" + key) is not None}
    unserved = ", ".join(sorted([key for key in given if key not in served]))
    if given and not served:
        raise ValueError("this broker does not serve %s" % unserved)
    broker.policies.set(
        broker, Policy(text(item, "name", 255), text(item, "pattern", 1024), served, item.get("priority", 0), item.get("apply-to", "all"))
    )
    return unserved and "%s, which this broker does not serve" % unserved


def load_parameter(broker, item):
    """A runtime parameter."""
    needed(*PARAMETERS).load(broker, item)
    return ""


def load_global_parameter(broker, item):
    """A global parameter."""
    needed(*PARAMETERS).load_global(broker, item)
    return ""


def load_exchange(broker, item):
    """An exchange, or the same one that is there."""
    broker.topology.declare_exchange(
        nobody,
        name_of(item, "name"),
        text(item, "type", 255),
        False,
        flag(item, "durable"),
        flag(item, "auto_delete"),
        flag(item, "internal"),
        table(item, "arguments"),
    )
    return ""


def load_queue(broker, item):
    """A queue, or the same one that is there. RabbitMQ tells a queue's type beside its arguments too."""
    arguments = table(item, "arguments")
    type_ = text(item, "type", 255, "classic")
    if type_ != "classic" and "x-queue-type" not in arguments:
        arguments["x-queue-type"] = type_
    name = name_of(item, "name")
    if name == "":
        raise ValueError("it has no name")
    broker.topology.declare_queue(nobody, name, False, flag(item, "durable"), False, flag(item, "auto_delete"), arguments)
    return ""


def load_binding(broker, item):
    """A binding; the default exchange's are there without being made."""
    source = name_of(item, "source")
    destination = name_of(item, "destination")
    key = text(item, "routing_key", 255, "").encode("utf-8")
    arguments = table(item, "arguments")
    kind = item.get("destination_type", "queue")
    if kind not in ("queue", "exchange"):
        raise ValueError("its destination_type is neither queue nor exchange")
    if source == "" and kind == "queue" and destination.encode("utf-8") == key:
        broker.topology.queue(destination, nobody)
    elif kind == "queue":
        broker.topology.bind(nobody, destination, source, key, arguments)
    else:
        broker.topology.bind_exchange(nobody, destination, source, key, arguments)
    return ""


LOADERS = {
    "users": load_user,
    "topic_permissions": load_topic_permission,
    "permissions": load_permission,
    "policies": load_policy,
    "parameters": load_parameter,
    "global_parameters": load_global_parameter,
    "exchanges": load_exchange,
    "queues": load_queue,
    "bindings": load_binding,
}


def name_of(item, key):
    """The name of a queue or an exchange as the methods take it that declare, bind and delete: without CR and LF. With them no client could
    ask for its end."""
    return text(item, key, 255).replace("\r", "").replace("\n", "")


def text(item, key, size_max, default=None):
    """A text of at most `size_max` octets, as 0-9-1 can carry it. Raises ValueError."""
    value = item.get(key, default)
    if not isinstance(value, str):
        raise ValueError("its %s is not a text" % key)
    if len(value.encode("utf-8")) > size_max:
        raise ValueError("its %s is longer than %d octets" % (key, size_max))
    return value


def flag(item, key):
    """true or false; false when it is not there."""
    value = item.get(key, False)
    if not isinstance(value, bool):
        raise ValueError("its %s is neither true nor false" % key)
    return value


def table(item, key):
    """Arguments as a field table can hold them; empty when there are none (RabbitMQ writes [] for that too)."""
    value = item.get(key, {})
    if value == []:
        value = {}
    if not isinstance(value, dict):
        raise ValueError("its %s is not an object" % key)
    check_value(key, value, DEPTH_MAX)
    return dict(value)


def check_value(key, value, depth):
    """Raise ValueError for what a field table cannot hold."""
    if depth == 0:
        raise ValueError("its %s is more than %d levels deep" % (key, DEPTH_MAX))
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, dict):
        for name in value:
            if len(name.encode("utf-8")) > 255:
                raise ValueError("its %s has a name longer than 255 octets" % key)
            check_value(key, value[name], depth - 1)
    elif isinstance(value, list):
        for each in value:
            check_value(key, each, depth - 1)
    elif isinstance(value, int) and not -0x8000000000000000 <= value < 0x8000000000000000:
        raise ValueError("its %s has a number that does not fit in 64 bits" % key)


# Out


def sections(broker):
    """For answer_pages.page: (section, (identity, thing) of each, function that makes a thing's item) in the order of loading. Of exchanges
    the broker's own are left out, of queues the exclusive ones."""
    host = broker.virtual_host
    parameters = part(PARAMETERS[0])
    users = [row for row in broker.access.users.items() if not row[1].predeclared]
    return (
        ("users", users, a_user),
        ("permissions", [row for row in users if row[1].permissions is not None], lambda user: a_permission(host, user)),
        (
            "topic_permissions",
            [((row["user"], row["exchange"]), row) for _, user in users for row in topic_rows(host, user)],
            lambda row: row,
        ),
        ("policies", broker.policies.by_name.items(), lambda policy: a_policy(host, policy)),
        ("parameters", () if parameters is None else parameters.rows(broker), lambda row: row),
        ("global_parameters", () if parameters is None else parameters.global_rows(broker), lambda row: row),
        (
            "exchanges",
            [row for row in broker.exchanges.items() if not row[0].startswith("amq.")],
            lambda exchange: an_exchange(host, exchange),
        ),
        ("queues", [row for row in broker.queues.items() if row[1].owner is None], lambda queue: a_queue(host, queue)),
        ("bindings", bindings(broker), lambda binding: a_binding(host, binding)),
    )


def a_user(user):
    """One user. A PBKDF2 hash is written in base64, because RabbitMQ wants base64 here; it loads such a user, who cannot log in there. The
    guest of a broker without users is left out like the predeclared exchanges: every broker has its own."""
    algorithm, written = RABBIT_HASH, ""
    if user.stored is not None:
        algorithm, written = user.stored.algorithm, user.stored.text()
        if algorithm == passwords.Pbkdf2.algorithm:
            written = passwords.base64(written.encode("utf-8"))
    about = {"name": user.name, "password_hash": written, "hashing_algorithm": algorithm, "tags": list(user.tags)}
    about["limits"] = user.limits or {}
    return about


def topic_rows(host, user):
    """A user's topic permissions, one of each exchange."""
    rows = {} if user.topics is None else user.topics.rows
    return [{"user": user.name, "vhost": host, "exchange": each, "write": rows[each][0], "read": rows[each][1]} for each in rows]


def a_permission(host, user):
    """The permissions of one user; users without permissions have none."""
    return {
        "user": user.name,
        "vhost": host,
        "configure": user.permissions[0],
        "write": user.permissions[1],
        "read": user.permissions[2],
    }


def a_policy(host, policy):
    """One policy."""
    return {
        "vhost": host,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": policy.definition,
        "priority": policy.priority,
    }


def an_exchange(host, exchange):
    """One exchange."""
    return {
        "name": exchange.name,
        "vhost": host,
        "type": exchange.type,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": plain(exchange.arguments),
    }


def a_queue(host, queue):
    """One queue."""
    if queue.name.startswith("amq.") or queue.is_own:
        raise ValueError("queue '%s' left out: the broker has made its name" % queue.name)
    return {
        "name": queue.name,
        "vhost": host,
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "type": queue.type,
        "arguments": plain(queue.arguments),
    }


def bindings(broker):
    """(identity, binding) of all but those to queues that are left out."""
    for exchange in broker.exchanges.values():
        for identity, binding in exchange.bindings.items():
            target = binding.destination
            if target.is_exchange or target.owner is None and not target.name.startswith("amq."):
                yield (exchange.name, identity), binding


def a_binding(host, binding):
    """One binding."""
    target = binding.destination
    return {
        "source": binding.exchange.name,
        "vhost": host,
        "destination": target.name,
        "destination_type": "exchange" if target.is_exchange else "queue",
        "routing_key": str(binding.key, "utf-8"),
        "arguments": plain(binding.arguments),
    }


def plain(value):
    """A decoded argument as JSON can write it: a timestamp becomes its number. Raises ValueError for octets and for no number."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in value}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return plain(value[1])
    if isinstance(value, (bytes, bytearray)):
        raise ValueError("an argument that JSON cannot write: the octets 0x" + str(binascii.hexlify(value), "utf-8"))
    if isinstance(value, float) and value - value != 0:  # infinite, or no number
        raise ValueError("an argument that JSON cannot write: %r" % value)
    return value

"""The node that the address of a source or a target names: text in, a node out. nodes.py then asks the broker for it.

A node is (kind, name, key): `name` a text, `key` the octets of a routing key, or None for the subject of each message. Kinds:

    QUEUE       a queue that has to exist
    MADE        a queue that the broker makes where it does not exist
    EXCHANGE    an exchange that has to exist; as a source: a queue of the link's own, bound to it with `key`
    NAME        a queue of this name, else an exchange
    TOPIC       an exchange of this name, else `key` (the name) behind amq.topic; as a source: a subscription
    OWN         no address, dynamic: a queue that the broker makes for the link
    TO          no address: `to` of each message says where it goes (AMQP Anonymous Terminus 1.0)
    LINK        no address of a source: the subscription that the link's name stands for (JMS mapping, null source lookup)
    MANAGEMENT  requests and their responses (management.py)

    text of the address                      as a target             as a source
    /queues/:queue                           QUEUE                   QUEUE             RabbitMQ 4's second form:
    /exchanges/:exchange/:key                EXCHANGE key            refused           names are percent-encoded (RFC 3986, 2.1)
    /exchanges/:exchange                     EXCHANGE, empty key     refused
    /queue/:queue                            MADE                    MADE              RabbitMQ's first form:
    /amq/queue/:queue                        QUEUE                   QUEUE             only / in a name is encoded, as %2F
    /exchange/:exchange/:key                 EXCHANGE key            EXCHANGE key
    /exchange/:exchange                      EXCHANGE None           EXCHANGE, empty key
    /topic/:key                              EXCHANGE amq.topic      EXCHANGE amq.topic
    /queue                                   EXCHANGE "" None        refused
    /management, $management                 MANAGEMENT              MANAGEMENT
    :hub/ConsumerGroups/:group/Partitions/:n  QUEUE hub-n            QUEUE hub-n       Event Hubs' form, also with a slash before it
    :hub/Partitions/:n                       QUEUE hub-n             QUEUE hub-n
    amqps://HOST:PORT/:address               as the address          as the address    (amqp, sb) as Azure's clients write it
    $cbs                                     MANAGEMENT              MANAGEMENT        tokens of Azure's clients (hubs.py)
    any other text that does not begin with / is NAME, TOPIC with the capability topic or temporary-topic, QUEUE with queue or
    temporary-queue
"""

from ..errors import ProtocolError

INVALID_FIELD = "invalid-field"  # a condition of AMQP 1.0 alone, beside those of core/errors.py

QUEUE = "queue"
MADE = "made queue"
EXCHANGE = "exchange"
NAME = "name"
TOPIC = "topic"
OWN = "own"
TO = "to"
LINK = "link"
MANAGEMENT = "management"

MANAGEMENTS = ("/management", "$management", "$cbs")
_SCHEMES = ("amqp", "amqps", "sb")
_TOPICS = "amq.topic"
_QUEUES = "/queues/"
_EXCHANGES = "/exchanges/"
_PLAIN = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~"  # unreserved characters (RFC 3986, 2.3)
_TAKEN = _PLAIN + b"!$&'()*+,;=:@"  # characters of a part of a path that need no encoding (RFC 3986, 3.3)
_HEX = b"0123456789abcdef"


def source(address, dynamic=False, capabilities=()):
    """The node of a source, from its address (a text or None), its field dynamic and the names of its capabilities."""
    if dynamic:
        return own(address, capabilities)
    if address is None:
        return LINK, "", None
    path = path_of(address)
    node = partition(path) or parsed(path, capabilities)
    if node is None or node[0] == EXCHANGE and (path.startswith(_EXCHANGES) or node[1] == ""):
        bad(address, "a source")
    return (EXCHANGE, node[1], b"") if node[0] == EXCHANGE and node[2] is None else node


def path_of(address):
    """An address without the scheme and the authority that Azure's clients write before it."""
    scheme, separator, path = address.partition("://")
    return path.partition("/")[2] if separator and scheme in _SCHEMES else address


def partition(path):
    """The node of a partition of a hub of Event Hubs, or None for another address. Its stream is called as RabbitMQ calls partitions."""
    parts = path.split("/")
    if parts[0] == "":
        parts = parts[1:]
    if len(parts) == 5 and parts[1] == "ConsumerGroups":
        parts = parts[:1] + parts[3:]
    if len(parts) != 3 or parts[1] != "Partitions" or not (parts[0] and parts[2]):
        return None
    return QUEUE, "%s-%s" % (parts[0], parts[2]), None


def target(address, dynamic=False, capabilities=()):
    """The node of a target; `address` is also the `to` of a message for the anonymous terminus."""
    if dynamic:
        return own(address, capabilities)
    if address is None:
        return TO, "", None
    path = path_of(address)
    node = partition(path) or parsed(path, capabilities)
    if node is None:
        bad(address, "a target")
    return node


def own(address, capabilities):
    """The node of a dynamic terminus: a queue, or, with the capability temporary-topic, a topic, which needs no making. Its name is
    "reply" for a queue that RabbitMQ's clients have replies sent to, else empty."""
    if address is not None:
        raise ProtocolError(INVALID_FIELD, "a dynamic terminus has no address: %r was given (sections 3.5.3 and 3.5.4)" % (address[:80],))
    return OWN, ("reply" if "rabbitmq:volatile-queue" in capabilities else ""), (b"" if "temporary-topic" in capabilities else None)


def parsed(address, capabilities):
    """The node of a text; None: it names no node."""
    if address in MANAGEMENTS:
        return MANAGEMENT, "", None
    if address.startswith("/"):
        if address.startswith(_QUEUES):
            return second(QUEUE, (address[len(_QUEUES) :],))
        if address.startswith(_EXCHANGES):
            return second(EXCHANGE, address[len(_EXCHANGES) :].split("/"))
        return first(address[1:].split("/"))
    if address == "":
        return None
    if "topic" in capabilities or "temporary-topic" in capabilities:
        return TOPIC, address, address.encode("utf-8")
    return (QUEUE if "queue" in capabilities or "temporary-queue" in capabilities else NAME), address, None


def second(kind, parts):
    """The node of the second form, from its parts behind the word; None for too many or too few parts, or parts that are not encoded."""
    octets = [decoded(part) for part in parts]
    if None in octets or not octets[0] or len(octets) > 2:
        return None
    name = utf8(octets[0])
    if name is None:
        return None
    if kind == QUEUE:
        return QUEUE, name, None
    if name == "amq.default":
        return None
    return EXCHANGE, name, (octets[1] if len(octets) > 1 else b"")


def utf8(octets):
    """Octets as text, or None. MicroPython accepts some octets that are no UTF-8: encoded again they differ."""
    try:
        name = str(octets, "utf-8")
        points = [ord(letter) for letter in name]
        same = "".join([chr(point) for point in points]).encode("utf-8") == octets
    except UnicodeError:
        return None
    return name if same and not [point for point in points if 0xD800 <= point < 0xE000] else None


def first(parts):
    """The node of the first form, from the parts behind its first /, or None."""
    word = parts[0]
    names = [part.replace("%2F", "/") for part in parts[1:]]
    if word == "exchange" and 1 <= len(names) <= 2 and names[0]:
        return EXCHANGE, names[0], (names[1].encode("utf-8") if len(names) > 1 else None)
    if word == "queue" and not names:
        return EXCHANGE, "", None
    if word == "amq" and len(names) == 2 and names[0] == "queue" and names[1]:
        return QUEUE, names[1], None
    if len(names) == 1 and names[0]:
        if word == "queue":
            return MADE, names[0], None
        if word == "topic":
            return EXCHANGE, _TOPICS, names[0].encode("utf-8")
    return None


def bad(address, kind):
    """Raise for an address that names no node."""
    raise ProtocolError(INVALID_FIELD, "%r is not the address of %s" % (address[:80], kind))


def decoded(text):
    """The octets of a percent-encoded part of a path (RFC 3986, 2.1); None for a character that needs encoding, and for a bad code."""
    octets = bytearray()
    given = text.encode("utf-8")
    at = 0
    while at < len(given):
        octet = given[at]
        at += 1
        if octet == 37:  # %
            high, low = digit(given, at), digit(given, at + 1)
            if high < 0 or low < 0:
                return None
            octet = high << 4 | low
            at += 2
        elif octet not in _TAKEN:
            return None
        octets.append(octet)
    return bytes(octets)


def digit(octets, at):
    """The number that the hexadecimal digit at `at` stands for, or -1."""
    return _HEX.find(octets[at : at + 1].lower()) if at < len(octets) else -1


def encoded(octets):
    """The opposite of `decoded`: a text."""
    return "".join([chr(octet) if octet in _PLAIN else "%%%02X" % octet for octet in octets])


def queue_address(name):
    """The address of a queue, of the second form."""
    return _QUEUES + encoded(name.encode("utf-8"))


# Subscriptions: queues of topics, for JMS


def subscription_name(container, link, capabilities, durable):
    """The name of the queue of a durable or a shared subscription: the container's and the link's name, the latter up to its |.

    Shared by containers too with the capability global: then a container's name is no part of it. A durable one and one that is not are
    two (JMS 2.0, 8.3.3 and 8.3.4; JMS mapping, 8.2).
    """
    owner = "" if "global" in capabilities else encoded(container.encode("utf-8"))
    return "%s/%s/%s" % ("subscription" if durable else "volatile", owner, encoded(link.split("|")[0].encode("utf-8")))

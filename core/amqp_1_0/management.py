"""RabbitMQ 4's management over AMQP 1.0: requests as HTTP has them, in messages to /management, and their responses.

    request    properties: message-id, to = "/queues/q1", subject = "PUT", reply-to = "$me"; amqp-value: a map, or null
    response   properties: subject = "201", correlation-id = the request's message-id; application-properties: http:response = "1.1";
               amqp-value: a map, a list, null, or the text of an error

A link pair brings them (links of one name, one each way: AMQP Link Pair 1.0). Whoever has it makes a Request of a message's octets and
calls `answer` until it gives octets. They leave when the log is durable up to `durable`, a number of the journal's: a response is told
once what it tells will last. A request with the application property operation is one of Event Hubs' clients: hubs.py answers it.

    GET /queues/:q   PUT /queues/:q   DELETE /queues/:q   DELETE /queues/:q/messages   PUT /exchanges/:e   DELETE /exchanges/:e
    GET /bindings?src=:e&dstq=:q&key=:k (or dste)   POST /bindings   DELETE /bindings/src=:e;dstq=:q;key=:k;args=:hash
    PUT /auth/tokens: refused, for this broker has no tokens

Names in a path are percent-encoded (addresses.decoded). Permissions are those of 0-9-1; what they refuse is 403.
"""

import binascii
import hashlib

from ..access.permissions import CONFIGURE, READ, WRITE, check
from ..errors import ACCESS_REFUSED, PRECONDITION_FAILED, RESOURCE_ERROR, SYNTAX_ERROR, ProtocolError
from ..queue import turns
from . import composites, hubs, types
from .addresses import decoded, encoded, utf8
from .arguments import native, neutral
from .bounds import response_size_max

if False:  # for the type checker alone
    from typing import Any

_PROPERTIES = 0x73
_APPLICATION = 0x74
_VALUE = 0x77

NOT_YET = None  # of `answer`: it goes on in the connection's next turn
HELD = False  # of `answer`: nothing can be changed now; it is tried again as a publish without room is


class Refused(Exception):
    """A request that comes to an error: its status and a sentence."""

    def __init__(self, status, text):
        super().__init__(status, text)
        self.status = status
        self.text = text


class Request:
    """One request of a user's connection. Raises ProtocolError for octets that are no message, or that no response could go to."""

    def __init__(self, connection, octets):
        self.connection = connection
        self.broker = connection.broker
        properties, self.asked, self.body = sections(octets)
        if not hubs.asks(self.asked) and (not isinstance(properties["to"], str) or properties["subject"] is None):
            raise ProtocolError(PRECONDITION_FAILED, "a request to the management has the properties to and subject")
        self.number = properties["message-id"]
        self.reply_to = properties["reply-to"]
        self.target = properties["to"]
        self.method = properties["subject"]
        self.durable = 0
        self.gone = 0  # messages that went in the turns before
        self.left = -1  # messages that a purge has to drop yet; -1: it has not begun

    def answer(self):
        """The octets of the response, or NOT_YET or HELD."""
        if hubs.asks(self.asked):
            octets = hubs.answer(self, self.asked)
            return self.too_large() if len(octets) > response_size_max(self.broker.limits) else octets
        try:
            answer = self.handle()
        except Refused as error:
            answer = error.status, error.text
        except ProtocolError as error:
            answer = status_of(error), error.text
        if answer is NOT_YET or answer is HELD:
            return answer
        octets = response(self.number, answer[0], answer[1])
        return self.too_large() if len(octets) > response_size_max(self.broker.limits) else octets

    def too_large(self):
        """The octets of the response that is told in the place of one for which there is no room."""
        text = "the response, with those that wait, is larger than this broker keeps (management_size_max: %d octets)"
        text %= self.broker.limits.management_size_max
        return hubs.response(self.number, 500, text, {}) if hubs.asks(self.asked) else response(self.number, "500", text)

    def handle(self):
        """(status, body) of what was asked for."""
        path, _, query = self.target.partition("?")
        if not path.startswith("/"):
            raise Refused("400", "failed to normalize URI '%s': invalid_uri \"%s\"" % (self.target[:200], self.target[:200]))
        segments = path[1:].split("/")
        row = ROUTES.get((self.method, segments[0], len(segments)))
        if row is None or len(segments) == 3 and segments[2] != "messages":
            raise Refused("404", "there is no %s %s" % (self.method[:20], path[:200]))
        function, changes = row
        if changes and (self.broker.commit is not None or self.broker.journal is not None and self.broker.journal.log.trouble):
            return HELD
        return function(self, segments[1] if len(segments) > 1 else query)

    def allow(self, permission, kind, name, key=None):
        """Raise access-refused unless the request's user may do this."""
        check(self.broker, self.connection.user, permission, kind, name, key)

    def promise(self, name):
        """The response tells how things of this name (None: all) are defined."""
        journal = self.broker.journal
        if journal is not None:
            self.durable = max(self.durable, journal.defined(name))

    def map(self, subject, kinds):
        """The body as a dict. Raises Refused for what is no map of texts, and for a value that is not of its kind in `kinds`."""
        if not isinstance(self.body, dict):
            raise Refused("400", "the body is no map")
        for key in self.body:
            kind = kinds.get(key) if isinstance(key, str) else None
            if kind is None or not isinstance(self.body[key], kind):
                raise Refused("400", "bad %s %r" % (subject, {key: self.body[key]}))
        return self.body

    def arguments(self, given):
        """The arguments in a body, as the broker has them."""
        arguments = {}
        table = given.get("arguments", {})
        for key in table:
            name = key[1] if isinstance(key, tuple) and key[0] == "symbol" else key
            try:
                if not isinstance(name, str) or name in arguments:
                    raise ValueError
                arguments[name] = neutral(table[key])
            except ValueError:
                raise Refused("400", "unsupported argument %r" % ((key, table[key]),)) from None
        return arguments


def sections(octets):
    """(fields of the properties, application properties, value of the body) of a request's message."""
    at = 0
    properties: "Any" = None
    asked = body = None
    if types.count(octets, 0, len(octets), types.VALUES_MAX) > types.VALUES_MAX:
        raise ProtocolError(RESOURCE_ERROR, "a request of more than %d values" % types.VALUES_MAX)
    while at < len(octets):
        value, at = types.decode(octets, at, len(octets))
        if not isinstance(value, tuple) or value[0] != "described":
            raise ProtocolError(SYNTAX_ERROR, "a message is made of sections, which are described")
        if value[1] in (("ulong", _PROPERTIES), ("symbol", "amqp:properties:list")):
            pair = composites.composite(value)
            properties = None if pair is None else pair[1]
        elif value[1] in (("ulong", _APPLICATION), ("symbol", "amqp:application-properties:map")):
            asked = value[2]
        elif value[1] in (("ulong", _VALUE), ("symbol", "amqp:amqp-value:*")):
            body = value[2]
    if properties is None:
        raise ProtocolError(PRECONDITION_FAILED, "a request to the management has properties")
    return properties, asked, body


def response(number, status, body):
    """The octets of a response."""
    properties = composites.write("properties", {"subject": status, "correlation-id": number})
    head = types.encode(("described", ("ulong", 0x74), {"http:response": "1.1"}))
    return properties + head + types.encode(("described", ("ulong", _VALUE), body))


def status_of(error):
    """The status of what the broker refused."""
    if error.condition == PRECONDITION_FAILED:
        return "400" if error.text.startswith("invalid property") else "409"
    return {ACCESS_REFUSED: "403", RESOURCE_ERROR: "403"}.get(error.condition, "400")


def name_of(segment):
    """A name in a path, as text."""
    octets = decoded(segment)
    if octets is None:
        raise Refused("400", "'%s' is not percent-encoded" % segment[:200])
    name = utf8(octets)
    if name is None:
        raise Refused("400", "'%s' is not UTF-8" % segment[:200])
    return name


def check_letters(name):
    """Refuse a name with a line's end in it."""
    if "\r" in name or "\n" in name:
        raise Refused("400", "Bad name '%s': line feed and carriage return characters not allowed" % name)


def check_prefix(request, kind, name):
    """Refuse a name that only the broker gives."""
    if name.startswith("amq."):
        raise Refused("403", "%s starts with reserved prefix 'amq.'" % request.broker.topology.called(kind, name))


def check_default(name):
    """Refuse the default exchange."""
    if name == "":
        raise Refused("403", "operation not permitted on the default exchange")


# Queues


def get_queue(request, segment):
    """GET /queues/:q: as a passive declaration."""
    name = name_of(segment)
    broker = request.broker
    if name not in broker.queues:
        raise Refused("404", broker.topology.called("queue", name) + " not found")
    if not any(request.connection.user.may(permission, name) for permission in (READ, WRITE, CONFIGURE)):
        request.allow(CONFIGURE, "queue", name)
    queue = broker.queues[name]
    turns.serve(broker, queue)
    request.promise(name)
    return "200", described_queue(broker, queue)


def put_queue(request, segment):
    """PUT /queues/:q: declare it."""
    given = request.map("queue property", {"durable": bool, "exclusive": bool, "auto_delete": bool, "arguments": dict})
    arguments = request.arguments(given)
    name = name_of(segment)
    broker = request.broker
    if name == "":
        raise Refused("400", "declare queue with empty name not allowed")
    check_letters(name)
    there = name in broker.queues
    if not there:
        check_prefix(request, "queue", name)
    request.allow(CONFIGURE, "queue", name)
    target = arguments.get("x-dead-letter-exchange")
    if not there and isinstance(target, str):
        request.allow(READ, "queue", name)
        request.allow(WRITE, "exchange", target)
    durable, exclusive = given.get("durable", True), given.get("exclusive", False)
    queue = broker.topology.declare_queue(request.connection, name, False, durable, exclusive, given.get("auto_delete", False), arguments)
    if there:
        turns.serve(broker, queue)
    request.promise(name)
    return ("200" if there else "201"), described_queue(broker, queue)


def described_queue(broker, queue):
    """A queue as responses tell it."""
    return {
        "leader": broker.name,
        "message_count": ("ulong", queue.message_count()),
        "consumer_count": ("uint", len(queue.consumers)),
        "name": queue.name,
        "vhost": broker.virtual_host,
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "exclusive": queue.owner is not None,
        "type": "stream" if queue.is_stream else queue.type,
        "arguments": native(queue.arguments),
        "replicas": ("array", "string", [broker.name]),
    }


def delete_queue(request, segment):
    """DELETE /queues/:q."""
    name = name_of(segment)
    check_letters(name)
    request.allow(CONFIGURE, "queue", name)
    broker = request.broker
    there = broker.queues.get(name)
    if there is not None:
        turns.serve(broker, there)
    count = broker.topology.delete_queue(request.connection, name, False, False)
    if count is None:
        return NOT_YET  # more bindings than one turn is for
    request.promise(name)
    return "200", {"message_count": ("ulong", count)}


def purge_queue(request, segment):
    """DELETE /queues/:q/messages."""
    name = name_of(segment)
    broker = request.broker
    if request.left < 0:
        request.allow(READ, "queue", name)
        if name not in broker.queues:
            raise Refused("404", "no " + broker.topology.called("queue", name))
    if name in broker.queues:
        queue = broker.topology.queue(name, request.connection)
        if queue.is_stream:
            raise Refused("400", "purge not supported by " + broker.topology.called("queue", name))
        if request.left < 0:
            turns.serve(broker, queue)
            request.left = queue.message_count()
        count = broker.purge(queue, request.left)
        request.gone += count
        request.left -= count
        if request.left > 0 and queue.message_count():
            return NOT_YET
        if queue.id_in_log and broker.journal is not None:
            request.durable = broker.journal.promise()
    return "200", {"message_count": ("ulong", request.gone)}


# Exchanges


def put_exchange(request, segment):
    """PUT /exchanges/:e: declare it."""
    kinds = {"durable": bool, "auto_delete": bool, "type": str, "internal": bool, "arguments": dict}
    given = request.map("exchange property", kinds)
    arguments = request.arguments(given)
    name = name_of(segment)
    broker = request.broker
    check_default(name)
    there = name in broker.exchanges
    if not there:
        check_letters(name)
        check_prefix(request, "exchange", name)
    request.allow(CONFIGURE, "exchange", name)
    target = arguments.get("alternate-exchange")
    if not there and isinstance(target, str):
        request.allow(READ, "exchange", name)
        request.allow(WRITE, "exchange", target)
    durable, internal = given.get("durable", True), given.get("internal", False)
    type_ = given.get("type", "direct")
    broker.topology.declare_exchange(request.connection, name, type_, False, durable, given.get("auto_delete", False), internal, arguments)
    request.promise(name)
    return "204", None


def delete_exchange(request, segment):
    """DELETE /exchanges/:e."""
    name = name_of(segment)
    check_letters(name)
    check_default(name)
    check_prefix(request, "exchange", name)
    request.allow(CONFIGURE, "exchange", name)
    if not request.broker.topology.delete_exchange(name, False):
        return NOT_YET
    request.promise(name)
    return "204", None


# Bindings


def post_binding(request, _):
    """POST /bindings."""
    kinds = {"source": str, "destination_queue": str, "destination_exchange": str, "binding_key": str, "arguments": dict}
    given = request.map("binding field", kinds)
    arguments = request.arguments(given)
    to_queue = "destination_queue" in given
    if "source" not in given or to_queue == ("destination_exchange" in given):
        raise Refused("400", "a binding has a source, and a destination_queue or a destination_exchange")
    source = given["source"]
    destination = given["destination_queue" if to_queue else "destination_exchange"]
    broker = request.broker
    key = given.get("binding_key", "").encode("utf-8")
    check_ends(request, source, to_queue, destination, key)
    try:
        if to_queue:
            broker.topology.bind(request.connection, destination, source, key, arguments)
        else:
            broker.topology.bind_exchange(request.connection, destination, source, key, arguments)
    except ProtocolError as error:
        raise Refused("400" if error.condition != RESOURCE_ERROR else "403", error.text) from None
    request.promise(destination)
    return "204", None


def delete_binding(request, segment):
    """DELETE /bindings/src=:e;dstq=:q;key=:k;args=:hash (or dste)."""
    parts = [part.partition("=") for part in segment.split(";")]
    names = [part[0] for part in parts]
    if names not in (["src", "dstq", "key", "args"], ["src", "dste", "key", "args"]) or not parts[0][2] or not parts[1][2]:
        raise Refused("400", "bad binding path segment '%s'" % segment[:500])
    source, destination = name_of(parts[0][2]), name_of(parts[1][2])
    key = decoded(parts[2][2])
    to_queue = names[1] == "dstq"
    check_ends(request, source, to_queue, destination, key)
    broker = request.broker
    if to_queue and destination in broker.queues:
        broker.topology.queue(destination, request.connection)  # another connection's is locked
    for binding in bindings(broker, source, to_queue, destination, key):
        if hash_of(binding.arguments) == parts[3][2]:
            broker.topology.remove_bindings((binding,))
            break
    request.promise(destination)
    return "204", None


def get_bindings(request, query):
    """GET /bindings?src=:e&dstq=:q&key=:k (or dste)."""
    given: "dict" = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        given[name] = decoded(value.replace("+", "%20"))
    to_queue = "dstq" in given
    if to_queue == ("dste" in given):
        raise Refused("400", "missing 'dste' or 'dstq' in query: %s" % query[:500])
    ends: "Any" = given.get("src"), given["dstq" if to_queue else "dste"], given.get("key")
    if None in ends:
        raise Refused("400", "the query has src and key, percent-encoded: %s" % query[:500])
    try:
        source, destination = str(ends[0], "utf-8"), str(ends[1], "utf-8")
    except UnicodeError:
        raise Refused("400", "the query is not UTF-8: %s" % query[:500]) from None
    check_ends(request, source, to_queue, destination)
    request.promise(None)
    return "200", [described_binding(each) for each in bindings(request.broker, source, to_queue, destination, ends[2])]


def check_ends(request, source, to_queue, destination, key=None):
    """Raise unless a binding between these may be made, told and removed."""
    check_default(source)
    if not to_queue:
        check_default(destination)
    check_letters(source)
    check_letters(destination)
    request.allow(WRITE, "queue" if to_queue else "exchange", destination)
    request.allow(READ, "exchange", source, key)


def bindings(broker, source, to_queue, destination, key):
    """The bindings between two ends with a key."""
    target = (broker.queues if to_queue else broker.exchanges).get(destination)
    if target is None:
        return []
    return [each for each in target.bound.values() if each.exchange.name == source and each.key == key]


def described_binding(binding):
    """A binding as responses tell it; `location` is the path that DELETE takes."""
    name = binding.destination.name
    kind = "exchange" if binding.destination.is_exchange else "queue"
    ends = [encoded(octets) for octets in (binding.exchange.name.encode("utf-8"), name.encode("utf-8"), binding.key)]
    location = "/bindings/src=%s;dst%s=%s;key=%s;args=%s" % (ends[0], kind[0], ends[1], ends[2], hash_of(binding.arguments))
    try:
        key = str(binding.key, "utf-8")
    except UnicodeError:
        key = binding.key
    return {
        "source": binding.exchange.name,
        "destination_" + kind: name,
        "binding_key": key,
        "arguments": native(binding.arguments),
        "location": location,
    }


def hash_of(arguments):
    """The part of a binding's path that stands for its arguments: empty, or six letters."""
    if not arguments:
        return ""
    octets = b"".join([types.encode(name) + types.encode(native(arguments[name])) for name in sorted(arguments)])
    text = str(binascii.b2a_base64(hashlib.sha256(octets).digest()[:4])[:6], "utf-8")
    return text.replace("+", "-").replace("/", "_")


def put_token(request, _):
    """PUT /auth/tokens."""
    raise Refused("501", "this broker takes no tokens: it has no OAuth 2")


# Method, first segment, number of segments: (function, it changes what there is).
ROUTES = {
    ("GET", "queues", 2): (get_queue, False),
    ("PUT", "queues", 2): (put_queue, True),
    ("DELETE", "queues", 2): (delete_queue, True),
    ("DELETE", "queues", 3): (purge_queue, True),
    ("PUT", "exchanges", 2): (put_exchange, True),
    ("DELETE", "exchanges", 2): (delete_exchange, True),
    ("GET", "bindings", 1): (get_bindings, False),
    ("POST", "bindings", 1): (post_binding, True),
    ("DELETE", "bindings", 2): (delete_binding, True),
    ("PUT", "auth", 2): (put_token, False),
}

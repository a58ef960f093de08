"""What a message of AMQP 0-10 says of itself, by the names of class basic: the row of core/message/formats.py.

Octets are a header segment: structs one behind the other, of which delivery-properties and message-properties are read and all are kept.
The names: core/message/README.md. What has no name there goes by headers, as Qpid's brokers have it (core/SPEC.md has the table):

    type        application header x-jms-type
    message_id  message-id, a uuid; a text that is none is the application header x-message-id
    reply_to    reply-to's routing-key; with an exchange the address /exchanges/EXCHANGE/KEY, as RabbitMQ 4 writes it for AMQP 1.0
    reserved    (cluster-id of class basic, on the way here) application header x-cluster-id
    subject     (of 1.0) application header x-jms-type; qpid.subject where there is a type, too
    group_sequence  (of 1.0) application header JMSXGroupSeq
"""

from ..memory import layout
from ..message.annotations import put_over
from ..message.formats import AMQP_0_10
from . import structs, types

_PLAIN = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~"  # unreserved characters (RFC 3986, 2.3)

DELIVERY = "delivery-properties"
MESSAGE = "message-properties"
TYPE_HEADER = "x-jms-type"
SUBJECT_HEADER = "qpid.subject"
SEQUENCE_HEADER = "JMSXGroupSeq"
CLUSTER_HEADER = "x-cluster-id"
CORRELATION_HEADER = "x-correlation-id"
SHORT_MAX = 255  # octets of a short string of class basic
ID_HEADER = "x-message-id"
EXCHANGES = "/exchanges/"
QUEUES = "/queues/"

PERSISTENT = 2
NUMBER = AMQP_0_10
MILLISECONDS_LEAST = 100000000000  # a time that is larger is in milliseconds, as Qpid's Java client writes it: in seconds it is after 5138


def facts(octets, at, end, exact=False):
    """The structs of a header segment that are known, by name, as dicts of their fields. Raises ProtocolError."""
    named = {}
    for name, begin, behind in structs.each_struct(octets, at, end):
        if name is None or name in named:
            continue
        named[name] = structs.read(name, octets, begin, behind, exact)[0]
    return named


def columns(named, seconds):
    """(kind, lifetime) of a message (layout.MESSAGE_KIND, MESSAGE_LIFETIME) by the facts of its header segment. `seconds`: now, since
    1970."""
    delivery = named.get(DELIVERY) or {}
    kind = layout.KIND_DURABLE if delivery.get("delivery_mode") == PERSISTENT else 0
    if delivery.get("priority") is not None:
        kind |= layout.KIND_HAS_PRIORITY | delivery["priority"] << layout.KIND_PRIORITY
    left = delivery.get("ttl")
    if left is None and delivery.get("expiration"):
        left = max(milliseconds(delivery["expiration"]) - 1000 * seconds, 0)
    if left is None:
        return kind, layout.NONE
    return kind, left if left <= layout.MASK else max(-2 - left // 1000, -layout.MASK)


def milliseconds(time):
    """A datetime in milliseconds: the type has seconds (POSIX time_t), Qpid's Java client sends milliseconds."""
    return time if time >= MILLISECONDS_LEAST else 1000 * time


# The row of formats.py


def check(buffer, at, end):
    """Raise ProtocolError for octets that are no header segment."""
    facts(buffer, at, end)


def decode(buffer, at, end):
    """The properties by the names of class basic, with plain values: what rules compare."""
    return named_properties(bytes(buffer[at:end]), False)


def field_in(octets, name):
    """One property (bytes), or None."""
    return decode(octets, 0, len(octets)).get(name)


def header(octets, name):
    """One header (bytes), or None."""
    if name.encode("utf-8") not in octets and name not in (TYPE_HEADER, ID_HEADER):
        return None
    return (field_in(octets, "headers") or {}).get(name)


def encode(given):
    """Properties by the names of class basic as a header segment."""
    delivery = {}
    if given.get("delivery_mode") is not None:
        delivery["delivery_mode"] = given["delivery_mode"]
    if given.get("priority") is not None:
        delivery["priority"] = given["priority"]
    expiration = given.get("expiration")
    if isinstance(expiration, str) and expiration.isdigit():
        delivery["ttl"] = int(expiration)
    if given.get("timestamp") is not None:
        delivery["timestamp"] = min(1000 * given["timestamp"] + given.get("milliseconds", 0), types.LONG_MAX)
    if given.get("expiry_ms") is not None:
        delivery["expiration"] = given["expiry_ms"]
    octets = structs.write(DELIVERY, delivery) if delivery else b""
    message = message_fields(given)
    return octets + structs.write(MESSAGE, message) if message else octets


def merge(octets, annotations):
    """A header segment with the broker's annotations (core/message/annotations.py) over its application headers."""
    return rewritten(octets, None, annotations)


# By name


def named_properties(octets, exact):
    """The names of class basic out of a header segment (bytes)."""
    named = facts(octets, 0, len(octets), exact)
    delivery, message = named.get(DELIVERY) or {}, named.get(MESSAGE) or {}
    given: "dict" = {}
    for name in ("delivery_mode", "priority"):
        if delivery.get(name) is not None:
            given[name] = delivery[name]
    if delivery.get("ttl") is not None:
        given["expiration"] = str(delivery["ttl"])
    if delivery.get("timestamp") is not None and delivery["timestamp"] > 0:
        given["timestamp"] = milliseconds(delivery["timestamp"]) // 1000
    for name in ("content_type", "content_encoding"):
        if message.get(name) is not None:
            given[name] = message[name]
    headers = message.get("application_headers") or {}
    for name in ("correlation_id", "user_id", "app_id"):
        put_text(given, name, message.get(name), exact)
    if exact and exact != types.WIDE and len(message.get("correlation_id") or b"") > SHORT_MAX:
        headers[CORRELATION_HEADER] = ("S", message["correlation_id"])
    if message.get("message_id") is not None:
        given["message_id"] = types.uuid_text(message["message_id"])
    reply_to = message.get("reply_to")
    if reply_to is not None:
        put_text(given, "reply_to", address_of(reply_to["exchange"] or "", reply_to["routing_key"] or "").encode("utf-8"), exact)
    for name, header_name in (("type", TYPE_HEADER), ("message_id", ID_HEADER)):
        value = headers.get(header_name)
        if isinstance(value, str) and name not in given and (not exact or len(value.encode("utf-8")) <= SHORT_MAX):
            given[name] = headers.pop(header_name)
    if headers:
        given["headers"] = headers
    return given


def put_text(given, name, octets, exact):
    """A property that is octets here and a short string there. With `exact` octets that are no UTF-8 stay octets, and a longer text is left
    out; else, for rules, it is there, and what is no UTF-8 is not."""
    if octets is None or exact and exact != types.WIDE and len(octets) > SHORT_MAX:
        return
    try:
        given[name] = str(octets, "utf-8")
    except UnicodeError:
        if exact:
            given[name] = octets


def widened(octets):
    """As `named_properties` with exact types, and what only 1.0 has, too."""
    given = named_properties(octets, types.WIDE)
    named = facts(octets, 0, len(octets))
    delivery, message = named.get(DELIVERY) or {}, named.get(MESSAGE) or {}
    headers = given.get("headers") or {}
    if message.get("message_id") is not None:
        given["message_id"] = "urn:uuid:" + given["message_id"]
    elif isinstance(headers.get(ID_HEADER), bytes):
        given["message_id"] = headers.pop(ID_HEADER)
    if (message.get("reply_to") or {}).get("exchange"):
        given["address"] = given["reply_to"]
    if isinstance(headers.get(SUBJECT_HEADER), str):
        given["subject"] = headers.pop(SUBJECT_HEADER)
    elif "type" in given:
        given["subject"] = given.pop("type")
    sequence = headers.get(SEQUENCE_HEADER)
    if isinstance(sequence, tuple) and sequence[0] in "iI" and sequence[1] >= 0:
        given["group_sequence"] = headers.pop(SEQUENCE_HEADER)[1]
    if "timestamp" in given:
        given["milliseconds"] = milliseconds(delivery["timestamp"]) % 1000
    if delivery.get("expiration"):
        given["expiry_ms"] = milliseconds(delivery["expiration"])
    return given


def address_of(exchange, key):
    """A reply-to as a text."""
    return key if not exchange else EXCHANGES + quoted(exchange) + "/" + quoted(key)


def reply_to_of(text):
    """The struct reply-to of a text: the opposite of `address_of`, also of an address of a queue (/queues/NAME)."""
    if text.startswith(QUEUES):
        return {"exchange": "", "routing_key": unquoted(text[len(QUEUES) :])}
    if text.startswith(EXCHANGES):
        exchange, _, key = text[len(EXCHANGES) :].partition("/")
        return {"exchange": unquoted(exchange), "routing_key": unquoted(key)}
    return {"exchange": "", "routing_key": text}


def quoted(text):
    """A name as a part of an address: percent-encoded (RFC 3986, 2.1)."""
    return "".join([chr(octet) if chr(octet) in _PLAIN else "%%%02X" % octet for octet in text.encode("utf-8")])


def unquoted(text):
    """The opposite of `quoted`; a text that is not encoded so comes as it is."""
    first, *parts = text.split("%")
    octets = first.encode("utf-8")
    try:
        for part in parts:
            octets += bytes((int(part[:2], 16),)) + part[2:].encode("utf-8")
        return str(octets, "utf-8")
    except ValueError:
        return text


def message_fields(given):
    """The fields of message-properties out of the properties of class basic, numbers of headers perhaps with their letters."""
    fields: "dict" = {}
    headers = dict(given.get("headers") or {})
    for name in ("content_type", "content_encoding"):
        if isinstance(given.get(name), str):
            fields[name] = given[name]
    for name in ("correlation_id", "user_id", "app_id"):
        if given.get(name) is not None:
            fields[name] = octets_of(given[name])
    if given.get("message_id") is not None:
        id_ = types.uuid_octets(given["message_id"]) if isinstance(given["message_id"], str) else None
        if id_ is None:
            headers[ID_HEADER] = given["message_id"]
        else:
            fields["message_id"] = id_
    if isinstance(given.get("reply_to"), str):
        fields["reply_to"] = reply_to_of(given["reply_to"])
    for name, title in (("type", TYPE_HEADER), ("reserved", CLUSTER_HEADER)):
        if given.get(name) is not None:
            headers[title] = given[name]
    sequence = given.get("group_sequence")
    if sequence is not None:
        headers[SEQUENCE_HEADER] = ("I" if sequence <= 0x7FFFFFFF else "i", sequence)
    if given.get("subject") is not None:
        headers[TYPE_HEADER if given.get("type") is None else SUBJECT_HEADER] = given["subject"]
    if headers:
        fields["application_headers"] = headers
    return fields


def octets_of(text):
    """A short string's octets: class basic's are octets where they are no UTF-8."""
    return text.encode("utf-8") if isinstance(text, str) else text


# What receivers of 0-10 get


def rewritten(octets, changes, annotations):
    """A header segment (bytes) with other fields of delivery-properties (a dict or None) and the broker's annotations over its application
    headers (a dict or {}); what neither names stays octet for octet."""
    parts = []
    is_delivery_done, is_message_done = changes is None, not annotations
    for name, begin, behind in structs.each_struct(octets, 0, len(octets)):
        if name == DELIVERY and not is_delivery_done:
            is_delivery_done = True
            fields = structs.read(name, octets, begin, behind)[0]
            fields.update(changes)
            parts.append(structs.write(DELIVERY, fields))
        elif name == MESSAGE and not is_message_done:
            is_message_done = True
            parts.append(structs.write(MESSAGE, annotated(structs.read(name, octets, begin, behind, True)[0], annotations)))
        else:
            parts.append(octets[begin:behind])
    if not is_delivery_done:
        parts.insert(0, structs.write(DELIVERY, changes))
    if not is_message_done:
        parts.append(structs.write(MESSAGE, annotated({}, annotations)))
    return b"".join(parts)


def annotated(fields, annotations):
    """The fields of message-properties with the broker's annotations: those of headers, and those of properties that stand there."""
    given = put_over({"headers": fields.get("application_headers") or {}}, annotations)
    fields = dict(fields)
    fields["application_headers"] = given.pop("headers", None) or None
    fields.update({name: value for name, value in message_fields(given).items() if name != "application_headers"})
    return fields

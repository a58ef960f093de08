"""What a message of AMQP 1.0 says of itself, by the names of class basic and by its own: the row of core/message/formats.py.

Octets are a properties part (sections.py). `decode` gives what rules compare, exact.py what receivers of 0-9-1 get, both as RabbitMQ 4
maps it (core/SPEC.md has what is lost); `facts` gives the sections with their own names and types.
"""

from . import addresses, sections, types

SHORT_MAX = 255
LONG_MAX = 0x7FFFFFFFFFFFFFFF
DEPTH_MAX = 8  # levels that field tables of 0-9-1 have


def facts(octets, at, end):
    """The sections before the body, by name, of a properties part that was checked: those that are lists as the fields that
    composites.py gives, maps as types.py gives them. Sections that the message has not are not there."""
    named = {}
    part = bytes(octets[at:end])
    at = 0
    while at < len(part):
        code, value = sections.descriptor(part, at, len(part))
        if code >= sections.DATA:
            break
        _, start, size = sections.head(code, part, value, len(part))
        at = start + size
        name = sections.NAMES[code][0]
        if code in (sections.HEADER, sections.PROPERTIES):
            named[name] = sections.fields_of(code, part, value, at)
        else:
            named[name] = types.decode(part, value, at, 2)[0]
    return named


def check(buffer, at, end):
    """Raise ProtocolError for octets that are no properties part."""
    split = sections.split(buffer, at, end, False)
    if split is not None and split[0] != end:
        sections.bad("a message's properties end before their octets")
    if split is None:
        sections.split(buffer, at, end)


def decode(buffer, at, end):
    """The properties by the names of class basic, with plain values: what rules compare."""
    return properties_of(facts(buffer, at, end), plain)


def field_in(octets, name):
    """One property of a properties part (bytes), by its name in class basic; None: there is none."""
    return decode(octets, 0, len(octets)).get(name)


def header(octets, name):
    """One header of a properties part (bytes), as `decode` names them; None: there is none."""
    key = "x-cc" if name == "CC" else name
    if key.encode("utf-8") not in octets:
        return None
    return (field_in(octets, "headers") or {}).get(name)


def properties_of(facts, write):
    """The names of class basic out of facts; `write`: how values of headers are given."""
    given: "dict" = {}
    header, own = facts.get("header") or {}, facts.get("properties") or {}
    noted = facts.get("message-annotations") or {}
    headers: "dict" = {}
    for key in noted:
        header_of(headers, key, noted[key], write)
    pairs = facts.get("application-properties") or {}
    for key in pairs:
        put(headers, sections.text_of(key), pairs[key], write)
    durable = header.get("durable")
    if durable is not None:
        given["delivery_mode"] = 2 if durable else 1
    else:
        put_basic(given, "delivery_mode", noted, "x-basic-delivery-mode")
    if header.get("priority") is not None:
        given["priority"] = header["priority"]
    else:
        put_basic(given, "priority", noted, "x-basic-priority")
    if header.get("ttl") is not None:
        given["expiration"] = str(header["ttl"])
    else:
        put_basic(given, "expiration", noted, "x-basic-expiration")
    put_basic(given, "type", noted, "x-basic-type")
    for name, field in (("content_type", "content-type"), ("content_encoding", "content-encoding"), ("app_id", "group-id")):
        put_short(given, name, own.get(field))
    if "type" not in given:
        put_short(given, "type", own.get("subject"))
    for name, field in (("message_id", "message-id"), ("correlation_id", "correlation-id")):
        identifier(given, headers, name, "x-" + field, own.get(field), write)
    put_short(given, "reply_to", reply_to(own.get("reply-to")))
    user = own.get("user-id")
    if user is not None and (write is not plain or sections.utf8(user) is not None) and len(user) <= SHORT_MAX:
        given["user_id"] = user if sections.utf8(user) is None else sections.utf8(user)
    created = own.get("creation-time")
    if created is not None and created >= 0:
        given["timestamp"] = created // 1000
    if headers:
        given["headers"] = headers
    return given


def put_basic(given, name, noted, key):
    """A property of class basic that a conversion noted as an annotation."""
    value = noted.get(("symbol", key))
    if isinstance(value, tuple) and value[0] in ("ubyte", "uint", "ushort"):
        value = value[1]
    if name in ("expiration", "type"):
        if isinstance(value, str):
            put_short(given, name, value)
    elif isinstance(value, int) and 0 <= value <= 255:
        given[name] = value


def put_short(given, name, text):
    """A property that is a short string, where the text fits into one."""
    if text is not None and len(text.encode("utf-8")) <= SHORT_MAX:
        given[name] = text


def identifier(given, headers, name, header, value, write):
    """A message-id or correlation-id (section 3.2.4): one that is no short string is the header that RabbitMQ gives it."""
    if value is None:
        return
    text = value
    if isinstance(value, tuple):
        text = urn_of(value[1]) if value[0] == "uuid" else str(value[1])
    if write is plain or isinstance(text, str) and len(text.encode("utf-8")) <= SHORT_MAX:
        given[name] = text
    else:
        put(headers, header, value, write)


def urn_of(octets):
    """A uuid as text."""
    digits = "".join(["%02x" % octet for octet in octets])
    return "urn:uuid:" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def reply_to(address):
    """An address as a queue's name where it is one of RabbitMQ's second format, else as it is; None where it is no text."""
    if not isinstance(address, str):
        return None
    if not address.startswith("/queues/"):
        return address
    octets = addresses.decoded(address[8:])
    return None if octets is None else sections.utf8(octets)


# Headers


def header_of(headers, key, value, write):
    """An annotation of the message as a header: those that begin with x-, without what other properties tell."""
    name = sections.text_of(key)
    if name == "x-cc":
        put(headers, "CC", value, write)
    elif name is not None and name.startswith("x-") and name not in OWN and not name.startswith("x-basic-"):
        put(headers, name, value, write)


OWN = ("x-routing-key", "x-exchange", "x-opt-deaths", "x-death")


def put(headers, name, value, write):
    """A header, where name and value can be one."""
    if name is None or len(name.encode("utf-8")) > SHORT_MAX:
        return
    try:
        headers[name] = converted(value, write, 1)
    except ValueError:
        pass  # what 0-9-1 has no type for


def converted(value, write, depth):
    """A value of types.py as one of core/amqp_0_9/field_table.py. Raises ValueError for what has no like there."""
    if depth > DEPTH_MAX:
        raise ValueError("a value more than %d levels deep" % DEPTH_MAX)
    if isinstance(value, dict):
        table: "dict" = {}
        for key in value:
            put_deeper(table, sections.text_of(key), value[key], write, depth + 1)
        return table
    if isinstance(value, tuple) and value[0] == "array":
        type_ = value[1]
        if isinstance(type_, tuple):
            raise ValueError("an array of described values")
        value = [each if type_ in types.NATIVE else (type_, each) for each in value[2]]
    if isinstance(value, list):
        items = []
        for each in value:
            try:
                items.append(converted(each, write, depth + 1))
            except ValueError:
                pass
        return items
    return write(value)


def put_deeper(table, name, value, write, depth):
    """A pair of a table within a header."""
    if name is not None and len(name.encode("utf-8")) <= SHORT_MAX:
        try:
            table[name] = converted(value, write, depth)
        except ValueError:
            pass


_TEXTS = {"symbol": lambda value: value, "char": lambda value: value, "uuid": urn_of}
_LETTERS = {"ubyte": "B", "ushort": "u", "uint": "i", "byte": "b", "short": "s", "int": "I", "float": "f"}


def plain(value):
    """A value that is no list and no map, as field_table.decode gives it."""
    if not isinstance(value, tuple):
        return value
    name, value = value[:2]
    if name in _TEXTS:
        return _TEXTS[name](value)
    if name == "timestamp" and value >= 0:
        return ("T", value // 1000)
    if name in _LETTERS or name == "ulong":
        return value
    raise ValueError("0-9-1 has no %s" % name)


def lettered(value):
    """A header's value with the letter of its exact type (core/message/README.md), as field_table.encode writes it."""
    if isinstance(value, bytes):
        return ("S", value)
    if isinstance(value, int) and not isinstance(value, bool):
        return ("l", value)
    if isinstance(value, tuple) and value[0] in _LETTERS:
        return (_LETTERS[value[0]], value[1])
    if isinstance(value, tuple) and value[0] == "ulong":
        if value[1] > LONG_MAX:
            raise ValueError("a ulong above those of 0-9-1")
        return ("l", value[1])
    return plain(value)


# For receivers of 0-10, which has more than class basic


def widely(value):
    """As `lettered`, with the types that 0-10 has, too."""
    if isinstance(value, tuple) and value[0] in _WIDE:
        return (_WIDE[value[0]], value[1])
    return lettered(value)


_WIDE = {"uuid": "U", "ulong": "Q", "char": "c"}


def widened(given, facts):
    """The properties of class basic with those that only 1.0 and 0-10 have, and with ids of any octets."""
    own = facts.get("properties") or {}
    if own.get("subject") is not None:
        given["subject"] = own["subject"]
        if ("symbol", "x-basic-type") not in (facts.get("message-annotations") or {}):
            given.pop("type", None)
    for name, field in (("group_sequence", "group-sequence"), ("expiry_ms", "absolute-expiry-time")):
        if own.get(field) is not None:
            given[name] = own[field]
    if "timestamp" in given:
        given["milliseconds"] = own["creation-time"] % 1000
    value = own.get("correlation-id")
    if "correlation_id" not in given and isinstance(value, (bytes, str)):
        given["correlation_id"] = value
        headers = given["headers"]
        del headers["x-correlation-id"]
    return given


# Writing


def encode(given):
    """Properties by the names of class basic as a properties part without data head."""
    from . import convert

    return convert.sections_of(given, {})


def merge(octets, annotations):
    """A properties part with the broker's annotations (core/message/annotations.py) over it, as receivers of AMQP 1.0 get it."""
    from . import convert

    return convert.merged(octets, annotations)

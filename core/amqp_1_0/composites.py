"""Composite values of AMQP 1.0 (section 1.4): performatives, termini, outcomes and the rest of spec_1_0.COMPOSITES, by the names of fields.

    described list: descriptor (ulong code or symbol "amqp:NAME:list"), fields in the order of the table; trailing ones may be left out

Fields come without the tuple that names their type (types.py), since the table has it: {"handle": 0, "role": False, ...}, each field of the
table, its default where it is null. A field that may be multiple is a list. Under type * another composite value is a pair (name, fields),
anything else is as types.py reads it.
"""

from ..errors import RESOURCE_ERROR, SYNTAX_ERROR, ProtocolError
from . import types
from .spec_1_0 import CHOICES, COMPOSITES

_BY_CODE = {code: (name, fields) for code, name, fields in COMPOSITES}
_BY_NAME = {name: (code, fields) for code, name, fields in COMPOSITES}
_PLAIN = ("boolean", "string", "binary", "map")  # types that types.py reads without a tuple


def read(buffer, at, end):
    """The composite value at `at` of `buffer`, read up to `end`: (name, fields, position behind it). Raises resource-error for one of more
    than types.VALUES_MAX values."""
    if end - at > types.VALUES_MAX:
        behind = types.end_of_list(buffer, at, end)
        if behind - at > types.VALUES_MAX and types.count(buffer, at, behind, types.VALUES_MAX) > types.VALUES_MAX:
            raise ProtocolError(RESOURCE_ERROR, "a performative of more than %d values" % types.VALUES_MAX, True)
    value, at = types.decode(buffer, at, end)
    pair = composite(value)
    if pair is None:
        raise ProtocolError(SYNTAX_ERROR, "a composite value was expected, and not %s" % (shown(value),))
    return pair[0], pair[1], at


def composite(value):
    """(name, fields) of a value that types.py has read; None when it is no composite value of the table."""
    row = row_of(value)
    if row is None:
        return None
    name, fields = row
    given = value[2]
    if not isinstance(given, list) or len(given) > len(fields):
        raise ProtocolError(SYNTAX_ERROR, "%s is a list of at most %d fields" % (name, len(fields)))
    table = {}
    for place, field in enumerate(fields):
        table[field[0]] = checked(name, field, given[place] if place < len(given) else None)
    return name, table


def row_of(value):
    """(name, fields) of the table for a described value's descriptor, or None."""
    if not isinstance(value, tuple) or value[0] != "described" or not isinstance(value[1], tuple):
        return None
    kind, descriptor = value[1][:2]
    if kind == "ulong":
        return _BY_CODE.get(descriptor)
    if kind == "symbol" and descriptor.startswith("amqp:") and descriptor.endswith(":list"):
        row = _BY_NAME.get(descriptor[5:-5])
        return None if row is None else (descriptor[5:-5], row[1])
    return None


def checked(name, field, value):
    """A field's value without its tuple. Raises ProtocolError for a type, a number or an absence that the table does not allow."""
    title, type_, mandatory, multiple, default = field
    if value is None:
        if mandatory:
            raise ProtocolError(SYNTAX_ERROR, "%s without its field %s" % (name, title))
        return [] if multiple else default
    if multiple:
        if isinstance(value, tuple) and value[0] == "array":
            if value[1] != type_:
                raise ProtocolError(SYNTAX_ERROR, "%s.%s is an array of %s, and not of %s" % (name, title, type_, value[1]))
            return value[2]
        return [plain(name, title, type_, value)]
    return plain(name, title, type_, value)


def plain(name, title, type_, value):
    """One value of a field of this type, without its tuple."""
    if type_ == "*":
        pair = composite(value)
        return value if pair is None else pair
    if type_ in _BY_NAME:
        pair = composite(value)
        if pair is not None and pair[0] == type_:
            return pair[1]
    elif type_ in _PLAIN:
        if not isinstance(value, tuple) and types.type_of(value) == type_:
            return value
    else:
        base, choices = CHOICES.get(type_, (type_, None))
        if isinstance(value, tuple) and value[0] == base:
            if choices is None or value[1] in choices:
                return value[1]
            raise ProtocolError(SYNTAX_ERROR, "%s.%s is one of %s, and not %s" % (name, title, shown(choices), shown(value[1])))
    raise ProtocolError(SYNTAX_ERROR, "%s.%s is a value of type %s, and not %s" % (name, title, type_, shown(value)))


def shown(value):
    """A value in an error's text, cut."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def described(name, given, whole=False):
    """The composite value for types.encode, out of fields by name; those that are left out or None are null. `whole`: nulls at the end are
    written too. Raises KeyError for other names, ValueError where a mandatory one is missing."""
    code, fields = _BY_NAME[name]
    given = dict(given)
    values: "list" = []
    for title, type_, mandatory, multiple, _ in fields:
        value = given.pop(title, None)
        if value is None or (multiple and not value):
            if mandatory:
                raise ValueError("%s without its field %s" % (name, title))
            values.append(None)
        elif multiple:
            values.append(("array", type_, value))
        else:
            values.append(typed(type_, value))
    if given:
        raise KeyError("%s has no field %s" % (name, sorted(given)[0]))
    while values and values[-1] is None and not whole:
        values.pop()
    return ("described", ("ulong", code), values)


def typed(type_, value):
    """A field's value with the tuple that names its type."""
    if type_ in _BY_NAME:
        return described(type_, value)
    if type_ == "*":
        is_pair = isinstance(value, tuple) and len(value) == 2 and value[0] in _BY_NAME and isinstance(value[1], dict)
        return described(value[0], value[1]) if is_pair else value
    if type_ in _PLAIN:
        return value
    return (CHOICES[type_][0] if type_ in CHOICES else type_, value)


def write(name, given, whole=False):
    """The octets of a composite value: the opposite of `read`, in the smallest encodings. `whole`: with all its fields, as in the
    performatives of this broker (section 1.4 lets a writer leave out nulls at the end; azure-eventhub reads them)."""
    return types.encode(described(name, given, whole))

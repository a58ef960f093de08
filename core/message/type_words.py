"""RabbitMQ's words for the types of fields in error texts, and when it considers two fields equal."""


def type_word(value):
    """The type of a value from a field table, as in "signedint"; the widths that numbers had on the wire are not known any more."""
    if value is None:
        return "void"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "signedint" if -0x80000000 <= value < 0x80000000 else "long"
    for type_, word in ((float, "double"), (str, "longstr"), (bytes, "binary"), (dict, "table"), (list, "array")):
        if isinstance(value, type_):
            return word
    return "timestamp"


def alike(one, other):
    """True when two fields are equal and of one kind: whole numbers of all widths are one, those with a fraction another, true is no 1;
    octets are text. RabbitMQ compares the arguments of a second declaration so."""
    if isinstance(one, str):
        one = one.encode("utf-8")
    if isinstance(other, str):
        other = other.encode("utf-8")
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(name in other and alike(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(alike(each, other[place]) for place, each in enumerate(one))
    return one == other or one != one and other != other

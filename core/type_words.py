"""How RabbitMQ's error texts call the type of a field."""


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

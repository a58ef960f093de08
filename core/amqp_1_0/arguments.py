"""Arguments of queues, exchanges, bindings and consumers: values of AMQP 1.0 as the broker has them, and back.

The broker's are those of a field table: None, bool, int, float, str, bytes, list, dict by text, ("T", seconds). The broker keeps neither
the widths of AMQP 1.0's numbers nor the difference between symbols and strings. A value that a field table cannot hold raises ValueError.
"""

_NUMBERS = ("ubyte", "ushort", "uint", "ulong", "byte", "short", "int", "float", "symbol", "boolean", "double")
_NUMBER_MAX = (1 << 63) - 1


def neutral(value):
    """A value of types.py as the broker has it. Raises ValueError."""
    if isinstance(value, dict):
        return {text(key): neutral(value[key]) for key in value}
    if isinstance(value, list):
        return [neutral(each) for each in value]
    if not isinstance(value, tuple):
        return value
    name = value[0]
    if name == "timestamp":
        return ("T", max(value[1] // 1000, 0))
    if name == "array" and isinstance(value[1], str):
        return [neutral(each if value[1] in ("string", "binary", "long", "list", "map") else (value[1], each)) for each in value[2]]
    if name not in _NUMBERS or isinstance(value[1], int) and value[1] > _NUMBER_MAX:
        raise ValueError("a %s" % name)
    return value[1]


def text(key):
    """A key of a map, which is a string or a symbol. Raises ValueError."""
    if isinstance(key, tuple) and key[0] == "symbol":
        return key[1]
    if not isinstance(key, str):
        raise ValueError("a key that is no text")
    return key


def native(value):
    """One of the broker's values as types.py writes it."""
    if isinstance(value, dict):
        return {key: native(value[key]) for key in value}
    if isinstance(value, list):
        return [native(each) for each in value]
    return ("timestamp", 1000 * value[1]) if isinstance(value, tuple) else value

"""Matching of a headers exchange (0-9-1 section 3.1.3.4): a message fits when its headers have what the binding asks for.

x-match "all" (the default): all of it; "any": at least one. An argument without a value asks only that the header is there. Arguments
that begin with x- are not compared, but by all-with-x and any-with-x (RabbitMQ).
"""


def match_mode(arguments):
    """The x-match of a binding, or None when it is not one of the four."""
    mode = arguments.get("x-match", "all")
    return mode if mode in ("all", "any", "all-with-x", "any-with-x") else None


def fits(arguments, headers):
    """True when a message with `headers` (a dict) goes to a binding with `arguments`."""
    mode = arguments.get("x-match", "all")
    with_x = mode.endswith("-with-x")
    any_ = mode.startswith("any")
    for name in arguments:
        if name == "x-match" or (name.startswith("x-") and not with_x):
            continue
        fit = name in headers and (arguments[name] is None or headers[name] == arguments[name])
        if fit == any_:
            return any_
    return not any_

"""Parts of the core that a board may leave out (boards/, its `carries`): imported when they are first needed.

A part that is not carried costs nothing, and a peer that asks for it hears so in the protocol's words. This file knows no part by name.
"""

from .errors import NOT_IMPLEMENTED, ProtocolError


def part(name):
    """The module core/<name> (dots between folder and file), or None when this build does not carry it.

    Raises ImportError when it is there and something that it imports is not: a broken build is no small one.
    """
    whole = __name__[: __name__.rindex(".")] + "." + name
    try:
        return __import__(whole, None, None, ("part",))
    except ImportError as error:
        if not is_absent(whole, str(error)):
            raise
        return None


def is_absent(whole, text):
    """True when an ImportError's text says that the module `whole`, or a folder above it, is not there (both interpreters quote it)."""
    quoted = text.split("'")
    return len(quoted) > 1 and (whole + ".").startswith(quoted[1] + ".")


def needed(name, feature):
    """The module core/<name>. Raises not-implemented where this build does not carry it; `feature` is the word for it."""
    module = part(name)
    if module is None:
        raise ProtocolError(NOT_IMPLEMENTED, "this build of the broker does not carry " + feature)
    return module

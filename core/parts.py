"""Parts of the core that a board may leave out (boards/, its `carries`): looked for when they are first needed.

What is not carried costs nothing, and who asks for it is told so in the protocol's words. It knows no part by name.
"""

from .errors import NOT_IMPLEMENTED, ProtocolError


def part(name):
    """The module core/<name> (dots between folder and file), or None when this build does not carry it."""
    try:
        return __import__(__name__[:__name__.rindex(".")] + "." + name, None, None, ("part",))
    except ImportError:
        return None


def needed(name, what):
    """The module core/<name>. Raises not-implemented where this build does not carry it; `what` is the word for it."""
    found = part(name)
    if found is None:
        raise ProtocolError(NOT_IMPLEMENTED, "this build of the broker does not carry " + what)
    return found

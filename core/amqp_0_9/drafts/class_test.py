"""Class test of the drafts, whose operations on numbers are others than those of 0-8."""

from ...errors import SYNTAX_ERROR, ProtocolError
from ..older import answerable


def test_integer(session, channel, arguments):
    """test.integer: the sum, the least or the greatest."""
    *numbers, operation = arguments
    if not 1 <= operation <= 3:
        raise ProtocolError(SYNTAX_ERROR, "test.integer with operation %d" % operation)
    result = (sum, min, max)[operation - 1](numbers)
    session.reply(channel.number, "test_integer_ok", (result & 0xFFFFFFFFFFFFFFFF,))


def test_string(session, channel, arguments):
    """test.string: both texts one behind the other, the shorter or the longer one."""
    first, second, operation = arguments
    texts = first.encode("utf-8"), second
    if not 1 <= operation <= 3:
        raise ProtocolError(SYNTAX_ERROR, "test.string with operation %d" % operation)
    result = texts[0] + texts[1] if operation == 1 else (min, max)[operation - 2](texts, key=len)
    session.reply(channel.number, "test_string_ok", (answerable(session, result),))

"""Messages that one family published and another delivers: which file of core/ gives their properties in the words that all families know.

Those are the names of class basic. Values are those of core/amqp_0_9/field_table.py, numbers with the letter of their type: (letter,
number); a longstr that is not UTF-8 is ("S", octets). A file of EXACT has

    exact(octets)                   the properties (bytes) so, as their publisher sent them
"""

from ..parts import needed
from .formats import AMQP_1_0, BASIC, NUMBER

EXACT = {BASIC: "amqp_0_9.exact", AMQP_1_0: "amqp_1_0.properties"}


def exact(kind, octets):
    """The properties of a message of this kind."""
    return needed(EXACT[kind & NUMBER], "what other families are told of a message").exact(octets)

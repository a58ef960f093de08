"""The selector of a consumer (argument x-filter-jms-selector of Qpid's clients): a condition on a message's properties."""

from ..errors import PRECONDITION_FAILED, ProtocolError
from ..memory import layout
from ..message import reading
from ..patterns.selector import Selector
from ..shim import const

TEXT_MAX = const(4096)  # characters of a selector
ROUND_STEPS = const(8192)  # steps of a selector's program that a round of the broker may take
LOOK_STEPS = const(64)  # what a look at a message costs at least
STEP_OCTETS = const(2)  # octets of its properties that take as long as a step


def test_of(broker, text):
    """A function of the broker and a message, for wishes.attach. Raises precondition-failed for a text that is no selector."""
    if not isinstance(text, str) or len(text) > TEXT_MAX:
        raise ProtocolError(PRECONDITION_FAILED, "a selector is a text of at most %d characters" % TEXT_MAX)
    selector = Selector(text)
    steps = LOOK_STEPS + len(selector.program)

    def fits(broker, message):
        engine = broker.tables.engine
        octets = broker.tables.messages[message + layout.MESSAGE_PROPERTIES]
        engine.turned(max(engine.deliveries * (steps + octets // STEP_OCTETS) // ROUND_STEPS, 1))
        return selector.fits(reading.properties_of(broker.tables, message))

    return fits

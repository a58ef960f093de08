"""The log-in mechanisms of 0-9-1: the table of those that core/access/sasl.py has for every wire, and AMQPLAIN, which only this family
has."""

from ..access import sasl
from ..access.passwords import octets_of
from ..parts import part
from . import field_table


class AmqPlain(sasl.Mechanism):
    """RabbitMQ's and Qpid's: a field table without its size, with LOGIN and PASSWORD."""

    name = "AMQPLAIN"
    offered = staticmethod(sasl.offered_to_all)

    def receive(self, response):
        """The whole response."""
        table = field_table.pairs(response, 0, len(response), 1)
        name = table.get("LOGIN")
        secret = table.get("PASSWORD")
        if not isinstance(name, (str, bytes)) or not isinstance(secret, (str, bytes)):
            return self.refuse("the response has no LOGIN and PASSWORD")
        return self.with_password(name, octets_of(secret))


external = part("access.sasl_external")
MECHANISMS = (sasl.Plain, AmqPlain, sasl.Scram) + (() if external is None else (external.External,)) + (sasl.Anonymous,)

"""The log-in mechanisms of 0-9-1: the table of those that core/access/sasl.py has for every wire, and AMQPLAIN, which only this family
has."""

from ..access import sasl
from ..access.passwords import octets_of
from ..errors import ACCESS_REFUSED, ProtocolError
from ..parts import part
from . import field_table


class AmqPlain(sasl.Mechanism):
    """RabbitMQ's and Qpid's: a field table without its size, with LOGIN and PASSWORD."""

    name = "AMQPLAIN"
    offered = staticmethod(sasl.offered_to_all)

    def take(self, response):
        """All there is."""
        table = field_table.pairs(response, 0, len(response), 1)
        name = table.get("LOGIN")
        secret = table.get("PASSWORD")
        if not isinstance(name, (str, bytes)) or not isinstance(secret, (str, bytes)):
            return self.refuse("the response has no LOGIN and PASSWORD")
        return self.with_password(name, octets_of(secret))


external = part("access.sasl_external")
MECHANISMS = (sasl.Plain, AmqPlain, sasl.Scram) + (() if external is None else (external.External,)) + (sasl.Anonymous,)


def offered(session):
    """The names of the mechanisms that this peer is told of, as connection.start has them."""
    names = [class_.name for class_ in MECHANISMS if class_.announced(session.broker.access, session.connection)]
    return " ".join(names).encode("utf-8")


def begin(name, session):
    """An attempt with the mechanism called `name`; access-refused when it is not offered to this peer."""
    for class_ in MECHANISMS:
        if class_.name == name and class_.offered(session.broker.access, session.connection):
            return class_(session.broker.access, session.connection, session.broker.limits)
    raise ProtocolError(ACCESS_REFUSED, "mechanism '%s' is not served; %s are" % (name, str(offered(session), "utf-8")), True)

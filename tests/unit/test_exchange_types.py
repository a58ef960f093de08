"""The table of exchange types: names, aliases, and what is refused."""

from peer import Peer, encoded, new_broker

from leveret.core.exchange import registry

REFUSED = (("system", "invalid"), ("x-system", "unknown"), ("destination", "unknown"), ("x-nothing", "unknown"), ("", "unknown"))


def declare(peer, name, type_, arguments=None):
    peer.give(encoded("exchange_declare", 1, 0, name, type_, False, False, False, False, False, arguments or {}))
    return peer.frames()[0]


def test_every_row_has_its_file():
    for name, file in registry.TYPES:
        assert registry.type_named(name) is not None, (name, file)


def test_a_type_whose_file_is_left_out_is_unknown():
    """503 as for any other; the predeclared exchanges of such a type are not there."""
    kept = registry.TYPES
    registry.TYPES = tuple([(name, "left_out" if file == "headers" else file) for name, file in kept])
    try:
        broker = new_broker()
        assert [name for name in broker.exchanges if name in ("amq.headers", "amq.match")] == [] and "amq.topic" in broker.exchanges
        name, _, arguments = declare(Peer(broker), "e", "headers")
        assert (name, arguments[:2]) == ("connection_close", [503, "COMMAND_INVALID - unknown exchange type 'headers'"])
    finally:
        registry.TYPES = kept


def test_unknown_types_and_the_system_exchange_are_refused():
    """503 (section 1.6.2.1). The system exchange of section 3.1.3.5 is optional; there are no system services to deliver to."""
    broker = new_broker()
    for type_, word in REFUSED:
        name, _, arguments = declare(Peer(broker), "e", type_)
        assert (name, arguments[:2]) == ("connection_close", [503, "COMMAND_INVALID - %s exchange type '%s'" % (word, type_)])


def test_names_of_the_2005_draft_mean_the_same_types():
    broker = new_broker()
    peer = Peer(broker)
    for name in ("property", "matcher", "selector", "lossy"):
        arguments = {"x-loss": 0} if name == "lossy" else {}
        assert declare(peer, "e-" + name, name, arguments)[0] == "exchange_declare_ok"
        assert declare(peer, "e-" + name, "x-" + name, arguments)[0] == "exchange_declare_ok"
        assert broker.exchanges["e-" + name].type == "x-" + name

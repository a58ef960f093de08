"""A second declaration with another property than the first one's is refused by its name (0-9-1 sections 1.6.2.1 and 1.7.2.1: "MUST raise
a channel exception", precondition-failed, RabbitMQ's words), and one with the same properties changes nothing."""

from peer import Peer, encoded, new_broker

EXCHANGE = {"type": "fanout", "durable": True, "auto_delete": False, "internal": False}
QUEUE = {"durable": True, "auto_delete": False}


def exchange(peer, type="fanout", durable=False, auto_delete=False, internal=False, arguments=None):
    peer.give(encoded("exchange_declare", 1, 0, "e", type, False, durable, auto_delete, internal, False, arguments or {}))
    return peer.frames()


def queue(peer, durable=False, auto_delete=False, arguments=None):
    peer.give(encoded("queue_declare", 1, 0, "q", False, durable, False, auto_delete, False, arguments or {}))
    return peer.frames()


def refused(declare, first, second):
    """The text of the channel's close; None: the second declaration is answered as the first one was."""
    broker = new_broker()
    peer = Peer(broker)
    before = declare(peer, **first)
    told = declare(peer, **second)
    if told == before:
        return None
    ((name, _, arguments),) = told
    assert (name, arguments[0]) == ("channel_close", 406), told
    return arguments[1]


def test_each_property_of_an_exchange_and_of_a_queue():
    for declare, given in ((exchange, EXCHANGE), (queue, QUEUE)):
        assert refused(declare, given, given) is None
        for name, value in given.items():
            other = dict(given)
            other[name] = "direct" if name == "type" else not value
            for first, second in ((given, other), (other, given)):
                text = refused(declare, first, second) or ""
                assert text.startswith("PRECONDITION_FAILED - inequivalent arg '%s' for " % name), (name, text)


def test_arguments_with_a_meaning_to_the_broker():
    for declare, name, one, two in (
        (queue, "x-max-length", 5, 6),
        (queue, "x-message-ttl", 1000, 1001),
        (queue, "x-max-priority", 3, 4),
        (exchange, "alternate-exchange", "a", "b"),
    ):
        for first, second in (({name: one}, {name: two}), ({name: one}, {}), ({}, {name: one})):
            text = refused(declare, {"arguments": first}, {"arguments": second}) or ""
            assert "inequivalent arg '%s'" % name in text, (name, text)
        assert refused(declare, {"arguments": {name: one}}, {"arguments": {name: one}}) is None
    assert refused(queue, {"arguments": {"note": "a"}}, {"arguments": {"note": "b"}}) is None, "no argument of the broker's"

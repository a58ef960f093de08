"""Sources of links by frames: dynamic ones, subscriptions that stay and end, filters in the echo and in what is delivered."""

from peer_1_0 import Peer, declare, new_broker, performative

from leveret.core.amqp_1_0 import composites, properties, types
from leveret.core.memory import invariants

SELECTOR = ("described", ("symbol", "apache.org:selector-filter:string"), "n > 1")


def world():
    """A broker and a peer."""
    broker = new_broker(name_size_max=255, send_buffer_size=32768, queue_count_max=32)
    return broker, Peer(broker)


def attach(peer, handle=1, name="in", **source):
    """A receiver with this source: the broker's source."""
    given = {key.replace("_", "-"): source[key] for key in source}
    return peer.attach(name, handle, True, None, source=("source", given))["source"]


def detach(peer, handle=1, closed=True):
    """Detach a link, and wait for the answer."""
    peer.give(performative("detach", 0, handle=handle, closed=closed))
    assert peer.expect("detach")[1]["closed"] == closed


def publish_to(peer, number, subject):
    """A message with a subject."""
    octets = composites.write("properties", {"subject": subject}) + b"\x00\x53\x75\xa0\x01x"
    given = {"handle": 0, "delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
    peer.give(performative("transfer", 0, octets, **given))


def sections_of(octets):
    """The sections before the body of a message, by name."""
    return properties.facts(octets, 0, len(octets))


def publish(peer, number, application, handle=0):
    """A message with application properties, its body a number."""
    octets = types.encode(("described", ("ulong", 0x74), application)) + b"\x00\x53\x75" + types.encode(b"%d" % number)
    peer.give(
        performative("transfer", 0, octets, handle=handle, delivery_id=number, delivery_tag=b"%d" % number, message_format=0, settled=True)
    )


def test_a_dynamic_source_is_a_queue_that_goes_when_the_link_closes():
    broker, peer = world()
    name, source = attach(peer, dynamic=True)
    assert name == "source" and source["address"].startswith("/queues/amq.dyn-unit-in-")
    (queue,) = broker.queues
    assert peer.sender(source["address"]) > 0
    peer.send(0, b"to it")
    peer.credit(5)
    assert [body for _, body in peer.messages()] == [b"to it"]
    detach(peer)
    assert queue not in broker.queues
    invariants.check(broker.tables)


def test_a_durable_subscription_stays_when_its_link_detaches_and_ends_when_it_closes():
    broker, peer = world()
    lasting = {"address": "news", "capabilities": ["topic"], "durable": 2, "expiry_policy": "never"}
    attach(peer, name="sub", **lasting)
    detach(peer, closed=False)
    assert list(broker.queues) == ["subscription/unit/sub"]
    peer.sender("/topic/news")
    peer.send(0, b"while away")
    peer.frames()
    attach(peer, name="sub", **lasting)
    peer.credit(5)
    assert [body for _, body in peer.messages()] == [b"while away"]
    detach(peer, closed=False)
    assert attach(peer, name="sub")[1]["address"] == "news"
    detach(peer)
    assert broker.queues == {}
    peer.give(performative("attach", 0, name="sub", handle=1, role=True, source=("source", {})))
    assert peer.expect("attach")[1]["source"] is None
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:not-found"


def test_who_may_configure_no_longer_closes_his_link_and_leaves_the_subscription():
    """Closing the link of a durable subscription removes its queue, which takes the permission that made it (SPEC.md, permissions)."""
    broker, peer = world()
    lasting = {"address": "news", "capabilities": ["topic"], "durable": 2, "expiry_policy": "never"}
    attach(peer, name="sub", **lasting)
    user = peer.connection.user
    user.permit(("^none$", ".*", ".*"))
    peer.give(performative("detach", 0, handle=1, closed=True))
    broker.run()
    assert list(broker.queues) == ["subscription/unit/sub"]
    user.permit((".*", ".*", ".*"))
    again = Peer(broker)
    attach(again, name="sub", **lasting)
    detach(again)
    assert broker.queues == {}


def test_an_attach_without_a_source_asks_for_the_subscription_of_the_links_name():
    """JMS mapping, 8.8: so a client ends a subscription that it has no consumer of."""
    broker, peer = world()
    attach(peer, name="sub", address="news", capabilities=["topic"], durable=1, expiry_policy="never", distribution_mode="copy")
    detach(peer, closed=False)
    source = peer.attach("sub", 1, True, None, source=None)["source"][1]
    assert (source["address"], source["durable"], source["expiry-policy"]) == ("news", 1, "never")
    detach(peer)
    assert broker.queues == {}
    peer.give(performative("attach", 0, name="sub", handle=1, role=True))
    assert peer.expect("attach")[1]["source"] is None
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:not-found"


def test_a_subscription_has_copies_and_says_so():
    """Section 3.5.5: its queue is bound for it, so that no other link misses what it takes."""
    broker, peer = world()
    for handle in (1, 2):
        source = attach(peer, handle, "sub-%d" % handle, address="/topic/news", distribution_mode="copy")[1]
        assert source["distribution-mode"] == "copy"
    peer.sender("/topic/news")
    peer.send(0, b"news")
    for handle in (1, 2):
        peer.credit(5, handle)
        assert [body for _, body in peer.messages()] == [b"news"]
    invariants.check(broker.tables)


def test_a_selector_is_echoed_and_what_it_does_not_take_stays_for_others():
    broker, peer = world()
    declare(broker)
    filter_ = {("symbol", "jms-selector"): SELECTOR, ("symbol", "other"): ("described", ("symbol", "unknown"), 1)}
    source = attach(peer, address="q", filter=filter_)[1]
    assert source["filter"] == {("symbol", "jms-selector"): SELECTOR}
    peer.credit(10)
    peer.sender()
    for number in range(4):
        publish(peer, number, {"n": number})
    assert [body for _, body in peer.messages()] == [b"2", b"3"]
    assert attach(peer, handle=2, name="all", address="q")[1]["filter"] is None
    peer.credit(10, handle=2)
    assert [body for _, body in peer.messages()] == [b"0", b"1"]
    detach(peer)
    invariants.check(broker.tables)


def test_a_selector_on_a_topic_lets_go_of_what_it_does_not_take():
    broker, peer = world()
    attach(peer, address="t", capabilities=["topic"], filter={("symbol", "s"): SELECTOR})
    peer.credit(10)
    peer.sender("t", target=("target", {"address": "t", "capabilities": ["topic"]}))
    for number in range(4):
        publish(peer, number, {"n": number})
    assert [body for _, body in peer.messages()] == [b"2", b"3"]
    (queue,) = broker.queues.values()
    assert queue.message_count() == 0


def test_a_selector_without_sense_and_a_queue_that_takes_none_are_refused():
    broker, peer = world()
    declare(broker)
    declare(broker, "grouped", {"x-group-key": "k"})
    for address, text, condition in (("q", "n >", "amqp:invalid-field"), ("grouped", "n > 1", "amqp:not-implemented")):
        wrong = {("symbol", "s"): ("described", ("symbol", "apache.org:selector-filter:string"), text)}
        peer.give(performative("attach", 0, name="in", handle=1, role=True, source=("source", {"address": address, "filter": wrong})))
        assert peer.expect("attach")[1]["source"] is None
        assert peer.expect("detach")[1]["error"]["condition"] == condition
        peer.give(performative("detach", 0, handle=1, closed=True))
    assert not broker.queues["q"].consumers and not broker.queues["grouped"].consumers
    invariants.check(broker.tables)


def test_a_binding_filter_is_the_key_of_the_private_queue():
    broker, peer = world()
    binding = {("symbol", "b"): ("described", ("ulong", 0x468C00000001), "a.*")}
    assert attach(peer, address="amq.topic", filter=binding)[1]["filter"] == binding
    (queue,) = broker.queues.values()
    assert [each.key for each in queue.bound.values()] == [b"a.*"]


def test_a_source_is_found_again_by_the_links_name_alone():
    broker, peer = world()
    lasting = {"address": "news", "capabilities": ["topic"], "durable": 2, "expiry_policy": "never", "distribution_mode": "copy"}
    assert attach(peer, name="sub", **lasting)[1]["distribution-mode"] == "copy"
    detach(peer, closed=False)
    peer.give(performative("attach", 0, name="sub", handle=1, role=True))
    source = peer.expect("attach")[1]["source"][1]
    assert (source["address"], source["durable"], source["expiry-policy"]) == ("news", 1, "never")
    detach(peer)
    assert broker.queues == {}
    peer.give(performative("attach", 0, name="sub", handle=1, role=True))
    assert peer.expect("attach")[1]["source"] is None
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:not-found"


def test_a_link_that_says_paired_gets_the_route_of_each_message_as_annotations():
    broker, peer = world()
    declare(broker)
    for handle, given in ((1, None), (2, {("symbol", "paired"): True})):
        peer.attach("in%d" % handle, handle, True, "/queues/q", properties=given)
    peer.sender("/queue")
    for number in range(2):
        publish_to(peer, number, "q")
    peer.credit(1, handle=1)
    peer.credit(1, handle=2)
    found = [sections_of(payload) for name, _, payload, _ in peer.frames() if name == "transfer"]
    assert "message-annotations" not in found[0]
    assert found[1]["message-annotations"] == {("symbol", "x-exchange"): "", ("symbol", "x-routing-key"): "q"}

"""Addresses of AMQP 1.0: RabbitMQ 4's two forms, bare names, capabilities, and texts that are no address."""

from leveret.core.amqp_1_0 import addresses
from leveret.core.amqp_1_0.addresses import EXCHANGE, INVALID_FIELD, LINK, MADE, MANAGEMENT, NAME, OWN, QUEUE, TO, TOPIC
from leveret.core.errors import ProtocolError


def refused(read, address, **given):
    """The text of the error that an address comes to."""
    try:
        node = read(address, **given)
    except ProtocolError as error:
        assert error.condition == INVALID_FIELD
        return error.text
    raise AssertionError("%r is %r" % (address, node))


def same(address, node):
    """An address means the same as a source and as a target."""
    assert addresses.source(address) == node and addresses.target(address) == node


def test_the_second_form_of_a_queue_is_percent_encoded():
    same("/queues/q", (QUEUE, "q", None))
    same("/queues/my%2Fqueue", (QUEUE, "my/queue", None))
    same("/queues/a%20b%25%c3%A9", (QUEUE, "a b%\u00e9", None))
    same("/queues/a.b-c_d~e!$&'()*+,;=:@", (QUEUE, "a.b-c_d~e!$&'()*+,;=:@", None))
    same("/queues/amq.gen-1", (QUEUE, "amq.gen-1", None))


def test_the_second_form_of_an_exchange_is_a_target():
    assert addresses.target("/exchanges/e/k") == (EXCHANGE, "e", b"k")
    assert addresses.target("/exchanges/e") == (EXCHANGE, "e", b"")
    assert addresses.target("/exchanges/e/") == (EXCHANGE, "e", b"")
    assert addresses.target("/exchanges/my%2Fe/my%2Fk") == (EXCHANGE, "my/e", b"my/k")
    assert addresses.target("/exchanges/%F0%9F%91%89/%ff%00") == (EXCHANGE, "\U0001f449", b"\xff\x00")
    for address in ("/exchanges/e/k", "/exchanges/e"):
        assert "not the address of a source" in refused(addresses.source, address)


def test_what_the_second_form_does_not_allow_is_refused():
    texts = (
        "/queues",
        "/queues/",
        "/queues/a/b",
        "/queues/a%",
        "/queues/a%2",
        "/queues/a%2G",
        "/queues/%%41",
        "/queues/a b",
        "/queues/a?b",
    )
    texts += (
        "/queues/a#b",
        "/queues/\u270b",
        "/queues/a\x00",
        "/queues/missing%encoding",
        "/queues/%ff",
        "/queues/%C0%AF",
        "/queues/%ED%A0%80",
    )
    texts += ("/exchanges", "/exchanges/", "/exchanges//", "/exchanges//k", "/exchanges/amq.default", "/exchanges/amq.default/k")
    texts += (
        "/exchanges/e/k/",
        "/exchanges/missing/encoding/key",
        "/exchanges/e/missing%encoding",
        "/exchanges/\u270b",
        "/exchanges/%ff/k",
    )
    for text in texts:
        for read in (addresses.source, addresses.target):
            assert repr(text[:80]) in refused(read, text)


def test_the_first_form():
    same("/queue/q", (MADE, "q", None))
    same("/queue/a%2Fb%20", (MADE, "a/b%20", None))
    same("/amq/queue/q", (QUEUE, "q", None))
    same("/exchange/e/k", (EXCHANGE, "e", b"k"))
    same("/exchange/e%2Ff/a%2Fb", (EXCHANGE, "e/f", b"a/b"))
    same("/topic/a.%2F.#", (EXCHANGE, "amq.topic", b"a./.#"))
    assert addresses.target("/exchange/e") == (EXCHANGE, "e", None)
    assert addresses.source("/exchange/e") == (EXCHANGE, "e", b"")
    assert addresses.target("/queue") == (EXCHANGE, "", None)
    refused(addresses.source, "/queue")


def test_what_the_first_form_does_not_allow_is_refused():
    texts = ("", "/", "//", "/queue/", "/queue/a/b", "/exchange", "/exchange/", "/exchange//k", "/exchange/e/k/x", "/topic", "/topic/")
    texts += ("/topic/a/b", "/amq", "/amq/queue", "/amq/queue/", "/amq/queue/a/b", "/amq/exchange/e", "/temp-queue/a", "/reply-queue/a")
    texts += ("/qqq/x", "/Queue/x", "/management/", "/ex/\u270b", "/" * 70000)
    for text in texts:
        for read in (addresses.source, addresses.target):
            assert len(refused(read, text)) < 130


def test_a_bare_name_is_as_it_stands_and_its_capability_says_what_it_names():
    for text in ("q", "a/b", "a%2Fb", "%", "queue/x", " ", "hub/ConsumerGroups/$default/Partitions", "\U0001f449"):
        same(text, (NAME, text, None))
    assert addresses.source("t", capabilities=["topic", "shared"]) == (TOPIC, "t", b"t")
    assert addresses.target("t.\u00e9", capabilities=["temporary-topic"]) == (TOPIC, "t.\u00e9", "t.\u00e9".encode())
    assert addresses.source("q", capabilities=["temporary-queue"]) == (QUEUE, "q", None)
    assert addresses.source("q", capabilities=["queue"]) == (QUEUE, "q", None)
    assert addresses.source("/queues/q", capabilities=["topic"]) == (QUEUE, "q", None)


def test_a_partition_of_a_hub_has_the_forms_that_clients_of_event_hubs_write():
    for start in ("", "/", "amqps://ns.example:5671/", "sb://127.0.0.1/"):
        assert addresses.source(start + "hub/ConsumerGroups/$Default/Partitions/12") == (QUEUE, "hub-12", None)
        same(start + "hub/Partitions/12", (QUEUE, "hub-12", None))
    for text in (
        "hub/consumergroups/g/Partitions/1",
        "hub/ConsumerGroups/g/1",
        "/ConsumerGroups/g/Partitions/1",
        "x/ConsumerGroups/g/Partitions/",
    ):
        assert addresses.partition(text) is None
    same("http://h/hub/Partitions/1", (NAME, "http://h/hub/Partitions/1", None))


def test_the_host_that_clients_of_azure_write_before_an_address_is_no_part_of_it():
    same("amqps://ns.example:5671/q", (NAME, "q", None))
    same("sb://127.0.0.1/a/b", (NAME, "a/b", None))
    same("amqp://h//queues/a%20b", (QUEUE, "a b", None))
    for read in (addresses.source, addresses.target):
        assert "amqps://ns.example" in refused(read, "amqps://ns.example")


def test_no_address_is_the_anonymous_terminus_the_links_name_or_a_node_made_for_it():
    assert addresses.target(None) == (TO, "", None)
    assert addresses.source(None) == (LINK, "", None)
    for read in (addresses.source, addresses.target):
        assert read(None, dynamic=True) == (OWN, "", None)
        assert read(None, dynamic=True, capabilities=["temporary-topic"]) == (OWN, "", b"")
        assert read(None, dynamic=True, capabilities=["rabbitmq:volatile-queue"]) == (OWN, "reply", None)
        assert "dynamic" in refused(read, "q", dynamic=True)


def test_management_has_two_names():
    same("/management", (MANAGEMENT, "", None))
    same("$management", (MANAGEMENT, "", None))


def test_the_address_of_a_queue_leads_to_it():
    for name in ("q", "a/b", "%", "a b+c", "\u00e9\U0001f449", "amq.gen-\x7f\x00", "".join([chr(code) for code in range(1, 256)])):
        assert addresses.source(addresses.queue_address(name)) == (QUEUE, name, None)
    octets = bytes(range(256))
    assert addresses.decoded(addresses.encoded(octets)) == octets


def test_two_subscriptions_have_one_name_only_when_they_are_the_same():
    name = addresses.subscription_name
    assert name("c", "s", (), True) == "subscription/c/s" == name("c", "s|2", ["shared"], True)
    assert name("c", "s|volatile1", ["shared"], False) == "volatile/c/s"
    assert name("c", "s", ["shared", "global"], True) == "subscription//s" == name("d", "s|global-2", ["global"], True)
    assert (
        len(
            {name(container, link, (), True) for container, link in (("a/b", "c"), ("a", "b/c"), ("a", "b%2Fc"), ("a%2Fb", "c"), ("", "c"))}
        )
        == 5
    )

"""RabbitMQ 4's management over AMQP 1.0: requests to responses, with RabbitMQ's statuses and sentences."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, new_broker

from leveret.core.access.permissions import User
from leveret.core.amqp_1_0 import composites, management, types
from leveret.core.errors import PRECONDITION_FAILED, SYNTAX_ERROR, ProtocolError
from leveret.core.memory import invariants


def request(method, to, body=None, number="id"):
    """The octets of a request."""
    head = composites.write("properties", {"message-id": number, "to": to, "subject": method, "reply-to": "$me"})
    return head + types.encode(("described", ("ulong", 0x77), body))


class World:
    """A broker and one user's connection."""

    def __init__(self, **limits):
        self.broker = new_broker(**limits)
        self.peer = Peer(self.broker)
        self.connection = self.peer.connection

    def ask(self, method, to, body=None, number="id"):
        """(status, body) of a response that must come at once."""
        return answered(management.Request(self.connection, request(method, to, body, number)).answer(), number)


def answered(octets, number="id"):
    """(status, body) of a response."""
    at, found = 0, []
    while at < len(octets):
        value, at = types.decode(octets, at, len(octets))
        found.append(value)
    name, fields = composites.composite(found[0])
    assert name == "properties" and fields["correlation-id"] == number and len(found) == 3
    assert found[1] == ("described", ("ulong", 0x74), {"http:response": "1.1"}) and found[2][:2] == ("described", ("ulong", 0x77))
    return fields["subject"], found[2][2]


def queue(name, **given):
    """What is told of a queue."""
    told = {"message_count": ("ulong", 0), "consumer_count": ("uint", 0), "name": name, "vhost": "/", "durable": True, "auto_delete": False}
    told.update(exclusive=False, type="classic", arguments={}, leader="leveret", replicas=("array", "string", ["leveret"]))
    told.update(given)
    return told


def test_a_queue_is_declared_told_purged_and_deleted():
    world = World()
    assert world.ask("PUT", "/queues/my%20q", {}) == ("201", queue("my q"))
    assert world.ask("PUT", "/queues/my%20q", {}) == ("200", queue("my q"))
    assert world.ask("GET", "/queues/my%20q") == ("200", queue("my q"))
    world.peer.publish("my q", b"one")
    world.peer.publish("my q", b"two")
    assert world.ask("GET", "/queues/my%20q") == ("200", queue("my q", message_count=("ulong", 2)))
    assert world.ask("DELETE", "/queues/my%20q/messages") == ("200", {"message_count": ("ulong", 2)})
    world.peer.publish("my q", b"three")
    assert world.ask("DELETE", "/queues/my%20q") == ("200", {"message_count": ("ulong", 1)})
    assert world.ask("DELETE", "/queues/my%20q") == ("200", {"message_count": ("ulong", 0)})
    assert world.ask("GET", "/queues/my%20q") == ("404", "queue 'my q' in vhost '/' not found")
    assert world.ask("DELETE", "/queues/q/messages") == ("404", "no queue 'q' in vhost '/'")
    invariants.check(world.broker.tables)


def test_arguments_of_any_number_or_symbol_are_the_brokers_and_come_back():
    world = World(argument_size_max=4096)
    arguments = {"x-max-length": ("uint", 5), ("symbol", "x-overflow"): ("symbol", "reject-publish"), "other": ("timestamp", 5999)}
    body = {"durable": False, "exclusive": True, "auto_delete": True, "arguments": arguments}
    told = {"x-max-length": 5, "x-overflow": "reject-publish", "other": ("timestamp", 5000)}
    assert world.ask("PUT", "/queues/q", body) == (
        "201",
        queue("q", durable=False, exclusive=True, auto_delete=True, arguments=told),
    )
    assert world.broker.queues["q"].arguments == {"x-max-length": 5, "x-overflow": "reject-publish", "other": ("T", 5)}
    deep = {"a": [1, None, True, 0.5, b"x", {"b": ("int", -1)}, ("array", "ushort", [7]), ("array", "symbol", ["s"])]}
    assert world.ask("PUT", "/exchanges/e", {"arguments": deep}) == ("204", None)
    assert world.broker.exchanges["e"].arguments == {"a": [1, None, True, 0.5, b"x", {"b": -1}, [7], ["s"]]}
    uuid = ("uuid", b"0" * 16)
    for wrong in (uuid, ("char", "x"), ("decimal32", b"0000"), ("ulong", 1 << 63), [uuid], {"a": uuid}, {1: 2}, ("described", 1, 2)):
        status, text = world.ask("PUT", "/queues/x", {"arguments": {"a": wrong}})
        assert status == "400" and text.startswith("unsupported argument ('a', ")
    assert world.ask("PUT", "/queues/x", {"arguments": {1: 1}})[0] == "400"
    assert world.ask("PUT", "/queues/x", {"arguments": {"a": 1, ("symbol", "a"): 1}})[0] == "400"
    assert list(world.broker.queues) == ["q"]


def test_declarations_are_refused_with_rabbitmqs_statuses_and_sentences():
    world = World()
    world.ask("PUT", "/queues/q", {})
    world.ask("PUT", "/exchanges/e", {"type": "fanout"})
    for to, body, status, text in (
        ("/queues/", {}, "400", "declare queue with empty name not allowed"),
        ("/queues/a%0Ab", {}, "400", "Bad name 'a\nb': line feed and carriage return characters not allowed"),
        ("/queues/amq.x", {}, "403", "queue 'amq.x' in vhost '/' starts with reserved prefix 'amq.'"),
        (
            "/queues/q",
            {"auto_delete": True},
            "409",
            "inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'",
        ),
        (
            "/queues/q",
            {"exclusive": True},
            "400",
            "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another connection or the "
            "exclusive property value does not match that of the original declaration.",
        ),
        (
            "/queues/s",
            {"arguments": {"x-queue-type": "stream", "x-dead-letter-exchange": "e"}},
            "409",
            "invalid arg 'x-dead-letter-exchange' for queue 's' in vhost '/' of queue type rabbit_stream_queue",
        ),
        ("/queues/s", {"unknown": "bla"}, "400", "bad queue property {'unknown': 'bla'}"),
        ("/queues/s", {"durable": 1}, "400", "bad queue property {'durable': 1}"),
        ("/queues/s", None, "400", "the body is no map"),
        ("/exchanges/", {}, "403", "operation not permitted on the default exchange"),
        ("/exchanges/amq.x", {}, "403", "exchange 'amq.x' in vhost '/' starts with reserved prefix 'amq.'"),
        ("/exchanges/a%0D", {}, "400", "Bad name 'a\r': line feed and carriage return characters not allowed"),
        ("/exchanges/x", {"type": "bogus"}, "400", "unknown exchange type 'bogus'"),
        ("/exchanges/e", {}, "409", "inequivalent arg 'type' for exchange 'e' in vhost '/': received 'direct' but current is 'fanout'"),
        ("/exchanges/x", {("symbol", "type"): "direct"}, "400", "bad exchange property {('symbol', 'type'): 'direct'}"),
        ("/exchanges/a%2", {}, "400", "'a%2' is not percent-encoded"),
        ("/exchanges/%ff", {}, "400", "'%ff' is not UTF-8"),
    ):
        assert world.ask("PUT", to, body) == (status, text)
    body = {"auto_delete": True, "arguments": {"x-queue-type": "stream"}}
    assert world.ask("PUT", "/queues/s", body)[1].startswith("invalid property 'auto-delete' for queue 's' in vhost '/'")
    assert world.ask("PUT", "/queues/s", body)[0] == "400"
    assert list(world.broker.queues) == ["q"]


def test_exchanges_are_declared_again_and_deleted():
    world = World()
    for _ in range(2):
        assert world.ask("PUT", "/exchanges/e", {"type": "topic", "auto_delete": False, "internal": True}) == ("204", None)
        assert world.ask("PUT", "/exchanges/amq.fanout", {"type": "fanout"}) == ("204", None)
    assert world.broker.exchanges["e"].internal and world.broker.exchanges["e"].durable
    for _ in range(2):
        assert world.ask("DELETE", "/exchanges/e") == ("204", None)
    assert "e" not in world.broker.exchanges
    assert world.ask("DELETE", "/exchanges/") == ("403", "operation not permitted on the default exchange")
    assert world.ask("DELETE", "/exchanges/amq.fanout")[0] == "403"


def test_bindings_are_made_told_and_removed():
    world = World()
    world.ask("PUT", "/queues/q%2F1", {})
    world.ask("PUT", "/exchanges/e", {"type": "headers"})
    plain = {"source": "e", "destination_queue": "q/1", "binding_key": "k"}
    with_arguments = dict(plain, arguments={"x-match": "all", "a": ("uint", 3)})
    for _ in range(2):
        assert world.ask("POST", "/bindings", plain) == ("204", None)
        assert world.ask("POST", "/bindings", with_arguments) == ("204", None)
    assert world.ask("POST", "/bindings", {"source": "amq.fanout", "destination_exchange": "e"}) == ("204", None)
    status, found = world.ask("GET", "/bindings?src=e&dstq=q%2F1&key=k")
    assert status == "200" and [each.pop("location") for each in found[:1]] == ["/bindings/src=e;dstq=q%2F1;key=k;args="]
    assert found[0] == {"source": "e", "destination_queue": "q/1", "binding_key": "k", "arguments": {}}
    assert found[1]["arguments"] == {"x-match": "all", "a": 3} and len(found) == 2
    assert world.ask("GET", "/bindings?src=amq.fanout&dste=e&key=")[1][0]["destination_exchange"] == "e"
    assert world.ask("GET", "/bindings?src=e&dstq=q%2F1&key=other") == ("200", [])
    assert world.ask("GET", "/bindings?src=e&dstq=nobody&key=k") == ("200", [])
    for location in (found[1]["location"], "/bindings/src=e;dstq=q%2F1;key=k;args=AAAAAA", "/bindings/src=amq.fanout;dste=e;key=;args="):
        assert world.ask("DELETE", location) == ("204", None)
    assert [each.arguments for each in world.broker.queues["q/1"].bound.values()] == [{}]
    assert world.ask("DELETE", "/bindings/src=e;dstq=q%2F1;key=k;args=") == ("204", None)
    assert world.broker.topology.binding_count == 0
    invariants.check(world.broker.tables)


def test_bindings_are_refused_with_rabbitmqs_statuses_and_sentences():
    world = World()
    world.ask("PUT", "/queues/q", {})
    for method, to, body, status, text in (
        ("POST", "/bindings", {"source": "", "destination_queue": "q"}, "403", "operation not permitted on the default exchange"),
        ("POST", "/bindings", {"source": "e", "destination_exchange": ""}, "403", "operation not permitted on the default exchange"),
        ("POST", "/bindings", {"source": "amq.direct", "destination_queue": "x"}, "400", "no queue 'x' in vhost '/'"),
        ("POST", "/bindings", {"source": "e", "destination_queue": "q"}, "400", "no exchange 'e' in vhost '/'"),
        ("POST", "/bindings", {"source": "e"}, "400", "a binding has a source, and a destination_queue or a destination_exchange"),
        ("POST", "/bindings", {"source": "e", "key": "k"}, "400", "bad binding field {'key': 'k'}"),
        (
            "DELETE",
            "/bindings/src=e1;dstq=q1;invalidkey=k1;args=",
            None,
            "400",
            "bad binding path segment 'src=e1;dstq=q1;invalidkey=k1;args='",
        ),
        ("DELETE", "/bindings/src=;dstq=q1;key=k1;args=", None, "400", "bad binding path segment 'src=;dstq=q1;key=k1;args='"),
        ("GET", "/bindings?src=e&key=k", None, "400", "missing 'dste' or 'dstq' in query: src=e&key=k"),
        ("GET", "/bindings?dstq=e&key=k", None, "400", "the query has src and key, percent-encoded: dstq=e&key=k"),
        ("GET", "/bindings?src=e&dstq=e&key=%", None, "400", "the query has src and key, percent-encoded: src=e&dstq=e&key=%"),
        ("GET", "/bindings?src=%ff&dstq=e&key=", None, "400", "the query is not UTF-8: src=%ff&dstq=e&key="),
    ):
        assert world.ask(method, to, body) == (status, text)
    assert "line feed" in world.ask("POST", "/bindings", {"source": "a\n", "destination_queue": "q"})[1]


def test_what_there_is_not_and_tokens_are_refused():
    world = World()
    assert world.ask("GET", "\u274c") == ("400", "failed to normalize URI '\u274c': invalid_uri \"\u274c\"")
    for method, to in (
        ("GET", "/"),
        ("GET", "/queues"),
        ("POST", "/queues/q"),
        ("DELETE", "/queues/q/x"),
        ("GET", "/queues/a/b/c"),
        ("", "/a"),
    ):
        assert world.ask(method, to)[0] == "404"
    assert world.ask("PUT", "/auth/tokens", b"token")[0] == "501"
    assert world.ask("GET", "/" * 60000)[0] == "404"


def test_a_response_has_the_number_of_its_request_whatever_its_type():
    world = World()
    for number in (("ulong", 7), ("uuid", b"0123456789abcdef"), b"\x01\x02", "text", None):
        assert world.ask("GET", "/queues/q", None, number)[0] == "404"


def test_octets_that_are_no_request_are_errors():
    world = World()
    good = request("GET", "/queues/q")
    for octets, condition in (
        (good[:-1], SYNTAX_ERROR),
        (b"\x40", SYNTAX_ERROR),
        (b"", PRECONDITION_FAILED),
        (types.encode(("described", ("ulong", 0x77), None)), PRECONDITION_FAILED),
        (request("GET", None), PRECONDITION_FAILED),
        (request(None, "/queues/q"), PRECONDITION_FAILED),
    ):
        try:
            management.Request(world.connection, octets)
        except ProtocolError as error:
            assert error.condition == condition
        else:
            raise AssertionError(octets)
    for end in range(len(good)):
        try:
            management.Request(world.connection, good[:end])
        except ProtocolError:
            continue
        assert end == len(good) - 4  # all but the body


def test_permissions_are_those_of_0_9_1():
    world = World()
    world.ask("PUT", "/queues/q", {})
    world.ask("PUT", "/exchanges/e", {})
    world.connection.user = User("u", None, (), ("", "", ""))
    binding = {"source": "e", "destination_queue": "q"}
    for method, to, body, what in (
        ("GET", "/queues/q", None, "queue 'q'"),
        ("PUT", "/queues/q", {}, "queue 'q'"),
        ("PUT", "/queues/new", {}, "queue 'new'"),
        ("DELETE", "/queues/q", None, "queue 'q'"),
        ("DELETE", "/queues/q/messages", None, "queue 'q'"),
        ("PUT", "/exchanges/e", {}, "exchange 'e'"),
        ("DELETE", "/exchanges/e", None, "exchange 'e'"),
        ("POST", "/bindings", binding, "queue 'q'"),
        ("GET", "/bindings?src=e&dstq=q&key=", None, "queue 'q'"),
        ("DELETE", "/bindings/src=e;dstq=q;key=;args=", None, "queue 'q'"),
    ):
        assert world.ask(method, to, body) == ("403", "access to %s in vhost '/' refused for user 'u'" % what)
    world.connection.user = User("u", None, (), ("new", "q", ""))
    assert world.ask("POST", "/bindings", binding) == ("403", "access to exchange 'e' in vhost '/' refused for user 'u'")
    assert world.ask("GET", "/queues/q")[0] == "200"  # any of the three
    for name, argument in (("/queues/new", "x-dead-letter-exchange"), ("/exchanges/new", "alternate-exchange")):
        assert world.ask("PUT", name, {"arguments": {argument: "e"}})[0] == "403"
    assert "new" not in world.broker.queues and "new" not in world.broker.exchanges


def test_another_connections_queue_is_locked():
    world = World()
    world.ask("PUT", "/queues/q", {"exclusive": True})
    world.connection = Peer(world.broker).connection
    binding = {"source": "amq.direct", "destination_queue": "q"}
    for method, to, body in (
        ("DELETE", "/queues/q", None),
        ("DELETE", "/queues/q/messages", None),
        ("POST", "/bindings", binding),
        ("PUT", "/queues/q", {"exclusive": True}),
        ("DELETE", "/bindings/src=amq.direct;dstq=q;key=;args=", None),
    ):
        status, text = world.ask(method, to, body)
        assert status == "400" and text.startswith("cannot obtain exclusive access to locked queue 'q' in vhost '/'.")


def test_many_bindings_and_messages_go_in_turns():
    world = World(entry_count_max=200, message_count_max=200, binding_count_max=2000, binding_share_max=2000)
    world.ask("PUT", "/queues/q", {})
    for number in range(1200):
        world.ask("POST", "/bindings", {"source": "amq.direct", "destination_queue": "q", "binding_key": str(number)})
    world.peer.publish("q", b"one")
    asked = management.Request(world.connection, request("DELETE", "/queues/q"))
    turns = 0
    octets = asked.answer()
    while octets is management.NOT_YET:
        turns += 1
        world.broker.run()
        octets = asked.answer()
    assert turns >= 1 and answered(octets) == ("200", {"message_count": ("ulong", 1)}) and world.broker.topology.binding_count == 0
    status, text = world.ask("GET", "/bindings?src=amq.direct&dstq=q&key=1")
    assert (status, text) == ("200", [])


def test_a_response_is_told_when_what_it_tells_is_durable():
    store = MemoryStore()
    broker = durable_broker(store)[0]
    connection = Peer(broker).connection
    asked = management.Request(connection, request("PUT", "/queues/q", {}))
    assert answered(asked.answer())[0] == "201" and asked.durable == broker.journal.defined("q") > 0
    broker.journal.log.trouble = "the disk is full"
    asked = management.Request(connection, request("PUT", "/queues/r", {}))
    assert asked.answer() is management.HELD and list(broker.queues) == ["q"]
    broker.journal.log.trouble = ""
    assert answered(asked.answer())[0] == "201"

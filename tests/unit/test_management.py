"""Management over AMQP (core/SPEC.md): requests on the default exchange, answers to reply-to, pages, and who may ask."""

import json

from memory_store import MemoryStore, durable_broker
from peer import Peer, content, encoded, idle, new_broker

from leveret.core.access import topic_permissions
from leveret.core.access.permissions import EVERYTHING, User
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER
from leveret.core.broker.operator_policies import OperatorPolicy
from leveret.core.management import rabbitmq_definitions, requests

KEY = "amq.leveret.management"
REPLY = "amq.rabbitmq.reply-to"
MANAGED = {
    "management_size_max": 16384,
    "content_size_max": 16384,
    "arena_size": 131072,
    "queue_count_max": 64,
    "queue_share_max": 64,
    "argument_size_max": 1024,
}


def manager(**overrides):
    """A broker with room for long answers, and a peer that consumes its answers."""
    values = dict(MANAGED)
    values.update(overrides)
    broker = new_broker(**values)
    peer = Peer(broker)
    peer.consume(REPLY, no_ack=True)
    return broker, peer


def ask(peer, request, **given):
    """One request and its answer."""
    request = dict(given, request=request)
    return ask_octets(peer, json.dumps(request).encode("utf-8"))


def ask_octets(peer, octets):
    peer.publish(KEY, octets, given={"content_type": "application/json", "reply_to": REPLY, "correlation_id": "7"})
    ((name, _, properties, body),) = peer.contents()
    assert name == "basic_deliver" and properties == {"content_type": "application/json", "correlation_id": "7"}, properties
    return json.loads(str(body, "utf-8"))


def all_pages(peer, name):
    """The head of the first page, and the items of all pages."""
    first = answer = ask(peer, name)
    assert answer["ok"], answer
    found = {}
    count = 1
    while True:
        for section in answer["items"]:
            found[section] = found.get(section, []) + answer["items"][section]
        if answer["next"] is None:
            return first, found, count
        answer = ask(peer, name, after=answer["next"])
        count += 1


def refused(peer, code, *publish, **options):
    """A request that closes the channel; opens it again."""
    peer.publish(*publish, **options)
    arguments = peer.expect("channel_close")
    assert arguments[0] == code and arguments[2:] == [60, 40], arguments
    peer.give(encoded("channel_close_ok", 1))
    peer.ask("channel_open", "channel_open_ok", "")
    return arguments[1]


def log_in(broker, name, tags, permissions=EVERYTHING):
    """A peer of a user with the tags; its password is its name."""
    from leveret.core.access import passwords

    broker.access.put(User(name, passwords.hashed(name, b"salt", 1), tags, permissions))
    peer = Peer(broker, log_in=False)
    peer.give(HEADER)
    peer.frames()
    peer.give(encoded("connection_start_ok", 0, {}, "PLAIN", ("\0%s\0%s" % (name, name)).encode("utf-8"), "en_US"))
    peer.frames()
    peer.give(encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, "/", "", False))
    peer.frames()
    peer.ask("channel_open", "channel_open_ok", "")
    peer.consume(REPLY, no_ack=True)
    return peer


def test_overview_tells_counters_memory_queues_streams_and_connections():
    broker, peer = manager()
    peer.declare("q", arguments={"x-max-length": 2, "x-overflow": "block"})
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for key in ("q", "q", "s", "s", "s", "nowhere"):
        peer.publish(key, b"12345")
    head, items, _ = all_pages(peer, "overview")
    rows = {row["name"]: row for row in items["queues"] if not row["name"].startswith(REPLY)}
    assert rows == {
        "q": {
            "name": "q",
            "type": "classic",
            "messages": 2,
            "unsettled": 0,
            "octets": 10,
            "in_log": 0,
            "consumers": 0,
            "policy": None,
            "full": True,
        }
    }
    (stream,) = items["streams"]
    assert (stream["name"], stream["first_offset"], stream["next_offset"], stream["octets"]) == ("s", 0, 3, 3 * (3 + 2 + 5))
    (connection,) = items["connections"]
    assert (connection["user"], connection["state"], connection["channels"]) == ("guest", "open", 1)
    counted = {}
    for each in items["counters"]:
        counted.update(each)
    assert sorted(counted) == sorted(broker.counters)
    assert counted["unroutable"] == 1 and counted["published"] >= 6 and counted["management_requests"] >= 1
    told = head["overview"]
    assert told["log"] is None
    assert told["product"] == "Leveret" and told["totals"]["queues"] == 3 and told["totals"]["consumers"] == 1
    memory = told["memory"]
    assert memory["messages_used"] == 6  # five kept, and the request
    assert memory["entries_used"] == 5 and memory["blocks_used"] + memory["blocks_free"] == 131072 // memory["block_size"]
    assert ask(peer, "counters")["counters"]["unroutable"] == 1


def test_an_answer_that_does_not_fit_comes_in_pages_and_nothing_is_missing():
    broker, peer = manager(management_size_max=2048)
    for number in range(40):
        peer.declare("queue %d" % number)
    head, items, count = all_pages(peer, "overview")
    names = [row["name"] for row in items["queues"]]
    assert len(names) == len(set(names)) == 41 and count > 3
    peer.publish(KEY, json.dumps({"request": "overview"}).encode("utf-8"), given={"reply_to": REPLY})
    ((_, _, properties, body),) = peer.contents()
    assert len(body) <= 2048 and properties == {"content_type": "application/json"}


def test_a_page_survives_that_its_last_item_is_gone():
    broker, peer = manager(management_size_max=2048)
    for number in range(40):
        peer.declare("queue %d" % number)
    first = ask(peer, "definitions")
    gone = [each["name"] for each in first["items"]["queues"]]
    for name in gone:
        peer.ask("queue_delete", "queue_delete_ok", 0, name, False, False, False)
    seen = set(gone)
    answer = first
    while answer["next"] is not None:
        answer = ask(peer, "definitions", after=answer["next"])
        seen.update([each["name"] for each in answer["items"].get("queues", ())])
    assert seen == {"queue %d" % number for number in range(40)}


def test_what_cannot_be_carried_out_is_answered_with_a_sentence():
    broker, peer = manager()
    cases = (
        (b"", "precondition-failed", "JSON"),
        (b"{", "precondition-failed", "JSON"),
        (b"\xff", "precondition-failed", "JSON"),
        (b"[]", "precondition-failed", "object"),
        (b"[" * 5000, "precondition-failed", "JSON"),
        (b'{"request":5}', "precondition-failed", "object"),
        (b'{"request":"fly"}', "precondition-failed", "there is no request"),
        (b'{"request":"overview","after":5}', "precondition-failed", "after"),
        (b'{"request":"overview","after":["x","y"]}', "precondition-failed", "after"),
        (b'{"request":"overview","after":["queues",5]}', "precondition-failed", "after"),
        (b'{"request":"import"}', "precondition-failed", "definitions"),
        (b'{"request":"import","definitions":{"queues":{}}}', "precondition-failed", "list"),
        (b'{"request":"import","definitions":{"queues":[5]}}', "precondition-failed", "object"),
        (b'{"request":"set-policy"}', "precondition-failed", "name"),
        (b'{"request":"set-policy","name":"p","pattern":"(","definition":{"max-length":1}}', "precondition-failed", "regular expression"),
        (b'{"request":"set-policy","name":"p","pattern":"","definition":{}}', "precondition-failed", "at least one key"),
        (b'{"request":"set-policy","name":"p","pattern":"","definition":{"ha-mode":"all"}}', "precondition-failed", "ha-mode"),
        (b'{"request":"remove-policy","name":"p"}', "not-found", "p"),
    )
    for octets, condition, word in cases:
        answer = ask_octets(peer, octets)
        assert (answer["ok"], answer["condition"]) == (False, condition) and word in answer["error"], (octets, answer)
    assert broker.counters["management_failures"] == len(cases) and broker.counters["internal_errors"] == 0


def test_half_of_a_surrogate_pair_is_no_text():
    """RFC 8259, section 8.2: such escapes stand for no character, and an answer could not repeat them."""
    broker, peer = manager()
    for octets in (b'{"request": "\\ud800"}', b'{"request": "set-policy", "name": "\\udfff", "pattern": "x", "definition": {}}'):
        answer = ask_octets(peer, octets)
        assert not answer["ok"], answer
        assert broker.counters["internal_errors"] == 0
    assert "there is no request" in ask_octets(peer, b'{"request": "\\ud83d\\udc07"}')["error"]


def test_a_request_that_cannot_be_answered_closes_the_channel():
    broker, peer = manager()
    before = idle(broker)
    body = b'{"request":"overview"}'
    assert "needs reply-to" in refused(peer, 406, KEY, body)
    assert "no queue 'absent'" in refused(peer, 404, KEY, body, given={"reply_to": "absent"})
    assert idle(broker)[:3] == before[:3] and broker.counters["management_requests"] == 0


def test_a_request_larger_than_the_limit_is_refused_with_311():
    broker, peer = manager(management_size_max=2048)
    peer.declare("answers")
    assert "2049 octets; this broker takes 2048" in refused(peer, 311, KEY, b" " * 2049, given={"reply_to": "answers"})
    peer.publish(KEY, b" " * 2048, given={"reply_to": "answers"})
    assert broker.queues["answers"].message_count() == 1


def test_tags_say_who_may_ask_what():
    broker = manager()[0]
    reading = ("overview", "counters")
    writing = (("set-policy", {"name": "p", "pattern": "^x", "definition": {"max-length": 1}}), ("remove-policy", {"name": "p"}))
    administering = (("definitions", {}), ("import", {"definitions": {}}))
    for tags, reads, makes_policies, administers in (
        ((), False, False, False),
        (("impersonator",), False, False, False),
        (("management",), True, False, False),
        (("monitoring",), True, False, False),
        (("policymaker",), True, True, False),
        (("administrator",), True, True, True),
    ):
        asked = [(name, {}, reads) for name in reading] + [(name, given, makes_policies) for name, given in writing]
        asked += [(name, given, administers) for name, given in administering]
        for name, given, allowed in asked:
            peer = log_in(broker, "u", tags)
            before = broker.counters["access_refused"]
            if allowed:
                assert ask(peer, name, **given)["ok"]
            else:
                body = json.dumps(dict(given, request=name)).encode("utf-8")
                text = refused(peer, 403, KEY, body, given={"reply_to": REPLY})
                assert "refused for user 'u'" in text and broker.counters["access_refused"] == before + 1
            peer.connection.received(0)


def test_without_the_permission_to_write_to_the_default_exchange_there_is_no_management():
    broker = manager()[0]
    peer = log_in(broker, "u", ("administrator",), (".*", "^only$", ".*"))
    assert "amq.default" in refused(peer, 403, KEY, b'{"request":"overview"}', given={"reply_to": REPLY})


def test_policies_are_set_and_removed():
    broker, peer = manager()
    peer.declare("q")
    assert ask(peer, "set-policy", name="p", pattern="^q", definition={"max-length": 1}, priority=3) == {"ok": True}
    for body in (b"a", b"b"):
        peer.publish("q", body)
    assert broker.queues["q"].message_count() == 1 and broker.queues["q"].policy == "p"
    assert ask(peer, "remove-policy", name="p") == {"ok": True}
    assert broker.queues["q"].policy is None


def test_an_operator_policy_and_topic_permissions_are_removed_by_name_and_the_absent_ones_are_said():
    broker, peer = manager()
    peer.declare("q")
    broker.policies.set(broker, OperatorPolicy("o", "^q", {"max-length": 1}))
    assert broker.queues["q"].operator_policy == "o"
    (item,) = [
        make(subject) for name, subjects, make in rabbitmq_definitions.sections(broker) if name == "parameters" for _, subject in subjects
    ]
    value = {"pattern": "^q", "definition": {"max-length": 1}, "priority": 0, "apply-to": "queues"}
    assert item == {"vhost": "/", "component": "operator_policy", "name": "o", "value": value}
    assert ask(peer, "remove-operator-policy", name="o") == {"ok": True} and broker.queues["q"].operator_policy is None
    assert "there is no policy 'o'" in ask(peer, "remove-operator-policy", name="o")["error"]
    assert loaded(broker, "parameters", item) == (True, "") and broker.queues["q"].operator_policy == "o"
    del value["apply-to"], value["priority"]
    assert loaded(broker, "parameters", item) == (True, "") and broker.policies.operators["o"].priority == 0
    for missing in ("pattern", "definition"):
        took, _ = loaded(broker, "parameters", dict(item, value={name: value[name] for name in value if name != missing}))
        assert not took, missing
    user = broker.access.users["guest"]
    topic_permissions.put(broker, user, "amq.topic", ("^a", "^b"))
    assert user.topics.rows == {"amq.topic": ("^a", "^b")}
    assert ask(peer, "clear-topic-permissions", name="guest") == {"ok": True} and user.topics is None
    assert "there is no user 'nobody'" in ask(peer, "clear-topic-permissions", name="nobody")["error"]


def test_the_request_waits_while_there_is_no_room_for_the_answer():
    broker, peer = manager(arena_size=65536, content_size_max=8192, management_size_max=4096)
    hoarder, cleaner = Peer(broker), Peer(broker)
    names = ["hoard %d" % number for number in range(12)]
    for name in names:
        hoarder.declare(name)
    for size in (6000, 1500, 300, 60):
        for name in names:
            for _ in range(8):
                if broker.tables.state[2] * 64 > size + 4096:
                    hoarder.publish(name, b"x" * size)
    assert broker.tables.state[2] < broker.tables.blocks_for(4096 + 1024), broker.tables.state[2]
    request = json.dumps({"request": "import", "definitions": {"queues": [{"name": "made"}]}}).encode("utf-8")
    peer.publish(KEY, request, given={"reply_to": REPLY})
    assert peer.contents() == [] and "made" not in broker.queues
    for name in names:
        cleaner.ask("queue_purge", "queue_purge_ok", 0, name, False)
    broker.run()
    ((_, _, _, body),) = peer.contents()
    assert json.loads(str(body, "utf-8"))["loaded"]["queues"] == 1 and "made" in broker.queues


def test_on_a_transactional_channel_and_for_other_keys_nothing_is_special():
    broker, peer = manager()
    peer.ask("tx_select", "tx_select_ok")
    peer.publish(KEY, b'{"request":"overview"}', given={"reply_to": REPLY}, mandatory=True)
    peer.give(encoded("tx_commit", 1))
    frames = peer.frames()
    assert frames[0][0] == "basic_return" and frames[-1][0] == "tx_commit_ok"
    other = Peer(broker)
    other.give(encoded("queue_declare", 1, 0, KEY, False, False, False, False, False, {}))
    assert other.expect("channel_close")[0] == 403


def test_definitions_come_out_and_go_into_another_broker():
    broker, peer = manager()
    peer.ask(
        "exchange_declare", "exchange_declare_ok", 0, "e", "topic", False, True, False, False, False, {"alternate-exchange": "amq.fanout"}
    )
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "i", "fanout", False, True, False, True, False, {})
    peer.declare("q", durable=True, arguments={"x-max-length": 5, "note": [1, {"a": None}], "when": ("T", 1600000000)})
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "7D"})
    peer.declare("mine", exclusive=True)
    peer.declare("odd", arguments={"octets": b"\xff\x00"})
    peer.declare("")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "e", "a.#", False, {})
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.match", "", False, {"x-match": "all", "k": "v"})
    peer.ask("exchange_bind", "exchange_bind_ok", 0, "i", "e", "b", False, {})
    broker.access.put(broker.access.users["guest"])  # a guest that somebody has chosen
    broker.access.put(User("three", None, ("monitoring",), ("^c", "^w", "^r")))
    ask(peer, "set-policy", name="p", pattern="^q$", definition={"message-ttl": 1000}, priority=2, **{"apply-to": "queues"})
    _, items, _ = all_pages(peer, "definitions")
    three = [each for each in items["permissions"] if each["user"] == "three"]
    assert three == [{"user": "three", "vhost": "/", "configure": "^c", "write": "^w", "read": "^r"}]
    assert sorted(items) == ["bindings", "exchanges", "left_out", "permissions", "policies", "queues", "users"]
    assert sorted([each["name"] for each in items["queues"]]) == ["q", "s"] and len(items["bindings"]) == 3
    assert len(items["left_out"]) == 2 and "0xff00" in "".join(items["left_out"])  # odd, and the one that the broker named
    del items["left_out"]
    other, second = manager()
    answer = ask(second, "import", definitions=items)
    assert answer == {
        "ok": True,
        "left_out": [],
        "rest": None,
        "loaded": {
            "users": 2,
            "permissions": 2,
            "topic_permissions": 0,
            "policies": 1,
            "parameters": 0,
            "global_parameters": 0,
            "exchanges": 2,
            "queues": 2,
            "bindings": 3,
        },
    }
    _, again, _ = all_pages(second, "definitions")
    assert again == items
    assert ask(second, "import", definitions=items)["left_out"] == []  # the same again changes nothing
    assert other.queues["q"].policy == "p" and other.exchanges["i"].internal and other.queues["s"].is_stream
    second.connection.received(0)
    assert "q" in other.queues and other.topology.binding_count == 3


def test_an_import_whose_report_is_full_says_where_it_stopped():
    broker, peer = manager(management_size_max=4096, content_size_max=8192)
    queues = [{"name": "q%d" % number, "arguments": {"x-max-age": "1D"}} for number in range(50)]
    queues.append({"name": "good"})
    named = []
    rounds = 0
    while queues:
        answer = ask(peer, "import", definitions={"queues": queues})
        named += answer["left_out"]
        rounds += 1
        queues = queues[answer["rest"][1] :] if answer["rest"] else []
    assert rounds > 1 and len(named) == len(set(named)) == 50 and "good" in broker.queues


def test_an_import_of_many_patterns_takes_several_requests():
    """core/SPEC.md, management: a request loads what one turn is for, and its answer says where it stopped."""
    broker, peer = manager(policy_count_max=64)
    policies = [{"name": "p%d" % number, "pattern": "^q%d$" % number, "definition": {"max-length": 1}} for number in range(40)]
    counts = []
    left = policies
    while left:
        answer = ask(peer, "import", definitions={"policies": left})
        counts.append(answer["loaded"]["policies"])
        assert answer["left_out"] == [] and (answer["rest"] is None or answer["rest"] == ["policies", counts[-1]])
        left = left[answer["rest"][1] :] if answer["rest"] else []
    assert sum(counts) == len(policies) == len(broker.policies.by_name) and 2 < len(counts) < 10 and max(counts) < 20, counts


def loaded(broker, section, item):
    return rabbitmq_definitions.load(broker, section, item)


def test_what_is_not_served_is_named_with_its_reason():
    broker, peer = manager(user_count_max=2)
    hash_ = "UCIm0R77oFbHxSLjbvR/9FwPlWtRbbmwRrcpnc5Qu5kc4tz+"
    peer.declare("there", durable=True)
    for section, item, took, word in (
        ("queues", {"name": "lazy", "arguments": {"x-ha-policy": "all"}}, True, ""),
        ("queues", {"name": "quorum", "type": "quorum", "durable": True}, False, "--data"),
        ("queues", {"name": "aged", "arguments": {"x-max-age": "1D"}}, False, "x-max-age"),
        ("queues", {"name": "there", "durable": False}, False, "inequivalent"),
        ("queues", {"name": ""}, False, "no name"),
        ("queues", {"arguments": {}}, False, "name is not a text"),
        ("queues", {"name": "amq.gen-1"}, False, "amq."),
        ("queues", {"name": "x" * 256}, False, "longer"),
        ("queues", {"name": "a", "durable": 1}, False, "durable"),
        ("queues", {"name": "a", "arguments": 1}, False, "object"),
        ("queues", {"name": "a", "arguments": {"n": 1 << 70}}, False, "64 bits"),
        ("queues", {"name": "a", "arguments": {"n": [[[[[[[[[1]]]]]]]]]}}, False, "levels"),
        ("queues", {"name": "empty", "arguments": []}, True, ""),
        ("exchanges", {"name": "e", "type": "x-recent-history"}, False, "unknown exchange type"),
        ("exchanges", {"name": "", "type": "direct"}, False, "default exchange"),
        ("exchanges", {"name": "amq.topic", "type": "topic", "durable": True}, True, ""),
        ("exchanges", {"name": "amq.mine", "type": "topic"}, False, "amq."),
        ("bindings", {"source": "absent", "destination": "there", "routing_key": ""}, False, "no exchange 'absent'"),
        ("bindings", {"source": "amq.topic", "destination": "absent", "routing_key": ""}, False, "no queue 'absent'"),
        ("bindings", {"source": "amq.topic", "destination": "there", "destination_type": "user"}, False, "neither"),
        ("bindings", {"source": "", "destination": "there", "routing_key": "there"}, True, ""),
        ("bindings", {"source": "", "destination": "there", "routing_key": "other"}, False, "default exchange"),
        ("users", {"name": "u", "password_hash": hash_, "tags": "management,monitoring"}, True, ""),
        ("users", {"name": "u", "password_hash": hash_, "tags": [], "limits": {"max-channels": 1}}, True, ""),
        ("users", {"name": "u", "password_hash": hash_, "tags": ["x"], "limits": {"max-queues": 1}}, False, "Unrecognised terms"),
        ("users", {"name": "u", "password_hash": hash_, "tags": ["x"], "limits": 5}, False, "no table"),
        ("users", {"name": "third", "password_hash": hash_}, False, "2 users at most"),
        ("users", {"name": "u", "password_hash": "short"}, False, "base64"),
        ("users", {"name": "u", "tags": [5]}, False, "tags"),
        ("users", {"name": "u", "password_hash": hash_, "hashing_algorithm": "rabbit_password_hashing_sha512"}, False, "sha512"),
        ("permissions", {"user": "absent", "configure": "", "write": "", "read": ""}, False, "no such user"),
        ("permissions", {"user": "u", "configure": "(", "write": "", "read": ""}, False, "regular expression"),
        ("permissions", {"user": "u", "configure": "", "write": ""}, False, "read"),
        ("policies", {"name": "ha", "pattern": "", "definition": {"ha-mode": "all"}}, False, "ha-mode"),
        ("policies", {"name": "both", "pattern": "", "definition": {"ha-mode": "all", "max-length": 5}}, True, "without ha-mode"),
        ("policies", {"name": "q", "pattern": "", "definition": {"max-length": 5}, "apply-to": "nothing"}, False, "apply-to"),
        ("policies", {"name": "q", "pattern": "a(?=b)", "definition": {"max-length": 5}}, False, "look ahead"),
        ("policies", {"name": "q", "pattern": 5, "definition": {"max-length": 5}}, False, "pattern"),
        ("policies", {"name": "q", "pattern": "", "definition": {"max-age": "soon"}}, False, "max-age"),
    ):
        was_loaded, sentence = loaded(broker, section, item)
        assert was_loaded == took and word in sentence and bool(word) == bool(sentence), (section, item, was_loaded, sentence)
    assert broker.access.users["u"].permissions is None and broker.access.users["u"].tags == ()
    assert sorted(broker.policies.by_name) == ["both"] and broker.policies.by_name["both"].definition == {"max-length": 5}


def test_parameters_and_other_virtual_hosts_are_counted():
    document = {
        "rabbit_version": "3.10.8",
        "vhosts": [{"name": "/"}, {"name": "a"}, {"name": "b"}],
        "global_parameters": [{}, {}],
        "parameters": [],
        "federation": [{}],
        "queues": [{"name": "q", "vhost": "/"}, {"name": "q", "vhost": "a"}, {"name": "r", "vhost": "a"}, {"name": "n"}],
    }
    rabbitmq_definitions.checked(document)
    assert rabbitmq_definitions.left_out(document, "/") == [
        "federation: 1 left out: this broker does not know such definitions",
        "queues: 2 of vhost 'a' left out: this broker has one virtual host, and '/' was chosen (--vhost)",
        "vhosts: 2 left out ('a', 'b'): this broker has one virtual host, and '/' was chosen (--vhost)",
    ]
    assert [each["name"] for each in rabbitmq_definitions.ours(document["queues"], "/")] == ["q", "n"]
    assert [each["name"] for each in rabbitmq_definitions.ours(document["queues"], "a")] == ["q", "r", "n"]
    assert [each for each in rabbitmq_definitions.left_out(document, "a") if "vhost" in each] == [
        "queues: 1 of vhost '/' left out: this broker has one virtual host, and 'a' was chosen (--vhost)",
        "vhosts: 2 left out ('/', 'b'): this broker has one virtual host, and 'a' was chosen (--vhost)",
    ]


def test_a_pbkdf2_hash_goes_through_json_as_base64():
    broker, peer = manager()
    before = broker.access.users["guest"].stored.text()
    assert "users" not in all_pages(peer, "definitions")[1]  # as long as it is the one that every broker has
    broker.access.put(broker.access.users["guest"])
    _, items, _ = all_pages(peer, "definitions")
    (user,) = items["users"]
    assert user["hashing_algorithm"] == "leveret_password_hashing_pbkdf2_sha256" and "$" not in user["password_hash"]
    other, second = manager()
    assert ask(second, "import", definitions=items)["loaded"]["users"] == 1
    assert other.access.users["guest"].stored.text() == before


def raises(*given):
    raise KeyError("a fault")


def test_a_fault_in_any_request_costs_that_request_an_error_answer_and_nobody_anything_else():
    """It is counted and told; the connection, its channel and everybody else go on (core/SPEC.md, management)."""
    broker, peer = manager()
    told = []
    broker.log = told.append
    other = Peer(broker)
    other.declare("q")
    kept = dict(requests.REQUESTS)
    for number, name in enumerate(sorted(kept)):
        try:
            requests.REQUESTS[name] = (raises,) + kept[name][1:]
            answer = ask(peer, name)
        finally:
            requests.REQUESTS[name] = kept[name]
        assert not answer["ok"] and answer["condition"] == "internal-error" and "KeyError" in answer["error"], answer
        assert broker.counters["internal_errors"] == broker.counters["management_failures"] == number + 1
        assert len(told) == 1 and "management request 'bridge'" in told[0], "told once for each place: %s" % told
        other.publish("q", b"beside")
    assert ask(peer, "counters")["ok"] and broker.queues["q"].message_count() == len(kept)


def test_the_odd_state_of_one_queue_costs_who_asks_for_it_an_error_answer():
    broker, peer = manager()
    peer.declare("odd")
    queue = broker.queues["odd"]
    queue.octets = raises
    assert ask(peer, "overview")["condition"] == "internal-error" and ask(peer, "definitions")["ok"]
    queue.octets = lambda: 0
    queue.name = None
    assert ask(peer, "definitions")["condition"] == "internal-error" and ask(peer, "overview")["ok"]


def test_an_answer_that_cannot_be_published_is_followed_by_one_that_says_so():
    """When that cannot be either the connection is told (541), and nothing of the answers is left."""
    broker, peer = manager()
    publish, left = broker.publish, [1]

    def fails(message, *given):
        if left[0] and given[1] != KEY.encode():
            left[0] -= 1
            raises()
        return publish(message, *given)

    broker.publish = fails
    answer = ask(peer, "counters")
    assert not answer["ok"] and answer["condition"] == "internal-error" and left == [0], answer
    assert ask(peer, "counters")["ok"]
    left[0] = 2
    peer.publish(KEY, b'{"request":"counters"}', given={"reply_to": REPLY})
    assert peer.expect("connection_close")[0] == 541
    peer.give(encoded("connection_close_ok", 0))
    peer.connection.received(0)
    assert broker.connections == [] and idle(broker) == idle(new_broker(**MANAGED)), idle(broker)


def test_an_answer_that_waits_for_the_log_and_then_fails_is_given_back_once():
    """A second release of its message would give back somebody else's."""
    broker, _ = durable_broker(MemoryStore(), **MANAGED)
    peer = Peer(broker)
    peer.consume(REPLY, no_ack=True)
    durable = broker.journal.durable
    broker.journal.durable = lambda number: False
    peer.publish(KEY, b'{"request":"set-policy","name":"p","pattern":"x","definition":{"max-length":1}}', given={"reply_to": REPLY})
    assert peer.contents() == [], "answered before its sync"
    send = requests.send
    try:
        requests.send = raises
        broker.journal.durable = durable
        peer.connection.resume()
    finally:
        requests.send = send
    assert peer.expect("connection_close")[0] == 541
    peer.give(encoded("connection_close_ok", 0))
    assert broker.connections == [] and idle(broker) == idle(new_broker(**MANAGED)), idle(broker)


def test_a_request_is_a_turn_of_its_own():
    """No peer holds the loop: many requests in one read are answered one a round, and others have their turns between them."""
    broker, peer = manager()
    octets = content(1, "", KEY, b'{"request": "counters"}', {"reply_to": REPLY})
    view = peer.connection.writable()
    count = len(view) // len(octets)
    view[: count * len(octets)] = octets * count
    peer.connection.received(count * len(octets))
    most = broker.counters["management_requests"]
    while broker.behind:
        before = broker.counters["management_requests"]
        broker.run()
        most = max(most, broker.counters["management_requests"] - before)
        peer.take()
    assert count > 3 and broker.counters["management_requests"] == count and most == 1

"""Requests that only a broker with a process around it has (ports/steering.py), by a client of this process: who may ask, what is answered,
what is refused and why. The commands that ask them: tests/tools/test_commands.py."""

import base64
import json
import types

import pytest
from inside import Stream, new_broker

from leveret.core.errors import ACCESS_REFUSED, NOT_FOUND, ProtocolError
from leveret.ports import client, steering

LOGIN = {"user": "guest", "password": "guest", "virtual_host": "/"}


class Port:
    """Notes what it is asked."""

    def __init__(self):
        self.asked = []
        self.readings = {}

    def drain(self):
        self.asked.append("drain")

    def trace(self, *given):
        self.asked.append(given)

    def reload(self):
        self.asked.append("reload")
        return 7

    def reading(self, number):
        if number not in self.readings:
            raise ProtocolError(NOT_FOUND, f"there was no reading {number}")
        return self.readings[number]


@pytest.fixture
def world():
    """(broker with a port, its client, the user of this client, its connection)."""
    broker = new_broker(management_size_max=4096)
    broker.port = Port()
    stream = Stream(broker)
    made = client.Connection(stream, 500, dict(client.SIZES, **LOGIN))
    yield broker, made, stream.served.user, stream.served
    stream.close()


def ask(broker, request, user, /, **given):
    """What a request answers."""
    return json.loads(steering.REQUESTS[request][0](broker, {**given, "user": user}))


def refused(broker, request, user, /, **given):
    """(condition or "", text) of a request that is refused."""
    with pytest.raises((ProtocolError, ValueError)) as told:
        steering.REQUESTS[request][0](broker, {**given, "user": user})
    error = told.value
    return (error.condition, error.text) if isinstance(error, ProtocolError) else ("", str(error))


def other(tags=()):
    """A user who is not guest."""
    return types.SimpleNamespace(name="other", tags=tags)


def is_told(served, words=b"closed by an operator"):
    """Whether a connection has been told to go, in these words."""
    return words in bytes(served.pending())


def test_connections_are_closed_by_their_name_with_the_reason(world):
    broker, made, user, served = world
    assert ask(broker, "close-connection", user, name=served.name, reason="for maintenance") == {"ok": True, "closed": 1}
    with pytest.raises(client.ConnectionLost, match="for maintenance"):
        made.queue_declare("q")


def test_all_connections_of_a_user_are_closed_and_those_of_others_stay(world):
    broker, _, user, _ = world
    second = Stream(broker)
    client.Connection(second, 500, dict(client.SIZES, **LOGIN))
    third = Stream(broker)  # has not logged in
    assert ask(broker, "close-connection", user, of_user="guest") == {"ok": True, "closed": 2}
    assert is_told(second.served) and not is_told(third.served)


def test_the_reason_is_cut_and_there_is_one_without_a_reason(world):
    broker, made, user, served = world
    said = []
    for given in ({}, {"reason": "x" * 300}):
        told = types.SimpleNamespace(name="c", user=user, closed=True, guarded=lambda action: action(), close=said.append, send=None)
        steering.shut(told, given.get("reason", steering.REASON))
    assert said == ["closed by an operator", "x" * 200]
    ask(broker, "close-connection", user, name=served.name)
    with pytest.raises(client.ConnectionLost, match="closed by an operator"):
        made.queue_declare("q")


def test_a_connection_that_is_not_there_is_told_as_what_was_asked_for(world):
    broker, _, user, _ = world
    assert refused(broker, "close-connection", user, name="x") == (NOT_FOUND, "there is no connection 'x'")
    assert refused(broker, "close-connection", user, of_user="x") == (NOT_FOUND, "there is no connection of user 'x'")
    assert "needs the name" in refused(broker, "close-connection", user)[1]
    assert "needs the name" in refused(broker, "close-connection", user, of_user=3)[1]
    assert "its reason is not a text" in refused(broker, "close-connection", user, of_user="guest", reason=3)[1]


def test_only_an_administrator_closes_what_is_others(world):
    broker, _, user, served = world
    assert refused(broker, "close-connection", other(), of_user="guest")[0] == ACCESS_REFUSED
    assert refused(broker, "close-connection", other(("monitoring",)), name=served.name)[0] == ACCESS_REFUSED
    assert not is_told(served)
    assert ask(broker, "close-connection", other(("administrator",)), name=served.name)["closed"] == 1


def test_everybody_closes_his_own(world):
    broker, _, _, served = world
    himself = types.SimpleNamespace(name="guest", tags=())
    assert ask(broker, "close-connection", himself, name=served.name)["closed"] == 1
    assert is_told(served)


def test_a_drain_lets_nobody_in_and_keeps_the_one_who_asks(world):
    broker, _, user, served = world
    second = Stream(broker)
    client.Connection(second, 500, dict(client.SIZES, **LOGIN))
    second.served.name = "the other"
    assert ask(broker, "drain", user, keep=served.name) == {"ok": True, "left": 1}
    assert broker.port.asked == ["drain"]
    assert is_told(second.served, b"drained for maintenance") and not is_told(served, b"drained")
    assert ask(broker, "drain", user, keep=served.name)["left"] == 1, "it has not answered yet"
    second.close()
    assert ask(broker, "drain", user, keep=served.name)["left"] == 0
    assert ask(broker, "drain", user) == {"ok": True, "left": 1} and is_told(served, b"drained for maintenance")


def test_the_firehose_is_told_of_what_and_whether(world):
    broker, _, user, _ = world
    assert ask(broker, "trace", user, on=True) == {"ok": True}
    ask(broker, "trace", user, on=False, exchanges=["a"], queues=[])
    assert broker.port.asked == [(True, None, None), (False, ["a"], [])]
    assert refused(broker, "trace", user)[1] == "trace needs on: true or false"
    assert refused(broker, "trace", user, on="yes")[1] == "trace needs on: true or false"
    assert refused(broker, "trace", user, on=True, exchanges="a")[1] == "exchanges of trace is not a list of names"
    assert refused(broker, "trace", user, on=True, queues=["a", 3])[1] == "queues of trace is not a list of names"
    assert len(broker.port.asked) == 2


def test_messages_are_looked_at_and_stay_as_they_were(world):
    broker, made, user, _ = world
    made.queue_declare("q")
    made.publish("", "q", b"\xff\x00one", {"content_type": "a/b", "headers": {"n": 1}})
    made.publish("", "q", b"two")
    told = ask(broker, "look", user, queue="q", count=2)
    assert told["ok"] and not told["on_their_way"]
    first, second = told["messages"]
    assert first == {
        "exchange": "",
        "routing_key": "q",
        "redelivered": False,
        "properties": {"content_type": "a/b", "headers": {"n": 1}},
        "payload_bytes": 5,
        "payload": base64.b64encode(b"\xff\x00one").decode(),
        "message_count": 1,
    }
    assert second["message_count"] == 0 and base64.b64decode(second["payload"]) == b"two"
    assert [each["redelivered"] for each in ask(broker, "look", user, queue="q", count=1)["messages"]] == [False]
    assert broker.queues["q"].message_count() == 2
    assert len(ask(broker, "look", user, queue="q")["messages"]) == 1, "one, where no count is said"


def test_bodies_are_cut_to_what_the_answer_has_room_for(world):
    broker, made, user, _ = world
    made.queue_declare("q")
    for _ in range(4):
        made.publish("", "q", bytes(3000))
    told = ask(broker, "look", user, queue="q", count=4)
    assert told["messages"] and len(json.dumps(told)) <= broker.limits.management_size_max
    for each in told["messages"]:
        assert each["payload_bytes"] == 3000 and len(base64.b64decode(each["payload"])) <= broker.limits.management_size_max // 16


def test_what_cannot_be_looked_at(world):
    broker, made, user, _ = world
    for given in ({}, {"queue": 3}, {"queue": "q", "count": 0}, {"queue": "q", "count": 101}, {"queue": "q", "count": True}):
        assert refused(broker, "look", user, **given)[1] == "look needs the name of a queue, and a count from 1 to 100"
    assert refused(broker, "look", user, queue="none")[0] == NOT_FOUND
    made.queue_declare("q")
    for count in (1, 100):
        assert ask(broker, "look", user, queue="q", count=count)["messages"] == []


def test_properties_that_json_cannot_say_are_shown_as_python_writes_them():
    message = {
        "exchange": "x",
        "key": b"\xffk",
        "redelivered": True,
        "properties": {"headers": {"n": object}},
        "size": 1,
        "body": b"",
        "left": 0,
    }
    row = steering.row_of(message)
    assert row["properties"]["headers"] and row["routing_key"] == "\ufffdk" and row["redelivered"] and row["payload"] == ""


def test_a_reading_of_the_configuration_is_begun_and_told_about(world):
    broker, _, user, _ = world
    assert ask(broker, "reload", user) == {"ok": True, "number": 7} and broker.port.asked == ["reload"]
    broker.port.readings[7] = types.SimpleNamespace(over=False, failed=False, sentences=[])
    assert ask(broker, "reload", user, number=7) == {"ok": True, "over": False, "failed": False, "sentences": []}
    sentences = [f"{number}: " + "x" * 500 for number in range(20)]
    broker.port.readings[7] = types.SimpleNamespace(over=True, failed=True, sentences=sentences)
    told = ask(broker, "reload", user, number=7)
    assert told["over"] and told["failed"] and told["sentences"] == sentences[: len(told["sentences"])]
    assert 6 <= len(told["sentences"]) <= 7 and broker.port.asked == ["reload"]
    assert refused(broker, "reload", user, number=8) == (NOT_FOUND, "there was no reading 8")

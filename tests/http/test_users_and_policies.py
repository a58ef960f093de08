"""Users, their permissions, topic permissions and limits, policies and operator policies: shown and changed over the API, and in force."""

import pika
import pytest
from api import Api, queue


def test_users_and_what_they_may(served, api):
    api.do("PUT", "/users/calls", {"password": "secret", "tags": "management, policymaker"}, 201)
    assert api.get("/users/calls")["tags"] == ["management", "policymaker"]
    caller = Api(served.http_port, "calls", "secret")
    assert caller.get("/whoami")["tags"] == ["management", "policymaker"]
    assert caller.get("/queues") == [] and caller.get("/queues/%2F", 401)["reason"] == "User not authorised to access virtual host"
    assert [row["name"] for row in api.get("/users/without-permissions")] == ["calls", "watcher"]
    api.do("PUT", "/permissions/%2F/calls", {"configure": "^own", "write": ".*", "read": "^own"}, 201)
    api.do("PUT", "/permissions/%2F/calls", {"configure": "^own", "write": "", "read": "^own"}, 204)
    assert api.get("/permissions/%2F/calls")["configure"] == "^own"
    caller.put_queue("own.q")
    assert "ACCESS_REFUSED" in caller.do("PUT", queue("other.q"), {}, 401)["reason"]
    assert caller.do(
        "POST",
        "/exchanges/%2F/amq.default/publish",
        {"properties": {}, "routing_key": "own.q", "payload": "", "payload_encoding": "string"},
        400,
    )["reason"].startswith("403 ACCESS_REFUSED")
    assert caller.do("PUT", "/users/more", {"password": "x", "tags": ""}, 401)["reason"] == "Not administrator user"
    api.do("PUT", "/users/calls", {"password": "other", "tags": "management"}, 204)
    assert caller.call("GET", "/api/whoami")[0] == 401
    api.do("DELETE", "/permissions/%2F/calls")
    assert api.get("/permissions/%2F/calls", 404)
    api.do("DELETE", "/users/calls")
    assert api.get("/users/calls", 404)
    assert "configuration file" in api.do("DELETE", "/users/viewer", None, 400)["reason"]
    api.do("PUT", "/users/bulk", {"password_hash": "", "tags": ["administrator"]}, 201)
    api.do("POST", "/users/bulk-delete", {"users": ["bulk", "nosuch"]}, 400)
    api.do("POST", "/users/bulk-delete", {"users": ["bulk", "bulk"]})
    assert api.get("/users/bulk", 404)


def test_policies(served, api):
    maker = Api(served.http_port, "maker")
    given = {"pattern": "^pol", "definition": {"max-length": 3}, "priority": 2, "apply-to": "queues"}
    maker.do("PUT", "/policies/%2F/p", given, 201)
    maker.do("PUT", "/policies/%2F/p", given, 204)
    api.put_queue("pol.q")
    assert api.get(queue("pol.q"))["policy"] == "p" and api.get(queue("pol.q"))["effective_policy_definition"] == {"max-length": 3}
    assert api.get("/policies/%2F/p") == {"vhost": "/", "name": "p", **given}
    for wrong in (
        {},
        {"pattern": "("},
        {"pattern": "a", "definition": {"nosuch": 1}},
        {**given, "apply-to": "x"},
        {**given, "priority": "y"},
    ):
        assert maker.do("PUT", "/policies/%2F/wrong", {"definition": {}, **wrong} if wrong else wrong, 400)["error"] == "bad_request"
    assert Api(served.http_port, "viewer").do("PUT", "/policies/%2F/p", given, 401)
    maker.do("DELETE", "/policies/%2F/p")
    assert api.get("/policies") == [] and api.get(queue("pol.q"))["policy"] is None


def test_operator_policies(api):
    """Set, read, in force beside a policy, exported and loaded among the parameters, removed; the smaller value counts."""
    path = "/operator-policies/%2F/bound"
    given = {"pattern": "^bound", "definition": {"max-length": 5, "message-ttl": 60000}, "priority": 1, "apply-to": "queues"}
    assert api.get("/operator-policies") == api.get("/operator-policies/%2F") == [] and api.get(path, 404)
    api.do("PUT", path, given, 201)
    api.do("PUT", path, given, 204)
    row = {"vhost": "/", "name": "bound", **given}
    assert api.get("/operator-policies") == [row] and api.get(path) == row and api.get("/policies") == []
    api.put_queue("bound.q")
    told = api.get(queue("bound.q"))
    assert (told["policy"], told["operator_policy"], told["effective_policy_definition"]) == (None, "bound", given["definition"])
    api.do("PUT", "/policies/%2F/bound", {"pattern": "^bound", "definition": {"max-length": 9, "expires": 900000}}, 201)
    told = api.get(queue("bound.q"))
    assert (told["policy"], told["operator_policy"]) == ("bound", "bound")
    assert told["effective_policy_definition"] == {"max-length": 5, "message-ttl": 60000, "expires": 900000}
    for number in range(8):
        api.publish("bound.q", str(number))
    assert api.get(queue("bound.q"))["messages"] == 5
    exported = api.get("/definitions")["parameters"]
    assert exported == [{"vhost": "/", "component": "operator_policy", "name": "bound", "value": given}]
    for definition, apply_to in (
        ({"dead-letter-exchange": "e"}, "queues"),
        ({"max-length": -1}, "queues"),
        ({"max-length": 1}, "exchanges"),
    ):
        assert api.do("PUT", path, {**given, "definition": definition, "apply-to": apply_to}, 400)["error"] == "bad_request"
    assert api.get(path) == row
    api.do("DELETE", path)
    api.do("DELETE", path, None, 404)
    assert api.get(queue("bound.q"))["effective_policy_definition"] == {"max-length": 9, "expires": 900000}
    api.do("POST", "/definitions", {"parameters": exported}, 204)
    assert api.get(path) == row
    for each in (path, "/policies/%2F/bound", queue("bound.q")):
        api.do("DELETE", each)


def test_topic_permissions(served, api):
    """Set, read, enforced, exported, loaded, cleared; an expression that is none is refused."""
    api.do("PUT", "/users/topical", {"password": "topical", "tags": "management"}, 201)
    api.do("PUT", "/permissions/%2F/topical", {"configure": ".*", "write": ".*", "read": ".*"}, 201)
    path, given = "/topic-permissions/%2F/topical", {"exchange": "amq.topic", "write": "^{username}\\.", "read": "^{vhost}$|#"}
    assert api.get("/topic-permissions") == api.get("/users/topical/topic-permissions") == [] and api.get(path, 404)
    api.do("PUT", path, given, 201)
    api.do("PUT", path, given, 204)
    row = {"user": "topical", "vhost": "/", **given}
    for place in ("/topic-permissions", "/users/topical/topic-permissions", "/vhosts/%2F/topic-permissions", path):
        assert api.get(place) == [row], place
    assert "topic permission" in api.do("PUT", path, {**given, "read": "("}, 400)["reason"]
    assert api.do("PUT", path, {"exchange": "amq.topic", "write": ""}, 400)["error"] == "bad_request"
    assert api.do("PUT", "/topic-permissions/%2F/nosuch", given, 400)["reason"] == "vhost_or_user_not_found"
    exported = api.get("/definitions")
    assert exported["topic_permissions"] == [row] and "topic_permissions" not in api.get("/definitions/%2F")
    words = "access to topic 'b' in exchange 'amq.topic' in vhost '/' refused for user 'topical'"
    mine = Api(served.http_port, "topical")
    assert not mine.do("POST", "/exchanges/%2F/amq.topic/publish", message("topical.a"), 200)["routed"]
    assert mine.do("POST", "/exchanges/%2F/amq.topic/publish", message("b"), 400)["reason"].endswith(words)
    mine.put_queue("calls.topical", status=201)
    mine.do("POST", "/bindings/%2F/e/amq.topic/q/calls.topical", {"routing_key": "#"}, 201)
    assert mine.do("POST", "/bindings/%2F/e/amq.topic/q/calls.topical", {"routing_key": "b"}, 401)["reason"].endswith(words)
    mine.do("DELETE", "/queues/%2F/calls.topical")
    api.do("DELETE", path)
    api.do("DELETE", path, None, 404)
    api.do("POST", "/definitions", {"topic_permissions": exported["topic_permissions"]}, 204)
    assert api.get(path) == [row]
    api.do("DELETE", "/users/topical", None, 204)
    assert api.get("/topic-permissions") == []


def message(key):
    """The body of a publish."""
    return {"properties": {}, "routing_key": key, "payload": "x", "payload_encoding": "string"}


def test_limits_of_users(served, api):
    """Set, read, enforced, exported, cleared; a name that is no limit and a value that is no number are refused."""
    api.do("PUT", "/users/limited", {"password": "limited", "tags": "management"}, 201)
    api.do("PUT", "/permissions/%2F/limited", {"configure": ".*", "write": ".*", "read": ".*"}, 201)
    assert api.get("/user-limits/limited") == []
    api.do("PUT", "/user-limits/limited/max-connections", {"value": 1}, 204)
    api.do("PUT", "/user-limits/limited/max-channels", {"value": 2}, 204)
    both = {"max-connections": 1, "max-channels": 2}
    assert api.get("/user-limits") == api.get("/user-limits/limited") == [{"user": "limited", "value": both}]
    assert [user["limits"] for user in api.get("/definitions")["users"] if user["name"] == "limited"] == [both]
    assert api.do("PUT", "/user-limits/limited/max-queues", {"value": 1}, 400)["reason"].startswith("Unrecognised terms")
    refused = api.do("PUT", "/user-limits/limited/max-channels", {"value": "many"}, 400)
    assert refused["reason"] == 'max-channels should be a number, actually was <<"many">>'
    parameters = pika.URLParameters(served.url)
    parameters.credentials = pika.PlainCredentials("limited", "limited")
    connection = pika.BlockingConnection(parameters)
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match="user connection limit .1. is reached"):
        pika.BlockingConnection(parameters)
    connection.channel()
    connection.channel()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="maximum allowed user limit of .2."):
        connection.channel()
    api.do("DELETE", "/user-limits/limited/max-connections", None, 204)
    api.do("DELETE", "/user-limits/limited/max-channels", None, 204)
    assert api.get("/user-limits") == []
    api.do("DELETE", "/users/limited", None, 204)


def test_what_the_newer_rabbitmqadmin_asks_for(api):
    """Blanket policies have a priority below 0; what is always on or never deleted may be asked for."""
    blanket = {"pattern": ".*", "definition": {"max-length": 1000}, "priority": -20, "apply-to": "queues"}
    api.do("PUT", "/policies/%2F/blanket", blanket, 201)
    assert api.get("/policies/%2F/blanket")["priority"] == -20
    api.put_queue("newer.q")
    assert api.get(queue("newer.q"))["policy"] == "blanket"
    api.do("DELETE", "/policies/%2F/blanket")
    api.do("DELETE", queue("newer.q"))
    api.do("PUT", "/feature-flags/stream_queue/enable", {}, 204)
    api.do("PUT", "/feature-flags/nosuch/enable", {}, 400)
    api.do("POST", "/vhosts/%2F/deletion/protection", None, 204)
    assert "only virtual host" in api.do("DELETE", "/vhosts/%2F/deletion/protection", None, 400)["reason"]

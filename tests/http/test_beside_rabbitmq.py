"""The same calls to RabbitMQ with its management plugin and to this broker: keys and their types are compared.

ABSENT names what RabbitMQ tells and this broker does not, and why (ports/http/README.md has the table for people). A key that both have
has the same type in both; what only this broker tells is no fault.
"""

import json
import re
import time
from urllib.parse import quote

import pika
import pytest
from api import Api, Served, queue
from broker_process import RABBITMQ_SERVER, BrokerProcess, free_port, rabbitmq_installed
from parameter_calls import OWN, parsed

pytestmark = pytest.mark.skipif(not rabbitmq_installed(), reason=f"{RABBITMQ_SERVER} is not there: apt install rabbitmq-server")

START_S = 120

# Of paths of keys: what speaks of Erlang, of a cluster, or of what no record here counts
ABSENT = re.compile(
    "|".join(
        (
            r"garbage_collection",
            r"reductions",
            r"backing_queue_status",
            r"idle_since",
            r"message_stats\.(confirm|deliver|deliver_no_ack|get|get_empty|get_no_ack|disk_reads|disk_writes|redeliver|return_unroutable"
            r"|drop_unroutable|publish|publish_in|publish_out|ack|deliver_get)(_details)?\b",
            r"^\[?\]?\.?(channel|queue)_(closed|created|declared|deleted)",
            r"(mnesia|queue_index|msg_store|io_(read|reopen|seek|write_avg|write_count|sync_avg))_?",
            r"ra_open_file_metrics|metrics_gc_queue_length|gc_(num|bytes)|context_switches",
            r"(fd_used|mem_used|proc_used|sockets_used|disk_free)_details",
            r"socket_opts|cowboy_opts|contexts\[\]\.(ssl_opts|node)|config_files\[\]|cluster_links|ssl_opts",
            r"memory\.(?!total)",
            r"client_properties\.|variable_map",
            r"(recv|send)_(oct|cnt|pend)",
            r"cluster_state\.",
            r"x-queue-type|default_queue_type|description|metadata|tags\[\]",
            r"samples\[\]|avg(_rate)?$",
            r"limits\.",
            r"open_files|readers\.|single_active_consumer_ctag|x-stream-offset",
        )
    )
)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """{kind: (the API, its AMQP URL)} of both brokers, each with the same things in it."""
    port = free_port()
    rabbitmq = BrokerProcess(
        "rabbitmq", configuration=f"management.tcp.port = {port}\nmanagement.tcp.ip = 127.0.0.1\n", plugins="rabbitmq_management"
    )
    ours = Served("--data", str(tmp_path_factory.mktemp("beside") / "data"))
    made = {"rabbitmq": Api(port, "guest"), "leveret": Api(ours.http_port, "guest")}
    connections = []
    try:
        wait_for(made["rabbitmq"])
        for api, process in ((made["rabbitmq"], rabbitmq), (made["leveret"], ours)):
            connections.append(furnish(api, process.url))
        wait_for_statistics(made["rabbitmq"])
        for kind, process in (("rabbitmq", rabbitmq), ("leveret", ours)):
            made[kind].url = process.url
        yield made
    finally:
        for connection in connections:
            connection.close()
        ours.stop()
        rabbitmq.stop()


def wait_for(api):
    limit = time.monotonic() + START_S
    while True:
        try:
            if api.call("GET", "/api/whoami")[0] == 200:
                return
        except OSError:
            assert time.monotonic() < limit, "RabbitMQ's management does not answer"
        time.sleep(0.3)


def wait_for_statistics(api):
    """RabbitMQ counts with a delay of some seconds."""
    limit = time.monotonic() + START_S
    while True:
        rows = api.get("/queues/%2F/same.q")
        if rows.get("messages") == 2 and rows.get("message_stats") and api.get("/channels") and "user" in api.get("/channels")[0]:
            if api.get("/connections") and "client_properties" in api.get("/connections")[0] and api.get("/consumers"):
                return
        assert time.monotonic() < limit, rows
        time.sleep(0.5)


def furnish(api, url):
    """The same things in both: a queue with two messages, a consumer, an exchange with a binding, a policy, a user."""
    api.put_queue("same.q", arguments={"x-max-length": 10})
    api.do("PUT", "/exchanges/%2F/same.e", {"type": "topic"}, 201)
    api.do("POST", "/bindings/%2F/e/same.e/q/same.q", {"routing_key": "a.#"}, 201)
    api.do("PUT", "/policies/%2F/same", {"pattern": "^same", "definition": {"max-length": 100}, "apply-to": "queues"}, 201)
    api.do("PUT", "/users/same", {"password": "same", "tags": "management"}, 201)
    api.do("PUT", "/permissions/%2F/same", {"configure": "", "write": "", "read": ""}, 201)
    api.do("PUT", "/operator-policies/%2F/same.o", {"pattern": "^same", "definition": {"max-length": 50, "message-ttl": 9000000}}, 201)
    api.do("PUT", "/user-limits/same/max-connections", {"value": 100}, 204)
    api.do("PUT", "/topic-permissions/%2F/same", {"exchange": "same.e", "write": "^a", "read": ""}, 201)
    api.do("PUT", "/vhost-limits/%2F/max-queues", {"value": 1000})
    api.do("PUT", "/global-parameters/same", {"value": {"a": [1, "b"]}}, 201)
    api.do("PUT", "/global-parameters/same.text", {"value": "c"}, 201)
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_qos(prefetch_count=1)
    channel.queue_declare("same.consumed")
    channel.basic_consume("same.consumed", lambda *_: None, consumer_tag="same")
    for _ in range(2):
        channel.basic_publish("same.e", "a.b", b"hej")
    for name, kind in (("same.quorum", "quorum"), ("same.stream", "stream")):
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": kind})
        channel.basic_publish("", name, b"hej", pika.BasicProperties(delivery_mode=2))
    channel.queue_declare("same.own", exclusive=True)
    channel.queue_declare("same.single", arguments={"x-single-active-consumer": True, "x-max-priority": 3})
    further = connection.channel()
    further.basic_qos(prefetch_count=5)
    for each, tag in ((channel, "first"), (further, "second")):
        each.basic_consume("same.single", lambda *_: None, consumer_tag=tag, arguments={"x-priority": 3})
    further.basic_consume("same.own", lambda *_: None, consumer_tag="alone", exclusive=True, auto_ack=True)
    further.basic_consume("same.stream", lambda *_: None, consumer_tag="reads", arguments={"x-stream-offset": "next"})
    return connection


def types_of(value, path="", made=None):
    """{path of keys: set of the types that stand there}."""
    made = {} if made is None else made
    if isinstance(value, dict):
        for name, each in value.items():
            types_of(each, f"{path}.{name}" if path else name, made)
    elif isinstance(value, list):
        for each in value:
            types_of(each, path + "[]", made)
    else:
        kind = "null" if value is None else "number" if type(value) in (int, float) else type(value).__name__
        made.setdefault(path, set()).add(kind)
    return made


PATHS = (
    "/queues/%2F/same.quorum /queues/%2F/same.stream /queues/%2F/same.own /queues/%2F/same.single "
    "/overview /cluster-name /nodes /connections /channels /consumers /consumers/%2F /exchanges /exchanges/%2F "
    "/exchanges/%2F/same.e /queues /queues/%2F /exchanges/%2F/same.e/bindings/source "
    "/exchanges/%2F/same.e/bindings/destination /queues/%2F/same.q/bindings /queues/%2F/same.q /queues?page=1 /bindings "
    "/bindings/%2F /bindings/%2F/e/same.e/q/same.q /bindings/%2F/e/same.e/q/same.q/a.%23 /vhosts /vhosts/%2F "
    "/vhosts/%2F/permissions /users /users/same /users/same/permissions /users/without-permissions /whoami /permissions "
    "/permissions/%2F/same /policies /policies/%2F /policies/%2F/same /operator-policies /operator-policies/%2F "
    "/operator-policies/%2F/same.o /vhost-limits /vhost-limits/%2F /parameters /parameters/vhost-limits/%2F/limits "
    "/global-parameters /global-parameters/same /user-limits /user-limits/same "
    "/topic-permissions /topic-permissions/%2F/same /users/same/topic-permissions /vhosts/%2F/topic-permissions "
    "/parameters/shovel /aliveness-test/%2F /health/checks/alarms /health/checks/local-alarms "
    "/health/checks/virtual-hosts /health/checks/certificate-expiration/1/days /health/checks/node-is-mirror-sync-critical "
    "/health/checks/node-is-quorum-critical /health/checks/protocol-listener/amqp /feature-flags /definitions "
    "/definitions/%2F /vhosts/%2F/connections /connections/username/guest /auth/attempts/NODE /auth/attempts/NODE/source "
).split()


@pytest.mark.parametrize("path", PATHS)
def test_what_both_tell_has_the_same_types(both, path):
    theirs, ours = (types_of(both[kind].get(path.replace("NODE", both[kind].get("/overview")["node"]))) for kind in ("rabbitmq", "leveret"))
    missing = [key for key in theirs if key not in ours and not ABSENT.search(key)]
    assert not missing, (path, missing)
    for key in theirs.keys() & ours.keys():
        known, told = theirs[key] - {"null"}, ours[key] - {"null"}
        assert not known or not told or told <= known or known <= told, (path, key, known, told)


CALLS = (
    ("GET", "/nosuch", None),
    ("GET", "/queues/%2F/nosuch", None),
    ("GET", "/queues/nosuch", None),
    ("GET", "/users/nosuch", None),
    ("GET", "/nodes/nosuch", None),
    ("GET", "/policies/%2F/nosuch", None),
    ("GET", "/connections/nosuch", None),
    ("GET", "/bindings/%2F/e/same.e/q/nosuch", None),
    ("GET", "/bindings/%2F/e/nosuch/q/same.q", None),
    ("GET", "/queues?page=9", None),
    ("GET", "/queues?page=0", None),
    ("GET", "/queues?page=1&page_size=501", None),
    ("GET", "/queues?page=1&name=(&use_regex=true", None),
    ("GET", "/queues?sort=nosuch", None),
    ("GET", "/health/checks/port-listener/1", None),
    ("GET", "/health/checks/protocol-listener/nosuch", None),
    ("GET", "/operator-policies/%2F/nosuch", None),
    ("PUT", "/operator-policies/%2F/same.o", {"pattern": "^same", "definition": {"max-length": 60}}),
    ("PUT", "/operator-policies/%2F/same.p", {"pattern": "^same", "definition": {"dead-letter-exchange": "x"}}),
    ("PUT", "/operator-policies/%2F/same.p", {"pattern": "^same"}),
    ("DELETE", "/operator-policies/%2F/same.o", None),
    ("DELETE", "/operator-policies/%2F/same.o", None),
    ("GET", "/topic-permissions/%2F/guest", None),
    ("PUT", "/topic-permissions/%2F/same", {"exchange": "same.e", "write": "^b", "read": ""}),
    ("PUT", "/topic-permissions/%2F/same", {"exchange": "same.e", "write": "^b"}),
    ("PUT", "/topic-permissions/%2F/nosuch", {"exchange": "same.e", "write": "", "read": ""}),
    ("DELETE", "/topic-permissions/%2F/same", None),
    ("DELETE", "/topic-permissions/%2F/same", None),
    ("GET", "/users/same/topic-permissions", None),
    ("PUT", "/user-limits/same/max-channels", {"value": 5}),
    ("DELETE", "/user-limits/same/max-channels", None),
    ("DELETE", "/user-limits/same/max-channels", None),
    ("PUT", "/user-limits/nosuch/max-channels", {"value": 5}),
    ("PUT", "/queues/%2F/same.q", {"arguments": {"x-max-length": 10}}),
    ("PUT", "/queues/%2F/same.q", {"durable": False, "arguments": {"x-max-length": 10}}),
    ("PUT", "/queues/%2F/same.q", {"arguments": {"x-max-length": 11}}),
    ("PUT", "/queues/%2F/amq.mine", {}),
    ("PUT", "/queues/%2F/same.new", {"auto_delete": "true"}),
    ("DELETE", "/queues/%2F/same.q?if-empty=true", None),
    ("DELETE", "/queues/%2F/same.new", None),
    ("DELETE", "/queues/%2F/same.new", None),
    ("PUT", "/exchanges/%2F/same.e", {"type": "topic"}),
    ("PUT", "/exchanges/%2F/same.e", {"type": "direct"}),
    ("PUT", "/exchanges/%2F/same.f", {"type": "nosuch"}),
    ("DELETE", "/exchanges/%2F/amq.topic", None),
    ("DELETE", "/exchanges/%2F/nosuch", None),
    ("POST", "/bindings/%2F/e/same.e/q/same.q", {"routing_key": "b"}),
    ("POST", "/bindings/%2F/e/nosuch/q/same.q", {"routing_key": "b"}),
    ("POST", "/bindings/%2F/e/same.e/q/nosuch", {"routing_key": "b"}),
    ("DELETE", "/bindings/%2F/e/same.e/q/same.q", None),
    ("DELETE", "/bindings/%2F/e/same.e/q/same.q/b", None),
    ("DELETE", "/bindings/%2F/e/same.e/q/same.q/b", None),
    ("POST", "/exchanges/%2F/same.e/publish", {"properties": {}, "routing_key": "no", "payload": "", "payload_encoding": "string"}),
    ("POST", "/exchanges/%2F/nosuch/publish", {"properties": {}, "routing_key": "no", "payload": "", "payload_encoding": "string"}),
    ("POST", "/exchanges/%2F/same.e/publish", {"properties": {}}),
    ("POST", "/queues/%2F/same.q/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}),
    ("POST", "/queues/%2F/same.q/get", {"count": 1}),
    ("POST", "/queues/%2F/nosuch/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}),
    ("POST", "/queues/%2F/same.q/actions", {"action": "nosuch"}),
    ("PUT", "/users/same.u", {"tags": "management"}),
    ("PUT", "/users/same.v", {"password": "x"}),
    ("DELETE", "/users/nosuch", None),
    ("PUT", "/permissions/%2F/nosuch", {"configure": "", "write": "", "read": ""}),
    ("PUT", "/permissions/%2F/same", {"configure": "("}),
    ("DELETE", "/permissions/%2F/nosuch", None),
    ("PUT", "/policies/%2F/same.p", {"pattern": "^x"}),
    ("PUT", "/policies/%2F/same.p", {"pattern": "^x", "definition": {"nosuch": 1}}),
    ("DELETE", "/policies/%2F/nosuch", None),
    ("PUT", "/policies/%2F/same.n", {"pattern": "^x", "definition": {"max-length": 1}, "priority": -20}),
    ("PUT", "/feature-flags/quorum_queue/enable", {}),
    ("PUT", "/feature-flags/nosuch/enable", {}),
    ("PUT", "/vhosts/%2F", {}),
    ("DELETE", "/connections/nosuch", None),
    ("POST", "/overview", {}),
    # What RabbitMQ's own suite of its API checks (rabbit_mgmt_http_SUITE)
    ("GET", "/queues/%2F/", None),
    ("GET", "/exchanges/%2F/", None),
    ("GET", "/vhosts/%2F/", None),
    ("GET", "/all-configuration", None),
    ("GET", "/nodes/NODE/memory/relative", None),
    ("GET", "/nodes/nosuch/memory/relative", None),
    ("GET", "/healthchecks/node", None),
    ("GET", "/healthchecks/node/NODE", None),
    ("GET", "/healthchecks/node/nosuch", None),
    ("GET", "/health/checks/protocol-listener/amqp0.9.1", None),
    ("GET", "/health/checks/protocol-listener/amqp0-9-1", None),
    ("GET", "/health/checks/protocol-listener/amqp10", None),
    ("GET", "/health/checks/certificate-expiration/two/weeks", None),
    ("GET", "/health/checks/port-listener/bananas", None),
    ("GET", "/auth/attempts/nosuch", None),
    ("GET", "/auth/attempts/nosuch/source", None),
    ("DELETE", "/auth/attempts/NODE", None),
    ("DELETE", "/auth/attempts/nosuch", None),
    ("POST", "/vhosts/%2F/start/NODE", []),
    ("POST", "/vhosts/%2F/start/nosuch", []),
    ("PUT", "/queues/nosuch/same.q", {"durable": True}),
    ("PUT", "/exchanges/nosuch/same.e", {"type": "direct"}),
    ("PUT", "/exchanges/%2F/same.g", {"type": "direct", "durable": "troo"}),
    ("PUT", "/policies/nosuch/same.p", {"pattern": "^x", "definition": {"max-length": 1}}),
    ("PUT", "/permissions/nosuch/same", {"configure": "", "write": "", "read": ""}),
    ("PUT", "/topic-permissions/nosuch/same", {"exchange": "same.e", "write": "", "read": ""}),
    ("PUT", "/topic-permissions/%2F/same", {"exchange": "same.e", "write": "^b", "read": ""}),
    ("PUT", "/topic-permissions/%2F/same", {"exchange": "amq.topic", "write": "^b", "read": ""}),
    ("DELETE", "/topic-permissions/%2F/same/amq.topic", None),
    ("GET", "/topic-permissions/%2F/same", None),
    ("DELETE", "/topic-permissions/%2F/same/amq.topic", None),
    ("DELETE", "/topic-permissions/%2F/same/same.e", None),
    ("GET", "/topic-permissions/%2F/same", None),
    ("POST", "/bindings/%2F/e/same.e/q/same.q", {}),
    ("POST", "/bindings/%2F/e/same.e/e/amq.fanout", {"routing_key": "c", "arguments": []}),
    ("POST", "/bindings/%2F/e/same.e/q/same.q", {"routing_key": None, "arguments": {}}),
    ("PUT", "/users/same.w", {"administrator": "true", "password": "w"}),
    ("GET", "/users/same.w", None),
    ("PUT", "/users/same.w", {"administrator": "false", "password": "w"}),
    ("GET", "/users/same.w", None),
    ("PUT", "/users/same.x", {"password": "x"}),
    ("PUT", "/users/same.x", {"tags": "", "password": "x", "password_hash": "x"}),
    ("GET", "/users/same.x", None),
    ("POST", "/users/bulk-delete", {"users": ["same.nosuch"]}),
    ("POST", "/users/bulk-delete", {"users": ["same.w"]}),
    ("GET", "/users/same.w", None),
    (
        "POST",
        "/exchanges/%2F/same.e/publish",
        {"properties": {"expiration": 1234}, "routing_key": "no", "payload": "", "payload_encoding": "string"},
    ),
    (
        "POST",
        "/exchanges/%2F/same.e/publish",
        {"properties": {}, "routing_key": "no", "payload": ["x"], "payload_encoding": "string"},
    ),
    ("POST", "/definitions/nosuch", {"queues": []}),
)
# Of these calls the status is another one, on purpose: (ours, theirs)
OTHERWISE = {
    ("GET", "/nodes/nosuch"): (404, 500),
}


def keys_of(value):
    """The paths of keys; RabbitMQ gives some reasons as a list of words."""
    return {"reason" if path == "reason[]" else path for path in types_of(value)}


@pytest.mark.parametrize("at", range(len(CALLS)), ids=[f"{method} {path}" for method, path, _ in CALLS])
def test_a_call_has_the_same_status_and_keys(both, at):
    method, path, body = CALLS[at]
    theirs, ours = (api.call(method, "/api" + path.replace("NODE", api.get("/overview")["node"]), body) for api in both.values())
    assert (ours[0], theirs[0]) == OTHERWISE.get((method, path), (theirs[0], theirs[0])), (theirs, ours)
    places = [{name.lower(): value for name, value in headers.items()}.get("location") for _, headers, _ in (theirs, ours)]
    assert places[0] == places[1] or "null" in places[0], places  # RabbitMQ makes a key of the word null
    if theirs[2] and ours[2] and theirs[0] != 405:
        theirs_json, ours_json = json.loads(theirs[2]), json.loads(ours[2])
        assert method == "GET" and theirs[0] == 200 or keys_of(theirs_json) == keys_of(ours_json), (theirs_json, ours_json)


def comparable(octets):
    """A JSON answer in any order of its rows and keys, less what is of one broker alone; RabbitMQ writes {} as [], and < in two ways."""
    if not octets:
        return None
    value = json.loads(octets.replace(b"&lt;", b"<").replace(b"&gt;", b">"))
    if isinstance(value, list):
        rows = [{name: each for name, each in row.items() if each not in ({}, [])} for row in value if row.get("name") not in OWN]
        return sorted(rows, key=repr)
    return value


def test_parameters_limits_hashes_and_odd_counts_are_answered_alike(both):
    """Line by line (parameter_calls.py): the status of each, and the answer where it is to be the same."""
    callers = {kind: {None: api} for kind, api in both.items()}
    wrong = []
    for how, user, method, path, body in parsed():
        answers = []
        for kind in ("rabbitmq", "leveret"):
            api = callers[kind].setdefault(user, Api(both[kind].port, user or "guest"))
            answers.append(api.call(method, "/api" + path, None if body is None else body.encode()))
        theirs, ours = answers
        if how in "=~":
            same = theirs[0] == ours[0] and (how == "~" or comparable(theirs[2]) == comparable(ours[2]))
        else:
            same = theirs[0] == int(how) and ours[0] == 400 and json.loads(ours[2])["error"] == "bad_request"
        if not same:
            wrong.append((method, path, body, theirs[0], theirs[2], ours[0], ours[2]))
    assert not wrong, "\n".join(map(repr, wrong))


def limited(api, url):
    """What a client hears beyond the limits of the virtual host, over AMQP and HTTP; how many are there already counts."""
    said = []
    parameters = pika.URLParameters(url)
    there = len([row for row in api.get("/connections") if row["vhost"] == "/"])
    for more in (0, 1):
        api.do("PUT", "/vhost-limits/%2F/max-connections", {"value": there + more})
        connections = []
        try:
            for _ in range(more + 1):
                connections.append(pika.BlockingConnection(parameters))
        except pika.exceptions.ProbableAccessDeniedError as refused:
            said.append(re.sub(r"limit \(\d+\)", f"limit ({more})", str(refused)))
        for each in connections:
            each.close()
        wait_until(lambda: len(api.get("/connections")) == there)
    api.do("DELETE", "/vhost-limits/%2F/max-connections")
    queues = len(api.get("/queues"))
    api.do("PUT", "/vhost-limits/%2F/max-queues", {"value": queues + 1})
    connection = pika.BlockingConnection(parameters)
    for given in ({"queue": "lim.1"}, {"queue": "lim.1"}, {"queue": "lim.2", "durable": True}, {"queue": "lim.3", "exclusive": True}):
        try:
            said.append(connection.channel().queue_declare(**given).method.queue)
        except pika.exceptions.ChannelClosedByBroker as refused:
            said.append(str(refused).replace(f"({queues + 1})", "(N)"))
    said.append(api.do("PUT", queue("lim.4"), {}, 400)["reason"].replace(f"({queues + 1})", "(N)"))
    assert api.do("POST", "/definitions", {"queues": [{"vhost": "/", "name": "lim.5", "durable": True, "arguments": {}}]}, 400)
    api.do("DELETE", "/vhost-limits/%2F/max-queues")
    connection.channel().queue_delete("lim.1")
    connection.close()
    return said


def wait_until(is_so):
    limit = time.monotonic() + START_S
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.3)


def test_limits_of_the_virtual_host_refuse_in_the_same_words(both):
    said = {kind: limited(api, api.url) for kind, api in both.items()}
    assert said["leveret"] == said["rabbitmq"]
    assert "connection limit (0) is reached" in said["leveret"][0] and "queue limit in vhost '/' (N) is reached" in said["leveret"][4]


def test_connections_are_named_and_closed_alike(both):
    for api in both.values():
        (row,) = api.get("/connections")
        assert api.get("/connections/" + quote(row["name"], ""))["name"] == row["name"]
        assert api.get(queue("same.consumed"))["consumer_details"][0]["consumer_tag"] == "same"


TOPICS = (  # expressions for write and read, {username} is topical
    (("^a\\.", "^b$"), ("a.x", "b", "x.a.x", "", "a")),
    (("", ""), ("", "a")),
    (("{username}", "^{vhost}$"), ("topical", "x-topical", "{username}", "/", "a")),
    (("(a|b)$", "."), ("a", "xb", "c", "", "#", "*")),
)


def spoken(connection, method, *given):
    """The refusal that a method on a new channel brings, or None."""
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        getattr(channel, method)(*given)
    except pika.exceptions.ChannelClosedByBroker as closed:
        return closed.reply_code, closed.reply_text
    channel.close()
    return None


@pytest.mark.parametrize("expressions, keys", TOPICS)
def test_topic_permissions_permit_and_refuse_the_same_in_the_same_words(both, expressions, keys):
    """Publishes with this routing key, and with it in CC; bindings of a queue and of an exchange, and their ends; a fanout exchange."""
    said = {}
    for kind, api in both.items():
        api.call("PUT", "/api/users/topical", {"password": "topical", "tags": ""})
        api.call("PUT", "/api/permissions/%2F/topical", {"configure": ".*", "write": ".*", "read": ".*"})
        for exchange in ("amq.topic", "amq.fanout"):
            given = {"exchange": exchange, "write": expressions[0], "read": expressions[1]}
            assert api.call("PUT", "/api/topic-permissions/%2F/topical", given)[0] in (201, 204)
        parameters = pika.URLParameters(api.url)
        parameters.credentials = pika.PlainCredentials("topical", "topical")
        connection = pika.BlockingConnection(parameters)
        rows = said[kind] = []

        connection.channel().queue_declare("same.topical")
        connection.channel().exchange_declare("same.topical", "fanout")
        for key in keys:
            for exchange in ("amq.topic", "amq.fanout", "amq.direct"):
                rows.append(spoken(connection, "basic_publish", exchange, key, b"x"))
                for verb in ("queue_bind", "queue_unbind", "exchange_bind", "exchange_unbind"):
                    rows.append(spoken(connection, verb, "same.topical", exchange, key))
        connection.close()
    assert said["leveret"] == said["rabbitmq"]
    assert len({each is None for each in said["leveret"]}) == 2


USERS = {"low": "management", "pol": "policymaker", "mon": "monitoring", "none": ""}
SEEN = "/overview /queues /queues/%2F /users /nodes /policies /parameters /connections /vhosts /definitions /permissions /whoami".split()


@pytest.mark.parametrize("user", USERS)
def test_tags_open_the_same_doors(both, user):
    for api in both.values():
        api.do("PUT", "/users/" + user, {"password": user, "tags": USERS[user]}, 201)
    callers = {kind: Api(api.port, user) for kind, api in both.items()}
    for path in SEEN:
        theirs, ours = (callers[kind].call("GET", "/api" + path) for kind in ("rabbitmq", "leveret"))
        assert theirs[0] == ours[0], (user, path, theirs, ours)
        if theirs[0] == 401:
            assert json.loads(theirs[2])["error"] == json.loads(ours[2])["error"] == "not_authorised"
        elif path == "/queues":
            assert theirs[2] == ours[2] == b"[]"
    for method, path, body in (("PUT", "/queues/%2F/z", {}), ("PUT", "/policies/%2F/z", {"pattern": "a", "definition": {"max-length": 1}})):
        theirs, ours = (callers[kind].call(method, "/api" + path, body) for kind in ("rabbitmq", "leveret"))
        assert theirs[0] == ours[0] == 401, (user, path, theirs, ours)

"""Parameters, limits and password hashes over the API: durable when they are answered, and passwords log in by RabbitMQ's hashes."""

import base64
import hashlib
import json
import subprocess
import sys

import pika
import pytest
from api import Api, Served

ALGORITHMS = ("sha256", "sha512", "md5")


def hashed(algorithm, password, salt=b"salt"):
    """A hash as RabbitMQ's rabbit_password writes it: salt, and the digest of salt and password."""
    return base64.b64encode(salt + hashlib.new(algorithm, salt + password.encode()).digest()).decode()


def item(algorithm):
    """A user whose password is `secret of ALGORITHM`."""
    return {"password_hash": hashed(algorithm, f"secret of {algorithm}"), "hashing_algorithm": f"rabbit_password_hashing_{algorithm}"}


def logs_in(process, name, password):
    """Whether a client with this password is let in over AMQP."""
    parameters = pika.URLParameters(process.url)
    parameters.credentials = pika.PlainCredentials(name, password)
    try:
        pika.BlockingConnection(parameters).close()
    except pika.exceptions.AMQPConnectionError:
        return False
    return True


def test_what_is_answered_is_there_after_a_kill(tmp_path):
    """Global parameters, the cluster's name, limits, and each hash: put, killed, started again."""
    process = Served("--data", str(tmp_path / "data"))
    api = Api(process.http_port, "guest")
    api.do("PUT", "/global-parameters/one", {"value": {"a": [1, None, 1.5]}}, 201)
    api.do("PUT", "/cluster-name", {"name": "the fleet"})
    api.do("PUT", "/vhost-limits/%2F/max-queues", {"value": 3})
    for algorithm in ALGORITHMS:
        api.do("PUT", f"/users/of.{algorithm}", {**item(algorithm), "tags": "management"}, 201)
        api.do("PUT", f"/permissions/%2F/of.{algorithm}", {"configure": "", "write": "", "read": ""}, 201)
    process.process.kill()
    process.stop()
    process = Served("--data", str(tmp_path / "data"))
    api = Api(process.http_port, "guest")
    assert api.get("/global-parameters/one")["value"] == {"a": [1, None, 1.5]}
    assert api.get("/cluster-name") == {"name": "the fleet"} == {"name": api.get("/overview")["cluster_name"]}
    assert 'rabbitmq_cluster="the fleet"' in api.call("GET", "/metrics")[2].decode()
    assert api.get("/vhost-limits") == [{"vhost": "/", "value": {"max-queues": 3}}]
    for algorithm in ALGORITHMS:
        told = api.get(f"/users/of.{algorithm}")
        assert {name: told[name] for name in item(algorithm)} == item(algorithm)
        assert logs_in(process, f"of.{algorithm}", f"secret of {algorithm}")
        assert not logs_in(process, f"of.{algorithm}", "another secret")
        assert Api(process.http_port, f"of.{algorithm}", f"secret of {algorithm}").get("/whoami")["name"] == f"of.{algorithm}"
    assert process.stop() == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_hashes_come_with_definitions_and_go_with_them(served, api, algorithm):
    """Those of a RabbitMQ; what is exported loads again, and there too."""
    user = {"name": f"moved.{algorithm}", **item(algorithm), "tags": [], "limits": {}}
    permission = {"user": user["name"], "vhost": "/", "configure": "", "write": "", "read": ""}
    for _ in range(2):
        api.do("POST", "/definitions", {"users": [user], "permissions": [permission]}, 204)
        assert logs_in(served, user["name"], f"secret of {algorithm}") and not logs_in(served, user["name"], "secret")
        exported = [row for row in api.get("/definitions")["users"] if row["name"] == user["name"]]
        assert exported == [user]
        api.do("DELETE", "/users/" + user["name"])


def test_a_hash_that_nobody_could_log_in_by_is_refused(api):
    for given, words in (
        (
            {**item("md5"), "hashing_algorithm": "rabbit_password_hashing_sha512"},
            "is one of rabbit_password_hashing_md5, not of",
        ),
        ({"password_hash": hashed("md5", "x")}, "not of rabbit_password_hashing_sha256"),
        ({**item("md5"), "hashing_algorithm": "nosuch"}, "not of nosuch"),
        ({"password_hash": "AAAA"}, "20, 36 or 68 octets"),
        ({"password_hash": "!!!!"}, "not base64"),
    ):
        assert words in api.do("PUT", "/users/nosuch", {**given, "tags": ""}, 400)["reason"]
    assert api.get("/users/nosuch", 404)


def test_a_password_in_the_clear_is_never_kept_as_a_fast_hash(served, api):
    for algorithm in ALGORITHMS:
        given = {"password": "clear", "hashing_algorithm": f"rabbit_password_hashing_{algorithm}", "tags": "management"}
        api.do("PUT", "/users/clear", given, 201)
        assert api.get("/users/clear")["hashing_algorithm"] == "leveret_password_hashing_pbkdf2_sha256"
        assert Api(served.http_port, "clear").get("/whoami")["name"] == "clear"
        api.do("DELETE", "/users/clear")


def test_the_leveret_command_moves_parameters_between_brokers(served, api, tmp_path):
    """`leveret definitions export` and `import`."""
    command = [sys.executable, "-m", "leveret.tools.cli", "definitions"]
    api.do("PUT", "/global-parameters/moved", {"value": ["a", {"b": 1}]}, 201)
    api.do("PUT", "/vhost-limits/%2F/max-queues", {"value": 700})
    path = tmp_path / "definitions.json"
    subprocess.run([*command, "export", "--from", served.url, str(path)], check=True)
    document = json.loads(path.read_text())
    assert document["global_parameters"] == [{"name": "moved", "value": ["a", {"b": 1}]}]
    api.do("DELETE", "/global-parameters/moved")
    api.do("DELETE", "/vhost-limits/%2F/max-queues")
    told = subprocess.run([*command, "import", "--to", served.url, str(path)], check=True, capture_output=True, text=True).stdout
    assert "1 parameters, 1 global parameters" in told
    assert api.get("/global-parameters/moved")["value"] == ["a", {"b": 1}]
    assert api.get("/vhost-limits") == [{"vhost": "/", "value": {"max-queues": 700}}]
    api.do("DELETE", "/global-parameters/moved")
    api.do("DELETE", "/parameters/vhost-limits/%2F/limits")

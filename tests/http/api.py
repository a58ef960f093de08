"""A broker with its API, and a small client of it: http.client and json."""

import base64
import http.client
import json
from urllib.parse import quote

from broker_process import BrokerProcess


class Served(BrokerProcess):
    """`http_port`: of its API; `errors`: what it had written to standard error at its end."""

    def __init__(self, *arguments, http="127.0.0.1:0"):
        self.errors = ""
        super().__init__("leveret", arguments=(*arguments, "--http", http))
        line = self.process.stdout.readline().decode()
        while line.startswith(("ready serial:", "ready amqps:")):
            line = self.process.stdout.readline().decode()
        assert line.startswith("ready http"), line + self.error_text()
        self.http_port = int(line.rsplit(":", 1)[1])

    def stop(self):
        try:
            self.errors = self.error_text()
        except OSError:
            pass
        return super().stop()


class Api:
    """Calls of one user; each on a connection of its own unless `connection` is given."""

    def __init__(self, port, user, password=None, make=http.client.HTTPConnection, **more):
        self.port = port
        self.header = "Basic " + base64.b64encode(f"{user}:{user if password is None else password}".encode()).decode()
        self.make, self.more = make, more

    def call(self, method, path, body=None, headers=None):
        """(status, headers, body) of a call."""
        connection = self.make("127.0.0.1", self.port, timeout=60, **self.more)
        try:
            given = {"Authorization": self.header, **({} if body is None else {"content-type": "application/json"}), **(headers or {})}
            octets = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, octets, given)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path, status=200):
        """The JSON of a GET."""
        told, _, body = self.call("GET", "/api" + path)
        assert told == status, (path, told, body)
        return json.loads(body)

    def do(self, method, path, body=None, status=204):
        """The JSON of another call, None where there is none."""
        told, _, octets = self.call(method, "/api" + path, body)
        assert told == status, (path, told, octets)
        return json.loads(octets) if octets else None

    def put_queue(self, name, status=201, **given):
        self.do("PUT", queue(name), given, status)

    def publish(self, name, body, exchange="amq.default", **properties):
        given = {"properties": properties, "routing_key": name, "payload": body, "payload_encoding": "string"}
        return self.do("POST", f"/exchanges/%2F/{quote(exchange, '')}/publish", given, 200)["routed"]

    def messages(self, name, mode="ack_requeue_true", count=100, encoding="auto", **more):
        return self.do("POST", queue(name) + "/get", {"count": count, "ackmode": mode, "encoding": encoding, **more}, 200)


def queue(name):
    """The path of a queue."""
    return "/queues/%2F/" + quote(name, "")

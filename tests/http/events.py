"""Who listens to events, and clients and operators for them to happen."""

import time

import pika

EXCHANGE = "amq.rabbitmq.event"
WAIT_S = 120  # a machine may be ten times slower


class Heard:
    """A queue behind the exchange of events."""

    def __init__(self, url, exchange=EXCHANGE):
        self.connection = pika.BlockingConnection(pika.URLParameters(url))
        self.channel = self.connection.channel()
        self.queue = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.queue_bind(self.queue, exchange, "#")

    def until(self, last):
        """[(key, headers)] of all up to the one with the key `last`, but for what this listener did itself."""
        return [(method.routing_key, properties.headers) for method, properties, _ in self.messages(last)]

    def messages(self, last):
        """[(method, properties, body)] up to the one with the key `last`."""
        rows = []
        limit = time.monotonic() + WAIT_S
        while not rows or rows[-1][0].routing_key != last:
            method, properties, body = self.channel.basic_get(self.queue, auto_ack=True)
            if method is None:
                assert time.monotonic() < limit, (last, [row[0].routing_key for row in rows])
                time.sleep(0.02)
            elif self.queue not in (properties.headers or {}).values():
                rows.append((method, properties, body))
        return rows

    def close(self):
        self.connection.close()


def of_a_client(url):
    """A client that makes and removes one of each."""
    parameters = pika.URLParameters(url)
    parameters.client_properties = {"connection_name": "same.client"}
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.queue_declare("same.q", arguments={"x-max-length": 5})
    channel.queue_declare("same.x", exclusive=True, auto_delete=True)
    channel.exchange_declare("same.e", "topic", durable=True, arguments={"alternate-exchange": "x"})
    channel.exchange_declare("same.f", "fanout")
    channel.queue_bind("same.q", "same.e", "k.#", {"a": 1})
    channel.exchange_bind("same.f", "same.e", "z")
    tag = channel.basic_consume("same.q", lambda *_: None, arguments={"x-priority": 3})
    channel.basic_cancel(tag)
    channel.queue_unbind("same.q", "same.e", "k.#", {"a": 1})
    channel.queue_delete("same.x")
    channel.exchange_delete("same.e")
    channel.exchange_delete("same.f")
    channel.close()
    connection.close()
    parameters.credentials = pika.PlainCredentials("guest", "wrong")
    try:
        pika.BlockingConnection(parameters)
    except pika.exceptions.AMQPConnectionError:
        return
    raise AssertionError("a wrong password was let in")


def of_an_operator(api):
    """An operator who makes, changes and removes."""
    api.call("PUT", "/api/policies/%2F/same", {"pattern": "^same", "definition": {"max-length": 3}, "apply-to": "queues"}, JSON)
    api.call("DELETE", "/api/policies/%2F/same")
    api.call("PUT", "/api/global-parameters/same", {"value": {"a": 1}}, JSON)
    api.call("DELETE", "/api/global-parameters/same")
    for most in (100, 200):
        api.call("PUT", "/api/vhost-limits/%2F/max-queues", {"value": most}, JSON)
    api.call("PUT", "/api/vhost-limits/%2F/max-connections", {"value": 300}, JSON)
    api.call("DELETE", "/api/vhost-limits/%2F/max-queues")
    api.call("DELETE", "/api/parameters/vhost-limits/%2F/limits")
    api.call("DELETE", "/api/queues/%2F/same.q")
    for given in ({"password": "a", "tags": "management"}, {"password": "b", "tags": "monitoring"}):
        api.call("PUT", "/api/users/same", given, JSON)
    api.call("PUT", "/api/permissions/%2F/same", {"configure": "", "write": "", "read": ""}, JSON)
    api.call("DELETE", "/api/permissions/%2F/same")
    api.call("DELETE", "/api/users/same")


JSON = {"content-type": "application/json"}

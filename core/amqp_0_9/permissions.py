"""Which method needs which permission on which name (RabbitMQ's table of access control). content.py checks basic.publish.

A passive declare needs none. An exchange with an empty name is left to the verb, which refuses it; an empty queue name is the channel's
current queue. A generated name is checked where it is made (core/broker/topology.py).
"""

from ..access.permissions import CONFIGURE, READ, WRITE, check

# Method: (permission, kind, place of the name in the arguments), in RabbitMQ's order.
NEEDS = {
    "exchange_declare": ((CONFIGURE, "exchange", 1),),
    "exchange_delete": ((CONFIGURE, "exchange", 1),),
    "exchange_bind": ((WRITE, "exchange", 1), (READ, "exchange", 2)),
    "exchange_unbind": ((WRITE, "exchange", 1), (READ, "exchange", 2)),
    "queue_declare": ((CONFIGURE, "queue", 1),),
    "queue_delete": ((CONFIGURE, "queue", 1),),
    "queue_bind": ((WRITE, "queue", 1), (READ, "exchange", 2)),
    "queue_unbind": ((WRITE, "queue", 1), (READ, "exchange", 2)),
    "queue_purge": ((READ, "queue", 1),),
    "basic_consume": ((READ, "queue", 1),),
    "basic_get": ((READ, "queue", 1),),
}

KEYS = {"exchange_bind": 3, "exchange_unbind": 3, "queue_bind": 3, "queue_unbind": 3}  # where the routing key stands in the arguments

# Arguments of a declare that name an exchange: the declaring user must be able to read the one and write to the other.
FORWARDS = {"exchange_declare": "alternate-exchange", "queue_declare": "x-dead-letter-exchange"}

PASSIVE = {"exchange_declare": 3, "queue_declare": 2}

REPLY_TO = "amq.rabbitmq.reply-to"  # no queue of this name exists; every user may consume from it


def allow(session, channel, method, arguments):
    """Raise access-refused unless the session's user may do this."""
    needs = NEEDS.get(method)
    if needs is None or (method in PASSIVE and arguments[PASSIVE[method]]):
        return
    broker = session.broker
    user = session.connection.user
    for permission, kind, place in needs:
        name = arguments[place]
        if kind == "queue" and name == "" and method != "queue_declare":
            name = channel.last_queue
        if name and name != REPLY_TO:
            key = arguments[KEYS[method]] if permission == READ and method in KEYS else None
            check(broker, user, permission, kind, name, key)
    if method in FORWARDS:
        allow_forward(broker, user, method, arguments)


def allow_forward(broker, user, method, arguments):
    """The permissions for an alternate or dead letter exchange of something that is not there yet."""
    name = arguments[1]
    target = arguments[-1].get(FORWARDS[method])
    queue = method == "queue_declare"
    if isinstance(target, str) and name not in (broker.queues if queue else broker.exchanges):
        if name:
            check(broker, user, READ, "queue" if queue else "exchange", name)
        check(broker, user, WRITE, "exchange", target)

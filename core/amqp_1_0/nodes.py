"""The nodes of a broker behind links: a node of addresses.py in, what the broker is to be asked for out.

Nothing here waits. What was declared is in the log when these return; the link's attach goes to its peer when that is durable:
broker.journal.defined(name), with None for the name where several were.

Permissions are those of 0-9-1: a target needs write on its exchange (the default one for a queue), a source read on its queue; who makes a
queue needs configure on it, who binds it write on it and read on the exchange.

A node that is not there is amqp:not-found, unless the configuration has it made: `broker.made_on_use`, rows (Pattern, kind) of which the
first that fits the name counts; a kind is a word of KINDS. Boards have no such rows.
"""

from ..access.permissions import CONFIGURE, READ, WRITE, check
from ..broker import local
from ..errors import ACCESS_REFUSED, NOT_FOUND, NOT_IMPLEMENTED, RESOURCE_LOCKED, ProtocolError
from . import no_local
from .addresses import EXCHANGE, LINK, MADE, NAME, OWN, QUEUE, TOPIC, queue_address, subscription_name

KINDS = ("queue", "quorum", "stream", "direct", "fanout", "headers", "topic")  # the last four: exchanges

_QUEUES = KINDS[:3]
_TOPICS = "amq.topic"
_DYNAMIC = "amq.dyn-"
_REPLIES = "amq.rabbitmq.reply-to."  # of 0-9-1's queues for direct replies too
_OWN_SIZE = len(_DYNAMIC) + 22  # octets of a dynamic node's name beside those of its container and link


class Terminus:
    """What a source is for: who attaches it, and how long it is to last. `durable`: the subscription stays when its link detaches, and with
    its container's next one (terminus-durability and the expiry policy never). `key`: octets that a binding is made with, from a filter, or
    None: as the address says. `owner`: whose messages a subscription of its own is not to get (no_local.py), or None."""

    def __init__(self, container, link, capabilities=(), durable=False, key=None, owner=None):
        self.container = container
        self.link = link
        self.capabilities = capabilities
        self.durable = durable
        self.key = key
        self.owner = owner
        self.replaced: "list" = []  # consumers that end as this one begins, and the function that ends them; false: not yet (Link.steal)
        self.steal = lambda: True

    def is_in_use(self, queue):
        """True when others than those that end read a queue."""
        return len([each for each in queue.consumers if each not in self.replaced]) > 0


class Reading:
    """What a link reads from: `queue` for Broker.subscribe, with its argument `exclusive`; `address` goes into the echoed source."""

    exclusive = False
    ends = False  # a link that closes, and does not only detach, ends it: `close`
    own = False  # the queue was made for this link, and ends with it whoever reads it
    bound = False  # the queue was bound to an exchange for it
    private = False  # the queue is for this subscription alone: what its filter does not want nobody wants

    local = False  # the filter no-local is kept to

    def __init__(self, queue, address):
        self.queue = queue
        self.address = address

    def keeps_out(self, broker, owner):
        """Have the subscription's queue get no messages of `owner`, None: it gets all."""
        if owner is not None:
            local.keep_out(broker, broker.queues[self.queue], owner)
            self.local = True


def route(broker, connection, node):
    """(exchange, key) that a target publishes to: a name and octets, or None for the subject of each message. Raises ProtocolError."""
    kind, name, key = node
    if kind == OWN:
        raise ProtocolError(NOT_IMPLEMENTED, "a dynamic target is made by make_own")
    if kind in (NAME, TOPIC):
        kind = seen(broker, connection, kind, name)
    elif kind in (QUEUE, MADE) and name not in broker.queues:
        make_queue(broker, connection, kind, name)
    if kind != EXCHANGE:
        exchange, key = ("", name.encode("utf-8")) if kind != TOPIC else (_TOPICS, key)
    else:
        exchange, key = name, None if node[0] in (NAME, TOPIC) else key
    check(broker, connection.user, WRITE, "exchange", exchange)
    if exchange and broker.topology.exchange(exchange).internal:
        raise ProtocolError(ACCESS_REFUSED, "cannot publish to internal " + broker.topology.called("exchange", exchange))
    return exchange, key


def seen(broker, connection, kind, name):
    """What a bare name is here: QUEUE or EXCHANGE; TOPIC for the name of a topic that is no exchange."""
    if kind == NAME and name in broker.queues:
        return QUEUE
    if name and name in broker.exchanges:
        return EXCHANGE
    made = kind_made(broker, name)
    if made in _QUEUES and kind == NAME:
        make_queue(broker, connection, NAME, name)
        return QUEUE
    if made is not None and made not in _QUEUES:
        check(broker, connection.user, CONFIGURE, "exchange", name)
        broker.topology.declare_exchange(connection, name, made, False, True, False, False, {})
        return EXCHANGE
    if kind == NAME:
        raise ProtocolError(NOT_FOUND, "no queue and no " + broker.topology.called("exchange", name))
    return TOPIC


def kind_made(broker, name):
    """The kind of node that the configuration has made for a name that is not there, or None."""
    for pattern, kind in getattr(broker, "made_on_use", ()):  # tools/config.py gives it; a board's broker has none
        if pattern.matches(name):
            return kind
    return None


def make_queue(broker, connection, kind, name):
    """Make a queue that is not there: one of the first form's addresses, else one that the configuration has made."""
    made = kind_made(broker, name)
    if made not in _QUEUES:
        if kind != MADE:
            raise ProtocolError(NOT_FOUND, "no " + broker.topology.called("queue", name))
        made = "queue"
    check(broker, connection.user, CONFIGURE, "queue", name)
    broker.topology.declare_queue(connection, name, False, True, False, False, {} if made == "queue" else {"x-queue-type": made})


def make_own(broker, connection, node, container, link):
    """Make the queue of a dynamic terminus, exclusive to its connection, for `close` to end: (name, address).

    A topic needs no node: ("", address).
    """
    if node[2] is not None:
        return "", "/topic/" + own_name(broker, container, link)
    name = broker.topology.generated_name(_REPLIES) if node[1] else own_name(broker, container, link)
    check(broker, connection.user, CONFIGURE, "queue", name)
    broker.topology.check_queue_room(connection)
    broker.topology.make_queue(connection, name, False, True, False, {})
    return name, queue_address(name)


def own_name(broker, container, link):
    """A name for a dynamic node; with container and link in it, where they are short, "for ease of identification" (section 3.5.3)."""
    label = "%s-%s-" % (container, link)
    short = len(label.encode("utf-8")) <= broker.limits.name_size_max - _OWN_SIZE
    return broker.topology.generated_name(_DYNAMIC + (label if short and "/" not in label else ""))


def reading(broker, connection, node, terminus):
    """The Reading of a source: its queue, made and bound where it has to be. Raises ProtocolError. None: the link that has
    it and is stolen has not given back all it held."""
    kind, name, key = node
    if kind == OWN:
        made, address = make_own(broker, connection, node, terminus.container, terminus.link)
        if made:
            node_reading = Reading(made, address)
            node_reading.ends = node_reading.own = True
            return node_reading
        return subscribed(broker, connection, _TOPICS, address[len("/topic/") :].encode("utf-8"), address, terminus)
    if kind == LINK:
        return found_again(broker, connection, terminus)
    address = None
    if kind in (NAME, TOPIC):
        kind = seen(broker, connection, kind, name)
        if kind == TOPIC:
            return subscribed(broker, connection, _TOPICS, key, address, terminus)
        key = b"#" if kind == EXCHANGE and broker.topology.exchange(name).type == "topic" else b""
    if kind == EXCHANGE:
        broker.topology.exchange(name)
        return subscribed(broker, connection, name, key, address, terminus)
    if name not in broker.queues:
        make_queue(broker, connection, kind, name)
    check(broker, connection.user, READ, "queue", name)
    broker.topology.queue(name, connection)
    return Reading(name, address)


def subscribed(broker, connection, exchange, key, address, terminus):
    """A queue that is bound to an exchange: a subscription's, kept or found again by its name, or one for this link alone."""
    if terminus.key is not None:
        key = terminus.key
    user = connection.user
    check(broker, user, READ, "exchange", exchange, key)
    shared = "shared" in terminus.capabilities
    if not (shared or terminus.durable):
        queue = broker.topology.declare_queue(connection, "", False, False, True, True, {}).name
        bind(broker, connection, queue, exchange, key)
        made = Reading(queue, address)
        made.bound = made.private = True
        made.keeps_out(broker, terminus.owner)
        return made
    queue = subscription_name(terminus.container, terminus.link, terminus.capabilities, terminus.durable)
    check(broker, user, CONFIGURE, "queue", queue)
    check(broker, user, READ, "queue", queue)
    there = broker.queues.get(queue)
    owner = None if shared or not isinstance(terminus.owner, str) else terminus.owner
    if there is not None and (bindings_of(there) != [(exchange, key)] or there.arguments.get(no_local.ARGUMENT) != owner):
        if terminus.is_in_use(there):
            raise ProtocolError(RESOURCE_LOCKED, "the subscription '%s' is to another topic, and in use" % terminus.link)
        if there.consumers and not terminus.steal():
            return None
        if queue in broker.queues:
            broker.topology.drop_queue(broker.topology.queue(queue, connection))
        there = None
    if there is None:
        arguments = {} if owner is None else {no_local.ARGUMENT: owner}
        broker.topology.declare_queue(connection, queue, False, terminus.durable, False, not terminus.durable, arguments)
        bind(broker, connection, queue, exchange, key)
    made = Reading(queue, address)
    made.bound = True
    made.exclusive = not shared
    made.ends = terminus.durable
    made.private = not shared
    made.keeps_out(broker, owner)
    return made


def bind(broker, connection, queue, exchange, key):
    """Bind a subscription's queue, which needs write on it."""
    check(broker, connection.user, WRITE, "queue", queue)
    broker.topology.bind(connection, queue, exchange, key, {})


def bindings_of(queue):
    """(exchange, key) of each binding of a queue."""
    return [(each.exchange.name, each.key) for each in queue.bound.values()]


def found_again(broker, connection, terminus):
    """The Reading of a link without an address: a durable subscription that is kept by the link's name (JMS mapping, 8.8)."""
    shared = ("global",) if "|global" in terminus.link else terminus.capabilities
    queue = subscription_name(terminus.container, terminus.link, shared, True)
    there = broker.queues.get(queue)
    if there is None:
        raise ProtocolError(
            NOT_FOUND, "a source without an address: there is no subscription '%s' of '%s'" % (terminus.link, terminus.container)
        )
    check(broker, connection.user, READ, "queue", queue)
    if terminus.is_in_use(there) and "shared" not in shared and "global" not in shared:
        raise ProtocolError(RESOURCE_LOCKED, "the subscription '%s' is in use" % terminus.link)
    made = Reading(queue, "")
    for exchange, key in bindings_of(there):
        made.address = str(key, "utf-8") if exchange == _TOPICS else exchange
    made.bound = made.ends = True
    return made


def close(broker, connection, queue, own):
    """The link of a source that ends (Reading.ends, Reading.own), or of a dynamic target, has closed: its queue goes, unless it is a
    subscription's that other links share. False: not all of it yet, call again."""
    there = broker.queues.get(queue)
    if there is None or there.consumers and not own:
        return True
    if not own:
        check(broker, connection.user, CONFIGURE, "queue", queue)
    return broker.topology.delete_queue(connection, queue, False, False) is not None

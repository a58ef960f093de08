"""The next delivery of a file consumer, in every family: a message is opened at its client, staged, delivered.

    file.open ->   <- file.open-ok (what the client has)   file.stage, with the rest ->   file.deliver ->

Its identifier is the same whenever it is delivered, for what was published with file.publish and is larger than a message: so a client
whose connection was lost goes on where it stopped. Another message has the same one in a run of the broker, and none of it has another's:
a client that has a part of one goes on with that one alone.
"""

from ..broker import crossing
from ..limits import REPLY_ROOM
from ..memory import layout
from ..message.formats import AMQP_0_10, NUMBER, STORED
from ..parts import needed
from ..queue.turns import charge_made, is_overdue
from ..shim import const
from .content import Damaged
from .contents import name_of

NAMED_BY = const(4096)  # octets of an ordinary message that its identifier is made of
OPEN_ROOM = const(128)  # octets of a send buffer for file.open


class Delivery:
    """A delivery whose content the client has not been sent yet."""

    def __init__(self, made, tag, entry, message, size, token, identifier):
        self.made = made  # the consumer, as `begin_next` has it
        self.tag = tag
        self.entry = entry
        self.message = message
        self.size = size
        self.token = token  # of a staged content, or None
        self.identifier = identifier


def begin_next(made, account, before):
    """Begin the next delivery, if there can be one now: how many. `made` has broker, consumer, no_ack, send (the connection's),
    `is_closing()`, `has_window(octets)`, `open(identifier, octets)`, which writes file.open, and `hold(entry)`, which holds the delivery:
    its tag."""
    broker, queue = made.broker, made.consumer.queue
    tables = broker.tables
    while not made.is_closing() and account.out is None and broker.consumers.has_credit(made.consumer) and not is_overdue(queue):
        entry = queue.head()
        if entry == layout.NONE:
            break
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        size, token, is_there = content_of(broker, message)
        if not made.no_ack and not made.has_window(size):  # "The prefetch-size is ignored if the no-ack option is set"
            break
        if made.send.room() < OPEN_ROOM + REPLY_ROOM:
            made.send.starve(made.consumer, before)
            break
        queue.pop()
        if not is_there:
            broker.guard.rescue(queue, entry, Damaged("the staged content that a message refers to is lost"))
            continue
        identifier = token or identifier_of(broker, message)
        made.open(identifier, size)
        tag = made.hold(entry)
        tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
        account.out = Delivery(made, tag, entry, message, size, token, identifier)
        charge_made(broker, queue)
        return 1
    return 0


def refuse(broker, entry, consumers):
    """file.reject with requeue: of these consumers none is to get the message of an unsettled entry again."""
    queue = broker.queue_objects[broker.tables.entries[entry + layout.ENTRY_QUEUE]]
    for consumer in consumers:
        if consumer.queue is queue:
            needed("queue.wishes", "file.reject with requeue").refuse(broker, consumer, entry)


def identifier_of(broker, message):
    """The identifier of an ordinary message: of where it is, when it came, and how it begins."""
    tables = broker.tables
    size = tables.size_of(message)
    said = "%d %d %d " % (message, tables.messages[message + layout.MESSAGE_ARRIVED], size)
    return "message-" + name_of(broker, said.encode("utf-8") + bytes(tables.octets(message, 0, min(size, NAMED_BY))))


def content_of(broker, message):
    """(octets, token or None, true when it can be read) of the content of a message."""
    tables = broker.tables
    kind = tables.messages[message + layout.MESSAGE_KIND] & NUMBER
    if kind == STORED:
        contents = broker.contents
        size, token = contents.reference_of(message)
        content = contents.by_token.get(token)
        return size, token, content is not None and content.is_whole and not content.is_damaged
    if kind in (0, AMQP_0_10):
        return tables.messages[message + layout.MESSAGE_BODY], None, True
    pieces = crossing.pieces(tables, message)
    size = tables.messages[message + layout.MESSAGE_BODY] if pieces is None else sum([each[1] for each in pieces])
    return size, None, True


def pieces_of(broker, message, staged):
    """[(position, octets)] of the body of an ordinary message that are payload, without its first `staged` octets."""
    tables = broker.tables
    size = tables.messages[message + layout.MESSAGE_BODY]
    pieces = None if tables.messages[message + layout.MESSAGE_KIND] & NUMBER in (0, AMQP_0_10) else crossing.pieces(tables, message)
    left = []
    for at, length in [(0, size)] if pieces is None else pieces:
        skipped = min(staged, length)
        staged -= skipped
        if length > skipped:
            left.append((at + skipped, length - skipped))
    return left

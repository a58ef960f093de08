"""A family of protocols: JSON lists, one a line. It drives a broker through core/wire/contract.pyi and nothing else.

A request is ["verb", argument ...], an answer ["word", ...]. Properties of a message are a JSON dict, by the names that class basic has.
"""

import json

from leveret.core.broker import getting, timeouts
from leveret.core.broker.incoming import Incoming
from leveret.core.broker.promises import Promises
from leveret.core.broker.transaction import Transaction
from leveret.core.connection.connection import Connection
from leveret.core.errors import PRECONDITION_FAILED, SYNTAX_ERROR, ProtocolError
from leveret.core.limits import REPLY_ROOM
from leveret.core.memory import hot, layout
from leveret.core.message import formats, reading
from leveret.core.message.annotations import GONE, put_over
from leveret.core.message.route import pack
from leveret.core.outcomes import NO_ROOM, NOT_YET
from leveret.core.stream.subscription import has_entry, move_on, stream_entry
from leveret.core.wire import registry
from leveret.core.wire.family import Family

HEADER = b"TOY\n"
KIND = 200  # of its messages


class Format:
    """Reads and writes its properties (core/message/formats.py)."""

    @staticmethod
    def check(octets, at, end):
        if not isinstance(Format.decode(octets, at, end), dict):
            raise ProtocolError(SYNTAX_ERROR, "properties that are no dict")

    @staticmethod
    def decode(octets, at, end):
        return json.loads(str(bytes(octets[at:end]), "utf-8"))

    @staticmethod
    def field_in(octets, name):
        return Format.decode(octets, 0, len(octets)).get(name)

    @staticmethod
    def header(octets, name):
        return (Format.field_in(octets, "headers") or {}).get(name)

    @staticmethod
    def exact(octets, wide=False):
        return Format.decode(octets, 0, len(octets))

    @staticmethod
    def payload(octets, size, read):
        return None

    @staticmethod
    def encode(given):
        return json.dumps(given).encode()

    @staticmethod
    def columns(given):
        """(kind, lifetime) of properties."""
        kind = KIND | (layout.KIND_DURABLE if given.get("delivery_mode") == 2 else 0)
        if "priority" in given:
            kind |= layout.KIND_HAS_PRIORITY | given["priority"] << layout.KIND_PRIORITY
        return kind, int(given.get("expiration", layout.NONE))

    @staticmethod
    def merge(octets, annotations):
        found = Format.decode(octets, 0, len(octets))
        return Format.encode(put_over(found, plain(annotations)))


def plain(value):
    """A value of a message as JSON has it: without its type's letter, octets as text."""
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in value}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple) and value is not GONE:
        return plain(value[1])
    return str(value, "utf-8") if isinstance(value, bytes) else value


class Session:
    """What its peer publishes and settles in: one for each connection."""

    def __init__(self, protocol, handle):
        self.session = protocol
        self.connection = protocol.connection
        self.handle = handle
        self.closing = False
        self.consumers = {}
        self.promises = Promises(protocol)
        self.number = 0  # of the last publish
        self.watched_tag, self.watched_since = -1, 0
        self.incoming = Incoming(self)


class Lines:
    """The protocol on one connection: contract.Protocol."""

    has_intake = False

    def __init__(self, connection):
        self.connection = connection
        self.broker = connection.broker
        self.closing = False
        self.waiting = []  # (log number that is to be durable first, line)
        self.held = None  # a request that found no room, or goes on in the next turn
        self.unfinished, self.content_moved = 0, 0
        connection.receive.start += len(HEADER)
        self.broker.places.admit(connection, self.broker.access.users["guest"])
        self.session = Session(self, self.broker.consumers.open_session())

    # The connection calls

    def process(self):
        receive = self.connection.receive
        if self.held is not None:
            request, self.held = self.held, None
            self.take(request)
        while self.held is None and not self.connection.ending:
            line = bytes(receive.octets[receive.start : receive.end]).split(b"\n")
            if len(line) == 1:
                break
            receive.start += len(line[0]) + 1
            self.take(json.loads(str(line[0], "utf-8")))
        self.connection.reading = self.held is None
        self.flush()

    def take(self, request):
        """Do what a request asks for; false: not yet."""
        if getattr(self, request[0])(*request[1:]) is False and self.held is None:
            self.held = request
            if self.connection.has_turn and self.connection not in self.broker.held:
                self.broker.held.append(self.connection)

    def room(self):
        self.flush()
        self.connection.send.feed()

    def tick(self):
        if self.unfinished and self.connection.reading:
            timeouts.check_moving(self.broker, self.content_moved)
        most = timeouts.overdue(self.broker, self.session, self.broker.now)
        if most:
            raise ProtocolError(PRECONDITION_FAILED, "unsettled for %d ms" % most)
        return 0

    def fail(self, condition, text):
        self.tell("error", condition, text)
        self.shut(text)

    def shut(self, text):
        self.tell("end", text)
        self.closing = True
        self.flush()
        self.connection.end()

    def lost(self):
        if not self.session.closing:
            self.session.closing = True
            self.session.incoming.abandon()
            self.broker.consumers.close_session(self.session)

    def sessions(self):
        return () if self.session.closing else (self.session,)

    # The broker calls

    def deliver(self, consumer, most, before=0):
        tables, send, count = self.broker.tables, self.connection.send, 0
        while count < most and self.broker.consumers.has_credit(consumer):
            entry, message = self.next_for(consumer)
            if message == layout.NONE:
                break
            line = self.line(consumer, entry, message)
            if len(line) > send.room() - REPLY_ROOM or consumer.queue.is_stream and not has_entry(tables, consumer):
                send.starve(consumer, count + before)
                break
            hot.next_number(tables.channels, self.session.handle + layout.CHANNEL_TAG)
            if consumer.queue.is_stream:
                entry = stream_entry(tables, consumer, message)
                move_on(tables, consumer)
            else:
                consumer.queue.pop()
            tables.state[layout.STATE_DELIVERED] += 1
            send.write(line)
            if consumer.no_ack:
                consumer.queue.drop(entry)
            else:
                self.broker.consumers.hold(consumer, entry)
            count += 1
        return count

    def next_for(self, consumer):
        """(entry, message) that a consumer is to get next; NONE twice: nothing."""
        tables, queue = self.broker.tables, consumer.queue
        if queue.is_stream:
            entry = consumer.cursor if consumer.cursor_offset < queue.readable_offset() else layout.NONE
        else:
            if tables.queues[queue.handle + layout.QUEUE_LIMITS] & layout.LIMIT_EXPIRES:
                hot.expire(tables.blocks, tables.messages, tables.entries, tables.queues, tables.state, queue.handle)
            entry = queue.head()
        return (entry, layout.NONE) if entry == layout.NONE else (entry, tables.entries[entry + layout.ENTRY_MESSAGE])

    def line(self, consumer, entry, message):
        """A delivery."""
        tables = self.broker.tables
        tag = tables.channels[self.session.handle + layout.CHANNEL_TAG] + 1
        came_back = 0 if consumer.queue.is_stream else tables.entries[entry + layout.ENTRY_REDELIVERED] & 255
        exchange, key = reading.names_of(self.broker.tables, message)
        size = tables.messages[message + layout.MESSAGE_BODY]
        body = str(tables.octets(message, tables.size_of(message) - size, size), "utf-8")
        given = plain(reading.properties_of(self.broker.tables, message))
        if consumer.queue.is_stream:
            given["offset"] = consumer.cursor_offset
        return json.dumps(["message", consumer.tag, tag, came_back, exchange, str(key, "utf-8"), body, given]).encode() + b"\n"

    def returned(self, session, message, condition):
        self.tell("returned", str(reading.names_of(self.broker.tables, message)[1], "utf-8"))
        self.broker.tables.release(message)

    def answered(self, session, outcome):
        session.number += 1
        session.promises.decided(session.number, outcome)

    def cancelled(self, consumer, condition):
        self.tell("cancelled", consumer.tag, condition)
        self.flush()

    # What its peer asks for

    def exchange(self, name, type_, durable=False, arguments=None):
        self.broker.topology.declare_exchange(self.connection, name, type_, False, durable, False, False, arguments or {})

    def queue(self, name, durable=False, arguments=None):
        self.broker.topology.declare_queue(self.connection, name, False, durable, False, False, arguments or {})

    def delete(self, name):
        self.broker.topology.delete_queue(self.connection, name, False, False)

    def bind(self, queue, exchange, key, arguments=None):
        self.broker.topology.bind(self.connection, queue, exchange, key.encode(), arguments or {})

    def subscribe(self, queue, tag, credit=0, no_ack=False, arguments=None):
        self.broker.consumers.subscribe(self.session, queue, tag, no_ack, False, arguments or {}, credit)

    def credit(self, tag, count):
        self.broker.consumers.add_credit(self.session.consumers[tag], count)

    def cancel(self, tag):
        self.broker.consumers.cancel(self.session.consumers[tag])

    def publish(self, exchange, key, body, given, mandatory=False):
        """A content of known size."""
        if self.begin(exchange, key, given, len(body.encode()), mandatory) is False:
            return False
        self.session.incoming.append(body.encode(), 0, len(body.encode()))
        self.end()
        return True

    def begin(self, exchange, key, given, size=None, mandatory=False):
        """A content whose body comes in pieces, of unknown size unless `size` says it."""
        incoming, octets = self.session.incoming, Format.encode(given)
        incoming.to(pack(exchange.encode(), key.encode()), mandatory)
        kind, lifetime = Format.columns(given)
        return incoming.begin(octets, 0, len(octets), size, kind, lifetime)

    def more(self, body):
        """The next piece."""
        return self.session.incoming.append(body.encode(), 0, len(body.encode()))

    def end(self):
        """It was the last."""
        outcome = self.session.incoming.complete()
        if outcome == NO_ROOM:
            return False if self.held else self.take_later(["end"])
        if outcome == NOT_YET:
            self.held = ["end"]
            self.broker.journal.wait_for(self)
        return True

    def take_later(self, request):
        """Have a request taken again when there is room."""
        self.held = request
        if self.connection not in self.broker.held:
            self.broker.held.append(self.connection)

    def get(self, queue, no_ack=False):
        """One message, or ["empty"]."""
        broker, session = self.broker, self.session
        found = broker.topology.queue(queue, self.connection)
        outcome = getting.state(broker, found) if getting.serve(broker, found) else getting.LATER
        if outcome == getting.LATER:
            return False
        if outcome == getting.EMPTY:
            self.tell("empty")
            return True
        message = broker.tables.entries[found.head() + layout.ENTRY_MESSAGE]
        hot.next_number(broker.tables.channels, session.handle + layout.CHANNEL_TAG)
        size = broker.tables.messages[message + layout.MESSAGE_BODY]
        body = str(broker.tables.octets(message, broker.tables.size_of(message) - size, size), "utf-8")
        self.tell("got", broker.tables.channels[session.handle + layout.CHANNEL_TAG], body)
        entry = getting.get(broker, session, found, no_ack)
        if no_ack:
            found.drop(entry)
        return True

    def select(self):
        """Publishes and settlements wait for `commit` from now on."""
        self.session.incoming.transaction = Transaction(self.broker.tables)

    def commit(self):
        if not self.session.incoming.transaction.commit(self.session):
            return False
        if self.broker.journal is not None:
            self.broker.journal.promise()
        self.tell("committed")
        return True

    def rollback(self):
        self.session.incoming.transaction.rollback(self.broker)

    def settle(self, first, last, outcome):
        transaction = self.session.incoming.transaction
        if transaction is not None:
            for tag in range(first, last + 1):
                transaction.keep(tag, False, outcome)
            return
        tables = self.broker.tables
        ends = [hot.find_tag(tables.entries, tables.channels, tables.state, self.session.handle, tag) for tag in (first, last)]
        self.broker.consumers.settle(self.session, ends[0], ends[1], outcome)

    # What goes out

    def tell(self, *words):
        """An answer, behind those that wait, when all is durable that the log has got by now."""
        journal = self.broker.journal
        self.waiting.append((None if journal is None else journal.last(), json.dumps(words).encode() + b"\n"))

    def flush(self):
        send, journal = self.connection.send, self.broker.journal
        while self.waiting and send.room() >= len(self.waiting[0][1]):
            if journal is not None and not journal.durable(self.waiting[0][0]):
                journal.wait_for(self)
                break
            send.write(self.waiting.pop(0)[1])
        send.busy = len(self.waiting) > 0
        for first, last, outcome in [] if self.waiting else self.session.promises.runs():
            line = json.dumps(["answer", outcome, first, last]).encode() + b"\n"
            if send.room() < len(line):
                break
            send.write(line)
            self.session.promises.answered(last)


FAMILY = Family("toy lines", HEADER, Lines, Format)


class installed:
    """`with installed():` the family and its format are there."""

    def __enter__(self):
        registry.register(FAMILY)
        formats.known[KIND] = Format

    def __exit__(self, *_):
        registry.FAMILIES.remove(FAMILY)
        del formats.known[KIND]


class ToyPeer:
    """A peer that speaks it."""

    def __init__(self, broker):
        self.broker = broker
        self.connection = Connection(broker, "toy")
        self.inbox = b""
        self.give(HEADER)

    def give(self, octets):
        """Send octets, as many as are taken."""
        at = 0
        while at < len(octets) and len(self.connection.writable()):
            view = self.connection.writable()
            size = min(len(view), len(octets) - at)
            view[:size] = octets[at : at + size]
            self.connection.received(size)
            at += size
            self.broker.run()

    def ask(self, *request):
        """Send a request: what came by then, a list of lists."""
        self.give(json.dumps(request).encode() + b"\n")
        return self.heard()

    def heard(self):
        """What came since the last time."""
        while len(self.connection.pending()):
            view = self.connection.pending()
            self.inbox += bytes(view)
            self.connection.sent(len(view))
            self.broker.run()
        lines = self.inbox.split(b"\n")
        self.inbox = lines.pop()
        return [json.loads(str(line, "utf-8")) for line in lines]

    def bodies(self):
        """The bodies of the deliveries among it."""
        return [each[6] for each in self.heard() if each[0] == "message"]

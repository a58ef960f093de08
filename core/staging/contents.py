"""The staged contents of a broker: how many there may be, how they are written, and when they go.

A content belongs to the user who stages it and has an identifier of the user's choice: who opens it again goes on where it stopped. What
has come and is not written yet is bounded (`GATHER` octets a content); the store writes for one content at a time. A content goes when
nobody has gone on with it for `staged_age_s`; once published by copy, after `GRACE_S`; by reference, when no message refers to it any more
and the log is durable up to there. Where queues have messages that are in the log alone it stays: those are not looked at.
"""

import hashlib

from ..access.permissions import WRITE
from ..errors import ACCESS_REFUSED, CONTENT_TOO_LARGE, NOT_FOUND, PRECONDITION_FAILED, RESOURCE_ERROR, RESOURCE_LOCKED, ProtocolError
from ..log.segments import record
from ..memory import layout
from ..message.formats import NUMBER, STORED
from ..parts import needed
from ..shim import const
from . import stored
from .content import PART_SIZE, REFERRED, Content, Piece
from .memory_store import MemoryStore
from .recovered import recover

if False:  # for the type checker alone
    from typing import Any

GATHER = const(131072)  # octets of a content that wait to be written, beside a frame
GRACE_S = const(60)  # seconds that a content stays after its message has a copy of it, unless its room is wanted
LOOK_S = const(5)  # seconds between two looks for messages that refer to contents
FOLDER = "staged"  # the name of their store beside the log
NAME_MAX = const(255)  # octets of an identifier


class Contents:
    """`store`: as core/log/segments.py has it, or None: the contents stay in memory. `size_max`: octets of all contents."""

    def __init__(self, broker, store, size_max):
        self.broker = broker
        self.store: "Any" = MemoryStore() if store is None else store
        self.size_max = size_max
        self.by_key: "dict" = {}  # (user, identifier) -> Content
        self.by_token: "dict" = {}
        self.numbers = 0  # of the store that were given
        self.flight: "Any" = None  # (Content, Piece, octets) that is being written
        self.removing: "list" = []  # numbers of the store that nothing needs
        self.begins = hasattr(self.store, "begin")
        self.holding: "list" = []  # queues that may have messages with contents of here
        self.readers: "list" = []  # consumers that read staged contents
        self.is_reading = False  # the consumer that is being made reads them
        self.places: "dict" = {}  # token -> [(queue, the position that its message there has at most)]
        self.looked_at = 0  # uptime_s of the last look for messages
        self.aged_at = 0

    # Staging

    def open(self, user, identifier, size, owner):
        """Begin to stage a content of `size` octets, or go on: the Content. Whoever stages it so far does no longer. `user`: as
        core/access/permissions.py has it. Raises ProtocolError when there is no place for it, or the user can publish it nowhere."""
        check_may_publish(self.broker, user)
        user = user.name
        if not 0 < len(identifier.encode("utf-8")) <= NAME_MAX:
            raise ProtocolError(PRECONDITION_FAILED, "a staging identifier has 1 to %d octets" % NAME_MAX)
        content: "Any" = self.by_key.get((user, identifier))
        if content is not None and content.size != size:
            self.forget(content)
            content = None
        if content is None:
            self.check_room(user, size)
            content = Content(user, identifier, size, self.token(user, identifier))
            self.by_key[user, identifier] = self.by_token[content.token] = content
        content.owner = owner
        content.touched = self.broker.uptime_s
        content.trouble = ""  # was its last owner's; the store may write again
        return content

    def check_room(self, user, size):
        """Raise ProtocolError when there is no place for one more content of `size` octets, or not for this user (a name)."""
        broker = self.broker
        most = broker.limits.staged_count_max
        if size > self.size_max:
            raise ProtocolError(CONTENT_TOO_LARGE, "a content of %d octets; this broker stages %d" % (size, self.size_max))
        while len(self.by_token) >= most or self.octets() + size > self.size_max:
            copied = [each for each in self.by_token.values() if each.copied]
            if not copied:
                break
            self.remove(copied[0])
        if len(self.by_token) >= most:
            raise ProtocolError(RESOURCE_ERROR, "this broker stages %d contents at most" % most)
        if self.octets() + size > self.size_max:
            text = "%d octets of staged contents are promised to others; this broker stages %d"
            raise ProtocolError(RESOURCE_ERROR, text % (self.octets(), self.size_max))
        self.check_share(user, size)
        free = self.free()
        promised = size + sum([each.size - each.written() for each in self.by_token.values()])
        if free is not None and free < promised - promised // 64:
            text = "the disk has no room for a content of %d octets: %d are left beside what the log and other contents may need"
            raise ProtocolError(RESOURCE_ERROR, text % (size, max(free - promised + size, 0)))

    def check_share(self, user, size):
        """Raise resource-error for a user who has his share of the contents, and no room for `size` octets more in it."""
        share = self.broker.limits.staged_share_max
        count, octets = max(self.broker.limits.staged_count_max * share // 100, 1), self.size_max * share // 100
        mine = [each for each in self.by_token.values() if each.user == user]
        while len(mine) >= count or sum([each.size for each in mine]) + size > octets:
            copied = [each for each in mine if each.copied]
            if not copied:
                text = "user '%s' stages %d contents of %d octets; the share of one user is %d of %d octets (staged_share_max)"
                raise ProtocolError(RESOURCE_ERROR, text % (user, len(mine), sum([each.size for each in mine]), count, octets))
            mine.remove(copied[0])
            self.remove(copied[0])

    def free(self):
        """Octets that the store's disk has left beside what the log may grow by; None: the store does not know."""
        free = getattr(self.store, "free", None)
        if free is None:
            return None
        log = None if self.broker.journal is None else self.broker.journal.log
        return free() - (0 if log is None else max(log.size_max - log.size(), 0))

    def octets(self):
        """Octets of all contents, as far as they have come or not."""
        return sum([each.size for each in self.by_token.values()])

    def token(self, user, identifier):
        """A name for a content that no other has, in this run or another."""
        self.numbers += 1
        said = "%s %d %s %s" % (user, self.numbers, identifier, self.broker.uptime_ms)
        return name_of(self.broker, said.encode("utf-8"))

    def of(self, user, identifier):
        """The whole content of this name. Raises ProtocolError."""
        content = self.by_key.get((user, identifier))
        if content is None:
            raise ProtocolError(NOT_FOUND, "no content is staged as '%s'" % identifier[:80])
        if not content.is_whole:
            text = "%d of %d octets are staged as '%s'"
            raise ProtocolError(PRECONDITION_FAILED, text % (content.staged(), content.size, identifier[:80]))
        return content

    def may_append(self, content, owner, size):
        """False: octets have to wait before they are appended. Raises ProtocolError where `size` octets may not be."""
        self.check_owner(content, owner)
        if content.staged() + size > content.size or content.is_whole and size:
            raise ProtocolError(PRECONDITION_FAILED, "more octets are staged than the %d that file.open said" % content.size)
        if len(content.buffer) >= GATHER:
            self.write(content)
        return len(content.buffer) < GATHER

    def append(self, content, owner, octets, at, size):
        """`size` octets more from `at` of a buffer; false: they have to wait, and nothing has changed. Raises ProtocolError."""
        if not self.may_append(content, owner, size):
            return False
        content.buffer.extend(memoryview(octets)[at : at + size])
        content.touched = self.broker.uptime_s
        if len(content.buffer) >= PART_SIZE:
            self.write(content)
        return True

    def check_owner(self, content, owner):
        """Raise ProtocolError when another session has gone on with a content, or it cannot be written."""
        if content.owner is not owner:
            raise ProtocolError(RESOURCE_LOCKED, "another session stages '%s' now" % content.identifier[:80])
        if content.trouble:
            trouble, content.trouble = content.trouble, ""
            raise ProtocolError(RESOURCE_ERROR, "the staged content cannot be written: " + trouble)

    def finish(self, content, owner, kind, properties):
        """No octet follows: true when all of it is durable; false: call this again. Raises ProtocolError where octets are missing."""
        self.check_owner(content, owner)
        if content.staged() != content.size:
            text = "the content ends at %d octets; file.open said %d"
            raise ProtocolError(PRECONDITION_FAILED, text % (content.staged(), content.size))
        if content.properties is None:
            content.kind, content.properties = kind, properties
        self.write(content)
        self.check_owner(content, owner)
        return content.is_whole

    def let_go(self, owner):
        """A session stages nothing any more."""
        for content in self.by_token.values():
            if content.owner is owner:
                content.owner = None

    # Writing

    def write(self, content):
        """Start the store's write of the octets that a content has gathered, unless it writes already."""
        if not self.is_idle():
            return
        is_last = content.properties is not None
        size = len(content.buffer)
        if not is_last:
            size -= size % PART_SIZE
        if content.is_whole or not size and not is_last:
            return
        free = self.free()
        if free is not None and free < size:
            content.trouble = "the log may need what the disk has left"
            return
        piece = content.pieces[-1] if content.pieces else None
        octets = b""
        if piece is None or not piece.is_open:
            piece = Piece(self.next_number(), content.written(), 0)
            octets = content.opened(piece.start)
            piece.first = len(octets)
            piece.records = 1
            content.pieces.append(piece)
        content.flying = bytes(memoryview(content.buffer)[:size])
        content.buffer = bytearray(memoryview(content.buffer)[size:])
        octets += content.records(piece, content.flying)
        if size % PART_SIZE:
            piece.is_open = False
        self.fly(content, piece, size, octets)

    def fly(self, content, piece, size, octets):
        """Start the store's write of octets, with `size` octets of a content, behind a piece."""
        self.flight = content, piece, size
        try:
            if self.begins:
                self.store.begin(piece.number, octets)
                return
            self.store.append(piece.number, octets)
            self.store.sync(piece.number)
        except OSError as error:
            self.failed(error)
            return
        self.landed()

    def mark(self, content):
        """Note in the store that a durable message refers to a content, when the store has nothing else to do."""
        piece, journal = content.pieces[-1], self.broker.journal
        if journal is not None and piece.records and journal.durable(journal.last()) and self.is_idle():
            content.is_marked = True
            end = record(piece.records, REFERRED, (), 0)
            piece.records += 1
            self.fly(content, piece, 0, end)

    def next_number(self):
        """A number of the store that was not given before."""
        self.numbers += 1
        return self.numbers

    def is_idle(self):
        """True when the store has nothing to do; takes note of what it has done."""
        if self.flight is None and not self.removing_now():
            return True
        try:
            if not self.store.ended():
                return False
        except OSError as error:
            if self.flight is not None:
                self.failed(error)
            self.gone = None
            return True
        if self.flight is not None:
            self.landed()
        self.gone = None
        return True

    gone: "Any" = None  # the number whose removal is under way

    def removing_now(self):
        """True while the store removes a number."""
        return self.gone is not None

    def landed(self):
        """The store's write has ended: its octets are durable."""
        content, piece, size = self.flight
        self.flight = None
        piece.octets += size
        content.flying = b""
        if content.properties is not None and content.written() == content.size and not content.buffer:
            content.is_whole = True

    def failed(self, error):
        """It could not be written: it is written once more, in a new piece, when its sender goes on."""
        content, piece, _ = self.flight
        self.flight = None
        content.buffer = bytearray(content.flying) + content.buffer
        content.flying = b""
        content.trouble = "%s" % (error,)
        piece.is_open = False
        if not piece.octets and not content.is_whole:  # that of a whole one says so: only the mark behind it was not written
            content.pieces.remove(piece)
            self.removing.append(piece.number)
        self.broker.log("a staged content cannot be written: %s" % (error,))

    def read(self, content, at, most):
        """Up to `most` octets from octet `at` of a whole content. Raises Damaged, OSError; then the content is of no use."""
        try:
            return content.read(self.store, at, most)
        except Exception:  # whatever a store raises: the content is not read again
            content.is_damaged = True
            raise

    # The end of contents

    def tick(self):
        """Time passes: write, remove, look which contents nobody wants."""
        if self.is_idle() and self.removing:
            self.gone = self.removing.pop(0)
            self.begin_removal(self.gone)
        now = self.broker.uptime_s
        if now == self.aged_at:
            return
        self.aged_at = now
        for content in list(self.by_token.values()):
            if content.owner is not None or self.flight is not None and self.flight[0] is content:
                continue
            if content.copied and now - content.touched > GRACE_S:
                self.remove(content)
            elif not content.referred and now - content.touched > self.broker.limits.staged_age_s:
                self.broker.counters["staged_expired"] += 1
                self.remove(content)
        if now - self.looked_at >= LOOK_S:
            self.looked_at = now
            self.look()

    def begin_removal(self, number):
        """Remove a number of the store."""
        try:
            if number not in self.store.numbers():
                self.gone = None
            elif self.begins:
                self.store.begin_remove(number)
            else:
                self.store.remove(number)
                self.gone = None
        except OSError as error:
            self.gone = None
            self.broker.log("a staged content cannot be removed: %s" % (error,))

    def look(self):
        """Remove contents that no message refers to any more."""
        referred = [each for each in self.by_token.values() if each.referred]
        if not referred:
            if self.holding and not stored.all_in(self.broker.tables):
                self.holding = []
            return
        self.holding = [queue for queue in self.holding if self.broker.queues.get(queue.name) is queue]
        tokens = self.tokens()
        journal = self.broker.journal
        for content in referred:
            if content.token in tokens or self.is_paged(content.token):
                content.leaves_at = None
                if not content.is_marked:
                    self.mark(content)
            elif content.owner is not None or self.broker.uptime_s - content.touched <= LOOK_S:
                content.leaves_at = None  # its sender is about to publish it, once more perhaps
            elif journal is not None and (content.leaves_at is None or not journal.durable(content.leaves_at)):
                if content.leaves_at is None:
                    content.leaves_at = journal.promise()
            else:
                self.remove(content)

    def is_paged(self, token):
        """True while a message that refers to a content may be in the log alone: one of the queues that it came to has such messages, and
        has not come to its place yet."""
        tables, left = self.broker.tables, []
        for queue, position in self.places.get(token, ()):
            if self.broker.queues.get(queue.name) is not queue or not queue.is_paging():
                continue
            head = queue.head()
            is_ordered = queue.rules is None or queue.rules.priority is None
            if head == layout.NONE or not is_ordered or not is_behind(tables.entries[head + layout.ENTRY_POSITION], position):
                left.append((queue, position))
        self.places[token] = left
        return len(left) > 0

    def came_to(self, token, queue):
        """A message that refers to a content comes to a queue now, or came before."""
        rows = [each for each in self.places.get(token, ()) if each[0] is not queue]
        self.places[token] = rows + [(queue, self.broker.tables.queues[queue.handle + layout.QUEUE_POSITION])]

    def tokens(self):
        """The tokens of all contents that a message in memory refers to: {token: True}."""
        return {self.reference_of(message)[1]: True for message in stored.all_in(self.broker.tables)}

    def reference_of(self, message):
        """(size, token) of a message of format STORED."""
        tables = self.broker.tables
        size = tables.messages[message + layout.MESSAGE_BODY]
        return stored.size_and_token(bytes(tables.octets(message, tables.size_of(message) - size, size)))

    def forget(self, content):
        """Its user begins another content of the same name: this one goes, unless messages refer to it."""
        del self.by_key[content.user, content.identifier]
        if not content.referred:
            self.remove(content)

    def remove(self, content):
        """A content is not wanted any more."""
        key = content.user, content.identifier
        if key in self.by_key and self.by_key[key] is content:
            del self.by_key[key]
        self.by_token.pop(content.token, None)
        self.places.pop(content.token, None)
        content.owner = None
        self.removing += [piece.number for piece in content.pieces]

    def close(self):
        """The broker ends: write what is gathered, as far as the store can."""
        if self.flight is not None:
            self.store.wait()
        self.is_idle()
        for content in self.by_token.values():
            while content.buffer and not content.trouble:
                if content.properties is None and len(content.buffer) < PART_SIZE:
                    break
                self.write(content)
                if self.flight is not None:
                    self.store.wait()
                    self.is_idle()

    # Messages that refer to contents

    def may_come(self, message, targets):
        """A message goes to these queues: false when it refers to a content and one of them is of a kind that cannot have it. Consumers
        that do not read contents will not get it."""
        if fits(self.broker, message):
            return True
        for queue in targets:
            if queue.is_stream or "x-group-key" in queue.effective:
                return False
        token = self.reference_of(message)[1]
        for queue in targets:
            self.hold(queue)
            self.came_to(token, queue)
        return True

    def hold(self, queue):
        """A queue has, or may have, such messages."""
        if queue not in self.holding:
            self.holding.append(queue)
            for consumer in queue.consumers:
                self.guard(consumer)

    def subscribed(self, consumer):
        """A consumer is made."""
        if self.is_reading:
            self.readers = [each for each in self.readers if each.channel.consumers.get(each.tag) is each] + [consumer]
        elif consumer.queue in self.holding:
            self.guard(consumer)

    def guard(self, consumer):
        """Such messages stay in their place for others, where a consumer reads no contents."""
        if consumer not in self.readers and not consumer.queue.is_stream:
            needed("queue.wishes", "contents larger than messages").attach(self.broker, consumer, fits, False)

    def has_body(self, message):
        """False for a message whose body is a content: who browses does not see it."""
        return fits(self.broker, message)

    def is_at_head(self, queue):
        """True when the next message of a queue refers to a content."""
        tables = self.broker.tables
        entry = queue.head()
        return entry != layout.NONE and not fits(self.broker, tables.entries[entry + layout.ENTRY_MESSAGE])


def name_of(broker, octets):
    """A name made of octets, which no other octets have, in this run or another."""
    hashed = hashlib.sha256(bytes(broker.nonce) + octets)
    return "".join(["%02x" % octet for octet in hashed.digest()[:16]])


def is_behind(position, other):
    """True when a position comes after another one: they wrap at 30 bits and lie less than half of that apart."""
    return 0 < (position - other) & layout.MASK < 0x20000000


def check_may_publish(broker, user):
    """Raise access-refused for a user who may write to no exchange: nobody could publish what he stages. The exchange that it goes to is
    asked for with file.publish, as for any other publish."""
    if not user.granted[WRITE] and not user.may(WRITE, "") and not [name for name in broker.exchanges if user.may(WRITE, name)]:
        raise ProtocolError(ACCESS_REFUSED, "user '%s' may publish to no exchange, so he may stage nothing" % user.name)


def fits(broker, message):
    """True for a message that has its body itself."""
    return broker.tables.messages[message + layout.MESSAGE_KIND] & NUMBER != STORED


def contents_of(broker):
    """The broker's contents, made when they are first needed. Raises ProtocolError where the disk refuses."""
    if broker.contents is None:
        try:
            open_contents(broker, True)
        except OSError as error:
            raise ProtocolError(RESOURCE_ERROR, "the store of staged contents cannot be opened: %s" % error) from None
    return broker.contents


def open_contents(broker, make):
    """Give a broker its contents, with those of earlier runs; unless `make`, only if there are any on the disk, or messages that refer to
    some: a sentence for the operator. Raises OSError."""
    journal, limits = broker.journal, broker.limits
    beside = None if journal is None else getattr(journal.log.store, "beside", None)
    store = None if beside is None else beside(FOLDER, make or len(stored.all_in(broker.tables)) > 0)
    if store is None:
        if make:
            broker.contents = Contents(broker, None, limits.staged_memory_max)
        return ""
    contents = Contents(broker, store, limits.staged_size_max)
    sentence = recover(contents)
    broker.contents = contents
    return sentence

"""Batches of messages, as clients of Event Hubs send them: one delivery of which each data section is a whole message.

    message-format 0x80013700
    batch = header and annotations of its own, which nobody reads, then data sections, one or more, and a footer; in each an encoded message

Each of them becomes a message of its own where the link's messages go, or none does: they are kept as a transaction keeps its messages,
and the batch comes to `accepted` when all are in their queues. A message without a queue has the whole batch released; a queue that would
refuse one of them, or a limit (transaction_count_max, max-message-size), has it rejected.
"""

from ..broker import local
from ..errors import CONTENT_TOO_LARGE, RESOURCE_ERROR, ProtocolError
from ..memory import layout
from ..outcomes import REFUSED, TAKEN, UNROUTABLE
from . import sections
from .body import begun
from .bounds import charge
from .conditions import INVALID_FIELD, LinkError
from .link_in import Rejected
from .transactions import View, Work

if False:  # for the type checker alone
    from typing import Any


class Batch:
    """The batch under way on an incoming `link`. `work`: the transaction that keeps its messages; it is the peer's where the delivery is
    posted in one."""

    def __init__(self, link, work):
        self.link = link
        self.is_own = work is None
        self.work = Work(link.session, b"") if work is None else work
        self.size = 0  # octets that have come
        self.last = 0  # code of the last section
        self.left: "Any" = None  # octets of the message under way that have not come; None: a section is next
        self.body: "Any" = None  # body.Body of that message, where it did not come whole
        self.count = 0  # messages that are whole
        self.has_no_queue = False  # one of them

    def feed(self, delivery, octets, at, end, whole):
        """Process octets of the batch; `whole`: they are its last. False: the broker has no memory for the first message, and nothing has
        changed. Raises ProtocolError."""
        link, before = self.link, (self.last, self.left)
        self.size += end - at
        if self.size > link.content_max:
            raise Rejected(CONTENT_TOO_LARGE, "a batch of more than %d octets; this broker takes no more" % link.content_max)
        octets = delivery.lead + bytes(octets[at:end])
        at, end = 0, len(octets)
        while at < end:
            if self.left is None:
                behind = self.section(octets, at, end)
            elif link.incoming.message == layout.NONE:
                behind = self.begin(octets, at, min(at + self.left, end), at + self.left <= end)
                if behind == layout.NONE:
                    self.size -= end - len(delivery.lead)
                    self.last, self.left = before
                    return False
            else:
                behind = self.go_on(octets, at, min(at + self.left, end))
            if behind is None:
                break
            at = behind
        link.keep(delivery, octets[at:])
        if whole and (at < end or self.left is not None):
            sections.bad("a batch ends inside a message")
        if whole and not self.count:
            raise Rejected(INVALID_FIELD, "a batch without a message")
        return True

    def section(self, octets, at, end):
        """The next section of the batch: the position behind its head (of a data section), or behind all of it; None: more has to come."""
        part: "Any" = sections.descriptor(octets, at, end)
        if part is None:
            return None
        code, at = part
        sections.check_order(code, self.last)
        if code in (sections.SEQUENCE, sections.VALUE):
            sections.bad("a batch with a section %s" % sections.NAMES[code][0])
        part = sections.head(code, octets, at, end)
        if part is None:
            return None
        _, at, size = part
        if code == sections.DATA:
            if not size:
                sections.bad("a batch with a message of no octets")
            self.left = size
        elif at + size > end:
            return None
        else:
            at += size
        self.last = code
        return at

    def begin(self, octets, at, end, whole):
        """A message, of which the octets between `at` and `end` are there: the position behind those that the broker has; None: more has to
        come; NONE: there is no memory for the first one."""
        link, incoming, limits = self.link, self.link.incoming, self.link.broker.limits
        parts = sections.split(octets, at, end, whole, limits.properties_size_max)
        charge(link.broker.tables, (end if parts is None else parts[0]) - at)
        if parts is None:
            return None
        body, kind, lifetime = parts
        head = bytes(octets[at:body])
        if lifetime == layout.NONE:
            lifetime = link.lifetime(head)
        size = self.left - (body - at)
        tables = link.broker.tables
        tables.state[layout.STATE_LEFT] -= 1
        if self.count:
            blocks = tables.blocks_for(len(incoming.route) + len(head) + size)
            if not tables.has_room(blocks, 1):
                link.broker.make_room(blocks)
            if not tables.has_room(blocks, 1):
                raise Rejected(RESOURCE_ERROR, "this broker has no memory for all messages of a batch now")
        incoming.transaction = self.work
        try:
            link.address(head)
        except ProtocolError as error:
            if error.condition == RESOURCE_ERROR and not error.hard:
                raise Rejected(error.condition, error.text) from None
            raise
        if not incoming.begin(head, 0, len(head), size, kind, lifetime):
            return layout.NONE
        self.left = size
        self.body = None if whole else begun(head)
        return self.go_on(octets, body, end)

    def go_on(self, octets, at, end):
        """Octets of a message's body: the position behind them."""
        self.link.incoming.append(octets, at, end - at)
        if self.body is not None:
            self.body.feed(octets, at, end)
        self.left -= end - at
        if self.left == 0:
            if self.body is not None:
                self.body.end()
            self.keep_message()
        return end

    def keep_message(self):
        """A message is whole: keep it for the end of the batch."""
        link, incoming = self.link, self.link.incoming
        self.left = self.body = None
        self.count += 1
        if link.needs_queue and not link.broker.route(incoming.exchange, incoming.key(), incoming.message):
            self.has_no_queue = True
            incoming.transaction = None
            incoming.abandon()
            return
        incoming.mandatory = False  # its sender hears of the batch
        incoming.complete()
        incoming.transaction = None

    def rollback(self):
        """Forget the messages, those of the peer's transaction excepted."""
        if self.is_own:
            self.work.drop()


def complete(link):
    """The batch is whole: have its messages take effect, and tell its sender. Where that takes further turns, the connection waits."""
    batch, delivery = link.batch, link.delivery
    if batch.has_no_queue:
        link.end_batch()
        link.broker.counters["unroutable"] += 1
        link.answered(UNROUTABLE)
        return
    if not batch.is_own:
        delivery.state = batch.work.state("accepted")
        link.batch = None
        link.answered(TAKEN)
        return
    work = batch.work
    try:
        if not local.publishing(link.protocol, lambda: work.commit(View(work))):
            link.protocol.hold(link)
            return
        if work.refused:
            raise Rejected(RESOURCE_ERROR, "%d messages of a batch were refused by their queues" % work.refused)
    except Rejected as error:
        link.end_batch()
        if delivery.settled:
            raise LinkError(RESOURCE_ERROR, error.text) from None
        delivery.error = Rejected(RESOURCE_ERROR, error.text)
        link.end(delivery)
        link.answer(delivery, REFUSED)
        return
    link.batch = None
    if link.broker.journal is not None:
        link.session.promises.logged()
    link.answered(TAKEN)

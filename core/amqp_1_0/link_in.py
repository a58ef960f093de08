"""A link on which the peer sends: transfers in, messages for the broker out (sections 2.6.12 and 2.6.14).

A message of one transfer goes straight from the receive buffer to its blocks, with its size known; of several, it grows as they come
(core/broker/incoming.py). Outcomes are answered in the order of publishes: dispositions.py. The peer has credit for so many
deliveries as may come or be unsettled at a time (bounds.py).
"""

from ..broker import local
from ..broker.incoming import Incoming
from ..errors import CONTENT_TOO_LARGE, NOT_ALLOWED, NOT_FOUND, NOT_IMPLEMENTED, RESOURCE_ERROR, ProtocolError
from ..memory import layout, serial
from ..message.route import PART_MAX, pack
from ..outcomes import NO_ROOM, NOT_YET, REFUSED, TAKEN, UNROUTABLE
from ..parts import needed
from . import addresses, no_local, nodes, sections, termini
from .body import begun
from .bounds import ATTACH_ROOM, BATCH, GROW_MS, MESSAGE_MAX, TAG_MAX, charge, credit_of, credit_of_settled
from .conditions import INVALID_FIELD, TRANSFER_LIMIT_EXCEEDED, LinkError, SessionError
from .dynamic import asked
from .link import FIRST, SECOND, SETTLED, UNSETTLED, Link

if False:  # for the type checker alone
    from typing import Any


class Delivery:
    """One of the peer's deliveries: under way, or not settled yet. `error`: a ProtocolError that it is rejected for."""

    format = 0  # message-format
    ignored = False  # it is resumed, and nobody knows it (section 2.7.5)

    def __init__(self, link, number, tag, settled, second):
        self.link = link
        self.number = number  # delivery-id
        self.tag = tag
        self.settled = settled  # by the peer
        self.second = second  # it is settled by the peer, after our outcome
        self.lead = b""  # what has come of a message whose body has not begun
        self.begun = False  # its message is in the broker
        self.counted = False  # it has used a credit
        self.skip = 0  # octets of the transfer that is tried again which its message has already
        self.body: "Any" = None  # body.Body of a message in several transfers, from where it begins
        self.error: "Any" = None
        self.state: "Any" = None  # its delivery state, where that is more than an outcome
        self.work: "Any" = None  # the transaction that it is posted in (transactions.py)
        self.taken = False  # it was accepted before its link was attached again: its octets say nothing new


class Sender:
    """An incoming link as the broker sees it: the sender of its messages (Incoming.sender)."""

    def __init__(self, link):
        self.link = link
        self.session = link.protocol
        self.connection = link.protocol.connection
        self.number = link.session.number
        self.promises = link.session.promises


class IncomingLink(Link):
    """An incoming link: its target, credit, and the delivery under way."""

    role = False  # the peer's: sender
    credit_wanted = 0  # deliveries that may come or be unsettled at a time; 0: as bounds.py says

    def __init__(self, session, fields):
        Link.__init__(self, session, fields)
        self.connection = session.connection
        self.incoming = Incoming(Sender(self))
        self.delivery: "Any" = None  # under way
        self.batch: "Any" = None  # batches.Batch, where that is one
        self.unsettled: "dict" = {}  # `name` of a delivery -> delivery: the link's delivery state (section 2.6.12)
        self.in_runs = 0  # deliveries that are not settled, beside those in `unsettled` (dispositions.Run)
        self.flat: "Any" = None  # what the engine knows of it (hot_row.py): a record, its route, where that lies
        self.way = b""
        self.way_at: "Any" = None
        self.kept: "Any" = None  # termini.Target: the remembered outcomes of its deliveries
        self.is_partial = False  # the map of these that its peer got has not all
        self.delivery_count = fields["initial-delivery-count"] or 0
        self.flowed_at: "Any" = None  # when it was last given credit of which half was used up
        self.settles = fields["snd-settle-mode"]
        self.wants_second = self.second  # the peer's request; `second`: our answer
        self.needs_queue = True  # a message that no queue takes is released: not one to a topic
        self.outcomes = ()  # that its source has, by their symbols; none: all
        self.content_max = self.broker.limits.content_size_max

    def open(self, fields):
        """Where the messages go (section 2.6.3): `route` is (exchange, key or None), None: `to` of each message says it."""
        target = fields["target"]
        if fields["source"] is not None:
            self.outcomes = fields["source"][1]["outcomes"]
        if target is None and self.broker.kept is not None:  # a link that is recovered by its name (section 2.6.3)
            target = self.broker.kept.terminus(self)
        if target is None:
            raise LinkError(INVALID_FIELD, "an attach of a sender without a target: a link to be recovered is not there")
        given = target[1]
        node = addresses.target(text_of(given["address"]), given["dynamic"], given["capabilities"])
        if self.must_wait(node):
            return False
        policy = asked(given)
        given = dict(given)
        given["dynamic-node-properties"] = None  # of a node that is not made for the link (section 3.5.4)
        made = ""
        if node[0] == addresses.OWN:
            made, given["address"] = nodes.make_own(self.broker, self.connection, node, self.protocol.container_id, self.name)
            if made:
                given["dynamic-node-properties"] = self.protocol.dynamic.add(self, made, policy)
            node = addresses.target(given["address"])
        self.route = None if node[0] == addresses.TO else nodes.route(self.broker, self.connection, node)
        self.needs_queue = not ("topic" in given["capabilities"] or "temporary-topic" in given["capabilities"])
        no_local.look_for_kept(self.broker)
        self.source, self.target = fields["source"], ("target", given)
        self.second = self.second and may_resume(given, fields["unsettled"])
        if self.second or fields["unsettled"]:
            termini.of(self.broker).check_place(self)
        if self.steal():
            return True
        if made:
            nodes.close(self.broker, self.connection, made, True)
        return False

    def attach_fields(self, fields):
        """The fields of our attach: snd-settle-mode as the peer wants it, rcv-settle-mode as it is (section 2.7.3: "the actual value")."""
        given = {
            "snd-settle-mode": fields["snd-settle-mode"],
            "rcv-settle-mode": SECOND if self.second else FIRST,
            "source": self.source,
            "target": self.target,
            "max-message-size": self.content_max,
        }
        if self.kept is not None and (self.kept.accepted or fields["unsettled"] is not None):
            room = self.protocol.frame_max_out - ATTACH_ROOM
            given["unsettled"], self.is_partial = termini.unsettled_map(self.kept, room)
            given["incomplete-unsettled"] = self.is_partial
        return given

    def recover(self, fields):
        """Look up what became of the deliveries that the peer left unsettled on an earlier link of this name (section 2.6.13)."""
        if self.second or fields["unsettled"]:
            self.kept = termini.of(self.broker).attach(self, fields, self.target[1])

    def begin(self):
        """The first credit."""
        if self.settles == SETTLED and not self.credit_wanted:
            self.credit_max = credit_of_settled(self.broker.limits)
        else:
            self.protocol.places.lend(self, self.credit_wanted or credit_of(self.broker.limits))
        self.give_credit()

    def give_credit(self):
        """Grant the peer credit up to its maximum, once it has used half of that."""
        most = self.credit_max
        if self.credit <= most // 2 and most - len(self.unsettled) - self.in_runs > self.credit and self.state == "attached":
            self.session.say_flow(self)

    def put_flow(self, fields):
        """Put the link's state into a flow: with it goes all the credit that the peer may have now."""
        if self.lent and self.credit <= self.credit_max // 2 and not self.credit_wanted:
            now = self.broker.now
            if self.flowed_at is not None and (now - self.flowed_at) & layout.MASK < GROW_MS:
                self.protocol.places.lend_more(self)
            self.flowed_at = now
        self.credit = max(self.credit_max - len(self.unsettled) - self.in_runs, self.credit)
        Link.put_flow(self, fields)

    # What comes in

    def flow(self, fields):
        """The sender's state (section 2.6.7): how far its delivery-count has come."""
        if fields["delivery-count"] is not None:
            passed = serial.distance(self.delivery_count, fields["delivery-count"])
            if 0 < passed <= self.credit:
                self.delivery_count = fields["delivery-count"]
                self.credit -= passed
        self.give_credit()
        if fields["echo"]:
            self.session.say_flow(self)

    def transfer(self, fields, octets, at, end):
        """Process a transfer. Returns false, with nothing changed, when the broker has no memory for its octets now."""
        delivery = self.delivery
        if delivery is None:
            delivery = self.first(fields)
        else:
            self.check_same(delivery, fields)
        if fields["settled"]:
            delivery.settled = True
        if fields["aborted"]:
            self.count(delivery)
            self.drop()
            self.settle(delivery)  # section 2.7.5: "implicitly settled"
            return True
        if delivery.ignored:
            self.count(delivery)
            if not fields["more"]:
                self.end(delivery)
            return True
        self.check_settled(delivery, fields["more"])
        try:
            if delivery.error is None and not self.payload(delivery, octets, at, end, not fields["more"]):
                return False
        except ProtocolError as error:
            if delivery.settled and delivery.work is not None:
                delivery.work.is_doomed = True  # section 4.4.4.1
            if not isinstance(error, Rejected):
                raise
            if delivery.settled:
                raise LinkError(error.condition, error.text) from None
            self.reject(delivery, error)
        self.count(delivery)
        if fields["more"]:
            return True
        if delivery.error is None:
            self.complete()
        else:
            self.end(delivery)
            self.answer(delivery, REFUSED)
        return True

    def first(self, fields):
        """The delivery that begins with a transfer. Raises for what it may not have (sections 2.6.7, 2.7.5)."""
        number, tag = fields["delivery-id"], fields["delivery-tag"]
        if number is None or tag is None:
            raise LinkError(
                INVALID_FIELD, "the first transfer of a delivery has no %s" % ("delivery-id" if number is None else "delivery-tag")
            )
        if len(tag) > TAG_MAX:
            raise LinkError(INVALID_FIELD, "a delivery-tag of %d octets; %d are the most (section 2.8.7)" % (len(tag), TAG_MAX))
        if self.credit <= 0:
            raise LinkError(TRANSFER_LIMIT_EXCEEDED, "a delivery on link '%s', which has no credit" % self.name[:80])
        expected = self.session.next_delivery_id
        if expected is not None and number != expected:
            raise SessionError(INVALID_FIELD, "delivery-id %d where %d comes next (section 2.6.12)" % (number, expected))
        is_known = self.kept is not None and tag in self.kept.accepted
        if self.kept is not None and tag in self.unsettled or is_known and not fields["resume"]:
            raise LinkError(INVALID_FIELD, "a delivery-tag of a delivery that is not settled (section 2.6.12)")
        if fields["message-format"] not in (None, 0, BATCH):
            words = "message-format 0x%08x; 0 is served, and 0x%08x, the batches of Event Hubs"
            raise LinkError(NOT_IMPLEMENTED, words % (fields["message-format"], BATCH))
        if fields["resume"] and not is_known:
            ignored = Delivery(self, number, tag, True, False)  # section 2.7.5: as if its sender had settled it, and with nothing new
            ignored.ignored = True
            return ignored
        if self.is_partial and not is_known:
            raise LinkError(NOT_ALLOWED, "a new delivery, and our map of what is unsettled was incomplete (section 2.7.3)")
        settled = bool(fields["settled"])
        second = self.second
        if fields["rcv-settle-mode"] is not None and not settled:
            if fields["rcv-settle-mode"] and not self.wants_second:
                raise LinkError(INVALID_FIELD, "rcv-settle-mode second on a link that has first (section 2.7.5)")
            second = fields["rcv-settle-mode"] == 1
        if second and self.kept is not None and not settled and not is_known and not termini.of(self.broker).has_room():
            raise LinkError(RESOURCE_ERROR, "this broker remembers no more unsettled deliveries of senders")
        delivery = Delivery(self, number, tag, settled, second)
        delivery.taken = is_known
        state = fields["state"]
        if isinstance(state, tuple) and state[0] == "transactional-state":
            delivery.work = transactions().work_of(self.session, state[1], LinkError)
        if fields["message-format"]:
            delivery.format = BATCH
        return delivery

    def check_settled(self, delivery, more):
        """Raise for a delivery against snd-settle-mode (section 2.7.5): settled is true on one of its transfers at least, or on none."""
        if delivery.settled if self.settles == UNSETTLED else self.settles == SETTLED and not (delivery.settled or more):
            word = "settled" if delivery.settled else "not settled"
            raise LinkError(NOT_ALLOWED, "a delivery that is %s against snd-settle-mode (section 2.8.2)" % word)

    def check_same(self, delivery, fields):
        """Raise when a further transfer of a delivery says something else than the first (section 2.7.5)."""
        for name, value in (("delivery-id", delivery.number), ("delivery-tag", delivery.tag), ("message-format", delivery.format)):
            if fields[name] is not None and fields[name] != value:
                raise LinkError(INVALID_FIELD, "another %s within one delivery" % name)
        state = fields["state"]
        if isinstance(state, tuple) and state[0] == "transactional-state":
            if delivery.work is None or delivery.work.id != state[1]["txn-id"]:
                raise LinkError(INVALID_FIELD, "another transaction within one delivery (section 4.4.1)")

    def posting(self):
        """The transaction that a delivery which is half here belongs to, or None."""
        return None if self.delivery is None else self.delivery.work

    def count(self, delivery):
        """Note that a delivery has begun, and has used a credit, at the first of its transfers."""
        if delivery.counted:
            return
        delivery.counted = True
        self.delivery = delivery
        self.delivery_count = serial.after(self.delivery_count, 1)
        self.credit -= 1
        if not delivery.settled:
            self.unsettled[self.name_of(delivery)] = delivery
            self.session.received[delivery.number] = delivery

    def payload(self, delivery, octets, at, end, whole):
        """Add octets to the message under way; `whole`: they are its last. Returns false, with nothing changed, when the broker
        has no memory for them now."""
        if delivery.taken:
            self.delivery = delivery
            return True
        if delivery.format:
            if self.batch is None:
                self.batch = needed("amqp_1_0.batches", "batches of messages").Batch(self, delivery.work)
            self.delivery = delivery
            if self.batch.feed(delivery, octets, at, end, whole):
                return True
            self.delivery = None if self.batch.size == 0 else delivery
            return False
        if delivery.begun:
            return self.rest(delivery, octets, at + delivery.skip, end, whole)
        limits = self.broker.limits
        lead = delivery.lead
        if lead or not whole:
            octets = lead + bytes(octets[at:end])
            at, end = 0, len(octets)
        parts = sections.split(octets, at, end, whole, limits.properties_size_max)
        charge(self.broker.tables, (end if parts is None else parts[0]) - at)
        if parts is None:
            self.keep(delivery, octets)
            return True
        body, kind, lifetime = parts
        head = bytes(octets[at:body])
        if lifetime == layout.NONE:
            lifetime = self.lifetime(head)
        self.incoming.transaction = delivery.work
        self.address(head)
        if not self.incoming.begin(head, 0, len(head), end - body if whole else None, kind, lifetime):
            return False
        delivery.begun = True
        delivery.skip = body - at - len(lead)
        self.keep(delivery, b"")
        self.delivery = delivery
        if not whole:
            delivery.body = begun(head)
        return self.rest(delivery, octets, body, end, whole)

    def keep(self, delivery, octets):
        """Keep what has come of a message whose body has not begun. Raises Rejected when all links of the connection keep too much."""
        more = len(octets) - len(delivery.lead)
        limits = self.broker.limits
        if more > 0 and self.protocol.lead_octets + more > max(limits.properties_size_max, limits.management_size_max) + MESSAGE_MAX:
            raise Rejected(RESOURCE_ERROR, "messages of the connection whose bodies have not begun take more than this broker keeps")
        self.protocol.lead_octets += more
        delivery.lead = octets

    def lifetime(self, head):
        """The lifetime of a message whose header has no ttl, by its absolute-expiry-time (section 3.2.4) and the wall clock's second, as
        layout.MESSAGE_LIFETIME has it."""
        expires = sections.expiry(head)
        if expires is None:
            return layout.NONE
        left = max(expires - 1000 * (self.broker.seconds + layout.EPOCH), 0)
        return left if left <= layout.MASK else max(-2 - left // 1000, -layout.MASK)

    def rest(self, delivery, octets, at, end, whole):
        """Octets of a body, as `payload`."""
        if end > at and not self.incoming.append(octets, at, end - at):
            return False
        delivery.skip = 0
        if delivery.body is not None:
            delivery.body.feed(octets, at, end)
            if whole:
                delivery.body.end()
        return True

    def address(self, head):
        """Where a message goes, by the octets before its body."""
        to, subject, user_id = sections.address(head)
        if user_id is not None:
            self.incoming.check_user(sections.utf8(user_id) or repr(user_id))
        try:
            self.incoming.copies = sections.copies(head, self.broker.limits.copy_size_max) if b"x-cc" in head else b""
        except ValueError as error:
            raise Rejected(INVALID_FIELD, str(error)) from None
        if self.route is not None:
            self.incoming.to(packed(self.route, subject), self.needs_queue)
            return
        try:
            if to is None:
                raise Rejected(INVALID_FIELD, "a message to the anonymous terminus without its field to")
            self.incoming.to(packed(nodes.route(self.broker, self.connection, addresses.target(to)), subject), True)
        except ProtocolError as error:
            if error.hard:
                raise
            raise Rejected(error.condition, error.text) from None

    def reject(self, delivery, error):
        """Reject the message under way and drop its remaining transfers; the link goes on."""
        delivery.error = error
        self.keep(delivery, b"")
        self.abandon()

    def complete(self):
        """Publish the complete message. If the broker has no memory for it, the connection waits."""
        if self.delivery.taken:
            self.answered(TAKEN)
            return
        if self.batch is not None:
            needed("amqp_1_0.batches", "batches of messages").complete(self)
            return
        if self.delivery.work is not None:
            transactions().post(self, self.delivery)
            return
        state = self.broker.tables.state
        entries = state[layout.POOL_ENTRIES + 2]
        outcome = local.publishing(self.protocol, self.incoming.complete)
        state[layout.STATE_LEFT] -= max(entries - state[layout.POOL_ENTRIES + 2], 0)  # a place in a queue counts as a frame
        if outcome == NO_ROOM:
            self.protocol.hold(self)
        elif outcome == NOT_YET:
            self.protocol.hold_for_log(self)

    def answered(self, outcome):
        """Receive the broker's outcome of a published message (contract.Protocol)."""
        delivery = self.delivery
        if self.kept is not None and delivery.second and outcome == TAKEN and delivery.work is None and not delivery.settled:
            termini.of(self.broker).accept(self.kept, delivery.tag)
            if self.kept.durable == termini.UNSETTLED_STATE:
                self.session.promises.logged()
        self.end(delivery)
        if outcome == UNROUTABLE and self.route is not None and self.route[0] == "" and self.route[1] is not None:
            name = str(self.route[1], "utf-8")  # it was there when the link was attached
            if name not in self.broker.queues:
                raise LinkError("resource-deleted", "the queue '%s' was deleted" % name[:80])
        if outcome == UNROUTABLE and not self.needs_queue:
            outcome = TAKEN
        elif outcome == UNROUTABLE and not self.may_say("released"):
            delivery.error = LinkError(NOT_FOUND, "no queue takes the message")
            outcome = REFUSED
        self.answer(delivery, outcome)

    def answer(self, delivery, outcome):
        """Tell the peer the outcome of a delivery. Raises the error where the source does not allow that outcome (section 3.5.3)."""
        if outcome == REFUSED and not delivery.settled and not self.may_say("rejected"):
            raise delivery.error or LinkError(RESOURCE_ERROR, "a queue that the message goes to takes no more")
        self.session.answer(delivery, outcome)

    def may_say(self, name):
        """True for an outcome that the source's outcomes allow."""
        return not self.outcomes or "amqp:%s:list" % name in self.outcomes

    def end(self, delivery):
        """End the delivery under way: the peer has sent all of its transfers."""
        self.delivery = None
        if delivery.lead:
            self.keep(delivery, b"")
        if delivery.settled:
            self.settle(delivery)

    # What it holds

    def name_of(self, delivery):
        """What names a delivery among the unsettled: its tag where a link after this one may resume it, else its delivery-id. RabbitMQ's
        Java client gives tags again before their deliveries are settled."""
        return delivery.number if self.kept is None else delivery.tag

    def settle(self, delivery):
        """Forget a settled delivery: its tag is free again, and the peer may get more credit."""
        self.unsettled.pop(self.name_of(delivery), None)
        self.session.received.pop(delivery.number, None)
        if self.kept is not None:
            termini.of(self.broker).settle(self.kept, delivery.tag)
        self.give_credit()

    def close(self):
        """Forget the link's target, because the peer's detach closes the link: no other link can resume it."""
        if self.kept is not None:
            termini.of(self.broker).closed(self)
        return True

    def leave(self):
        """Free the link's name after its detach; termini.py keeps the target, unless the peer has closed the link."""
        Link.leave(self)
        if self.kept is not None:
            termini.of(self.broker).detached(self)

    def give_back(self):
        """Release the incomplete message."""
        self.drop()
        return True

    def drop(self):
        """Drop the incomplete message, and a complete one that waits for memory."""
        if self.protocol.held is self:
            self.protocol.held = None
            self.connection.wait_for_turn()
        self.abandon()
        delivery, self.delivery = self.delivery, None
        if delivery is not None:
            self.keep(delivery, b"")
            self.unsettled.pop(self.name_of(delivery), None)
            self.session.received.pop(delivery.number, None)

    def abandon(self):
        """Release the message under way; other messages posted in its transaction stay."""
        self.incoming.transaction = None
        self.incoming.abandon()
        if self.batch is not None:
            self.end_batch()

    def end_batch(self):
        """Roll back the batch under way: none of its messages takes effect."""
        batch, self.batch = self.batch, None
        batch.rollback()


class Rejected(ProtocolError):
    """Raised to reject one message; its link and session go on."""


def transactions():
    """transactions.py, where this build carries it."""
    return needed("amqp_1_0.transactions", "transactions of AMQP 1.0")


def may_resume(target, unsettled):
    """True when a sender that asks for rcv-settle-mode second can use it: its target, or what it has not settled, is to outlive the link.

    Where nothing does there is nothing to resume, and second would only hold back deliveries of senders that never settle (Azure's): they
    are answered first (section 2.7.3). `target`: its fields; `unsettled`: of the attach.
    """
    return bool(unsettled is not None or target["durable"] or target["timeout"] or target["expiry-policy"] != "session-end")


def packed(route, subject):
    """A route as the broker has it. `route`: (exchange, key), None: the message's subject is the key."""
    exchange, key = route
    if key is None:
        key = (subject or "").encode("utf-8")
    if len(key) > PART_MAX:
        raise Rejected(CONTENT_TOO_LARGE, "a routing key of %d octets; this broker takes %d" % (len(key), PART_MAX))
    return pack(exchange.encode("utf-8"), key)


def text_of(address):
    """The address of a terminus as text, or None."""
    if address is not None and not isinstance(address, str):
        raise LinkError(INVALID_FIELD, "an address is a string here, and not %r" % (address,))
    return address

"""Links whose deliveries outlive their connections, with a peer that keeps its side (section 2.6.13): each message is accepted exactly
once.

    sender = recovering.sender(client.session, "readings"); sender.name = "gw7"; sender.attach() -> events.attached(sender)
    number = sender.send(octets, body, tag=b"...")  -> events.settled(sender, number, "accepted", {})
    sender.settle([number])             when this side will never send that message again, whatever happens to it

Both settle late: with receiver-settle-mode second the peer remembers what it has accepted, by delivery-tag, until this side settles. A link
of the same name, from a container of the same id, is told of these when it attaches (`kept`): a message whose tag is among them is resumed
and comes to its outcome without its octets; the peer has not taken any other.

Laws: one message has one tag for ever, and no other message has it. A sender that does not know what its peer has (`known` is None)
attaches with incomplete-unsettled and no map: the peer forgets nothing for it, and takes nothing new (so says section 2.7.3). It reads
`kept`, leaves without closing, and attaches again with that as its map. What a peer has kept too long is resumed by its owner, and settled.

A RecoveringReceiver says in its attach what it has decided on deliveries that the peer has not settled; the peer does not deliver those
again. What it has got and not decided on comes again, with the tag that it knows.
"""

from ...errors import ProtocolError
from .. import composites
from .link import MASK, Receiver, Sender

if False:  # for the type checker alone
    from typing import Any

SECOND = 1  # receiver-settle-mode
UNSETTLED_STATE = 2  # terminus-durability
FIRST_TRANSFER = {"message-format": 0, "settled": False, "more": False, "resume": True}


class RecoveringSender(Sender):
    """`keeps`: the peer settles second and has a target that lasts, as was asked. `kept`: {delivery-tag: the outcome that the peer has for
    it, "" for none}, of deliveries on links before this one; `is_whole`: the peer has told of all. `held`: {number: delivery-id} of what
    was accepted and is not settled by us. `known`: what the next attach says is unsettled, as `kept`; None: that is not known."""

    known: "Any" = None

    def reset(self):
        """As before attach."""
        Sender.reset(self)
        self.keeps = False
        self.kept: "dict" = {}
        self.is_whole = True
        self.held: "dict" = {}

    def say_modes(self, fields, theirs, ours):
        """The fields of attach: a target that is kept, and a receiver that settles second."""
        theirs["durable"] = UNSETTLED_STATE
        theirs["expiry-policy"] = "never"
        Sender.say_modes(self, fields, theirs, ours)
        fields["rcv-settle-mode"] = SECOND
        if self.known is None:
            fields["incomplete-unsettled"] = True
        else:
            fields["unsettled"] = map_of(self.known)

    def begin(self, fields):
        """The peer has attached its end: read which deliveries it has kept."""
        self.keeps = fields["rcv-settle-mode"] == SECOND and self.target.get("durable") == UNSETTLED_STATE
        self.is_whole = not fields["incomplete-unsettled"]
        given = fields["unsettled"] or {}
        self.kept = {tag: outcome_of(given[tag]) for tag in given} if self.keeps else {}

    def send(self, octets, body=None, format_=0, tag=None):
        """As Sender.send, with the message's delivery-tag; one that the peer has kept is resumed."""
        if tag in self.kept:
            number = self.resume(tag)
            if number or tag in self.kept:
                return number
        return Sender.send(self, octets, body, format_, tag)

    def resume(self, tag):
        """Take up a delivery that the peer has kept with an outcome, which it tells again: its number, or 0 without credit or room. One
        without an outcome is aborted: 0, and it is not among `kept` any more."""
        session = self.session
        if self.credit <= 0 or session.streaming is not None or session.remote_window <= 0 or self.unsettled >= session.window:
            return 0
        fields: "dict" = dict(FIRST_TRANSFER)
        fields.update({"handle": self.handle, "delivery-id": session.next_delivery, "delivery-tag": tag})
        outcome = self.kept[tag]
        if outcome:
            fields["state"] = (outcome, {})
        else:
            fields["aborted"] = True
        if not session.client.output.write(session.frame("transfer", fields)):
            return 0
        del self.kept[tag]
        session.next_outgoing = (session.next_outgoing + 1) & MASK
        session.remote_window -= 1
        number = self.count(not outcome)
        return number if outcome else 0

    def holds(self, number, delivery, outcome, is_settled):
        """True for an accepted message that stays unsettled until its owner settles it. A peer that settles at once keeps nothing."""
        if is_settled:
            self.keeps = False
        if not self.keeps or outcome != "accepted":
            return False
        self.held[number] = delivery
        return True

    def settle(self, numbers):
        """Settle messages of `held`, a list in order: how many there was room for."""
        done = 0
        while done < len(numbers):
            first = last = self.held[numbers[done]]
            end = done + 1
            while end < len(numbers) and self.held[numbers[end]] == (last + 1) & MASK:
                last = self.held[numbers[end]]
                end += 1
            fields = {"role": False, "first": first, "last": last, "settled": True, "state": ("accepted", {})}
            if not self.session.client.output.write(self.session.frame("disposition", fields)):
                break
            for number in numbers[done:end]:
                del self.held[number]
            done = end
        return done


class RecoveringReceiver(Receiver):
    """`undecided`: tags of deliveries without an outcome of ours; `decided`: {tag: outcome} of those that the sender has not settled. Both
    stay when the connection is lost. `keeps`: the peer settles second, and has answered our map with its own."""

    def __init__(self, session, handle, address, prefetch, options):
        self.undecided: "dict" = {}
        self.decided: "dict" = {}
        Receiver.__init__(self, session, handle, address, prefetch, True, options)

    def reset(self):
        """As before attach."""
        Receiver.reset(self)
        self.keeps = False
        self._tags: "dict" = {}  # delivery-id -> tag of deliveries decided on this attachment
        self._again: "dict" = {}  # delivery-ids of deliveries that had come before it

    def say_modes(self, fields, theirs, ours):
        """The fields of attach: the map of unsettled deliveries."""
        Receiver.say_modes(self, fields, theirs, ours)
        fields["unsettled"] = map_of(self.undecided)
        fields["unsettled"].update(map_of(self.decided))

    def begin(self, fields):
        """The peer has attached its end: deliveries that it does not have are settled."""
        self.keeps = fields["rcv-settle-mode"] == SECOND and fields["unsettled"] is not None
        theirs = fields["unsettled"] or {}
        self.decided = {tag: self.decided[tag] for tag in self.decided if tag in theirs}
        self.undecided = {tag: None for tag in self.undecided if tag in theirs}
        Receiver.begin(self, fields)

    def deliver(self, message):
        """A whole delivery: it comes again, if its connection is lost before anything is decided."""
        if message.tag in self.undecided:
            self._again[message.number] = None
        elif not message.settled:
            self.undecided[message.tag] = None
        Receiver.deliver(self, message)

    def is_resumed(self, message):
        """True for a delivery that had come before the connection was lost, and on which nothing was decided."""
        return message.number in self._again

    def settle(self, message, outcome="accepted", fields=None):
        """As Receiver.settle; remembered until the sender has settled."""
        if not Receiver.settle(self, message, outcome, fields):
            return False
        self.undecided.pop(message.tag, None)
        self._again.pop(message.number, None)
        if message.number in self.waiting:
            self._tags[message.number] = message.tag
            self.decided[message.tag] = outcome
        return True

    def forget(self, first, last, outcome):
        """The sender has settled a range."""
        Receiver.forget(self, first, last, outcome)
        for number in list(self._tags):
            if number not in self.waiting:
                self.decided.pop(self._tags.pop(number), None)


def map_of(table):
    """The field unsettled out of {delivery-tag: the name of an outcome, or nothing}."""
    return {tag: composites.described(table[tag], {}) if table[tag] else None for tag in table}


def outcome_of(state):
    """The name of an outcome in a map of unsettled deliveries, "" for a state that is none."""
    try:
        pair = composites.composite(state)
    except ProtocolError:
        pair = None
    name = "" if pair is None else pair[0]
    return name if name in ("accepted", "rejected", "released", "modified") else ""


def sender(session, address, **options):
    """A RecoveringSender to an address, as Session.sender."""
    return session.place(RecoveringSender(session, len(session.links), address, False, options))


def receiver(session, address, prefetch=0, **options):
    """A RecoveringReceiver from an address, as Session.receiver."""
    return session.place(RecoveringReceiver(session, len(session.links), address, prefetch, options))

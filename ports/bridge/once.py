"""Exactly once to an upstream of AMQP 1.0 that keeps its targets: the numbers of a bridge on such a link (client/recovering.py).

A message's delivery-tag is its number, its offset in the bridge's stream, and the link is named after gateway and stream. Upstream has the
tags that it has accepted until the bridge settles them, and the bridge settles a message only when its position behind that message is in
the log of the local broker: a bridge that begins again at that position, after a power cut too, never sends the message again. So at each
moment upstream knows every message that the bridge could send again.

Laws: the bridge resumes messages that upstream has kept, and does not send them; those that the source does not bring again it resumes too,
and settles when their time has come. An upstream that settles at once keeps nothing: then a message may come twice, with the same marks.
"""

from struct import pack, unpack

from ...core.amqp_1_0.client import recovering

if False:  # for the type checker alone
    from typing import Any

    from .target_1_0 import Target10

HELD_SIZE = 16  # octets of a tag in an attach, which has to be one frame
ATTACH_SIZE = 1024  # octets of an attach beside them
HELD_LEAST = 8
CREDIT_LEAST = 50  # with less the position is asked for at once


class Once:
    """The numbers of one link's messages."""

    def __init__(self, target: "Target10", session: "Any", address: "str | None", receive_size: int, options: "dict[str, Any]") -> None:
        self.target = target
        self.sender = recovering.sender(session, address, **options)
        self.held_max = 0  # unsettled messages at a time
        self._receive_size = receive_size
        self.is_looking = True  # the first attach asks for upstream's deliveries, the second goes on
        self.recovers = True  # upstream keeps unsettled deliveries
        self._numbers: "dict[int, int]" = {}  # number on the link -> the message's, of accepted or resumed deliveries that are not settled
        self._looked_at = -1  # the safe position up to which was settled

    def attach(self) -> bool:
        """Attach the link. Upstream's answer names the deliveries that it keeps."""
        self.sender.name = self.name()
        size_max = min(self._receive_size, self.target.client.frame_size_max)
        self.held_max = (size_max - ATTACH_SIZE) // HELD_SIZE
        attached: bool = self.sender.attach()
        return attached

    def leave(self) -> "bool | None":
        """Detach the link, to attach it again with upstream's list of deliveries; for good where upstream keeps none."""
        sender = self.sender
        self.recovers = sender.keeps and self.held_max >= HELD_LEAST
        sender.known = dict(sender.kept)
        left: bool = sender.leave(closed=not self.recovers)
        return left

    def name(self) -> "str | None":
        """The link's name, or None while the source has not named its stream."""
        facts = self.target.bridge.source.facts
        return None if facts is None else "%s %s" % (str(self.target.bridge.mover.marks.gateway, "utf-8"), facts["id"])

    def send(self, octets: bytes, record: "Any") -> int:
        """Send a record, or resume it: its number on the link, 0 when it cannot go now."""
        sender = self.sender
        if not sender.is_whole or len(sender.held) + sender.unsettled >= self.held_max:
            return 0
        number: int = sender.send(octets, record.body, tag=pack(">Q", record.number))
        if number:
            self._numbers[number] = record.number
        return number

    def settled(self, number: int, outcome: str) -> None:
        """Note the outcome that upstream gave a message."""
        if number not in self.sender.held:
            self._numbers.pop(number, None)
        self._looked_at = -1

    def work(self) -> None:
        """Resume messages that the source does not bring again; settle those that it never will."""
        source, sender = self.target.bridge.source, self.sender
        if sender.kept and source.ready:
            for tag in sorted(sender.kept):
                if len(tag) == 8:
                    (number,) = unpack(">Q", tag)
                    if number >= source.first_next or number in self.target.bridge.mover.records:
                        continue
                    link_number = sender.resume(tag)
                    if link_number:
                        self._numbers[link_number] = number
                    elif tag in sender.kept:
                        break
        if sender.held and self._looked_at != source.safe:
            self._looked_at = source.safe
            done = [each for each in sorted(sender.held) if self._numbers[each] < source.safe]
            for each in done[: sender.settle(done)]:
                del self._numbers[each]
            if len(sender.held) and done and done[-1] in sender.held:
                self._looked_at = -1  # there was no room for all
        if not sender.is_whole and not (sender.kept or sender.held or sender.unsettled):
            self.target.cut("upstream keeps more deliveries than it could tell at once: the others are asked for")

    def is_urgent(self) -> bool:
        """True when few messages can go before others are settled."""
        sender = self.sender
        return len(sender.held) > 0 and (sender.credit < CREDIT_LEAST or len(sender.held) * 2 > self.held_max or not sender.is_whole)

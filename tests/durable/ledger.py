"""What the clients of the kill test know, and what therefore must be true of the broker that comes back.

Confirmed and not acked: there. Absent at one restart: never there again. Nothing twice, each publisher's messages in order, a transaction
whole or not at all. A stream has no gap, and an offset that a reader has seen keeps its message.
"""


class Ledger:
    """One run over many kills. Identities of messages are texts `publisher-generation-number`. Clients write to it from their threads."""

    def __init__(self):
        self.confirmed = {}  # queue -> set of identities
        self.acked = set()
        self.gone = set()  # acked, and seen to be absent after a restart
        self.streamed = []  # identities confirmed by the stream
        self.seen = {}  # offset -> identity that a reader of the stream got
        self.committed = set()

    def confirm(self, queue, identity):
        """The broker has confirmed a publish."""
        self.confirmed.setdefault(queue, set()).add(identity)

    def check_queue(self, queue, found, all_acks_count):
        """`found`: identities in the queue, in its order; `all_acks_count`: the acks had their time before the kill."""
        assert len(set(found)) == len(found), f"twice in {queue}: {twice(found)}"
        missing = self.confirmed.get(queue, set()) - self.acked - set(found)
        assert not missing, f"confirmed, not acked, and not there in {queue}: {sorted(missing)[:5]} of {len(missing)}"
        back = self.gone & set(found)
        assert not back, f"came back to {queue}: {sorted(back)[:5]} of {len(back)}"
        if all_acks_count:
            late = self.acked & set(found)
            assert not late, f"acked long before the kill, and there in {queue}: {sorted(late)[:5]} of {len(late)}"
        in_order(queue, found)
        absent = {each for each in self.acked if each in self.confirmed.get(queue, ())} - set(found)
        self.gone |= absent
        self.confirmed[queue] = self.confirmed.get(queue, set()) - absent
        self.acked -= absent

    def check_stream(self, found):
        """`found`: (offset, identity) of everything in the stream."""
        offsets = [offset for offset, _ in found]
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets))) if offsets else not self.streamed, f"a gap: {offsets[:9]}"
        identities = [identity for _, identity in found]
        assert len(set(identities)) == len(identities), f"twice in the stream: {twice(identities)}"
        for offset, identity in found:
            assert self.seen.setdefault(offset, identity) == identity, f"offset {offset} was {self.seen[offset]} and is {identity}"
        if self.seen:
            assert not offsets or max(self.seen) <= offsets[-1], f"a reader had {max(self.seen)}, the stream ends at {offsets[-1]}"
        there = set(identities)
        kept = [identity for identity in self.streamed if identity in there]
        assert self.streamed[len(self.streamed) - len(kept) :] == kept, "a confirmed message behind a kept one is missing in the stream"
        assert kept or not self.streamed, "nothing of what the stream confirmed is there"
        self.streamed = kept

    def check_transactions(self, found):
        """`found`: identities in the queue of the transactions, two of each."""
        counts = {}
        for identity in found:
            counts[identity[:-1]] = counts.get(identity[:-1], 0) + 1
        halves = [identity for identity in counts if counts[identity] != 2]
        assert not halves, f"not a whole transaction: {halves[:5]}"
        missing = self.committed - set(counts)
        assert not missing, f"committed and not there: {sorted(missing)[:5]} of {len(missing)}"


def twice(found):
    """Some of what is in a list more than once."""
    return [each for each in set(found) if found.count(each) > 1][:5]


def in_order(queue, found):
    """Each publisher's numbers rise."""
    last = {}
    for identity in found:
        publisher, generation, number = identity.split("-")
        place = (int(generation), int(number))
        assert last.get(publisher, (-1, -1)) < place, f"{identity} behind {last[publisher]} in {queue}"
        last[publisher] = place

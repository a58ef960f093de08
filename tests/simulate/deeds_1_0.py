"""What the clients of AMQP 1.0 of a World do: drawn from its seed, where it makes sense at that moment."""

from accounts import ACCEPTED, UNKNOWN_MAX, Owner, Work, message_of
from deeds import EXCHANGES, QUEUES
from model import Wrong
from peer_1_0 import declare, performative

from leveret.core.amqp_1_0 import composites
from leveret.core.errors import ProtocolError

# What a client may do next, and how often.
DEEDS = (
    ("attach", 8),
    ("send", 30),
    ("go_on", 10),
    ("settle", 24),
    ("credit", 8),
    ("detach", 3),
    ("account_attach", 10),
    ("account_send", 24),
    ("account_settle", 8),
    ("account_decide", 16),
    ("account_credit", 8),
    ("account_detach", 2),
    ("work_attach", 10),
    ("declare", 6),
    ("post", 14),
    ("retire", 10),
    ("discharge", 8),
    ("end_session", 1),
    ("lose", 2),
)
OUTCOMES = (
    (("accepted", {}), 6),
    (("released", {}), 2),
    (("rejected", {}), 1),
    (("modified", {"delivery-failed": True}), 1),
    (("modified", {"undeliverable-here": True}), 1),
    (None, 1),
)


class Plain(Owner):
    """Links that keep nothing: `sending` to wherever, `receiving` from queues, streams, of browsers."""

    def __init__(self, world):
        Owner.__init__(self, world)
        self.got = []  # (End, delivery-id) that are not settled

    def told(self, end, number, given, state, settled):
        """A message was accepted, or not."""
        message, is_second = given
        if state == ACCEPTED and message is not None:
            self.world.confirmed(message)
        if is_second and not settled:
            end.client.dispose(False, number, None, True, state)
            end.client.sent.pop(number, None)

    def delivered(self, end, number, tag, message, fields, octets):
        """A message has come."""
        if not fields["settled"]:
            self.got.append((end, number))

    def gone(self, end):
        """What came on it is not ours any more."""
        self.got = [each for each in self.got if each[0] is not end]

    def settle_all(self, end):
        """Accept all."""
        for each, number in self.got:
            if each is end:
                end.client.dispose(True, number, None, True, ACCEPTED)
        self.gone(end)


class Reader(Plain):
    """A link from a stream: its offsets go up by one."""

    def delivered(self, end, number, tag, message, fields, octets):
        """A message, with its offset."""
        Plain.delivered(self, end, number, tag, message, fields, octets)
        noted = {}
        at = 0
        while at < len(octets):
            value, at = composites.types.decode(octets, at, len(octets))
            if value[1] == ("ulong", 0x72):
                noted = value[2]
        self.world.read_from_stream(end.name, noted["symbol", "x-stream-offset"], message)


class Working(Owner):
    """A client's links of transactions: a coordinator, to the Ledger's queue, from it."""

    def __init__(self, world, client):
        Owner.__init__(self, world)
        self.client = client
        self.ends = {}  # "coordinator", "to", "from" -> End
        self.works = []  # that are not discharged
        self.held = []  # [delivery-id, message] that have come and are in no transaction

    def told(self, end, number, given, state, settled):
        """An answer of the coordinator's, or to a post."""
        what, work, message = given
        if not settled:
            end.client.dispose(False, number, None, True, state)
            end.client.sent.pop(number, None)
        if what == "declare":
            if state[0] == "declared":
                work.id = state[1]["txn-id"]
                self.works.append(work)
        elif what == "post":
            work.pending -= 1
            if state[0] == "transactional-state" and state[1]["outcome"] == ACCEPTED:
                work.posts.append(message)
        else:
            work.result = state == ACCEPTED and not work.fails
            if work.fails and state != ACCEPTED:
                raise Wrong("a discharge that is to fail came to %s" % (state,))
            if work.result:
                for each in work.posts:
                    self.world.confirmed(each)

    def delivered(self, end, number, tag, message, fields, octets):
        """A message, which no transaction that was done has retired."""
        if self.world.ledger.retired(message):
            raise Wrong("%s was retired, and is delivered again" % message)
        self.held.append([number, message])

    def gone(self, end):
        """What was held has gone back; transactions fail with their coordinator."""
        if end is self.ends.get("from"):
            self.held = []
        if end is self.ends.get("coordinator"):
            self.works = []


class Deeds10:
    """The part of a World that acts for its clients of AMQP 1.0."""

    def do_1_0(self, client):
        """One deed, where it makes sense now."""
        if client.begun and not client.ending and not client.connection.closed:
            getattr(self, "ten_" + self.tens.weighted(DEEDS))(client)

    def new_end(self, client, owner, address, receives, **given):
        """A link of a name of its own."""
        self.tags += 1
        terminus = {"address": address}
        if self.tens.one_in(4):
            terminus.update(durable=self.tens.below(3))
            terminus["expiry-policy"] = self.tens.pick(("link-detach", "session-end", "connection-close", "never"))
            terminus["timeout"] = self.tens.pick((0, 1, 100))
        terminus.update(given.pop("terminus", {}))
        names = ("source", "target") if receives else ("target", "source")
        given.update({names[0]: (names[0], terminus), names[1]: (names[1], {})})
        return client.attach(owner, "t%d" % self.tags, receives, given)

    def ten_attach(self, client):
        """A link to or from somewhere."""
        chance = self.tens
        if len(client.links) > 8:
            return
        if chance.one_in(2):
            exchange = chance.pick([name for name in EXCHANGES if name in self.broker.exchanges] or ["amq.topic"])
            address = chance.pick(("/queues/" + chance.pick(QUEUES), "/exchanges/%s/a.b" % exchange, "/exchanges/" + exchange, None))
            self.new_end(client, client.plain, address, False, snd_settle_mode=chance.below(3), rcv_settle_mode=chance.below(2))
            return
        queue = chance.pick(QUEUES)
        found = self.broker.queues.get(queue)
        if found is None or found.owner is not None:
            return
        given = {"snd_settle_mode": chance.below(2), "rcv_settle_mode": chance.below(2)}
        if found.is_stream:
            offset = chance.pick(("first", "next", "last", ("ulong", found.first_offset)))
            value = ("described", ("symbol", "rabbitmq:stream-offset-spec"), offset)
            given["terminus"] = {"filter": {("symbol", "rabbitmq:stream-offset-spec"): value}}
        elif chance.one_in(6):
            given["terminus"] = {"distribution-mode": "copy"}
        end = self.new_end(client, client.reader if found.is_stream else client.plain, "/queues/" + queue, True, **given)
        if end is not None:
            client.flow(end, chance.pick((0, 3, 20)))

    def some_end(self, client, owner, receives):
        """One of a client's links that can be used, or None."""
        ends = [end for end in client.links.values() if end.owner is owner and end.receives == receives and end.usable()]
        return self.tens.pick(ends) if ends else None

    def ten_send(self, client):
        """Messages, in one transfer or in several."""
        chance = self.tens
        end = self.some_end(client, client.plain, False)
        for _ in range(chance.pick((1, 1, 5))):
            if not client.may_send(end):
                return
            self.names += 1
            message = "%s.%dd-%d" % (client.name, end.handle, self.names)
            given = {"durable": chance.below(5) != 0, "priority": chance.pick((None, None, 3)), "ttl": chance.pick((None, None, 0, 100))}
            size = chance.pick((0, 20, 60, 200, 200, 1500 if self.large else 300))
            octets = message_of(message, size, given, chance.one_in(3), 5 if chance.one_in(6) and size else 0)
            to = chance.pick(("q1", "q2"))
            properties = composites.write("properties", {"to": "/queues/" + to, "subject": chance.pick(("a.b", "b"))})
            at = octets.index(b"\x00\x53\x74")
            octets = octets[:at] + properties + octets[at:]
            settled = end.settles if end.settles is not None else chance.one_in(2)
            expected = message if given["durable"] else None
            half = chance.one_in(8)
            second = end.second and not settled
            client.deliver(end, b"%d" % self.names, octets, (expected, second), chance.pick((400, 400, 50)), half, settled=settled or None)

    def ten_go_on(self, client):
        """The end of what is half sent."""
        for end in list(client.links.values()):
            if end.half and end.usable():
                aborted = self.tens.one_in(4)
                if aborted:
                    client.sent = {number: each for number, each in client.sent.items() if each[0] is not end or number != end.number}
                client.go_on(end, aborted)

    def ten_settle(self, client):
        """Outcomes for a range of deliveries."""
        chance = self.tens
        owner = chance.pick((client.plain, client.reader))
        if not owner.got:
            return
        at = chance.below(len(owner.got))
        end, first = owner.got[at]
        count = 1
        while at + count < len(owner.got) and count < 5 and owner.got[at + count][1] == first + count & 0xFFFFFFFF:
            count += 1
        state, settled = chance.weighted(OUTCOMES), chance.below(4) != 0
        client.dispose(True, first, first + count - 1 & 0xFFFFFFFF, settled or state is None, state)
        del owner.got[at : at + count]

    def ten_credit(self, client):
        """Credit for a receiver."""
        for owner in (client.plain, client.reader):
            end = self.some_end(client, owner, True)
            if end is not None:
                client.flow(end, self.tens.pick((0, 1, 10)), drain=self.tens.one_in(6) or None, echo=self.tens.one_in(6) or None)

    def ten_detach(self, client):
        """The end of a link."""
        keeps = (client.account.sending, client.account.receiving)  # which do not close
        ends = [end for end in client.links.values() if end.open and not end.leaving and end.owner not in keeps]
        if ends:
            client.detach(self.tens.pick(ends), self.tens.one_in(2))

    def ten_end_session(self, client):
        """The end of the session."""
        client.end_session()

    def ten_lose(self, client):
        """The link is lost, perhaps in the middle of a frame."""
        client.move(self.tens.pick((0, 1, 30, 200)))
        client.lose()

    # Exactly once

    def ten_account_attach(self, client):
        """An account comes (again), wherever it was before: what is attached elsewhere is stolen."""
        account = client.account
        if account.queue not in self.broker.queues:
            self.make_queue(account.queue, account.former)
            return
        owner = account.sending if self.tens.one_in(2) else account.receiving
        if owner.end is None or not owner.end.usable() or self.tens.one_in(8):
            owner.attach(client)

    def make_queue(self, name, former):
        """A queue of nobody's, and the end of former ones."""
        while former:
            self.broker.topology.delete_queue(None, former.pop(), False, False)
        try:
            declare(self.broker, name)
        except ProtocolError:
            return  # there is no place for another queue, or the log has trouble: later

    def ten_account_send(self, client):
        """A delivery of its sender."""
        client.account.sending.send(client)

    def ten_account_settle(self, client):
        """It settles."""
        client.account.sending.settle(client)

    def ten_account_decide(self, client):
        """Its receiver processes a message."""
        client.account.receiving.decide(client)

    def ten_account_credit(self, client):
        """It wants more."""
        client.account.receiving.credit(client)

    def ten_account_detach(self, client):
        """One of the two goes, without closing."""
        owner = self.tens.pick((client.account.sending, client.account.receiving))
        if owner.end is not None and owner.end.client is client and owner.end.usable():
            client.detach(owner.end, False)

    # Transactions

    def ten_work_attach(self, client):
        """The links of transactions."""
        if self.ledger.queue not in self.broker.queues:
            self.make_queue(self.ledger.queue, [])
            return
        ends = client.working.ends
        for name in ("coordinator", "to", "from"):
            if name not in ends or not ends[name].usable() and ends[name].handle not in client.links:
                if name == "coordinator":
                    target = ("coordinator", {})
                    self.tags += 1
                    end = client.attach(client.working, "t%d" % self.tags, False, {"target": target, "source": ("source", {})})
                else:
                    mode = self.tens.below(2)
                    end = self.new_end(client, client.working, "/queues/" + self.ledger.queue, name == "from", rcv_settle_mode=mode)
                if end is not None:
                    ends[name] = end
                    if name == "from":
                        client.flow(end, 4)
                return

    def ten_declare(self, client):
        """A transaction begins."""
        working = client.working
        end = working.ends.get("coordinator")
        if client.may_send(end) and len(working.works) < 3 and len(self.ledger.unknown()) < UNKNOWN_MAX:
            work = Work(client)
            self.ledger.works.append(work)
            octets = b"\x00\x53\x77" + composites.write("declare", {})
            client.deliver(end, b"w%d" % self.next_name(), octets, ("declare", work, None))

    def next_name(self):
        """Another number."""
        self.names += 1
        return self.names

    def some_work(self, client):
        """One of a client's transactions, or None."""
        works = [work for work in client.working.works if not work.asked]
        return self.tens.pick(works) if works else None

    def ten_post(self, client):
        """A message within a transaction."""
        work, end = self.some_work(client), client.working.ends.get("to")
        if work is None or not client.may_send(end) or len(work.posts) + work.pending > 4:
            return
        message = "%s.td-%d" % (client.name, self.next_name())
        octets = message_of(message, self.tens.pick((0, 30, 200)))
        state = ("transactional-state", {"txn-id": work.id})
        work.pending += 1
        client.deliver(end, message.encode(), octets, ("post", work, message), self.tens.pick((400, 400, 50)), state=state)

    def ten_retire(self, client):
        """An outcome within a transaction; or deliveries to come are acquired in it."""
        work, end, working = self.some_work(client), client.working.ends.get("from"), client.working
        if end is None or not end.usable():
            return
        if self.tens.one_in(3):
            acquires = work is not None and self.tens.one_in(2)
            properties = {("symbol", "txn-id"): work.id} if acquires else None
            client.flow(end, 4, properties=properties)
        elif work is not None and working.held:
            number, message = working.held.pop(self.tens.below(len(working.held)))
            outcome = self.tens.pick((ACCEPTED, ACCEPTED, ("released", {})))
            state = ("transactional-state", {"txn-id": work.id, "outcome": outcome})
            client.outbox += performative("disposition", role=True, first=number, settled=self.tens.one_in(2), state=state)
            if outcome == ACCEPTED:
                work.retired.append(message)

    def ten_discharge(self, client):
        """The end of a transaction, when it is known what it posts."""
        work, end = self.some_work(client), client.working.ends.get("coordinator")
        if work is None or work.pending or not client.may_send(end):
            return
        work.asked = True
        work.fails = self.tens.one_in(4)
        client.working.works.remove(work)
        octets = b"\x00\x53\x77" + composites.write("discharge", {"txn-id": work.id, "fail": work.fails})
        client.deliver(end, b"w%d" % self.next_name(), octets, ("discharge", work, None))

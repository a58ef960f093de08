"""A World whose clients speak AMQP 0-9-1 and AMQP 1.0, on the same queues and streams; what those of 1.0 are promised is counted
(accounts.py). What they do is drawn apart."""

from accounts import Account, Ledger
from chance import Chance
from client_1_0 import Client10
from deeds_1_0 import Deeds10, Plain, Reader, Working
from model import Wrong, state_of
from peer_1_0 import body_of
from world import World

ROUNDS = 200  # in which all that the accounts have open comes to its end


class World10(Deeds10, World):
    """One seed."""

    def __init__(self, seed, **given):
        self.tens = Chance(seed ^ 0x1A10)
        World.__init__(self, seed, **given)
        self.limits.update(consumer_count_max=40, channel_max=24, channel_count_max=64, queue_count_max=20, queue_share_max=19)
        self.counts.update(attached_again=0, resumed=0, exactly_once=0, transactions=0, errors_1_0=0)
        self.accounts = [Account(self, number) for number in range(2)]
        self.ledger = Ledger(self)

    def identify(self, message, body):
        """The body of a message of several data sections is that of all."""
        at = body.find(b"\x00\x53\x75")
        return World.identify(self, message, body if at < 0 else body[:at] + body_of(body[at:]))

    def connect(self):
        """One more client, of the one or the other."""
        return World.connect(self) if self.tens.one_in(3) else self.connect_1_0(self.tens.pick(self.accounts))

    def connect_1_0(self, account):
        """One more client of an account's container."""
        self.names += 1
        client = Client10(self, "c%d" % self.names, account.container)
        client.account = account
        client.plain, client.reader, client.working = Plain(self), Reader(self), Working(self, client)
        self.clients.append(client)
        return client

    def do(self, client, deed):
        """One deed of a client."""
        if not isinstance(client, Client10):
            World.do(self, client, deed)
            return
        for _ in range(self.tens.pick((1, 2, 4))):
            self.do_1_0(client)

    def use_stream(self, client):
        """Those of 1.0 have deeds of their own for streams."""
        if not isinstance(client, Client10):
            World.use_stream(self, client)

    def change_user(self, name):
        """The user that all log in as stays: the accounts come again."""
        World.change_user(self, "u0" if name == "guest" else name)

    def count_error(self, error):
        """A session or a connection was ended for an error: the broker's protocol error, or a client's mistake."""
        self.counts["errors_1_0"] += 1

    # Checks

    def check_recovered(self):
        """What was promised of transactions holds too."""
        is_doubtful = self.was_weak
        World.check_recovered(self)
        present = self.in_ledger()
        if not is_doubtful:
            self.ledger.check(present)
            return
        self.ledger.begin(set(present))
        for account in self.accounts:
            account.doubtful()

    def in_ledger(self):
        """The messages of the Ledger's queue."""
        mine = state_of(self.broker, self.ids, self.pushes, self.paged_ids)
        return [message for _, message in mine.queues.get(self.ledger.queue, ())]

    def is_counted(self, name):
        """True for a queue whose messages are accounted for."""
        return name[0] in "xt"

    def close_accounts(self):
        """All that the accounts have open comes to its end, and then it is counted."""
        for turn in range(ROUNDS):
            if not [account for account in self.accounts if account.is_open(self.broker)]:
                break
            self.let_log_grow()
            clients = [client for client in self.clients if isinstance(client, Client10)]
            for account in self.accounts:
                mine = [client for client in clients if client.account is account]
                if not mine:
                    self.connect_1_0(account)
                elif not mine[0].connection.reading:
                    mine[0].lose()  # what it would settle comes behind a message that waits for just that
                else:
                    self.go_on_with(account, mine[0], turn % 4 == 0)
            self.rest()
        if self.was_weak:
            return
        for account in self.accounts:
            if account.sending.known or account.receiving.holding:
                raise Wrong("%s does not come to its end: %s, %s" % (account.name, account.sending.known, account.receiving.holding))
            account.verify()
        self.ledger.check(self.in_ledger())

    def let_log_grow(self):
        """Streams that keep everything have filled the log: do as its sentence says (--disk-max), or senders wait for ever."""
        log = self.broker.journal.log
        if log.lacks_room() and log.size() * 4 >= log.size_max * 3:
            log.size_max *= 2

    def go_on_with(self, account, client, sends):
        """One step of an account's."""
        sending, receiving = account.sending, account.receiving
        if account.queue not in self.broker.queues:
            self.make_queue(account.queue, account.former)
        for owner in (sending, receiving):
            if owner.end is None or not owner.end.usable():
                owner.attach(client)
        stuck = sending.known and not sending.plan and not [each for each in sending.known.values() if each[3] is not None]
        if stuck and sending.end is not None and sending.end.usable():
            sending.end.client.detach(sending.end, False)
        if sending.end is not None and sending.plan and sends:
            sending.send(sending.end.client)
        if sending.end is not None:
            sending.settle(sending.end.client)
        if receiving.end is not None:
            for _ in range(len(receiving.holding)):
                receiving.decide(receiving.end.client, True)
            receiving.credit(receiving.end.client)

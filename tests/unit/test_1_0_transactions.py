"""Transactions of AMQP 1.0 (part 4): declare, post, retire, acquire, discharge; several at a time; what goes wrong."""

from memory_store import SlowStore, durable_broker
from peer_1_0 import Peer, data, declare, new_broker, performative

from leveret.core.amqp_1_0 import composites, types

VALUE = b"\x00\x53\x77"


class Client(Peer):
    """A peer with a coordinator on handle 9."""

    def __init__(self, broker):
        Peer.__init__(self, broker)
        self.number = 0
        self.attach("txn", 9, False, None, target=("coordinator", {"capabilities": ["amqp:local-transactions"]}))
        self.expect("flow")

    def heard(self):
        """The state of the next disposition; flows before it are dropped."""
        answers = [each for each in self.frames() if each[0] != "flow"]
        assert [each[0] for each in answers] == ["disposition"], answers
        return answers[0][1]["state"]

    def ask(self, name, **given):
        """The state of the disposition that answers a message to the coordinator."""
        fields = {key.replace("_", "-"): given[key] for key in given}
        self.transfer(9, VALUE + composites.write(name, fields))
        return self.heard()

    def begin_work(self):
        """The txn-id of a new transaction."""
        name, fields = self.ask("declare")
        assert name == "declared"
        return fields["txn-id"]

    def discharge(self, id_, fail=False):
        return self.ask("discharge", txn_id=id_, fail=fail)

    def transfer(self, handle, octets, **given):
        number, self.number = self.number, self.number + 1
        self.give(performative("transfer", 0, octets, handle=handle, delivery_id=number, delivery_tag=b"%d" % number, **given))
        return number

    def post(self, id_, body, handle=0):
        """Publish within a transaction: the state that answers it."""
        self.transfer(handle, data(body), state=("transactional-state", {"txn-id": id_}))
        return self.heard()

    def retire(self, id_, number, outcome="accepted", settled=True, last=None):
        self.settle(number, ("transactional-state", {"txn-id": id_, "outcome": (outcome, {})}), last, settled)


def new(count=0):
    """(client with a sender on handle 0, the queue of `count` messages)."""
    broker = new_broker()
    declare(broker)
    peer = Client(broker)
    peer.sender()
    for _ in range(count):
        peer.transfer(0, data(b"old"))
    peer.frames()
    return peer, broker.queues["q"]


def test_a_coordinator_says_what_it_can_do():
    """Section 4.5.1."""
    broker = new_broker()
    peer = Peer(broker)
    fields = peer.attach("txn", 9, False, None, target=("coordinator", {}))
    assert fields["target"] == ("coordinator", {"capabilities": ["amqp:local-transactions", "amqp:multi-txns-per-ssn"]})
    assert peer.expect("flow")[1]["link-credit"] > 0


def test_messages_posted_in_a_transaction_are_there_when_it_is_discharged_and_not_before():
    """Section 4.4.1."""
    peer, queue = new()
    id_ = peer.begin_work()
    for body in (b"a", b"b", b"c"):
        assert peer.post(id_, body) == ("transactional-state", {"txn-id": id_, "outcome": ("accepted", {})})
    assert queue.message_count() == 0
    assert peer.discharge(id_) == ("accepted", {})
    assert queue.message_count() == 3
    assert peer.discharge(id_)[1]["error"]["condition"] == "amqp:transaction:unknown-id"


def test_nothing_of_a_transaction_that_fails_takes_effect():
    """Section 4.3."""
    peer, queue = new(2)
    peer.receiver(credit=2)
    numbers = [number for number, _ in peer.messages()]
    id_ = peer.begin_work()
    peer.post(id_, b"a")
    peer.retire(id_, numbers[0])
    peer.retire(id_, numbers[1], settled=False)
    assert peer.discharge(id_, True) == ("accepted", {})
    assert queue.message_count() == 1 and queue.unsettled_count() == 1  # the one that its receiver has settled is back
    peer.settle(numbers[1], ("accepted", {}))
    assert queue.unsettled_count() == 0 and queue.message_count() == 1
    tables = peer.broker.tables
    assert tables.transactions_left == peer.broker.limits.transaction_count_max


def test_deliveries_retired_in_a_transaction_are_settled_with_it():
    """Section 4.4.2: those that the receiver left unsettled are settled by us when it is discharged."""
    peer, queue = new(4)
    peer.receiver(credit=4)
    numbers = [number for number, _ in peer.messages()]
    id_ = peer.begin_work()
    peer.retire(id_, numbers[0], "accepted", False, numbers[1])
    peer.retire(id_, numbers[2], "released")
    peer.retire(id_, numbers[3], "rejected")
    assert queue.unsettled_count() == 4 and peer.frames() == []
    peer.transfer(9, VALUE + composites.write("discharge", {"txn-id": id_}))
    told = [(fields["role"], fields["first"], fields["last"], fields["state"]) for _, fields, _, _ in peer.frames()]
    assert (False, numbers[0], numbers[1], ("accepted", {})) in told and len(told) == 2
    assert queue.unsettled_count() == 0 and queue.message_count() == 1


def test_several_transactions_at_a_time():
    """amqp:multi-txns-per-ssn."""
    peer, queue = new()
    ids = [peer.begin_work() for _ in range(3)]
    assert len(set(ids)) == 3
    for body in (b"0", b"1", b"2"):
        for id_ in ids:
            peer.post(id_, body)
    assert peer.discharge(ids[1], True) == ("accepted", {}) and queue.message_count() == 0
    assert peer.discharge(ids[2]) == ("accepted", {}) and queue.message_count() == 3
    assert peer.discharge(ids[0]) == ("accepted", {}) and queue.message_count() == 6


def test_a_message_without_a_route_is_released_when_it_is_posted():
    peer, queue = new()
    peer.sender("/exchanges/amq.direct/nobody", "other", 3)
    id_ = peer.begin_work()
    assert peer.post(id_, b"a", 3) == ("transactional-state", {"txn-id": id_, "outcome": ("released", {})})
    assert peer.discharge(id_) == ("accepted", {})


def test_a_queue_that_would_refuse_one_message_has_the_whole_discharge_rejected():
    """Section 4.3: where it cannot be completed, transaction-error rollback."""
    broker = new_broker()
    declare(broker)
    declare(broker, "short", {"x-max-length": 2, "x-overflow": "reject-publish"})
    peer = Client(broker)
    peer.sender()
    peer.sender("/queues/short", "short", 3)
    id_ = peer.begin_work()
    for handle in (0, 3, 3, 3):
        peer.post(id_, b"a", handle)
    name, fields = peer.discharge(id_)
    assert name == "rejected" and fields["error"]["condition"] == "amqp:transaction:rollback"
    assert [broker.queues[each].message_count() for each in ("q", "short")] == [0, 0]
    id_ = peer.begin_work()
    for handle in (0, 3, 3):
        peer.post(id_, b"a", handle)
    assert peer.discharge(id_) == ("accepted", {})
    assert [broker.queues[each].message_count() for each in ("q", "short")] == [1, 2]
    assert broker.tables.transactions_left == broker.limits.transaction_count_max


def test_what_was_acquired_in_a_transaction_that_fails_goes_back():
    """Section 4.4.3."""
    peer, queue = new(3)
    id_ = peer.begin_work()
    peer.receiver(credit=0)
    peer.credit(2, properties={("symbol", "txn-id"): id_})
    transfers = [fields for name, fields, _, _ in peer.frames() if name == "transfer"]
    assert [fields["state"] for fields in transfers] == [("transactional-state", {"txn-id": id_, "outcome": None})] * 2
    assert queue.unsettled_count() == 2
    peer.retire(id_, transfers[0]["delivery-id"])
    assert peer.discharge(id_, True) == ("accepted", {})
    assert queue.unsettled_count() == 0 and queue.message_count() == 3
    id_ = peer.begin_work()
    peer.credit(1, delivery_count=2, properties={("symbol", "txn-id"): id_})
    assert len(peer.messages()) == 1
    assert peer.discharge(id_) == ("accepted", {}) and queue.unsettled_count() == 1


def test_transactions_fail_with_their_coordinator_and_with_their_session():
    """Section 4.2."""
    for ending in ("detach", "end", "lost"):
        peer, queue = new(2)
        broker = peer.broker
        peer.receiver(credit=2)
        numbers = [number for number, _ in peer.messages()]
        id_ = peer.begin_work()
        peer.post(id_, b"a")
        peer.retire(id_, numbers[0], last=numbers[1])
        if ending == "detach":
            peer.give(performative("detach", handle=9, closed=True))
            peer.expect("detach")
        elif ending == "end":
            peer.give(performative("end"))
            peer.expect("end")
        else:
            peer.connection.received(0)
        broker.run()
        assert queue.message_count() == 2 and queue.unsettled_count() == 0
        assert broker.tables.transactions_left == broker.limits.transaction_count_max
        assert broker.counters["internal_errors"] == 0


def test_errors():
    """Each is told where it belongs: to the message, the link, or the session."""
    peer, queue = new(1)
    for octets in (
        VALUE + types.encode("hello"),
        b"",
        b"\x00\x53\x75" + types.encode(b"x"),
        VALUE,
        VALUE + composites.write("accepted", {}),
    ):
        peer.transfer(9, octets)
        name, fields = peer.heard()
        assert name == "rejected" and fields["error"]["description"]
    assert peer.ask("declare", global_id=b"x")[0] == "rejected"
    assert peer.discharge(b"nobody")[1]["error"]["condition"] == "amqp:transaction:unknown-id"
    assert peer.discharge(("uint", 3))[0] == "rejected"
    peer.transfer(9, VALUE + types.encode(b"x" * 800))
    assert peer.heard()[0] == "rejected"
    ids = [peer.begin_work() for _ in range(16)]
    assert peer.ask("declare")[1]["error"]["condition"] == "amqp:resource-limit-exceeded"
    assert peer.discharge(ids[0]) == ("accepted", {})
    peer.transfer(0, data(b"a"), state=("transactional-state", {"txn-id": b"nobody"}))
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:transaction:unknown-id"
    peer.receiver(credit=1)
    ((number, _),) = peer.messages()
    peer.retire(ids[1], number)
    peer.retire(ids[1], number)
    assert peer.expect("end")[1]["error"]["condition"] == "amqp:illegal-state"
    assert peer.broker.counters["internal_errors"] == 0
    assert queue.message_count() == 1


def test_a_message_of_several_transfers_is_posted_and_one_that_is_aborted_takes_nothing_else_with_it():
    peer, queue = new()
    id_ = peer.begin_work()
    state = ("transactional-state", {"txn-id": id_})
    octets = data(bytes(3000))
    number = peer.transfer(0, octets[:900], state=state, more=True)
    for at in (900, 1800, 2700):
        peer.give(performative("transfer", 0, octets[at : at + 900], handle=0, more=at < 2700))
    assert peer.heard()[0] == "transactional-state"
    peer.transfer(0, octets[:900], state=state, more=True)
    peer.give(performative("transfer", 0, b"", handle=0, aborted=True))
    assert peer.discharge(id_) == ("accepted", {}) and number >= 0
    assert queue.message_count() == 1
    assert peer.broker.tables.transactions_left == peer.broker.limits.transaction_count_max


def test_after_a_power_cut_a_discharge_is_there_whole_or_not_at_all_and_its_answer_waits_for_the_log():
    """Section 4.3, with a log: messages posted to two queues, and deliveries retired."""
    store = SlowStore()
    broker, _ = durable_broker(store)
    for name in ("q", "r"):
        declare(broker, name)
    peer = Client(broker)
    peer.sender()
    peer.sender("/queues/r", "r", 3)
    durable = {"durable": True}
    for _ in range(2):
        peer.transfer(0, data(b"old", durable))
        assert peer.heard() == ("accepted", {})
    peer.receiver(credit=2)
    numbers = [number for number, _ in peer.messages()]
    id_ = peer.begin_work()
    for handle in (0, 3, 3):
        peer.transfer(handle, data(b"new", durable), state=("transactional-state", {"txn-id": id_}))
    peer.retire(id_, numbers[0], last=numbers[1])
    assert len(peer.frames()) == 3
    store.stalls = True
    peer.transfer(9, VALUE + composites.write("discharge", {"txn-id": id_}))
    assert peer.frames() == []
    assert left_after(store.cut()) == [2, 0]
    store.stalls = False
    assert peer.heard() == ("accepted", {})
    assert left_after(store.cut()) == [1, 2]


def left_after(store):
    """How many messages the queues of a broker have that begins with what a power cut left."""
    broker, _ = durable_broker(store)
    return [broker.queues[name].message_count() for name in ("q", "r")]


def test_a_settled_message_to_a_coordinator_ends_its_link():
    """Section 4.2: the coordinator could not tell what came of it."""
    peer, _ = new()
    peer.transfer(9, VALUE + composites.write("declare", {}), settled=True)
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:not-allowed"


def test_a_broker_keeps_transactions_for_all_its_sessions_up_to_a_limit():
    """transaction_count_max: a declare beyond it is rejected (section 4.3), and has its place when another one is discharged."""
    peer = Client(new_broker(transaction_count_max=10))
    ids = []
    while len(ids) < 20:
        name, fields = peer.ask("declare")
        if name != "declared":
            break
        ids.append(fields["txn-id"])
    assert (name, fields["error"]["condition"]) == ("rejected", "amqp:resource-limit-exceeded") and 0 < len(ids) < 20
    assert peer.discharge(ids[0]) == ("accepted", {})
    assert peer.ask("declare")[0] == "declared"


def test_annotations_that_an_outcome_adds_count_as_what_a_transaction_keeps():
    """transaction_count_max: too many end the session (section 4.4.2), which gives back what it had."""
    broker = new_broker(transaction_count_max=12)
    declare(broker)
    peer = Client(broker)
    peer.sender()
    peer.transfer(0, data(b"old"))
    peer.frames()
    peer.receiver(credit=1)
    ((number, _),) = peer.messages()
    id_ = peer.begin_work()
    added = {"message-annotations": {("symbol", "x-note"): "x" * 700}, "delivery-failed": True}
    peer.settle(number, ("transactional-state", {"txn-id": id_, "outcome": ("modified", added)}))
    assert peer.expect("end")[1]["error"]["condition"] == "amqp:resource-limit-exceeded"
    assert broker.queues["q"].message_count() == 1 and broker.queues["q"].unsettled_count() == 0
    assert broker.tables.transactions_left == 12

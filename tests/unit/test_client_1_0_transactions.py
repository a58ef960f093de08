"""The AMQP 1.0 client's transactions (part 4), each frame of a peer's by hand."""

from test_client_1_0 import feed, says, sent
from test_client_links_1_0 import SOURCE, attached_receiver, attached_sender, delivery, disposition, flow

from leveret.core.amqp_1_0 import composites, types
from leveret.core.amqp_1_0.client import transactions
from leveret.core.amqp_1_0.client.message import data_head

ID = b"txn-1"


def controlled():
    """(recorder, client, controller) with credit, and a sender beside it."""
    events, client, sender = attached_sender()
    controller = transactions.controller(client.session)
    assert controller.attach()
    ((name, fields, _),) = sent(client)
    assert name == "attach" and fields["target"][0] == "coordinator"
    assert fields["target"][1]["capabilities"] == ["amqp:local-transactions"] and fields["role"] is False
    target = ("coordinator", {"capabilities": ["amqp:local-transactions", "amqp:multi-txns-per-ssn"]})
    feed(client, says("attach", name=controller.name, handle=4, role=True, source=SOURCE, target=target))
    feed(client, flow(handle=4, delivery_count=0, link_credit=10))
    events.seen = []
    return events, client, controller, sender


def request(client):
    """The message to the coordinator that is sent now: (performative's name, fields)."""
    ((name, fields, payload),) = sent(client)
    assert name == "transfer" and not fields["settled"]
    section, end = types.decode(payload, 0, len(payload))
    assert section[:2] == ("described", ("ulong", 0x77)) and end == len(payload)
    return composites.composite(section[2])


def test_a_transaction_is_declared_and_discharged_4_2_and_4_3():
    events, client, controller, _ = controlled()
    assert controller.declare() == 1
    name, fields = request(client)
    assert name == "declare" and fields["global-id"] is None
    feed(client, disposition(0, state=("declared", {"txn-id": ID})))
    assert events.seen == [("settled", 1, "declared", {"txn-id": ID})]
    for fail in (False, True):
        assert controller.discharge(ID, fail)
        name, fields = request(client)
        assert name == "discharge" and fields["txn-id"] == ID and bool(fields["fail"]) == fail
    feed(client, disposition(1) + disposition(2, state=("rejected", {"error": {"condition": "amqp:transaction:rollback"}})))
    assert [each[:3] for each in events.seen[1:]] == [("settled", 2, "accepted"), ("settled", 3, "rejected")]


def test_what_is_sent_in_one_says_so_in_its_first_transfer_and_its_outcome_is_provisional_4_4_2():
    events, client, _, sender = controlled()
    sender.work = transactions.state(ID)
    assert sender.send(b"", bytes(2000)) == 1
    sender.work = b""
    transfers = [fields for _, fields, _ in sent(client)]
    assert transfers[0]["state"] == ("transactional-state", {"txn-id": ID, "outcome": None})
    assert [fields.get("state") for fields in transfers[1:]] == [None, None] and [each["more"] for each in transfers] == [True, True, False]
    assert sender.send(b"", b"outside") == 2
    assert [fields.get("state") for _, fields, _ in sent(client)] == [None]
    feed(client, disposition(0, state=("transactional-state", {"txn-id": ID, "outcome": ("accepted", {})})))
    assert events.seen == [("settled", 1, "accepted", {})]


def test_what_is_settled_in_one_says_so_4_4_3():
    events, client, receiver = attached_receiver()
    feed(client, delivery(5, data_head(1) + b"a"))
    sent(client)
    assert receiver.settle(events.messages[0], *transactions.outcome(ID, "rejected", {"error": {"condition": "amqp:not-allowed"}}))
    ((name, fields, _),) = sent(client)
    assert name == "disposition" and fields["settled"] and fields["state"][0] == "transactional-state"
    given = fields["state"][1]
    assert given["txn-id"] == ID and given["outcome"][0] == "rejected"

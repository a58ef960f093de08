"""The AMQP 1.0 client's links (part 2, sections 2.6 and 2.7; part 3, sections 3.2 and 3.4): attach, credit, transfers, outcomes, detach."""

from test_client_1_0 import OPEN, feed, opened, says, sent

from leveret.core.amqp_1_0 import composites, types
from leveret.core.amqp_1_0.client import tokens
from leveret.core.amqp_1_0.client.link import offset_filter, selector, within
from leveret.core.amqp_1_0.client.message import data_head, message_head
from leveret.core.errors import ProtocolError

ACCEPTED = ("accepted", {})
TARGET = ("target", {"address": "q"})
SOURCE = ("source", {"address": "q"})


def flow(**fields):
    """A flow of the peer's."""
    given = {"next_incoming_id": 0, "incoming_window": 100, "next_outgoing_id": 5, "outgoing_window": 100}
    given.update(fields)
    return says("flow", **given)


def attached_sender(credit=10, given=None, **options):
    """(recorder, client, sender) with a Sender that has credit."""
    events, client = opened(**options)
    sender = client.session.sender("q", **(given or {}))
    assert sender.attach()
    feed(client, says("attach", name=sender.name, handle=3, role=True, source=SOURCE, target=TARGET))
    feed(client, flow(handle=3, delivery_count=0, link_credit=credit))
    sent(client)
    assert events.seen[0] == ("attached", "leveret-0")
    events.seen = []
    return events, client, sender


def attached_receiver(prefetch=4, second=False, **options):
    """(recorder, client, receiver) with a Receiver."""
    events, client = opened(**options)
    receiver = client.session.receiver("q", prefetch=prefetch, second=second)
    receiver.attach()
    sent(client)
    feed(client, says("attach", name=receiver.name, handle=2, role=False, source=SOURCE, target=TARGET, initial_delivery_count=7))
    events.seen = []
    return events, client, receiver


def delivery(number, octets, **fields):
    """A transfer of the peer's."""
    given = {"handle": 2, "delivery_id": number, "delivery_tag": b"t%d" % number, "message_format": 0, "payload": octets}
    given.update(fields)
    return says("transfer", **given)


def disposition(first, last=None, state=ACCEPTED, settled=True, role=True):
    """A disposition of the peer's."""
    given = {"role": role, "first": first, "settled": settled}
    if last is not None:
        given["last"] = last
    if state is not None:
        given["state"] = state
    return says("disposition", **given)


BODY = b"\x00\x53\x75\xa0\x05hello"  # one data section


def test_the_octets_of_attach_2_7_3():
    events, client = opened()
    client.session.sender("q", name="s").attach()
    symbols = (b"amqp:accepted:list", b"amqp:rejected:list", b"amqp:released:list", b"amqp:modified:list")
    outcomes = b"\xe0\x4e\x04\xa3" + b"".join([bytes((len(each),)) + each for each in symbols])
    source = b"\x00\x53\x28\xc0\x5a\x0a" + b"\x40" * 9 + outcomes
    target = b"\x00\x53\x29\xc0\x04\x01\xa1\x01q"
    fields = b"\xa1\x01s\x43\x42\x50\x00\x40" + source + target + b"\x40\x40\x43"
    body = b"\x00\x53\x12\xc0" + bytes((len(fields) + 1, 10)) + fields
    assert bytes(client.pending()) == b"\x00\x00\x00" + bytes((8 + len(body),)) + b"\x02\x00\x00\x00" + body


def test_the_octets_of_a_message_2_7_5_and_3_2():
    events, client, sender = attached_sender()
    head = message_head({"durable": True, "subject": "k"}, {"a": ("int", 1)})
    header = b"\x00\x53\x70\xc0\x02\x01\x41"
    assert head == header + b"\x00\x53\x73\xc0\x07\x04\x40\x40\x40\xa1\x01k\x00\x53\x74\xc1\x06\x02\xa1\x01a\x54\x01"
    assert sender.send(head, b"hello") == 1
    transfer = b"\x00\x53\x14\xc0\x11\x06\x52\x00\x70\x00\x00\x00\x00\xa0\x04\x00\x00\x00\x01\x43\x42\x42"
    octets = b"\x02\x00\x00\x00" + transfer[:4] + bytes((len(transfer) - 5,)) + transfer[5:] + head + BODY
    assert bytes(client.pending()) == b"\x00\x00\x00" + bytes((len(octets) + 4,)) + octets


def test_a_message_of_any_size_in_frames_that_the_peer_takes_2_6_14():
    for size in (0, 1, 200, 959, 960, 961, 2000, 10000):
        events, client, sender = attached_sender()
        body = bytes([place % 251 for place in range(size)])
        assert sender.send(b"", body) == 1
        parts = sent(client)
        assert parts[0][1]["delivery-id"] == 0 and parts[0][1]["delivery-tag"] == b"\x00\x00\x00\x01"
        assert [part[1]["more"] for part in parts] == [True] * (len(parts) - 1) + [False]
        assert [part[1].get("delivery-id") for part in parts[1:]] == [None] * (len(parts) - 1)
        assert b"".join([part[2] for part in parts]) == data_head(size) + body
        assert max([len(part[2]) for part in parts]) <= 1024 - 30 and client.session.next_outgoing == len(parts)


def test_a_message_waits_for_the_sessions_window_2_5_6():
    events, client, sender = attached_sender()
    feed(client, flow(incoming_window=2))
    assert sender.send(b"", bytes(3000)) == 1
    assert len(sent(client)) == 2 and client.session.streaming is sender
    assert sender.send(b"", b"next") == 0 and not sender.leave()
    feed(client, flow(next_incoming_id=2, incoming_window=50))
    assert [each[1]["more"] for each in sent(client)] == [True, True, False]
    assert sender.send(b"", b"next") == 2


def test_credit_is_counted_from_the_peers_delivery_count_2_6_7():
    events, client, sender = attached_sender(credit=2)
    assert [sender.send(b"", b"x") for _ in range(3)] == [1, 2, 0]
    feed(client, flow(handle=3, delivery_count=1, link_credit=2))
    assert events.seen == [("credited", 1)] and [sender.send(b"", b"x") for _ in range(2)] == [3, 0]
    feed(client, flow(handle=3, delivery_count=1, link_credit=0))
    assert sender.credit == 0
    sent(client)
    feed(client, flow(handle=3, delivery_count=3, link_credit=4, drain=True))
    assert sender.delivery_count == 7 and sender.credit == 0
    ((name, fields, _),) = sent(client)
    assert (name, fields["delivery-count"], fields["link-credit"], fields["drain"]) == ("flow", 7, 0, True)
    feed(client, flow(handle=3, delivery_count=7, link_credit=1, echo=True))
    assert sent(client)[0][1]["link-credit"] == 1


def test_a_drain_within_a_message_uses_the_credit_up_behind_it_2_6_7():
    events, client, sender = attached_sender(credit=5, send_size=1024)
    assert sender.send(b"", bytes(3000)) == 1
    feed(client, flow(handle=3, delivery_count=0, link_credit=5, drain=True))
    told = []
    for now in range(20):
        told += sent(client)
        client.tick(now)
    flows = [fields for name, fields, _ in told if name == "flow"]
    assert [(each["delivery-count"], each["link-credit"], each["drain"]) for each in flows] == [(1, 4, True), (5, 0, True)]
    assert told[-1][0] == "flow" and [fields["more"] for name, fields, _ in told if name == "transfer"][-1] is False
    assert sender.credit == 0 and sender.send(b"", b"x") == 0
    feed(client, flow(handle=3, delivery_count=5, link_credit=1))
    assert sender.send(b"", b"x") == 2


def test_serial_numbers_wrap_rfc_1982():
    events, client, sender = attached_sender()
    client.session.next_delivery = sender.delivery_count = 0xFFFFFFFF
    feed(client, flow(handle=3, delivery_count=0xFFFFFFFF, link_credit=5))
    assert [sender.send(b"", b"x") for _ in range(3)] == [1, 2, 3] and sender.delivery_count == 2
    events.seen = []
    feed(client, disposition(0xFFFFFFFF, 1))
    assert [each[1] for each in events.seen] == [1, 2, 3]
    assert within({0xFFFFFFFE: 0, 1: 0, 5: 0}, 0xFFFFFFF0, 4) == [0xFFFFFFFE, 1]


def test_each_outcome_is_told_once_2_7_6_and_3_4():
    events, client, sender = attached_sender()
    assert [sender.send(b"", b"x") for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    sent(client)
    error = {"condition": "amqp:not-allowed", "description": "no"}
    feed(client, disposition(1, 1, ("rejected", {"error": error})) + disposition(0) + disposition(0, 1))
    feed(client, disposition(2, 2, ("received", {"section-number": 0, "section-offset": 0}), False))
    feed(client, disposition(2, 2, ("released", {})) + disposition(3, 3, ("modified", {"delivery-failed": True})) + disposition(4, 4, None))
    assert [each[:3] for each in events.seen] == [
        ("settled", 2, "rejected"),
        ("settled", 1, "accepted"),
        ("settled", 3, "released"),
        ("settled", 4, "modified"),
        ("settled", 5, ""),
    ]
    assert events.seen[0][3]["error"]["condition"] == "amqp:not-allowed" and events.seen[3][3]["delivery-failed"] is True
    assert sent(client) == []
    feed(client, disposition(0, 0x7FFFFFFF, ACCEPTED, False))
    assert events.seen[-1] == ("settled", 6, "accepted", {}) and sender.unsettled == 0
    ((name, fields, _),) = sent(client)
    assert name == "disposition" and fields["settled"] and not fields["role"] and fields["last"] == 0x7FFFFFFF
    feed(client, disposition(5, 4))
    assert client.closed and "from 5 to 4" in events.seen[-1][2]


def test_no_more_unsettled_than_the_window():
    events, client, sender = attached_sender(window=2)
    assert [sender.send(b"", b"x") for _ in range(3)] == [1, 2, 0]
    feed(client, disposition(0))
    assert sender.send(b"", b"x") == 3


def test_presettled_messages_need_no_outcome_2_6_12():
    events, client, sender = attached_sender(given={"settled": True}, window=1)
    assert [sender.send(b"", b"x") for _ in range(3)] == [1, 2, 3]
    assert [each[1]["settled"] for each in sent(client)] == [True] * 3 and client.session.unsettled == {}


def test_a_message_that_is_larger_than_the_peer_takes_2_7_3():
    events, client = opened()
    sender = client.session.sender("q")
    sender.attach()
    feed(client, says("attach", name=sender.name, handle=0, role=True, source=SOURCE, target=TARGET, max_message_size=100))
    feed(client, flow(handle=0, delivery_count=0, link_credit=9))
    try:
        sender.send(b"", bytes(100))
    except ValueError as error:
        assert str(error) == "a message of 105 octets; the peer takes 100"
    else:
        raise AssertionError("it was sent")
    assert sender.send(b"", bytes(95)) == 1


def test_a_refused_address_2_6_3():
    for role, terminus in ((True, {"source": SOURCE}), (False, {"target": TARGET})):
        events, client = opened()
        link = client.session.sender("q") if role else client.session.receiver("q")
        link.attach()
        feed(client, says("attach", name=link.name, handle=0, role=role, initial_delivery_count=0, **terminus))
        assert events.seen == [] and link.state == "refused"
        sent(client)
        error = {"condition": "amqp:not-found", "description": "no node 'q'"}
        feed(client, says("detach", handle=0, closed=True, error=error))
        assert events.seen == [("detached", "leveret-0", "amqp:not-found", "no node 'q'")] and link.state == "detached"
        assert [each[0] for each in sent(client)] == ["detach"]
        assert link.attach()


def test_a_terminus_that_is_none_ends_the_connection_2_7_3():
    for given in (5, True, "text", [], {}, ("uint", 1), ("accepted", {}), ("described", ("ulong", 0x99), [])):
        for end in ("source", "target"):
            events, client = opened()
            sender = client.session.sender("q")
            sender.attach()
            sent(client)
            termini = {"source": SOURCE, "target": TARGET}
            termini[end] = given
            feed(client, says("attach", name=sender.name, handle=1, role=True, **termini))
            assert client.closed and events.seen[-1][0] == "ended" and events.seen[-1][1] == "amqp:decode-error", (given, events.seen)


def test_detach_of_both_sides_2_6_6():
    events, client, sender = attached_sender()
    sender.send(b"", b"x")
    sent(client)
    assert sender.leave()
    assert sent(client) == [("detach", {"handle": 0, "closed": True}, b"")]
    feed(client, flow(handle=3, delivery_count=0, link_credit=1) + says("detach", handle=3, closed=True))
    assert events.seen == [("detached", "leveret-0", "", "")] and client.session.unsettled == {} and sender.state == "detached"
    events, client, sender = attached_sender()
    feed(client, says("detach", handle=3, closed=True, error={"condition": "amqp:resource-deleted"}))
    assert events.seen == [("detached", "leveret-0", "amqp:resource-deleted", "")]
    assert sent(client) == [("detach", {"handle": 0, "closed": True}, b"")]
    try:
        sender.send(b"", b"x")
        raise AssertionError("sent on a link that is gone")
    except ValueError as error:
        assert str(error) == "the link is detached"


def test_what_is_unsettled_when_the_stream_ends_has_its_link_told():
    events, client, sender = attached_sender()
    sender.send(b"", b"x")
    client.received(0)
    assert events.seen == [
        ("detached", "leveret-0", "", "the peer closed the stream"),
        ("ended", "", "the peer closed the stream"),
    ]


def test_deliveries_and_credit_2_6_7():
    events, client, receiver = attached_receiver(prefetch=4)
    ((name, fields, _),) = sent(client)
    assert (name, fields["handle"], fields["delivery-count"], fields["link-credit"]) == ("flow", 0, 7, 4)
    feed(client, delivery(0, BODY) + delivery(1, BODY, settled=True))
    assert events.seen == [("delivered", 0, b"hello"), ("delivered", 1, b"hello")]
    assert receiver.credit == 2 and receiver.delivery_count == 9 and sent(client) == []
    assert receiver.settle(events.messages[0])
    disposition_, flow_ = sent(client)
    assert disposition_[1] == {"role": True, "first": 0, "settled": True, "batchable": False, "state": ("accepted", {})}
    assert flow_[1]["link-credit"] == 4 and flow_[1]["delivery-count"] == 9
    assert receiver.settle(events.messages[1]) and sent(client) == []


def test_each_outcome_that_a_receiver_gives_3_4():
    events, client, receiver = attached_receiver(prefetch=10)
    feed(client, b"".join([delivery(number, BODY) for number in range(3)]))
    sent(client)
    receiver.settle(events.messages[0], "released")
    receiver.settle(events.messages[1], "rejected", {"error": {"condition": "amqp:internal-error"}})
    receiver.settle(events.messages[2], "modified", {"delivery-failed": True, "undeliverable-here": True})
    states = [each[1]["state"] for each in sent(client)]
    assert [state[0] for state in states] == ["released", "rejected", "modified"]
    assert states[1][1]["error"]["condition"] == "amqp:internal-error" and states[2][1]["undeliverable-here"] is True


def test_a_receiver_says_how_deliveries_are_to_come_2_8_2():
    for settled, mode in ((False, 2), (True, 1)):
        _, client = opened()
        client.session.receiver("q", settled=settled).attach()
        assert [fields["snd-settle-mode"] for name, fields, *_ in sent(client) if name == "attach"] == [mode]


def test_receiver_settle_mode_second_2_6_12():
    events, client, receiver = attached_receiver(second=True)
    feed(client, delivery(0, BODY))
    sent(client)
    receiver.settle(events.messages[0])
    assert sent(client)[0][1]["settled"] is False and receiver.waiting == {0: "accepted"}
    feed(client, disposition(0, role=False))
    assert events.seen[-1] == ("settled", 0, "accepted", {}) and receiver.waiting == {}


def test_a_delivery_in_transfers_of_any_size_2_6_14():
    octets = message_head({"message-id": "m"}, {"n": 5}, {"x-opt-a": "b"}) + data_head(300) + bytes(300)
    for size in range(1, len(octets) + 1, 7):
        events, client, receiver = attached_receiver()
        for at in range(0, len(octets), size):
            first = {"delivery_tag": b"t0", "delivery_id": 0} if at == 0 else {"delivery_tag": None, "delivery_id": None}
            feed(client, delivery(0, octets[at : at + size], more=at + size < len(octets), **first))
        (message,) = events.messages
        assert message.body == bytes(300) and message.octets == octets and message.tag == b"t0"
        assert message.properties == {"message-id": "m"} and message.application_properties == {"n": 5}
        assert message.annotations == {"x-opt-a": "b"} and message.header == {}


def test_a_delivery_at_every_split_of_its_octets():
    octets = delivery(0, message_head({"durable": True}) + BODY, more=True) + delivery(0, b"\x00\x53\x75\xa0\x01!", delivery_id=None)
    for step in range(1, len(octets) + 1):
        events, client, receiver = attached_receiver()
        feed(client, octets, step)
        assert events.seen == [("delivered", 0, b"hello!")]


def test_an_aborted_delivery_is_none_2_7_5():
    events, client, receiver = attached_receiver()
    feed(client, delivery(0, BODY, more=True) + delivery(0, b"", delivery_id=None, aborted=True) + delivery(1, BODY))
    assert events.seen == [("delivered", 1, b"hello")]


def test_a_message_that_is_too_large_is_passed_over_and_told():
    events, client, receiver = attached_receiver(message_size_max=20)
    feed(client, delivery(0, bytes(15), more=True) + delivery(0, bytes(6), delivery_id=None) + delivery(1, BODY))
    assert events.seen == [("refused", 0, "a message of 21 octets where 20 are the most"), ("delivered", 1, b"hello")]
    assert events.messages[0].body is None and receiver.settle(events.messages[0], "rejected")


def test_what_a_sender_may_not_do_2_6():
    for octets in (
        delivery(0, BODY, delivery_id=None),
        delivery(0, BODY, more=True) + delivery(1, BODY),
        b"".join([delivery(number, BODY) for number in range(9)]),
        delivery(0, BODY, handle=9),
    ):
        events, client, receiver = attached_receiver(prefetch=4)
        feed(client, octets)
        assert client.closed, octets
    events, client, sender = attached_sender()
    feed(client, delivery(0, BODY, handle=3))
    assert client.closed and events.seen[-1][1] == "amqp:illegal-state"


def test_the_window_of_incoming_transfers_is_opened_again_2_5_6():
    events, client, receiver = attached_receiver(prefetch=3000)
    sent(client)
    told = []
    for number in range(1100):
        feed(client, delivery(number, BODY))
        told += sent(client)
    assert len(told) == 1 and told[0][1]["incoming-window"] == 2048 and told[0][1]["next-incoming-id"] == 5 + 1025


def test_drain_2_6_7():
    events, client, receiver = attached_receiver(prefetch=0)
    assert sent(client) == []
    receiver.add_credit(5, True)
    assert sent(client)[0][1]["drain"] is True
    feed(client, delivery(0, BODY) + flow(handle=2, delivery_count=12, link_credit=0, drain=True))
    assert events.seen == [("delivered", 0, b"hello"), ("drained", "leveret-0")] and receiver.credit == 0


def test_filters_and_other_options_of_a_terminus_3_5():
    events, client = opened()
    options = {"filter": selector("a = 1"), "durable": 2, "expiry-policy": "never", "capabilities": ["queue"], "distribution-mode": "copy"}
    client.session.receiver("q", reply_to="here", **options).attach()
    ((_, fields, _),) = sent(client)
    source = fields["source"][1]
    assert source["filter"] == selector("a = 1") and source["durable"] == 2 and source["capabilities"] == ["queue"]
    assert fields["target"][1]["address"] == "here"
    assert types.decode(types.encode(offset_filter("x")), 0, 200)[0] == offset_filter("x")
    client.session.receiver(None, dynamic=True).attach()
    assert sent(client)[0][1]["source"][1]["dynamic"] is True


def test_bodies_that_are_not_one_data_section_3_2():
    for octets, body in (
        (BODY + BODY, b"hellohello"),
        (types.encode(("described", ("ulong", 0x77), "text")), "text"),
        (types.encode(("described", ("ulong", 0x76), [1, 2])) * 2, [1, 2, 1, 2]),
        (b"", b""),
    ):
        events, client, receiver = attached_receiver()
        feed(client, delivery(0, octets))
        assert events.seen == [("delivered", 0, body)]
    for octets in (types.encode("loose"), composites.write("accepted", {})):
        events, client, receiver = attached_receiver()
        feed(client, delivery(0, BODY))
        message = events.messages[0]
        message.octets, message._sections = octets, None
        try:
            raise AssertionError(message.properties)
        except ProtocolError as error:
            assert "part 3 does not have" in error.text


def test_a_shared_access_signature():
    # As Service Bus documents it: HMAC-SHA-256 of the quoted resource, a line end and the expiry; this one was made with CPython's hmac,
    # base64 and urllib.parse.
    token = tokens.sas_token("amqps://ns.servicebus.windows.net/q 1", "Root", "c2VjcmV0", 1700000000)
    place = "amqps%3A%2F%2Fns.servicebus.windows.net%2Fq%201"
    assert token.startswith("SharedAccessSignature sr=%s&sig=" % place) and token.endswith("&se=1700000000&skn=Root")
    assert token.split("&sig=")[1].split("&")[0] == "JmB9k7uy9uQf1c%2FOTGvlaWhO%2B2xJEdjDMD3mvDBRaAo%3D"


def test_a_token_is_put_and_answered():
    events, client, receiver = attached_receiver()
    request = tokens.put_token("the token", "amqps://ns/q", 7, "cbs-answers")
    answer = message_head({"correlation-id": "7"}, {"status-code": ("int", 202), "status-description": "Accepted"})
    feed(client, delivery(0, request) + delivery(1, answer))
    asked, told = events.messages
    assert asked.body == "the token" and asked.properties["reply-to"] == "cbs-answers"
    assert asked.application_properties == {
        "operation": "put-token",
        "type": "servicebus.windows.net:sastoken",
        "name": "amqps://ns/q",
    }
    assert tokens.answer(told) == (7, 202, "Accepted")


def test_links_beside_each_other():
    events, client, sender = attached_sender()
    receiver = client.session.receiver("q", prefetch=2)
    receiver.attach()
    feed(client, says("attach", name=receiver.name, handle=2, role=False, source=SOURCE, target=TARGET, initial_delivery_count=0))
    sent(client)
    sender.send(b"", bytes(5000))
    feed(client, delivery(0, BODY))
    receiver.settle(events.messages[0])
    names = [each[0] for each in sent(client)]
    assert "disposition" in names and names.count("transfer") == 7
    assert OPEN and client.session.links == [sender, receiver]

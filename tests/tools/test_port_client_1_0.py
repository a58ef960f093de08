"""The blocking AMQP 1.0 client (ports/client_1_0.py, transactions_1_0.py, requests_1_0.py) against a broker in this process, whose clock
stands still unless a test moves it. With other brokers: tests/interop_1_0/test_leveret_client.py."""

import pytest
from inside import Clock, Stream, new_broker

from leveret.core.amqp_1_0.client import tokens
from leveret.ports import client_1_0 as module
from leveret.ports import client_errors as errors
from leveret.ports import moving, requests_1_0
from leveret.ports.client import Connection as Connection091
from leveret.ports.url_1_0 import read_url_1_0

TIMEOUT_MS = 500
URL = "amqp://guest:guest@the.broker/"
SIZES = {"receive_size": 16384, "send_size": 16384, "message_size_max": 100000, "window": 64}
LOGIN = {"user": "guest", "password": "guest", "virtual_host": "/"}


@pytest.fixture
def clock(monkeypatch):
    moment = Clock()
    for each in (module, moving, requests_1_0):
        monkeypatch.setattr(each, "now_ms", moment)
    return moment


def connected(broker, url=URL, **more):
    """(client, its stream) of a broker in this process."""
    stream = Stream(broker)
    place = read_url_1_0(url)
    return module.Connection(stream, TIMEOUT_MS, {**SIZES, "container": "inside", **place.login(), **more}, place), stream


@pytest.fixture
def inside(clock):
    """(client, its stream, the broker), which has a queue q."""
    broker = new_broker()
    older = Stream(broker)
    client_0_9_1 = Connection091(older, TIMEOUT_MS, {"receive_size": 4096, "send_size": 4096, **LOGIN})
    client_0_9_1.queue_declare("q")
    client_0_9_1.close()
    made, stream = connected(broker)
    yield made, stream, broker
    stream.close()


def held(broker):
    return broker.queues["q"].message_count()


def test_a_message_comes_as_it_was_sent(inside):
    client, _, broker = inside
    sender = client.sender("q")
    assert sender.send(b"one", {"subject": "s", "message-id": "m"}, {"n": 7}, {"x-a": "b"}) == 1
    assert sender.send(b"two") == 2 and held(broker) == 2
    receiver = client.receiver("q")
    first, second = client.poll(100)
    assert (first.body, second.body) == (b"one", b"two") and first.link is receiver.link
    assert first.properties["subject"] == "s" and first.properties["message-id"] == "m" and first.application_properties == {"n": 7}
    receiver.accept(first)
    receiver.accept(second)
    client.step(0)
    assert held(broker) == 0


@pytest.mark.parametrize(
    ("name", "arguments", "left"),
    [
        ("accept", (), 0),
        ("release", (), 1),
        ("reject", ("amqp:internal-error", "no"), 0),
        ("settle", ("modified", {"delivery-failed": True}), 1),
    ],
)
def test_each_outcome_does_what_part_3_section_4_says(inside, name, arguments, left):
    """3.4.2 to 3.4.5: what is released or modified is there for others, what is accepted or rejected is gone."""
    client, _, broker = inside
    client.sender("q").send(b"x")
    receiver = client.receiver("q", 1)
    (message,) = client.poll(100)
    getattr(receiver, name)(message, *arguments)
    receiver.close()
    client.step(0)
    assert held(broker) == left


def test_a_rejected_message_says_why_to_the_queue_of_dead_letters(inside):
    client, _, broker = inside
    seen = []
    client.sender("q").send(b"x")
    receiver = client.receiver("q", 1)
    (message,) = client.poll(100)
    settle = receiver.link.settle
    receiver.link.settle = lambda *given: seen.append(given) or settle(*given)
    receiver.reject(message, "app:broken", "it cannot be read")
    assert seen == [(message, "rejected", {"error": {"condition": "app:broken", "description": "it cannot be read"}})]


def test_an_outcome_waits_for_room_in_the_send_buffer_and_is_given_once(inside):
    client, _, broker = inside
    client.sender("q").send(b"x")
    receiver = client.receiver("q", 1)
    (message,) = client.poll(100)
    settle, tries = receiver.link.settle, []

    def later(*given):
        tries.append(given[1])
        return len(tries) > 2 and settle(*given)

    receiver.link.settle = later
    receiver.accept(message)
    client.step(0)
    assert tries == ["accepted"] * 3 and held(broker) == 0


def test_a_link_that_is_over_neither_sends_nor_settles(inside):
    client, _, broker = inside
    sender = client.sender("q")
    sender.send(b"x")
    receiver = client.receiver("q", 1)
    (message,) = client.poll(100)
    sender.close()
    receiver.close()
    with pytest.raises(errors.LinkDetached, match="the link is over"):
        sender.send(b"y")
    with pytest.raises(errors.LinkDetached, match="the link is over"):
        receiver.accept(message)
    assert held(broker) == 1 and sender.link.state == receiver.link.state == "detached"
    assert client.sender("q").send(b"y") == 1


def test_a_link_that_the_broker_refuses_is_told_with_its_condition(inside):
    client, _, _ = inside
    with pytest.raises(errors.LinkDetached, match="amqp:not-found") as told:
        client.sender("nothing")
    assert told.value.code == "amqp:not-found" and "nothing" in told.value.text
    assert client.sender("q").send(b"still here") == 1


def test_a_link_whose_queue_goes_is_told_once(inside):
    client, _, broker = inside
    receiver = client.receiver("q")
    broker.topology.drop_queue(broker.queues["q"])
    with pytest.raises(errors.LinkDetached, match=receiver.link.name):
        client.poll(100)
        client.poll(100)
    assert receiver.left and client.poll(0) == []


def test_credit_is_given_again_as_messages_are_settled(inside):
    client, _, _ = inside
    sender = client.sender("q")
    for number in range(5):
        sender.send(b"%d" % number)
    receiver = client.receiver("q", 2)
    first = client.poll(100)
    assert [each.body for each in first] == [b"0", b"1"]
    assert client.poll(0) == []
    receiver.accept(first[0])
    assert [each.body for each in client.poll(100)] == [b"2"]


def test_poll_waits_for_as_long_as_it_is_told(inside, clock):
    client, _, _ = inside
    client.receiver("q")
    clock.runs = 1
    before = clock.now
    assert client.poll(300) == [] and 300 <= clock.now - before < 400


def test_a_poll_that_waits_for_nothing_still_moves_what_is_pending(inside):
    client, _, broker = inside
    sender = client.sender("q")
    sender.send(b"x")
    receiver = client.receiver("q", 1)
    (message,) = client.poll(100)
    receiver.accept(message)
    assert client.poll(0) == [] and held(broker) == 0


def test_next_of_takes_one_receiver_s_messages_before_those_of_others(inside):
    client, _, broker = inside
    broker_client = client.sender("q")
    first = client.receiver("q", 1)
    second = client.receiver("q", 1)
    broker_client.send(b"1")
    broker_client.send(b"2")
    bodies = {client.next_of(second).body}
    bodies.add(client.next_of(first).body)
    assert bodies == {b"1", b"2"} and client.poll(0) == []


def test_messages_without_an_outcome_yet_are_counted(inside):
    client, stream, _ = inside
    sender = client.sender("q")
    stream.deaf = True
    for _ in range(3):
        sender.send(b"x", wait=False)
    assert sender.unsettled == 3
    stream.deaf = False
    sender.wait_settled()
    assert sender.unsettled == 0


def test_unsettled_sends_go_out_once_a_millisecond(inside, clock):
    client, stream, _ = inside
    sender = client.sender("q")
    sender.send(b"x", wait=False)
    before = stream.written
    sender.send(b"y", wait=False)
    assert stream.written == before
    clock.now += 1
    sender.send(b"z", wait=False)
    assert stream.written > before


def test_more_messages_than_the_window_and_the_credit_wait_for_room(inside):
    _, _, broker = inside
    client, stream = connected(broker, window=4)
    sender = client.sender("q")
    for number in range(30):
        sender.send(b"%d" % number, wait=False)
        assert sender.unsettled <= 4
    sender.wait_settled()
    assert held(broker) == 30
    stream.close()


def test_a_message_of_many_transfers_goes_whole(inside):
    client, _, broker = inside
    body = bytes(range(256)) * 40
    client.sender("q").send(body)
    client.receiver("q")
    (message,) = client.poll(100)
    assert message.body == body


def test_a_message_larger_than_the_client_takes_is_told_and_stays(inside):
    """From a sender that does not heed max-message-size (2.7.3): the core reports it."""
    client, _, broker = inside
    client.sender("q").send(b"x" * 200)
    receiver = client.receiver("q", 1)
    (message,) = client.poll(100)
    client.refused(message, "a message of 200 octets")
    with pytest.raises(errors.TooLarge, match="^a message of 200 octets; the message stays unsettled$") as told:
        client.poll(100)
    receiver.release(told.value.message)
    receiver.close()
    assert held(broker) == 1


def test_settled_messages_have_no_outcome_to_wait_for(inside):
    client, _, broker = inside
    sender = client.sender("q", settled=True)
    sender.send(b"x", wait=False)
    assert sender.unsettled == 0
    sender.wait_settled()
    client.step(0)
    assert held(broker) == 1


def test_messages_that_are_not_accepted_are_all_told_and_only_once(inside):
    client, _, _ = inside
    sender = client.sender("/exchanges/amq.topic")
    for _ in range(2):
        sender.send(b"x", {"subject": "nobody"}, wait=False)
    with pytest.raises(errors.NotAccepted, match="message 1 was released") as told:
        sender.wait_settled()
    assert [(number, outcome) for number, outcome, _ in told.value.outcomes] == [(1, "released"), (2, "released")]
    sender.wait_settled()


def test_a_refusal_s_sentence_has_the_outcome_the_condition_and_the_words():
    said = module.not_accepted("message 3", [(3, "rejected", {"error": {"condition": "amqp:x", "description": "no room"}})])
    assert str(said) == "message 3 was rejected amqp:x no room"
    assert str(module.not_accepted("message 3", [(3, "", {})])) == "message 3 was settled without an outcome"
    assert str(module.not_accepted("it", [(1, "rejected", {"error": {"condition": "c", "description": None}})])) == "it was rejected c"


def test_no_credit_and_no_answer_are_time_outs_after_their_time(inside, clock):
    client, stream, _ = inside
    sender = client.sender("q")
    stream.deaf = True
    clock.runs = 1
    before = clock.now
    with pytest.raises(errors.Timeout, match="no answer from the broker in 500 ms"):
        sender.send(b"x")
    assert TIMEOUT_MS <= clock.now - before < TIMEOUT_MS + 100


def test_a_log_in_that_is_refused_and_a_broker_that_ends_are_told_apart(clock):
    broker = new_broker()
    clock.runs = 1
    broker.tick(0, 0)
    stream = Stream(broker)
    read = stream.read_into

    def read_into(view):
        clock.now += 50
        broker.tick(clock.now, 0)
        stream.served.tick(clock.now)
        return read(view)

    stream.read_into = read_into
    place = read_url_1_0("amqp://guest:wrong@the.broker/")
    with pytest.raises(errors.LoginRefused, match="the broker refuses the log-in"):
        module.Connection(stream, 5000, {**SIZES, **place.login()}, place)
    ended = Stream(broker)
    ended.served.received(0)
    with pytest.raises(errors.ConnectFailed, match="^the broker: ") as told:
        module.Connection(ended, 5000, {**SIZES, **read_url_1_0(URL).login()}, read_url_1_0(URL))
    assert not isinstance(told.value, (errors.LoginRefused, errors.TlsRefused))
    stream.close()


def test_a_certificate_that_the_broker_refuses_behind_the_handshake_is_told_as_tls_s(clock):
    ended = Stream(new_broker())
    ended.served.received(0)
    ended.failure = "the broker refuses our certificate"
    with pytest.raises(errors.TlsRefused, match="^the broker refuses our certificate$"):
        module.Connection(ended, 5000, {**SIZES, **read_url_1_0(URL).login()}, read_url_1_0(URL))


def test_no_answer_to_a_connection_ends_its_stream(monkeypatch, clock):
    stream = Stream(new_broker())
    stream.deaf = True
    clock.runs = 1
    monkeypatch.setattr(module, "open_stream", lambda place, timeout_ms: stream)
    with pytest.raises(errors.ConnectFailed, match="no answer from the broker in 300 ms"):
        module.connect(URL, 300)
    assert stream.closed


def test_options_of_connect_go_to_the_client_and_each_has_a_container_of_its_own(monkeypatch, clock):
    broker, names = new_broker(), set()
    for _ in range(2):
        stream = Stream(broker)
        monkeypatch.setattr(module, "open_stream", lambda place, timeout_ms, stream=stream: stream)
        client = module.connect(URL, TIMEOUT_MS, window=16)
        assert client._client.session.window == 16
        names.add(client._client.container)
    assert len(names) == 2 and all(name.startswith("leveret-") for name in names)


def test_a_refused_log_in_of_connect_ends_its_stream(monkeypatch, clock):
    stream = Stream(new_broker())
    stream.served.received(0)
    monkeypatch.setattr(module, "open_stream", lambda place, timeout_ms: stream)
    with pytest.raises(errors.ConnectFailed):
        module.connect(URL, TIMEOUT_MS)
    assert stream.closed


def test_the_end_is_said_in_the_broker_s_words_to_every_later_call(inside):
    client, stream, _ = inside
    stream.served.close("the broker is shutting down")
    for _ in range(2):
        with pytest.raises(errors.ConnectionLost, match="is over: .*shutting down") as told:
            client.sender("q")
        assert told.value.code == "amqp:connection:forced"
    client.close()


def test_close_ends_the_links_and_the_connection_in_good_order(inside):
    client, stream, broker = inside
    sender = client.sender("q")
    sender.send(b"x", wait=False)
    client.close()
    assert stream.closed and not broker.connections and sender.left and held(broker) == 1
    client.close()


def test_who_takes_the_stream_over_gets_it_with_nothing_under_way(inside):
    client, stream, _ = inside
    taken, frame_size_max, idle_s = client.hand_over()
    assert taken is stream and frame_size_max == client._client.frame_size_max
    assert idle_s == (client._client.remote["idle-time-out"] or 0) / 1000 and len(client._client.pending()) == 0


# Transactions (part 4)


def test_a_transaction_takes_effect_at_its_commit(inside):
    client, _, broker = inside
    sender = client.sender("q")
    sender.send(b"old")
    receiver = client.receiver("q", 1)
    (message,) = client.poll(100)
    with client.transaction() as work:
        work.send(sender, b"new", {"subject": "s"})
        work.settle(receiver, message)
        client.step(0)
        assert held(broker) == 0
    receiver.close()
    assert work.id is None and held(broker) == 1
    client.receiver("q", 1)
    assert [each.body for each in client.poll(100)] == [b"new"]


def test_what_is_sent_behind_a_transaction_s_message_is_not_in_it(inside):
    client, _, broker = inside
    sender = client.sender("q")
    work = client.transaction()
    work.send(sender, b"in it")
    sender.send(b"outside")
    assert held(broker) == 1
    work.rollback()
    assert held(broker) == 1
    with pytest.raises(ValueError, match="the transaction is over"):
        work.commit()
    with pytest.raises(ValueError, match="the transaction is over"):
        work.rollback()


def test_an_exception_in_a_transaction_rolls_it_back_and_goes_on(inside):
    client, _, broker = inside
    sender = client.sender("q")
    with pytest.raises(RuntimeError, match="stop"), client.transaction() as work:
        work.send(sender, b"never")
        raise RuntimeError("stop")
    assert held(broker) == 0 and work.id is None


def test_a_transaction_that_was_ended_inside_its_block_is_not_ended_again(inside):
    client, _, broker = inside
    sender = client.sender("q")
    with client.transaction() as work:
        work.send(sender, b"x")
        work.commit()
    assert held(broker) == 1


def test_two_transactions_share_the_controller_and_are_apart(inside):
    client, _, broker = inside
    sender = client.sender("q")
    first, second = client.transaction(), client.transaction()
    assert first.id != second.id and first._controller is second._controller
    first.send(sender, b"1")
    second.send(sender, b"2")
    first.rollback()
    second.commit()
    client.receiver("q", 2)
    assert [each.body for each in client.poll(100)] == [b"2"]


def test_a_controller_that_is_over_is_attached_anew(inside):
    client, _, _ = inside
    work = client.transaction()
    controller = work._controller
    work.commit()
    controller.close()
    assert client.transaction()._controller is not controller


def test_a_commit_that_the_broker_refuses_is_told(inside):
    client, _, _ = inside
    work = client.transaction()
    discharge = work._controller.link.discharge
    work._controller.link.discharge = lambda id_, fail: discharge(b"another", fail)
    with pytest.raises(errors.NotAccepted, match="^the transaction was rejected amqp:transaction:unknown-id"):
        work.commit()


# Tokens


class Answers:
    """Stands for a Node: `code` answers every request."""

    code = 202

    def __init__(self, connection, address):
        assert address == tokens.NODE
        self.put = []

    def ask(self, request):
        from leveret.core.amqp_1_0.client.message import Message

        message = Message(None, 0, b"", 0, True)
        message.octets = request(1, "here")
        self.put.append((message.application_properties["name"], message.body))
        return self.code, "said", None


@pytest.fixture
def authority(monkeypatch, clock):
    monkeypatch.setattr(requests_1_0, "Node", Answers)
    monkeypatch.setattr(requests_1_0, "seconds", lambda: 1_000_000)
    return requests_1_0.Authority(None, read_url_1_0("amqp://policy:key@hub.example/?auth=cbs"))


def test_a_token_is_good_for_an_hour_and_put_once_for_each_address(authority):
    for address in ("a", "b", "a"):
        authority.grant(address)
    expected = [
        ("amqps://hub.example/%s" % each, tokens.sas_token("amqps://hub.example/%s" % each, "policy", "key", 1_003_600)) for each in "ab"
    ]
    assert authority._node.put == expected


def test_tokens_are_put_again_when_half_of_their_hour_is_over(authority, clock):
    authority.grant("a")
    clock.now += 1_800_000
    authority.renew()
    assert len(authority._node.put) == 1
    clock.now += 1
    for _ in range(2):
        authority.renew()
    assert len(authority._node.put) == 2


def test_a_token_that_is_not_taken_is_no_log_in_and_is_put_again(authority):
    authority._node.code = 401
    for _ in range(2):
        with pytest.raises(errors.LoginRefused, match="a token for amqps://hub.example/a is refused: 401 said: see the policy"):
            authority.grant("a")
    authority._node.code = 200
    authority.grant("a")
    assert len(authority._node.put) == 3

"""Our own AMQP 1.0 client (ports/client_1_0.py) with each broker: log-in, both directions, each outcome, messages of megabytes."""

import peers
import pytest

from leveret.core.amqp_0_9 import properties
from leveret.ports.client import connect as connect_0_9_1
from leveret.ports.client_1_0 import connect
from leveret.ports.client_errors import ConnectionLost, LinkDetached, LoginRefused, NotAccepted

KINDS = ("artemis", "broker_j", "rabbitmq", "leveret")


@pytest.fixture(params=KINDS)
def broker(request):
    return request.getfixturevalue(request.param)


def url(broker, query="", login="guest:guest@"):
    """Where a broker is."""
    queries = [each for each in ("node=queue" if broker.kind == "artemis" else "", query) if each]
    return "amqp://%s127.0.0.1:%d/?%s" % (login, broker.port, "&".join(queries))


def address(broker, name):
    """The address of a queue, which Leveret has to have been told of."""
    if broker.kind == "leveret":
        client = connect_0_9_1("amqp://127.0.0.1:%d/" % broker.port)
        client.queue_delete(name)
        client.queue_declare(name)
        client.close()
    return peers.PEERS[broker.kind].queue % name


def take(client, receiver, count):
    """`count` messages of a receiver; those behind the first prefetch come as earlier ones are accepted."""
    found = []
    while len(found) < count:
        messages = client.poll(10000)
        assert messages, "%d of %d messages came" % (len(found), count)
        for message in messages:
            found.append(message)
            receiver.accept(message)
    return found


def test_messages_of_any_size_go_and_come(broker):
    client = connect(url(broker))
    place = address(broker, "sizes")
    sender = client.sender(place)
    bodies = [bytes(size) for size in (0, 1, 255, 256, 70000, 2500000)] + [b"%d" % number for number in range(300)]
    for number, body in enumerate(bodies):
        sender.send(body, {"subject": "s%d" % number, "message-id": "m%d" % number}, {"number": number}, wait=False)
        client.flush()
    sender.wait_settled()
    found = take(client, client.receiver(place, 20), len(bodies))
    assert [message.body for message in found] == bodies
    assert [message.properties["message-id"] for message in found] == ["m%d" % number for number in range(len(bodies))]
    assert [message.application_properties["number"] for message in found] == list(range(len(bodies)))
    client.close()


def test_settled_messages_need_no_outcome(broker):
    client = connect(url(broker))
    place = address(broker, "settled")
    sender = client.sender(place, settled=True)
    for number in range(50):
        sender.send(b"%d" % number, wait=False)
    sender.wait_settled()
    assert len(take(client, client.receiver(place, 7), 50)) == 50
    client.close()


def test_each_outcome_of_a_receiver(broker):
    client = connect(url(broker))
    place = address(broker, "outcomes")
    client.sender(place).send(b"x")
    receiver = client.receiver(place, 1)
    (message,) = client.poll(10000)
    receiver.release(message)
    (message,) = client.poll(10000)
    assert message.body == b"x"
    if broker.kind != "rabbitmq":  # 3.10 knows no modified, and ends the session
        receiver.settle(message, "modified", {"delivery-failed": True})
        (message,) = client.poll(10000)
        assert message.body == b"x" and message.header.get("delivery-count", 0) >= 1
    receiver.reject(message, "amqp:internal-error", "no")
    if broker.kind != "broker-j":  # it delivers again what was rejected, for ever: nobody told it how often
        assert client.poll(500) == []
    client.close()


@pytest.mark.parametrize("kind", ["broker_j", "leveret", "rabbitmq"])  # the Artemis of these tests takes every user
def test_a_wrong_password_is_refused(request, kind):
    broker = request.getfixturevalue(kind)
    with pytest.raises(LoginRefused):
        connect(url(broker, "", "guest:wrong@"))


@pytest.mark.parametrize("kind", ["broker_j", "leveret"])
def test_scram_sha_256(request, kind):
    broker = request.getfixturevalue(kind)
    client = connect(url(broker, "auth=scram-sha-256"))
    client.close()
    with pytest.raises(LoginRefused):
        connect(url(broker, "auth=scram-sha-256", "guest:wrong@"))


def test_an_address_that_is_not_there_is_told(request):
    client = connect(url(request.getfixturevalue("rabbitmq")))
    with pytest.raises(ConnectionLost, match="no exchange 'nothing'"):  # 3.10 ends the session
        client.sender("/exchange/nothing")
    client = connect(url(request.getfixturevalue("leveret")))
    with pytest.raises(LinkDetached) as told:
        client.sender("/exchanges/nothing")
    assert told.value.code == "amqp:not-found"
    client.close()


def test_a_durable_message_that_broker_j_cannot_keep_is_rejected(broker_j):
    client = connect(url(broker_j))
    sender = client.sender("memory")
    with pytest.raises(NotAccepted, match="amqp:precondition-failed Non-durable message store") as told:
        sender.send(b"x", {"durable": True})
    assert [outcome for _, outcome, _ in told.value.outcomes] == ["rejected"]
    sender.send(b"x")
    client.close()


def test_what_has_no_route_is_released_by_leveret_and_accepted_by_rabbitmq(request):
    client = connect(url(request.getfixturevalue("leveret")))
    with pytest.raises(NotAccepted, match="released"):
        client.sender("/exchanges/amq.topic").send(b"x", {"subject": "nobody.wants.it"})
    client.close()
    client = connect(url(request.getfixturevalue("rabbitmq")))
    client.sender("/exchange/amq.topic").send(b"x", {"subject": "nobody.wants.it"})  # 3.10; a bridge there needs its bindings first
    client.close()


@pytest.mark.parametrize("kind", ["artemis", "broker_j", "leveret"])
def test_what_is_done_in_a_transaction_is_done_together_or_not_at_all(request, kind):
    broker = request.getfixturevalue(kind)
    client = connect(url(broker))
    there, back = address(broker, "work"), address(broker, "done")
    sender, answers = client.sender(there), client.sender(back)
    for number in range(4):
        sender.send(b"%d" % number)
    receiver = client.receiver(there, 2)
    first, second = take_unsettled(client, 2)
    with client.transaction() as work:  # two are settled and one is sent, with a body of several transfers
        work.send(answers, b"answer" * 100000)
        work.settle(receiver, first)
        work.settle(receiver, second)
        assert client.poll(0) == []
    third, fourth = take_unsettled(client, 2)
    assert (third.body, fourth.body) == (b"2", b"3")
    rolled, other = client.transaction(), client.transaction()
    rolled.send(answers, b"never")
    other.send(answers, b"last")
    other.settle(receiver, third)
    other.commit()
    rolled.rollback()
    receiver.accept(fourth)
    with pytest.raises(RuntimeError), client.transaction() as work:
        work.send(answers, b"never either")
        raise RuntimeError
    assert work.id is None
    with pytest.raises(ValueError):
        work.commit()
    receiver.close()
    assert [message.body for message in take(client, client.receiver(back, 10), 2)] == [b"answer" * 100000, b"last"]
    client.receiver(there, 10)
    assert client.poll(500) == []
    client.close()


def take_unsettled(client, count):
    """`count` messages, of which nothing is decided."""
    found = []
    while len(found) < count:
        messages = client.poll(10000)
        assert messages, "%d of %d messages came" % (len(found), count)
        found += messages
    return found


def test_what_spark_reads_of_a_queue_comes_again_until_it_is_accepted(broker):
    """ports/spark/queue_1_0.py, without Spark."""
    queue_1_0 = pytest.importorskip("leveret.ports.spark.queue_1_0")
    client = connect(url(broker))
    place = address(broker, "spark")
    sender = client.sender(place)
    for number in range(30):
        given = {"message-id": "m%d" % number, "subject": "a.b", "content-type": "text/plain"}
        sender.send(b"%d" % number, given, {"x-gateway": "gw", "x-sequence": ("long", number)}, wait=False)
    sender.wait_settled()
    client.close()
    rows = read_as_spark(queue_1_0, broker, place, 30, 20)
    assert [row.body for row in rows] == [b"%d" % number for number in range(30)] and rows[7].routing_key_octets == b"a.b"
    given = properties.decode(rows[7].properties_octets, 0, len(rows[7].properties_octets))
    assert given["message_id"] == "m7" and given["content_type"] == "text/plain"
    assert given["headers"]["x-gateway"] == "gw" and given["headers"]["x-sequence"] in (7, ("l", 7))
    assert sorted(int(row.body) for row in read_as_spark(queue_1_0, broker, place, 10, 10)) == list(range(20, 30))


def read_as_spark(queue_1_0, broker, place, count, done):
    """`count` rows of a queue, of which the first `done` are accepted before the connection is cut."""
    queue = queue_1_0.Queue(url(broker), 10000, 50, place)
    rows = []
    while len(rows) < count:
        more = queue.poll(10000)
        assert more, "%d of %d rows came" % (len(rows), count)
        rows += more
    queue.ack(rows[done - 1], multiple=True)
    queue.poll(300)
    queue._connection._stream.close()
    return rows

"""The firehose tells of each family's messages, of streams and of what an operator does; two brokers in one process have one each."""

import pytest
from peer import Peer, new_broker
from peer_0_10 import Peer as Peer010
from peer_1_0 import Peer as Peer10
from peer_1_0 import declare
from test_0_10_dtx import OK, X, ask, ready, start
from test_1_0_transactions import Client as Client10

from leveret import c_accel
from leveret.core.broker import engine
from leveret.core.management import messages
from leveret.core.outcomes import REJECTED, RELEASED, nobody
from leveret.ports.events.firehose import Firehose


@pytest.fixture(params=["plain", "in C"], autouse=True)
def form(request, monkeypatch):
    """Brokers of a test have the plain form of the hot path, or that in C."""
    assert c_accel.lib is not None, c_accel.why_plain()
    monkeypatch.setattr(engine, "chosen", c_accel.Engine if request.param == "in C" else engine.Plain)


def traced(broker, queues=None):
    """A firehose that is on, with a queue for what it tells."""
    firehose = Firehose(broker, "node")
    firehose.turn_on(None, queues)
    declare(broker, "heard")
    broker.topology.bind(nobody, "heard", "amq.rabbitmq.trace", b"#", {})
    return firehose


def heard(broker, firehose):
    """[(key, connection, channel, body)] of what was told since."""
    while firehose.step():
        pass
    got = messages.get(broker, broker.access.users["guest"], "heard", 100, REJECTED, 1 << 20, 1 << 20) or ()
    return [
        (each["key"].decode(), each["properties"]["headers"]["connection"], each["properties"]["headers"]["channel"], each["body"])
        for each in [messages.described(each) for each in got]
    ]


def made(queue="q", arguments=None):
    """A broker with a queue and a firehose."""
    broker = new_broker(arena_size=65536, content_size_max=4096, argument_size_max=1024, receive_buffer_size=8192, send_buffer_size=8192)
    declare(broker, queue, arguments)
    return broker, traced(broker)


def test_of_amqp_1_0():
    broker, firehose = made()
    peer = Peer10(broker)
    peer.sender()
    peer.send(0, b"one", settled=True)
    peer.receiver(rcv_settle_mode=0, snd_settle_mode=1)
    assert [body for _, body in peer.messages()] == [b"one"]
    assert [row[:3] for row in heard(broker, firehose)] == [("publish.", "unit", 0), ("deliver.q", "unit", 0)]


def test_of_amqp_0_10():
    broker, firehose = made()
    peer = Peer010(broker)
    peer.publish(b"one")
    peer.subscribe()
    assert [body for _, body in peer.transfers()] == [b"one"]
    rows = heard(broker, firehose)
    assert [row[:2] for row in rows] == [("publish.", "unit"), ("deliver.q", "unit")] and rows[0][3] == rows[1][3] == b"one"


def test_of_an_operator():
    broker, firehose = made()
    user = broker.access.users["guest"]
    messages.publish(broker, user, "", b"q", b"\0\0", (0, 0), b"one")
    assert messages.get(broker, user, "q", 1, RELEASED, 1000, 1000)[0]["body"] == b"one"
    assert heard(broker, firehose) == [("publish.", "management", 0, b"one"), ("deliver.q", "management", 0, b"one")]


@pytest.mark.parametrize("class_", [Peer, Peer010, Peer10])
def test_of_readers_of_a_stream(class_):
    broker, firehose = made("s", {"x-queue-type": "stream"})
    writer = Peer(broker)
    for number in range(20):
        writer.publish("s", b"%d" % number, given={"headers": {"x-stream-filter-value": "odd" if number % 2 else "even"}})
    heard(broker, firehose)
    reader = class_(broker)
    if class_ is Peer:
        reader.ask("basic_qos", "basic_qos_ok", 0, 10, False)
        reader.consume("s", arguments={"x-stream-offset": "first", "x-stream-filter": "odd"})
    elif class_ is Peer010:
        reader.subscribe("s", accept=0)
        writer.publish("s", b"20")
    else:
        reader.receiver("/queues/s", credit=0)
        reader.credit(5)
        writer.publish("s", b"20")
    broker.run()
    rows = [row for row in heard(broker, firehose) if row[0] == "deliver.s"]
    wanted = [b"%d" % number for number in range(1, 20, 2)] if class_ is Peer else [b"20"]
    assert [row[3] for row in rows] == wanted and {row[1] for row in rows} == {"unit"}


def test_packed_records_are_told_each():
    broker, firehose = made("s", {"x-queue-type": "stream"})
    writer = Peer(broker)
    for number in range(5):
        writer.publish("s", b"%d" % number)
    heard(broker, firehose)
    writer.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    writer.consume("s", arguments={"x-stream-offset": "first", "x-stream-pack-records": 10})
    assert [row[3] for row in heard(broker, firehose)] == [b"%d" % number for number in range(5)]


def test_a_firehose_is_its_brokers_alone():
    broker, firehose = made()
    other = new_broker()
    declare(other)
    user = other.access.users["guest"]
    for each in (broker, other):
        messages.publish(each, user, "", b"q", b"\0\0", (0, 0), b"one")
    firehose.turn_off()
    assert broker.trace is None and "trace" not in vars(broker)
    peer = Peer(broker)
    peer.publish("q", b"two")
    messages.publish(broker, user, "", b"q", b"\0\0", (0, 0), b"three")
    assert [row[3] for row in heard(broker, firehose)] == [b"one"]


def in_0_9_1(broker):
    peer = Peer(broker)
    peer.ask("tx_select", "tx_select_ok")
    peer.publish("q", b"one")
    peer.ask("tx_commit", "tx_commit_ok")


def in_1_0(broker):
    client = Client10(broker)
    client.sender()
    work = client.begin_work()
    client.post(work, b"one")
    client.discharge(work)


def in_0_10(broker):
    peer = Peer010(broker)
    peer.do("tx_select")
    peer.publish(b"one")
    peer.do("tx_commit")


def in_a_branch(broker):
    _, peer = ready(broker, makes=False)
    start(peer)
    peer.publish(b"one")
    assert ask(peer, "dtx_end", xid=X) == ask(peer, "dtx_commit", xid=X, one_phase=True) == OK


@pytest.mark.parametrize("work", [in_0_9_1, in_1_0, in_0_10, in_a_branch])
def test_of_a_transaction_when_it_is_committed(work):
    broker, firehose = made()
    work(broker)
    assert broker.queues["q"].message_count() == 1
    assert [(row[0], row[1], row[3][-3:]) for row in heard(broker, firehose)] == [("publish.", "unit", b"one")]

"""Proton's Python client: BlockingConnection and the links below it."""

import time
import uuid

import runner
from proton import (
    UNDESCRIBED,
    Array,
    ConnectionException,
    Data,
    Delivery,
    Described,
    Link,
    Message,
    Terminus,
    Timeout,
    int32,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
)
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Copy, LinkOption, Selector
from proton.utils import BlockingConnection, LinkDetached, SyncRequestResponse
from runner import WAIT_S, equal


def connected(place, **options):
    """A BlockingConnection that has logged in with PLAIN."""
    options = dict({"user": place.user, "password": place.password, "allowed_mechs": "PLAIN", "timeout": WAIT_S}, **options)
    return BlockingConnection(place.url, **options)


def nothing_comes(receiver, seconds=0.4):
    """True when a receiver with credit gets no message in this time."""
    try:
        receiver.receive(timeout=seconds)
    except Timeout:
        return True
    return False


class Kept(MessagingHandler):
    """A receiver's handler that gives no credit and settles nothing: the bodies that came."""

    def __init__(self):
        super().__init__(prefetch=0, auto_accept=False)
        self.bodies = []

    def on_message(self, event):
        self.bodies.append(event.message.body)


def scenario_log_in(place):
    """PLAIN with the right password is let in, with a wrong one it is not."""
    connected(place).close()
    try:
        connected(place, password="wrong")
    except ConnectionException as error:
        assert "auth" in str(error).lower(), error
    else:
        raise AssertionError("the wrong password was let in")


def scenario_round_trip(place):
    """One message goes through a queue, and is accepted on both sides."""
    connection = connected(place)
    delivery = connection.create_sender(place.own_queue).send(Message(body="hello"))
    equal(delivery.remote_state, Delivery.ACCEPTED)
    receiver = connection.create_receiver(place.own_queue)
    equal(receiver.receive().body, "hello")
    receiver.accept()
    assert nothing_comes(receiver)
    connection.close()


BODIES = [
    None,
    True,
    7,
    -(2**31),
    2**40,
    1.5,
    "text \u20ac",
    b"octets",
    "long " * 1000,
    uuid.UUID(int=5),
    timestamp(1700000000123),
    symbol("symbol"),
    ["list", 1, None, [2]],
    {"map": {"in": "a map"}, "n": 1},
    Array(UNDESCRIBED, Data.INT, 1, 2, 3),
    Described(symbol("com.example:point"), [1, 2]),
    ubyte(3),
    uint(5),
    ulong(2**63),
    int32(-4),
]


def scenario_bodies(place):
    """A body comes back as the value that it was, whatever its type (part 3, 3.2.8)."""
    connection = connected(place)
    sender, receiver = connection.create_sender(place.own_queue), connection.create_receiver(place.own_queue, credit=50)
    for body in BODIES:
        sender.send(Message(body=body))
    for body in BODIES:
        message = receiver.receive()
        receiver.accept()
        got = message.body
        equal(bytes(got) if isinstance(got, memoryview) else got, body)
    connection.close()


def scenario_data_section(place):
    """A body of one data section comes back as octets, an empty one too."""
    connection = connected(place)
    sender, receiver = connection.create_sender(place.own_queue), connection.create_receiver(place.own_queue)
    for octets in (b"some octets", b"", bytes(range(256)) * 4):
        sender.send(Message(body=octets, inferred=True))
        got = receiver.receive()
        receiver.accept()
        equal((bytes(got.body), got.inferred), (octets, True))
    connection.close()


def scenario_properties(place):
    """Every field of header, properties, application properties and annotations comes back (part 3, 3.2)."""
    fields = {
        "id": "id-1",
        "user_id": place.user.encode(),
        "subject": "a subject",
        "reply_to": "answers",
        "correlation_id": uuid.UUID(int=9),
        "content_type": symbol("text/plain"),
        "content_encoding": symbol("gzip"),
        "expiry_time": time.time() // 1 + 3600,
        "creation_time": 1700000000.5,
        "group_id": "group",
        "group_sequence": 17,
        "reply_to_group_id": "other group",
        "durable": True,
        "priority": 7,
        "ttl": 60.0,
        "properties": {"int": 1, "text": "t", "none": None, "true": True, "octets": b"o", "symbol": symbol("s"), "big": ulong(2**60)},
        "annotations": {symbol("x-opt-mine"): "annotated"},
    }
    connection = connected(place)
    connection.create_sender(place.own_queue).send(Message(body="b", **fields))
    got = connection.create_receiver(place.own_queue).receive()
    for name, value in fields.items():
        if name == "ttl":
            assert 0 < got.ttl <= value, got.ttl
        else:
            equal(getattr(got, name), value)
    connection.close()


def scenario_large_message(place):
    """A message of 1 MiB goes through in many transfers of 4 KiB frames (part 2, 2.6.14)."""
    connection = connected(place, max_frame_size=4096)
    octets = bytes(range(256)) * 4096
    connection.create_sender(place.own_queue).send(Message(body=octets, inferred=True))
    receiver = connection.create_receiver(place.own_queue)
    message = receiver.receive()
    assert bytes(message.body) == octets
    receiver.accept()
    connection.close()


def scenario_presettled(place):
    """500 settled messages arrive in order at a receiver that settles nothing."""
    connection = connected(place)
    sender = connection.create_sender(place.own_queue, options=AtMostOnce())
    for number in range(500):
        sender.send(Message(body=number))
    receiver = connection.create_receiver(place.own_queue, credit=500, options=AtMostOnce())
    equal([receiver.receive().body for _ in range(500)], list(range(500)))
    connection.close()


def scenario_credit(place):
    """A receiver gets as many messages as it gave credit for, and no more (part 2, 2.6.7)."""
    connection = connected(place)
    sender = connection.create_sender(place.own_queue)
    for number in range(5):
        sender.send(Message(body=number))
    kept = Kept()
    receiver = connection.create_receiver(place.own_queue, credit=0, handler=kept)
    receiver.link.flow(2)
    connection.wait(lambda: len(kept.bodies) == 2)
    try:
        connection.wait(lambda: len(kept.bodies) > 2, timeout=0.5)
    except Timeout:
        pass
    equal(kept.bodies, [0, 1])
    receiver.link.flow(3)
    connection.wait(lambda: len(kept.bodies) == 5)
    connection.close()


def scenario_drain(place):
    """Drain: what is there comes, and the rest of the credit is given back (part 2, 2.6.7)."""
    connection = connected(place)
    sender = connection.create_sender(place.own_queue)
    for number in range(3):
        sender.send(Message(body=number))
    kept = Kept()
    receiver = connection.create_receiver(place.own_queue, credit=0, handler=kept)
    receiver.link.drain(10)
    connection.wait(lambda: not receiver.link.draining())
    equal((kept.bodies, receiver.link.credit), ([0, 1, 2], 0))
    connection.close()


def scenario_release(place):
    """A released message comes again, to another receiver too, and was not counted (part 3, 3.4.4)."""
    connection = connected(place)
    connection.create_sender(place.own_queue).send(Message(body="again"))
    first = connection.create_receiver(place.own_queue)
    first.receive()
    first.release(delivered=False)
    first.close()
    second = connection.create_receiver(place.own_queue)
    got = second.receive()
    equal((got.body, got.delivery_count), ("again", 0))
    second.accept()
    connection.close()


def scenario_modify(place):
    """A message that is modified as failed comes again, and its delivery-count says so (part 3, 3.4.5)."""
    connection = connected(place)
    connection.create_sender(place.own_queue).send(Message(body="again"))
    receiver = connection.create_receiver(place.own_queue)
    equal(receiver.receive().delivery_count, 0)
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.failed = True
    delivery.update(Delivery.MODIFIED)
    delivery.settle()
    again = receiver.receive()
    equal((again.body, again.delivery_count), ("again", 1))
    receiver.accept()
    connection.close()


def scenario_modify_here(place):
    """A message that is undeliverable here goes to another link, with the annotations that its receiver gave it (part 3, 3.4.5)."""
    connection = connected(place)
    connection.create_sender(place.own_queue).send(Message(body="elsewhere", durable=True, annotations={symbol("x-opt-kept"): 1}))
    receiver = connection.create_receiver(place.own_queue)
    receiver.receive()
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.undeliverable = True
    delivery.local.annotations = {symbol("x-opt-why"): "not here"}
    delivery.update(Delivery.MODIFIED)
    delivery.settle()
    assert nothing_comes(receiver)
    second = connection.create_receiver(place.own_queue, name="second")
    got = second.receive()
    equal((got.body, got.annotations["x-opt-kept"], got.annotations["x-opt-why"]), ("elsewhere", 1, "not here"))
    second.accept()
    connection.close()


def scenario_reject(place):
    """A rejected message does not come again to the queue (part 3, 3.4.3)."""
    connection = connected(place)
    connection.create_sender(place.own_queue).send(Message(body="bad"))
    receiver = connection.create_receiver(place.own_queue)
    receiver.receive()
    receiver.reject()
    assert nothing_comes(receiver)
    connection.close()


def scenario_lost_receiver(place):
    """What a receiver did not settle comes back when its connection is gone."""
    connection = connected(place)
    connection.create_sender(place.own_queue).send(Message(body="held"))
    gone = connected(place)
    equal(gone.create_receiver(place.own_queue).receive().body, "held")
    gone.close()
    receiver = connection.create_receiver(place.own_queue)
    equal(receiver.receive().body, "held")
    receiver.accept()
    connection.close()


def scenario_browse(place):
    """A receiver with distribution-mode copy sees messages that stay (part 3, 3.5.3)."""
    connection = connected(place)
    sender = connection.create_sender(place.own_queue)
    for number in range(3):
        sender.send(Message(body=number))
    for _ in range(2):
        browser = connection.create_receiver(place.own_queue, credit=10, options=Copy())
        equal([browser.receive().body for _ in range(3)], [0, 1, 2])
        browser.close()
    receiver = connection.create_receiver(place.own_queue, credit=10)
    equal([receiver.receive().body for _ in range(3)], [0, 1, 2])
    connection.close()


def scenario_selector(place):
    """A JMS selector lets some messages through; the others stay for the next receiver."""
    connection = connected(place)
    sender = connection.create_sender(place.own_queue)
    for number in range(6):
        sender.send(Message(body=number, properties={"colour": "red" if number % 2 else "green"}))
    receiver = connection.create_receiver(place.own_queue, credit=10, options=Selector("colour = 'red'"))
    got = []
    for _ in range(3):
        got.append(receiver.receive().body)
        receiver.accept()
    equal(got, [1, 3, 5])
    receiver.close()
    rest = connection.create_receiver(place.own_queue, credit=10)
    equal([rest.receive().body for _ in range(3)], [0, 2, 4])
    connection.close()


def scenario_dynamic_node(place):
    """A request gets its response by a dynamic node, whose address the broker gives (part 3, 3.5.3)."""
    server = connected(place)
    requests = server.create_receiver(place.own_queue, credit=10)
    client = connected(place)
    answers = client.create_receiver(None, dynamic=True)
    assert answers.link.remote_source.address
    client.create_sender(place.own_queue).send(Message(body="question", reply_to=answers.link.remote_source.address, correlation_id="c"))
    request = requests.receive()
    requests.accept()
    server.create_sender(None).send(Message(address=request.reply_to, correlation_id=request.correlation_id, body="answer"))
    answer = answers.receive()
    equal((answer.body, answer.correlation_id), ("answer", "c"))
    client.close()
    server.close()


def scenario_request_response(place):
    """Proton's own SyncRequestResponse, as its example sync_client has it."""
    server = connected(place)
    requests = server.create_receiver(place.own_queue, credit=10)
    client = connected(place)
    caller = SyncRequestResponse(client, place.own_queue)
    message = Message(body="question", reply_to=caller.reply_to, correlation_id="1")
    caller.sender.send(message)
    request = requests.receive()
    requests.accept()
    server.create_sender(request.reply_to).send(Message(body=request.body.upper(), correlation_id=request.correlation_id))
    client.wait(lambda: caller.response is not None)
    equal(caller.response.body, "QUESTION")
    client.close()
    server.close()


def scenario_anonymous_terminus(place):
    """A sender without an address: `to` of each message says where it goes."""
    connection = connected(place)
    sender = connection.create_sender(None)
    sender.send(Message(address=place.own_queue, body="one"))
    sender.send(Message(address=place.other_queue, body="two"))
    for queue, body in ((place.own_queue, "one"), (place.other_queue, "two")):
        receiver = connection.create_receiver(queue)
        equal(receiver.receive().body, body)
        receiver.accept()
    connection.close()


def scenario_missing_node(place):
    """A link to a queue that is not there is refused with amqp:not-found (part 2, 2.6.3), and the session lives on."""
    connection = connected(place)
    for make in (connection.create_receiver, connection.create_sender):
        try:
            make(place.queue % "proton.nowhere")
        except LinkDetached as error:
            equal(error.condition, "amqp:not-found")
        else:
            raise AssertionError("the link was opened")
    sender = connection.create_sender(place.own_queue)
    equal(sender.send(Message(body="alive")).remote_state, Delivery.ACCEPTED)
    connection.close()


def scenario_topic(place):
    """What is sent to a topic goes to each of its subscriptions that is there."""
    connection = connected(place)
    subscriptions = [connection.create_receiver(place.own_subscription, credit=10, name="s%d" % number) for number in range(2)]
    sender = connection.create_sender(place.own_topic)
    for number in range(3):
        sender.send(Message(body=number))
    for subscription in subscriptions:
        equal([subscription.receive().body for _ in range(3)], [0, 1, 2])
    connection.close()


def scenario_second_mode(place):
    """rcv-settle-mode second: the receiver's outcome is settled by the broker, and the message goes once (part 2, 2.6.12)."""

    class Second(LinkOption):
        def apply(self, link):
            link.rcv_settle_mode = Link.RCV_SECOND

    connection = connected(place)
    connection.create_sender(place.own_queue).send(Message(body="once"))
    receiver = connection.create_receiver(place.own_queue, options=Second())
    equal(receiver.receive().body, "once")
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.update(Delivery.ACCEPTED)
    connection.wait(lambda: delivery.settled)
    delivery.settle()
    assert nothing_comes(receiver)
    connection.close()


def scenario_many_links(place):
    """60 senders and receivers on one session."""
    connection = connected(place)
    senders = [connection.create_sender(place.own_queue, name="sender %d" % number) for number in range(30)]
    receivers = [connection.create_receiver(place.own_queue, name="receiver %d" % number, credit=1) for number in range(30)]
    for number, sender in enumerate(senders):
        sender.send(Message(body=number))
    got = sorted(receiver.receive().body for receiver in receivers)
    equal(got, list(range(30)))
    connection.close()


def scenario_many_connections(place):
    """20 connections at once, one message each."""
    connections = [connected(place) for _ in range(20)]
    for number, connection in enumerate(connections):
        connection.create_sender(place.own_queue).send(Message(body=number))
    receiver = connections[0].create_receiver(place.own_queue, credit=20)
    equal([receiver.receive().body for _ in range(20)], list(range(20)))
    for connection in connections:
        connection.close()


def scenario_idle_time_out(place):
    """A connection that says an idle-time-out gets frames in time and stays (part 2, 2.4.5)."""
    connection = connected(place, heartbeat=2)
    receiver = connection.create_receiver(place.own_queue)
    assert nothing_comes(receiver, 2.5)
    connection.create_sender(place.own_queue).send(Message(body="still here"))
    equal(receiver.receive().body, "still here")
    connection.close()


def scenario_lifetime(place):
    """A message whose ttl is over is not delivered (part 3, 3.2.1)."""
    connection = connected(place)
    sender = connection.create_sender(place.own_queue)
    sender.send(Message(body="short", ttl=0.2))
    sender.send(Message(body="long", ttl=60))
    time.sleep(0.6)
    equal(connection.create_receiver(place.own_queue).receive().body, "long")
    connection.close()


def scenario_anonymous_log_in(place):
    """ANONYMOUS is announced and lets a client in."""
    connection = BlockingConnection(place.url, allowed_mechs="ANONYMOUS", timeout=WAIT_S)
    connection.create_sender(place.own_queue).send(Message(body="from nobody"))
    equal(connection.create_receiver(place.own_queue).receive().body, "from nobody")
    connection.close()


def scenario_no_sasl(place):
    """A client that begins with the plain header and no SASL is let in where ANONYMOUS is (part 2, 2.2)."""
    connection = BlockingConnection(place.url, sasl_enabled=False, timeout=WAIT_S)
    connection.create_sender(place.own_queue).send(Message(body="plain"))
    equal(connection.create_receiver(place.own_queue).receive().body, "plain")
    connection.close()


def scenario_capabilities(place):
    """The open says who the broker is, and that it serves anonymous termini."""
    connection = connected(place)
    offered = [str(word) for word in connection.conn.remote_offered_capabilities or []]
    assert "ANONYMOUS-RELAY" in offered, offered
    assert str(connection.conn.remote_properties["product"]), connection.conn.remote_properties
    connection.close()


def scenario_source_as_asked(place):
    """The attach comes back with source and target as they were asked for, so that a client sees what it got (part 2, 2.6.3)."""
    connection = connected(place)
    receiver = connection.create_receiver(place.own_queue, options=AtLeastOnce())
    equal(receiver.link.remote_source.address, place.own_queue)
    equal(receiver.link.remote_source.durability in (Terminus.NONDURABLE, Terminus.CONFIGURATION, Terminus.DELIVERIES), True)
    equal(connection.create_sender(place.own_queue).link.remote_target.address, place.own_queue)
    connection.close()


if __name__ == "__main__":
    runner.run(globals())

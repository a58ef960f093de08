"""Azure's pure-Python AMQP stack, as azure-servicebus has it within it, over TCP.

The clients above it put a token to the node $cbs before anything else, which no peer here has (Artemis lets them wait for 60 s):
azure_eventhub_client.py.
"""

import time

import runner
from azure.servicebus import _pyamqp as stack
from azure.servicebus._pyamqp import authentication as authentication
from azure.servicebus._pyamqp import constants as constants
from azure.servicebus._pyamqp import error as error
from azure.servicebus._pyamqp import message as message
from runner import equal

WAIT_S = 5


def options(place):
    return {
        "auth": authentication.SASLPlainAuth(place.user, place.password),
        "use_tls": False,
        "retry_policy": error.RetryPolicy(retry_total=0),
    }


def sender(place, **more):
    """A sender that asks for rcv-settle-mode first: see scenario_sender_as_it_comes."""
    more.setdefault("receive_settle_mode", constants.ReceiverSettleMode.First)
    return stack.SendClient("%s:%d" % (place.host, place.port), place.own_queue, **dict(options(place), **more))


def receiver(place, **more):
    return stack.ReceiveClient("%s:%d" % (place.host, place.port), place.own_queue, **dict(options(place), **more))


def received(client, count):
    """Messages until there are `count` of them, or nothing comes any more."""
    got = []
    end = time.monotonic() + WAIT_S
    while len(got) < count and time.monotonic() < end:
        got += client.receive_message_batch(max_batch_size=count - len(got), timeout=1)
    return got


def bodies(messages):
    return [b"".join(each.data) for each in messages]


def send(client, *texts, **fields):
    for text in texts:
        client.send_message(message.Message(data=[text], **fields), timeout=WAIT_S)


def scenario_log_in(place):
    """PLAIN is taken; a wrong password is not."""
    with sender(place) as client:
        send(client, b"x")
    try:
        with sender(place, auth=authentication.SASLPlainAuth(place.user, "wrong")) as client:
            send(client, b"x")
    except Exception as refusal:  # each version of the stack has another class for it
        assert "uth" in str(refusal) or "SASL" in str(refusal), refusal
    else:
        raise AssertionError("the wrong password was let in")


def scenario_round_trip(place):
    """Twenty messages are accepted, come in order and are settled."""
    wanted = [b"m%d" % number for number in range(20)]
    with sender(place) as client:
        send(client, *wanted)
    with receiver(place, link_credit=50) as client:
        got = received(client, 20)
        equal(bodies(got), wanted)


def scenario_sender_as_it_comes(place):
    """Without the option the stack asks for rcv-settle-mode second, waits for a settled outcome, and never settles itself (part 2, 2.6.12):
    whoever answers first helps it."""
    with sender(place, receive_settle_mode=constants.ReceiverSettleMode.Second) as client:
        send(client, b"x")


def scenario_properties(place):
    """Properties, application properties and annotations come back."""
    properties = message.Properties(message_id="m", subject="s", correlation_id="c", content_type="text/plain", group_id="g")
    with sender(place) as client:
        send(client, b"x", properties=properties, application_properties={"a": 1, "b": "two"}, message_annotations={"x-opt-mine": "three"})
    with receiver(place) as client:
        (got,) = received(client, 1)
    given = {str(name, "utf-8"): value for name, value in got.application_properties.items()}
    equal((given["a"], given["b"]), (1, b"two"))
    equal((got.properties.message_id, got.properties.subject, got.properties.group_id), (b"m", b"s", b"g"))
    equal(got.message_annotations[b"x-opt-mine"], b"three")


def scenario_large_message(place):
    """200 KiB go through in several transfers."""
    octets = bytes(range(256)) * 800
    with sender(place, max_frame_size=8192) as client:
        send(client, octets)
    with receiver(place, max_frame_size=8192) as client:
        equal(bodies(received(client, 1)) == [octets], True)


def scenario_settled(place):
    """A receiver whose deliveries come settled: the mode of Service Bus's receive-and-delete."""
    with sender(place) as client:
        send(client, b"a", b"b")
    with receiver(place, send_settle_mode=constants.SenderSettleMode.Settled, link_credit=10) as client:
        equal(bodies(received(client, 2)), [b"a", b"b"])


def scenario_missing_node(place):
    """A link to a queue that is not there is refused with amqp:not-found."""
    place.own_queue = place.queue % "azure.nowhere"
    try:
        with sender(place) as client:
            send(client, b"x")
    except Exception as refusal:  # the stack's own classes, which differ between the two packages
        assert "not-found" in repr(getattr(refusal, "condition", refusal)) + str(refusal), repr(refusal)
    else:
        raise AssertionError("the link was opened")


if __name__ == "__main__":
    runner.run(globals())

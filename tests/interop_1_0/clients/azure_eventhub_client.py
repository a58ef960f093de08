"""Azure's client for Event Hubs, as it comes, against a custom endpoint: its connection string says that it is an emulator's (no TLS).

It logs in as ANONYMOUS and puts a token to $cbs. A hub NAME is the streams NAME-0 and NAME-1, its partitions.
"""

import base64
import threading

import runner
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient, TransportType, exceptions
from runner import equal

KEY = base64.b64encode(b"nobody reads it").decode()


def options(place, hub=None):
    endpoint = "%s:%d" % (place.host, place.port)
    parts = ("Endpoint=sb://" + endpoint, "SharedAccessKeyName=name", "SharedAccessKey=" + KEY, "UseDevelopmentEmulator=true")
    return {
        "conn_str": ";".join(parts),
        "eventhub_name": hub or place.node,
        "transport_type": TransportType.Amqp,
        "custom_endpoint_address": "sb://" + endpoint,
        "retry_total": 0,
    }


def producer(place, hub=None):
    return EventHubProducerClient.from_connection_string(**options(place, hub))


def send(place, *events, partition="0"):
    with producer(place) as client:
        for event in events:
            client.send_event(event, partition_id=partition)


def received(place, count, partition="0", when_open=None, **position):
    """Events of a partition from a position on, until there are `count`. `when_open`: called when the consumer has attached its link."""
    got, is_done = [], threading.Event()
    client = EventHubConsumerClient.from_connection_string(consumer_group="$Default", **options(place))

    def take(context, event):
        if event is not None:
            got.append(event)
        elif when_open is not None and not got:
            when_open()
        if len(got) >= count:
            is_done.set()

    reader = threading.Thread(
        target=client.receive, args=(take,), kwargs=dict(position, partition_id=partition, max_wait_time=1), daemon=True
    )
    reader.start()
    is_done.wait(runner.WAIT_S)
    client.close()
    reader.join(runner.WAIT_S)
    return got


def texts(events):
    return [event.body_as_str() for event in events]


def scenario_hub(place):
    """The hub tells its partitions, and a partition where it begins and ends."""
    with producer(place) as client:
        equal(client.get_eventhub_properties()["partition_ids"], ["0", "1"])
        before = client.get_partition_properties("1")
        equal((before["is_empty"], before["last_enqueued_sequence_number"]), (True, -1))
        client.send_event(EventData(b"x"), partition_id="1")
        after = client.get_partition_properties("1")
        equal((after["is_empty"], after["last_enqueued_sequence_number"], after["last_enqueued_offset"]), (False, 0, "0"))


def scenario_round_trip(place):
    """Twenty events are accepted and come in order, with their offsets, sequence numbers and times."""
    wanted = ["event %d" % number for number in range(20)]
    send(place, *[EventData(text) for text in wanted])
    got = received(place, 20, starting_position="-1")
    equal(texts(got), wanted)
    equal([(event.offset, event.sequence_number) for event in got], [("%d" % number, number) for number in range(20)])
    assert all(event.enqueued_time is not None for event in got)


def scenario_properties(place):
    """Properties and system properties of an event come back."""
    event = EventData(b"x")
    event.properties = {"a": 1, "b": "two"}
    event.message_id, event.content_type, event.correlation_id = "m", "text/plain", "c"
    send(place, event)
    (got,) = received(place, 1, starting_position="-1")
    equal({str(name, "utf-8"): value for name, value in got.properties.items()}, {"a": 1, "b": b"two"})
    equal((got.message_id, got.content_type, got.correlation_id), ("m", "text/plain", "c"))


def scenario_partitions(place):
    """What goes to a partition is in no other."""
    send(place, EventData(b"a"), partition="0")
    send(place, EventData(b"b"), partition="1")
    equal(texts(received(place, 1, "1", starting_position="-1")), ["b"])
    equal(texts(received(place, 1, "0", starting_position="-1")), ["a"])


def scenario_positions(place):
    """A consumer begins behind an offset, or at it; at a sequence number."""
    send(place, *[EventData("%d" % number) for number in range(5)])
    equal(texts(received(place, 2, starting_position="2")), ["3", "4"])
    equal(texts(received(place, 3, starting_position="2", starting_position_inclusive=True)), ["2", "3", "4"])
    equal(texts(received(place, 1, starting_position=3)), ["4"])


def scenario_latest(place):
    """Without a position a consumer gets what comes later."""
    send(place, EventData(b"before"))
    equal(texts(received(place, 1, when_open=lambda: send(place, EventData(b"after")))), ["after"])


def scenario_large_event(place):
    """200 KiB go through in several transfers."""
    text = "0123456789abcdef" * 12800
    send(place, EventData(text))
    equal(texts(received(place, 1, starting_position="-1")) == [text], True)


def scenario_batch(place):
    """The events of a batch are events of their own, in order, each with its properties."""
    wanted = ["event %d" % number for number in range(500)]
    with producer(place) as client:
        batch = client.create_batch(partition_id="0")
        for text in wanted:
            event = EventData(text)
            event.properties = {"text": text}
            batch.add(event)
        client.send_batch(batch)
        client.send_batch([EventData("a"), EventData("b")], partition_id="0")
    got = received(place, 502, starting_position="-1")
    equal(texts(got), wanted + ["a", "b"])
    equal([event.properties[b"text"].decode() for event in got[:500]], wanted)
    equal([event.sequence_number for event in got], list(range(502)))


def scenario_missing_hub(place):
    """A hub that is not there is told."""
    with producer(place, "azure.nowhere") as client:
        try:
            client.get_eventhub_properties()
        except exceptions.ConnectError as refusal:
            assert "there is no hub 'azure.nowhere'" in str(refusal), refusal
        else:
            raise AssertionError("the hub is there")
        try:
            client.send_event(EventData(b"x"), partition_id="0")
        except exceptions.EventHubError as refusal:
            assert "there is no hub 'azure.nowhere'" in str(refusal), refusal  # it asks for the hub's partitions first
        else:
            raise AssertionError("the event was accepted")


if __name__ == "__main__":
    runner.run(globals())

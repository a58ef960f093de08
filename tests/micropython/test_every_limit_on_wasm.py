"""Memory is a number: the broker with BOARD limits inside MicroPython, its heap memory_needed(BOARD) and no more, everything at its limit.

GARBAGE_KB on top is what one call from outside may leave before the collector runs, which in the WebAssembly build is only between calls
(heap_bound.py); a real board collects when it has to. Unmodified pika fills connections, channels, queues, bindings, consumers and the
arena; what is beyond a limit is refused exactly, and afterwards thousands of messages still pass.
"""

import threading

import pika
import pytest
from micropython_brokers import WasmBroker
from pika.exceptions import AMQPConnectionError, AMQPError, ChannelClosedByBroker, ConnectionClosedByBroker

from leveret.core.limits import BOARD, Limits
from leveret.core.memory.micropython_sizes import memory_needed

GARBAGE_KB = 16
HEAP_KB = (memory_needed(Limits(**BOARD)) + 1023) // 1024 + GARBAGE_KB
TIMEOUT_S = 120
HEARTBEAT_S = 10  # a broker that says nothing more is noticed after two of them
RESOURCE_ERROR = 506
MESSAGE_COUNT = 5000
KEY_SIZE_MAX = 255


@pytest.fixture
def bridge():
    with WasmBroker(heap_kb=HEAP_KB) as bridge:
        yield bridge


def connect(bridge):
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1",
            bridge.port,
            heartbeat=HEARTBEAT_S,
            connection_attempts=1,
            blocked_connection_timeout=TIMEOUT_S,
            socket_timeout=TIMEOUT_S,
            stack_timeout=TIMEOUT_S,
        )
    )


def long_name(text, number):
    return ("%s-%d-" % (text, number)).ljust(BOARD["name_size_max"], "n")


def refused(act, *arguments, **named):
    """The reply code with which the broker refuses `act`."""
    with pytest.raises((ChannelClosedByBroker, ConnectionClosedByBroker)) as caught:
        act(*arguments, **named)
    return caught.value.reply_code


WORDS = 30
WORDS_WEIGHT = 10  # three words of a topic pattern count as one binding
PAIRS_WEIGHT = 2  # three pairs of a headers binding of any count as one more


def word_key(number):
    """A topic pattern of WORDS words that no other shares a node with."""
    return ".".join(["%02d%d" % (number, word) for word in range(WORDS)])


def plain_key(number):
    return ("%02d" % number).ljust(KEY_SIZE_MAX, "k")


def many_arguments(number):
    """Arguments of as many entries as fit in argument_size_max."""
    return {"x-match": "any", **{"%02d" % key: True for key in range((BOARD["argument_size_max"] - 123) // 50)}, "n": number}


def fill_queues(connections):
    """All queues there may be, with the longest names: (names, the channels in turn)."""
    channels = [connection.channel() for connection in connections for _ in range(BOARD["channel_count_max"] // 4 - 1)]
    names = [long_name("queue", number) for number in range(BOARD["queue_count_max"])]
    for number, name in enumerate(names):
        channels[number % len(channels)].queue_declare(name)
    return names, channels


def fill_bindings(channels, names, exchange, type_, key, arguments):
    """All bindings there may be, on one exchange."""
    channels[0].exchange_declare(exchange, type_)
    weight = WORDS_WEIGHT if key is word_key else PAIRS_WEIGHT if arguments else 1
    for number in range(BOARD["binding_count_max"] // weight):
        channels[number % len(channels)].queue_bind(
            names[number % len(names)], exchange, key(number), arguments(number) if arguments else None
        )


def fill_consumers(channels, names):
    for number in range(BOARD["consumer_count_max"]):
        channels[number % len(channels)].basic_consume(
            names[number % len(names)], lambda *delivery: None, consumer_tag=long_name("consumer", number)
        )


@pytest.mark.parametrize(
    "type_, key, arguments",
    [
        ("direct", plain_key, None),
        ("topic", word_key, None),
        ("headers", plain_key, many_arguments),
    ],
    ids=["direct", "topic-of-many-words", "headers-of-many-entries"],
)
def test_everything_at_its_limit_fits_and_the_next_one_is_refused(bridge, type_, key, arguments):
    connections = [connect(bridge) for _ in range(BOARD["connection_count_max"] - 1)]
    names, channels = fill_queues(connections)
    fill_bindings(channels, names, long_name("exchange", 0), type_, key, arguments)
    fill_consumers(channels, names)
    with connect(bridge) as last:
        with pytest.raises(AMQPConnectionError):
            connect(bridge)
        assert refused(last.channel().queue_declare, "one-more") == RESOURCE_ERROR
    with connect(bridge) as last:
        assert refused(last.channel().queue_bind, names[0], "amq.direct", "one-more") == RESOURCE_ERROR
    with connect(bridge) as last:
        assert refused(last.channel().basic_consume, names[0], lambda *delivery: None) == RESOURCE_ERROR
    for connection in connections:
        assert connection.is_open
    passes_messages(bridge, channels[0], names[0], 50)


def passes_messages(bridge, channel, queue, count):
    """Messages through an existing queue from another connection; other consumers of the queue are cancelled."""
    for consumer_tag in list(channel.consumer_tags):
        channel.basic_cancel(consumer_tag)
    with connect(bridge) as connection:
        publisher = connection.channel()
        publisher.confirm_delivery()
        for number in range(count):
            publisher.basic_publish("", queue, b"%d" % number, mandatory=True)
    for number in range(count):
        assert channel.basic_get(queue, auto_ack=True)[2] == b"%d" % number


def test_thousands_of_messages_pass_while_the_arena_is_full(bridge):
    """One queue is filled until its publisher is slowed; through what is left MESSAGE_COUNT messages go, confirmed and in order."""
    stalled = threading.Thread(target=fill_until_stopped, args=(bridge, "full"), daemon=True)
    with connect(bridge) as connection:
        channel = connection.channel()
        channel.queue_declare("full")
        channel.queue_declare("flow")
        stalled.start()
        with connect(bridge) as other:
            publisher = other.channel()
            publisher.confirm_delivery()
            for number in range(MESSAGE_COUNT):
                publisher.basic_publish("", "flow", b"%d" % number, mandatory=True)
                assert channel.basic_get("flow", auto_ack=True)[2] == b"%d" % number
        held = channel.queue_declare("full", passive=True).method.message_count
        assert held >= 50, "the queue that nobody reads holds %d messages" % held
        channel.queue_delete("full")


def fill_until_stopped(bridge, queue):
    """Publish to a queue that nobody reads, until it is deleted or the broker ends the connection."""
    try:
        with connect(bridge) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            while True:
                channel.basic_publish("", queue, b"x" * 200, mandatory=True)
    except AMQPError:
        return

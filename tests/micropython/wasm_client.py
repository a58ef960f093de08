"""The board's client at work, for wasm_port.py: two connections to a broker outside.

The first declares a queue and publishes MESSAGES with confirms, the second, of the same Client after `reset`, consumes them with acks,
asks for what is not there (404) and deletes the queue. Sizes go from nothing to more than a frame and more than both buffers.
At the end one line of JSON tells what was seen; bodies are compared here, octet for octet.
"""

import json

from leveret.core.amqp_0_9.client.client import Client, Events

QUEUE = "wasm-client"
MESSAGES = 200
FRAME_SIZE_MAX = 8192
BODY_SIZES = (0, 1, 64, 255, 1000, 3000, 12000)

_work = None


def body_of(number):
    size = BODY_SIZES[number % len(BODY_SIZES)]
    return (b"%d;" % number * (size // 2 + 1))[:size]


def key_of(number):
    return "message.%d" % number


class Work(Events):
    """What is to be done, step by step: each reply asks for the next."""

    def __init__(self):
        self.client = Client(self, content_size_max=16384, frame_size_max=FRAME_SIZE_MAX, confirm_window=16)
        self.connections = 0
        self.publishing = False
        self.published = self.taken = self.received = self.redelivered = 0
        self.wrong = []
        self.closed_channels = []
        self.ends = []

    def opened(self):
        self.client.channels[1].open()

    def replied(self, channel, name, arguments):
        if name == "channel_open_ok":
            if self.closed_channels:
                channel.queue_delete(QUEUE)
            else:
                channel.queue_declare(QUEUE, durable=True)
        elif name == "queue_declare_ok":
            if self.connections == 1:
                channel.confirm_select()
            else:
                channel.basic_qos(10)
        elif name == "confirm_select_ok":
            self.publishing = True
        elif name == "basic_qos_ok":
            channel.basic_consume(QUEUE)
        elif name == "queue_delete_ok":
            self.client.close()

    def confirmed(self, channel, sequence, positive):
        if positive:
            self.taken += 1

    def delivered(self, message):
        number = self.received
        if message.redelivered:
            self.redelivered += 1
        properties = message.properties
        if (
            message.routing_key != QUEUE
            or bytes(message.body) != body_of(number)
            or properties.get("message_id") != key_of(number)
            or properties.get("delivery_mode") != 2
        ):
            self.wrong.append(number)
        message.channel.basic_ack(message.delivery_tag)
        self.received += 1
        if self.received == MESSAGES:
            message.channel.queue_declare("not-there", passive=True)

    def refused(self, message, text):
        self.wrong.append(text)

    def channel_closed(self, channel, code, text):
        self.closed_channels.append(code)
        channel.open()

    def ended(self, code, text):
        self.ends.append([code, text])
        if self.connections == 2:
            print(
                json.dumps(
                    {
                        "published": self.published,
                        "confirmed": self.taken,
                        "received": self.received,
                        "wrong": self.wrong,
                        "redelivered": self.redelivered,
                        "closed_channels": self.closed_channels,
                        "ends": self.ends,
                    }
                )
            )

    def publish(self):
        channel = self.client.channels[1]
        while self.published < MESSAGES:
            properties = {"delivery_mode": 2, "message_id": key_of(self.published)}
            if not channel.basic_publish("", QUEUE, body_of(self.published), properties):
                return
            self.published += 1
        if self.taken == MESSAGES:
            self.publishing = False
            self.client.close()


def start():
    global _work
    _work = Work()


def make_endpoint():
    """The client, for its first connection, and again for each that follows."""
    if _work.connections:
        _work.client.reset()
    _work.connections += 1
    return _work.client


def tick(now):
    pass


def run(now):
    if _work.publishing:
        _work.publish()

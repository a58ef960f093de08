"""The clients of the kill test, each a thread that works until its connection ends or it is told to stop. What else goes wrong is raised by
`finish`."""

import threading

import pika

from leveret.ports.client import ClientError, connect

PADDING = " " + "x" * 200
WINDOW = 100


def identity_of(body):
    """The identity in a body."""
    return bytes(body).decode().split(" ")[0]


class Worker(threading.Thread):
    """`work()` is one piece of work, again and again."""

    def __init__(self, broker, ledger, generation):
        super().__init__(daemon=True)
        self.broker = broker
        self.ledger = ledger
        self.generation = generation
        self.number = 0
        self.done = threading.Event()
        self.error = None

    def run(self):
        try:
            self.open()
            while not self.done.is_set():
                self.work()
            self.close()
        except (ClientError, pika.exceptions.AMQPError, OSError):
            pass  # the kill
        except Exception as error:  # whatever it is, the test is told of it
            self.error = error

    def finish(self):
        """Wait for the end; raises what went wrong."""
        self.done.set()
        self.join(60)
        if self.error is not None:
            raise self.error
        assert not self.is_alive(), f"{type(self).__name__} hangs"

    def identity(self):
        """The next message's."""
        self.number += 1
        return f"{type(self).__name__}-{self.generation}-{self.number}"

    def close(self):
        self.connection.close()


class WindowPublisher(Worker):
    """Publishes with confirms, WINDOW open at most, to queue `work`, `kept` and stream `s` in turn."""

    queues = ("work", "kept", "s")

    def open(self):
        self.connection = connect(self.broker.url, confirm_window=WINDOW)
        self.sent = {}
        self.connection.confirmed = self.confirmed

    def confirmed(self, channel, sequence, positive):
        queue, identity = self.sent.pop(sequence)
        if positive and queue == "s":
            self.ledger.streamed.append(identity)
        elif positive:
            self.ledger.confirm(queue, identity)

    def work(self):
        identity = self.identity()
        queue = self.queues[self.number % len(self.queues)]
        self.sent[self.number] = queue, identity
        self.connection.publish("", queue, (identity + PADDING).encode(), {"delivery_mode": 2}, confirm=self.number % 500 == 0)

    def close(self):
        self.connection.wait_confirmed()
        self.connection.close()


class PikaWorker(Worker):
    """One that uses pika."""

    def open(self):
        self.connection = pika.BlockingConnection(pika.URLParameters(self.broker.url + "%2F"))
        self.channel = self.connection.channel()
        self.begin()


class PikaPublisher(PikaWorker):
    """Publishes to `work` and waits for each confirm."""

    def begin(self):
        self.channel.confirm_delivery()

    def work(self):
        identity = self.identity()
        self.channel.basic_publish("", "work", identity + PADDING, pika.BasicProperties(delivery_mode=2))
        self.ledger.confirm("work", identity)


class PikaTransactions(PikaWorker):
    """Commits two messages at a time to `pairs`."""

    def begin(self):
        self.channel.tx_select()

    def work(self):
        identity = self.identity()
        for half in "ab":
            self.channel.basic_publish("", "pairs", identity + half + PADDING, pika.BasicProperties(delivery_mode=2))
        self.channel.tx_commit()
        self.ledger.committed.add(identity)


class PikaConsumer(PikaWorker):
    """Takes from `work` and acks, each tenth time several at once."""

    def begin(self):
        self.channel.basic_qos(prefetch_count=50)
        self.waiting = []
        self.channel.basic_consume("work", self.take)

    def work(self):
        self.connection.process_data_events(0.02)

    def take(self, channel, method, properties, body):
        self.waiting.append(identity_of(body))
        multiple = method.delivery_tag % 10 == 0
        if multiple or method.delivery_tag % 10 < 5:
            acked = self.waiting if multiple else self.waiting[-1:]
            self.ledger.acked.update(acked)  # before the ack goes out: from now on both is right
            channel.basic_ack(method.delivery_tag, multiple)
            self.waiting = [] if multiple else self.waiting[:-1]


class StreamReader(Worker):
    """Reads the stream from its end and remembers which offset has which message."""

    def open(self):
        self.connection = connect(self.broker.url)
        self.connection.qos(200)
        self.connection.consume("s", arguments={"x-stream-offset": "last"})

    def work(self):
        for message in self.connection.poll(20):
            self.ledger.seen[message.properties["headers"]["x-stream-offset"]] = identity_of(message.body)
            self.connection.ack(message)

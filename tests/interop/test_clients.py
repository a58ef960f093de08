"""Unmodified clients do their everyday work: pika, py-amqp, kombu and aio-pika publish, consume, confirm and meet errors."""

import asyncio
import threading
import time

import aio_pika
import amqp
import kombu
import kombu.exceptions
import pika
import pika.exceptions
import pytest


@pytest.fixture
def parameters(broker):
    return pika.URLParameters(broker.url)


@pytest.fixture
def channel(parameters):
    connection = pika.BlockingConnection(parameters)
    yield connection.channel()
    if connection.is_open:
        connection.close()


# ---- pika


def test_pika_publishes_with_confirms_and_consumes(channel):
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.confirm_delivery()
    headers = {"int": 1, "big": 2**40, "text": "\u20ac", "list": [1, "a"], "nested": {"x": True}, "none": None}
    properties = pika.BasicProperties(content_type="text/plain", delivery_mode=2, headers=headers, message_id="m", timestamp=1700000000)
    for number in range(50):
        channel.basic_publish("", queue, b"%d" % number, properties, mandatory=True)
    got = []
    for deliver, received, body in channel.consume(queue, inactivity_timeout=30):
        assert received.headers == headers and received.content_type == "text/plain" and received.timestamp == 1700000000
        got.append(int(body))
        channel.basic_ack(deliver.delivery_tag)
        if len(got) == 50:
            break
    assert got == list(range(50))
    assert channel.cancel() == 0
    assert channel.queue_declare(queue, passive=True).method.message_count == 0


def test_pika_learns_that_nobody_listens(channel):
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.UnroutableError) as error:
        channel.basic_publish("amq.direct", "t.nobody", b"lost", mandatory=True)
    assert error.value.messages[0].body == b"lost" and error.value.messages[0].method.reply_code == 312


def test_pika_gets_the_errors(parameters):
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
        channel.queue_declare("t.missing", passive=True)
    assert (error.value.reply_code, error.value.reply_text) == (404, "NOT_FOUND - no queue 't.missing' in vhost '/'")
    channel = connection.channel()
    channel.basic_publish("t.missing", "k", b"x")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare("", exclusive=True)
    connection.close()


@pytest.mark.parametrize(
    "virtual_host, user, error",
    [
        ("/", "wrong", pika.exceptions.ProbableAuthenticationError),
        ("nowhere", "guest", pika.exceptions.AMQPConnectionError),
    ],
)
def test_pika_is_refused(parameters, virtual_host, user, error):
    parameters.virtual_host = virtual_host
    parameters.credentials = pika.PlainCredentials(user, "guest")
    with pytest.raises(error):
        pika.BlockingConnection(parameters)


@pytest.mark.parametrize(
    "values",
    [
        {"frame_max": 4096},
        {"channel_max": 5},
        {"heartbeat": 2},
        {"heartbeat": 0},
        {"frame_max": 8192, "heartbeat": 30},
    ],
)
def test_pika_with_settings_of_its_own(parameters, values):
    for option, value in values.items():
        setattr(parameters, option, value)
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_publish("", queue, b"x" * 30000)
    assert channel.basic_get(queue, auto_ack=True)[2] == b"x" * 30000
    connection.close()


def test_pika_and_heartbeats_while_nothing_happens(parameters):
    parameters.heartbeat = 2
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    connection.sleep(5.5)
    channel.queue_declare("", exclusive=True)
    connection.close()


def test_pika_that_sleeps_is_dropped(parameters):
    parameters.heartbeat = 1
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    time.sleep(4)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        channel.queue_declare("", exclusive=True)


def test_pika_start_consuming_in_a_thread_of_its_own(parameters, channel):
    queue = channel.queue_declare("", auto_delete=True).method.queue
    got = []

    def work():
        connection = pika.BlockingConnection(parameters)
        own = connection.channel()
        own.basic_qos(prefetch_count=10)

        def take(the_channel, deliver, properties, body):
            got.append(body)
            the_channel.basic_ack(deliver.delivery_tag)
            if len(got) == 200:
                own.stop_consuming()

        own.basic_consume(queue, take)
        own.start_consuming()
        connection.close()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    for number in range(200):
        channel.basic_publish("", queue, b"%d" % number)
    worker.join(60)
    assert not worker.is_alive()
    assert got == [b"%d" % number for number in range(200)]


def test_pika_request_and_reply(channel):
    """An exclusive reply queue and a correlation id: the everyday RPC."""
    replies = channel.queue_declare("", exclusive=True).method.queue
    requests = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_publish("", requests, b"ping", pika.BasicProperties(reply_to=replies, correlation_id="7"))
    _, properties, body = channel.basic_get(requests, auto_ack=True)
    channel.basic_publish("", properties.reply_to, b"pong to " + body, pika.BasicProperties(correlation_id=properties.correlation_id))
    _, properties, body = channel.basic_get(replies, auto_ack=True)
    assert (properties.correlation_id, body) == ("7", b"pong to ping")


def test_pika_select_connection(parameters):
    """The callback adapter, from open to close."""
    got = []

    def opened(connection):
        connection.channel(on_open_callback=declare)

    def declare(channel):
        channel.queue_declare("", exclusive=True, callback=lambda answer: ready(channel, answer))

    def ready(channel, answer):
        channel.basic_consume(answer.method.queue, take, auto_ack=True)
        channel.basic_publish("", answer.method.queue, b"by callback")

    def take(channel, deliver, properties, body):
        got.append(body)
        channel.connection.close()

    connection = pika.SelectConnection(
        parameters, on_open_callback=opened, on_close_callback=lambda connection, reason: connection.ioloop.stop()
    )
    connection.ioloop.call_later(10, connection.ioloop.stop)
    connection.ioloop.start()
    assert got == [b"by callback"]


# ---- py-amqp


@pytest.fixture
def py_amqp(broker):
    with amqp.Connection("%s:%d" % (broker.host, broker.port), confirm_publish=True, heartbeat=10) as connection:
        yield connection


def test_py_amqp_publishes_with_confirms_and_consumes(py_amqp):
    channel = py_amqp.channel()
    queue = channel.queue_declare("", exclusive=True).queue
    channel.exchange_declare("t.py-amqp", "topic", auto_delete=True)
    channel.queue_bind(queue, "t.py-amqp", "a.#")
    for number in range(20):
        message = amqp.Message(str(number), content_type="text/plain", application_headers={"n": number}, delivery_mode=2)
        channel.basic_publish_confirm(message, "t.py-amqp", "a.b", mandatory=True)
    got = []

    def take(message):
        got.append((int(message.body), message.headers["n"]))
        channel.basic_ack(message.delivery_tag)

    channel.basic_qos(0, 3, False)
    tag = channel.basic_consume(queue, callback=take)
    while len(got) < 20:
        py_amqp.drain_events(timeout=120)
    assert got == [(number, number) for number in range(20)]
    channel.basic_cancel(tag)
    channel.queue_delete(queue)


def test_py_amqp_gets_purges_and_meets_errors(py_amqp):
    channel = py_amqp.channel()
    queue = channel.queue_declare("", exclusive=True).queue
    channel.basic_publish(amqp.Message("x" * 200000), "", queue)
    message = channel.basic_get(queue)
    assert message.body == "x" * 200000
    channel.basic_reject(message.delivery_tag, requeue=True)
    channel.basic_recover(requeue=True)
    assert channel.queue_purge(queue) == 1
    assert channel.basic_get(queue) is None
    with pytest.raises(amqp.exceptions.NotFound):
        channel.queue_declare("t.missing", passive=True)
    channel = py_amqp.channel()
    with pytest.raises(amqp.exceptions.PreconditionFailed):
        channel.exchange_declare("amq.direct", "topic", durable=True, auto_delete=False)


def test_py_amqp_heartbeats(broker):
    with amqp.Connection("%s:%d" % (broker.host, broker.port), heartbeat=2) as connection:
        for _ in range(11):
            time.sleep(0.5)
            connection.heartbeat_tick()
            try:
                connection.drain_events(timeout=0.01)
            except TimeoutError:
                pass
        connection.channel().queue_declare("", exclusive=True)


def test_py_amqp_is_refused(broker):
    with pytest.raises(amqp.exceptions.AccessRefused):
        amqp.Connection("%s:%d" % (broker.host, broker.port), password="wrong").connect()


@pytest.mark.parametrize("method", ["PLAIN", "AMQPLAIN"])
def test_py_amqp_log_in_methods(broker, method):
    with amqp.Connection("%s:%d" % (broker.host, broker.port), login_method=method) as connection:
        assert connection.connected


# ---- kombu


def test_kombu_publishes_and_consumes(broker):
    with kombu.Connection(broker.url, transport_options={"confirm_publish": True}) as connection:
        exchange = kombu.Exchange("t.kombu", "direct", durable=False, auto_delete=True)
        queue = kombu.Queue("t.kombu.q", exchange, "k", durable=False, auto_delete=True)
        producer = connection.Producer(serializer="json")
        for number in range(10):
            headers = {"h": number}
            producer.publish({"n": number}, exchange=exchange, routing_key="k", declare=[queue], priority=3, headers=headers, retry=True)
        got = []

        def take(body, message):
            got.append((body["n"], message.headers["h"]))
            message.ack()

        with connection.Consumer(queue, callbacks=[take], prefetch_count=4):
            while len(got) < 10:
                connection.drain_events(timeout=120)
        assert got == [(number, number) for number in range(10)]


def test_kombu_simple_queue(broker):
    with kombu.Connection(broker.url) as connection:
        with connection.SimpleQueue("t.kombu.simple") as simple:
            simple.put({"hello": ["w", 1]}, compression="zlib")
            message = simple.get(timeout=120)
            assert message.payload == {"hello": ["w", 1]}
            message.ack()
            with pytest.raises(simple.Empty):
                simple.get(timeout=0.2)
        assert connection.channel().queue_delete("t.kombu.simple") == 0


def test_kombu_reconnects_and_errors(broker):
    with kombu.Connection(broker.url) as connection:
        connection.ensure_connection(max_retries=2)
        with pytest.raises(connection.channel_errors):
            kombu.Queue("t.missing", channel=connection.default_channel).queue_declare(passive=True)


def test_kombu_broadcast_reaches_every_consumer(broker):
    with kombu.Connection(broker.url) as connection:
        exchange = kombu.Exchange("t.kombu.fanout", "fanout", durable=False, auto_delete=True)
        queues = [kombu.Queue("", exchange, exclusive=True, channel=connection.default_channel) for _ in range(3)]
        for queue in queues:
            queue.declare()
        connection.Producer().publish("all", exchange=exchange)
        assert [queue.get(no_ack=True).payload for queue in queues] == ["all"] * 3


# ---- aio-pika


def run(work):
    return asyncio.run(asyncio.wait_for(work, 20))


def test_aio_pika_publishes_and_consumes(broker):
    async def work():
        connection = await aio_pika.connect(broker.url)
        async with connection:
            channel = await connection.channel(publisher_confirms=True)
            await channel.set_qos(prefetch_count=7)
            exchange = await channel.declare_exchange("t.aio", aio_pika.ExchangeType.TOPIC, auto_delete=True)
            queue = await channel.declare_queue("", exclusive=True)
            await queue.bind(exchange, "a.*")
            messages = [aio_pika.Message(b"%d" % number, headers={"n": number}, delivery_mode=2) for number in range(40)]
            await asyncio.gather(*[exchange.publish(message, "a.b") for message in messages])
            got = set()
            async with queue.iterator() as iterator:
                async for message in iterator:
                    async with message.process():
                        got.add((int(message.body), message.headers["n"]))
                    if len(got) == 40:
                        break
            assert got == {(number, number) for number in range(40)}

    run(work())


def test_aio_pika_robust_connection_and_errors(broker):
    async def work():
        connection = await aio_pika.connect_robust(broker.url)
        async with connection:
            channel = await connection.channel()
            with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
                await channel.declare_queue("t.missing", passive=True)
            channel = await connection.channel(on_return_raises=True)
            with pytest.raises(aio_pika.exceptions.DeliveryError):
                await channel.default_exchange.publish(aio_pika.Message(b"x"), "t.nobody", mandatory=True)
            queue = await channel.declare_queue("", exclusive=True)
            await channel.default_exchange.publish(aio_pika.Message(b"y" * 300000), queue.name)
            message = await queue.get(timeout=120)
            assert message.body == b"y" * 300000
            await message.nack(requeue=True)
            message = await queue.get(timeout=120)
            assert message.redelivered
            await message.ack()
            assert await queue.get(fail=False) is None

    run(work())


def test_aio_pika_rpc(broker):
    async def work():
        connection = await aio_pika.connect(broker.url)
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("", exclusive=True)
            answered = asyncio.get_running_loop().create_future()

            async def serve(message):
                async with message.process():
                    answer = aio_pika.Message(b"pong", correlation_id=message.correlation_id)
                    await channel.default_exchange.publish(answer, message.reply_to)

            async def take(message):
                answered.set_result((message.correlation_id, message.body))

            replies = await channel.declare_queue("", exclusive=True)
            await queue.consume(serve)
            await replies.consume(take, no_ack=True)
            request = aio_pika.Message(b"ping", correlation_id="c", reply_to=replies.name)
            await channel.default_exchange.publish(request, queue.name)
            assert await answered == ("c", b"pong")

    run(work())


# ---- one broker between different clients


def test_what_one_client_sends_the_others_read(channel, py_amqp, broker):
    queue = channel.queue_declare("t.mixed").method.queue
    headers = {"text": "\u20ac", "whole": 42, "list": [1, "two"], "table": {"x": False}}
    properties = pika.BasicProperties(headers=headers, content_type="text/plain", content_encoding="utf-8", priority=4)
    channel.basic_publish("", queue, b"from pika", properties)
    got = py_amqp.channel().basic_get(queue, no_ack=True)
    assert (got.body, got.headers, got.properties["priority"]) == ("from pika", headers, 4)
    py_amqp.channel().basic_publish(amqp.Message("from py-amqp", application_headers=headers), "", queue)

    async def read():
        connection = await aio_pika.connect(broker.url)
        async with connection:
            message = await (await (await connection.channel()).get_queue(queue)).get(no_ack=True, timeout=120)
            return message.body, message.headers

    assert run(read()) == (b"from py-amqp", headers)
    channel.queue_delete(queue)

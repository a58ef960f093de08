"""RabbitMQ's official Python client for AMQP 1.0: its management, publishers, consumers, streams and filters.

Each scenario makes its nodes by the management and removes them. The client speaks to RabbitMQ 4 and what says it is compatible with it.
"""

import time

import runner
from rabbitmq_amqp_python_client import (
    AddressHelper,
    AMQPMessagingHandler,
    ClassicQueueSpecification,
    Converter,
    Environment,
    ExchangeSpecification,
    ExchangeToExchangeBindingSpecification,
    ExchangeToQueueBindingSpecification,
    ExchangeType,
    Message,
    MessageProperties,
    OffsetSpecification,
    OutcomeState,
    StreamConsumerOptions,
    StreamFilterOptions,
    StreamSpecification,
    ValidationCodeException,
)
from rabbitmq_amqp_python_client.exceptions import AmqpMessageRejectedException
from rabbitmq_amqp_python_client.qpid.proton.utils import SendException
from runner import WAIT_S, equal


class Connected:
    """`with Connected(place) as (connection, management)`: logged in, and closed at the end."""

    def __init__(self, place):
        self.environment = Environment(uri="amqp://%s:%s@%s:%d/" % (place.user, place.password, place.host, place.port))

    def __enter__(self):
        connection = self.environment.connection()
        connection.dial()
        return connection, connection.management()

    def __exit__(self, *_):
        self.environment.close()


def own(place):
    """The name of a scenario's queue: not that of the queue that is there already for each."""
    return place.node + ".made"


class Enough(Exception):
    """A consumer has what it waits for."""


class Taker(AMQPMessagingHandler):
    """Takes so many messages, and settles each by `settle`, a name of the client's delivery context."""

    def __init__(self, count, settle="accept"):
        super().__init__()
        self.count = count
        self.settle = settle
        self.messages = []

    def on_amqp_message(self, event):
        self.messages.append(event.message)
        getattr(self.delivery_context, self.settle)(event)
        if len(self.messages) == self.count:
            raise Enough


def publish(connection, address, *messages):
    """Publish messages, each of which is accepted."""
    publisher = connection.publisher(address)
    for message in messages:
        equal(publisher.publish(message).remote_state, OutcomeState.ACCEPTED)
    publisher.close()


def outcome(publisher, message):
    """What publishing a message comes to; the client raises for what is not accepted."""
    try:
        return publisher.publish(message).remote_state
    except SendException as error:
        return error.state


def text(body, properties=None, **given):
    """A message whose body is a text, with properties and application properties."""
    message = Message(body=Converter.string_to_bytes(body), **given)
    if properties is not None:
        message.application_properties = properties
    return message


def consumed(connection, address, count, settle="accept", options=None):
    """The bodies of the first messages that come from an address."""
    taker = Taker(count, settle)
    try:
        consumer = connection.consumer(address, message_handler=taker, consumer_options=options)
        consumer.run()
    except Enough:
        pass
    return [Converter.bytes_to_string(message.body) for message in taker.messages]


def eventually(condition):
    """Wait until something is true."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def scenario_queue(place):
    """A queue is declared, told, found the same again, refused when it is another, and deleted."""
    name = own(place) + " /?%"
    with Connected(place) as (_, management):
        wanted = ClassicQueueSpecification(name=name, max_len=5, is_auto_delete=False)
        management.declare_queue(wanted)
        management.declare_queue(wanted)
        info = management.queue_info(name)
        equal((info.name, info.is_durable, info.is_exclusive, info.message_count), (name, True, False, 0))
        equal(info.arguments, {"x-queue-type": "classic", "x-max-length": 5})
        try:
            management.declare_queue(ClassicQueueSpecification(name=name, max_len=6))
        except ValidationCodeException:
            management.delete_queue(name)
        else:
            raise AssertionError("declared again with another argument")
        try:
            management.queue_info(name)
        except ValidationCodeException:
            return
        raise AssertionError("told of a queue that was deleted")


def scenario_exchanges_and_bindings(place):
    """Exchanges of each type, bound to a queue and to each other; what is unbound routes no more."""
    with Connected(place) as (connection, management):
        management.declare_queue(ClassicQueueSpecification(name=own(place)))
        names = []
        for type_ in (ExchangeType.direct, ExchangeType.topic, ExchangeType.fanout, ExchangeType.headers):
            names.append("%s.%s" % (own(place), type_.value))
            management.declare_exchange(ExchangeSpecification(name=names[-1], exchange_type=type_))
        to_queue = ExchangeToQueueBindingSpecification(source_exchange=names[1], destination_queue=own(place), binding_key="a.#")
        between = ExchangeToExchangeBindingSpecification(source_exchange=names[0], destination_exchange=names[1], binding_key="a.b")
        path = management.bind(to_queue)
        management.bind(between)
        publisher = connection.publisher(AddressHelper.exchange_address(names[0], "a.b"))
        equal(outcome(publisher, text("1")), OutcomeState.ACCEPTED)
        publish(connection, AddressHelper.exchange_address(names[1], "a"), text("2"))
        management.unbind(path)
        equal(outcome(publisher, text("3")), OutcomeState.RELEASED)
        equal(management.queue_info(own(place)).message_count, 2)
        for name in names:
            management.delete_exchange(name)
        management.delete_queue(own(place))


def scenario_purge(place):
    """A purge tells how many messages went."""
    with Connected(place) as (connection, management):
        management.declare_queue(ClassicQueueSpecification(name=own(place)))
        publish(connection, AddressHelper.queue_address(own(place)), *[text(str(number)) for number in range(20)])
        equal(management.purge_queue(own(place)), 20)
        equal(management.queue_info(own(place)).message_count, 0)
        management.delete_queue(own(place))


def scenario_messages_to_their_own_addresses(place):
    """A publisher without an address: each message says where it goes; one that goes nowhere is rejected."""
    with Connected(place) as (connection, management):
        management.declare_queue(ClassicQueueSpecification(name=own(place)))
        publisher = connection.publisher()
        message = AddressHelper.message_to_address_helper(text("x"), AddressHelper.queue_address(own(place)))
        equal(outcome(publisher, message), OutcomeState.ACCEPTED)
        message = AddressHelper.message_to_address_helper(text("y"), AddressHelper.queue_address(own(place) + ".nobody"))
        try:
            publisher.publish(message)
        except AmqpMessageRejectedException as error:
            assert "no queue" in str(error), error
        else:
            raise AssertionError("a message to a queue that is not there was not rejected")
        equal(management.purge_queue(own(place)), 1)
        management.delete_queue(own(place))


def scenario_consume(place):
    """Messages come in their order; what is discarded is a dead letter, what is requeued comes again."""
    dead = own(place) + ".dead"
    with Connected(place) as (connection, management):
        management.declare_queue(ClassicQueueSpecification(name=dead))
        management.declare_queue(ClassicQueueSpecification(name=own(place), dead_letter_exchange="amq.fanout"))
        management.bind(ExchangeToQueueBindingSpecification(source_exchange="amq.fanout", destination_queue=dead))
        address = AddressHelper.queue_address(own(place))
        publish(connection, address, *[text(str(number)) for number in range(6)])
    with Connected(place) as (connection, _):
        equal(consumed(connection, address, 2, "requeue"), ["0", "1"])
    with Connected(place) as (connection, _):
        equal(consumed(connection, address, 2), ["0", "1"])
    with Connected(place) as (connection, _):
        equal(consumed(connection, address, 1, "discard"), ["2"])
    with Connected(place) as (connection, management):
        eventually(lambda: management.queue_info(dead).message_count == 1)
    for queue, wanted in ((address, ["3", "4", "5"]), (AddressHelper.queue_address(dead), ["2"])):
        with Connected(place) as (connection, _):
            equal(consumed(connection, queue, len(wanted)), wanted)
    with Connected(place) as (_, management):
        management.delete_queue(own(place))
        management.delete_queue(dead)


def _stream(place, connection, management, *messages):
    """A stream with messages: its address."""
    management.declare_queue(StreamSpecification(name=own(place)))
    address = AddressHelper.queue_address(own(place))
    publish(connection, address, *messages)
    return address


def _read(place, address, count, options):
    """The bodies that a consumer of a stream gets, on a connection of its own."""
    with Connected(place) as (connection, _):
        return consumed(connection, address, count, options=options)


def scenario_stream_offsets(place):
    """A stream is read from its first message, and from an offset."""
    with Connected(place) as (connection, management):
        address = _stream(place, connection, management, *[text(str(number)) for number in range(10)])
        first = StreamConsumerOptions(offset_specification=OffsetSpecification.first)
        equal(_read(place, address, 10, first), [str(number) for number in range(10)])
        equal(_read(place, address, 3, StreamConsumerOptions(offset_specification=7)), ["7", "8", "9"])
        management.delete_queue(own(place))


def _filtered(place, filters, wanted):
    """What a filter lets pass of a stream whose messages have all that filters look at."""
    with Connected(place) as (connection, management):
        messages = []
        for number in range(12):
            message = text(str(number), {"number": number, "word": "w%d" % (number % 3)}, subject="s.%d" % (number % 2), group_id="g")
            message.annotations = {"x-stream-filter-value": "v%d" % (number % 4)}
            messages.append(message)
        address = _stream(place, connection, management, *messages)
        options = StreamConsumerOptions(offset_specification=OffsetSpecification.first, filter_options=filters)
        found = _read(place, address, len(wanted), options)
        management.delete_queue(own(place))
        equal(found, [str(number) for number in wanted])


def scenario_stream_filter_values(place):
    """RabbitMQ's filter values of streams."""
    _filtered(place, StreamFilterOptions(values=["v1", "v3"]), [1, 3, 5, 7, 9, 11])


def scenario_filter_of_properties(place):
    """AMQP Filter Expressions on the section properties, with a prefix."""
    _filtered(place, StreamFilterOptions(message_properties=MessageProperties(subject="&s:.1", group_id="g")), [1, 3, 5, 7, 9, 11])


def scenario_filter_of_application_properties(place):
    """AMQP Filter Expressions on application properties."""
    _filtered(place, StreamFilterOptions(application_properties={"word": "&p:w2"}), [2, 5, 8, 11])


def scenario_sql_filter(place):
    """SQL filters."""
    _filtered(place, StreamFilterOptions(sql="number > 3 AND word IN ('w0', 'w1') AND properties.subject LIKE '%.0'"), [4, 6, 10])


if __name__ == "__main__":
    runner.run(dict(globals()))

"""The client's channel: requests, content both ways, confirms, and what a broker may say unasked (0-9-1 sections 1.3 to 1.8, 4.2.6)."""

from same_random import seeds

from leveret.core.amqp_0_9 import frame, method, properties
from leveret.core.amqp_0_9.client.client import Client, Events
from leveret.core.amqp_0_9.spec_0_9_1 import METHODS
from leveret.core.errors import ProtocolError


class Recorder(Events):
    """Writes down what the client reports."""

    def __init__(self):
        self.seen = []

    def replied(self, channel, name, arguments):
        self.seen.append((name, arguments))

    def delivered(self, message):
        self.seen.append(message)

    def returned(self, message):
        self.seen.append(message)

    def refused(self, message, text):
        self.seen.append(("refused", message, text))

    def confirmed(self, channel, sequence, positive):
        self.seen.append((sequence, positive))

    def cancelled(self, channel, consumer_tag):
        self.seen.append(("cancelled", consumer_tag))

    def channel_closed(self, channel, code, text):
        self.seen.append(("channel closed", channel.number, code, text))

    def ended(self, code, text):
        self.seen.append(("ended", code, text))

    def taken(self):
        """What was seen since the last time."""
        seen = self.seen
        self.seen = []
        return seen


def says(name, *arguments, channel=1):
    """A method frame."""
    return method.encode(method.named(METHODS, name), channel, arguments)


HANDSHAKE = (
    says("connection_start", 0, 9, {}, b"PLAIN", b"en_US", channel=0)
    + says("connection_tune", 0, 0, 0, channel=0)
    + says("connection_open_ok", "", channel=0)
)


def feed(client, octets, step=0):
    """Give octets to the client, `step` at a time (0: as many as it takes)."""
    at = 0
    while at < len(octets) and not client.closed:
        view = client.writable()
        size = min(len(view), len(octets) - at, step or len(octets))
        assert size > 0
        target = view[0:size]
        target[:] = octets[at : at + size]
        client.received(size)
        at += size


def drain(client):
    """All octets that the client sends, made room for again and again."""
    octets = b""
    while len(client.pending()):
        piece = bytes(client.pending())
        octets += piece
        client.sent(len(piece))
    return octets


def frames(octets):
    """[(type, channel, payload)]"""
    found = []
    while octets:
        size = 7 + int.from_bytes(octets[3:7], "big")
        assert octets[size] == 0xCE
        found.append((octets[0], octets[1] << 8 | octets[2], octets[7:size]))
        octets = octets[size + 1 :]
    return found


def methods(octets):
    """[(method name, arguments)] of frames that are all methods."""
    found = []
    for type_, _, payload in frames(octets):
        assert type_ == frame.METHOD
        row = method.find(METHODS, int.from_bytes(payload[:4], "big"))
        found.append((row[method.NAME], method.decode(row, payload, 4, len(payload))))
    return found


def opened(confirm=False, **options):
    """(recorder, client, channel 1) with the channel open."""
    events = Recorder()
    client = Client(events, **options)
    feed(client, HANDSHAKE)
    channel = client.channels[1]
    assert channel.open()
    feed(client, says("channel_open_ok", b""))
    if confirm:
        assert channel.confirm_select()
        feed(client, says("confirm_select_ok"))
    assert channel.state == "open"
    drain(client)
    events.taken()
    return events, client, channel


def content(body, given=None, channel=1, frame_size=4096):
    """Header and body frames."""
    octets = frame.content_header(channel, len(body), properties.encode(given or {}))
    at = 0
    while at < len(body):
        octets += frame.encode(frame.BODY, channel, body[at : at + frame_size - 8])
        at += frame_size - 8
    return octets


DELIVER = says("basic_deliver", "tag", 7, True, "telemetry", "a.b")
GIVEN = {"content_type": "text/plain", "headers": {"k": 1}, "message_id": "m"}
SIZES = (0, 1, 2, 100, 1000, 2031, 2040, 2041, 2048, 4087, 4088, 4089, 9000)


def body_of(size):
    return bytes([number * 7 & 255 for number in range(size)])


# Requests


def test_requests_and_replies_one_at_a_time():
    events, client, channel = opened()
    assert channel.queue_declare("q", durable=True, arguments={"x-queue-type": "stream"})
    assert methods(drain(client)) == [("queue_declare", [0, "q", False, True, False, False, False, {"x-queue-type": "stream"}])]
    feed(client, says("queue_declare_ok", "q", 3, 2))
    assert events.taken() == [("queue_declare_ok", ["q", 3, 2])]
    for ask, name in (
        (lambda: channel.exchange_declare("e", "topic"), "exchange_declare"),
        (lambda: channel.exchange_delete("e"), "exchange_delete"),
        (lambda: channel.queue_bind("q", "e", "#"), "queue_bind"),
        (lambda: channel.queue_unbind("q", "e", "#"), "queue_unbind"),
        (lambda: channel.basic_qos(5), "basic_qos"),
    ):
        assert ask()
        assert methods(drain(client))[0][0] == name
        feed(client, says(name + "_ok"))
        assert events.taken() == [(name + "_ok", [])]


def test_a_second_request_before_the_reply_is_our_own_mistake():
    _, _, channel = opened()
    channel.basic_qos(1)
    try:
        channel.basic_qos(2)
    except AssertionError:
        return
    raise RuntimeError("two requests at a time")


def test_requests_on_a_channel_that_is_not_open_are_our_own_mistake():
    channel = Client(Recorder()).channels[1]
    for ask in (lambda: channel.basic_qos(1), lambda: channel.basic_ack(1), lambda: channel.basic_publish("", "q", b"")):
        try:
            ask()
        except ValueError:
            continue
        raise RuntimeError("asked")


def test_a_request_waits_for_room_and_one_that_never_fits_is_refused():
    events, client, channel = opened()
    while channel.basic_ack(1):
        pass
    assert not channel.basic_qos(1) and channel.waiting == ()
    drain(client)
    assert channel.basic_qos(1)
    feed(client, says("basic_qos_ok"))
    try:
        channel.queue_declare("q", arguments={"k": "v" * 2000})
    except ValueError as error:
        assert "2000" in str(error) or "octets" in str(error)
        return
    raise RuntimeError("fits")


def test_settlements_are_as_the_reference_draws_them_1_8_3():
    _, client, channel = opened()
    channel.basic_ack(0x102, multiple=True)
    channel.basic_nack(3, multiple=False, requeue=True)
    channel.basic_reject(4, requeue=False)
    assert methods(drain(client)) == [("basic_ack", [0x102, True]), ("basic_nack", [3, False, True]), ("basic_reject", [4, False])]


# Content in


def test_a_delivery_of_any_size_in_pieces_of_any_size_4_2_6():
    for size in SIZES:
        body = body_of(size)
        octets = DELIVER + content(body, GIVEN) + frame.HEARTBEAT_FRAME
        for step in (0, 1, 7, 8, 9, 333, 2048) if size < 3000 else (0, 333, 2047):
            events, client, channel = opened(content_size_max=9000)
            feed(client, octets, step)
            (message,) = events.taken()
            assert message.body == body and message.body_size == size, (size, step)
            assert message.properties == GIVEN and message.channel is channel
            assert (message.consumer_tag, message.delivery_tag, message.redelivered) == ("tag", 7, True)
            assert (message.exchange, message.routing_key) == ("telemetry", "a.b")


def test_octets_of_names_are_kept_as_they_came():
    events, client, _ = opened()
    feed(client, frame.encode(1, 1, b"\x00\x3c\x00\x3c\x01\xfe" + b"\x00" * 7 + b"\x01\x00\x02\xff\xfe\x01\xfd") + content(b"x"))
    (message,) = events.taken()
    assert message.exchange_octets == b"\xff\xfe" and message.routing_key_octets == b"\xfd" and message.consumer_tag_octets == b"\xfe"
    assert message.properties_octets == b"\x00\x00"


def test_names_that_are_not_utf_8_are_given_as_octets():
    events, client, _ = opened()
    feed(client, frame.encode(1, 1, b"\x00\x3c\x00\x32\x01\x38\x01\xff\x01\xfe\x01\xfd") + content(b""))
    (message,) = events.taken()
    assert (message.reply_text, message.exchange, message.routing_key) == (b"\xff", b"\xfe", b"\xfd")


def test_a_message_may_be_kept():
    events, client, _ = opened()
    feed(client, DELIVER + content(b"first", GIVEN) + says("basic_deliver", "x", 8, False, "", "q") + content(b"second"))
    first, second = events.taken()
    assert (first.body, first.routing_key, first.delivery_tag) == (b"first", "a.b", 7)
    assert (second.body, second.routing_key, second.delivery_tag) == (b"second", "q", 8)


def test_contents_of_two_channels_may_be_interleaved_4_2_6():
    events, client, _ = opened(channel_count=2)
    client.channels[2].open()
    feed(client, says("channel_open_ok", b"", channel=2))
    events.taken()
    first = [DELIVER, frame.content_header(1, 4, b"\x00\x00"), frame.encode(3, 1, b"ab"), frame.encode(3, 1, b"cd")]
    second = [
        says("basic_deliver", "t", 1, False, "", "q", channel=2),
        frame.content_header(2, 4, b"\x00\x00"),
        frame.encode(3, 2, b"12"),
        frame.encode(3, 2, b"34"),
    ]
    for number in range(4):
        feed(client, first[number] + second[number])
    assert [message.body for message in events.taken()] == [b"abcd", b"1234"]


def test_get_and_get_empty_1_8_3_10():
    events, client, channel = opened()
    channel.basic_get("q")
    feed(client, says("basic_get_ok", 1, False, "e", "k", 9) + content(b"body"))
    ((name, (message,)),) = events.taken()
    assert name == "basic_get_ok" and message.body == b"body" and message.delivery_tag == 1 and message.message_count == 9
    assert (message.exchange, message.routing_key) == ("e", "k")
    channel.basic_get("q")
    feed(client, says("basic_get_empty", ""))
    assert events.taken() == [("basic_get_empty", [""])]


def test_a_returned_message_1_8_3_7():
    events, client, _ = opened()
    feed(client, says("basic_return", 312, "NO_ROUTE", "e", "k") + content(b"body", GIVEN))
    (message,) = events.taken()
    assert (message.reply_code, message.reply_text, message.exchange, message.routing_key) == (312, "NO_ROUTE", "e", "k")
    assert message.body == b"body" and message.properties == GIVEN


def test_a_content_that_is_too_large_is_passed_over_and_told():
    for step in (0, 1, 1000):
        events, client, _ = opened(content_size_max=5000)
        feed(client, DELIVER + content(bytes(5001)) + DELIVER + content(b"next"), step)
        (what, message, text), following = events.taken()
        assert (what, text) == ("refused", "a content of 5001 octets where 5000 are the most")
        assert message.body is None and message.body_size == 5001 and message.delivery_tag == 7
        assert following.body == b"next"


def test_properties_that_do_not_fit_the_receive_buffer_are_passed_over_and_told():
    given = {"headers": {"k": "v" * 6000}}
    for body in (b"", b"body", bytes(3000)):
        for step in (0, 1, 1000, 2048):
            events, client, _ = opened()
            feed(client, frame.HEARTBEAT_FRAME + DELIVER + content(body, given) + DELIVER + content(b"next"), step)
            (what, message, text), following = events.taken()
            assert (what, text) == ("refused", "properties larger than the receive buffer")
            assert message.body is None and message.body_size == len(body) and following.body == b"next"


def test_a_get_that_is_refused_ends_the_request():
    events, client, channel = opened(content_size_max=10)
    channel.basic_get("q")
    feed(client, says("basic_get_ok", 1, False, "e", "k", 9) + content(bytes(11)))
    assert events.taken()[0][0] == "refused" and channel.waiting == ()


def ended_with(octets):
    """The code that the connection ends with for these octets on open channel 1."""
    events, client, _ = opened()
    feed(client, octets)
    assert client.closed
    ((name, (code, _, _, _)),) = methods(drain(client))
    assert name == "connection_close" and events.taken()[-1][1] == code
    return code


def test_contents_that_break_the_rules_end_the_connection_4_2_6():
    header = frame.content_header(1, 4, b"\x00\x00")
    assert ended_with(header) == 505
    assert ended_with(frame.encode(3, 1, b"abcd")) == 505
    assert ended_with(DELIVER + DELIVER) == 505
    assert ended_with(DELIVER + frame.encode(3, 1, b"abcd")) == 505
    assert ended_with(DELIVER + header + header) == 505
    assert ended_with(DELIVER + header + frame.encode(3, 1, b"abcde")) == 501
    assert ended_with(DELIVER + header + frame.encode(3, 1, b"abc") + frame.encode(3, 1, b"de")) == 501
    assert ended_with(DELIVER + frame.encode(2, 1, b"\x00\x3d\x00\x00" + bytes(10))) == 502
    assert ended_with(DELIVER + frame.encode(2, 1, b"\x00\x3c\x00\x00")) == 502
    assert ended_with(says("basic_get_ok", 1, False, "e", "k", 9)) == 503
    assert ended_with(says("queue_declare_ok", "q", 0, 0)) == 503
    assert ended_with(says("queue_declare", 0, "q", False, False, False, False, False, {})) == 503
    assert ended_with(frame.encode(1, 1, b"\x00\x3c")) == 502
    assert ended_with(frame.encode(1, 1, b"\x00\x3c\x00\x3c\x05abc")) == 502
    assert ended_with(frame.encode(1, 1, b"\x00\x3c\x00\x3c\x01a" + bytes(9) + b"\x00\x00\x00")) == 502


def test_properties_that_cannot_be_read_are_told_when_asked_for_4_2_6_1():
    events, client, _ = opened()
    feed(client, DELIVER + frame.content_header(1, 0, b"\x80\x00\x09short"))
    (message,) = events.taken()
    try:
        read = message.properties
    except ProtocolError:
        return
    raise RuntimeError("read: %r" % (read,))


def random_numbers(seed):
    """Whole numbers without end, the same for the same seed."""
    while True:
        seed = (seed * 1103515245 + 12345) & 0x3FFFFFFF
        yield seed >> 8


class Worker(Recorder):
    """Opens a channel, publishes a message in confirm mode and consumes."""

    def opened(self):
        self.client.channels[1].open()

    def replied(self, channel, name, arguments):
        Recorder.replied(self, channel, name, arguments)
        if name == "channel_open_ok":
            channel.confirm_select()
        elif name == "confirm_select_ok":
            channel.basic_publish("e", "k", b"x", mandatory=True)
            channel.basic_consume("q")


def test_octets_changed_at_random_never_raise_and_the_end_comes_once():
    stream = HANDSHAKE + says("channel_open_ok", b"") + says("confirm_select_ok") + says("basic_consume_ok", "tag")
    stream += DELIVER + content(body_of(5000), GIVEN) + frame.HEARTBEAT_FRAME + says("basic_ack", 1, False)
    stream += says("basic_return", 312, "NO_ROUTE", "e", "k") + content(b"x", GIVEN) + says("basic_cancel", "tag", False)
    stream += says("channel_close", 404, "NOT_FOUND", 0, 0) + says("connection_close", 320, "bye", 0, 0, channel=0)
    for seed in seeds(0, 250):
        numbers = random_numbers(seed)
        octets = bytearray(stream)
        for _ in range(next(numbers) % 4):
            octets[next(numbers) % len(octets)] = next(numbers) & 255
        events = Worker()
        events.client = client = Client(events, content_size_max=6000)
        at = 0
        while at < len(octets) and not client.closed:
            size = min(next(numbers) % 700 + 1, len(octets) - at)
            feed(client, octets[at : at + size])
            at += size
            drain(client)
        client.received(0)
        assert len([each for each in events.seen if type(each) is tuple and each[0] == "ended"]) == 1, seed
        if octets == stream:
            assert len(events.seen) == 9 and events.seen[-1] == ("ended", 320, "bye")


# Content out


def published(client):
    """[(publish arguments, properties octets, body)] of what the client sends."""
    found = []
    for type_, number, payload in frames(drain(client)):
        assert number == 1 and len(payload) <= client.frame_size_max - 8
        if type_ == frame.METHOD:
            row = method.named(METHODS, "basic_publish")
            found.append([method.decode(row, payload, 4, len(payload)), None, b""])
        elif type_ == frame.HEADER:
            found[-1][1] = payload[12:]
            found[-1].append(int.from_bytes(payload[4:12], "big"))
        else:
            found[-1][2] += payload
    for each in found:
        assert each.pop() == len(each[2])
    return found


def test_publishing_any_size_4_2_6():
    for size in SIZES + (20000,):
        for options in ({}, {"frame_size_max": 4096}, {"send_size": 1500}, {"send_size": 40000}):
            _, client, channel = opened(**options)
            body = body_of(size)
            assert channel.basic_publish("e", "k", body, GIVEN, mandatory=True) == 1
            assert published(client) == [[[0, "e", "k", True, False], properties.encode(GIVEN), body]], (size, options)


def test_publishing_is_numbered_and_stops_when_there_is_no_room():
    _, client, channel = opened()
    number = 0
    while channel.basic_publish("e", "k", body_of(100), b"\x00\x00"):
        number += 1
        assert channel.published == number
    assert 5 < number < 20
    assert len(published(client)) == number
    assert channel.basic_publish("e", "k", b"") == number + 1


def test_names_and_properties_go_out_octet_for_octet():
    _, client, channel = opened()
    channel.basic_publish(b"e", b"k.\xff", memoryview(b"body"), b"\x80\x00\x03\xff\xfe\xfd")
    payloads = [payload for _, _, payload in frames(drain(client))]
    assert payloads[0] == b"\x00\x3c\x00\x28\x00\x00\x01e\x03k.\xff\x00"
    assert payloads[1][12:] == b"\x80\x00\x03\xff\xfe\xfd" and payloads[2] == b"body"


def test_while_a_large_body_goes_out_its_channel_has_no_room_and_heartbeats_are_kept_4_2_6():
    _, client, channel = opened(heartbeat_s=10)
    client.tick(0)
    assert channel.basic_publish("e", "k", bytes(6000)) == 1
    assert channel.basic_publish("e", "k", b"") == 0 and not channel.basic_ack(1) and not channel.basic_qos(1)
    assert len(published(client)) == 1
    assert channel.basic_ack(1)


def test_a_channel_closed_in_the_middle_of_a_large_body_goes_on_with_nothing_of_it():
    events, client, channel = opened()
    channel.basic_publish("e", "k", bytes(6000))
    before = bytes(client.pending())
    feed(client, says("channel_close", 404, "NOT_FOUND - no exchange 'e'", 60, 40))
    assert drain(client) == before + says("channel_close_ok")
    assert events.taken() == [("channel closed", 1, 404, "NOT_FOUND - no exchange 'e'")]
    assert channel.open()


def test_publishing_stops_while_the_broker_says_so_1_5_2_3():
    _, client, channel = opened()
    feed(client, says("channel_flow", False))
    assert methods(drain(client)) == [("channel_flow_ok", [False])]
    assert channel.basic_publish("e", "k", b"") == 0
    feed(client, says("channel_flow", True))
    drain(client)
    assert channel.basic_publish("e", "k", b"") == 1
    feed(client, says("connection_blocked", "memory", channel=0))
    assert channel.basic_publish("e", "k", b"") == 0
    feed(client, says("connection_unblocked", channel=0))
    assert channel.basic_publish("e", "k", b"") == 2


# Confirms


def test_confirms_are_told_each_once_in_any_order():
    events, client, channel = opened(confirm=True, send_size=8192)
    for number in range(1, 9):
        assert channel.basic_publish("e", "k", b"") == number
    assert channel.unconfirmed == 8
    feed(client, says("basic_ack", 3, False) + says("basic_nack", 1, False, False))
    assert events.taken() == [(3, True), (1, False)] and channel.unconfirmed == 7
    feed(client, says("basic_ack", 5, True))
    assert events.taken() == [(2, True), (4, True), (5, True)] and channel.unconfirmed == 3
    feed(client, says("basic_ack", 5, True) + says("basic_ack", 2, False))
    assert events.taken() == []
    feed(client, says("basic_nack", 0, True, False))
    assert events.taken() == [(6, False), (7, False), (8, False)] and channel.unconfirmed == 0


def test_the_confirm_window_bounds_what_is_unconfirmed_and_goes_round():
    events, client, channel = opened(confirm=True, confirm_window=4, send_size=8192)
    following = 1
    for _ in range(10):
        while channel.basic_publish("e", "k", b""):
            following += 1
        assert channel.unconfirmed == 4
        feed(client, says("basic_ack", following - 2, False))
        assert channel.basic_publish("e", "k", b"") == 0
        feed(client, says("basic_ack", following - 1, True))
        assert [sequence for sequence, _ in events.taken()] == [following - 2, following - 4, following - 3, following - 1]
        drain(client)


def test_a_confirm_for_what_was_not_published_ends_the_connection():
    for tag in (1, 0, 0x7FFFFFFFFFFFFFFF):
        events, client, _ = opened(confirm=True)
        feed(client, says("basic_ack", tag, False))
        assert client.closed and methods(drain(client))[0][1][0] == 503
    assert ended_with(says("basic_ack", 1, False)) == 503


# Unasked


def test_a_consumer_that_the_broker_ends_is_told():
    events, client, _ = opened()
    feed(client, says("basic_cancel", "tag", True))
    assert events.taken() == [("cancelled", "tag")] and drain(client) == b""
    feed(client, says("basic_cancel", "tag", False))
    assert methods(drain(client)) == [("basic_cancel_ok", ["tag"])]


def test_a_channel_that_the_broker_closes_can_be_opened_again_1_5_2_5():
    events, client, channel = opened(confirm=True)
    channel.queue_declare("q", passive=True)
    channel.basic_publish("", "q", b"")
    drain(client)
    feed(client, says("channel_close", 404, "NOT_FOUND - no queue 'q' in vhost '/'", 50, 10))
    assert events.taken() == [("channel closed", 1, 404, "NOT_FOUND - no queue 'q' in vhost '/'")]
    assert methods(drain(client)) == [("channel_close_ok", [])] and channel.state == "closed"
    assert channel.open()
    feed(client, says("channel_open_ok", b""))
    assert events.taken() == [("channel_open_ok", [b""])] and channel.unconfirmed == 0 and not channel.confirming


def test_a_new_stream_begins_with_closed_channels():
    """Section 2.2.1: channels are those of a connection; what the old one had not confirmed, and half of a content, are forgotten."""
    events, client, channel = opened(confirm=True)
    channel.basic_publish("", "q", b"")
    feed(client, DELIVER + content(b"cut off")[:30])
    client.received(0)
    client.reset()
    assert channel.state == "closed" and channel.unconfirmed == 0 and not channel.confirming and channel.waiting == ()
    drain(client)
    events.taken()
    feed(client, HANDSHAKE)
    assert channel.open()
    feed(client, says("channel_open_ok", b"") + DELIVER + content(b"whole"))
    told, message = events.taken()
    assert told == ("channel_open_ok", [b""]) and bytes(message.body) == b"whole"


def test_what_was_under_way_to_a_channel_that_is_being_closed_is_discarded_1_5_2_5():
    events, client, channel = opened()
    channel.close()
    feed(client, DELIVER + content(b"late") + says("basic_cancel", "t", True) + says("channel_close_ok"))
    assert events.taken() == [("channel_close_ok", [])] and channel.state == "closed"


def test_both_sides_close_the_channel_at_once():
    events, client, channel = opened()
    channel.close()
    drain(client)
    feed(client, says("channel_close", 406, "x", 0, 0))
    assert methods(drain(client)) == [("channel_close_ok", [])]
    feed(client, says("channel_close_ok"))
    assert events.taken() == [("channel_close_ok", [])] and channel.state == "closed"

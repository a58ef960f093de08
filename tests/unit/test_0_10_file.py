"""AMQP 0-10, class file: contents that are staged, published, delivered; resumed after the connection was lost."""

from peer import Peer as Peer091
from peer_0_10 import command, control
from peer_1_0 import Peer as Peer10
from peer_file import FILE, GIVEN, LARGE, SMALL, FilePeer, broker_of, content, octets
from test_older import Old, consumed, waited

from leveret.core.amqp_0_9 import spec_0_8
from leveret.core.amqp_0_10 import structs
from leveret.core.staging import contents as staging


def started(**given):
    """A peer of a broker with a queue."""
    peer = FilePeer(broker_of(**given))
    peer.do("queue_declare", queue="q")
    return peer


def test_a_content_goes_in_and_out_with_all_its_properties():
    """file.open, open-ok, stage, publish; consume, open, open-ok, stage, deliver, ack."""
    for size in (0, 1, SMALL, LARGE):
        peer = started()
        body = octets(size)
        peer.do("file_open", identifier="a", content_size=size)
        assert peer.named("file_open_ok")[0][0] == {"staged_size": 0}
        peer.give(content("file_stage", body, GIVEN))
        peer.ids += 1
        assert peer.completed() == [(0, 2)]
        id_ = peer.do("file_publish", exchange="", routing_key="q", identifier="a")
        assert peer.completed() == [(0, id_)]
        peer.do("file_consume", queue="q", consumer_tag="c")
        opened, header, found, deliver = peer.take_file()
        assert opened["content_size"] == size and found == body and header == GIVEN
        assert deliver["consumer_tag"] == "c" and deliver["exchange"] == "" and deliver["routing_key"] == "q"
        assert deliver["identifier"] == opened["identifier"] and not deliver["redelivered"] and deliver["delivery_tag"]
        queue = peer.broker.queues["q"]
        assert queue.unsettled_count() == 1
        peer.do("file_ack", delivery_tag=deliver["delivery_tag"])
        assert (queue.message_count(), queue.unsettled_count()) == (0, 0)


def test_staging_goes_on_where_the_connection_was_lost():
    """file.open-ok: "If the message was already partially-staged at a previous time the recipient will report the number of octets already
    staged."
    """
    for cut in (0, 1, 999, 8192, 20000, LARGE - 1):
        peer = started()
        body = octets(LARGE)
        peer.do("file_open", identifier="a", content_size=LARGE)
        whole = content("file_stage", body, GIVEN)
        peer.give(whole[:60])
        given = 0
        while given < cut:  # in frames, of which the last is never sent
            peer.give(whole[60 + given : 60 + given + 1000])
            given += 1000
        peer.connection.received(0)
        again = FilePeer(peer.broker)
        again.do("file_open", identifier="a", content_size=LARGE)
        staged = again.named("file_open_ok")[0][0]["staged_size"]
        assert staged <= given and staged >= given - 2000
        again.give(content("file_stage", body[staged:], GIVEN))
        again.ids += 1
        again.do("file_publish", exchange="", routing_key="q", identifier="a")
        again.do("file_consume", queue="q", consumer_tag="c")
        assert again.take_file()[2] == body


def test_a_whole_content_is_staged_again_without_its_octets():
    peer = started()
    peer.stage("a", octets(SMALL))
    peer.all()
    peer.do("file_open", identifier="a", content_size=SMALL)
    assert peer.named("file_open_ok")[0][0] == {"staged_size": SMALL}
    peer.give(content("file_stage", b""))
    peer.ids += 1
    peer.do("file_publish", exchange="", routing_key="q", identifier="a")
    assert peer.completed() == [(0, 5)] and peer.broker.queues["q"].message_count() == 1


def test_another_size_is_another_content():
    peer = started()
    peer.do("file_open", identifier="a", content_size=SMALL)
    peer.give(content("file_stage", octets(SMALL)))
    peer.do("file_open", identifier="a", content_size=SMALL + 1)
    assert [each[0]["staged_size"] for each in peer.named("file_open_ok")] == [0, 0]
    assert len(peer.broker.contents.by_token) == 1


def test_contents_belong_to_their_users():
    peer = started()
    peer.stage("a", octets(SMALL))
    contents = peer.broker.contents
    assert list(contents.by_key) == [("guest", "a")]
    peer.broker.contents.by_key = {("other", "a"): contents.by_key["guest", "a"]}
    peer.all()
    peer.do("file_publish", exchange="", routing_key="q", identifier="a")
    assert peer.error()[0] == 404


def test_the_client_says_what_it_has_of_a_delivery():
    """A client whose connection was lost takes the rest: the identifier of a content larger than a message stays the same."""
    peer = started()
    body = octets(LARGE)
    peer.send("a", body)
    peer.all()
    peer.do("file_consume", queue="q", consumer_tag="c")
    ((first, _, _),) = peer.named("file_open")
    peer.connection.received(0)
    peer.broker.run()
    again = FilePeer(peer.broker)
    again.do("file_consume", queue="q", consumer_tag="c")
    opened, _, found, deliver = again.take_file(17000)
    assert opened == first and found == body[17000:] and deliver["redelivered"]


def test_ordinary_messages_are_staged_too():
    """A file consumer of a queue gets every message of it; what has no counterpart in file-properties is left out."""
    peer = started()
    peer.publish(b"hello", header={"content_type": "text/plain", "application_headers": {"n": 5}}, delivery={"priority": 2})
    old = Peer091(peer.broker)
    old.publish("q", b"by 0-9-1", given={"content_type": "c/d", "message_id": "m", "headers": {"h": "v"}})
    peer.all()
    peer.do("file_consume", queue="q", consumer_tag="c")
    opened, header, body, deliver = peer.take_file()
    assert body == b"hello" and header["content_type"] == "text/plain" and header["headers"] == {"n": 5} and header["priority"] == 2
    assert opened["identifier"] == deliver["identifier"]
    peer.do("file_ack", delivery_tag=deliver["delivery_tag"])


def test_a_content_that_fits_a_message_is_one_for_other_consumers():
    peer = started()
    peer.send("a", octets(SMALL), given=GIVEN)
    old = Peer091(peer.broker)
    ((_, _, given, body),) = old.consume("q")
    assert body == octets(SMALL)
    assert given["content_type"] == "a/b" and given["headers"]["x-filename"] == "image.bin" and given["message_id"] == "an id"
    assert given["priority"] == 3 and given["delivery_mode"] == 2 and given["timestamp"] == 1700000000


def test_a_larger_one_waits_for_a_file_consumer():
    """Others get the messages before and behind it; basic.get sees no further than it."""
    peer = started()
    before = Peer091(peer.broker)
    before.consume("q", "before", no_ack=True)
    peer.send("a", octets(LARGE))
    peer.publish(b"behind")
    behind = Peer091(peer.broker)
    got = behind.consume("q", "behind", no_ack=True)
    peer.publish(b"more")
    got = [each[3] for each in got + before.contents() + behind.contents()]
    assert sorted(got) == [b"behind", b"more"]
    peer.all()
    peer.do("file_consume", queue="q", consumer_tag="c")
    assert peer.take_file()[2] == octets(LARGE)


def test_what_no_message_refers_to_goes():
    peer = started()
    broker = peer.broker
    peer.send("large", octets(LARGE))
    peer.send("small", octets(SMALL))
    peer.stage("left", octets(SMALL))
    peer.connection.received(0)
    seconds = 0

    def pass_time(until):
        while broker.uptime_s < until:
            broker.tick((broker.now + 500) & 0x3FFFFFFF, 1700000000)
            broker.run()

    pass_time(staging.LOOK_S * 2)
    assert sorted([each.identifier for each in broker.contents.by_token.values()]) == ["large", "left", "small"], seconds
    pass_time(staging.GRACE_S + 5)
    assert sorted([each.identifier for each in broker.contents.by_token.values()]) == ["large", "left"]
    broker.purge(broker.queues["q"], 100)
    pass_time(staging.GRACE_S + 20)
    assert [each.identifier for each in broker.contents.by_token.values()] == ["left"]
    broker.tick((broker.now + 86400000) & 0x3FFFFFFF, 1700086400)
    pass_time(broker.uptime_s + 1)
    assert not broker.contents.by_token and broker.counters["staged_expired"] == 1
    pass_time(broker.uptime_s + 2)
    assert not broker.contents.store.numbers()


REFUSED = (  # what is refused, the commands, (error code, part of the text)
    ("a stage without an open", [("stage", b"x")], 409),
    ("an empty identifier", [("file_open", {"identifier": "", "content_size": 1})], 406),
    ("more octets than promised", [("file_open", {"identifier": "a", "content_size": 1}), ("stage", b"xy")], 406),
    ("fewer octets than promised", [("file_open", {"identifier": "a", "content_size": 3}), ("stage", b"xy")], 406),
    ("a content larger than all may be", [("file_open", {"identifier": "a", "content_size": 1 << 21})], 506),
    (
        "more than the others leave",
        [("file_open", {"identifier": "b", "content_size": 1 << 20}), ("file_open", {"identifier": "a", "content_size": 1})],
        506,
    ),
    ("a publish of nothing", [("file_publish", {"routing_key": "q", "identifier": "a"})], 404),
    (
        "a publish of a part",
        [("file_open", {"identifier": "a", "content_size": 1}), ("file_publish", {"routing_key": "q", "identifier": "a"})],
        406,
    ),
    (
        "an exchange that is not there",
        [("file_open", {"identifier": "a", "content_size": 0}), ("stage", b""), ("file_publish", {"exchange": "no", "identifier": "a"})],
        404,
    ),
    ("an open-ok without an open", [("file_open_ok", {"staged_size": 0})], 409),
    ("a consumer without a tag", [("file_consume", {"queue": "q", "consumer_tag": ""})], 530),
    ("a consumer without a queue", [("file_consume", {"queue": "", "consumer_tag": "c"})], 530),
    ("a consumer of no queue", [("file_consume", {"queue": "no", "consumer_tag": "c"})], 404),
    ("a tag twice", [("file_consume", {"queue": "q", "consumer_tag": "c"}), ("file_consume", {"queue": "q", "consumer_tag": "c"})], 530),
    (
        "an exclusive consumer beside another",
        [("file_consume", {"queue": "q", "consumer_tag": "c"}), ("file_consume", {"queue": "q", "consumer_tag": "d", "exclusive": True})],
        405,
    ),
    ("a cancel of nothing", [("file_cancel", {"consumer_tag": "c"})], 404),
    ("an ack of nothing", [("file_ack", {"delivery_tag": 7})], 531),
    ("a reject of nothing", [("file_reject", {"delivery_tag": 7})], 531),
    ("what a server sends", [("file_deliver", {"consumer_tag": "c"})], 540),
    ("the same with a content", [("return", b"")], 503),
)


def test_refusals():
    for what, commands, code in REFUSED:
        peer = started()
        for name, given in commands:
            if name == "stage":
                peer.give(content("file_stage", given))
            elif name == "return":
                peer.give(content("file_return", given))
            else:
                peer.give(command(name, **given))
        assert peer.error()[0] == code, what


def test_no_more_contents_than_the_limit():
    peer = started(staged_count_max=2)
    for name in ("a", "b"):
        peer.do("file_open", identifier=name, content_size=5)
    peer.all()
    peer.do("file_open", identifier="c", content_size=5)
    assert peer.error() == (506, "this broker stages 2 contents at most")
    peer = started(staged_count_max=1)
    for name in ("a", "b"):  # what is a message already gives way
        peer.send(name, b"hello")
    assert peer.broker.queues["q"].message_count() == 2


def test_another_session_goes_on():
    peer = started()
    body = octets(SMALL)
    peer.do("file_open", identifier="a", content_size=SMALL)
    other = FilePeer(peer.broker, name=b"other")
    other.do("file_open", identifier="a", content_size=SMALL)
    peer.all()
    peer.give(content("file_stage", body))
    assert peer.error()[0] == 405
    other.give(content("file_stage", body))
    assert other.completed() == [(0, 1)]


def test_windows_bound_what_is_not_acknowledged():
    """file.qos: prefetch-count and prefetch-size; a message larger than the window goes alone."""
    for window, most in (({"prefetch_count": 2}, 2), ({"prefetch_size": 25}, 2), ({"prefetch_size": 5}, 1), ({}, 4)):
        peer = started()
        for _ in range(4):
            peer.publish(b"0123456789")
        peer.all()
        peer.do("file_qos", **window)
        assert len(peer.named("file_qos_ok")) == 1
        peer.do("file_consume", queue="q", consumer_tag="c")
        tags = []
        while True:
            opened = peer.named("file_open")
            if not opened:
                break
            peer.do("file_open_ok", staged_size=0)
            found = peer.all()
            tags += [each[1]["delivery_tag"] for each in found if each[0] == "file_deliver"]
            peer.inbox = b"".join([command("file_open", **each[1]) for each in found if each[0] == "file_open"])
        assert len(tags) == most, window
        peer.do("file_ack", delivery_tag=tags[0])
        assert len(peer.named("file_open")) == (1 if most < 4 else 0)


def delivered(count, **given):
    """A peer and the delivery tags of `count` messages that it has taken."""
    peer = started(**given)
    for number in range(count):
        peer.publish(b"%d" % number)
    peer.all()
    peer.do("file_consume", queue="q", consumer_tag="c")
    tags = []
    for _ in range(count):
        peer.do("file_open_ok", staged_size=0)
        tags += [each[0]["delivery_tag"] for each in peer.named("file_deliver")]
    return peer, tags


def test_ack_one_some_and_all():
    peer, tags = delivered(5)
    queue = peer.broker.queues["q"]
    peer.do("file_ack", delivery_tag=tags[1])
    assert queue.unsettled_count() == 4
    peer.do("file_ack", delivery_tag=tags[2], multiple=True)
    assert queue.unsettled_count() == 2
    peer.do("file_ack", delivery_tag=0, multiple=True)
    assert (queue.unsettled_count(), queue.message_count()) == (0, 0)
    peer.do("file_ack", delivery_tag=tags[1])
    assert peer.error()[0] == 531


def test_reject_with_and_without_requeue():
    """file.reject: "The server MUST NOT deliver the message to the same client within the context of the current session." """
    peer, tags = delivered(2)
    queue = peer.broker.queues["q"]
    peer.do("file_reject", delivery_tag=tags[0], requeue=True)
    assert (queue.message_count(), queue.unsettled_count()) == (1, 1) and not peer.named("file_open")
    other = FilePeer(peer.broker, name=b"other")
    other.do("file_consume", queue="q", consumer_tag="c")
    assert other.take_file()[3]["redelivered"]
    peer.do("file_reject", delivery_tag=tags[1])
    assert queue.unsettled_count() == 1 and peer.broker.counters["rejected"] == 1


def test_no_ack_and_cancel():
    peer = started()
    for _ in range(3):
        peer.publish(b"x")
    peer.all()
    peer.do("file_consume", queue="q", consumer_tag="c", no_ack=True, nowait=True)
    assert not peer.named("file_consume_ok")
    peer.do("file_open_ok", staged_size=0)
    assert peer.broker.queues["q"].unsettled_count() == 1  # the second, which has been opened
    peer.do("file_cancel", consumer_tag="c")
    peer.do("file_open_ok", staged_size=0)
    assert len(peer.named("file_deliver")) == 2
    assert peer.broker.queues["q"].message_count() == 1


def test_a_consumer_that_the_broker_refuses_is_none():
    """file.consume fails as a whole: its session ends in order, and the queue has no consumer."""
    peer = started()
    other = FilePeer(peer.broker, name=b"other")
    peer.give(command("file_consume", queue="q", consumer_tag="c", arguments={"x-priority": "high"}))
    assert peer.error()[0] == 406
    peer.connection.received(0)
    assert peer.broker.queues["q"].consumers == []
    other.publish(b"x")
    other.all()
    other.do("file_consume", queue="q", consumer_tag="c")
    assert other.take_file()[2] == b"x"


def test_what_no_queue_takes_is_returned():
    """file.return: only when mandatory is set, 312; 313 with immediate where nobody reads."""
    peer = started()
    peer.stage("a", b"hello", GIVEN)
    peer.all()
    peer.do("file_publish", exchange="", routing_key="no", identifier="a")
    assert not peer.named("file_return")
    peer.do("file_publish", exchange="", routing_key="no", identifier="a", mandatory=True)
    ((fields, header, body),) = peer.named("file_return")
    assert (fields["reply_code"], fields["routing_key"]) == (312, "no") and body == b""
    assert structs.read(FILE, header, 0, len(header))[0] == GIVEN
    peer.do("file_publish", exchange="", routing_key="q", identifier="a", immediate=True)
    ((fields, _, _),) = peer.named("file_return")
    assert fields["reply_code"] == 313 and peer.broker.queues["q"].message_count() == 0
    peer.do("file_consume", queue="q", consumer_tag="c")
    peer.all()
    peer.do("file_publish", exchange="", routing_key="q", identifier="a", immediate=True)
    assert len(peer.named("file_open")) == 1


def test_transactions_have_publishes_and_acks():
    """The class's text: "File messages and acknowledgements are subject to session transactions." """
    for size in (SMALL, LARGE):
        peer = started()
        peer.stage("a", octets(size))
        peer.do("tx_select")
        peer.do("file_publish", exchange="", routing_key="q", identifier="a")
        queue = peer.broker.queues["q"]
        assert queue.message_count() == 0
        peer.do("tx_commit")
        assert queue.message_count() == 1
        peer.all()
        peer.do("file_consume", queue="q", consumer_tag="c")
        tag = peer.take_file()[3]["delivery_tag"]
        peer.do("file_ack", delivery_tag=tag)
        assert queue.unsettled_count() == 1
        peer.do("tx_commit")
        assert queue.unsettled_count() == 0


def test_dead_letters_and_lifetimes_of_large_contents():
    peer = started()
    peer.do("queue_declare", queue="dead")
    peer.do(
        "queue_declare", queue="lives", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 50}
    )
    peer.send("a", octets(LARGE), key="lives")
    old = Peer091(peer.broker)
    old.consume("dead")
    for _ in range(4):
        peer.broker.tick((peer.broker.now + 60) & 0x3FFFFFFF, 1700000000)
        peer.broker.run()
    assert peer.broker.queues["dead"].message_count() == 1 and not old.contents()
    peer.all()
    peer.do("file_consume", queue="dead", consumer_tag="c")
    _, header, body, deliver = peer.take_file()
    assert body == octets(LARGE) and deliver["routing_key"] == "dead" and header["headers"]["x-death"]


def test_a_stream_takes_no_reference():
    peer = started()
    peer.do("queue_declare", queue="s", durable=True, arguments={"x-queue-type": "stream"})
    peer.send("small", octets(SMALL), key="s")
    peer.all()
    peer.send("large", octets(LARGE), key="s")
    assert peer.error()[0] == 506


def test_a_session_that_ends_gives_back_what_it_had():
    peer, tags = delivered(2)
    peer.do("file_open", identifier="a", content_size=5)
    peer.give(control("session_detach", name=b"unit"))
    assert peer.broker.queues["q"].message_count() == 2 and tags
    assert not [each for each in peer.broker.contents.by_token.values() if each.owner]


def test_an_exception_waits_for_the_end_of_what_is_half_written():
    """Frames of a session's commands keep their order: nothing stands between those of a content."""
    peer = started()
    peer.send("a", octets(LARGE))
    peer.all()
    peer.do("file_consume", queue="q", consumer_tag="c")
    assert len(peer.named("file_open")) == 1
    peer.connection.writable()
    for frames in (command("file_open_ok", staged_size=0), command("file_cancel", consumer_tag="no")):
        view = peer.connection.writable()
        view[: len(frames)] = frames
        peer.connection.received(len(frames))
    assert peer.connection.session.outgoing.active()
    names = [(each[0], len(each[3])) for each in peer.all() if each[0] != "session_completed"]
    assert names == [("file_stage", LARGE), ("file_deliver", 0), ("execution_exception", 0), ("session_detach", 0)]


def test_no_two_messages_have_one_identifier():
    """A client that has a part of a message goes on with that message alone, whatever session delivers it."""
    peer = started()
    peer.publish(b"one and")
    peer.publish(b"another")
    found = []
    for number in range(3):
        reader = FilePeer(peer.broker, name=b"reader%d" % number)
        reader.do("file_consume", queue="q", consumer_tag="c")
        opened, _, body, deliver = reader.take_file()
        assert deliver["identifier"] == opened["identifier"]
        found.append((opened["identifier"], body))
        if number:
            reader.do("file_ack", delivery_tag=deliver["delivery_tag"])
        reader.connection.received(0)
        peer.broker.run()
    assert [body for _, body in found] == [b"one and", b"one and", b"another"]
    assert found[0] == found[1] and found[1][0] != found[2][0]


def test_the_window_is_not_for_consumers_that_do_not_acknowledge():
    """ "The prefetch-count is ignored if the no-ack option is set"."""
    peer = started()
    peer.do("queue_declare", queue="other")
    peer.publish(b"held")
    peer.publish(b"free", key="other")
    peer.do("file_qos", prefetch_count=1)
    peer.do("file_consume", queue="q", consumer_tag="c")
    peer.take_file()
    peer.do("file_consume", queue="other", consumer_tag="d", no_ack=True)
    assert peer.take_file()[2] == b"free"


def test_what_has_gone_is_not_kept_by_the_contents():
    """Consumers and queues that were there for contents are forgotten with their end."""
    peer = started()
    peer.send("a", octets(LARGE))
    contents = peer.broker.contents
    for number in range(4):
        peer.do("file_consume", queue="q", consumer_tag="c")
        peer.take_file()
        peer.do("file_cancel", consumer_tag="c")
        peer.do("file_ack", delivery_tag=0, multiple=True)
        peer.send("a%d" % number, octets(LARGE))
        peer.all()
    assert len(contents.readers) == 1
    peer.do("queue_declare", queue="gone")
    peer.send("b", octets(LARGE), "gone")
    peer.do("queue_delete", queue="gone")
    for _ in range(30):
        peer.broker.tick((peer.broker.now + 500) & 0x3FFFFFFF, 1700000000)
        peer.broker.run()
    assert [queue.name for queue in contents.holding] == ["q"]


def test_a_content_that_is_opened_again_does_not_go():
    """Its last message has gone, and its sender is about to publish it once more."""
    peer = started()
    peer.send("a", octets(LARGE))
    peer.broker.purge(peer.broker.queues["q"], 9)
    peer.all()
    peer.do("file_open", identifier="a", content_size=LARGE)
    for _ in range(30):
        peer.broker.tick((peer.broker.now + 500) & 0x3FFFFFFF, 1700000000)
        peer.broker.run()
    assert peer.named("file_open_ok")[0][0]["staged_size"] == LARGE
    peer.give(content("file_stage", b"", GIVEN))
    peer.ids += 1
    peer.do("file_publish", exchange="", routing_key="q", identifier="a")
    assert not peer.named("execution_exception") and peer.broker.queues["q"].message_count() == 1


def test_a_delivery_that_has_gone_before_its_open_ok_is_not_made():
    """Nor is what has its place in memory by then: a message of a queue that the client may not read."""
    for large in (False, True):
        for how in ("deleted", "settled"):
            peer = started()
            if large:
                peer.send("a", octets(LARGE))
            else:
                peer.publish(b"hello")
            peer.all()
            peer.do("file_consume", queue="q", consumer_tag="c")
            peer.do("file_cancel", consumer_tag="c")
            other = FilePeer(peer.broker, name=b"other")
            if how == "deleted":
                other.do("queue_delete", queue="q")
            else:
                peer.do("message_accept", transfers=[(0, 60)])
            for _ in range(60):
                peer.broker.tick((peer.broker.now + 500) & 0x3FFFFFFF, 1700000000)
                peer.broker.run()
            other.do("queue_declare", queue="others")
            for _ in range(5):
                other.publish(b"secret", key="others")
            assert peer.named("file_open")
            peer.do("file_open_ok", staged_size=0)
            assert [each[0] for each in peer.all() if each[0][:4] == "file"] == [], (large, how)
            assert not peer.broker.counters["internal_errors"] and not peer.connection.closed


def test_browsers_pass_by_what_refers_to_a_content():
    """They were shown an empty message, and message.acquire took the content's last one away."""
    peer = started(argument_size_max=1024)
    peer.send("a", octets(LARGE))
    peer.publish(b"behind")
    peer.all()
    peer.do("message_subscribe", queue="q", destination="d", accept_mode=1, acquire_mode=1)
    for unit in (0, 1):
        peer.do("message_flow", destination="d", unit=unit, value=1000)
    assert [body for _, body in peer.transfers()] == [b"behind"]
    link = Peer10(peer.broker)
    source = ("source", {"address": "/queues/q", "distribution-mode": "copy"})
    link.attach("browser", 1, True, None, source=source)
    link.credit(10, 1)
    assert [each[1] for each in link.messages()] == [b"behind"]
    old = Old(spec_0_8.HEADER, spec_0_8, peer.broker)
    consumed(old, "b", {"x-filter-no-consume": True})
    waited(old)
    assert [each for each, _ in old.methods()] == ["basic_consume_ok", "basic_deliver"]
    assert peer.broker.queues["q"].message_count() == 2


def test_what_no_queue_has_taken_stays_for_another_publish():
    """A large content is not staged again because its first key was wrong."""
    peer = started()
    peer.send("a", octets(LARGE), "nowhere", mandatory=True)
    assert [each[0]["reply_code"] for each in peer.named("file_return")] == [312]
    for _ in range(60):
        peer.broker.tick((peer.broker.now + 500) & 0x3FFFFFFF, 1700000000)
        peer.broker.run()
    peer.do("file_publish", exchange="", routing_key="q", identifier="a")
    peer.do("file_consume", queue="q", consumer_tag="c")
    assert peer.take_file()[2] == octets(LARGE)

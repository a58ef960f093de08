"""Class file of AMQP 0-8 and 0-9: staged, published, delivered, resumed; what two versions do with one content."""

from old_file import FILE, FileOld, all_started, bodies, header, started
from peer import Peer as Peer091
from peer_file import GIVEN, LARGE, SMALL, FilePeer, octets
from test_older import HEADERS


def test_a_content_goes_in_and_out_with_all_its_properties():
    """file.open, open-ok, stage, publish; consume, open, open-ok, stage, deliver, ack."""
    for size in (0, 1, SMALL, LARGE):
        for peer in all_started():
            body = octets(size)
            assert peer.stage("a", body, GIVEN) == 0
            peer.publish_file("a")
            peer.consume(nowait=False)
            opened, given, found, deliver = peer.take_file()
            assert opened[1] == size and found == body and given == GIVEN
            assert deliver == ["c", 1, False, "", "q", opened[0]]
            queue = peer.broker.queues["q"]
            assert queue.unsettled_count() == 1
            peer.say("file_ack", 1, deliver[1], False)
            assert peer.all() == [] and (queue.message_count(), queue.unsettled_count()) == (0, 0)


def test_staging_goes_on_where_the_connection_was_lost():
    """file.open-ok: "the number of octets already staged"."""
    for cut in (0, 1, 999, 8192, 20000, LARGE - 1):
        for peer in all_started():
            body = octets(LARGE)
            peer.say("file_open", 1, "a", LARGE)
            peer.give((peer.method("file_stage") + header(FILE, LARGE, GIVEN) + bodies(body))[: 100 + cut])
            peer.connection.received(0)
            again = FileOld(peer.header, peer.spec, peer.broker)
            staged = again.stage("a", body, GIVEN)
            assert cut - 1200 <= staged <= cut
            again.publish_file("a")
            again.consume()
            assert again.take_file()[2] == body


def test_the_client_says_what_it_has_of_a_delivery():
    """A client whose connection was lost takes the rest: the identifier of a content larger than a message stays the same."""
    for peer in all_started():
        body = octets(LARGE)
        peer.send("a", body)
        peer.consume()
        (first,) = peer.named("file_open")
        peer.connection.received(0)
        peer.broker.run()
        again = FileOld(peer.header, peer.spec, peer.broker)
        again.consume()
        opened, _, found, deliver = again.take_file(17000)
        assert opened == first and found == body[17000:] and deliver[2]


def test_a_whole_content_is_published_twice():
    for peer in all_started():
        peer.send("a", octets(SMALL))
        assert peer.stage("a", octets(SMALL)) == SMALL
        peer.publish_file("a")
        assert peer.all() == [] and peer.broker.queues["q"].message_count() == 2


def test_ordinary_messages_are_staged_too_and_small_contents_are_ordinary_ones():
    for peer in all_started():
        given = {"content_type": "c/d", "message_id": "m", "headers": {"h": "v"}, "correlation_id": "gone"}
        Peer091(peer.broker).publish("q", b"by 0-9-1", given=given)
        peer.consume()
        _, found, body, deliver = peer.take_file()
        assert body == b"by 0-9-1" and found == {"content_type": "c/d", "message_id": "m", "headers": {"h": "v"}}
        peer.say("file_ack", 1, deliver[1], False)
        peer.say("file_cancel", 1, "c", False)
        assert peer.named("file_cancel_ok") == [["c"]]
        peer.send("a", octets(SMALL), given=GIVEN)
        ((_, _, given, body),) = Peer091(peer.broker).consume("q")
        assert body == octets(SMALL) and given["headers"]["x-filename"] == "image.bin" and given["delivery_mode"] == 2
        assert (given["content_type"], given["message_id"], given["priority"], given["timestamp"]) == ("a/b", "an id", 3, 1700000000)


def test_a_larger_one_waits_for_a_file_consumer():
    for peer in all_started():
        other = Peer091(peer.broker)
        other.consume("q", no_ack=True)
        peer.send("a", octets(LARGE))
        other.publish("q", b"behind")
        assert [each[3] for each in other.contents()] == [b"behind"]
        peer.consume()
        assert peer.take_file()[2] == octets(LARGE)


def test_windows_bound_what_is_not_acknowledged():
    """file.qos, of a channel and of the connection; a message larger than the window goes alone."""
    for window, most in (((0, 2, False), 2), ((25, 0, True), 2), ((5, 0, False), 1), ((0, 0, False), 4)):
        for peer in all_started():
            for _ in range(4):
                peer.publish("q", b"0123456789", exchange="")
            peer.say("file_qos", 1, *window)
            assert peer.named("file_qos_ok") == [[]]
            peer.consume()
            tags = []
            while True:
                found = [each[0] for each in peer.all()]
                if "file_open" not in found:
                    break
                peer.say("file_open_ok", 1, 0)
                found = peer.all()
                tags += [each[1][1] for each in found if each[0] == "file_deliver"]
                peer.inbox = b"".join([peer.method("file_open", *each[1]) for each in found if each[0] == "file_open"])
            assert len(tags) == most, window
            peer.say("file_ack", 1, tags[0], False)
            assert len(peer.named("file_open")) == (1 if most < 4 else 0)


def delivered(count, which=0):
    """A peer and the delivery tags of `count` messages that it has taken."""
    peer = started(which)
    for number in range(count):
        peer.publish("q", b"%d" % number, exchange="")
    peer.consume()
    return peer, [peer.take_file()[3][1] for _ in range(count)]


def test_ack_one_some_and_all():
    for which in range(len(HEADERS)):
        peer, tags = delivered(5, which)
        queue = peer.broker.queues["q"]
        peer.say("file_ack", 1, tags[1], False)
        assert queue.unsettled_count() == 4
        peer.say("file_ack", 1, tags[2], True)
        assert queue.unsettled_count() == 2
        peer.say("file_ack", 1, 0, True)
        assert (queue.unsettled_count(), queue.message_count()) == (0, 0)
        peer.say("file_ack", 1, tags[1], False)
        assert peer.closed() == ("channel_close", 406)


def test_reject_with_and_without_requeue():
    """file.reject: "The server MUST NOT deliver the message to the same client within the context of the current channel." """
    peer, tags = delivered(2)
    queue = peer.broker.queues["q"]
    peer.say("file_reject", 1, tags[0], True)
    assert (queue.message_count(), queue.unsettled_count()) == (1, 1) and not peer.named("file_open")
    other = FileOld(peer.header, peer.spec, peer.broker)
    other.consume()
    assert other.take_file()[3][2]
    peer.say("file_reject", 1, tags[1], False)
    assert queue.unsettled_count() == 1 and peer.broker.counters["rejected"] == 1


def test_no_ack_and_cancel():
    for peer in all_started():
        for _ in range(3):
            peer.publish("q", b"x", exchange="")
        peer.consume(no_ack=True)
        peer.say("file_open_ok", 1, 0)
        assert peer.broker.queues["q"].unsettled_count() == 1  # the second, which has been opened
        peer.say("file_cancel", 1, "c", True)
        peer.say("file_open_ok", 1, 0)
        assert len(peer.named("file_deliver")) == 2 and peer.broker.queues["q"].message_count() == 1


def test_what_no_queue_takes_is_returned():
    """file.return: only when mandatory is set, 312; 313 with immediate where nobody reads. Its content is staged: no octet of it comes."""
    for peer in all_started():
        peer.send("a", b"hello", "no", GIVEN)
        assert peer.all() == []
        peer.publish_file("a", "no", mandatory=True)
        ((name, arguments, (class_id, size, given), body),) = peer.all()
        assert (name, arguments[0], arguments[2:]) == ("file_return", 312, ["", "no"])
        assert (class_id, size, given, body) == (FILE, 0, GIVEN, b"")
        peer.publish_file("a", immediate=True)
        assert peer.named("file_return")[0][0] == 313 and peer.broker.queues["q"].message_count() == 0
        peer.consume()
        peer.publish_file("a", immediate=True)
        assert len(peer.named("file_open")) == 1


def test_transactions_have_publishes_acknowledgements_and_returns():
    for size in (SMALL, LARGE):
        for peer in all_started():
            peer.stage("a", octets(size))
            peer.say("tx_select", 1)
            peer.publish_file("a")
            peer.publish_file("a", "no", mandatory=True)
            peer.stream(b"packet", "no", mandatory=True)
            peer.publish("no", b"basic", exchange="", mandatory=True)
            queue = peer.broker.queues["q"]
            assert queue.message_count() == 0 and [each[0] for each in peer.all()] == ["tx_select_ok"]
            peer.say("tx_commit", 1)
            names = [name for name, _ in peer.methods()]
            assert sorted(names) == ["basic_return", "file_return", "stream_return", "tx_commit_ok"] and names[-1] == "tx_commit_ok"
            assert queue.message_count() == 1
            peer.consume()
            tag = peer.take_file()[3][1]
            for ending, left in (("tx_rollback", 1), ("tx_commit", 0)):
                peer.say("file_ack", 1, tag, False)
                assert queue.unsettled_count() == 1
                peer.say(ending, 1)
                assert queue.unsettled_count() == left


REFUSED = (  # what is refused, the methods, (close, reply code)
    ("a stage without an open", [("stage", b"x")], ("connection_close", 503)),
    ("an empty identifier", [("file_open", "", 1)], ("channel_close", 406)),
    ("more octets than promised", [("file_open", "a", 1), ("stage", b"xy")], ("channel_close", 406)),
    ("fewer octets than promised", [("file_open", "a", 3), ("stage", b"xy")], ("channel_close", 406)),
    ("a content larger than all may be", [("file_open", "a", 1 << 21)], ("channel_close", 311)),
    ("a publish of nothing", [("file_publish", 0, "", "q", False, False, "a")], ("channel_close", 404)),
    ("a publish of a part", [("file_open", "a", 1), ("file_publish", 0, "", "q", False, False, "a")], ("channel_close", 406)),
    (
        "an exchange that is not there",
        [("file_open", "a", 0), ("stage", b""), ("file_publish", 0, "no", "q", False, False, "a")],
        ("channel_close", 404),
    ),
    ("an open-ok without an open", [("file_open_ok", 0)], ("connection_close", 503)),
    ("an ack of nothing", [("file_ack", 7, False)], ("channel_close", 406)),
    ("a reject of nothing", [("file_reject", 7, False)], ("channel_close", 406)),
    ("what a server sends", [("file_deliver", "c", 1, False, "", "q", "a")], ("connection_close", 503)),
    ("a method in the middle of a stage", [("file_open", "a", 1), ("file_stage",), ("tx_select",)], ("connection_close", 505)),
)


def test_refusals():
    for what, methods, code in REFUSED:
        for peer in all_started():
            for name, *given in methods:
                if name == "stage":
                    peer.give(peer.method("file_stage") + header(FILE, len(given[0]), {}) + bodies(given[0]))
                else:
                    peer.say(name, 1, *given)
            assert peer.closed() == code, what


def test_content_headers_that_are_not_valid():
    for octets_, code in (
        (header(FILE, 1, {}).replace(b"\x00\x46", b"\x00\x50"), 505),
        (header(FILE, 1, {"priority": 10}), 406),
        (b"\x02\x00\x01\x00\x00\x00\x04\x00\x46\x00\x00\xce", 502),
        (header(FILE, 1, {})[:-2] + b"\x01\xce", 502),
    ):
        for peer in all_started():
            peer.say("file_open", 1, "a", 1)
            peer.give(peer.method("file_stage") + octets_)
            assert peer.closed()[1] == code


def test_another_session_goes_on():
    for peer in all_started():
        body = octets(SMALL)
        peer.say("file_open", 1, "a", SMALL)
        other = FileOld(peer.header, peer.spec, peer.broker)
        other.say("file_open", 1, "a", SMALL)
        peer.all()
        peer.give(peer.method("file_stage") + header(FILE, SMALL, {}) + bodies(body))
        assert peer.closed() == ("channel_close", 405)
        other.give(other.method("file_stage") + header(FILE, SMALL, {}) + bodies(body))
        other.publish_file("a")
        assert peer.broker.queues["q"].message_count() == 1


def test_a_content_is_one_in_every_version():
    """Staged by 0-10 and published by 0-8 and 0-9, and the other way round; delivered to each."""
    for size in (SMALL, LARGE):
        for peer in all_started():
            newer = FilePeer(peer.broker)
            newer.stage("new", octets(size), GIVEN)
            peer.publish_file("new")
            peer.stage("old", octets(size), GIVEN)
            newer.do("file_publish", exchange="", routing_key="q", identifier="old")
            peer.consume()
            newer.all()
            for _ in range(2):
                _, given, body, deliver = peer.take_file()
                assert given == GIVEN and body == octets(size)
            peer.say("channel_close", 1, 200, "", 0, 0)
            peer.broker.run()
            newer.do("file_qos", prefetch_count=1)
            newer.do("file_consume", queue="q", consumer_tag="c")
            for _ in range(2):
                _, given, body, deliver = newer.take_file()
                assert given == GIVEN and body == octets(size)
                newer.do("file_ack", delivery_tag=deliver["delivery_tag"])


def test_a_channel_that_ends_gives_back_what_it_had():
    peer, _ = delivered(2)
    peer.say("file_open", 1, "a", 5)
    peer.say("channel_close", 1, 200, "", 0, 0)
    peer.broker.run()
    assert peer.broker.queues["q"].message_count() == 2
    assert not [each for each in peer.broker.contents.by_token.values() if each.owner]


def test_class_message_of_0_9_is_refused_by_its_name():
    """0-9's table has a class message (120), before that of 0-10: 540; 0-8 has class test there."""
    peer = started(2)
    peer.give(b"\x01\x00\x01\x00\x00\x00\x05\x00\x78\x00\x1e\x00\xce")
    assert peer.closed() == ("connection_close", 540)

"""Classes file and stream of the drafts of 2005: "The File Transfer Operational Model" and "The Stream Operational Model" of 0.9a5, and the
tables of both."""

import struct

from draft_peer import FILE, STREAM, Peer9a5, Peer9r1, bits, flags_of, long, longlong, octet, short, word
from old_file import FileOld
from peer import Peer as Peer091
from peer_file import broker_of, octets
from test_older import HEADERS

SMALL = 3000  # octets of a content that is an ordinary message
LARGE = 30000  # of one that is larger than a message may be


def started(class_, **given):
    """A peer with a queue q."""
    return class_(broker_of(**given)).queue()


def both():
    """A peer of each draft."""
    return [started(Peer9a5), started(Peer9r1)]


def is_5(peer):
    """True for a peer of 0.9a5."""
    return isinstance(peer, Peer9a5)


def file_properties(peer, destination="k", text="a/b", name="image.bin"):
    """content-type, [destination,] priority, filename, timestamp."""
    if is_5(peer):
        flags = flags_of(1, 0, 1, 0, 1, 0, 0, 1, 1)
        return flags + short(text) + short(destination) + octet(3) + short(name) + short("1700000000")
    return flags_of(1, 0, 0, 1, 0, 0, 1, 1) + short(text) + octet(3) + short(name) + longlong(1700000000)


def stream_properties(peer, destination="k", priority=3):
    """[destination,] priority."""
    if is_5(peer):
        return flags_of(0, 0, 1, 0, 1) + short(destination) + octet(priority)
    return flags_of(0, 0, 0, 1) + octet(priority)


def stage(peer, identifier, body, properties=None, size=1000):
    """file.open, open-ok, stage: the octets that were staged before."""
    staged = struct.unpack(">Q", peer.ask(FILE, 5, short(identifier), longlong(len(body))))[0]
    rest = body[staged:]
    peer.say(1, FILE, 7)
    peer.give(peer.content(1, FILE, file_properties(peer) if properties is None else properties, size=len(rest)))
    for at in range(0, len(rest), size):
        peer.give(peer.frame(3, 1, rest[at : at + size]))
    return staged


def publish(peer, identifier, key="k", mandatory=0):
    """file.publish."""
    if is_5(peer):
        peer.say(1, FILE, 8, peer.ticket, short("amq.direct"), bits(0), short(identifier))
    else:
        peer.say(1, FILE, 8, peer.ticket, short("amq.direct"), short(key), bits(mandatory, 0), short(identifier))


def consume(peer, class_id=FILE, size=0, count=0, no_ack=0, rate=0):
    """file.consume, stream.consume or (7) jms.consume."""
    name = (short("") if is_5(peer) else b"") + short("q")
    window = (word if is_5(peer) else long)(size) + word(count)
    more = long(rate) + bits(0, 0) if class_id == STREAM else bits(0, no_ack, 0)
    peer.say(1, class_id, 1, peer.ticket, name, window, more)
    found = peer.heard()
    assert found[0][2][:4] == peer.ids(class_id, 2), found
    peer.inbox = b"".join([peer.frame(*each) for each in found[1:]])
    return found[0][2][4:]


def opened(peer):
    """(identifier, octets) of the only frame that came, which is file.open."""
    payload = peer.heard_one(FILE, 5)
    return payload[1 : 1 + payload[0]], struct.unpack(">Q", payload[1 + payload[0] :])[0]


def take(peer, staged=0, last=True):
    """Answer a file.open: (properties, body, arguments of file.deliver, the rest of what came)."""
    peer.say(1, FILE, 6, longlong(staged))
    found = peer.heard()
    assert found[0] == (1, 1, peer.ids(FILE, 7)) and found[1][0] == 2, found
    body = b"".join([payload for kind, _, payload in found if kind == 3])
    (place,) = [place for place, each in enumerate(found) if each[0] == 1 and each[2][:4] == peer.ids(FILE, 9 if is_5(peer) else 10)]
    size = 10 if is_5(peer) else 12
    assert struct.unpack(">Q", found[1][2][size - 8 : size])[0] == len(body)
    return found[1][2][size:], body, found[place][2][4:], found[place + 1 :]


def ack(peer, tag, multiple=0):
    """file.ack."""
    peer.say(1, FILE, 10 if is_5(peer) else 11, longlong(tag), bits(multiple))


def test_a_file_goes_in_and_out():
    """ "1. The sender stages the file into a temporary area ... 2. The sender notifies the recipient of the file"."""
    for size in (0, 1, SMALL, LARGE):
        for peer in both():
            assert stage(peer, "a", octets(size)) == 0
            publish(peer, "a")
            assert consume(peer) == word(1)
            identifier, told = opened(peer)
            properties, body, deliver, rest = take(peer)
            assert told == size and body == octets(size) and properties == file_properties(peer) and not rest
            place = short("") + short("q") if is_5(peer) else short("q")
            assert deliver == longlong(1) + bits(0) + short("amq.direct") + place + octet(len(identifier)) + identifier
            ack(peer, 1)
            queue = peer.broker.queues["q"]
            assert peer.heard() == [] and (queue.message_count(), queue.unsettled_count()) == (0, 0)
            assert peer.ask(FILE, 3, word(1)) == b"" and not queue.consumers


def test_a_transfer_is_restartable_both_ways():
    """ "if a file has been partially transferred when a connection is broken, the sender can resend just the remainder"."""
    for peer in both():
        body = octets(LARGE)
        peer.ask(FILE, 5, short("a"), longlong(LARGE))
        peer.say(1, FILE, 7)
        peer.give(peer.content(1, FILE, file_properties(peer), size=LARGE))
        for at in range(0, 20000, 1000):
            peer.give(peer.frame(3, 1, body[at : at + 1000]))
        peer.connection.received(0)
        again = type(peer)(peer.broker)
        assert stage(again, "a", body) == 20000
        publish(again, "a")
        consume(again)
        first = opened(again)
        again.connection.received(0)
        again.broker.run()
        last = type(peer)(peer.broker)
        consume(last)
        assert opened(last) == first
        _, found, deliver, _ = take(last, 17000)
        assert found == body[17000:] and deliver[8:9] == bits(1)


def test_files_are_always_persistent_and_packets_never():
    """ "Message Persistence", 2 and 3; the file's name is a header for other versions."""
    for peer in both():
        stage(peer, "a", octets(SMALL))
        publish(peer, "a")
        send(peer, b"packet")
        found = Peer091(peer.broker).consume("q", no_ack=True)
        assert [each[2]["delivery_mode"] for each in found] == [2, 1]
        given = found[0][2]
        assert given["headers"] == {"x-filename": "image.bin"} and (given["content_type"], given["priority"]) == ("a/b", 3)
        assert found[0][3] == octets(SMALL) and given["timestamp"] == 1700000000


def test_the_window_of_file_consume():
    """prefetch-size and prefetch-count of a consumer; a file larger than the window goes alone."""
    for size, count, most in ((0, 2, 2), (25, 0, 2), (5, 0, 1), (0, 0, 4)):
        for peer in both():
            for _ in range(4):
                peer.publish(b"0123456789")
            consume(peer, FILE, size, count)
            taken = 0
            opens = peer.heard()
            while opens:
                _, _, _, opens = take(peer)
                taken += 1
            assert taken == most
            ack(peer, 0, 1)
            assert len(peer.heard()) == (1 if most < 4 else 0)


def test_reject_and_acknowledge():
    for peer in both():
        for text in (b"1", b"2", b"3"):
            peer.publish(text)
        consume(peer)
        for _ in range(3):
            peer.heard()
            take(peer)
        queue = peer.broker.queues["q"]
        ack(peer, 1)
        peer.say(1, FILE, 11 if is_5(peer) else 12, longlong(2), bits(1))
        assert (queue.message_count(), queue.unsettled_count()) == (1, 1) and peer.heard() == []
        peer.say(1, FILE, 11 if is_5(peer) else 12, longlong(3), bits(0))
        assert queue.unsettled_count() == 0
        ack(peer, 3)
        peer.closed(507)


def test_files_in_transactions():
    """ "Transactions cover messages published, and messages received and acknowledged." """
    for peer in both():
        if is_5(peer):
            peer.open(2, mode=2)
            peer = SecondChannel(peer)
        else:
            peer.ask(10, 1)
        stage(peer, "a", octets(LARGE))
        publish(peer, "a")
        queue = peer.broker.queues["q"]
        assert queue.message_count() == 0
        commit(peer)
        assert queue.message_count() == 1
        consume(peer)
        opened(peer)
        take(peer)
        ack(peer, 1)
        assert queue.unsettled_count() == 1
        commit(peer)
        assert queue.unsettled_count() == 0


class SecondChannel(Peer9a5):
    """The same connection, whose channel 2 is called 1 here."""

    def __init__(self, peer):
        self.broker, self.connection, self.inbox, self.ticket = peer.broker, peer.connection, b"", peer.ticket

    def give(self, octets_):
        return Peer9a5.give(self, octets_[:1] + b"\x02" + octets_[2:])

    def content(self, channel, *given, **named):
        assert channel == 1
        return Peer9a5.content(self, 2, *given, **named)

    def heard(self):
        return [(kind, 1, payload) for kind, _, payload in Peer9a5.heard(self)]


def commit(peer):
    """tx.commit."""
    peer.ask(10, 1 if is_5(peer) else 3)


def send(peer, body, priority=3, key="k", mandatory=0):
    """stream.publish."""
    if is_5(peer):
        peer.say(1, STREAM, 5, peer.ticket, short("amq.direct"), bits(0))
    else:
        peer.say(1, STREAM, 5, peer.ticket, short("amq.direct"), short(key), bits(mandatory, 0))
    peer.give(peer.content(1, STREAM, stream_properties(peer, key, priority), body))


def test_a_packet_goes_in_and_out():
    for peer in both():
        assert consume(peer, STREAM) == word(1)
        send(peer, b"hello")
        method, head, body = peer.heard()
        given = longlong(1) + (bits(0) if is_5(peer) else b"") + short("amq.direct") + (short("") if is_5(peer) else b"") + short("q")
        assert method == (1, 1, peer.ids(STREAM, 6 if is_5(peer) else 7) + given)
        assert head[2] == peer.number(STREAM) + peer.number(0) + longlong(5) + stream_properties(peer)
        assert body == (3, 1, b"hello") and peer.broker.queues["q"].message_count() == 0
        assert peer.ask(STREAM, 3, word(1)) == b""


def test_a_stream_is_not_shared():
    """0.9a5, "The Stream Operational Model": "Streamed data sent to a queue cannot be shared between multiple consumers": 403."""
    for first, second in ((STREAM, STREAM), (STREAM, 7), (7, STREAM)):
        peer = started(Peer9a5)
        other = Peer9a5(peer.broker)
        assert consume(peer, first) == word(1)
        fields = word(0) + word(0) + (long(0) if second == STREAM else b"") + bits(0, 0, 0)
        other.say(1, second, 1, other.ticket, short(""), short("q"), fields)
        assert other.closed(403) == (second, 1)


def test_a_consumer_says_the_rate_at_which_data_is_wanted():
    """ "A stream consumer can specify the rate at which data is wanted"; packets of low priority above it are dropped, others wait."""
    for peer in both():
        consume(peer, STREAM, rate=2000)
        for _ in range(10):
            send(peer, b"x" * 1000)
        assert len([each for each in peer.heard() if each[0] == 2]) == 2
        assert peer.broker.counters["stream_dropped"] == 8
        send(peer, b"h" * 1000, 5)
        assert peer.heard() == []
        for _ in range(3):
            peer.broker.tick(peer.broker.now + 1000, 0)
            peer.connection.tick(peer.broker.now)
            peer.broker.run()
        assert b"".join([each[2] for each in peer.heard() if each[0] == 3]) == b"h" * 1000


def test_bounces_of_all_classes_in_one_transaction():
    """0.9r1: each content goes back with the method of its own class; file.bounce without the octets, which its sender has staged."""
    peer = started(Peer9r1)
    stage(peer, "a", b"hello")
    peer.ask(10, 1)
    for class_id in (6, 7):
        peer.publish(b"%d" % class_id, "no", mandatory=1, class_id=class_id)
    publish(peer, "a", "no", 1)
    send(peer, b"9", key="no", mandatory=1)
    peer.publish(b"7", "k", mandatory=1)
    peer.say(1, 10, 3)
    found = peer.heard()
    methods = ((6, 6), (7, 6), (8, 9), (9, 6), (10, 4))
    assert [each[2][:4] for each in found if each[0] == 1] == [peer.ids(*each) for each in methods]
    assert [each[2][:2] for each in found if each[0] == 2] == [word(each[0]) for each in methods[:-1]]
    assert [each[2] for each in found if each[0] == 3] == [b"6", b"7", b"9"]
    for each in found:
        if each[0] == 1 and each[2][:2] != word(10):
            assert each[2][4:6] == word(310)


def test_a_content_is_one_in_every_version():
    """A file that a draft has staged is published by 0-8, with the key that 0-8 gives it, and the other way round."""
    for peer in both():
        old = FileOld(HEADERS[0][0], HEADERS[0][1], peer.broker)
        stage(peer, "a", octets(LARGE))
        old.publish_file("a")
        old.stage("b", octets(SMALL), {"filename": "b.bin"})
        if is_5(peer):
            assert peer.broker.contents.by_key["guest", "b"].is_whole
            publish(peer, "b")  # it has no destination: no queue gets it
            assert peer.broker.queues["q"].message_count() == 1
            old.publish_file("b")
        else:
            publish(peer, "b")
        old.consume()
        _, given, body, _ = old.take_file()
        assert body == octets(LARGE) and given == {"content_type": "a/b", "priority": 3, "filename": "image.bin", "timestamp": 1700000000}
        _, given, body, _ = old.take_file()
        assert body == octets(SMALL) and given["filename"] == "b.bin"


def test_refusals():
    """What cannot be: the reply code, and 1 where the channel is closed for it, 0: the connection."""
    for class_ in (Peer9a5, Peer9r1):
        for what, code, channel in (
            ("stage", 503, 0),
            ("open-ok", 503, 0),
            ("publish", 404, 1),
            ("identifier", 507, 1),
            ("more", 507, 1),
            ("a tree", 540, 0),
            ("method", 501, 0),
            ("stream header", 501, 0),
            ("priority", 502, 0),
            ("ticket", 403, 1),
        ):
            peer = started(class_)
            if what == "stage":
                peer.say(1, FILE, 7)
            elif what == "open-ok":
                peer.say(1, FILE, 6, longlong(0))
            elif what == "publish":
                publish(peer, "none")
            elif what == "identifier":
                peer.say(1, FILE, 5, short(""), longlong(1))
            elif what == "ticket":
                peer.ticket = word(99)
                publish(peer, "none")
            else:
                peer.ask(FILE, 5, short("a"), longlong(3))
                peer.say(1, FILE, 7)
                if what == "more":
                    peer.give(peer.content(1, FILE, file_properties(peer), b"xxxx"))
                elif what == "a tree":
                    peer.give(peer.content(1, FILE, file_properties(peer), size=3, weight=1))
                elif what == "method":
                    peer.say(1, FILE, 7)
                elif what == "stream header":
                    peer.give(peer.content(1, STREAM, stream_properties(peer), b"xxx"))
                else:
                    flags = flags_of(0, 0, 0, 0, 1) if is_5(peer) else flags_of(0, 0, 0, 1)
                    peer.give(peer.content(1, FILE, flags + octet(10), b"xxx"))
            peer.closed(code, channel)

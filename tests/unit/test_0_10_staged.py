"""AMQP 0-10, class file, on a broker with a log: contents in a store beside it, which fails and whose power goes."""

from memory_store import MemoryStore
from peer import Peer as Peer091
from peer_0_10 import command
from peer_file import FilePeer, broker_of, content, octets
from test_0_10_file import GIVEN, LARGE

from leveret.core.log.segments import record
from leveret.core.recovery import opening
from leveret.core.staging import contents as staging
from leveret.core.staging.content import OPENED, Content


class Stores(MemoryStore):
    """A log's store with another one beside it."""

    def __init__(self):
        MemoryStore.__init__(self)
        self.other = MemoryStore()

    def beside(self, name, make=True):
        assert name == staging.FOLDER
        return self.other if make or self.other.segments else None

    def cut(self):
        after = Stores()
        after.segments, after.durable = dict(self.durable), dict(self.durable)
        after.other = self.other.cut()
        return after


def durable_broker(store, **given):
    """A broker on a log."""
    broker = broker_of(**given)
    opening.make_durable(broker, store, "each", 0, 0, 65536, 1 << 22)
    staging.open_contents(broker, False)
    return broker


def test_a_power_cut_keeps_what_is_staged():
    """At every write of the store: what is whole stays whole, staging goes on where the medium has come to."""
    body = octets(LARGE)
    for cut in range(0, 32000, 1500):
        store = Stores()
        peer = FilePeer(durable_broker(store))
        peer.do("queue_declare", queue="q", durable=True)
        peer.do("file_open", identifier="a", content_size=LARGE)
        whole = content("file_stage", body, GIVEN) + command("file_publish", exchange="", routing_key="q", identifier="a")
        peer.give(whole[:cut])
        peer.broker.run()
        is_published = peer.broker.queues["q"].message_count() == 1
        after = store.cut()
        torn = after.other.segments
        for number in torn:  # the power goes in the middle of a write
            torn[number] = torn[number] + store.other.segments[number][len(torn[number]) :][:100] + b"\x00\x01\x02"
        again = FilePeer(durable_broker(after))
        if not is_published:
            again.do("file_open", identifier="a", content_size=LARGE)
            ((fields, _, _),) = again.named("file_open_ok")
            assert fields["staged_size"] % 8192 == 0
            again.give(content("file_stage", body[fields["staged_size"] :], GIVEN))
            again.ids += 1
            again.do("file_publish", exchange="", routing_key="q", identifier="a")
        again.do("file_consume", queue="q", consumer_tag="c")
        _, header, found, deliver = again.take_file()
        assert found == body and header == GIVEN, cut
        again.do("file_ack", delivery_tag=deliver["delivery_tag"])
        for _ in range(40):
            again.broker.tick((again.broker.now + 1000) & 0x3FFFFFFF, 1700000000)
            again.broker.run()
        assert not again.broker.contents.by_token and not after.other.segments


def test_a_kill_behind_the_acknowledgement_leaves_no_content():
    """The store knows that a message referred to it, and none does any more; one that was never published stays for its sender."""
    store = Stores()
    peer = FilePeer(durable_broker(store))
    peer.do("queue_declare", queue="q", durable=True)
    peer.send("a", octets(LARGE))
    peer.stage("left", octets(LARGE))
    peer.connection.received(0)
    for _ in range(30):
        peer.broker.tick((peer.broker.now + 500) & 0x3FFFFFFF, 1700000000)
        peer.broker.run()
    peer.broker.purge(peer.broker.queues["q"], 9)
    peer.broker.run()
    again = durable_broker(store.cut())
    assert sorted([each.identifier for each in again.contents.by_token.values()]) == ["a", "left"]
    for _ in range(60):
        again.tick((again.now + 500) & 0x3FFFFFFF, 1700000000)
        again.run()
    assert [each.identifier for each in again.contents.by_token.values()] == ["left"]


def test_a_disk_that_refuses():
    """The sender hears it, and goes on later."""
    store = Stores()
    peer = FilePeer(durable_broker(store))
    peer.do("queue_declare", queue="q", durable=True)
    body = octets(LARGE)
    store.beside("staged").full = True
    peer.do("file_open", identifier="a", content_size=LARGE)
    peer.all()
    peer.give(content("file_stage", body))
    code, text = peer.error()
    assert code == 506 and "cannot be written" in text
    store.other.full = False
    again = FilePeer(peer.broker, name=b"again")
    again.do("file_open", identifier="a", content_size=LARGE)
    staged = again.named("file_open_ok")[0][0]["staged_size"]
    again.give(content("file_stage", body[staged:]))
    again.ids += 1
    again.do("file_publish", exchange="", routing_key="q", identifier="a")
    again.do("file_consume", queue="q", consumer_tag="c")
    assert again.take_file()[2] == body


def test_a_content_that_is_lost_costs_its_message():
    """The folder was removed between two runs: the message is put aside, and the others come."""
    store = Stores()
    peer = FilePeer(durable_broker(store))
    peer.do("queue_declare", queue="q", durable=True)
    peer.send("a", octets(LARGE))
    peer.publish(b"behind", delivery={"delivery_mode": 2})
    after = store.cut()
    after.other = MemoryStore()
    again = FilePeer(durable_broker(after))
    again.do("file_consume", queue="q", consumer_tag="c")
    assert again.take_file()[2] == b"behind"
    assert again.broker.counters["poisoned"] == 1


def test_consumers_that_read_no_contents_do_not_get_what_refers_to_a_lost_one():
    """The folder was removed between two runs: the message is no empty one for others, and still put aside for who reads contents."""
    store = Stores()
    peer = FilePeer(durable_broker(store))
    peer.do("queue_declare", queue="q", durable=True)
    peer.send("a", octets(LARGE))
    peer.publish(b"behind", delivery={"delivery_mode": 2})
    after = store.cut()
    after.other = MemoryStore()
    broker = durable_broker(after)
    for _ in range(20):
        broker.tick((broker.now + 1000) & 0x3FFFFFFF, 1700000000)
        broker.run()
    got = Peer091(broker).consume("q", "others", no_ack=True)
    assert [each[3] for each in got] == [b"behind"]
    FilePeer(broker).do("file_consume", queue="q", consumer_tag="c")
    assert broker.counters["poisoned"] == 1 and not broker.queues["q"].message_count()


def test_trouble_of_a_sender_that_has_gone_is_not_told_to_the_next():
    store = Stores()
    peer = FilePeer(durable_broker(store))
    body = octets(LARGE)
    store.beside("staged").full = True
    peer.do("file_open", identifier="a", content_size=LARGE)
    peer.give(content("file_stage", body)[: len(content("file_stage", b"")) + 9000])  # the write of the first nine frames of the body fails
    peer.connection.received(0)
    peer.broker.run()
    store.other.full = False
    again = FilePeer(peer.broker, name=b"again")
    again.do("file_open", identifier="a", content_size=LARGE)
    staged = again.named("file_open_ok")[0][0]["staged_size"]
    assert staged
    again.give(content("file_stage", body[staged:]))
    assert not again.named("execution_exception")
    ((_, found),) = again.broker.contents.by_key.items()
    assert found.is_whole


def test_two_contents_are_not_promised_the_same_room():
    """What others were promised, and have not brought yet, is no free room."""
    store = Stores()
    store.other.free = lambda: 100000 + (1 << 22)  # what the log may grow by
    peer = FilePeer(durable_broker(store))
    peer.do("file_open", identifier="a", content_size=60000)
    peer.all()
    peer.do("file_open", identifier="b", content_size=60000)
    code, text = peer.error()
    assert code == 506 and "no room" in text


class Striking(MemoryStore):
    """A store whose n-th call fails."""

    def __init__(self, left):
        MemoryStore.__init__(self)
        self.left = left

    def strike(self):
        self.left -= 1
        if self.left == 0:
            raise OSError(5, "input/output error")

    def numbers(self):
        self.strike()
        return MemoryStore.numbers(self)

    def read(self, number, offset, size):
        self.strike()
        return MemoryStore.read(self, number, offset, size)

    def append(self, number, octets):
        if self.left == 1:  # half of it comes
            MemoryStore.append(self, number, octets[: len(octets) // 2])
        self.strike()
        MemoryStore.append(self, number, octets)

    def sync(self, number):
        self.strike()
        MemoryStore.sync(self, number)

    def remove(self, number):
        self.strike()
        MemoryStore.remove(self, number)


def test_a_fault_at_every_call_of_the_store():
    """Who stages hears of it and goes on; a content that cannot be read back costs its message alone, which is put aside."""
    body = octets(LARGE)
    struck = 0
    for number in range(1, 60):
        store = Stores()
        store.other = Striking(number)
        peer = FilePeer(durable_broker(store))
        peer.do("queue_declare", queue="q", durable=True)
        for attempt in range(3):
            if peer.connection.closed or attempt and not peer.broker.queues["q"].message_count():
                peer = FilePeer(peer.broker, name=b"again%d" % attempt)
                peer.connection.broker.run()
            if peer.broker.queues["q"].message_count():
                break
            peer.do("file_open", identifier="a", content_size=LARGE)
            opened = peer.named("file_open_ok")
            staged = opened[0][0]["staged_size"] if opened else 0
            peer.give(content("file_stage", body[staged:], GIVEN) + command("file_publish", routing_key="q", identifier="a"))
        assert peer.broker.queues["q"].message_count() == 1, number
        reader = FilePeer(peer.broker, name=b"reader")
        reader.do("file_consume", queue="q", consumer_tag="c")
        reader.do("file_open_ok", staged_size=0)
        stages = reader.named("file_stage")
        if stages and len(stages[0][2]) == LARGE:
            assert stages[0][2] == body
        else:
            struck += 1
        reader.connection.received(0)
        reader.broker.run()
        for _ in range(30):
            reader.broker.tick((reader.broker.now + 500) & 0x3FFFFFFF, 1700000000)
            reader.broker.run()
    assert 0 < struck < 20


def test_a_mark_that_cannot_be_written_costs_no_content():
    """The last record of a content is alone in its piece, for its first write failed; neither goes with the mark behind it."""
    store = Stores()
    store.other = Striking(10)  # the numbers; four parts, each written and synced; then the end
    body = octets(4 * 8192)
    peer = FilePeer(durable_broker(store))
    peer.do("queue_declare", queue="q", durable=True)
    peer.do("file_open", identifier="a", content_size=len(body))
    peer.give(content("file_stage", body, GIVEN))
    again = FilePeer(peer.broker, name=b"again")
    again.do("file_open", identifier="a", content_size=len(body))
    assert again.named("file_open_ok")[0][0]["staged_size"] == len(body)
    again.give(content("file_stage", b"", GIVEN))
    again.ids += 1
    again.do("file_publish", exchange="", routing_key="q", identifier="a")
    broker, ((_, made),) = peer.broker, peer.broker.contents.by_token.items()
    assert made.is_whole and len(made.pieces) == 2 and not made.pieces[1].octets
    store.other.left = 1
    for _ in range(30):
        broker.tick((broker.now + 500) & 0x3FFFFFFF, 1700000000)
        broker.run()
    assert store.other.left <= 0 and made.is_marked
    reader = FilePeer(durable_broker(store.cut()))
    reader.do("file_consume", queue="q", consumer_tag="c")
    assert reader.take_file()[2] == body


def test_a_content_whose_removal_was_cut_does_not_come_back():
    """Its first piece has gone, others not yet: nothing of it is promised any room."""
    body = octets(LARGE)
    store = Stores()
    for name in (b"one", b"two"):
        peer = FilePeer(durable_broker(store), name=name)
        peer.do("file_open", identifier="a", content_size=LARGE)
        staged = peer.named("file_open_ok")[0][0]["staged_size"]
        peer.give(content("file_stage", body[staged:])[:10500])
        store = store.cut()
    assert len(store.other.segments) == 2
    store.other.remove(min(store.other.segments))
    broker = durable_broker(store)
    assert not broker.contents.by_token
    for _ in range(6):
        broker.tick((broker.now + 500) & 0x3FFFFFFF, 1700000000)
        broker.run()
    assert not store.other.segments


def test_a_prepared_branch_that_has_a_content_gives_it_back_to_who_reads_contents():
    """Behind a restart: the queue has no such message, until the branch is rolled back."""
    xid = {"format": 1, "global_id": b"g", "branch_id": b"b"}
    store = Stores()
    peer = FilePeer(durable_broker(store))
    peer.do("queue_declare", queue="q", durable=True)
    peer.send("a", octets(LARGE))
    peer.do("dtx_select")
    peer.do("dtx_start", xid=xid)
    peer.do("file_consume", queue="q", consumer_tag="c")
    peer.do("file_ack", delivery_tag=peer.take_file()[3]["delivery_tag"])
    peer.do("dtx_end", xid=xid)
    peer.do("dtx_prepare", xid=xid)
    broker = durable_broker(store.cut())
    others = Peer091(broker)
    assert not others.consume("q", "others", no_ack=True)
    again = FilePeer(broker)
    again.do("dtx_select")
    again.do("dtx_rollback", xid=xid)
    assert broker.queues["q"].message_count() == 1 and not others.contents()
    again.do("file_consume", queue="q", consumer_tag="c")
    assert again.take_file()[2] == octets(LARGE)


def test_contents_of_another_version_are_left_alone():
    """Who goes back to an earlier version, and forth again, has them still."""
    store = Stores()
    peer = FilePeer(durable_broker(store))
    peer.stage("a", octets(LARGE))
    later = Content("guest", "b", 9, "f" * 32).opened(0)
    later = record(0, OPENED, (later[13:].replace(b'"version": 1', b'"version": 9'),), len(later) - 13)
    store.other.append(77, later)
    store.other.sync(77)
    broker = durable_broker(store.cut())
    assert [each.identifier for each in broker.contents.by_token.values()] == ["a"] and broker.contents.removing == []
    assert broker.contents.next_number() == 78


def test_the_end_of_a_session_makes_no_store():
    """It had a window of class file and no content; the disk refuses a folder."""
    store = Stores()
    broker = durable_broker(store)
    peer = FilePeer(broker)
    peer.do("file_qos", prefetch_count=1)

    def beside(name, make=True):
        raise OSError(30, "read-only file system")

    store.beside = beside
    peer.connection.received(0)
    broker.run()
    assert not broker.connections and broker.contents is None and not broker.counters["internal_errors"]

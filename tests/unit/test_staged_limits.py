"""How much is staged: by whom, beside the log, and until when (core/staging/contents.py), at the limit and above it."""

from peer import Peer as Peer091
from peer_file import FilePeer, broker_of, octets
from test_0_10_staged import Stores, durable_broker

from leveret.core.access.permissions import User
from leveret.core.staging.contents import check_may_publish

LARGE = 30000


class Other(FilePeer):
    """A connection of another user."""

    user = "other"

    def __init__(self, broker):
        FilePeer.__init__(self, broker, name=b"other")
        self.connection.user = User(self.user, None, (), (".*", ".*", ".*"))


def opens(peer, identifier, size):
    """True when a content is begun, else the text of the refusal."""
    peer.do("file_open", identifier=identifier, content_size=size)
    found = peer.all()
    texts = [each[1]["description"] for each in found if each[0] == "execution_exception"]
    return texts[0] if texts else len([each for each in found if each[0] == "file_open_ok"]) == 1


def test_a_user_has_a_share_of_the_contents():
    broker = broker_of(staged_share_max=50, staged_count_max=4)
    peer, other = FilePeer(broker), Other(broker)
    assert opens(peer, "a", 10) is True and opens(peer, "b", 10) is True
    assert opens(peer, "a", 10) is True  # it goes on
    text = opens(peer, "c", 10)
    assert text == "user 'guest' stages 2 contents of 20 octets; the share of one user is 2 of 524288 octets (staged_share_max)"
    assert opens(other, "c", 10) is True and opens(other, "d", 10) is True


def test_a_user_has_a_share_of_the_octets():
    broker = broker_of(staged_share_max=50)
    peer, other = FilePeer(broker), Other(broker)
    assert opens(peer, "a", (1 << 19) - 10) is True
    assert opens(peer, "b", 10) is True
    assert "staged_share_max" in opens(peer, "c", 1)
    assert opens(other, "a", 1 << 19) is True
    assert "staged_share_max" in opens(FilePeer(broker_of(staged_share_max=50)), "a", (1 << 19) + 1)


def test_what_is_a_message_already_gives_way_to_its_users_next():
    broker = broker_of(staged_share_max=25, staged_count_max=8)
    peer = FilePeer(broker)
    peer.do("queue_declare", queue="q")
    for name in ("a", "b", "c"):
        peer.send(name, b"hello")
    assert broker.queues["q"].message_count() == 3 and len(broker.contents.by_token) == 2


def test_the_log_has_the_room_on_the_disk_that_it_may_need():
    """A content may take what the disk has left beside what the log may grow by."""
    for beside, is_taken in ((LARGE, True), (LARGE - LARGE // 64 - 1, False), (0, False), (-(1 << 20), False)):
        store = Stores()
        peer = FilePeer(durable_broker(store))
        log = peer.broker.journal.log
        store.other.free = lambda beside=beside, log=log: max(beside + log.size_max - log.size(), 0)
        answer = opens(peer, "a", LARGE)
        assert answer is True if is_taken else "the disk has no room for a content of 30000 octets" in answer, (beside, answer)


def test_a_disk_that_others_have_filled_meanwhile_takes_no_more_of_a_content():
    store = Stores()
    peer = FilePeer(durable_broker(store))
    peer.do("queue_declare", queue="q", durable=True)
    log = peer.broker.journal.log
    left = [LARGE]
    store.other.free = lambda: left[0] + log.size_max - log.size()
    assert opens(peer, "a", LARGE) is True
    left[0] = 100
    peer.stage("a", octets(LARGE))
    (text,) = [each[1]["description"] for each in peer.all() if each[0] == "execution_exception"]
    assert text == "the staged content cannot be written: the log may need what the disk has left"
    assert not [each for each in peer.broker.contents.by_token.values() if each.owner]
    left[0] = LARGE
    again = FilePeer(peer.broker, name=b"again")
    (content,) = peer.broker.contents.by_token.values()
    again.stage("a", octets(LARGE), at=content.staged())
    again.do("file_publish", exchange="", routing_key="q", identifier="a")
    assert peer.broker.queues["q"].message_count() == 1


def test_who_may_publish_nowhere_stages_nothing():
    broker = broker_of()
    peer = Other(broker)
    for write, is_taken in (("", False), ("^elsewhere$", False), ("^amq\\.direct$", True), ("^amq\\.default$", True), (".*", True)):
        user = User("other", None, (), (".*", write, ".*"))
        peer.connection.user = user
        answer = opens(peer, "a", 10)
        if is_taken:
            assert answer is True
        else:
            assert answer == "user 'other' may publish to no exchange, so he may stage nothing"
            peer = Other(broker)
    check_may_publish(broker, user)


def test_a_publish_asks_for_its_own_exchange():
    broker = broker_of()
    peer = Other(broker)
    peer.connection.user = User("other", None, (), (".*", "^amq\\.direct$", ".*"))
    peer.stage("a", b"hello")
    peer.all()
    peer.do("file_publish", exchange="amq.fanout", routing_key="", identifier="a")
    assert peer.error()[0] == 403


class Paging:
    """What a queue has that keeps messages in the log alone."""

    def __init__(self):
        self.count = 1
        self.windows = None
        self.pager = None


def passed(broker):
    """Some time passes."""
    for _ in range(30):
        broker.tick((broker.now + 500) & 0x3FFFFFFF, 1700000000)
        broker.run()


def test_a_paging_queue_keeps_only_what_it_may_have():
    """A queue with messages in the log alone keeps the contents that came to it, until it has come to their places; no other content."""
    store = Stores()
    broker = durable_broker(store)
    peer = FilePeer(broker)
    for name in ("pages", "other"):
        peer.do("queue_declare", queue=name, durable=True)
    peer.send("a", octets(LARGE), "pages")
    peer.send("b", octets(LARGE), "other")
    contents = broker.contents
    queue = broker.queues["pages"]
    broker.purge(broker.queues["other"], 9)
    queue.is_paging = lambda: True
    passed(broker)
    assert [each.identifier for each in contents.by_token.values()] == ["a"]
    token = list(contents.by_token)[0]
    entry = queue.pop()  # as if its message were in the log alone
    queue.drop(entry)
    assert contents.is_paged(token)
    passed(broker)
    assert token in contents.by_token
    peer.all()
    for _ in range(2):
        Peer091(broker).publish("pages", b"behind")
    passed(broker)
    assert token not in contents.by_token and contents.places.get(token) is None

"""Publisher confirms (class confirm), frame by frame."""

from amqp_wire import method
from basic_calls import consume, finish, numbered, queue_of


def confirmed_up_to(peer, highest):
    """Reads acks until every tag up to `highest` is confirmed, each exactly once; returns the set of nacked ones."""
    open_tags = set(range(1, highest + 1))
    nacked = set()
    while open_tags:
        got = peer.read_frame()
        assert got.name in ("basic.ack", "basic.nack"), got
        tag = got["delivery_tag"]
        covered = {one for one in open_tags if one <= tag} if got["multiple"] else {tag} & open_tags
        assert covered, "confirms nothing that is open: %r" % got
        open_tags -= covered
        if got.name == "basic.nack":
            nacked |= covered
    return nacked


def test_confirms_count_from_1_and_each_comes_once(raw):
    queue = queue_of(raw)
    for _ in range(2):
        raw.call("confirm.select-ok", 1, "confirm.select")
    for body in numbered(100):
        raw.publish("", queue, body, {"delivery_mode": 2})
    assert confirmed_up_to(raw, 100) == set()
    assert raw.silent(0.1)
    raw.wait_for_count(queue, 100)


def test_confirm_select_no_wait(raw):
    queue = queue_of(raw)
    raw.send(method(1, "confirm.select", nowait=True))
    raw.publish("", queue, b"x")
    assert confirmed_up_to(raw, 1) == set()


def test_what_goes_nowhere_is_confirmed_too(raw):
    raw.call("confirm.select-ok", 1, "confirm.select")
    raw.publish("amq.direct", "t.nobody", b"x")
    assert confirmed_up_to(raw, 1) == set()


def test_the_return_comes_before_the_confirm(raw):
    raw.call("confirm.select-ok", 1, "confirm.select")
    raw.publish("amq.direct", "t.nobody", b"x", mandatory=True)
    assert raw.read_content("basic.return").body == b"x"
    assert raw.expect("basic.ack")["delivery_tag"] == 1


def test_confirms_are_counted_per_channel(connect):
    peer = connect(channels=2)
    queue = queue_of(peer)
    for channel in (1, 2):
        peer.call("confirm.select-ok", channel, "confirm.select")
    for channel in (1, 2, 2):
        peer.publish("", queue, b"x", channel=channel)
    seen = {}
    while seen != {1: 1, 2: 2}:
        got = peer.expect("basic.ack")
        seen[got.channel] = max(seen.get(got.channel, 0), got["delivery_tag"])


def test_the_count_starts_with_select(raw):
    queue = queue_of(raw, numbered(3))
    raw.call("confirm.select-ok", 1, "confirm.select")
    raw.publish("", queue, b"x")
    assert confirmed_up_to(raw, 1) == set()


def test_a_confirmed_publish_to_a_missing_exchange_is_404_and_no_ack(raw):
    raw.call("confirm.select-ok", 1, "confirm.select")
    raw.publish("t.missing", "k", b"x")
    raw.expect_channel_close(404)


def test_confirms_while_consuming_on_the_same_channel(raw):
    queue = queue_of(raw)
    raw.call("confirm.select-ok", 1, "confirm.select")
    consume(raw, queue, no_ack=True)
    for body in numbered(50):
        raw.publish("", queue, body)
    open_tags, got = set(range(1, 51)), []
    while open_tags or len(got) < 50:
        first = raw.read_frame()
        if first.name == "basic.deliver":
            got.append(finish(raw, first, "basic.deliver").body)
        else:
            assert first.name == "basic.ack", first
            open_tags -= {tag for tag in open_tags if tag == first["delivery_tag"] or first["multiple"] and tag < first["delivery_tag"]}
    assert got == numbered(50)

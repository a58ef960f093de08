"""A bridge to an upstream of AMQP 0-8 or 0-9: nothing leaves the outbox before the transaction that has it is committed upstream."""

from bridge_world import World, rule_time
from test_bridge_0_10 import Cutting, numbers

from leveret.ports.bridge.settings import Settings
from leveret.ports.url import read_url


def world_of(protocol="0-8", cuts=(), ways=3, **given):
    """A World whose upstream speaks `protocol` over a Cutting."""
    world = World(upstream=["amqp://unused/?protocol=" + protocol], **given)
    world.cables = [Cutting(world.there)]
    world.cables[0].cuts, world.cables[0].ways = cuts, ways
    return world


def going(bound=True, **given):
    """The same with a bridge that runs."""
    world = world_of(**given)
    world.prepare(bound=bound)
    world.start()
    return world


def test_messages_arrive_with_their_marks_and_in_order():
    for protocol in ("0-8", "0-9"):
        world = going(protocol=protocol)
        world.publish(range(100), size=300)
        world.until(world.moved(100), "all")
        arrived = world.arrived()
        assert numbers(arrived) == list(range(100)) and [sequence for sequence, _, _ in arrived] == list(range(100))
        assert arrived[0][2]["x-gateway"][:2] == "gw" and arrived[0][2]["x-hops"] == 1


def test_nothing_leaves_the_outbox_before_two_commits_are_answered():
    world = going()
    world.until(lambda: world.bridge.target.ready, "ready")
    target, mover, answers = world.bridge.target, world.bridge.mover, []
    target.answered_later = lambda channel, name, arguments: answers.append(name)
    world.publish(range(3))
    world.until(lambda: answers == ["tx_commit_ok"] * len(answers) and len(answers) > 3, "commits")
    assert len(mover.flight) == 3 and mover.counters["bridged"] == 0
    del target.answered_later
    target._asked_for = target.channel.published
    target.answered_later(None, "tx_commit_ok", [])
    assert len(mover.flight) == 3
    target.answered_later(None, "tx_commit_ok", [])
    assert not mover.flight and mover.counters["bridged"] == 3


def test_no_message_goes_out_while_a_transaction_is_committed():
    world = going()
    world.until(lambda: world.bridge.target.ready, "ready")
    target, sizes = world.bridge.target, []
    put, commit = target.channel.basic_publish, target.channel.tx_commit

    def published(*given):
        assert not target.channel.waiting
        return put(*given)

    def committed():
        sizes.append(target.channel.published - target._asked_for)
        return commit()

    target.channel.basic_publish, target.channel.tx_commit = published, committed
    world.publish(range(200))
    world.until(world.moved(200), "all")
    assert sum(sizes) == 200 and max(sizes) <= 32


def test_nothing_is_missing_wherever_connections_break():
    for ways in (1, 2, 3):
        for first in range(700, 2900, 400):
            world = going(cuts=(first, first + 37, 900), ways=ways, protocol="0-9")
            world.publish(range(15))
            world.until(world.moved(15), (first, ways))
            arrived = world.arrived()
            assert sorted(set(numbers(arrived))) == list(range(15)), (first, ways)
            marks = {sequence: number for sequence, number, _ in arrived}
            assert len(marks) == 15  # a double has the mark of the first


def test_what_no_queue_takes_is_tried_again_and_goes_to_the_refused_queue():
    world = going(bound=False, refusal_attempts=3)
    world.publish(range(2))
    world.until(lambda: world.bridge.mover.counters["refused"] == 2, "refused")
    assert world.bridge.mover.counters["returned"] == 6 and world.bridge.mover.counters["bridged"] == 0
    headers = [each[2] for each in world.arrived("b.refused", world.local)]
    assert "312" in headers[0]["x-bridge-reason"] and headers[0]["x-bridge-tries"] == 3


def test_a_message_that_closes_the_channel_holds_up_no_other():
    world = going(refusal_attempts=2, room={"content_size_max": 32768, "properties_size_max": 512, "send_buffer_size": 2048})
    world.publish([0, 1, 2])
    world.publish([3], size=20000)  # more than upstream takes: 311
    world.publish([4, 5])
    world.until(lambda: world.bridge.mover.counters["refused"] == 1 and not world.bridge.mover.records, "one refused")
    assert sorted(set(numbers(world.arrived()))) == [0, 1, 2, 4, 5]
    headers = [each[2] for each in world.arrived("b.refused", world.local)]
    assert "311" in headers[0]["x-bridge-reason"]


def test_urls_and_what_a_bridge_refuses():
    rule_time()
    assert read_url("amqp://h/v?protocol=0-8").virtual_host == "v"
    for text in (
        "amqp://h/?protocol=0-7",
        "amqp://h/?protocol=0-8&auth=none",
        "amqp://h/?protocol=0-8&protocol=0-9",
        "amqp://h/?xprotocol=0-8",
    ):
        try:
            read_url(text)
            raise AssertionError(text)
        except ValueError as error:
            assert str(error)
    for upstream, words in (
        (["amqp://a/?protocol=0-8", "amqp://b/?protocol=0-9"], "one protocol"),
        (["amqp://a/?protocol=0-8", "amqp://b/"], "one protocol"),
        (["amqp://a/?protocol=0.9r1"], "no bridge speaks 0.9r1"),
    ):
        try:
            Settings({"name": "b", "queue": "q", "upstream": upstream, "exchange": "x", "gateway": "g"})
            raise AssertionError(upstream)
        except ValueError as error:
            assert words in str(error)

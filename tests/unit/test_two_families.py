"""Two families with a format each in one broker at the same time (core/wire/contract.pyi; tests/unit/toy_family.py is the second)."""

from peer import Peer, encoded, new_broker, taken
from toy_family import ToyPeer, installed

from leveret.core.outcomes import REJECTED

GIVEN = {"content_type": "text/plain", "message_id": "m1", "headers": {"colour": "red"}}


def test_a_message_goes_from_each_family_to_a_consumer_of_the_other_with_body_and_properties():
    with installed():
        broker = new_broker()
        basic, toy = Peer(broker), ToyPeer(broker)
        basic.declare("q")
        basic.consume("q", no_ack=True)
        toy.ask("publish", "", "q", "from the toy", GIVEN)
        assert [each[2:] for each in basic.contents()] == [(GIVEN, b"from the toy")]
        basic.ask("basic_cancel", "basic_cancel_ok", "c", False)
        toy.ask("subscribe", "q", "t", 0, True)
        basic.publish("q", b"from basic", given=GIVEN)
        found = toy.heard()
        assert [each[6:] for each in found if each[0] == "message"] == [["from basic", GIVEN]], found
        assert broker.counters["internal_errors"] == 0


def test_a_record_that_was_a_consumer_of_one_family_serves_the_other():
    """A consumer's record is used again: nothing of how the one before was delivered to is left."""
    with installed():
        broker = new_broker(consumer_count_max=1)
        basic, toy = Peer(broker), ToyPeer(broker)
        basic.declare("q")
        for _ in range(2):
            basic.consume("q", no_ack=True)
            basic.publish("q", b"1")
            assert [each[3] for each in basic.contents()] == [b"1"]
            basic.ask("basic_cancel", "basic_cancel_ok", "c", False)
            toy.ask("subscribe", "q", "t", 0, True)
            basic.publish("q", b"2")
            assert toy.bodies() == ["2"] and basic.frames() == []
            toy.ask("cancel", "t")


def test_a_dead_letter_keeps_the_format_of_its_publisher_whoever_refuses_it():
    """A consumer's nack of a message of another family goes to the dead letter exchange with its history (x-death)."""
    with installed():
        broker = new_broker()
        basic, toy = Peer(broker), ToyPeer(broker)
        basic.declare("dead")
        basic.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
        toy.ask("publish", "", "q", "refused", GIVEN)
        tag = basic.consume("q")[0][1][1]
        basic.give(encoded("basic_nack", 1, tag, False, False))
        assert basic.frames() == []
        ((given, body),) = taken(basic, "dead")
        assert body == b"refused" and given["message_id"] == "m1" and given["headers"]["colour"] == "red"
        death = given["headers"]["x-death"][0]
        assert (death["queue"], death["reason"], death["count"]) == ("q", "rejected", 1)
        basic.ask("basic_cancel", "basic_cancel_ok", "c", False)
        toy.ask("subscribe", "q", "t", 0)
        basic.publish("q", b"back", given=GIVEN)
        tag = [each[2] for each in toy.heard() if each[0] == "message"][0]
        toy.ask("settle", tag, tag, REJECTED)
        found = [each for each in toy.ask("subscribe", "dead", "d", 0, True) if each[0] == "message"]
        assert len(found) == 1 and found[0][6] == "back" and found[0][7]["headers"]["x-death"][0]["queue"] == "q", found
        assert broker.counters["internal_errors"] == 0 and broker.counters["poisoned"] == 0


def test_large_bodies_basic_get_and_streams_of_another_family():
    """A foreign message goes out whole through basic.get and through a send buffer that it is larger than, from queues and streams."""
    with installed():
        broker = new_broker(receive_buffer_size=8192)
        basic, toy = Peer(broker), ToyPeer(broker)
        for name, arguments in (("q", {}), ("s", {"x-queue-type": "stream"})):
            basic.declare(name, durable=True, arguments=arguments)
        body = "0123456789" * 300
        toy.ask("publish", "", "q", body, GIVEN)
        toy.ask("publish", "", "q", body, GIVEN)
        toy.ask("publish", "", "s", body, GIVEN)
        assert taken(basic, "q") == [(GIVEN, body.encode())] * 2
        basic.give(encoded("basic_qos", 1, 0, 10, False))
        basic.expect("basic_qos_ok")
        ((_, _, given, came),) = basic.consume("s", arguments={"x-stream-offset": "first"})
        assert came == body.encode() and given["headers"].pop("x-stream-offset") == 0 and given == GIVEN
        assert broker.counters["internal_errors"] == 0

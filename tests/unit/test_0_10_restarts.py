"""AMQP 0-10: what a peer hears of transfers whose outcome was lost with the broker that gave it."""

from memory_store import MemoryStore
from test_0_10_sessions import DURABLE, counts, durable, expects, lasting, point, rounds

from leveret.core.amqp_0_10 import frame, structs
from leveret.core.amqp_0_10.session import REFUSED_MAX


def outcomes(peer):
    """[(name, transfers)] of the outcomes that have come."""
    return [(each[0], each[1]["transfers"]) for each in peer.all() if each[0] in ("message_accept", "message_reject")]


def test_a_transfer_that_was_taken_is_accepted_once_more_and_one_that_was_rejected_is_tried_again():
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    peer.publish(b"1", delivery=DURABLE, accept_mode=0)
    peer.publish(b"2", key="later", delivery=DURABLE, accept_mode=0)
    peer.publish(b"3", delivery=DURABLE)
    peer.publish(b"4", key="later", delivery=dict(DURABLE, immediate=True), accept_mode=0)
    rounds(broker)
    assert sorted(outcomes(peer)) == [("message_accept", [(1, 1)]), ("message_reject", [(2, 2)]), ("message_reject", [(4, 4)])]
    after = durable(store.cut())
    again = lasting(after, again=True)
    assert expects(again) == [(2, 2), (4, 4)]
    point(again, 0)
    again.do("queue_declare", queue="later", durable=True)  # its id is executed: nothing is done
    assert "later" not in after.queues
    for key, mode in (("q", 0), ("later", 0), ("q", 1)):
        again.publish(b"x", key=key, delivery=DURABLE, accept_mode=mode)
    rounds(after)
    assert sorted(outcomes(again)) == [("message_accept", [(1, 1)]), ("message_reject", [(2, 2)])] and counts(after) == 2
    last = durable(store.cut())
    late = lasting(last, again=True)
    point(late, 10)
    late.do("queue_declare", queue="later", durable=True)
    point(late, 2)
    late.publish(b"2", key="later", delivery=DURABLE, accept_mode=0)
    rounds(last)
    assert outcomes(late) == [("message_accept", [(2, 2)])] and counts(last, "later") == 1


def test_a_transfer_that_comes_again_in_pieces_is_completed():
    """Its command is not looked at: whether it was explicit is not known."""
    store = MemoryStore()
    broker = durable(store)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q", durable=True)
    peer.publish(b"1", delivery=DURABLE, accept_mode=0)
    rounds(broker)
    after = durable(store.cut())
    again = lasting(after, again=True)
    point(again, 1)
    octets = structs.write_command("message_transfer", {"destination": "", "accept_mode": 0, "acquire_mode": 0})
    again.give(frame.write(frame.FIRST_SEGMENT | frame.FIRST_FRAME, frame.COMMAND, 0, octets[:5]))
    again.give(frame.write(frame.FIRST_SEGMENT | frame.LAST_FRAME, frame.COMMAND, 0, octets[5:]))
    again.give(frame.write(frame.LAST_SEGMENT | frame.FIRST_FRAME | frame.LAST_FRAME, frame.BODY, 0, b"1"))
    rounds(after)
    names = [each[0] for each in again.all()]
    assert "session_completed" in names and "message_accept" not in names and counts(after) == 1


def test_a_bounded_number_of_rejected_ranges_is_kept():
    broker = durable(MemoryStore())
    peer = lasting(broker)
    peer.do("queue_declare", queue="q")
    session = broker.beyond.by_name[("guest", b"s")]
    for _ in range(REFUSED_MAX + 10):
        peer.publish(b"1", key="none", accept_mode=0)
        peer.do("execution_sync")
    assert len(session.refused.runs) == REFUSED_MAX

"""AMQP 0-10: messages in several transfers (fragment-properties) and interrupted ones (message.resume): core/amqp_0_10/fragments.py."""

from memory_store import MemoryStore, durable_broker
from peer_0_10 import Peer, control, new_broker
from test_0_10_refusals import ILLEGAL_ARGUMENT, ILLEGAL_STATE, NOT_FOUND, RESOURCE_LIMIT, outcome
from test_0_10_sessions import ROOM, cut, expects, lasting, later, point

from leveret.core.amqp_0_10 import frame, properties, structs
from leveret.core.memory import invariants

FIRST, MIDDLE, LAST, WHOLE = (True, False), (False, False), (False, True), (True, True)


def fragment(body, which, number=0, key="q", exchange="", accept=1, **delivery):
    """The frames of one transfer that is a fragment; the properties are in the first alone."""
    octets = structs.write("fragment-properties", {"first": which[0], "last": which[1]})
    if which[0]:
        octets = structs.write(properties.DELIVERY, dict(delivery, routing_key=key)) + octets
        octets += structs.write(properties.MESSAGE, {"content_type": "text/plain"})
    fields = {"destination": exchange, "accept_mode": accept, "acquire_mode": 0}
    parts = [frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, number, structs.write_command("message_transfer", fields), 65535)]
    parts.append(frame.segment(0 if body else frame.LAST_SEGMENT, frame.HEADER, number, octets, 65535))
    if body:
        parts.append(frame.segment(frame.LAST_SEGMENT, frame.BODY, number, body, 60))
    return b"".join(parts)


def send(peer, body, which, **given):
    """A fragment: its id."""
    peer.give(fragment(body, which, **given))
    peer.ids += 1
    return peer.ids - 1


def ready(broker=None, step=0):
    """A peer with a queue q."""
    peer = Peer(broker or new_broker(**ROOM), step)
    peer.do("queue_declare", queue="q", durable=True)
    return peer


def content(broker):
    """[(content-type, body)] of q, read by another peer."""
    reader = Peer(broker, name=b"reader")
    reader.subscribe()
    for _ in range(4):
        broker.run()
    came = reader.transfers()
    assert not [body for header, body in came if "fragment-properties" in header and body != b"whole"]
    reader.connection.finish()
    return [(header[properties.MESSAGE]["content_type"], body) for header, body in came]


def test_fragments_are_one_message_in_one_piece_and_octet_by_octet():
    """fragment-properties: "the model layer is required to treat all the fragments as a single message"."""
    for step in (0, 1, 7):
        peer = ready(step=step)
        for body, which in ((b"a" * 130, FIRST), (b"", MIDDLE), (b"b", MIDDLE), (b"c" * 61, LAST)):
            assert peer.broker.queues["q"].message_count() == 0
            send(peer, body, which)
        assert content(peer.broker) == [("text/plain", b"a" * 130 + b"b" + b"c" * 61)], step
        send(peer, b"whole", WHOLE)
        assert content(peer.broker) == [("text/plain", b"whole")]
        invariants.check(peer.broker.tables)


def test_they_are_completed_and_accepted_when_the_last_has_come():
    broker = new_broker(**ROOM)
    peer = ready(broker)
    peer.all()
    first = send(peer, b"a", FIRST, accept=0)
    between = peer.do("execution_sync")  # another command of the session, with an id between theirs
    send(peer, b"b", MIDDLE, accept=0)
    broker.run()
    told = peer.all()
    assert not [name for name, _, _, _, _ in told if name == "message_accept"]
    sets = [fields["commands"] for name, fields, _, _, _ in told if name == "session_completed"]
    assert sets[-1][-1] == (between, between) and first - 1 == sets[-1][0][1]
    last = send(peer, b"c", LAST, accept=0)
    broker.run()
    told = peer.all()
    assert [fields["transfers"] for name, fields, _, _, _ in told if name == "message_accept"] == [[(first, first), (last - 1, last)]]
    assert [fields["commands"] for name, fields, _, _, _ in told if name == "session_completed"][-1] == [(0, last)]


def test_a_message_that_no_queue_takes_is_rejected_with_all_of_its_transfers():
    peer = ready()
    first = send(peer, b"a", FIRST, accept=0, key="nowhere")
    send(peer, b"b", LAST, accept=0)
    peer.broker.run()
    rejects = [fields for name, fields, _, _, _ in peer.all() if name == "message_reject"]
    assert [fields["transfers"] for fields in rejects] == [[(first, first + 1)]]
    first = send(peer, b"a", FIRST, accept=0, immediate=True)
    send(peer, b"b", LAST, accept=0)
    peer.broker.run()
    rejects = [(fields["transfers"], fields["code"]) for name, fields, _, _, _ in peer.all() if name == "message_reject"]
    assert rejects == [([(first, first + 1)], 2)]
    assert content(peer.broker) == []


def test_a_transaction_has_the_whole_message():
    peer = ready()
    peer.do("tx_select")
    send(peer, b"a", FIRST)
    send(peer, b"b", LAST)
    assert content(peer.broker) == []
    peer.do("tx_commit")
    peer.broker.run()
    assert content(peer.broker) == [("text/plain", b"ab")]


def test_what_may_not_stand_amid_fragments():
    begun = structs.write_command("message_transfer", {"destination": "", "accept_mode": 1, "acquire_mode": 0})
    bare = frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, begun, 65535)
    bare += frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, b"x", 65535)
    published = structs.write_command("stream_publish", {"exchange": "", "routing_key": "q"})
    cases = [
        (True, fragment(b"x", FIRST), ILLEGAL_ARGUMENT),
        (True, fragment(b"x", WHOLE), ILLEGAL_ARGUMENT),
        (True, fragment(b"x", LAST, exchange="amq.direct"), ILLEGAL_ARGUMENT),
        (True, fragment(b"x", LAST, accept=0), ILLEGAL_ARGUMENT),
        (True, bare, ILLEGAL_ARGUMENT),
        (True, frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, published, 65535), ILLEGAL_STATE),
        (False, fragment(b"x", MIDDLE), ILLEGAL_ARGUMENT),
        (False, fragment(b"x", LAST), ILLEGAL_ARGUMENT),
    ]
    for begun, octets, code in cases:
        peer = ready()
        if begun:
            send(peer, b"a", FIRST)
        peer.give(octets)
        was = outcome(peer)
        assert was is not None and was[0] == code, (begun, octets, was)
        invariants.check(peer.broker.tables)
        assert content(peer.broker) == []


def test_fragments_together_are_no_larger_than_a_content_may_be():
    peer = ready(new_broker(content_size_max=1024, argument_size_max=1024, receive_buffer_size=8192, send_buffer_size=8192))
    send(peer, b"a" * 1024, FIRST)
    peer.give(fragment(b"b", LAST))
    assert outcome(peer)[0] == RESOURCE_LIMIT
    invariants.check(peer.broker.tables)


def test_a_lost_transport_brings_all_of_them_again():
    """None of them was executed: session.expected says so."""
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    peer.do("queue_declare", queue="q")
    first = send(peer, b"a", FIRST)
    send(peer, b"b", MIDDLE)
    cut(peer)
    peer = lasting(broker, again=True)
    point(peer, first)
    assert expects(peer) == [(first, first)]
    for body, which in ((b"a", FIRST), (b"b", MIDDLE), (b"c", LAST)):
        send(peer, body, which)
    assert content(broker) == [("text/plain", b"abc")]
    invariants.check(broker.tables)


def test_a_gap_over_fragments_ends_their_message():
    peer = ready()
    first = send(peer, b"a", FIRST)
    peer.give(control("session_gap", commands=[(first, first)]))
    peer.publish(b"other", header={"content_type": "text/plain"})
    assert content(peer.broker) == [("text/plain", b"other")]
    invariants.check(peer.broker.tables)


def test_fragments_before_a_power_cut_come_once():
    """With a log, replayed behind a restart: one message, whichever of the transfers the peer had sent."""
    for sent in range(1, 4):
        store = MemoryStore()
        broker = durable_broker(store, **ROOM)[0]
        peer = lasting(broker)
        peer.do("queue_declare", queue="q", durable=True)
        parts = ((b"a", FIRST), (b"b", MIDDLE), (b"c", LAST))
        for body, which in parts[:sent]:
            send(peer, body, which, delivery_mode=2)
        for _ in range(4):
            broker.run()
        broker = durable_broker(store, **ROOM)[0]
        peer = lasting(broker, again=True)
        point(peer, 1)
        for body, which in parts:
            send(peer, body, which, delivery_mode=2)
        for _ in range(4):
            broker.run()
        assert content(broker) == [("text/plain", b"abc")], sent


# Resume


def resume(peer, resume_id="r", destination=""):
    """The offset of message.resume."""
    peer.all()
    peer.do("message_resume", destination=destination, resume_id=resume_id)
    peer.broker.run()
    results = [fields["value"] for name, fields, _, _, _ in peer.all() if name == "execution_result"]
    value = results[0]
    return structs.read("message-resume-result", len(value).to_bytes(4, "big") + value, 0, len(value) + 4)[0]["offset"]


def interrupted(broker, **given):
    """A message of 200 octets, of which 130 have come when its peer has gone."""
    peer = ready(broker)
    send(peer, b"a" * 130, FIRST, resume_id="r", **given)
    cut(peer)
    return Peer(broker, name=b"later")


def test_an_interrupted_message_goes_on_where_it_has_ended():
    """message.resume: "the amount of partially transferred data associated with the given resume-id"."""
    broker = new_broker(**ROOM)
    peer = interrupted(broker)
    assert resume(peer) == 130
    send(peer, b"b" * 20, MIDDLE)
    send(peer, b"c" * 50, LAST)
    assert content(broker) == [("text/plain", b"a" * 130 + b"b" * 20 + b"c" * 50)]
    assert resume(peer) == 0  # it is done
    invariants.check(broker.tables)


def test_one_transfer_that_ends_amid_its_frames_goes_on_in_fragments():
    broker = new_broker(**ROOM)
    peer = ready(broker)
    octets = structs.write(properties.DELIVERY, {"routing_key": "q", "resume_id": "r", "resume_ttl": 5000})
    octets += structs.write(properties.MESSAGE, {"content_type": "text/plain"})
    begun = structs.write_command("message_transfer", {"destination": "", "accept_mode": 1, "acquire_mode": 0})
    peer.give(frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, begun, 65535) + frame.segment(0, frame.HEADER, 0, octets, 65535))
    body = frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, b"a" * 120, 60)
    peer.give(body[: 12 + 48])  # one of its frames, whole
    peer.give(control("session_detach", name=b"unit"))
    cut(peer)
    peer = Peer(broker, name=b"later")
    offset = resume(peer)
    assert offset == 48
    send(peer, b"a" * (120 - offset), LAST)
    assert content(broker) == [("text/plain", b"a" * 120)]


def test_a_message_may_come_whole_instead():
    broker = new_broker(**ROOM)
    peer = interrupted(broker)
    assert resume(peer) == 130
    peer.publish(b"whole", header={"content_type": "text/plain"})
    assert content(broker) == [("text/plain", b"whole")]
    assert resume(peer) == 130  # it is there until its time is over
    later(broker, 3601)
    broker.run()
    assert resume(Peer(broker, name=b"much later")) == 0


def test_what_is_not_known_begins_at_0_and_what_is_not_there_ends_the_session():
    broker = new_broker(**ROOM)
    peer = ready(broker)
    assert resume(peer, "unknown") == 0
    peer.do("message_resume", destination="nowhere", resume_id="r")
    assert outcome(peer)[0] == NOT_FOUND
    cut(peer)
    peer = ready(broker)
    send(peer, b"a", FIRST)
    peer.do("message_resume", destination="", resume_id="r")
    assert outcome(peer)[0] == ILLEGAL_STATE


def test_the_time_of_a_resume_ttl_is_kept_and_no_longer():
    for seconds, offset in ((4, 130), (6, 0)):
        broker = new_broker(**ROOM)
        peer = interrupted(broker, resume_ttl=5000)
        later(broker, seconds)
        broker.run()
        assert resume(peer) == offset, seconds


def test_the_oldest_goes_when_there_are_too_many_and_two_may_not_go_on_with_one():
    broker = new_broker(staged_memory_max=4096, **ROOM)
    for number in range(10):
        peer = Peer(broker, name=b"unit")
        peer.do("queue_declare", queue="q", durable=True)
        peer.give(fragment(b"a" * 50, FIRST, resume_id="r%d" % number))
        cut(peer)
    peer = Peer(broker, name=b"later")
    assert [resume(peer, "r%d" % number) for number in (0, 1)] == [0, 0]
    assert resume(peer, "r9") == 50
    other = Peer(broker, name=b"other")
    assert resume(other, "r9") == 50
    send(peer, b"b", LAST)
    assert content(broker) == [("text/plain", b"a" * 50 + b"b")]
    other.give(fragment(b"b", LAST))
    assert outcome(other)[0] == ILLEGAL_STATE
    peer = Peer(broker, name=b"large")
    peer.give(fragment(b"a" * 4000, FIRST, resume_id="large"))
    cut(peer)
    peer = Peer(broker, name=b"larger")
    assert resume(peer, "large") == 4000 and resume(Peer(broker, name=b"x"), "r8") == 0
    invariants.check(broker.tables)


def test_a_subscription_gives_its_transfers_the_resume_id_that_it_was_asked_for():
    """message.subscribe: "Requests that the broker use the supplied resume-id when transferring messages for this subscription"."""
    for mode in (0, 1):
        peer = ready()
        for body in (b"a", b"b"):
            peer.publish(body)
        peer.all()
        peer.do("message_subscribe", queue="q", destination="d", accept_mode=1, acquire_mode=mode, resume_id="here", resume_ttl=7000)
        peer.do("message_flow", destination="d", unit=0, value=10)
        peer.do("message_flow", destination="d", unit=1, value=10000)
        for _ in range(4):
            peer.broker.run()
        said = [(header[properties.DELIVERY]["resume_id"], header[properties.DELIVERY]["resume_ttl"]) for header, _ in peer.transfers()]
        assert said == [("here", 7000)] * 2, mode

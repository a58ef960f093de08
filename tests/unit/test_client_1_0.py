"""The AMQP 1.0 client's connection: protocol headers, log-in, open, idle time-out and every way it ends (part 2, sections 2.2 and 2.4;
part 5, section 5.3), as golden octets, and as a peer's octets in pieces of any size."""

from test_client_connection import feed

from leveret.core.access.client_login import mechanism
from leveret.core.access.client_scram import Scram
from leveret.core.amqp_1_0 import composites, frame
from leveret.core.amqp_1_0.client.client import Client
from leveret.core.amqp_1_0.client.events import Events
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL
from leveret.core.errors import ProtocolError

EMPTY = b"\x00\x00\x00\x08\x02\x00\x00\x00"


class Recorder(Events):
    """Writes down what the client reports."""

    def __init__(self):
        self.seen = []
        self.messages = []

    def opened(self):
        self.seen.append("opened")

    def attached(self, link):
        self.seen.append(("attached", link.name))

    def detached(self, link, condition, text):
        self.seen.append(("detached", link.name, condition, text))

    def credited(self, link):
        self.seen.append(("credited", link.credit))

    def settled(self, link, number, outcome, fields):
        self.seen.append(("settled", number, outcome, fields))

    def delivered(self, message):
        self.seen.append(("delivered", message.number, message.body))
        self.messages.append(message)

    def refused(self, message, text):
        self.seen.append(("refused", message.number, text))
        self.messages.append(message)

    def drained(self, link):
        self.seen.append(("drained", link.name))

    def ended(self, condition, text):
        self.seen.append(("ended", condition, text))


def says(performative, **fields):
    """A frame of the peer's; underscores stand for the hyphens of names."""
    type_ = frame.SASL if performative.startswith("sasl-") else frame.AMQP
    given = {each.replace("_", "-"): fields[each] for each in fields if each != "payload"}
    return frame.write(type_, 0, composites.write(performative, given) + fields.get("payload", b""))


def sent(client):
    """What the client sends now: protocol headers, EMPTY frames, and (name, fields that are given, payload) of the others."""
    octets = b""
    while len(client.pending()):
        octets += bytes(client.pending())
        client.sent(len(client.pending()))
    found = []
    at = 0
    while at < len(octets):
        if octets[at : at + 4] == b"AMQP":
            found.append(octets[at : at + 8])
            at += 8
            continue
        type_, channel, body, end = frame.read(octets, at, len(octets), len(octets))
        if body == end:
            found.append(octets[at:end])
        else:
            name, fields, behind = composites.read(octets, body, end)
            assert channel == 0 and (type_ == frame.SASL) == name.startswith("sasl-")
            found.append((name, {each: fields[each] for each in fields if fields[each] not in (None, [])}, octets[behind:end]))
        at = end
    return found


MECHANISMS = says("sasl-mechanisms", sasl_server_mechanisms=["ANONYMOUS", "PLAIN"])
OUTCOME = says("sasl-outcome", code=0)
OPEN = says("open", container_id="peer", max_frame_size=1024, idle_time_out=30000)
BEGIN = says("begin", remote_channel=0, next_outgoing_id=5, incoming_window=100, outgoing_window=100, handle_max=7)
HANDSHAKE = HEADER_SASL + MECHANISMS + OUTCOME + HEADER_AMQP + OPEN + BEGIN
CLOSE = says("close")


def opened(step=0, open_=OPEN, **options):
    """(recorder, client) with an open connection."""
    events = Recorder()
    client = Client(events, **options)
    feed(client, HEADER_SASL + MECHANISMS + OUTCOME + HEADER_AMQP + open_ + BEGIN, step)
    sent(client)
    assert events.seen == ["opened"] and client.state == "open"
    events.seen = []
    return events, client


def test_the_octets_of_the_handshake_2_2_and_5_3():
    client = Client(Recorder(), "me", "secret", "farm", "gw7", receive_size=4096)
    assert bytes(client.pending()) == b"AMQP\x03\x01\x00\x00"
    client.sent(8)
    feed(client, HEADER_SASL + MECHANISMS)
    init = b"\x00\x00\x00\x27\x02\x01\x00\x00\x00\x53\x41\xc0\x1a\x03\xa3\x05PLAIN\xa0\x0a\x00me\x00secret\xa1\x04farm"
    assert bytes(client.pending()) == init
    client.sent(len(init))
    feed(client, OUTCOME)
    fields = b"\xa1\x03gw7\xa1\x04farm\x70\x00\x00\x10\x00\x60\x00\x00\x70\x00\x00\xea\x60" + b"\x40" * 4
    fields += b"\xc1\x1a\x02\xa3\x07product\xa1\x0eLeveret client"
    open_ = b"\x00\x53\x10\xc0" + bytes((len(fields) + 1, 10)) + fields
    assert bytes(client.pending()) == b"AMQP\x00\x01\x00\x00" + b"\x00\x00\x00" + bytes((8 + len(open_),)) + b"\x02\x00\x00\x00" + open_
    client.sent(len(client.pending()))
    feed(client, HEADER_AMQP + OPEN)
    begin = b"\x00\x53\x11\xc0\x0f\x05\x40\x43\x70\x00\x00\x08\x00\x70\x7f\xff\xff\xff\x52\xff"
    assert bytes(client.pending()) == b"\x00\x00\x00\x1c\x02\x00\x00\x00" + begin
    feed(client, BEGIN)
    assert client.events.seen == ["opened"]


def test_the_handshake_comes_in_pieces_of_any_size():
    for step in range(1, len(HANDSHAKE) + 1):
        opened(step)


def test_a_broker_that_wants_no_log_in_layer_2_4():
    client = Client(Recorder(), mechanism="")
    assert [each if isinstance(each, bytes) else each[0] for each in sent(client)] == [HEADER_AMQP, "open"]
    feed(client, HEADER_AMQP + OPEN + BEGIN)
    assert client.events.seen == ["opened"]


def test_other_peers_are_told_apart_2_2():
    for octets, text in (
        (b"AMQP\x00\x00\x09\x01", "the peer speaks AMQP 0-9-1, protocol 0, and not 1.0 as asked"),
        (HEADER_AMQP, "the peer speaks AMQP 1-0-0, protocol 0, and not 1.0 as asked"),
        (b"HTTP/1.1 400 Bad Request", "what answers is no AMQP broker"),
        (b"\x15\x03", "what answers is no AMQP broker"),
    ):
        client = Client(Recorder())
        feed(client, octets)
        assert client.closed and client.events.seen == [("ended", "", text)], octets
    client = Client(Recorder())
    client.received(0)
    assert client.events.seen == [("ended", "", "no AMQP 1.0 broker answers")]


def test_each_refusal_of_the_log_in_5_3_3_6():
    client = Client(Recorder(), mechanism="EXTERNAL")
    feed(client, HEADER_SASL + MECHANISMS)
    assert client.events.seen == [("ended", "amqp:unauthorized-access", "the broker offers no EXTERNAL log-in but ANONYMOUS PLAIN")]
    for code in (1, 2, 3, 4):
        client = Client(Recorder())
        feed(client, HEADER_SASL + MECHANISMS + says("sasl-outcome", code=code))
        assert client.closed and client.events.seen[0][:2] == ("ended", "amqp:unauthorized-access")


def test_scram_sha_256_by_the_example_of_rfc_7677():
    first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    scram = Scram("user", "pencil", b"rOprNGfwEbeRWgbNEkqO")
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    proof = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert scram.next(first) == proof
    assert not scram.finished(b"") and not scram.finished(b"v=nonsense")
    assert scram.finished(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_scram_wants_the_brokers_proof_before_it_goes_on():
    offer = says("sasl-mechanisms", sasl_server_mechanisms=["SCRAM-SHA-256"])
    challenge = says("sasl-challenge", challenge=b"r=abcdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1")
    text = "the peer does not prove that it knows the password"
    for proof in (None, b"v=x"):
        client = Client(Recorder(), mechanism="SCRAM-SHA-256", nonce=b"abc")
        outcome = says("sasl-outcome", code=0) if proof is None else says("sasl-outcome", code=0, additional_data=proof)
        feed(client, HEADER_SASL + offer + challenge + outcome)
        assert client.events.seen == [("ended", "amqp:unauthorized-access", text)]
    for challenge in (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1", b"r=abcdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0", b"nonsense"):
        client = Client(Recorder(), mechanism="SCRAM-SHA-256", nonce=b"abc")
        feed(client, HEADER_SASL + offer + says("sasl-challenge", challenge=challenge))
        assert client.closed and "SCRAM-SHA-256" in client.events.seen[0][2]


def test_mechanisms_that_there_are_not():
    for name, nonce in (("CRAM-MD5", b""), ("SCRAM-SHA-256", b"")):
        try:
            mechanism(name, "a", "b", nonce)
        except ValueError:
            continue
        raise AssertionError(name)
    plain = mechanism("PLAIN", "a", "b", b"")
    assert plain.next(b"") == b"\x00a\x00b"
    try:
        plain.next(b"more")
        raise AssertionError("a further challenge of PLAIN")
    except ProtocolError as error:
        assert "asks for more" in error.text


def test_the_peers_idle_time_out_is_obeyed_and_ours_is_kept_2_4_5():
    events, client = opened(idle_ms=20000)
    client.tick(1000)
    client.tick(15999)
    assert sent(client) == []
    client.tick(16000)
    assert sent(client) == [EMPTY]
    feed(client, EMPTY)
    client.tick(20000)
    client.tick(60000)
    assert not client.closed
    sent(client)
    client.tick(60001)
    assert client.closed and events.seen == [("ended", "", "nothing from the broker for 40000 ms")]
    ((name, fields, _),) = sent(client)
    assert name == "close" and fields["error"]["condition"] == "amqp:resource-limit-exceeded"


def test_what_the_peer_has_said_of_itself_is_kept_2_7_1():
    """Whoever goes on with the links by himself (hand_over of ports/client_1_0.py) has the peer's idle time-out and frame size from it."""
    for idle_ms, size in ((30000, 1024), (None, 512), (1, 4096)):
        _, client = opened(open_=says("open", container_id="peer", max_frame_size=size, idle_time_out=idle_ms))
        assert client.remote["idle-time-out"] == idle_ms and client.remote["container-id"] == "peer"
        assert client.frame_size_max == size


def test_without_idle_time_outs_nobody_is_given_up():
    events, client = opened(open_=says("open", container_id="peer"), idle_ms=0)
    client.tick(0)
    client.tick(400000000)
    assert events.seen == [] and sent(client) == []


def test_opening_and_closing_are_bounded_in_time():
    for client in (Client(Recorder(), open_timeout_ms=3000), opened(open_timeout_ms=3000)[1]):
        if client.state == "open":
            client.tick(0)
            client.close()
        client.tick(5)
        client.tick(3005)
        assert not client.closed
        client.tick(3006)
        assert client.closed and client.events.seen == [("ended", "", "no answer from the broker for 3000 ms")]


def test_close_waits_for_its_answer_and_discards_the_rest_2_4_3():
    events, client = opened()
    client.close()
    assert sent(client) == [("close", {}, b"")] and not client.closed
    feed(client, says("flow", incoming_window=1, next_outgoing_id=0, outgoing_window=0) + CLOSE)
    assert client.closed and events.seen == [("ended", "", "closed")]
    client.close()
    assert len(events.seen) == 1 and len(client.writable()) == 0


def test_the_peers_close_is_answered_and_told_2_4_3():
    events, client = opened()
    feed(client, says("close", error={"condition": "amqp:connection:forced", "description": "bye"}))
    assert client.closed and events.seen == [("ended", "amqp:connection:forced", "bye")] and sent(client) == [("close", {}, b"")]


def test_an_open_that_is_closed_at_once_tells_why():
    events = Recorder()
    client = Client(events)
    feed(client, HEADER_SASL + MECHANISMS + OUTCOME + HEADER_AMQP + says("open", container_id="", max_frame_size=0))
    feed(client, says("close", error={"condition": "amqp:not-found", "description": "no such virtual host"}))
    assert events.seen == [("ended", "amqp:not-found", "no such virtual host")]


def test_the_end_of_the_session_is_the_end_2_5_6():
    events, client = opened()
    feed(client, says("end", error={"condition": "amqp:session:window-violation", "description": "too much"}))
    assert [each[0] for each in sent(client)] == ["end", "close"]
    assert events.seen == [("ended", "amqp:session:window-violation", "too much")]


def test_what_breaks_the_protocol_is_told_with_its_condition_2_8_15():
    for octets, condition in (
        (b"\x00\x00\x00\x07\x02\x00\x00\x00", "amqp:connection:framing-error"),
        (b"\x00\x01\x00\x00\x02\x00\x00\x00", "amqp:connection:framing-error"),
        (b"\x00\x00\x00\x09\x02\x00\x00\x00\x40", "amqp:decode-error"),
        (says("begin", next_outgoing_id=0, incoming_window=1, outgoing_window=1), "amqp:illegal-state"),
        (says("open", container_id="again"), "amqp:illegal-state"),
        (says("sasl-outcome", code=0), "amqp:illegal-state"),
        (says("attach", name="unknown", handle=0, role=True), "amqp:not-allowed"),
        (says("detach", handle=9), "amqp:not-allowed"),
    ):
        events, client = opened()
        feed(client, octets)
        assert client.closed and events.seen[0][:2] == ("ended", condition), (octets, events.seen)
        ((name, fields, _),) = sent(client)
        assert name == "close" and fields["error"]["condition"] == condition and fields["error"]["description"] == events.seen[0][2]


def test_each_input_in_each_state_of_the_connection():
    inputs = {
        "sasl-mechanisms": MECHANISMS,
        "sasl-challenge": says("sasl-challenge", challenge=b""),
        "sasl-outcome": OUTCOME,
        "open": OPEN,
        "close": CLOSE,
        "begin": BEGIN,
    }
    before = {
        "mechanisms": HEADER_SASL,
        "login": HEADER_SASL + MECHANISMS,
        "opening": HEADER_SASL + MECHANISMS + OUTCOME + HEADER_AMQP,
        "open": HANDSHAKE,
    }
    allowed = {
        ("mechanisms", "sasl-mechanisms"): "login",
        ("login", "sasl-challenge"): "login",
        ("login", "sasl-outcome"): "header",
        ("opening", "open"): "open",
        ("opening", "close"): "ended",
        ("open", "close"): "ended",
    }
    for state in before:
        for name in inputs:
            client = Client(Recorder())
            feed(client, before[state])
            assert client.state == state
            feed(client, inputs[name])
            assert client.state == allowed.get((state, name), "ended"), (state, name)


def test_reset_makes_it_ready_for_a_new_stream():
    events, client = opened()
    sender = client.session.sender("q")
    client.received(0)
    assert events.seen == [("ended", "", "the peer closed the stream")]
    client.reset()
    assert sent(client) == [HEADER_SASL] and client.session.links == [sender]
    events.seen = []
    feed(client, HANDSHAKE)
    assert events.seen == ["opened"]

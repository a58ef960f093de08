"""Every input in every state of a 1.0 connection, its sessions and its links (core/amqp_1_0/states.py), against the running broker: what a
peer may send, by sections 2.4.6, 2.5.5, 2.6.3 to 2.6.5 and 5.3, is written down here again."""

from peer_1_0 import Peer, declare, new_broker, performative, sasl

from leveret.core import states
from leveret.core.amqp_1_0 import detaching, mapping, opening
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL
from leveret.core.amqp_1_0.states import CONNECTION, LINK, SESSION

TARGET = ("target", {"address": "/queues/q"})
FRAMES = {
    "open": {"container_id": "x"},
    "begin": {"next_outgoing_id": 0, "incoming_window": 9, "outgoing_window": 9},
    "attach": {"name": "new", "handle": 3, "role": False, "target": TARGET, "initial_delivery_count": 0},
    "flow": {"incoming_window": 9, "next_outgoing_id": 0, "outgoing_window": 9},
    "transfer": {"handle": 0, "delivery_id": 0, "delivery_tag": b"t"},
    "disposition": {"role": True, "first": 0},
    "detach": {"handle": 0},
    "end": {},
    "close": {},
}
SASL = {"sasl-init": {"mechanism": "NONE"}, "sasl-response": {"response": b"x"}}
OURS = {"sasl-mechanisms": {"sasl_server_mechanisms": ["X"]}, "sasl-challenge": {"challenge": b""}, "sasl-outcome": {"code": 0}}


def at(state):
    """A peer whose connection is in a state."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker, opens=state in ("open", "closing"))
    if state == "mechanisms":
        peer.give(HEADER_SASL)
    elif state == "challenged":
        peer.give(HEADER_SASL + sasl("sasl-init", mechanism="SCRAM-SHA-256", initial_response=b"n,,n=guest,r=nonce"))
    elif state == "opening":
        peer.log_in()
    elif state == "open":
        peer.sender()
    elif state == "closing":
        peer.connection.close("bye")
    peer.collect()
    peer.inbox = b""
    assert peer.connection.session.state == state
    return peer


def after(peer, octets):
    """(names of the frames that come back to octets, the state behind them; None: the stream ends)."""
    peer.give(octets)
    ends = peer.connection.closed or peer.connection.ending
    found = [each[0] for each in peer.frames()]
    assert peer.broker.counters["internal_errors"] == 0
    return found, None if ends else peer.connection.session.state


ALLOWED = {  # in the state open, on channel 0 with a session and a sender at handle 0
    "attach": ["attach", "flow"],
    "flow": [],
    "transfer": None,  # an empty message: whether it is one is for sections.py
    "disposition": [],
    "detach": ["detach"],
    "end": ["end"],
}


def test_every_frame_in_every_state_of_a_connection():
    for name in FRAMES:
        octets = performative(name, **FRAMES[name])
        found, state = after(at("opening"), octets)
        assert (found, state) == ((["open"], "open") if name == "open" else (["open", "close"], "closing")), name
        found, state = after(at("open"), octets)
        if name in ALLOWED:
            assert state == "open" and (ALLOWED[name] is None or found == ALLOWED[name]), (name, found)
        elif name == "close":
            assert (found, state) == (["close"], None)
        else:
            assert (found, state) == (["close"], "closing"), name
        found, state = after(at("closing"), octets)
        assert (found, state) == ([], None if name == "close" else "closing"), name
        for early in ("mechanisms", "challenged"):
            assert after(at(early), octets) == ([], None), (early, name)
    for table in (SASL, OURS):
        for name in table:
            octets = sasl(name, **table[name])
            for state, allowed in (("mechanisms", "sasl-init"), ("challenged", "sasl-response")):
                expected = ([], "login") if name == allowed else ([], None)
                assert after(at(state), octets) == expected, (state, name)
            assert after(at("open"), octets)[1] is None, name


def test_headers_in_every_state():
    """Sections 2.2 and 5.3: what begins a layer stands only where one begins."""
    for header in (HEADER_AMQP, HEADER_SASL):
        for state in ("mechanisms", "challenged", "opening", "open"):
            assert after(at(state), header)[1] is None, (header, state)


def inputs_of(table):
    """Every input that a table names."""
    return sorted({row[1] for row in table if row[1][-1] != "*"}) + ["header-other", "anything"]


def test_each_input_has_a_row_in_each_state_and_each_action_is_there():
    for table, actions in ((CONNECTION, opening), (SESSION, mapping), (LINK, detaching)):
        for state in {row[0] for row in table} | {row[2] for row in table}:
            for input_ in inputs_of(table):
                action = states.find(table, state, input_)[3]
                assert action[0] == "!" or hasattr(actions, action), (state, input_)

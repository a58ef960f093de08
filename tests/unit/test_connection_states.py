"""Every input in each state of a broker's connection (core/connection/states.py): before a family is known, with a session, at the
end."""

from peer import Peer, new_broker

from leveret.core import states
from leveret.core.connection import connection as actions
from leveret.core.connection.connection import LINGER_MS, Connection
from leveret.core.connection.states import CONNECTION
from leveret.core.errors import ProtocolError

STATES = ("sniffing", "served", "ending", "lingering", "closed")
# Input: the state behind it in each of STATES.
BEHIND = {
    "octets": STATES,
    "known": ("served", "served", "ending", "lingering", "closed"),
    "close": ("closed", "served", "ending", "lingering", "closed"),
    "broke": ("closed", "served", "closed", "closed", "closed"),
    "over": ("closed",) * 5,
    "drained": ("sniffing", "served", "closed", "lingering", "closed"),
    "end": ("ending", "ending", "ending", "ending", "closed"),
    "linger": ("lingering", "lingering", "lingering", "lingering", "closed"),
}


class Played:
    """A machine whose actions are only written down."""

    def __init__(self, state):
        self.state = state
        self.done = []

    def __getattr__(self, name):
        return lambda *given: self.done.append(name)


def at(state):
    """A connection in a state."""
    peer = Peer(new_broker(), log_in=state != "sniffing")
    connection = peer.connection
    if state in ("ending", "lingering"):
        connection.end(state == "lingering")
    if state == "closed":
        connection.finish()
    assert connection.state == state and connection.closed == (state == "closed")
    return connection


def test_each_input_in_each_state_leads_where_it_should():
    for input_ in BEHIND:
        for state, behind in zip(STATES, BEHIND[input_]):
            machine = Played(state)
            states.step(machine, CONNECTION, machine, input_)
            assert machine.state == behind and len(machine.done) == 1, (state, input_)


def test_each_action_is_there():
    for row in CONNECTION:
        assert row[0] in STATES + ("*",) and row[2] in STATES + ("*",)
        assert callable(getattr(actions.Connection, row[3]))


def test_close_ends_at_once_where_nobody_speaks_yet_and_in_the_protocols_words_later():
    for state in STATES:
        connection = at(state)
        connection.close("enough")
        assert connection.closed == (state in ("sniffing", "closed")), state
        if state == "served":
            assert connection.session.closing


def test_an_error_of_ours_in_each_state_ends_the_connection():
    for state in STATES:
        connection = at(state)
        broker = connection.broker
        connection.broke(ValueError("ours"))
        assert broker.counters["internal_errors"] == 1
        if state == "served":
            assert connection.session.closing and not connection.closed
        else:
            assert connection.closed and connection not in broker.connections, state


def test_the_end_of_the_stream_in_each_state_gives_the_place_back():
    for state in STATES:
        connection = at(state)
        broker = connection.broker
        connection.received(0)
        connection.received(0)
        assert connection.closed and connection.send is None and connection not in broker.connections, state


def test_what_is_sent_ends_a_connection_that_ends_and_time_one_that_lingers():
    for state in ("ending", "lingering"):
        connection = at(state)
        connection.sent(len(connection.pending()))
        assert connection.closed == (state == "ending")
        connection = at(state)
        connection.broker.now += LINGER_MS
        connection.tick(connection.broker.now)
        assert not connection.closed, "the peer has the whole of LINGER_MS"
        connection.broker.now += 1
        connection.tick(connection.broker.now)
        assert connection.closed, state


def test_octets_of_a_peer_that_nobody_reads_any_more_are_dropped():
    for state in ("ending", "lingering"):
        connection = at(state)
        view = connection.writable()
        view[0] = 1
        connection.received(1)
        assert connection.state == state and connection.receive.available() == 0


def test_a_connection_without_a_place_is_closed_from_the_start():
    broker = new_broker(connection_count_max=2)
    made = [Connection(broker, "unit") for _ in range(12)]
    refused = [each for each in made if each.closed]
    assert refused and [each.state for each in refused] == ["closed"] * len(refused)
    for each in refused:
        each.close()
        each.received(0)
        assert each.tick(1) is None and len(each.pending()) == 0


def test_a_protocol_error_is_told_in_the_protocols_words():
    connection = at("served")

    def fails():
        raise ProtocolError("command-invalid", "on purpose")

    assert connection.guarded(fails) is None
    assert connection.session.closing and not connection.closed

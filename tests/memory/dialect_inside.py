"""Inside MicroPython, for test_dialects_on_boards.py: a board's broker with a family of protocols, and what one connection of it holds.

`board_profile` (written by the test) has MODULES, LIMITS and SCRIPTS: {family: for each of two clients [(octets that it sends, what the
broker's answer must have in it)]}. The code is loaded with this file, before the heap is bounded. Each step is a call of its own, because
the WebAssembly build collects garbage only between calls; the figures are printed as one line of JSON.
"""

import gc
import json

import board_profile

gc.collect()
_before_code = gc.mem_alloc()
for module in board_profile.MODULES:
    __import__(module)
from leveret.core.broker.broker import Broker  # noqa: E402 - behind all that is measured
from leveret.core.connection.connection import Connection  # noqa: E402 - as above
from leveret.core.limits import Limits  # noqa: E402 - as above

CONNECTIONS = 4  # two of each family
figures = {}
state = {}


def feed(connection, octets):
    """Give the broker what a client sends, and return what it says."""
    broker, at, said = state["broker"], 0, b""
    while at < len(octets) or connection.session is not None and connection.session.state == "login":
        view = connection.writable()
        size = min(len(view), len(octets) - at)
        for index in range(size):
            view[index] = octets[at + index]
        connection.received(size)
        at += size
        broker.run()
    for _ in range(20):
        broker.run()
        said += bytes(connection.pending())
        connection.sent(len(connection.pending()))
    return said


def converse(family):
    """One connection that says a family's script: raises where an answer lacks what it must have."""
    connection = Connection(state["broker"], "peer", True)
    state.setdefault(family, []).append(connection)
    for octets, wanted in board_profile.SCRIPTS[family][len(state[family]) - 1]:
        said = feed(connection, octets)
        if wanted not in said:
            raise RuntimeError("%s: %r is not in %r" % (family, wanted, said))


def test_00_code():
    figures["code"] = gc.mem_alloc() - _before_code


def test_01_broker():
    limits = dict(board_profile.LIMITS, connection_count_max=CONNECTIONS)
    state["broker"] = Broker(Limits(**limits), b"board")


def test_02_conversations():
    """Once: what the first of all makes (caches, names) is no connection's."""
    for family in sorted(board_profile.SCRIPTS):
        converse(family)


def test_04_before():
    state["before"] = gc.mem_alloc()


def test_05_amqp_0_9():
    if "amqp_0_9" in board_profile.SCRIPTS:
        converse("amqp_0_9")


def test_06_amqp_0_9_held():
    figures["amqp_0_9"] = gc.mem_alloc() - state["before"]
    state["before"] = gc.mem_alloc()


def test_07_amqp_1_0():
    if "amqp_1_0" in board_profile.SCRIPTS:
        converse("amqp_1_0")


def test_08_amqp_1_0_held():
    figures["amqp_1_0"] = gc.mem_alloc() - state["before"]
    print("FIGURES " + json.dumps(figures))

"""Inside MicroPython, for dialect_sizes.py: a board's broker with versions of AMQP, and what one connection of each holds.

`board_profile` (written there) has MODULES, LIMITS, and SCRIPTS: {dialect: for each of two clients [(octets that it sends, what the
broker's answer must have in it)]}; DRAFTS: {dialect: version} of those that a listener names; CROSSINGS: {version: (limits, steps, the
step from which on it is a receiver)}, of replay.py: what it then hears is printed. The code is loaded with this file, before the heap is
bounded. Each step is a call of its own, because the WebAssembly build collects garbage only between calls; the figures are printed as one
line of JSON.
"""

import binascii
import gc
import json
import sys

import board_profile

gc.collect()
_before_code = gc.mem_alloc()
for module in board_profile.MODULES:
    __import__(module)
from leveret.core.broker.broker import Broker  # noqa: E402 - behind all that is measured
from leveret.core.limits import Limits  # noqa: E402 - as above

here = sys.modules[__name__]
figures = {}
state = {}


def converse(dialect):
    """One connection that says a dialect's script: raises where an answer lacks what it must have."""
    import replay

    connection = replay.connected(state["broker"], board_profile.DRAFTS.get(dialect))
    state.setdefault(dialect, []).append(connection)
    for octets, wanted in board_profile.SCRIPTS[dialect][len(state[dialect]) - 1]:
        said = replay.feed(state["broker"], connection, octets)
        if wanted not in said:
            raise RuntimeError("%s: %r is not in %r" % (dialect, wanted, said))


def cross(version):
    """Say what a receiver of one version hears of messages of every version."""
    import replay

    limits, steps, since = board_profile.CROSSINGS[version]
    heard = replay.replayed(Broker(Limits(**limits), b"unit"), steps, version, since, board_profile.DRAFTS.values())
    print("HEARD %s %s" % (version, str(binascii.hexlify(heard), "ascii")))


def test_00_code():
    figures["code"] = gc.mem_alloc() - _before_code


def test_01_broker():
    count = 2 * len(board_profile.SCRIPTS)
    limits = dict(board_profile.LIMITS, connection_count_max=count)
    for name in ("channel_count_max", "queue_count_max", "consumer_count_max"):
        limits[name] = max(limits[name], count)
    state["broker"] = Broker(Limits(**limits), b"board")


def test_02_conversations():
    """Once: what the first of all makes (caches, names) is no connection's."""
    for dialect in sorted(board_profile.SCRIPTS):
        converse(dialect)


def test_04_before():
    state["before"] = gc.mem_alloc()


def steps_of(number, dialect):
    """Two tests: a dialect's second connection, and what it holds."""

    def one():
        converse(dialect)

    def held():
        figures[dialect] = gc.mem_alloc() - state["before"]
        state["before"] = gc.mem_alloc()

    setattr(here, "test_%02d_again" % (10 + number), one)  # a name that is put into globals() is in no dir() of MicroPython
    setattr(here, "test_%02d_held" % (10 + number), held)


def crossing_of(number, version):
    """A test: what one version hears."""
    setattr(here, "test_%02d_crossing" % (40 + number), lambda: cross(version))


for number, dialect in enumerate(sorted(board_profile.SCRIPTS)):
    steps_of(number, dialect)
for number, version in enumerate(board_profile.CROSSINGS):
    crossing_of(number, version)


def test_99_figures():
    print("FIGURES " + json.dumps(figures))

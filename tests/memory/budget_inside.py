"""Inside MicroPython, for test_board_budget.py: what a board's code holds, and its broker with everything at its limit.

`board_profile` (written by the test) has MODULES and LIMITS. Each step is a call of its own, because the WebAssembly build collects garbage
only between calls; the figures are printed as one line of JSON. It judges nothing.
"""

import gc
import json

import board_profile

figures = {}
state = {}


def begin():
    state["before"] = gc.mem_alloc()


def take(name):
    figures[name] = gc.mem_alloc() - state["before"]


def test_00_code():
    begin()
    for module in board_profile.MODULES:
        __import__(module)


def test_01_code_held():
    take("code")


def test_02_full_board_is_loaded():
    import full_board

    full_board.short(b"")


def test_03_broker():
    import full_board

    begin()
    state["fill"] = full_board.Fill(board_profile.LIMITS)


def test_04_broker_held():
    take("broker")
    begin()


def test_05_connections():
    state["fill"].fill_connections()


def test_06_connections_held():
    take("connections")
    begin()


def test_07_exchanges():
    state["fill"].fill_exchanges()


def test_08_exchanges_held():
    take("exchanges")
    begin()


def test_09_channels():
    state["fill"].fill_channels()


def test_10_channels_held():
    take("channels")
    begin()


def test_11_queues():
    state["fill"].fill_queues()


def test_12_queues_held():
    take("queues")
    begin()


def test_13_bindings():
    state["fill"].fill_bindings()


def test_14_bindings_held():
    take("bindings")
    begin()


def test_15_consumers():
    state["fill"].fill_consumers()


def test_16_consumers_held():
    take("consumers")
    begin()


def test_17_users():
    state["fill"].fill_users()


def test_18_users_held():
    take("users")
    state.pop("fill")


class Sink:
    """A store that keeps nothing."""

    def numbers(self):
        return []

    def append(self, number, octets):
        pass

    def sync(self, number):
        pass


def test_19_broker_that_is_to_keep():
    if "leveret.core.recovery.opening" in board_profile.MODULES:
        from leveret.core.broker.broker import Broker
        from leveret.core.limits import Limits

        state["broker"] = Broker(Limits(**board_profile.LIMITS), b"budget")


def test_20_log():
    begin()
    if "broker" in state:
        from leveret.core.recovery.opening import make_durable

        make_durable(state["broker"], Sink(), "batch", 20, board_profile.BATCH, 32768, 262144)


def test_21_log_held():
    take("log")
    print("FIGURES " + json.dumps(figures))

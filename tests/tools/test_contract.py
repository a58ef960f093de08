"""core/wire/contract.pyi says what there is: each member is there, with the same parameters in the same order."""

import ast
import inspect
import os

import pytest

from leveret.core.amqp_0_9.channel import Channel
from leveret.core.amqp_0_9.family import FAMILY
from leveret.core.amqp_0_9.hot_row import Row
from leveret.core.amqp_0_9.session import Session
from leveret.core.broker.broker import Broker
from leveret.core.broker.consumers import Consumer
from leveret.core.broker.transaction import Transaction
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.tools.devtool import check

PATH = os.path.join(check.ROOT, "core", "wire", "contract.pyi")


def roles():
    """{role: [(name, parameters without self, or None for what is no function)]}"""
    with open(PATH, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    told = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            told[node.name] = [(each.target.id, None) for each in node.body if isinstance(each, ast.AnnAssign)]
            told[node.name] += [
                (each.name, [argument.arg for argument in each.args.args[1:]]) for each in node.body if isinstance(each, ast.FunctionDef)
            ]
    return told


def players():
    """{role: an object that plays it}"""
    broker = Broker(Limits(**dict(BOARD, connection_count_max=4)), b"unit")
    connection = Connection(broker, "unit")
    protocol = Session(connection)
    channel = Channel(protocol, 1)
    consumer = Consumer(0, "tag", None, channel, False, False)
    return {
        "Family": FAMILY,
        "Protocol": protocol,
        "HotRow": broker.tables.engine.row(Row),
        "Session": channel,
        "Consumer": consumer,
        "Promises": channel.promises,
        "Incoming": channel,
        "Transaction": Transaction(broker.tables),
        "Service": next(iter(broker.services.values())),
        "Connection": connection,
        "Places": broker.places,
        "Topology": broker.topology,
        "Consumers": broker.consumers,
        "Broker": broker,
    }


@pytest.mark.parametrize("role", sorted(roles()))
def test_who_plays_a_role_has_its_members(role):
    player = players()[role]
    for name, parameters in roles()[role]:
        assert hasattr(player, name), f"{role}.{name} is not there"
        if parameters is not None:
            there = list(inspect.signature(player if name == "__call__" else getattr(player, name)).parameters)
            assert there == parameters, f"{role}.{name} takes {there}"


def test_the_connection_and_queues_turns_call_nothing_else_of_a_protocol():
    """What neutral rooms call on a protocol stands in the contract."""
    told = {name for name, _ in roles()["Protocol"]}
    for path in check.python_files("core/connection", "core/queue", "core/broker", "core/stream", "core/log", "core/management"):
        for node in ast.walk(check.parse(path)):
            owner = node.value if isinstance(node, ast.Attribute) else None
            if isinstance(owner, ast.Attribute) and owner.attr == "session":
                assert node.attr in told, f"{path}:{node.lineno}: {node.attr} is not in the contract"

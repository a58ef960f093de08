"""The hot functions have the log's sizes as their own constants; they must be the same. The layout's numbers they import."""

from leveret.core.amqp_0_9 import hot_in, hot_out
from leveret.core.broker import publish
from leveret.core.log import flat_records, message_record
from leveret.core.memory import hot, layout

OF_THE_LOG = {"RECORD_SIZE": flat_records, "PLACE_SIZE": message_record}
OWN = ("DEPTH_MAX", "NEAR", "SPREAD", "STEPS", "HEAD", "OVERHEAD", "END", "HEADER_HEAD", "IN_C")


def constants(module):
    """(name, number) of each: read from the source, because MicroPython folds them away."""
    path = module.__file__
    if path.endswith(".py"):
        with open(path) as source:
            for line in source:
                if line.startswith("_") and " = const(" in line:
                    yield line[1 : line.index(" ")], int(line[line.index("(") + 1 : line.index(")")], 0)


def test_hot_constants_are_the_logs_or_their_own():
    for module in (hot, publish, hot_in, hot_out):
        for name, number in constants(module):
            assert not hasattr(layout, name), name
            assert name in OWN or number == getattr(OF_THE_LOG[name], name), name


def test_what_only_c_looks_at_are_the_limits_that_only_its_engine_sets():
    named = dict(constants(publish))
    assert not named or named["IN_C"] == layout.LIMIT_REMEMBERS | layout.LIMIT_LATEST | layout.LIMIT_GROUPS | layout.LIMIT_PAGED

"""hot.py and ingest.py have the layout's numbers as their own constants; they must be the same."""

from leveret.core.broker import ingest
from leveret.core.log import flat_records, message_record
from leveret.core.memory import hot, layout

OF_THE_WIRE = ("DEPTH_MAX", "NEAR", "SPREAD", "STEPS")
OF_THE_LOG = {"RECORD_SIZE": flat_records, "PLACE_SIZE": message_record}


def compare(module):
    """How many constants were compared: read from the source, because MicroPython folds them away."""
    path = module.__file__
    if not path.endswith(".py"):
        return None
    compared = 0
    with open(path) as source:
        for line in source:
            if line.startswith("_") and " = const(" in line:
                name = line[1 : line.index(" ")]
                if name not in OF_THE_WIRE:
                    numbers = OF_THE_LOG.get(name, layout)
                    assert int(line[line.index("(") + 1 : line.index(")")], 0) == getattr(numbers, name), line
                    compared += 1
    return compared


def test_hot_constants_are_the_layouts():
    for module in (hot, ingest):
        compared = compare(module)
        assert compared is None or compared > 30

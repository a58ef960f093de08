"""Names of properties and kinds of values that families share are those of core/message/README.md, in both directions."""

import re

from leveret.core.amqp_0_9 import exact, field_table, spec_0_9_1
from leveret.core.amqp_1_0 import convert, properties
from leveret.core.exchange.types import consistent_hash
from leveret.core.message import annotations
from leveret.core.patterns import selector
from leveret.tools.devtool.pages import read

PAGE = read("core/message/README.md").partition("## What families share")[2]
KINDS = {row[0]: row[1] for row in re.findall(r"^\| (\w) \| .+ \| ([a-z]+).* \|$", PAGE, re.MULTILINE)}
VALUES = {"f": 2.5, "d": 2.5, "S": b"\xff"}  # others: 5


def test_names_are_those_of_the_page():
    names = re.search(r"\n\n(content_type[\w, \n]+)\n\n", PAGE)[1].replace("\n", " ").split(", ")
    assert names == [name for name, _ in spec_0_9_1.PROPERTIES]
    assert {*selector.PROPERTIES.values(), *consistent_hash.PROPERTIES} <= set(names)


def test_each_kind_goes_from_0_9_1_to_1_0_and_back():
    assert len(KINDS) == 11
    for letter, name in KINDS.items():
        value = (letter, VALUES.get(letter, 5))
        octets = field_table.encode({"h": value})
        assert exact.pairs(octets, 4, len(octets)) == {"h": value}, letter
        native = convert.typed(value)
        if name in ("long", "double", "binary"):  # what an int, a float and bytes are in types.py
            assert native == value[1]
        else:
            assert native == (name, 5000 if name == "timestamp" else value[1])
        assert properties.lettered(native) == (value if letter != "d" else value[1]), letter


def test_annotations_keep_the_kinds_that_the_broker_gives():
    given = {"headers": {letter: (letter, VALUES.get(letter, 5)) for letter in "lTS"}}
    assert annotations.read(annotations.write(given), True) == given

"""hot.py has the layout's numbers as its own constants; they must be the same."""

from leveret.core import layout

import leveret.core.hot as hot


def test_hot_constants_are_the_layouts():
    """Read from the source, because MicroPython folds the constants away."""
    path = hot.__file__
    if not path.endswith(".py"):
        return
    compared = 0
    with open(path) as source:
        for line in source:
            if line.startswith("_") and " = const(" in line:
                name = line[1:line.index(" ")]
                assert int(line[line.index("(") + 1:line.index(")")], 0) == getattr(layout, name), line
                compared += 1
    assert compared > 30

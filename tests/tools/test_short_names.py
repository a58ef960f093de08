"""What tools/short_names.py makes of sources."""

import pytest

from leveret.tools.short_names import shortened

TEXT = """
_count = 0
class One:
    label = 1
    def __init__(self, x):
        self.first, self.second, self.open = x, x, x
    def of(self):
        global _count
        _count += self.first + self.second
        return _count
class Two(One):
    def rest(self):
        self.third = 'é', self.second
class Three:
    def __init__(self):
        self.fourth = 4
"""


def names_left(text, others=()):
    """The names of TEXT's attributes and variables that stand in what is made of `text` and of others beside it."""
    sources = {"core/one.py": text, **{"core/other%d.py" % number: other for number, other in enumerate(others)}}
    made = shortened(sources)["core/one.py"]
    compile(made, "one", "exec")
    return {name for name in ("first", "second", "third", "fourth", "label", "_count", "open") if name in made}


def test_what_one_class_or_source_names_is_short_and_does_the_same():
    made = shortened({"core/one.py": TEXT})["core/one.py"]
    names: dict = {}
    exec(made, names)
    assert names["One"](3).of() == 6 and names["Two"](1).rest() is None
    assert names_left(TEXT) == {"open"}  # the interpreter's


def test_a_family_of_classes_has_each_name_once_and_another_has_the_same():
    made = shortened({"core/one.py": TEXT})["core/one.py"]
    names: dict = {}
    exec(made, names)
    two = names["Two"](1)
    two.rest()
    assert len(vars(two)) == 4 and set(vars(names["Three"]())) <= set(vars(two)) | {"A"}


@pytest.mark.parametrize(
    "other,stays",
    (
        ("def of(one):\n    return one.first\n", {"first"}),
        ("of(second=1)\n", {"second"}),
        ("getattr(of, 'third')\n", {"third"}),
        ("class Four:\n    def of(self):\n        return self.fourth\n", {"fourth"}),  # it may be any class
        ("from .one import _count\n", {"_count"}),
        ("from .one import *\ndef of():\n    return _count\n", {"_count"}),
        ("class Five(Three):\n    def of(self):\n        return self.fourth\n", set()),
    ),
)
def test_what_others_name_stays(other, stays):
    assert names_left(TEXT, [other]) == {"open"} | stays


def test_what_clients_call_stays():
    assert shortened({"ports/client.py": TEXT}) == {"ports/client.py": TEXT}

"""What tools/called_once.py makes of sources."""

import ast
import random

import pytest

from leveret.tools.called_once import LOCALS, put_in_place

CLASS = """
class One:
    def __init__(self, x):
        self.x = x
        self.seen = []
    def run(self, first, x):
        self._note(x)
        number = self._share(first, x)
        if not self._is_odd(number):
            self._note_even(x + 1)
        return self._rest(number, first)
    def _note(self, number):
        '''Of _note itself nothing is said elsewhere.'''
        x = number * 2
        self.seen.append(x)
    def _share(self, a, b):
        if a > b:
            return a - b
        first = a
        while first < b:
            first += 3
        return first
    def _is_odd(self, number):
        number = number % 2
        return number == 1
    def _note_even(self, x):
        if x < 5:
            return
        elif x < 9:
            self.seen.append(x)
        else:
            self.seen.append(-x)
            return
        self.seen.append(self.x)
    def _rest(self, a, number):
        try:
            if a > 7:
                return a // number
        except ZeroDivisionError as error:
            return str(error)
        self.seen.append(number)
"""


def made_of(text, others=(), path="core/one.py", outside=()):
    """What is made of a text, with others beside it."""
    sources = {path: text, **{"core/other%d.py" % number: other for number, other in enumerate(others)}}
    return put_in_place(sources, outside)[path]


def functions(text):
    """Names of the functions in a text."""
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}


def test_what_one_statement_calls_stands_there_and_does_the_same():
    made = made_of(CLASS)
    assert functions(made) == {"__init__", "run"}
    before: dict = {}
    after: dict = {}
    exec(CLASS, before)
    exec(made, after)
    draw = random.Random(7)
    for _ in range(500):
        given = (draw.randrange(12), draw.randrange(12))
        one, other = before["One"](draw.randrange(3)), after["One"](0)
        other.x = one.x
        assert one.run(*given) == other.run(*given) and one.seen == other.seen, given


@pytest.mark.parametrize(
    "text",
    (
        "def of(a):\n    return a\ndef by():\n    return [of(1), 2]\n",  # not all that the statement does
        "def of(a):\n    return a\ndef by():\n    return 1 + of(1)\n",
        "def of(a):\n    pass\ndef by():\n    of(a=1)\n",
        "def of(*a):\n    pass\ndef by():\n    of(1)\n",
        "def of(a, b=1):\n    pass\ndef by():\n    of(1)\n",
        "def of(a):\n    global b\n    b = a\ndef by():\n    of(1)\n",
        "def of(a):\n    return [b for b in a]\ndef by():\n    x = of(1)\n",
        "def of(a):\n    yield a\ndef by():\n    return of(1)\n",
        "@mark\ndef of(a):\n    pass\ndef by():\n    of(1)\n",
        "def of(a):\n    return b(a)\ndef by(b):\n    return of(1)\n",  # another `b`
        "def of(a):\n    of(a)\n",
        "def of(a):\n    pass\nof(1)\n",  # its variables would be the source's
        "def of(a):\n    pass\ndef by():\n    of(1)\nto = of\n",
        "def of(a):\n    pass\ndef by():\n    of(1)\nto = 'of'\n",
        "def of(a):\n    for b in a:\n        if b:\n            return b\ndef by():\n    x = of(1)\n",
        "def of(a):\n    pass\ndef by():\n    def inner():\n        of(1)\n    return inner\n",
        "class One:\n    def of(self):\n        pass\ndef by(one):\n    one.of()\n",  # who `one` is nobody knows
        "def of(a):\n    from b import c\n    c(a)\ndef by(c):\n    of(c)\n",
    ),
)
def test_what_is_bound_to_its_own_frame_or_named_elsewhere_stays(text):
    assert made_of(text) == text


def test_other_sources_count_and_what_clients_call_stays():
    text = "def of(a):\n    pass\ndef by():\n    of(1)\n"
    assert functions(made_of(text)) == {"by"}
    for other in ("from .one import of\n", "one.of(1)\n", "name = 'of'\n"):
        assert functions(made_of(text, (other,))) == functions(made_of(text, outside=(other,))) == {"of", "by"}
    assert functions(made_of(text, ("'''Of what of does.'''\n",))) == {"by"}
    for path in ("ports/one.py", "core/amqp_0_9/client/one.py"):
        assert made_of(text, path=path) == text


def test_what_has_a_variable_of_its_own_that_others_set_is_read_first():
    text = "number = 1\ndef of(a):\n    step()\n    return a\ndef step():\n    global number\n    number += 1\n"
    text += "def by():\n    return of(number)\n"
    names: dict = {}
    exec(made_of(text), names)
    assert "of" not in names and names["by"]() == 1


def test_a_caller_keeps_a_frame_that_needs_no_heap():
    names = ["v%d" % number for number in range(LOCALS)]
    body = "".join(["    %s = a\n" % name for name in names])
    text = "def of(a):\n%s    return v1\ndef by(x):\n    return of(x)\n" % body
    assert made_of(text) == text
    assert functions(made_of(text, path="core/recovery/one.py")) == {"by"}  # no message passes there
    assert functions(made_of(text.replace("x", "x, a, b, c, d, e, f, g, h", 1))) == {"by"}  # its frame is there already
    smaller = "def of(a):\n%s    return v1\ndef by(x):\n    return of(x)\n" % "".join(["    %s = a\n" % name for name in names[1:]])
    assert functions(made_of(smaller)) == {"by"}
    two = "def of(a):\n{0}    x(a)\ndef to(a):\n{0}    x(a)\ndef by(b):\n    of(b)\n    to(b)\n".format(
        "".join(["    %s = a\n" % name for name in names[:5]])
    )
    assert functions(made_of(two)) == {"by"}  # the second has the variables of the first

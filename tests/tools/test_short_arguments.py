"""What tools/short_arguments.py and tools/put_together.py make of sources."""

from leveret.tools.put_together import put_together
from leveret.tools.short_arguments import shortened


def made(text):
    """The text of one source with short arguments."""
    return shortened({"core/one.py": text})["core/one.py"]


def test_arguments_are_short_and_the_function_means_the_same():
    text = made("def of(first, second=len):\n    return [first - each for each in second] + ['é', first]\n")
    assert text == "def of(a, b=len):\n    return [a - each for each in b] + ['é', a]\n"
    names: dict = {}
    exec(text, names)
    assert names["of"](3, [1]) == [2, "é", 3]


def test_what_a_call_or_a_text_can_name_stays():
    assert made("def of(first, second):\n    return second\nof(first=1, second=2)\n").startswith("def of(first, second)")
    assert made("def of(first):\n    return first\nof(**{'first': 1})\n").startswith("def of(first)")


def test_what_a_function_within_binds_anew_stays():
    text = "def of(first):\n    return (lambda first: first)(first)\n"
    assert made(text) == text


def test_a_default_is_read_where_the_function_is_made():
    assert made("first = 3\ndef of(first=first):\n    return first\n") == "first = 3\ndef of(a=first):\n    return a\n"


def test_a_client_keeps_its_names():
    text = "def connect(url):\n    return url\n"
    assert shortened({"ports/client.py": text}) == {"ports/client.py": text}


SHARED = {
    "core/low.py": "def one():\n    return 1\n",
    "core/middle.py": "from .low import one\ndef two():\n    return one() + 1\n",
    "core/high.py": "from .low import one\nfrom .middle import two\ndef three():\n    return one() + two()\n",
}


def test_what_several_import_goes_to_one_that_imports_none_of_the_others():
    holders: dict = {}
    made = put_together(dict(SHARED), ["core/high.py", "core/middle.py"], holders)
    assert holders == {"core/low.py": "core/middle.py"} and sorted(made) == ["core/high.py", "core/middle.py"]
    assert made["core/middle.py"].startswith("def one():") and "from .middle import one" in made["core/high.py"]


def test_what_a_broker_imports_too_does_not_go_to_a_client():
    made = put_together(
        {
            "core/low.py": "def one():\n    return 1\n",
            "core/client/it.py": "from ..low import one\ndef two():\n    return one() + 1\n",
            "core/zone.py": "from .low import one\ndef three():\n    return one() + 2\n",
        },
        ["core/client/it.py", "core/zone.py"],
    )
    assert sorted(made) == ["core/client/it.py", "core/zone.py"] and "def one" in made["core/zone.py"]


def test_all_of_it_becomes_one_source_with_each_import_once():
    made = put_together(dict(SHARED), ["core/high.py"], {})
    names: dict = {}
    exec(made["core/high.py"], names)
    assert list(made) == ["core/high.py"] and names["three"]() == 3 and "import" not in made["core/high.py"]

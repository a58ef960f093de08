"""tools/put_numbers.py: numbers for the names of constants, in what a board carries; nothing else changes (test_leave_out.py)."""

import ast
import builtins
import os
import symtable

import pytest

from leveret.tools import boards, flash_files, generate_viper, put_numbers


def put_in(**texts):
    """core/NAME.py: text."""
    made = put_numbers.put_in({"core/%s.py" % name: text for name, text in texts.items()})
    return {path[5:-3]: text for path, text in made.items()}


LAYOUT = "WIDTH = 3\nNONE = -1\nBIG = 1 << 40\nFIRST = 0\nBEHIND = WIDTH + 1\n"


@pytest.mark.parametrize(
    "text,wanted",
    (
        ("from . import layout\nx = layout.WIDTH\n", "\nx = 3\n"),
        ("from . import layout\nx = [layout.NONE, layout.BIG]\n", "from . import layout\nx = [(-1), layout.BIG]\n"),
        ("from .layout import WIDTH, BIG\nx = WIDTH * BIG\n", "from .layout import BIG\nx = 3 * BIG\n"),
        ("from .layout import *\nx = y[z + FIRST] + BEHIND\n", "\nx = y[z] + 4\n"),
        ("def f():\n    from . import layout\n    return layout.WIDTH\n", "def f():\n    pass\n    return 3\n"),
        ("from . import layout\nx = getattr(layout, 'WIDTH'.upper())\n", "from . import layout\nx = getattr(layout, 'WIDTH'.upper())\n"),
        ("OWN = 7\nx = OWN\n", "\nx = 7\n"),
        ("OWN = 7\nOWN = 8\nx = OWN\n", "OWN = 7\nOWN = 8\nx = OWN\n"),
        ("from .layout import WIDTH\ndef f(WIDTH):\n    return WIDTH\n", "from .layout import WIDTH\ndef f(WIDTH):\n    return WIDTH\n"),
    ),
)
def test_names_of_whole_numbers_become_numbers(text, wanted):
    assert put_in(layout=LAYOUT, other=text)["other"] == wanted


def test_what_another_file_sets_or_asks_for_by_name_stays():
    texts = {"layout": LAYOUT, "setting": "from . import layout\nlayout.WIDTH = 4\n", "asking": "x = found.NONE\n"}
    made = put_in(**texts)
    assert "WIDTH = 3" in made["layout"] and "NONE = -1" in made["layout"] and "FIRST" not in made["layout"]


@pytest.mark.parametrize("used,left", (("WIDTH + DEPTH", ""), ("WIDTH + DEPTH + f()", "from .two import *"), ("f()", "from .two import *")))
def test_a_source_may_import_all_of_several(used, left):
    """hot_in.py of AMQP 1.0 has the layout of links beside that of the broker: neither had its numbers put in."""
    made = put_in(
        layout=LAYOUT, two="DEPTH = 4\ndef f():\n    return 0\n", other="from .layout import *\nfrom .two import *\nx = %s\n" % used
    )
    assert made["other"] == "\n%s\nx = %s\n" % (left, used.replace("WIDTH", "3").replace("DEPTH", "4"))


def test_a_file_with_nothing_left_is_not_carried():
    assert set(put_in(layout="WIDTH = 3\n", other="from . import layout\nx = layout.WIDTH\n")) == {"other"}


@pytest.mark.parametrize("name", ("esp32_s3", "pico_2_w", "stm32f4"))
def test_every_board_has_the_names_that_its_sources_use(name):
    board = boards.load(name)
    before = {}
    for path in flash_files.source_paths(board):
        with open(os.path.join(boards.ROOT, path), encoding="utf-8") as file:
            before[path] = file.read()
    after = put_numbers.put_in(before)
    for path, text in after.items():
        assert text.count("\n") == before[path].count("\n"), path
        assert undefined(path, text) <= undefined(path, before[path]), path
    assert not any("layout.QUEUE_" in text for text in after.values())


def undefined(path, text):
    """Global names that a source reads and nothing in it makes; none where it imports all of another's."""
    tree = ast.parse(text)
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return set()
    module = symtable.symtable(text, path, "exec")
    made = {symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()}
    read, waiting = set(), [module]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        read |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced() and symbol.is_global()}
        made |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_declared_global() and symbol.is_assigned()}
    return read - made - set(dir(builtins)) - {"__name__", "__file__", "const"}


def test_machine_code_has_them_already():
    """The viper form of the hot functions: nothing is left to put in."""
    forms = {f"core/{name}.py": text for name, text in generate_viper.viper_forms().items()}
    assert put_numbers.put_in(forms) == forms

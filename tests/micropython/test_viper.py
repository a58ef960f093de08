"""The viper form of the hot functions is the plain form: the same octets and flat memory for random input (tests/memory/same_bytes.py, of
0-9-1, and same_bytes_1_0.py).

Where there is a 32-bit `micropython` binary the viper form runs there as machine code. Everywhere its text runs on CPython, where the marks
mean nothing: that shows that what tools/generate_viper.py puts in changes nothing.
"""

import os
import re
import subprocess
import sys

import pytest
import stage
import toolchain

from leveret.tools import boards, generate_viper

MEMORY = os.path.join(stage.ROOT, "tests", "memory")
STEPS = 600
SEEDS = (11, 12, 13)
FAMILIES = ("same_bytes", "same_bytes_1_0")
TIMEOUT_S = 120

# Puts the viper forms in the place of the plain ones on CPython.
IN_PLACE = """
import sys, types
sys.path.insert(0, %r)
marks = types.ModuleType("micropython")
marks.viper, marks.const = (lambda function: function), (lambda value: value)
sys.modules["micropython"] = marks
from leveret.tools import generate_viper
for name, text in generate_viper.viper_forms().items():
    room, name = name.split("/")
    module = types.ModuleType("leveret.core." + room + "." + name)
    module.__package__ = "leveret.core." + room
    module.ptr8 = module.ptr32 = None
    sys.modules[module.__name__] = module
    setattr(__import__(module.__package__, None, None, (name,)), name, module)
    exec(compile(text, name, "exec"), module.__dict__)
del sys.modules["micropython"]
assert sys.modules["leveret.core.memory.hot"].remainder(7, 4) == 3
import %s as same_bytes
same_bytes.main(%d, %d)
"""

# The plain form as MicroPython has it: without CPython's own forms of some functions (tests/accel/test_quicker.py).
AS_IT_STANDS = """
import sys
sys.path.insert(0, %r)
from leveret.core import shim
shim.quicker = lambda function, *_: function
import %s as same_bytes
same_bytes.main(%d, %d)
"""


def lines(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=MEMORY, env=environment)
    found = done.stdout.splitlines()
    assert done.returncode == 0 and found and found[-1].startswith("said "), done.stdout[-1500:] + done.stderr[-1500:]
    assert int(found[-1].split()[2]) > 10000, "the broker said hardly anything: " + found[-1]
    assert found[-1].endswith(" 0"), "the broker had errors of its own: " + found[-1]
    return found


@pytest.mark.parametrize("architecture", generate_viper.ARCHITECTURES)
def test_it_compiles_for_the_boards(architecture, tmp_path):
    generate_viper.write(tmp_path, architecture)
    assert sorted(path.name for path in tmp_path.glob("*/*.mpy")) == sorted(name.split("/")[1] + ".mpy" for name in generate_viper.FILES)


def test_the_numbers_of_the_layout_stand_for_their_names():
    names = generate_viper.numbers_of_the_layout()
    assert len(names) > 150
    for name, text in generate_viper.viper_forms().items():
        words = set(re.findall(r"\w+", text))
        assert not words & set(names), name
        assert "layout" not in text, name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_its_text_gives_the_same_bytes(family, seed):
    plain, viper = [lines([sys.executable, "-c", text % (MEMORY, family, seed, STEPS)]) for text in (AS_IT_STANDS, IN_PLACE)]
    assert viper == plain


# Imports what a broker needs, each behind what it imports, then runs a family: imports within imports exhaust a 32-bit build's C stack.
DEEPEST_FIRST = """
for name in %r:
    __import__(name)
import %s as same_bytes
same_bytes.main(%d, %d)
"""


def modules():
    """Names of the modules of a unix board's broker in the order in which they are loaded."""
    return ["leveret." + path[:-3].replace("/", ".") for path in boards.load_order(boards.load("unix").roots())]


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """(binary, directory of the plain form, directory of the viper form)."""
    try:
        binary = toolchain.unix_32()
    except toolchain.Missing as missing:
        pytest.skip(str(missing))
    made = [tmp_path_factory.mktemp(name) for name in ("plain", "viper")]
    for directory in made:
        stage.make(directory)
    generate_viper.write(made[1] / "lib" / "leveret" / "core")
    return binary, *made


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_as_machine_code_it_gives_the_same_bytes(staged, family, seed):
    binary, *directories = staged
    plain, viper = [
        lines(
            [binary, "-X", "heapsize=16m", "-c", DEEPEST_FIRST % (modules(), family, seed, STEPS)],
            dict(os.environ, MICROPYPATH=f"{MEMORY}:{directory}/lib"),
        )
        for directory in directories
    ]
    assert viper == plain

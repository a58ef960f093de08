"""tools/leave_out.py and tools/put_together.py: what a board carries without what nothing on it names, in fewer files; it does the same."""

import os
import subprocess
import sys

import pytest

from leveret.tools import boards, flash_files, leave_out, put_together

MEMORY = os.path.join(boards.ROOT, "tests", "memory")


def left(text, *outside):
    return leave_out.unnamed({"core/a.py": text}, outside)["core/a.py"]


@pytest.mark.parametrize(
    "text,wanted",
    (
        ("def f():\n    return 1\nx = 2\n", "pass\n\nx = 2\n".replace("pass", "")),
        ("def f():\n    return 1\nx = f()\n", "def f():\n    return 1\nx = f()\n"),
        ("def f():\n    return f()\nx = 2\n", "\n\nx = 2\n"),
        ("def f():\n    g()\ndef g():\n    f()\n    g()\nx = 2\n", None),
        ("class C:\n    'g'\n    @mark\n    def g(self):\n        pass\nx = C\n", "class C:\n    'g'\n    pass\n\n\nx = C\n"),
        ("class C:\n    def __init__(self):\n        pass\nx = C\n", "class C:\n    def __init__(self):\n        pass\nx = C\n"),
        ("def f():\n    pass\nx = 'a, f'\n", "def f():\n    pass\nx = 'a, f'\n"),
        ("from .b import c, d\ndef f():\n    c()\nx = d\n", "from .b import d\n\n\nx = d\n"),
        ("from .b import c\nx = 2\n", "from .b import c\nx = 2\n"),
        ("if y:\n    def f():\n        pass\nx = 2\n", "if y:\n    pass\n\nx = 2\n"),
    ),
)
def test_what_nothing_names_is_left_out(text, wanted):
    assert left(text) == (text if wanted is None else wanted)


def test_what_only_each_other_names_stays_and_what_another_source_names():
    assert left("def f():\n    pass\n", "from leveret.core.a import f\nf()\n") == "def f():\n    pass\n"


def test_what_is_named_by_nothing_that_is_left_goes_too():
    assert left("def f():\n    g()\ndef g():\n    h()\ndef h():\n    pass\nx = 2\n").split() == ["x", "=", "2"]


def together(kept=("core/a.py",), **texts):
    made = put_together.put_together({"core/%s.py" % name.replace("_", "/", 1): text for name, text in texts.items()}, kept)
    return {path[5:-3]: text for path, text in made.items()}


def test_a_source_that_one_other_imports_stands_in_it():
    made = together(
        a="from .b import f\nx = f()\n",
        b='"""Text."""\nfrom .c.d import y\ndef f():\n    from . import a\n    return y\n',
        c_d="y = 1\nz = 2\n",
    )
    assert set(made) == {"a"}
    assert made["a"].split("\n") == ["", "y = 1", "z = 2", "", "def f():", "    from . import a", "    return y", "", "x = f()", ""]


def test_what_is_asked_for_whole_is_asked_for_names():
    made = together(a="from . import b, c\ndef g(x):\n    return b.f(b.n), c\n", b="n = 2\ndef f(x):\n    return x\n", c="")
    assert set(made) == {"a", "c"} and "return f(n), c" in made["a"] and "from . import c" in made["a"]
    assert together(a="from . import b\nx = b.f\n", b="from . import a\ndef f():\n    return a.x\n").keys() == {"a", "b"}


def test_a_method_may_have_the_name_of_what_is_asked_for():
    """A name in a class is none in its methods."""
    made = together(a="from . import b\nclass C:\n    def f(self):\n        return b.f() + 1\nx = C().f()\n", b="def f():\n    return 2\n")
    names: dict = {}
    exec(made["a"], names)
    assert set(made) == {"a"} and names["x"] == 3


def test_a_name_that_a_third_source_asks_for_is_not_the_holders_own():
    """Both have a `check` of their own, and "c" asks for one of them: it stands where it is the only one."""
    made = together(
        ("core/a.py", "core/c.py"),
        a="from .b import other\ndef check():\n    return other()\n",
        b="def check():\n    return 1\ndef other():\n    return check()\n",
        c="from .b import check\nx = check()\n",
    )
    assert (
        set(made) == {"a", "c"}
        and made["a"].count("def check") == made["c"].count("def check") == 1
        and "from .c import other" in made["a"]
    )


def test_imports_mean_the_same_from_where_they_stand():
    made = together(
        a="from .r.b import f\nx = f()\n",
        r_b="from . import c\nfrom ..q import d\ndef f():\n    return c, d\n",
        r_c="x = 1\n",
        q="d = 2\n",
    )
    assert set(made) == {"a", "r/c"}  # a module that is used whole stays one
    assert "from .r import c" in made["a"] and "d = 2" in made["a"]


def test_a_number_of_the_compiler_that_both_have_is_one():
    made = together(a="from .b import f\n_N = const(1)\nx = f(_N)\n", b="_N = const(1)\ndef f(x):\n    return x + _N\n")
    assert set(made) == {"a"} and made["a"].split() == "_N = const(1) def f(x): return x + _N x = f(_N)".split()


@pytest.mark.parametrize(
    "a,b",
    (
        ("from .b import f\ndef g():\n    f()\n", "def f():\n    g()\ndef g():\n    pass\n"),  # one name, two meanings
        ("from .b import f\nopen(f)\n", "def f():\n    pass\ndef open(x):\n    pass\n"),  # a name of the interpreter's
        ("from .b import f\ndef open(x):\n    pass\n", "def f():\n    open(1)\n"),
        ("from .b import f\n_N = const(1)\nf(_N)\n", "_N = const(2)\ndef f(x):\n    return _N\n"),
        ("from .b import f\nn = 1\nf(n)\n", "n = 1\ndef f(x):\n    return n\n"),  # either may set its own
        ("from .b import f as g\ng()\n", "def f():\n    pass\n"),
        ("from .b import *\nf()\n", "def f():\n    pass\n"),
        ("from . import b\nx = b, b.f()\n", "def f():\n    pass\n"),
        ("from . import b\nb.f()\ndef g(f):\n    b.f()\n", "def f():\n    pass\n"),  # a name of a function's own
        ("from . import b\nb.f()\nclass C:\n    def f(self):\n        pass\n    g = b.f\n", "def f():\n    pass\n"),  # or of a class's
        ("from . import b\nb.f()\nb.f = 1\n", "def f():\n    pass\n"),  # set anew from outside,
        ("from . import b\nb.f()\n", "def f():\n    global f\n    f = None\n"),  # and within
        ("from . import b\nb.len()\nlen('')\n", "def len():\n    pass\n"),
        ("from .b import f\nx = 'core.b'\n", "def f():\n    pass\n"),  # looked up by its name
        ("from .b import f\nx = f\n", "def f():\n    return __name__\n"),
        ("def g():\n    from .b import f\n    f()\n", "def f():\n    pass\n"),  # loaded when it is needed
    ),
)
def test_a_source_stays_one_where_it_could_mean_something_else(a, b):
    assert together(a=a, b=b) == {"a": a, "b": b}


def test_what_is_kept_stays_one():
    one = "from .b import f\nx = f\n"
    assert together(kept=("core/a.py", "core/b.py"), a=one, b="def f():\n    pass\n")["b"]


@pytest.mark.parametrize("name", ("esp32_s3", "pico_w", "stm32f4"))
def test_a_board_has_every_source_that_its_sources_import(name):
    board = boards.load(name)
    carried = flash_files.sources(board, False)
    for path in carried:
        compile(carried[path], path, "exec")
        for node in put_together.File(path, carried[path]).imports:
            for other in boards.places(path, node):
                assert other in carried or other not in flash_files.source_paths(board), (path, other)
    assert set(flash_files.entries(board)) <= set(carried)


def test_the_broker_of_a_board_says_the_same_octets(tmp_path):
    """The whole broker as a board has it and as it stands: digests of all it sends, and of all its flat memory (same_bytes.py)."""
    said = []
    board = boards.load("unix")
    for made in (True, False):
        holders: dict = {}
        tree = flash_files.sources(board, False, holders) if made else {}
        tree.update(put_together.stand_ins(holders))
        for path in flash_files.source_paths(board):
            if not made or path == "core/memory/layout.py":  # same_bytes.py has its names
                with open(os.path.join(boards.ROOT, path), encoding="utf-8") as file:
                    tree[path] = file.read()
        directory = tmp_path / str(made)
        flash_files.write_tree(tree, str(directory))
        program = "import sys; sys.path[:0] = [%r, %r]; import same_bytes; same_bytes.main(5, 400)" % (str(directory), MEMORY)
        done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        said.append(done.stdout)
    assert said[0] == said[1] and int(said[0].splitlines()[-1].split()[2]) > 10000

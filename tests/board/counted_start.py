"""As one_start.py in a real MicroPython: each statement of the files that start a board counts itself, and the power goes at the n-th.

`CountedStarter(binary).start` is `Starter.start`. The unix port has no way to trace lines in the builds that there are, so a call stands in
front of each statement. As a program it runs inside MicroPython, in the board's folder: CUT_AT fat|littlefs PLACE.
"""

import sys

PROGRAM = "counted_start.py"
FAT_OS = """
from uos import *
import uos


def rename(old, new):
    try:
        uos.stat(new)
    except OSError:
        return uos.rename(old, new)
    raise OSError(17)
"""


def inside(cut_at, place):
    """Run boot.py and main.py of this folder as a board does; the number of statements goes into PLACE/lines."""
    import builtins

    import uos

    lines = 0

    def leave():
        with open(place + "/lines", "w") as file:
            file.write(str(lines))

    def count():
        nonlocal lines
        lines += 1
        if lines == cut_at:
            leave()
            uos.system("kill -9 $PPID")  # nothing more of this process runs

    builtins.count_statement = count
    sys.path[:] = ["", place, ".frozen", "lib"]
    for name in ("boot.py", "main.py"):
        with open(name) as file:
            source = file.read()
        try:
            exec(compile(source, name, "exec"), {"__name__": "__main__"})
        except SystemExit:
            break  # a reset
        except Exception as error:  # as a board: told, and the prompt comes
            sys.print_exception(error)
    leave()


if sys.implementation.name == "micropython":
    inside(int(sys.argv[1]), sys.argv[2])
else:
    import ast
    import os
    import subprocess
    import tempfile

    from one_start import CUT, FAT, LITTLEFS, STARTERS

    TIMEOUT_S = 60
    KILLED = -9

    def counted(text):
        """A source whose statements count themselves; its words and docstrings stay."""
        tree = ast.parse(text)
        for node in ast.walk(tree):
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list) and statements:
                    setattr(node, name, [each for statement in statements for each in (count_of(statement), statement) if each])
        return ast.unparse(ast.fix_missing_locations(tree))

    def count_of(statement):
        """The call before a statement, None where that is one of these calls or a docstring."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Constant, ast.Call)):
            if isinstance(statement.value, ast.Constant) or ast.unparse(statement.value.func) == "count_statement":
                return None
        return ast.parse("count_statement()").body[0]

    class CountedStarter:
        """Starts of a board in `binary`."""

        def __init__(self, binary):
            self.binary = binary
            self.directory = tempfile.TemporaryDirectory(prefix="leveret-counted-")
            self.counted = {}  # of the texts of files
            for name, text in ((LITTLEFS, ""), (FAT, FAT_OS)):
                place = os.path.join(self.directory.name, name)
                os.mkdir(place)
                if text:
                    with open(os.path.join(place, "os.py"), "w", encoding="utf-8") as file:
                        file.write(text)

        def start(self, folder, cut_at, file_system=LITTLEFS):
            """One start in `folder`: (0 or CUT, statements that ran). `cut_at` 0: the power stays."""
            for name in STARTERS:
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                if "count_statement" not in text:
                    if text not in self.counted:
                        self.counted[text] = counted(text)
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(self.counted[text])
            place = os.path.join(self.directory.name, file_system)
            command = [self.binary, os.path.abspath(__file__), str(cut_at), place]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)
            assert done.returncode in (0, KILLED) and "Traceback" not in done.stdout, (cut_at, done)
            with open(os.path.join(place, "lines"), encoding="ascii") as file:
                return (CUT if done.returncode else 0), int(file.read())

        def close(self):
            """Remove its files."""
            self.directory.cleanup()

"""Writes the table of limits into README.md, between its two marks, from core/limits.py and core/limit_words.py.

    python3 tools/generate_readme.py            write it
    python3 tools/generate_readme.py --check    exit 1 when the table in README.md is not what core/limits.py says
"""

import importlib
import pathlib
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN = "<!-- limits: written by tools/generate_readme.py -->\n"
END = "<!-- end of limits -->\n"


def limits_module():
    """core/limits.py, imported from the tree without installing anything."""
    package = types.ModuleType("leveret_tree")
    package.__path__ = [str(ROOT)]
    sys.modules["leveret_tree"] = package
    return importlib.import_module("leveret_tree.core.limits")


def table(limits):
    """The rows as Markdown, and what they add up to."""
    lines = ["| limit | gateway | board | range | unit | at the limit |", "|---|---|---|---|---|---|"]
    words = importlib.import_module("leveret_tree.core.limit_words").WORDS
    for name, gateway, board, least, most in limits.ROWS:
        unit, effect = words[name]
        lines.append("| `%s` | %d | %d | %d to %d | %s | %s |" % (name, gateway, board, least, most, unit, effect))
    cpython = importlib.import_module("leveret_tree.core.memory_cpython")
    micropython = importlib.import_module("leveret_tree.core.memory_micropython")
    needs = cpython.memory_needed(limits.Limits()), micropython.memory_needed(limits.Limits(**limits.BOARD))
    lines.append("")
    lines.append("When every limit is reached it takes %d MiB with the gateway's numbers on 64-bit CPython, with its interpreter, where"
                 % (needs[0] >> 20))
    lines.append("every name, argument and pattern is as large as it may be and takes most; a machine with less than twice that")
    lines.append("has smaller numbers (`leveret limits`). With the board's it is %d KiB of a 32-bit MicroPython, beside its code."
                 % (needs[1] >> 10))
    return "\n".join(lines) + "\n"


def main(arguments):
    """Write or check; the exit status."""
    path = ROOT / "README.md"
    text = path.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    wanted = text[:begin] + table(limits_module()) + text[end:]
    if "--check" in arguments:
        if wanted != text:
            print("generate_readme: the limits in README.md are not those of core/limits.py; run python3 tools/generate_readme.py")
        return int(wanted != text)
    path.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

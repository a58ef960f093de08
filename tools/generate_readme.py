"""Writes generated tables into pages, each between two marks: the limits into core/LIMITS.md, from core/limits.py and core/limit_words.py;
the rooms into core/DESIGN.md, from core/*/README.md; a few figures of the bench into README.md and tools/PERF.md, from the tables in
tests/measure/README.md; what versions of AMQP take on a board into boards/README.md, from the boards' files.

    python3 tools/generate_readme.py            write them
    python3 tools/generate_readme.py --check    exit 1 when a page does not have what its source says
"""

import importlib
import pathlib
import re
import sys
import tomllib
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "tests" / "measure" / "README.md"
# The rows of the bench that README.md shows, and the columns beside their titles: expressions that fit one title each.
FIGURES = (
    "^no acknowledgements",
    "^acks,",
    "^confirms,",
    "persistent, confirms",
    "latency p50",
    "latency p99",
    "start to first answer",
    "resident memory, idle",
)
FEATURES = (
    "^no arguments",
    "^x-message-ttl and",
    "^x-max-length, drop",
    "^x-max-priority",
    "^x-single",
    "^a stream, read at its end",
    "^transactions",
    "^basic.get, 200",
    "^headers",
    "^topic exchange, 10,000",
    "^direct reply-to, 200",
    "^1,000 queues",
    "^a queue beyond memory, filled",
    "^a queue beyond memory, drained",
)
SHOWN = ("esp32", "pico_2_w", "esp32_s3")  # of the boards: the code frozen, .mpy files with little and with much on it
COLUMNS: tuple = (r"Leveret \(C\)", r"Leveret \(plain", "^RabbitMQ")


class NoSource(Exception):
    """The source of a table is missing; the text is one sentence."""


def limits_module():
    """core/limits.py, imported from the tree without installing anything."""
    package = types.ModuleType("leveret_tree")
    package.__path__ = [str(ROOT)]
    sys.modules["leveret_tree"] = package
    return importlib.import_module("leveret_tree.core.limits")


def conditions(effects):
    """The codes of each family for the conditions in the effects of limits, as Markdown."""
    replies = importlib.import_module("leveret_tree.core.amqp_0_9.spec_0_9_1").REPLIES
    lines = ["", "| condition | AMQP 0-9-1 |", "|---|---|"]
    for name, code, hard in replies:
        if name in effects:
            lines.append("| `%s` | %d: closes the %s |" % (name, code, "connection" if hard else "channel"))
    return lines


def table(limits):
    """The rows as Markdown, and what they add up to."""
    lines = ["| limit | gateway | board | range | unit | at the limit |", "|---|---|---|---|---|---|"]
    words = importlib.import_module("leveret_tree.core.limit_words").WORDS
    for name, gateway, board, least, most in limits.ROWS:
        unit, effect = words[name]
        lines.append("| `%s` | %d | %d | %d to %d | %s | %s |" % (name, gateway, board, least, most, unit, effect))
    lines += conditions(" ".join(effect for _, effect in words.values()))
    cpython = importlib.import_module("leveret_tree.core.memory.cpython_sizes")
    micropython = importlib.import_module("leveret_tree.core.memory.micropython_sizes")
    needs = cpython.memory_needed(limits.Limits()), micropython.memory_needed(limits.Limits(**limits.BOARD))
    lines.append("")
    lines.append(
        "When every limit is reached it takes %d MiB with the gateway's numbers on 64-bit CPython, with its interpreter, where"
        % (needs[0] >> 20)
    )
    lines.append("every name, argument and pattern is as large as it may be and takes most; a machine with less than twice that")
    lines.append(
        "has smaller numbers (`leveret limits`). With the board's it is %d KiB of a 32-bit MicroPython, beside its code." % (needs[1] >> 10)
    )
    return "\n".join(lines) + "\n"


def the_one(titles, expression, kind):
    """The index of the one title that `expression` fits. Raises NoSource."""
    places = [place for place, title in enumerate(titles) if re.search(expression, title)]
    if len(places) != 1:
        raise NoSource(
            "tests/measure/README.md has %d %s that %r fits; FIGURES and COLUMNS in tools/generate_readme.py choose them"
            % (len(places), kind, expression)
        )
    return places[0]


def figures(page, subject="bench", expressions=FIGURES, further=()):
    """The chosen rows and columns of the bench's table in `page`, with the sentence that says how they were measured. `further`: columns
    beside COLUMNS."""
    block = page[page.index("<!-- %s:" % subject) : page.index("<!-- end of %s -->" % subject)]
    measured = re.search(r"^Measured .*?\n\n", block, re.MULTILINE | re.DOTALL)
    if measured is None:
        raise NoSource("tests/bench/README.md does not say behind its table how that was measured: a paragraph that begins with Measured")
    table_end = block.find("\n\n", block.index("\n|"))
    block = block if table_end < 0 else block[:table_end]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", block, re.MULTILINE)]
    columns = [the_one(head, expression, "columns") for expression in COLUMNS + further]
    chosen = [rows[the_one([row[0] for row in rows], expression, "rows")] for expression in expressions]
    lines = ["| | " + " | ".join(head[column] for column in columns) + " |", "|---|" + "---:|" * len(columns)]
    lines += ["| %s | %s |" % (row[0], " | ".join(row[column] for column in columns)) for row in chosen]
    return measured[0] + "\n".join(lines) + "\n"


def rooms(core):
    """The rooms below the folder `core`, as their pages tell of them: those that import others above those, each room in one row."""
    rooms: dict = {}
    for page in core.glob("*/README.md"):
        text = page.read_text(encoding="utf-8")
        purpose, law = re.match(r"# \w+: (.*)\n", text), re.search(r"May import: (.*?)\. Read first: `(.*?)`\.", text)
        if purpose is None or law is None:
            raise NoSource("core/%s/README.md does not say in its title what it is for, or not what it may import" % page.parent.name)
        rooms[page.parent.name] = purpose[1], [] if law[1] == "no other room" else law[1].split(", "), law[2]

    def height(name):
        return 1 + max([height(each) for each in rooms.get(name, ("", []))[1]] or [0])

    lines = ["| room | for | may import | read first |", "|---|---|---|---|"]
    for name in sorted(rooms, key=lambda name: (-height(name), name)):
        purpose, others, first = rooms[name]
        lines.append("| [%s](%s/README.md) | %s | %s | `%s` |" % (name, name, purpose, ", ".join(others) or "-", first))
    return "\n".join(lines) + "\n"


def sizes(folder):
    """What each choice of versions takes on the boards SHOWN, by [sizes] of their files below `folder`."""
    limits_module()
    parts = importlib.import_module("leveret_tree.tools.board_parts")
    titles = {choice: " and ".join(parts.TITLES[name] for name in parts.CHOICES[choice]) for choice in parts.CHOICES}
    titles["all"] = "all of them"
    lines = ["| board | versions | heap, code | heap, a connection | flash, bytecode | flash, viper | ROMFS image |"]
    lines.append("|---|---|" + "---:|" * 5)
    for board in SHOWN:
        profile = tomllib.loads((folder / board / "board.toml").read_text(encoding="utf-8"))
        for choice, row in profile["sizes"].items():
            numbers = [row[name] for name in ("heap", "connection", "mpy", "viper", "romfs")]
            lines.append(f"| {board} | {titles[choice]} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    return "\n".join(lines) + "\n"


# page, first mark, last mark, the text between them
TABLES = (
    (
        "boards/README.md",
        "<!-- sizes: written by tools/generate_readme.py -->\n",
        "<!-- end of sizes -->\n",
        lambda: sizes(ROOT / "boards"),
    ),
    (
        "core/LIMITS.md",
        "<!-- limits: written by tools/generate_readme.py -->\n",
        "<!-- end of limits -->\n",
        lambda: table(limits_module()),
    ),
    (
        "core/DESIGN.md",
        "<!-- rooms: written by tools/generate_readme.py -->\n",
        "<!-- end of rooms -->\n",
        lambda: rooms(ROOT / "core"),
    ),
    (
        "README.md",
        "<!-- figures: written by tools/generate_readme.py -->\n",
        "<!-- end of figures -->\n",
        lambda: figures(BENCH.read_text(encoding="utf-8")),
    ),
    (
        "tools/PERF.md",
        "<!-- features: written by tools/generate_readme.py -->\n",
        "<!-- end of features -->\n",
        lambda: figures(BENCH.read_text(encoding="utf-8"), "bench of features", FEATURES, ("^C / RabbitMQ",)),
    ),
)


def main(arguments, root=ROOT):
    """Write or check the pages below `root`; the exit status."""
    old = 0
    for page, first, last, make in TABLES:
        path = root / page
        text = path.read_text(encoding="utf-8")
        begin, end = text.index(first) + len(first), text.index(last)
        try:
            wanted = text[:begin] + make() + text[end:]
        except NoSource as error:
            print("generate_readme: %s" % error)
            return 1
        if "--check" not in arguments:
            path.write_text(wanted, encoding="utf-8")
        elif wanted != text:
            print("generate_readme: a table in %s is not what its source says; run python3 tools/generate_readme.py" % page)
            old = 1
    return old


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

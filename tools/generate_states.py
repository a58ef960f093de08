"""Writes core/STATES.md: every state machine of core/ (core/states.py), drawn from its table.

    python3 tools/generate_states.py            write it
    python3 tools/generate_states.py --check    exit 1 when the page is not what the tables say, or a table is not sound

A table is sound when its actions are there (the comment above it says where: `Actions: FILE.`, beside the table's file), when no row hides
behind an earlier one, and when the texts that files of its room compare a `state` with, or set it to, are states of the room's tables; for
the state of a `connection` in another room, of the tables in core/connection.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "core" / "STATES.md"
ANY = "*"

HEAD = """# States

Written by tools/generate_states.py from the tables in core/; do not edit. What a row means: `core/states.py`. An arrow is an input (a `*`
at its end stands for all that begin so); an input that leaves a machine in its state has no arrow. The first row that fits counts, and an
action that begins with `!` is the condition with which the input is refused (`core/REFUSALS.md`).

"""


class Machine:
    """One table: `rows` (state, input, next state, action), the sentences above it, its file and name."""

    def __init__(self, path, name, line, rows, words):
        self.path, self.name, self.line, self.rows, self.words = path, name, line, rows, words

    def states(self):
        """Their names, in the order in which they begin rows; those that no row leaves last."""
        names = [row[0] for row in self.rows] + [row[2] for row in self.rows]
        return list(dict.fromkeys(name for name in names if name != ANY))

    def row_for(self, state, input_):
        """The row that counts for an input in a state, or None."""
        for row in self.rows:
            if row[0] in (state, ANY) and fits(row[1], input_):
                return row
        return None

    def arrows(self):
        """{(state, next state): inputs} of the rows that lead to another state."""
        arrows: dict = {}
        for row in self.rows:
            for state in self.states() if row[0] == ANY else [row[0]]:
                if row[2] not in (ANY, state) and self.row_for(state, row[1]) is row:
                    arrows.setdefault((state, row[2]), []).append(row[1])
        return arrows

    def drawing(self):
        """The machine as a Mermaid diagram."""
        lines = ["```mermaid", "stateDiagram-v2"]
        lines += [f"    {first} --> {second}: {', '.join(inputs)}" for (first, second), inputs in self.arrows().items()]
        return lines + ["```"]

    def table(self):
        """The rows as Markdown."""
        lines = ["| state | input | next state | action |", "|---|---|---|---|"]
        return lines + ["| " + " | ".join(cell.replace(ANY, "\\*") for cell in row) + " |" for row in self.rows]


def fits(pattern, input_):
    """True when a row's input fits an input, or everything that the pattern `input_` fits."""
    return pattern == input_ or (pattern.endswith(ANY) and input_.startswith(pattern[:-1]))


def is_table(value):
    """True for a display of rows of four texts."""
    return (
        isinstance(value, ast.Tuple)
        and len(value.elts) > 0
        and all(isinstance(row, ast.Tuple) and len(row.elts) == 4 for row in value.elts)
        and all(isinstance(cell, ast.Constant) and isinstance(cell.value, str) for row in value.elts for cell in row.elts)  # type: ignore[attr-defined]  # the line above has seen that rows are displays
    )


def words_above(source, line):
    """The comment that ends above a line (1 is the first)."""
    lines, words = source.split("\n")[: line - 1], list[str]()
    while lines and lines[-1].startswith("# "):
        words.insert(0, lines.pop()[2:])
    return " ".join(words)


def machines():
    """All Machines of core/, in the order of their places."""
    machines = []
    for path in sorted((ROOT / "core").rglob("*.py")):
        source = path.read_text()
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and is_table(node.value) and isinstance(node.targets[0], ast.Name):
                words = words_above(source, node.lineno)
                machines.append(Machine(path, node.targets[0].id, node.lineno, ast.literal_eval(node.value), words))
    return machines


def names_in(path):
    """The names that a file defines or imports, and the methods of its classes."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def faults_of(machine):
    """The faults of a table, a sentence each."""
    place = f"{machine.path.relative_to(ROOT)}:{machine.line}: {machine.name}"
    match = re.search(r"Actions: ([\w/.]+\.py)", machine.words)
    if match is None:
        yield f"{place} does not say above it where its actions are (`Actions: FILE.`)"
    else:
        for name in sorted({row[3] for row in machine.rows if row[3][0] != "!"} - names_in(machine.path.parent / match[1])):
            yield f"{place} has an action {name} that is not in {match[1]}"
    for at, row in enumerate(machine.rows):
        for before in machine.rows[:at]:
            if before[0] in (row[0], ANY) and fits(before[1], row[1]):
                yield f"{place} has a row {row} that hides behind {before}"


def texts_of_states(path):
    """(line, text, is_connection) of every text that a file compares an attribute `state` with, or sets it to; `is_connection`: the
    attribute is one of something called `connection`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "state":
            target, below = node.left, [each for right in node.comparators for each in ast.walk(right)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and node.targets[0].attr == "state":
            target, below = node.targets[0], [node.value]
        else:
            continue
        for each in below:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.lineno, each.value, ast.unparse(target.value).split(".")[-1] == "connection"


def faults(all_machines):
    """The faults of the tables, and of files that use their states."""
    for machine in all_machines:
        yield from faults_of(machine)
    for folder in sorted({machine.path.parent for machine in all_machines}):
        for path in sorted(folder.glob("*.py")):
            for line, text, is_connection in texts_of_states(path):
                home = ROOT / "core" / "connection" if is_connection else folder
                if text not in {state for machine in all_machines if machine.path.parent == home for state in machine.states()}:
                    yield f"{path.relative_to(ROOT)}:{line}: {text!r} is no state of {home.relative_to(ROOT)}"


def page(all_machines):
    """The page."""
    lines = []
    for machine in all_machines:
        lines += [f"## {machine.path.relative_to(ROOT / 'core')}: {machine.name}", machine.words, ""]
        lines += machine.drawing() + [""] + machine.table() + [""]
    return HEAD + "\n".join(lines).rstrip() + "\n"


def main(arguments):
    """Write or check; the exit status."""
    all_machines = machines()
    wrong = list(faults(all_machines))
    for each in wrong:
        print(each)
    wanted = page(all_machines)
    if "--check" not in arguments:
        PAGE.write_text(wanted)
    elif not PAGE.exists() or PAGE.read_text() != wanted:
        print("generate_states: core/STATES.md is not what the tables say; run python3 tools/generate_states.py")
        return 1
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

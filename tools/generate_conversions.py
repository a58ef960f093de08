"""Writes core/CONVERSIONS.md: what a message that one version of AMQP published is for receivers of each version.

    python3 tools/generate_conversions.py            write it
    python3 tools/generate_conversions.py --check    exit 1 when the page is not what the broker does

The page is what comes out of the broker: a message of each version with every property, every type of header and every form of body goes
in by each version and comes out by each (tests/unit/full_messages.py, conversion_cells.py). tests/tools/test_conversions.py has a test for
each pair.
"""

import importlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "core" / "CONVERSIONS.md"

HEAD = """# What a message is for receivers of another version

Written by tools/generate_conversions.py out of what the broker does; tests/tools/test_conversions.py has a test for each of the 49 pairs.

A message is stored as its publisher sent it. It is converted when it is delivered, for receivers of its own version never: between 0-9-1
and 1.0 as RabbitMQ 4 does, to and from 0-10 as Qpid's brokers do, with more of it kept. The drafts, 0-8, 0-9 and 0-9-1 share one form in
the store, class basic's.

One table for each version that publishes, a row for each property, header and body of the messages of tests/unit/full_messages.py,
which have all that the version can say; a column for each version that receives. `=` is kept as it was; another value is what receivers
get, behind the name that it has for them, where that is another; **lost** is not there. Values of headers have their type before them:
letters are those of field tables (0-9-1 section 4.2.5.5). Exchange and routing key (a draft's destination) come with every delivery and
are not in the tables; nor is what receivers of 1.0 get besides, the annotations x-exchange and x-routing-key.

"""


def page():
    """The page's text."""
    for path in (ROOT.parent, ROOT / "tests" / "unit"):
        sys.path.insert(0, str(path))
    conversion_cells = importlib.import_module("conversion_cells")
    versions = conversion_cells.VERSIONS
    parts = [HEAD, "## Lost\n\n", lost_table(conversion_cells, versions)]
    for source in versions:
        parts.append("\n## Published by %s\n\n| of %s | value | %s |\n" % (source, source, " | ".join(versions)))
        parts.append("|" + "---|" * (2 + len(versions)) + "\n")
        for name, value, cells in conversion_cells.rows(source):
            row = [name, value] + [cells[target] for target in versions]
            parts.append("| " + " | ".join([shown(each) for each in row]) + " |\n")
    return "".join(parts)


def lost_table(conversion_cells, versions):
    """A row for each version that publishes: the names that receivers of each version do not have."""
    lines = ["| from | %s |\n" % " | ".join("to " + each for each in versions), "|" + "---|" * (1 + len(versions)) + "\n"]
    for source in versions:
        rows = conversion_cells.rows(source)
        cells = []
        for target in versions:
            names = []
            for name, _, row in rows:
                if row[target] == conversion_cells.LOST and name not in names:
                    names.append(name)
            cells.append(", ".join(names) or "-")
        lines.append("| %s | %s |\n" % (source, " | ".join(cells)))
    return "".join(lines)


def shown(text):
    """A cell of a table."""
    text = text.replace("|", "\\|")
    return "**lost**" if text == "lost" else text


def main(arguments):
    """0, or 1 where `--check` comes upon another page."""
    text = page()
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("core/CONVERSIONS.md is not what the broker does: python3 tools/generate_conversions.py writes it")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

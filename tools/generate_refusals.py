"""Writes core/REFUSALS.md: every sentence with which something is refused, and what to do about it.

    python3 tools/generate_refusals.py            write it
    python3 tools/generate_refusals.py --check    exit 1 when the page is not what the sources say, or a sentence has no advice

The sentences are read from the sources: the texts that ProtocolError, UsageError and their like are made with. What to do is
tools/refusals.py. A place that only hands on another's sentence is passed over.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "core" / "REFUSALS.md"
FOLDERS = ("core", "ports", "tools")
# The tools of this tree; an application's own mistakes; what no port speaks yet.
LEFT_OUT = ("tools/devtool/", "core/amqp_0_9/client", "core/amqp_0_10/client", "core/version.py", "core/amqp_1_0/")

# What makes a sentence: (function or class, which argument is the text, name of the section).
AT_START, TO_CLIENTS, OF_SPARK = "start", "client", "spark"
SPEAKERS: dict = {
    "ProtocolError": (1, TO_CLIENTS),
    "UsageError": (0, AT_START),
    "read_toml": (1, AT_START),
    "ValueError": (0, AT_START),
    "ListenFailed": (0, AT_START),
    "DataFailed": (0, AT_START),
    "LineFailed": (0, AT_START),
    "TlsFailed": (0, AT_START),
    "ManageFailed": (0, AT_START),
    "Unsuitable": (0, AT_START),
    ".close": (0, TO_CLIENTS, "connection-forced"),
    "NoSpark": (0, OF_SPARK),
    "StreamError": (0, OF_SPARK),
    "DataLoss": (0, OF_SPARK),
}
# Functions of one file that raise for their callers: (path, name): (which argument, section, condition).
HELPERS: dict = {
    ("core/broker/policies.py", "bad"): (1, TO_CLIENTS, "precondition-failed"),
    ("core/amqp_0_9/properties.py", "bad"): (0, TO_CLIENTS, "syntax-error"),
    ("core/amqp_0_9/field_table.py", "bad"): (0, TO_CLIENTS, "syntax-error"),
    ("core/amqp_0_9/packed.py", "bad"): (0, TO_CLIENTS, "syntax-error"),
    ("core/limits.py", "require"): (1, AT_START, ""),
    ("core/serial_link/link.py", "require"): (1, AT_START, ""),
}

# What is refused without a sentence of ours: (what the client sees, when, what to do).
SILENT = (
    (
        "basic.return 312 NO_ROUTE",
        "a mandatory message that no queue took (section 1.8.3.6)",
        "Bind a queue, or give the exchange an alternate-exchange.",
    ),
    (
        "basic.nack to a publisher",
        "a queue with x-overflow reject-publish is full, or the log could not write the message",
        "Publish it again later; look at `leveret status` for what is full.",
    ),
    (
        "connection.blocked",
        "memory or disk is full, or a queue is and its publishers wait",
        "Consume, purge or raise the limit that the reason and the broker's log name; connection.unblocked follows by itself.",
    ),
    ("basic.cancel from the broker", "the queue of a consumer was deleted", "Declare the queue and consume again."),
)

HEAD = """# Refusals, and what to do about them

Written by tools/generate_refusals.py from the sources; do not edit. `...` stands for what differs from case to case.

"""
TITLES = (
    (
        TO_CLIENTS,
        "From the broker to a client",
        "A client sees the reply code and the text in channel.close or connection.close, the one who manages sees it as `error`. Soft "
        "errors close the channel, hard ones the connection (AMQP 0-9-1 section 1.2). What the broker counts of them: `leveret status`.",
    ),
    (
        AT_START,
        "From a command at its start",
        "One sentence on standard error. Exit status 2: the command line or a file is to be changed; 1: something else stood in the way "
        "(a port, a disk, a broker).",
    ),
    (OF_SPARK, "From the Spark part", "The text of the exception that Spark shows, and of the last line of `leveret pipeline`."),
)


PLACE = re.compile(r"%(\(\w+\))?0?\d*[sdrxX]|%\.\d+[fs]")


class Sentence:
    """One sentence: its section, its condition ("" but for clients), its text, where it stands."""

    def __init__(self, section, condition, text, path, line):
        self.section, self.condition, self.text, self.path, self.line = section, condition, text, path, line

    def shown(self):
        """The text for people: what is filled in is `...`."""
        text = re.sub(r"\{[^{}]*\}", "...", PLACE.sub("...", self.text))
        return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def text_of(node):
    """The text that an expression gives, with {} for what is filled in; None when there is none to be seen."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "called":
        kind = text_of(node.args[0])  # Topology.called
        return f"{'{}' if kind is None else kind} '{{}}' in vhost '{{}}'"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return filled_in(text_of(node.left), node.right.elts if isinstance(node.right, ast.Tuple) else [node.right])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [text_of(side) for side in (node.left, node.right)]
        return None if sides == [None, None] else "".join("{}" if side is None else side for side in sides)
    if isinstance(node, ast.IfExp):
        return text_of(node.body) or text_of(node.orelse)
    return None


def filled_in(text, values):
    """A text with places as %s, those of its values filled in that are texts of their own."""
    if text is not None:
        for value, place in reversed(list(zip(values, PLACE.finditer(text)))):
            if isinstance(value, ast.Call) and text_of(value):
                text = text[: place.start()] + text_of(value) + text[place.end() :]
    return text


def sentences_of(path):
    """The Sentences of one source file."""
    name = str(path.relative_to(ROOT))
    tree = ast.parse(path.read_text(), name)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            continue
        called = node.func.id if isinstance(node.func, ast.Name) else "." + node.func.attr
        place, section, condition = (HELPERS.get((name, called)) or SPEAKERS.get(called, (0, "")) + ("",))[:3]
        text = text_of(node.args[place]) if section and len(node.args) > place else None
        if not text or not re.search("[a-z]{3}", text.replace("{}", "")) or not node.args:
            continue
        if called == "ProtocolError":
            condition = ast.unparse(node.args[0]).rpartition(".")[2].lower().replace("_", "-")
        if name.startswith(("ports/spark/", "tools/pipeline")):
            section = OF_SPARK
        yield Sentence(section, condition, text, name, node.lineno)
    for text, line in sentences_of_tables(tree):
        yield Sentence(OF_SPARK if name.startswith(("ports/spark/", "tools/pipeline")) else AT_START, "", text, name, line)


def sentences_of_tables(tree):
    """(text, line) of the sentences that a file's Tables of settings have (ports/settings.py)."""
    if any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Table" for node in ast.walk(tree)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\{name(!r)?\}.* |\{path\}: ", node.value):
                yield node.value, node.lineno
            elif isinstance(node, ast.Tuple) and len(node.elts) == 3 and isinstance(node.elts[1], ast.Lambda):
                text = text_of(node.elts[2])
                if text and not text.startswith(("{path}", "{name}")):
                    yield text, node.lineno


def sentences():
    """All Sentences of the tree, in the order of their places."""
    collected = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not str(path.relative_to(ROOT)).startswith(LEFT_OUT):
                collected += sentences_of(path)
    return collected


def advice_for(sentence, advice, conditions):
    """The advice, or None."""
    for place, words, advised in advice:
        if place in sentence.path and words in sentence.text.replace("{}", ""):
            return advised
    return conditions.get(sentence.condition)


def read_data():
    """(ADVICE, CONDITIONS, {condition: (reply code, hard)}) from the tree, without installing anything."""
    spaces: dict = {}
    for name in ("tools/refusals.py", "core/amqp_0_9/spec_0_9_1.py"):
        exec(compile((ROOT / name).read_text(), name, "exec"), spaces)
    return spaces["ADVICE"], spaces["CONDITIONS"], {name: (code, hard) for name, code, hard in spaces["REPLIES"]}


def rows(collected, advice, conditions, missing):
    """The lines of a table; what has no advice is added to `missing`."""
    lines, seen = ["| sentence | what to do |", "|---|---|"], set()
    for sentence in collected:
        advised = advice_for(sentence, advice, conditions)
        if advised is None:
            missing.append(sentence)
        elif (sentence.shown(), advised) not in seen:
            seen.add((sentence.shown(), advised))
            lines.append(f"| {sentence.shown()} | {advised} |")
    return lines + [""]


def page():
    """(the page, the Sentences that have no advice)."""
    advice, conditions, replies = read_data()
    collected = sentences()
    missing: list = []
    lines: list = []
    for section, title, words in TITLES:
        mine = [sentence for sentence in collected if sentence.section == section]
        lines += [f"## {title}", words, ""]
        if section != TO_CLIENTS:
            lines += rows(mine, advice, {}, missing)
            continue
        for condition, (code, hard) in sorted(replies.items(), key=lambda item: item[1]):
            chosen = [sentence for sentence in mine if sentence.condition == condition]
            if chosen or condition == "connection-forced":
                lines += [f"### {code} {condition} ({'hard' if hard else 'soft'})", conditions[condition], ""]
                lines += rows(chosen, advice, conditions, missing)
        lines += ["### Without a sentence", "", "| what the client sees | when | what to do |", "|---|---|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in SILENT] + [""]
        others = [sentence for sentence in mine if sentence.condition not in replies]
        if others:
            lines += ["### With a condition that depends on the case", ""] + rows(others, advice, conditions, missing)
    return HEAD + "\n".join(lines).rstrip() + "\n", missing


def main(arguments):
    """Write or check; the exit status."""
    wanted, missing = page()
    for sentence in missing:
        print(f"{sentence.path}:{sentence.line}: tools/refusals.py does not say what to do about: {sentence.shown()}")
    if "--check" in arguments:
        current = PAGE.exists() and PAGE.read_text() == wanted
        if not current:
            print("generate_refusals: core/REFUSALS.md is not what the sources say; run python3 tools/generate_refusals.py")
        return int(bool(missing) or not current)
    PAGE.write_text(wanted)
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

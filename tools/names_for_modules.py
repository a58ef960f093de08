"""Has a source ask another for names (`from .x import f` and `f()`) where it asks for all of it (`from . import x` and `x.f()`): what is
asked for names alone can stand in the source that asks (put_together.py).

It does so where the names mean the same: each is read alone, nobody sets it anew once the other is loaded, nothing else in the source has
that name, and the other does not have the source loaded itself.
"""

import ast


def rewritten(file, other, files):
    """The text of `file` (put_together's, as all here) when it asks the source `other` for names; None: it could mean something else."""
    imports = {node: alias for node in file.imports for alias in node.names if f"{file.bases[node]}/{alias.name}.py" == other.path}
    if len({alias.asname or alias.name for alias in imports.values()}) != 1:
        return None
    alias = next(iter(imports.values()))
    module = alias.asname or alias.name
    reads = file.reads.get(module, ())
    names = {node.attr for node in reads}
    if file.named_alone[module] != len(reads) or not names or not names <= other.made - other.set_anew:
        return None
    bound = file.bound | file.read | (file.members if file.reads_at_once.intersection(reads) else set())
    if any(node.lineno != node.end_lineno for node in reads) or bound & (names - asked_already(file, other)):
        return None
    if any(names & each.sets for each in files.values()):
        return None
    lines = file.text.encode().split(b"\n")
    for node in sorted(reads, key=lambda each: -each.col_offset):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + node.attr.encode() + line[node.end_col_offset :]
    lines = b"\n".join(lines).decode().split("\n")
    for node, alias in imports.items():
        kept = [each for each in node.names if each is not alias]
        texts = [ast.unparse(ast.ImportFrom(".".join(filter(None, (node.module, alias.name))), aliases(names), node.level))]
        if kept:
            texts.append(ast.unparse(ast.ImportFrom(node.module, kept, node.level)))
        lines[node.lineno - 1] = "\n".join([" " * node.col_offset + text for text in texts])
        for line in range(node.lineno, node.end_lineno):
            lines[line] = ""
    return "\n".join(lines)


def aliases(names):
    """Names as an import has them."""
    return [ast.alias(name) for name in sorted(names)]


def asked_already(file, other):
    """Names that a source has from another at its head already, under the same name."""
    nodes = [node for node in file.tree.body if node in file.bases and file.bases[node] == other.path[:-3]]
    return {alias.name for node in nodes for alias in node.names if alias.asname in (None, alias.name)}

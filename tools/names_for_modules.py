"""Has a source ask another for names (`from .x import f` and `f()`) where it asks for all of it (`from . import x` and `x.f()`): what is
asked for names alone can stand in the source that asks (put_together.py).

It does so where the names mean the same: each is read alone, nobody sets it anew once the other is loaded, nothing else in the source has
that name, and the other does not have the source loaded itself.
"""

import ast
import symtable


def rewritten(file, path, files, reached):
    """The text of `file` (of put_together) when it asks the source `path` for names; None: it could mean something else.

    `reached`: paths of what is loaded with `path`.
    """
    other = files[path]
    imports = {node: alias for node in file.imports for alias in node.names if file.base(node) + "/" + alias.name + ".py" == path}
    if file.path in reached or len({alias.asname or alias.name for alias in imports.values()}) != 1:
        return None
    alias = next(iter(imports.values()))
    module = alias.asname or alias.name
    reads = [node for node in ast.walk(file.tree) if isinstance(node, ast.Attribute) and is_name(node.value, module)]
    names = {node.attr for node in reads}
    mentions = [node for node in ast.walk(file.tree) if isinstance(node, ast.Name) and node.id == module]
    if len(mentions) != len(reads) or not names or not names <= other.made - set_anew(other) or names & set_outside(files):
        return None
    if any(node.lineno != node.end_lineno for node in reads) or (bound(file) | file.read) & (names - asked_already(file, path)):
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


def is_name(node, name):
    """True for a name that is read."""
    return isinstance(node, ast.Name) and node.id == name


def aliases(names):
    """Names as an import has them."""
    return [ast.alias(name) for name in sorted(names)]


def set_anew(file):
    """Names that functions of a source set in it."""
    return {name for node in ast.walk(file.tree) if isinstance(node, ast.Global) for name in node.names}


def set_outside(files):
    """Attributes that any source sets by another name than `self`."""
    names = set()
    for file in files.values():
        if file.sets is None:
            stored = [node for node in ast.walk(file.tree) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)]
            file.sets = {node.attr for node in stored if not is_name(node.value, "self")}
        names |= file.sets
    return names


def bound(file):
    """All names that a source binds, in any scope."""
    names, waiting = set(file.made), [symtable.symtable(file.text, file.path, "exec")]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        names |= {each.get_name() for each in table.get_symbols() if each.is_local() or each.is_parameter()}
    return names


def asked_already(file, path):
    """Names that a source has from another at its head already, under the same name."""
    nodes = [node for node in file.tree.body if node in file.bases and file.bases[node] == path[:-3]]
    return {alias.name for node in nodes for alias in node.names if alias.asname in (None, alias.name)}

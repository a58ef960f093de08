"""Leaves functions, methods and classes out of the sources that a board carries, where nothing that it carries names them.

A name counts where it is read, as an attribute, as an argument's, in an import that is needed, or as a word of a text (states.py calls
actions by their names, broker.py classes), but not in docstrings and not within its own definition. What only such definitions name goes
with them, and so do the imports that they alone needed. Names with two underscores stay: the interpreter calls them. Lines keep their
numbers.
"""

import ast
import re

from . import syntax

WORD = re.compile(r"\w+")
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def unnamed(sources, outside=()):
    """{path: text} of sources without what no source names; `outside`: texts of other sources, which name things too."""
    files = {path: File(path, text) for path, text in sources.items()}
    others = [File("", text) for text in outside]
    grown = True
    while grown:
        named = set().union(*[file.named() for file in (*files.values(), *others)])
        grown = sum([file.leave_out(named) for file in files.values()]) > 0
    asked = set().union(*[file.asked for file in files.values()])
    return {path: file.written(asked) for path, file in files.items()}


class File:
    """One source: what it names, and which of its definitions are left out."""

    def __init__(self, path, text):
        self.text = text
        self.stem = path.rsplit("/", 1)[-1][:-3]
        self.tree = ast.parse(text)
        self.definitions: dict = {None: Definition((), "")}  # by node; None: the file itself
        self.imports: list = []
        self.asked: set = set()  # (name of a module, name in it), and names that are asked of what may be a module
        self.visit(self.tree, None)
        self.left_out: set = set()
        self.first_read = self.read()

    def visit(self, node, definition):
        """Note what a part of the source names for the definition that it stands in."""
        if isinstance(node, DEFINITIONS):
            around = self.definitions[definition]
            definition = node
            self.definitions[node] = Definition((*around.within, node), node.name)
        here = self.definitions[definition]
        here.named.update(names_of(node))
        if isinstance(node, ast.Name):
            here.read.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports.append(node)
            self.asked |= {((getattr(node, "module", None) or "").split(".")[-1], alias.name) for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "self":
            self.asked.add(node.attr)
        for each in syntax.children(node):
            if not is_docstring(each):
                self.visit(each, definition)

    def left(self):
        """The definitions that are not left out, nor stand in one that is."""
        return [each for each in self.definitions.values() if not self.left_out.intersection(each.within)]

    def read(self):
        """The names that the remaining code reads."""
        return set().union(*[each.read for each in self.left()])

    def named(self):
        """All names that occur in the code that stays."""
        read = self.read()
        named = set().union(*[each.named - {around.name for around in each.within} for each in self.left()])
        return named | {alias.name for node in self.imports for alias in node.names if self.is_needed(alias, read)}

    def is_needed(self, alias, read):
        """True for an import that is read yet, or that nothing here read before either."""
        name = alias.asname or alias.name
        return name in read or name not in self.first_read

    def leave_out(self, named):
        """Leave out what is not among `named`: True when that is more than before."""
        count = len(self.left_out)
        self.left_out |= {node for node in self.definitions if node and node.name not in named and node.name[:2] != "__"}
        return len(self.left_out) > count

    def written(self, asked):
        """The text as it is left. `asked`: of all files."""
        lines = self.text.split("\n")
        if not self.left_out:
            return self.text
        for node in syntax.nodes(self.tree):
            for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
                if isinstance(block, list):
                    self.cut_from(lines, block)
        read = self.read()
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.level:
                kept = [
                    alias for alias in node.names if self.is_needed(alias, read) or alias.name in asked or (self.stem, alias.name) in asked
                ]
                if len(kept) != len(node.names):
                    put(lines, node, ast.unparse(ast.ImportFrom(node.module, kept, node.level)) if kept else "")
        return "\n".join(lines)

    def cut_from(self, lines, block):
        """Cut the statements that are left out from the lines of a block; the block keeps one statement at least."""
        going = [node for node in block if node in self.left_out]
        for node in going:
            is_last = node is going[-1] and all(other in self.left_out or is_docstring(other) for other in block)
            put(lines, node, "pass" if is_last else "")


class Definition:
    """A function, a method or a class, or a file: `within`: the nodes of itself and of those around it; what it names and reads itself."""

    def __init__(self, within, name):
        self.within, self.name = within, name
        self.named: set = set()
        self.read: set = set()


def names_of(node):
    """The names in a part of a source, without those in its inner parts."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    if isinstance(node, ast.keyword):
        return (node.arg,)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return WORD.findall(node.value)
    return ()


def is_docstring(node):
    """True for a text that is a statement."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def put(lines, node, text):
    """Put `text` in the place of a statement, with its decorators."""
    first = min([node.lineno, *[mark.lineno for mark in getattr(node, "decorator_list", ())]])
    lines[first - 1] = " " * node.col_offset + text if text else ""
    for line in range(first, node.end_lineno):
        lines[line] = ""

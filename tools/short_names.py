"""Gives what one class, or one source, alone names a short name in the sources that a board carries: there each name that is like no
other is heap, and a name that many classes have is one.

An attribute becomes `A`, `B`, `C` ... where all sources name it by `self` alone, in methods of one class or of classes that are made of
one another, and so does a variable of a source that no other source imports. What a text or a keyword names stays, and so do functions,
methods and classes: traces name them.
"""

import ast
import builtins
import itertools
import re
import string
import symtable

from . import syntax
from .leave_out import WORD
from .short_arguments import called_for, is_inside, written

LETTERS = string.ascii_uppercase


def shortened(sources, outside=()):
    """{path: text} of sources with short names; `outside`: texts of other sources, which name things of these too."""
    files = {path: File(text) for path, text in sources.items()}
    others = [File(text) for text in outside]
    kept = set(dir(builtins)).union(*[file.kept for file in (*files.values(), *others)])
    families = Families([bases for file in files.values() for bases in file.classes])
    owners: dict = {}  # {attribute: the families that name it}
    for file in files.values():
        for place in file.places:
            owners.setdefault(place.name, set()).add(families.of(place.owner))
    outer = {place.name for path, file in files.items() if not is_inside(path) for place in file.places}
    private = {name for name, naming in owners.items() if len(naming) == 1 and name not in kept | outer and name[:2] != "__"}
    asked = kept.union(*[file.asked for file in (*files.values(), *others)])
    known = asked.union(*[file.names for file in files.values()])
    chosen = by_family({name: owners[name].pop() for name in sorted(private)}, known)
    return {
        path: written(sources[path], file.renamings(chosen) + file.variables(path, asked, known)) if is_inside(path) else sources[path]
        for path, file in files.items()
    }


def short_names(known):
    """Short names in turn, none of them among `known`."""
    for size in itertools.count(1):
        for letters in itertools.product(LETTERS, repeat=size):
            if "".join(letters) not in known:
                yield "".join(letters)


def by_family(owners, known):
    """{attribute: its short name}; within a family no two have the same one. `owners`: {attribute: family}."""
    chosen: dict = {}
    free: dict = {}
    for name, family in owners.items():
        chosen[name] = min(next(free.setdefault(family, short_names(known))), name, key=len)
    return chosen


class Families:
    """Classes that are made of one another, by their names."""

    def __init__(self, classes):
        self.above: dict = {}
        for name, *bases in classes:
            for base in bases:
                one, other = self.of(base), self.of(name)
                if one != other:
                    self.above[one] = other

    def of(self, name):
        """The class that stands for the family of one."""
        while name in self.above:
            name = self.above[name]
        return name


class Place:
    """Where an attribute is named by `self`, or set in the body of a class: its `name`, the class, and the place in UTF-8 octets."""

    def __init__(self, name, owner, line, end):
        self.name, self.owner = name, owner
        self.place = (line, end - len(name.encode()), end)


class File:
    """One source: what it names, and where."""

    def __init__(self, text):
        self.text = text
        self.tree = ast.parse(text)
        self.places: list = []
        self.classes: list = []  # (name, names of what it is made of)
        self.asked: set = set()  # names that it asks of other sources
        self.names: set = set()
        self.kept = called_for(self.tree)
        self.kept |= {word for each in self.kept for word in WORD.findall(each)}
        self.visit(self.tree, None, None)
        if "*" in self.asked:  # of a source that it imports whole it may ask for each name that it reads
            self.asked |= self.names

    def visit(self, node, class_, scope):
        """Note what a part of the source names. `class_`: around it; `scope`: the class or function nearest to it."""
        if isinstance(node, ast.Attribute):
            self.names.add(node.attr)
            if class_ and isinstance(node.value, ast.Name) and node.value.id == "self":
                self.places.append(Place(node.attr, class_, node.end_lineno, node.end_col_offset))
            else:
                self.kept.add(node.attr)
        elif isinstance(node, ast.Name):
            self.names.add(node.id)
            if isinstance(scope, ast.ClassDef):
                if isinstance(node.ctx, ast.Load):
                    self.kept.add(node.id)
                else:
                    self.places.append(Place(node.id, class_, node.end_lineno, node.end_col_offset))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.kept |= {name for alias in node.names for name in (alias.asname or alias.name).split(".")}
            self.asked |= {alias.name for alias in node.names}
        elif isinstance(node, ast.arg):
            self.names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.kept.add(node.name)
        if isinstance(node, ast.ClassDef):
            class_, scope = node.name, node
            self.classes.append([node.name, *[ast.unparse(base).split(".")[-1] for base in node.bases]])
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            scope = node
        for each in syntax.children(node):
            self.visit(each, class_, scope)

    def renamings(self, chosen):
        """The renamings of attributes: [(line, first and last column in UTF-8 octets, new name)]."""
        return [(*place.place, chosen[place.name]) for place in self.places if place.name in chosen]

    def variables(self, path, asked, known):
        """The renamings of a source's variables, except the names in `asked`, which other sources use."""
        table = symtable.symtable(self.text, path, "exec")
        mine = {
            each.get_name() for each in table.get_symbols() if each.is_assigned() and not each.is_namespace() and not each.is_imported()
        }
        mine -= asked | self.numbers() | local_names(table)
        short = short_names(known)
        chosen = {name: min(next(short), name, key=len) for name in sorted(mine) if name[:2] != "__"}
        places = []
        kinds = syntax.by_kind(self.tree)
        for node in kinds.get(ast.Name, ()):
            if node.id in chosen:
                places.append((node.lineno, node.col_offset, node.end_col_offset, chosen[node.id]))
        if chosen:
            for node in kinds.get(ast.Global, ()):
                line = self.text.split("\n")[node.lineno - 1].encode()
                names = [(each.start(), each.end(), each[0].decode()) for each in re.finditer(rb"\w+", line)]
                places += [(node.lineno, first, last, chosen[name]) for first, last, name in names if name in chosen]
        return places

    def numbers(self):
        """Names that the compiler puts numbers in for by itself."""
        assigned = [node for node in self.tree.body if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("const(")]
        return {ast.unparse(node.targets[0]) for node in assigned}


def local_names(table):
    """Names that functions and classes within a scope bind themselves."""
    names = set()
    for each in table.get_children():
        names |= {symbol.get_name() for symbol in each.get_symbols() if symbol.is_local()} | local_names(each)
    return names

"""Gives the arguments of functions short names in the sources that a board carries: there each name that is like no other is heap.

A function's arguments become `a`, `b`, `c` ... where nothing can call for them by name: no call of any source has such a keyword, and no
text is such a name. What clients of these sources call (ports, a client's folder) keeps its names, and so do functions with a mark above
them (viper), arguments that a function within binds anew, and `self`. Traces name functions and lines, which stay.
"""

import ast
import string

from . import syntax
from .leave_out import DEFINITIONS, is_docstring

SCOPES = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.ClassDef)


def shortened(sources, outside=()):
    """{path: text} of sources with short arguments; `outside`: texts of other sources, which call these too."""
    trees = {path: ast.parse(text) for path, text in sources.items()}
    kept = set().union(*[called_for(tree) for tree in (*trees.values(), *map(ast.parse, outside))])
    return {path: written(text, renamings(trees[path], kept)) if is_inside(path) else text for path, text in sources.items()}


def is_inside(path):
    """True where only a board's own sources call functions of a source."""
    return path.startswith("core/") and "/client/" not in path


def called_for(tree):
    """Names that calls of a source may give with their arguments."""
    kinds = syntax.by_kind(tree)
    documented = {id(node.value) for node in kinds.get(ast.Expr, ()) if is_docstring(node)}
    words = {node.arg for node in kinds.get(ast.keyword, ()) if node.arg}
    return words | {node.value for node in kinds.get(ast.Constant, ()) if isinstance(node.value, str) and id(node) not in documented}


def renamings(tree, kept):
    """[(line, first and last column in UTF-8 octets, new name)] of a source."""
    places = []
    for node in syntax.nodes(tree):
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and not any(isinstance(each, DEFINITIONS) for each in node.body):
            places += of_function(node, kept)
    return places


def of_function(function, kept):
    """The renamings of a function's arguments. Functions within it keep theirs, so no two functions share a name."""
    given = function.args
    within = syntax.nodes(function)
    inner = [each for each in within if isinstance(each, SCOPES) and each is not function]
    bound = {name for each in inner for name in bound_in(each)}
    names = [each for each in within if isinstance(each, ast.Name)]
    used = {each.id for each in names} | bound | {each.arg for each in within if isinstance(each, ast.arg)}
    free = (letter for letter in string.ascii_lowercase if letter not in used and letter not in kept)
    at_its_making = {each for default in given.defaults for each in syntax.nodes(default)}
    places = []
    for argument in given.posonlyargs + given.args:
        name = argument.arg
        if len(name) == 1 or name in ("self", "cls") or name in kept or name in bound:
            continue
        short = next(free, name)
        places.append((argument.lineno, argument.col_offset, argument.col_offset + len(name), short))
        for each in names:
            if each.id == name and each not in at_its_making:
                places.append((each.lineno, each.col_offset, each.end_col_offset, short))
    return places


def bound_in(scope):
    """Names that a scope within a function binds itself."""
    for each in syntax.nodes(scope):
        if isinstance(each, ast.arg):
            yield each.arg
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            yield each.id


def written(text, places):
    """The text with the new names."""
    lines = text.split("\n")
    for line, first, last, name in sorted(places, reverse=True):
        octets = lines[line - 1].encode("utf-8")
        lines[line - 1] = (octets[:first] + name.encode("utf-8") + octets[last:]).decode("utf-8")
    return "\n".join(lines)

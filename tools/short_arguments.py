"""Gives the arguments of functions short names in the sources that a board carries: there each name that is like no other is heap.

A function's arguments become `a`, `b`, `c` ... where nothing can call for them by name: no call of any source has such a keyword, and no
text is such a name. What clients of these sources call (ports, a client's folder) keeps its names, and so do functions with a mark above
them (viper), arguments that a function within binds anew, and `self`. Traces name functions and lines, which stay.
"""

import ast
import string

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
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_docstring(node)}
    words: set = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg:
            words.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            words.add(node.value)
    return words


def renamings(tree, kept):
    """[(line, first and last column in UTF-8 octets, new name)] of a source."""
    places = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and not any(isinstance(each, DEFINITIONS) for each in node.body):
            places += of_function(node, kept)
    return places


def of_function(function, kept):
    """The renamings of a function's arguments. Functions within it keep theirs, so no two functions share a name."""
    given = function.args
    inner = [each for each in ast.walk(function) if isinstance(each, SCOPES) and each is not function]
    bound = {name for each in inner for name in bound_in(each)}
    used = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)} | bound | kept
    used |= {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    free = (letter for letter in string.ascii_lowercase if letter not in used)
    places = []
    for argument in given.posonlyargs + given.args:
        name = argument.arg
        if len(name) == 1 or name in ("self", "cls") or name in kept or name in bound:
            continue
        short = next(free, name)
        places.append((argument.lineno, argument.col_offset, argument.col_offset + len(name), short))
        for each in ast.walk(function):
            if isinstance(each, ast.Name) and each.id == name and not in_defaults(function, each):
                places.append((each.lineno, each.col_offset, each.end_col_offset, short))
    return places


def in_defaults(function, name):
    """True for a name that is read where the function is made."""
    return any(each is name for default in function.args.defaults for each in ast.walk(default))


def bound_in(scope):
    """Names that a scope within a function binds itself."""
    for each in ast.walk(scope):
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

"""The nodes of a source's syntax tree, quicker than ast.walk: what makes a board's sources looks at each of them many times."""

import ast

MARKS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)  # of one value each, with nothing in them


def nodes(tree, outside=()):
    """All nodes in a tree, itself first, in the order of ast.walk, but for MARKS; `outside`: kinds of nodes (ast) that are left out, with
    all that is in them."""
    left_out = MARKS + outside
    reached = [tree]
    for node in reached:  # it grows meanwhile
        kind = node.__class__
        if kind is ast.Name or kind is ast.Constant:
            continue
        for value in node.__dict__.values():
            if value.__class__ is list:
                reached += [each for each in value if isinstance(each, ast.AST) and not isinstance(each, left_out)]
            elif isinstance(value, ast.AST) and not isinstance(value, left_out):
                reached.append(value)
    return reached


def children(node):
    """The nodes right below one, but for MARKS."""
    kind = node.__class__
    if kind is ast.Name or kind is ast.Constant:
        return []
    below: list = []
    for value in node.__dict__.values():
        if value.__class__ is list:
            below += [each for each in value if isinstance(each, ast.AST) and not isinstance(each, MARKS)]
        elif isinstance(value, ast.AST) and not isinstance(value, MARKS):
            below.append(value)
    return below


def by_kind(tree, outside=()):
    """{kind of node: the nodes} of a tree, in the same order."""
    kinds: dict = {}
    for node in nodes(tree, outside):
        kinds.setdefault(node.__class__, []).append(node)
    return kinds

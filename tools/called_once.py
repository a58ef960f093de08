"""Puts functions that one statement alone calls in the place of that statement, in the sources that a board carries: there each function
costs heap, for its head, its object and its name.

It is done where the call is a statement in a function of the same source (`f(a)`, `x = f(a)`, `return f(a)`) or what an `if` asks first, of
a function of the source or of a method by `self`, with all its arguments by position, and nothing else on the board has the name. What
follows `if b: return` in the function is the `else` of that then, and its variables get other names where the caller has these. Left as
they are: what has marks, defaults, scopes within it, a `global`, or a `return` in a loop; what clients of these sources call (ports, a
client's folder); and what would give its caller more than LOCALS variables: MicroPython puts the frame of a larger function on the heap
at each call. A trace names the caller.
"""

import ast
import collections
import itertools

from . import syntax
from .leave_out import DEFINITIONS, is_docstring, names_of, put
from .short_arguments import SCOPES, is_inside

LOCALS = 8
RESULT = "_result"
UNHURRIED = (  # sources that no message passes: there a frame on the heap does no harm
    "core/access/",
    "core/amqp_0_9/handshake.py",
    "core/amqp_0_9/verbs.py",
    "core/bridge/",
    "core/broker/topology.py",
    "core/log/definition_records.py",
    "core/management/",
    "core/patterns/expression_parser.py",
    "core/recovery/",
)
BOUND = (*SCOPES, ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Delete)  # what must not be within a function


def put_in_place(sources, outside=()):
    """{path: text} of sources; `outside`: texts of other sources, which name things of these too."""
    files = {path: File(text) for path, text in sources.items()}
    named: collections.Counter = collections.Counter()
    for file in (*files.values(), *map(File, outside)):
        named.update(file.names())
    return {path: file.written(named, path.startswith(UNHURRIED)) if is_inside(path) else file.text for path, file in files.items()}


def body_of(function):
    """The statements of a function, without its docstring."""
    return [each for each in function.body if not is_docstring(each)]


def names_bound(function):
    """The names of a function's arguments and variables."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *[each for each in (given.vararg, given.kwarg) if each]]
    names = {each.arg for each in every}
    for node in syntax.nodes(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, DEFINITIONS) and node is not function:
            names.add(node.name)
    return names


def can_move(function):
    """True when nothing in a function needs a frame of its own."""
    given = function.args
    if given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg or given.defaults or function.decorator_list:
        return False
    return function.name[:2] != "__" and not any(isinstance(each, BOUND) for each in syntax.nodes(function) if each is not function)


class Call:
    """A statement in a function with a call of a name, or of one of `self`, by position, that comes before all else in it: `given` is what
    the call gives, `block` the list that the statement stands in."""

    def __init__(self, function, block, statement, call):
        self.function, self.block, self.statement, self.call = function, block, statement, call
        self.targets = getattr(statement, "targets", [])
        of = call.func
        self.by_self = isinstance(of, ast.Attribute) and isinstance(of.value, ast.Name) and of.value.id == "self"
        self.name = of.attr if self.by_self else of.id if isinstance(of, ast.Name) else None
        self.given = [of.value, *call.args] if self.by_self else call.args
        if call.keywords or any(isinstance(each, ast.Starred) for each in self.given):
            self.name = None

    def in_place(self, block):
        """A function's body with what this statement does with a result in the place of `return`; None: it would have to go on behind one.

        What follows `if a: return` is its `else` then.
        """
        if isinstance(self.statement, ast.Return):
            return block if ends(block) else [*block, ast.Return(None)]
        for at, each in enumerate(block):
            if isinstance(each, ast.Return):
                return block[:at] + self.with_result(each.value)
            if ast.Return in syntax.by_kind(each):
                return self.in_branches(block[:at], each, block[at + 1 :])
        return block if isinstance(self.statement, ast.Expr) or ends(block) else [*block, *self.with_result(None)]

    def in_branches(self, before, choice, rest):
        """`in_place` for a block with a statement that has `return` in it."""
        if not isinstance(choice, ast.If) or not (ends(choice.body) or ends(choice.orelse)):
            return None
        body = self.in_place(choice.body if ends(choice.body) else choice.body + rest)
        other = self.in_place(choice.orelse if ends(choice.orelse) else choice.orelse + rest)
        if body is None or other is None:
            return None
        if not body:
            return [*before, ast.If(ast.UnaryOp(ast.Not(), choice.test), other or [ast.Pass()], [])]
        return [*before, ast.If(choice.test, body, other)]

    def with_result(self, value):
        """The statements in the place of a `return`."""
        if isinstance(self.statement, ast.Expr):
            return [] if value is None or isinstance(value, ast.Constant) else [ast.Expr(value)]
        return [ast.Assign(self.targets, ast.Constant(None) if value is None else value)]

    def put(self, body, before):
        """Put a function's body there, with its own names, behind the statements `before`."""
        behind = []
        if isinstance(self.statement, ast.If):
            result = ast.Name(self.targets[0].id, ast.Load())
            self.statement.test = result if self.statement.test is self.call else ast.UnaryOp(ast.Not(), result)
            behind.append(self.statement)
        at = self.block.index(self.statement)
        self.block[at : at + 1] = before + (self.in_place(body) or [ast.Pass()]) + behind


def ends(block):
    """True when nothing goes on behind a block."""
    last = block[-1] if block else None
    return isinstance(last, (ast.Return, ast.Raise)) or isinstance(last, ast.If) and ends(last.body) and ends(last.orelse)


def calls_in(function, node):
    """The Calls in a part of a function, but for those in functions within it."""
    for block in (
        getattr(node, "body", None),
        getattr(node, "orelse", None),
        getattr(node, "finalbody", None),
        getattr(node, "handlers", None),
    ):
        for each in block if isinstance(block, list) else ():
            first = first_of(each)
            if isinstance(first, ast.Call):
                yield Call(function, block, each, first)
            if not isinstance(each, DEFINITIONS):
                yield from calls_in(function, each)


def first_of(statement):
    """What a statement looks at before all else, where a call there can be taken out of it."""
    if isinstance(statement, (ast.Expr, ast.Assign, ast.Return)):
        return statement.value
    test = statement.test if isinstance(statement, ast.If) else None
    return test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test


class Renamed(ast.NodeTransformer):
    """Replaces names by nodes: `new` is {name: node}."""

    def __init__(self, new):
        self.new = new

    def visit_Name(self, node):
        """The node for a name."""
        there = self.new.get(node.id)
        return node if there is None else ast.Name(there.id, node.ctx) if isinstance(there, ast.Name) else there


class File:
    """One source."""

    def __init__(self, text):
        self.text = text
        self.tree = ast.parse(text)
        self.spare: dict = {}  # {function: variables of what stands in it, which nothing else there uses}
        self.inner: set = set()  # names that functions call which stand in others
        self.set_anew = {name for node in syntax.by_kind(self.tree).get(ast.Global, ()) for name in node.names}

    def names(self):
        """How often the source names each thing, but in docstrings: once where it is defined, or imported."""
        names: collections.Counter = collections.Counter()
        kinds = syntax.by_kind(self.tree)
        documented = {node.value for node in kinds.get(ast.Expr, ()) if is_docstring(node)}
        for kind, nodes in kinds.items():
            for node in nodes:
                if kind in DEFINITIONS:
                    names[node.name] += 1
                elif kind in (ast.Import, ast.ImportFrom):
                    names.update([name for alias in node.names for name in (alias.name, alias.asname) if name])
                elif node not in documented:
                    names.update(names_of(node))
        return names

    def written(self, named, unhurried):
        """The text with its functions in place. `named`: how often all sources name each thing."""
        every = [(head, each) for head in self.tree.body for each in (head.body if isinstance(head, ast.ClassDef) else [head])]
        functions = [(head, each) for head, each in every if isinstance(each, ast.FunctionDef)]
        calls = {call.name: (head, call) for head, caller in functions for call in calls_in(caller, caller)}
        changed = []
        gone = set()
        for head, function in functions:
            if named[function.name] == 2 and function.name in calls and can_move(function):
                by, call = calls[function.name]
                within = {each.name for each in calls_in(function, function)}
                if call.by_self == (head is not function) and self.put_there(function, call, unhurried):
                    changed += [head, by]
                    gone.add(function)
                    self.inner |= within
                    for other in calls_in(call.function, call.function):  # what it calls itself stands there now
                        calls[other.name] = (by, other)
        return self.with_changes(set(changed), gone)

    def with_changes(self, heads, gone):
        """The text, classes and functions at its head as they are now; `gone`: functions that stand elsewhere."""
        lines = self.text.split("\n")
        for head in heads:
            if isinstance(head, ast.ClassDef):
                head.body = [each for each in head.body if each not in gone] or [ast.Pass()]
            put(lines, head, "" if head in gone else ast.unparse(ast.fix_missing_locations(head)))
        return "\n".join(lines)

    def put_there(self, function, call, unhurried):
        """Put a function in the place of its Call; False: it cannot stand there."""
        caller, given = call.function, call.given
        arguments = [each.arg for each in function.args.args]
        mine, its = names_bound(caller), names_bound(function)
        names = syntax.by_kind(function).get(ast.Name, ())
        read = {node.id for node in names} - its
        used = mine | read | {node.id for node in syntax.by_kind(caller).get(ast.Name, ())}
        stored = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        kept = its - stored - {*arguments}  # names of imports and of errors
        body = body_of(function) or [ast.Pass()]
        if caller is function or len(given) != len(arguments) or read & mine or kept & used or call.in_place(body) is None:
            return False
        if {ast.Global, ast.Nonlocal} & set(syntax.by_kind(caller)):
            return False
        new: dict = {name: node for name, node in zip(arguments, given) if name not in stored and self.is_steady(node)}
        more = [name for name in sorted(its) if name not in new and name not in kept] + [RESULT] * isinstance(call.statement, ast.If)
        spare = self.spare.get(caller, []) if call.name not in self.inner else []
        own = dict(zip(more, spare))
        own.update({name: next(each for each in further(name) if each not in used | its - {name}) for name in more[len(spare) :]})
        if len(mine) <= LOCALS < len(mine | kept | set(own.values())) and not unhurried and caller.name != "__init__":
            return False
        self.spare[caller] = self.spare.get(caller, []) + [name for name in own.values() if name not in mine]
        if isinstance(call.statement, ast.If):
            call.targets = [ast.Name(own[RESULT], ast.Store())]
        new.update({name: ast.Name(other, ast.Load()) for name, other in own.items()})
        before = [ast.Assign([ast.Name(own[name], ast.Store())], node) for name, node in zip(arguments, given) if name in own]
        call.put([Renamed(new).visit(each) for each in body], before)
        return True

    def is_steady(self, given):
        """True for what is the same wherever a function reads it: a number, a text, a variable of the caller."""
        return isinstance(given, ast.Constant) or isinstance(given, ast.Name) and given.id not in self.set_anew


def further(name):
    """Names for a variable: its own first."""
    return itertools.chain((name,), (f"{name}_{number}" for number in itertools.count(1)))

"""What `dev.py mutate` may change in a source file: small faults at operators, comparisons, constants, conditions and statements.

It reads with `ast` and splices the change into the text, so that all other lines stay as they are. It runs nothing.

Left out, because no test could or should see them: docstrings and every text (of logs, errors, help), annotations, removed
statements outside of functions (nothing would import), `__repr__`, and what runs under `if __name__ == "__main__"`.
Left out, because it is the same program: `x + NAME` and `x - NAME` where core/memory/layout.py says that NAME is 0, the first column of a
record; an `if False:` over imports, which only the type checker reads; what stands under `if MICROPYTHON:`, and a function of which
`name = quicker(name)` says that core/shim.py has CPython's form: CPython never runs them; and print's `flush`, which says when a text is
written. A constant in hexadecimal is a mask: its highest bit goes, for one more is often the
same (an even number & 0x8001). A negative number says that there is none, and -2 says it as well: -1 becomes 0. Outside of functions a
number names a case: one less is another case's, where one more would be nobody's, and the same program.
Left out for the sake of the machine: lines that end processes or remove files (HARMFUL), for a mutant of those may harm others.
"""

import ast
import functools
import os

LAYOUT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "core", "memory", "layout.py")
HARMFUL = ("kill", "killpg", "rmtree", "unlink", "rmdir", "execv", "execvp", "terminate", "setrlimit", "system")
BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.Try, ast.With)
WITHOUT_TESTS = ("__repr__",)

COMPARISONS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


class Mutation:
    """One change: `kind` of it, `start` and `end` (line from 1, octet in it) of what is replaced, the text `after`."""

    def __init__(self, kind, node, after):
        self.kind = kind
        self.line = node.lineno
        self.start = node.lineno, node.col_offset
        self.end = node.end_lineno, node.end_col_offset
        self.after = after

    def sentence(self, source):
        """The change in one line: `len(x) > 3` -> `len(x) >= 3`."""
        lines = source.encode("utf-8").split(b"\n")[self.start[0] - 1 : self.end[0]]
        lines[-1] = lines[-1][: self.end[1]]
        before = b" ".join([lines[0][self.start[1] :], *lines[1:]]).decode("utf-8")
        return "%s: %s -> %s" % (self.kind, _in_one_line(before), _in_one_line(self.after))


def _in_one_line(text):
    text = " ".join(text.split())
    return "`%s`" % (text if len(text) <= 70 else text[:67] + "...")


def apply(source, mutation):
    """The text of a file with one change in it."""
    lines = source.encode("utf-8").split(b"\n")
    (first, left), (last, right) = mutation.start, mutation.end
    lines[first - 1 : last] = [lines[first - 1][:left] + mutation.after.encode("utf-8") + lines[last - 1][right:]]
    return b"\n".join(lines).decode("utf-8")


@functools.cache
def first_columns():
    """The names that layout.py gives the number 0."""
    with open(LAYOUT, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return frozenset(
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and ast.unparse(node.value) == "0"
    )


def _is_first_column(node):
    if isinstance(node, ast.Name):  # from ..memory.layout import QUEUE_HEAD
        return node.id in first_columns()
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "layout" and node.attr in first_columns()


def mutations_of(source):
    """Every change that `source` may have, in the order of the text."""
    tree = ast.parse(source)
    finder = _Finder(source, _of_micropython(tree))
    finder.visit(tree)
    return sorted(finder.mutations, key=lambda each: (each.start, each.end, each.kind, each.after))


def _of_micropython(tree):
    """The names of the functions for which CPython has another form: `name = quicker(name)`."""
    calls = [(each.targets[0], each.value) for each in tree.body if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)]
    return {
        call.args[0].id
        for target, call in calls
        if _name_called(call) == "quicker" and isinstance(call.args[0], ast.Name) and ast.unparse(target) == call.args[0].id
    }


def _is_text(node):
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_main(node):
    test = node.test
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _is_for_the_type_checker(node):
    test = node.test
    is_never = isinstance(test, ast.Constant) and test.value is False
    return is_never and not node.orelse and all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in node.body)


def _name_called(node):
    function = node.func
    return getattr(function, "attr", getattr(function, "id", ""))


def _is_harmful(node):
    return any(isinstance(each, ast.Call) and _name_called(each) in HARMFUL for each in ast.walk(node))


class _Finder(ast.NodeVisitor):
    """Gathers the mutations of one file."""

    def __init__(self, source, left_out):
        self.source = source
        self.left_out = left_out  # names of functions
        self.mutations = []
        self.depth = 0  # functions that we are in
        self.towards_zero = False  # behind a minus

    def _add(self, kind, node, after):
        self.mutations.append(Mutation(kind, node, after))

    def _swap(self, kind, node, **fields):
        """The node with other fields, in brackets where it is an expression."""
        kept = {name: getattr(node, name) for name in fields}
        for name, value in fields.items():
            setattr(node, name, value)
        self._add(kind, node, "(%s)" % ast.unparse(node) if isinstance(node, ast.expr) else ast.unparse(node))
        for name, value in kept.items():
            setattr(node, name, value)

    def _negate(self, node):
        self._add("negated condition", node, "(not (%s))" % ast.unparse(node))

    # What is left out

    def visit_FunctionDef(self, node):
        if node.name in WITHOUT_TESTS or self.depth == 0 and node.name in self.left_out:
            return
        self.depth += 1
        for each in node.args.defaults + [default for default in node.args.kw_defaults if default] + node.body:
            self.visit(each)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node):
        pass

    def visit(self, node):
        if isinstance(node, ast.stmt) and not isinstance(node, BLOCKS) and _is_harmful(node):
            return
        ast.NodeVisitor.visit(self, node)

    # Statements

    def visit_If(self, node):
        if _is_main(node) or _is_for_the_type_checker(node):
            return
        if isinstance(node.test, ast.Name) and node.test.id == "MICROPYTHON":
            self._negate(node.test)
            for each in node.orelse:
                self.visit(each)
            return
        if not _is_harmful(node.test):
            self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node):
        if not isinstance(node.test, ast.Constant):
            self._negate(node.test)
        self.generic_visit(node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if self.depth and not isinstance(node.value, (ast.Yield, ast.YieldFrom)):
            self._add("removed statement", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node):
        if self.depth:
            self._add("removed statement", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self._add("removed statement", node, "pass")
        if type(node.op) in OPERATORS and not _is_text(node.value):
            self._swap("operator", node, op=OPERATORS[type(node.op)]())
        self.generic_visit(node)

    def visit_Raise(self, node):
        self._add("removed statement", node, "pass")  # what is raised is a class and a text

    def visit_Delete(self, node):
        self._add("removed statement", node, "pass")

    def visit_Continue(self, node):
        self._add("removed statement", node, "pass")

    def visit_Break(self, node):
        self._add("removed statement", node, "pass")

    def visit_Return(self, node):
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add("removed statement", node, "return None")
        self.generic_visit(node)

    # Expressions

    def visit_IfExp(self, node):
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            self._swap("comparison", node, ops=[COMPARISONS[type(node.ops[0])]()])
        else:
            for number, operator in enumerate(node.ops):
                self._swap("comparison", node, ops=node.ops[:number] + [COMPARISONS[type(operator)]()] + node.ops[number + 1 :])
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        self._swap("operator", node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if _is_text(node.left) or _is_text(node.right):
            return  # a text is put together: so are the numbers in it
        if type(node.op) in OPERATORS and not (isinstance(node.op, (ast.Add, ast.Sub)) and _is_first_column(node.right)):
            self._swap("operator", node, op=OPERATORS[type(node.op)]())
        self.generic_visit(node)

    def visit_Call(self, node):
        if _name_called(node) == "print":
            node = ast.Call(node.func, node.args, [each for each in node.keywords if each.arg != "flush"])
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            self._add("negated condition", node, "(%s)" % ast.unparse(node.operand))
        self.towards_zero = isinstance(node.op, ast.USub)
        self.generic_visit(node)
        self.towards_zero = False

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self._add("constant", node, str(not node.value))
        elif isinstance(node.value, int) and node.value and self._is_mask(node):
            self._add("constant", node, hex(node.value ^ 1 << node.value.bit_length() - 1))
        elif isinstance(node.value, (int, float)):
            self._add("constant", node, repr(node.value - 1 if node.value and (self.towards_zero or not self.depth) else node.value + 1))

    def _is_mask(self, node):
        line = self.source.encode("utf-8").split(b"\n")[node.lineno - 1]
        return line[node.col_offset : node.col_offset + 2] in (b"0x", b"0X")

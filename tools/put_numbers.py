"""Puts numbers in for the names of whole-number constants, in the sources that a board carries: names cost heap there, numbers do not.

A constant is a name in capitals that a file sets once, at its head level, to a whole number (`DEPTH = 4`, `DEPTH = const(4)`, `1 << 4`,
`OTHER + 1`). Where a file uses one, its own, imported (`from .limits import DEPTH`) or of a module (`layout.NONE`), the number stands
instead; imports that nothing needs any more go, and definitions whose name no file has left. Lines keep their numbers, for tracebacks.

Left alone: a constant that some file sets from outside, and every constant of a module that is used other than by its attributes.
"""

import ast

from . import syntax

SMALL = 1 << 30  # what is larger is an object on a board: one is enough
OPERATIONS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.LShift: lambda a, b: a << b,
    ast.BitOr: lambda a, b: a | b,
}


def put_in(sources):
    """{path: text} of sources, with the numbers put in; a file that has nothing left, and that no other imports, is missing."""
    files = {path: File(path, text, sources) for path, text in sources.items()}
    numbers = constants(files)
    for file in files.values():
        file.replace(numbers, files)
    left = set().union(*[file.attributes_left() for file in files.values()])
    imported: set = set().union(*[file.names_imported() for file in files.values()])
    whole = {path for file in files.values() for path in file.modules_used_whole()}
    done = {}
    for path, file in files.items():
        asked = left | file.used | {name for other, name in imported if other == path}
        text = file.written(numbers[path] if path not in whole else {}, asked)
        if text is not None or any(other.still_imports(path) for other in files.values()):
            done[path] = file.text if text is None else text
    return done


def constants(files):
    """{path: {name: number}}."""
    set_outside = {node.attr for file in files.values() for node in file.nodes(ast.Attribute) if not isinstance(node.ctx, ast.Load)}
    numbers: dict = {path: {} for path in files}
    for _ in range(3):  # a constant made of others', of other files'
        for path, file in files.items():
            for name, value in file.defined.items():
                number = file.number_of(value, numbers)
                if number is not None and name not in set_outside and abs(number) < SMALL:
                    numbers[path][name] = number
    return numbers


class File:
    """One source: its tree, what its names mean, and what is to be changed."""

    def __init__(self, path, text, paths):
        self.path, self.text, self.paths = path, text, paths
        self.tree = ast.parse(text, path)
        self.by_kind = syntax.by_kind(self.tree)
        self.edits: list = []  # (line, column, end column, new octets) of what stands for a name
        self.replaced: set = set()  # the nodes
        stored: dict = {}
        for node in self.nodes(ast.Name):
            if not isinstance(node.ctx, ast.Load):
                stored[node.id] = stored.get(node.id, 0) + 1
        self.made = set(stored) | {node.name for node in self.nodes(ast.FunctionDef, ast.ClassDef)}  # with what stands in functions
        taken = {argument.arg for argument in self.nodes(ast.arg)} | {name for node in self.nodes(ast.Global) for name in node.names}
        self.defined = {}  # name: the expression that it is set to
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name.lstrip("_").isupper() and stored[name] == 1 and name not in taken:
                    self.defined[name] = node.value
        self.meaning: dict = {}  # an imported name: ("module", path) or ("name", path, name)
        self.stars = []  # paths of what is imported whole (`import *`)
        for node in self.nodes(ast.ImportFrom):
            for name, meant in self.meant_by(node):
                if meant[0] == "star":
                    self.stars += [meant[1]] if meant[1] in paths else []
                elif name in stored or name in taken or self.meaning.get(name, meant) != meant:
                    self.meaning[name] = None
                else:
                    self.meaning[name] = meant

    def nodes(self, *kinds):
        """All nodes of these kinds."""
        return [node for kind in kinds for node in self.by_kind.get(kind, ())]

    def meant_by(self, node):
        """(name in this file, its meaning) of each that an import brings."""
        base = self.path.split("/")[: -node.level] if node.level else []
        parts = base + (node.module.split(".") if node.module else [])
        if not node.level:
            parts = parts[1:] if parts[0] == "leveret" else ["", *parts]
        module = "/".join(parts)
        for alias in node.names:
            if alias.name == "*":
                yield "*", ("star", module + ".py")
            elif module + ".py" in self.paths:
                yield alias.asname or alias.name, ("name", module + ".py", alias.name)
            elif f"{module}/{alias.name}.py" in self.paths:
                yield alias.asname or alias.name, ("module", f"{module}/{alias.name}.py")

    def number_of(self, node, numbers):
        """The number of an expression of whole numbers and known constants; else None."""
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            number = self.number_of(node.operand, numbers)
            return None if number is None else -number
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "const" and len(node.args) == 1:
            return self.number_of(node.args[0], numbers)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            pair = [self.number_of(each, numbers) for each in (node.left, node.right)]
            return None if None in pair else OPERATIONS[type(node.op)](*pair)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.constant(node, numbers)
        return None

    def constant(self, node, numbers):
        """The number that a name or an attribute stands for; None: it is no constant."""
        if isinstance(node, ast.Attribute):
            meant = self.meaning.get(node.value.id) if isinstance(node.value, ast.Name) else None
            return numbers[meant[1]].get(node.attr) if meant and meant[0] == "module" else None
        if node.id in self.defined:
            return numbers[self.path].get(node.id)
        meant = self.meaning.get(node.id)
        if meant and meant[0] == "name":
            return numbers[meant[1]].get(meant[2])
        brought = [numbers[path][node.id] for path in self.stars if node.id in numbers[path] and node.id not in self.meaning]
        return brought[0] if len(brought) == 1 else None

    def replace(self, numbers, files):
        """Note what is to stand for each use of a constant."""
        self.files = files
        lines = self.text.encode().split(b"\n")
        first = {}  # of a record: nothing is to be added
        for node in self.nodes(ast.BinOp):
            if isinstance(node.op, ast.Add) and lines[node.right.lineno - 1][node.left.end_col_offset : node.right.col_offset] == b" + ":
                first[node.right] = node.left.end_col_offset
        for node in self.nodes(ast.Name, ast.Attribute):
            if isinstance(node.ctx, ast.Load) and node.lineno == node.end_lineno:
                number = self.constant(node, numbers)
                if number is not None and not self.is_private_const(node):
                    start, octets = node.col_offset, (b"%d" if number >= 0 else b"(%d)") % number
                    if number == 0 and node in first:
                        start, octets = first[node], b""
                    self.edits.append((node.lineno, start, node.end_col_offset, octets))
                    self.replaced.update(ast.walk(node))
        self.used = {node.id for node in self.nodes(ast.Name) if node not in self.replaced and not self.defines(node)}
        self.lost = {node.id for node in self.replaced if isinstance(node, ast.Name)}

    def defines(self, node):
        """True for the name in the definition of a constant."""
        return not isinstance(node.ctx, ast.Load) and node.id in self.defined

    def is_private_const(self, node):
        """True for a name that MicroPython's compiler puts the number in for by itself."""
        value = self.defined.get(node.id) if isinstance(node, ast.Name) else None
        return isinstance(value, ast.Call) and node.id.startswith("_")

    def attributes_left(self):
        """Names by which constants of some module may yet be asked for: attributes, and what getattr and hasattr are given."""
        calls = [node for node in self.nodes(ast.Call) if isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr")]
        given = {each.value for node in calls for each in node.args if isinstance(each, ast.Constant)}
        return given | {node.attr for node in self.nodes(ast.Attribute) if node not in self.replaced}

    def names_imported(self):
        """{(path of a source, name)} that the imports which stay ask for; of one that is imported whole, all names that this file reads."""
        asked = set()
        for node in self.nodes(ast.ImportFrom):
            kept = {alias.asname or alias.name for alias in self.kept(node)}
            for name, meant in self.meant_by(node):
                if name in kept and meant[0] == "name":
                    asked.add((meant[1], meant[2]))
                elif name in kept and meant[0] == "star":
                    asked |= {(meant[1], each) for each in self.used}
        return asked

    def modules_used_whole(self):
        """Paths of modules that are used other than by their attributes."""
        bases = {node.value for node in self.nodes(ast.Attribute)}
        for node in self.nodes(ast.Name):
            meant = self.meaning.get(node.id)
            if meant and meant[0] == "module" and node not in bases and isinstance(node.ctx, ast.Load):
                yield meant[1]

    def needed(self, name):
        """True when an imported name is used yet."""
        if self.meaning.get(name) is None:
            return True
        return name in self.used

    def kept(self, node):
        """The aliases of an import that stay: constants that nobody here names go, and modules that were imported for constants alone."""
        if not hasattr(node, "kept"):
            meant = dict(self.meant_by(node))
            star = meant.get("*")
            if star:
                node.kept = [] if star[1] in self.paths and self.star_done(star[1]) else node.names
            else:
                names = [(alias, alias.asname or alias.name) for alias in node.names]
                node.kept = [alias for alias, name in names if name not in self.lost or self.needed(name)]
        return node.kept

    def star_done(self, path):
        """True when nothing that `import *` of a source brought is named any more."""
        return not self.used & self.files[path].made

    def still_imports(self, path):
        """True when this file imports another as it is written now."""
        for node in self.nodes(ast.ImportFrom):
            names = {alias.asname or alias.name for alias in self.kept(node)}
            for name, meant in self.meant_by(node):
                if name in names and meant[1] == path:
                    return True
        return False

    def written(self, numbers, left):
        """The text with all changes; None: there is nothing in it. `numbers`: own constants; `left`: names of it that are yet asked for."""
        lines = self.text.encode().split(b"\n")
        for line, start, end, octets in sorted(self.edits, reverse=True):
            lines[line - 1] = lines[line - 1][:start] + octets + lines[line - 1][end:]
        body = {id(node) for node in self.tree.body}
        gone = 0
        for node in self.nodes(ast.ImportFrom):
            kept = self.kept(node)
            if len(kept) != len(node.names):
                whole = ast.unparse(ast.ImportFrom(node.module, kept, node.level)) if kept else "" if id(node) in body else "pass"
                self.put_lines(lines, node, whole)
                gone += not kept and id(node) in body
        for node in self.tree.body:
            name = node.targets[0].id if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) else None
            if name in numbers and name not in left and name in self.defined:
                self.put_lines(lines, node, "")
                gone += 1
        if gone >= len([node for node in self.tree.body if not isinstance(node, ast.Expr)]) and gone:
            return None
        return b"\n".join(lines).decode()

    def put_lines(self, lines, node, text):
        """Put `text` in the place of a statement, in as many lines as that has."""
        lines[node.lineno - 1] = b" " * node.col_offset + text.encode()
        for line in range(node.lineno, node.end_lineno):
            lines[line] = b""

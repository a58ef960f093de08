"""Puts a source that one other alone imports into that other, in what a board carries: there each module and each import costs heap.

The source stands where the import stood, if both are of one folder at the top (core, ports, firmware), all that is asked of it are names
(`from .x import a`), no text names it (parts.py looks modules up by name), and no name of one means something else in the other. What is
loaded keeps its order; traces on a board name the functions, and the file that they have come to stand in.
"""

import ast
import re
import symtable

from .leave_out import is_docstring, put

DOTTED = re.compile(r"\w+(?:\.\w+)+")


def put_together(sources, kept):
    """{path: text} of sources, put together as far as it goes. `kept`: paths of what others than these sources import."""
    files = {path: File(path, text) for path, text in sources.items()}
    named = set().union(*[file.named for file in files.values()])
    kept = set(kept) | {path for path in files if any(("/" + path[:-3]).endswith("/" + name.replace(".", "/")) for name in named)}
    grown = True
    while grown:
        grown = False
        for path in sorted(set(files) - kept):
            asking = [(file, node) for file in files.values() for node in file.imports_of(path)]
            if len(asking) == 1 and asking[0][0].path != path and asking[0][0].can_hold(files[path], asking[0][1], files):
                file, node = asking[0]
                files[file.path] = File(file.path, file.with_in_it(files.pop(path), node))
                grown = True
    return {path: file.text for path, file in files.items()}


class File:
    """One source, what it imports and what its names mean."""

    def __init__(self, path, text):
        self.path = path
        self.tree = ast.parse(text)
        self.text = text = self.without_types(text)
        nodes = list(ast.walk(self.tree))
        self.imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        self.named = {name for each in texts for name in DOTTED.findall(each)}
        self.bases = {node: self.base(node) for node in self.imports}
        module = symtable.symtable(text, path, "exec")
        symbols = module.get_symbols()
        self.made = {each.get_name() for each in symbols if each.is_assigned() or each.is_imported() or each.is_namespace()}
        self.read, waiting = set(), [module]  # as names of the module, or of the interpreter
        while waiting:
            table = waiting.pop()
            waiting += table.get_children()
            here = [each for each in table.get_symbols() if each.is_global() or table is module]
            self.read |= {each.get_name() for each in here if each.is_referenced() or each.is_declared_global()}

    def without_types(self, text):
        """The source, and the tree, without what is there for the type checker alone (`if False:` at its head)."""
        lines = text.split("\n")
        for node in self.tree.body[:]:
            if isinstance(node, ast.If) and isinstance(node.test, ast.Constant) and node.test.value is False and not node.orelse:
                put(lines, node, "")
                self.tree.body.remove(node)
        return "\n".join(lines)

    def base(self, node):
        """The path, without its suffix, of what a relative import is from."""
        folders = self.path.split("/")[: -node.level]
        return "/".join(folders + (node.module.split(".") if node.module else []))

    def imports_of(self, path):
        """The imports that are of a source, or of something in it."""
        here = path[:-3]
        folder, name = here.rsplit("/", 1)
        return [
            node
            for node in self.imports
            if self.bases[node] == here or self.bases[node] == folder and any(alias.name == name for alias in node.names)
        ]

    def targets(self, node, paths):
        """Paths of the sources that an import is of."""
        base = self.base(node)
        return {base + ".py"} | {"%s/%s.py" % (base, alias.name) for alias in node.names if "%s/%s.py" % (base, alias.name) in paths}

    def meanings(self):
        """{name: what is imported as it, or the whole number that it is} at the head."""
        meanings: dict = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if re.fullmatch(r"const\(\d+\)", ast.unparse(node.value)):  # the compiler's: nobody sets it anew
                    meanings[node.targets[0].id] = ast.unparse(node.value)
            if isinstance(node, ast.ImportFrom):
                meanings.update(
                    {alias.asname or alias.name: (self.base(node) if node.level else node.module, alias.name) for alias in node.names}
                )
            elif isinstance(node, ast.Import):
                meanings.update({alias.asname or alias.name: ("", alias.name) for alias in node.names})
        return meanings

    def can_hold(self, other, node, paths):
        """True when `other` can stand where `node` imports it."""
        asked = {alias.name for alias in node.names}
        if node not in self.tree.body or any(alias.asname or alias.name == "*" for alias in node.names) or not asked <= other.made:
            return False
        if other.path.split("/")[0] != self.path.split("/")[0] or self.targets(node, paths) != {other.path}:
            return False
        if {"__name__", "globals"} & (self.read | other.read):
            return False
        mine, its = self.meanings(), other.meanings()
        alike = {name for name in mine if name in its and mine[name] == its[name]}
        both = (self.made - asked) & other.made - alike
        return (
            not both and not (other.made - asked - alike) & (self.read - self.made) and not (self.made - asked) & (other.read - other.made)
        )

    def with_in_it(self, other, node):
        """The text with `other` in the place of `node`."""
        lines = self.text.split("\n")
        theirs = other.meanings()
        for each in self.tree.body:
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id in theirs:
                put(lines, each, "")  # the compiler has a number once
        put(lines, node, other.moved(self.path))
        return "\n".join(lines)

    def moved(self, path):
        """The text as it reads in the file `path`."""
        lines = self.text.split("\n")
        folders = path.split("/")[:-1]
        for node in self.imports:
            parts = self.base(node).split("/")
            shared = 0
            while shared < len(folders) and shared < len(parts) and folders[shared] == parts[shared]:
                shared += 1
            module = ".".join(parts[shared:]) or None
            put(lines, node, ast.unparse(ast.ImportFrom(module, node.names, len(folders) - shared + 1)))
        for node in self.tree.body:
            if is_docstring(node):
                put(lines, node, "")
        return "\n".join(lines)

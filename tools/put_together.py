"""Puts a source into one that imports it, in what a board carries: there each module and each import costs heap.

The source stands where the import stood, if both are of one folder at the top (core, ports, firmware), all that is asked of it are names
(`from .x import a`, or what names_for_modules.py makes that of), no text names it (parts.py looks modules up by name), and no name of one
means something else in the other. Where several import it, it goes to one that imports none of the others, and they import the names from
there. Traces on a board name the functions, and the file that they have come to stand in.
"""

import ast
import collections
import copy
import functools
import re
import symtable

from . import names_for_modules, syntax
from .leave_out import is_docstring, put

DOTTED = re.compile(r"\w+(?:\.\w+)+")


def put_together(sources, kept, holders=None):
    """{path: text} of sources, put together as far as it goes. `kept`: paths of what others than these sources import. `holders`: a dict
    that gets {path: path of the source that it has gone to}."""
    files = {path: parsed(path, text) for path, text in sources.items()}
    named = set().union(*[file.named for file in files.values()])
    kept = set(kept) | {path for path in files if any(("/" + path[:-3]).endswith("/" + name.replace(".", "/")) for name in named)}
    grown = True
    while grown:
        grown = False
        for path in sorted(set(files) - kept):
            trial = asked_for_names(path, files, kept)
            asking = [(file, node) for file in trial.values() for node in file.imports_of(path)]
            place = place_of(trial[path], asking, trial, kept)
            if place is not None:
                files = trial
                put_into(files, path, asking, *place)
                grown = True
                if holders is not None:
                    holders.update({other: place[0].path for other in holders if holders[other] == path}, **{path: place[0].path})
    return {path: file.once() for path, file in files.items()}


def stand_ins(holders):
    """{path: text} of sources in the old places, for tests that ask there."""
    return {path: "from leveret.%s import *\n" % holder[:-3].replace("/", ".") for path, holder in holders.items()}


def asked_for_names(path, files, kept):
    """The files, those that ask for all of the source `path` asking for names instead; as they are where one of them cannot."""
    whole = [file for file in files.values() if any(file.bases[node] != path[:-3] for node in file.imports_of(path))]
    trial = dict(files)
    texts = [names_for_modules.rewritten(file, files[path], files) for file in whole]
    if None in texts or whole and {file.path for file in whole} & reached(path, files, kept):
        return files  # or an import would not have the names yet
    for file, text in zip(whole, texts):
        trial[file.path] = parsed(file.path, text)
    return trial


def place_of(source, asking, files, kept):
    """(file, its import of the source) where the source can go; None: it stays. `asking`: all imports of it, with their files."""
    asked = {alias.name for _, node in asking for alias in node.names}
    if any(file.bases[node] != source.path[:-3] or file.path == source.path for file, node in asking):
        return None
    seen = set()
    for file, node in sorted(asking, key=lambda pair: pair[1].lineno):  # the first import of each file is where the source can go
        others = {other.path for other, each in asking if each in other.eager} - {file.path}  # who asks later has the names then
        lent = "/client/" in file.path and any("/client/" not in other.path for other, _ in asking)  # a broker would load its client
        if (
            file.path not in seen
            and not lent
            and file.can_hold(source, node, asked, files)
            and not (others and others & reached(file.path, files, kept))
        ):
            return file, node
        seen.add(file.path)
    return None


def put_into(files, path, asking, holder, at):
    """Put the source `path` where `holder` imports it; the others import from there."""
    for file in {file.path: file for file, _ in asking}.values():
        mine = [node for other, node in asking if other is file and node is not at]
        if file is not holder:
            files[file.path] = file.asking(mine, holder.path)
            continue
        lines = file.text.split("\n")
        for node in mine:
            put(lines, node, "pass")
        text = holder.with_in_it(lines, files[path], at)
    files[holder.path] = parsed(holder.path, text)
    del files[path]


def reached(path, files, kept):
    """Paths of what is imported when `path` is, directly or not: what asks for parts by name may get each of `kept`."""
    reached: set = set()
    waiting = [path]
    while waiting:
        file = files[waiting.pop()]
        targets = set(kept) if file.asks_parts else set()
        for node in file.eager:
            targets |= file.targets(node, files)
        targets &= set(files) - reached
        reached |= targets
        waiting += targets
    return reached


def relative(path, base, names):
    """The import in the file `path`, of `names` (of ast) from `base`: a path without its suffix."""
    folders, parts = path.split("/")[:-1], base.split("/")
    shared = 0
    while shared < len(folders) and shared < len(parts) and folders[shared] == parts[shared]:
        shared += 1
    return ast.ImportFrom(".".join(parts[shared:]) or None, names, len(folders) - shared + 1)


@functools.lru_cache(512)
def parsed(path, text):
    """The File of a text: boards have most of theirs in common."""
    return File(path, text)


class File:
    """One source, what it imports and what its names mean."""

    def __init__(self, path, text):
        self.path = path
        self.tree = ast.parse(text)
        self.text = self.without_types(text)
        kinds = syntax.by_kind(self.tree)
        at_once = syntax.by_kind(self.tree, (ast.FunctionDef,))  # when it is imported
        self.imports = [node for node in kinds.get(ast.ImportFrom, ()) if node.level]
        self.eager = [node for node in at_once.get(ast.ImportFrom, ()) if node.level]
        calls = [node.func for node in at_once.get(ast.Call, ())]
        self.asks_parts = any(isinstance(each, ast.Name) and each.id in ("part", "needed") for each in calls)
        texts = [node.value for node in kinds.get(ast.Constant, ()) if isinstance(node.value, str) and "." in node.value]
        self.named = {name for each in texts for name in DOTTED.findall(each)}
        self.bases = {node: self.base(node) for node in self.imports}
        self.named_alone = collections.Counter([node.id for node in kinds.get(ast.Name, ())])  # how often each name stands there
        self.reads: dict = {}  # {name: attributes that are read of what has it}
        self.reads_at_once = set(at_once.get(ast.Attribute, ()))  # those outside of functions
        self.sets = set()  # attributes that are set of what has a name, but for `self`
        for node in kinds.get(ast.Attribute, ()):
            if isinstance(node.value, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self.reads.setdefault(node.value.id, []).append(node)
                elif node.value.id != "self":
                    self.sets.add(node.attr)
        self.set_anew = {name for node in kinds.get(ast.Global, ()) for name in node.names}

    @functools.cached_property
    def names(self):
        """Sets of names: made at the source's head; with those bound in its functions; read as its own or the interpreter's; bound in
        the bodies of its classes, which functions do not see."""
        module = symtable.symtable(self.text, self.path, "exec")
        made = {each.get_name() for each in module.get_symbols() if each.is_assigned() or each.is_imported() or each.is_namespace()}
        bound = set(made)
        members: set = set()
        read, waiting = set(), [module]
        while waiting:
            table = waiting.pop()
            waiting += table.get_children()
            for each in table.get_symbols():
                if (each.is_global() or table is module) and (each.is_referenced() or each.is_declared_global()):
                    read.add(each.get_name())
                if each.is_local() or each.is_parameter():
                    (members if table.get_type() == "class" else bound).add(each.get_name())
        return made, bound, read, members

    @property
    def made(self):
        """Names that are made at the source's head."""
        return self.names[0]

    @property
    def bound(self):
        """Names that are made at its head, or bound in its functions."""
        return self.names[1]

    @property
    def members(self):
        """Names that are bound in the bodies of its classes."""
        return self.names[3]

    @property
    def read(self):
        """Names that it reads as the module's, or as the interpreter's."""
        return self.names[2]

    def without_types(self, text):
        """The source, and the tree, without the statements for the type checker alone (`if False:` at its head)."""
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
        """The imports of a source as a module, or of a name in it."""
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

    def can_hold(self, other, node, asked, paths):
        """True when `other` can stand where `node` imports it; `asked`: what is asked of it anywhere."""
        if node not in self.tree.body or any(alias.asname or alias.name == "*" for alias in node.names) or not asked <= other.made:
            return False
        if other.path.split("/")[0] != self.path.split("/")[0] or self.targets(node, paths) != {other.path}:
            return False
        if {"__name__", "globals"} & (self.read | other.read):
            return False
        mine, its = self.meanings(), other.meanings()
        alike = {name for name in mine if name in its and mine[name] == its[name]}
        own = {alias.name for each in self.imports_of(other.path) for alias in each.names}  # what this file asks: others ask for more
        both = (self.made - own) & other.made - alike
        return not both and not (other.made - own - alike) & (self.read - self.made) and not (self.made - own) & (other.read - other.made)

    def with_in_it(self, lines, other, node):
        """The text, from its lines, with `other` in the place of `node`."""
        theirs = other.meanings()
        for each in self.tree.body:
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id in theirs:
                put(lines, each, "")  # the compiler has a number once
        put(lines, node, other.moved(self.path))
        return "\n".join(lines)

    def asking(self, nodes, path):
        """The File, not parsed again, when these imports of its ask the source `path` for their names."""
        turned = copy.copy(self)
        lines = self.text.split("\n")
        new = {node: ast.copy_location(relative(self.path, path[:-3], node.names), node) for node in nodes}
        for node in nodes:
            put(lines, node, ast.unparse(new[node]))
        turned.text = "\n".join(lines)
        turned.tree = ast.Module([new.get(node, node) for node in self.tree.body], [])
        turned.imports = [new.get(node, node) for node in self.imports]
        turned.eager = [new.get(node, node) for node in self.eager]
        turned.bases = {new.get(node, node): base for node, base in self.bases.items()}
        turned.bases.update(dict.fromkeys(new.values(), path[:-3]))
        return turned

    def once(self):
        """The text without imports at its head that say again what one before them says."""
        lines = self.text.split("\n")
        seen: set = set()
        for node in [each for each in self.tree.body if isinstance(each, ast.ImportFrom) and each.level]:
            names = [each for each in node.names if (self.base(node), each.name, each.asname) not in seen]
            seen |= {(self.base(node), each.name, each.asname) for each in names}
            if len(names) < len(node.names):
                put(lines, node, ast.unparse(ast.ImportFrom(node.module, names, node.level)) if names else "")
        return "\n".join(lines)

    def moved(self, path):
        """The text as it reads in the file `path`."""
        lines = self.text.split("\n")
        for node in self.imports:
            put(lines, node, ast.unparse(relative(path, self.base(node), node.names)))
        for node in self.tree.body:
            if is_docstring(node):
                put(lines, node, "")
        return "\n".join(lines)

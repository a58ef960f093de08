"""Which test files of the other fast legs stand nearest to a file of the product: `dev.py mutate` asks those about its mutants.

Near are, in this order: the tests called after the file; those that import it, first the ones that write its names most often; those that
import it through a helper of their folder; then those that name it, or a file that imports it, and so on: where their folder is called like
the file's own, before others.
"""

import ast
import collections
import os
import re

from . import check

TESTS_OF = {"c_accel": "accel", "firmware": "board"}  # folders whose tests' folder is called otherwise
OTHER_FOLDER = 2  # a test of another folder than the file's own stands as far as one that is so many steps of imports away


def modules_named(path):
    """Last parts of the names of the modules that a source file imports, and the words in its texts that name one (`leveret serve`)."""
    names: set = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name.rsplit(".", 1)[-1] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").rsplit(".", 1)[-1])
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            names.update(re.findall(r"\w+", node.value))
    return names


def files_imported(path):
    """{file from the root of the tree: how often the names that come from it are written} of what a test file imports, or may import:
    `leveret.`'s, and files of its own folder."""
    names: dict = {}
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names.setdefault(alias.name, set()).add(alias.asname or alias.name.rpartition(".")[2])
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                for name in (node.module, "%s.%s" % (node.module, alias.name)):
                    names.setdefault(name, set()).add(alias.asname or alias.name)
    words = collections.Counter(re.findall(r"\w+", _text(path)))
    paths: dict = {}
    for name, given in names.items():
        first, _, rest = name.partition(".")
        at = os.path.join(*rest.split(".")) if first == "leveret" and rest else os.path.join(os.path.dirname(path), first)
        paths[at + ".py"] = paths.get(at + ".py", 0) + sum(words[each] for each in given)
    return paths


def _text(path):
    with open(os.path.join(check.ROOT, path), encoding="utf-8") as file:
        return file.read()


def _tree(path):
    return ast.parse(_text(path))


class Nearest:
    """The test files of some folders by how near they stand to a product file. `most`: of them for one file; those in `left_out`: never."""

    def __init__(self, folders, product, most, left_out=()):
        paths = check.python_files(*folders)
        tests = [path for path in paths if os.path.basename(path).startswith("test_") and path not in left_out]
        self.tests = {path: modules_named(path) for path in tests}
        self.order = {path: number for number, path in enumerate(path for each in folders for path in check.python_files(each))}
        self.imported = {path: files_imported(path) for path in paths}
        self.product = {path: modules_named(path) for path in check.python_files(*product)}
        self.most = most

    def place(self, test, path):
        """How near a test file stands to `path` by its name and its imports: 0 to 2, as in the order above; 3: farther away."""
        if os.path.basename(test) == "test_" + os.path.basename(path):
            return 0
        if path in self.imported[test]:
            return 1
        return 2 if any(path in self.imported.get(helper, ()) for helper in self.imported[test]) else 3

    def files(self, path):
        """At most so many, the nearest first."""
        places = {test: self.place(test, path) for test in self.tests}
        tests = {test: (place, 0, -self.imported[test].get(path, 0), self.order[test]) for test, place in places.items() if place < 3}
        folder = os.path.basename(os.path.dirname(path))
        folder = TESTS_OF.get(folder, folder)
        seen, edge, steps = {path}, [path], 0
        while edge:
            names = {os.path.basename(each)[:-3] for each in edge}
            for test, named in self.tests.items():
                if named & names and test not in tests:
                    far = steps + (0 if os.path.basename(os.path.dirname(test)) == folder else OTHER_FOLDER)
                    tests[test] = 3, far, -len(named & names), self.order[test]
            edge = [each for each, named in self.product.items() if named & names and each not in seen]
            seen.update(edge)
            steps += 1
        return sorted(tests, key=lambda test: tests[test])[: self.most]

"""Runs unit tests one by one, without pytest: which lines of the product each of them runs, or which is the first that fails.

`dev.py mutate` starts it as a program in a copy of the tree. Unit tests are plain functions without arguments, so that MicroPython runs
them too: a call is all that they need.
Laws: it imports nothing of the product by itself; a test that is measured runs in a process of its own, forked after all imports.
"""

import ast
import builtins
import importlib
import importlib.machinery
import json
import os
import resource
import sys
import time
import traceback

SEEN = "__lines_seen__"  # a name in builtins: an octet for each statement of the product's functions, 1 once it has run
SEEN_MAX = 1 << 17
DONE, FAULTY = 0, 70  # exit status: it has answered; it is itself at fault, which kills no mutant
SPARE_S, TIMES = 4, 10  # a test that takes so much longer, of the processor, than without a mutant hangs
MEMORY_MAX = 3 << 30  # octets of addresses: a mutant that asks for memory for ever fails before the machine does


def statements(tree):
    """(bodies that hold statements of functions, each statement in them); a docstring is none."""
    bodies: list = []
    inside: list = []

    def look(node, is_inside):
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            children = getattr(node, name, None)
            if not isinstance(children, list):
                continue
            if is_inside and name not in ("handlers", "cases"):
                bodies.append(children)
                inside.extend(each for each in children if not _is_text(each))
            for child in children:
                look(child, is_inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))

    for node in tree.body:
        look(node, isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return bodies, inside


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def statement_of(source, line):
    """The first line of the innermost statement of a function that holds `line`; 0: the line runs at import."""
    _, inside = statements(ast.parse(source))
    return max((each.lineno for each in inside if each.lineno <= line <= each.end_lineno), default=0)


class Marked(importlib.machinery.SourceFileLoader):
    """Loads a file of the product with a mark before each statement of its functions."""

    places: list = []  # (path from the root of the tree, line) of each mark
    paths: set = set()  # of the files that were loaded

    def get_code(self, fullname):
        tree = ast.parse(self.get_data(self.path), self.path)
        path = os.path.relpath(self.path)
        self.paths.add(path)
        for body in statements(tree)[0]:
            body[:] = [each for statement in body for each in self._with_mark(statement, path)]
        ast.fix_missing_locations(tree)
        return compile(tree, self.path, "exec", dont_inherit=True)

    def _with_mark(self, statement, path):
        if _is_text(statement) or isinstance(statement, (ast.Global, ast.Nonlocal)):
            return [statement]
        mark = ast.parse("%s[%d] = 1" % (SEEN, len(self.places))).body[0]
        for node in ast.walk(mark):
            if hasattr(node, "lineno"):
                ast.copy_location(node, statement)
        self.places.append((path, statement.lineno))
        return [mark, statement]


class Finder:
    """Finds the product's files for Marked."""

    def __init__(self, folders):
        self.folders = tuple(os.path.join(os.getcwd(), each) + os.sep for each in folders)

    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not spec.origin.startswith(self.folders) or not spec.origin.endswith(".py"):
            return None
        spec.loader = Marked(spec.name, spec.origin)
        return spec


def tests_of(path):
    """{name: function} of a test file, in the order of the text."""
    folder, name = os.path.split(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(name[:-3])
    return {name: value for name, value in vars(module).items() if name.startswith("test_") and callable(value)}


def _fault(function):
    """The error that a test raises, in one line, or ''."""
    try:
        function()
    except BaseException as error:  # whatever it is, the test has failed
        return "%s: %s" % (type(error).__name__, str(error)[:200])
    return ""


def _measured(function):
    """[fault, seconds of the processor, {path: lines}] of one test, in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        seen = getattr(builtins, SEEN)
        seen[:] = bytes(len(seen))
        began = time.process_time()
        fault = _fault(function)
        lines: dict = {}
        for (path, line), was_seen in zip(Marked.places, seen):
            if was_seen:
                lines.setdefault(path, []).append(line)
        with os.fdopen(writer, "w") as out:
            json.dump([fault, time.process_time() - began, lines], out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as given:
        text = given.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ["it ended its process", 0.0, {}]


def measure(paths, folders):
    """{test file: {"tests": {test: as _measured}, "imported": product files}, or a text: why it cannot be imported}."""
    setattr(builtins, SEEN, bytearray(SEEN_MAX))
    sys.meta_path.insert(0, Finder(folders))
    tests: dict = {}
    for path in paths:
        try:
            tests[path] = tests_of(path)
        except Exception as error:  # as of any other test: the run goes on without it
            tests[path] = "%s: %s" % (type(error).__name__, error)
    imported = sorted(Marked.paths)
    answer: dict = {}
    for path, functions in tests.items():
        if isinstance(functions, dict):
            answer[path] = {"tests": {name: _measured(functions[name]) for name in functions}, "imported": imported}
        else:
            answer[path] = functions
    return answer


def first_failure(tests, say):
    """The first of [file, name, seconds] that fails, as [file, name, why], or None. `say` is told each before it runs."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    for path, name, seconds in tests:
        say([path, name])
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + SPARE_S + TIMES * seconds), most))
        fault = _fault(lambda path=path, name=name: tests_of(path)[name]())
        if fault:
            return [path, name, fault]
    return None


def main():
    """`test_by_test.py REQUEST ANSWERS`: both are files; a line of the second is a JSON value, the last one the answer."""
    sys.path.pop(0)  # the folder of this file: its names are no modules of the tests
    with open(sys.argv[1]) as file:
        request = json.load(file)
    with open(sys.argv[2], "w", buffering=1) as answers:

        def say(answer):
            answers.write(json.dumps(answer) + "\n")

        if "measure" in request:
            say(measure(request["measure"], request["folders"]))
        else:
            say(first_failure(request["tests"], say))
    sys.stdout.flush()
    os._exit(DONE)  # threads that a test has left wait for nobody


if __name__ == "__main__":
    try:
        main()
    except Exception:  # of this program: tests' own are answers
        traceback.print_exc()
        os._exit(FAULTY)

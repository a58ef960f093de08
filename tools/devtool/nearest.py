"""Which test files of the other fast legs stand nearest to a file of the product: `dev.py mutate` asks those about its mutants.

Near are, in this order: the tests called after the file; those that import it, first the ones that write its names most often; those of
its area (AREAS; of a file of core/ before those that import it); those that import it through a helper of their folder; then those that
import a file which imports it, and so on: where their folder is called like the file's own, before others. A word in a text names a
command (`leveret serve`), or a file that has its name from nothing else: words like "session" say nothing of core/, in a text that does
not have the word core.
"""

import ast
import collections
import os
import re

from . import check

TESTS_OF = {"c_accel": "accel", "firmware": "board"}  # folders whose tests' folder is called otherwise

# Tests that run an area's files through a broker, a line or a server, which their imports do not say: (beginning of a path, test files).
AREAS = (
    ("core/amqp_1_0/client/", ("interop_1_0/test_leveret_client", "bridge/test_tokens_1_0")),
    ("core/amqp_1_0/", ("accel/test_same_1_0", "accel/test_converted_1_0", "accel/test_streams_1_0", "fuzz/test_amqp_1_0")),
    ("core/amqp_0_10/", ("simulate/test_sessions_0_10", "fuzz/test_amqp_0_10")),
    ("core/amqp_0_9/client/", ("tools/test_client", "bridge/test_timeouts", "bridge/test_blocking_client")),
    ("core/amqp_0_9/drafts/", ("interop/test_drafts",)),
    ("core/amqp_0_9/", ("interop/test_basic", "interop/test_settling", "accel/test_gets_in_c", "accel/test_same")),
    ("core/access/", ("interop/test_removed_users", "interop/test_access")),
    ("core/bridge/", ("bridge/test_frame_size", "bridge/test_timeouts", "bridge/test_exactly_once")),
    ("core/log/", ("fuzz/test_extreme_records", "durable/test_beyond_memory", "durable/test_log_tool", "durable/test_stores")),
    ("core/recovery/", ("fuzz/test_extreme_records", "durable/test_old_log", "durable/test_log_tool", "durable/test_stores")),
    ("core/staging/", ("durable/test_staged",)),
    ("core/management/", ("http/test_calls", "tools/test_management_commands")),
    ("core/memory/", ("simulate/test_invariants", "accel/test_same")),
    ("core/patterns/", ("fuzz/test_selector", "accel/test_matching")),
    ("core/serial_link/", ("serial/test_simulate_link", "serial/test_serial_line")),
    ("core/stream/", ("accel/test_reading", "durable/test_stream_beyond_memory", "fuzz/test_extremes")),
    ("core/", ("http/test_rows", "interop/test_queues", "simulate/test_sessions_0_10", "fuzz/test_extremes")),
    ("c_accel/amqp_0_9_drafts", ("accel/test_drafts_same", "interop/test_drafts", "accel/test_homes")),
    ("c_accel/amqp_0_10", ("accel/test_same_0_10", "accel/test_homes", "accel/test_memory")),
    ("c_accel/amqp_1_0", ("accel/test_same_1_0", "accel/test_streams_1_0", "accel/test_converted_1_0", "accel/test_homes")),
    ("c_accel/amqp_0_9", ("accel/test_gets_in_c", "accel/test_large", "accel/test_requests", "accel/test_same", "accel/test_reading")),
    ("c_accel/disk", ("accel/test_disk", "durable/test_thread_store")),
    ("c_accel/", ("accel/test_fan_out", "accel/test_same_1_0", "accel/test_reading", "accel/test_same")),
    ("firmware/", ("board/test_firmware",)),
    ("ports/http/users", ("http/test_users_and_policies", "http/test_credentials", "http/test_every_route")),
    ("ports/http/policies", ("http/test_users_and_policies", "http/test_every_route")),
    ("ports/http/parameters", ("http/test_parameters_kept", "http/test_newer_calls", "http/test_every_route")),
    ("ports/http/", ("http/test_rows", "http/test_every_route", "http/test_calls")),
    ("ports/events/", ("http/test_events",)),
    ("ports/serial", ("serial/test_serial_line", "serial/test_amqp_over_serial")),
    ("ports/client_drafts", ("interop/test_drafts",)),
    ("ports/client_older", ("interop/test_drafts",)),
    ("ports/client_0_10", ("durable/test_staged",)),
    ("ports/files_0_10", ("durable/test_staged",)),
    ("tools/file", ("tools/test_options_kept", "durable/test_staged")),
    ("tools/data", ("tools/test_data_choices", "tools/test_options_kept", "durable/test_log_tool", "durable/test_serve_data")),
    ("tools/", ("tools/test_options_kept", "tools/test_management_commands", "tools/test_command_line", "tools/test_commands")),
)
OF_THE_CODE = re.compile(r"\bleveret\.tools\.devtool\b|\bleveret\.tools import generate_")  # a test that reads sources: not by steps
OTHER_FOLDER = 2  # a test of another folder than the file's own stands as far as one that is so many steps of imports away


def modules_named(path):
    """(last parts of the names of the modules that a source file imports, words in its texts, which may name one: `leveret serve`)."""
    names: set = set()
    words: set = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name.rsplit(".", 1)[-1] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").rsplit(".", 1)[-1])
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            in_text = re.findall(r"\w+", node.value)
            (names if "core" in in_text else words).update(in_text)  # a program, or a path
    return names, words


def _names_shared(named, paths):
    """How many of some product files the answer of modules_named names."""
    names, words = named
    files = {(path.split(os.sep)[0], os.path.basename(path)[:-3]) for path in paths}
    return sum(name in names or folder != "core" and name in words for folder, name in files)


def area_of(path):
    """The test files of a file's area."""
    posix = path.replace(os.sep, "/")
    return next((["tests/%s.py" % test for test in tests] for start, tests in AREAS if posix.startswith(start)), [])


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
        self.of_the_code = {path for path in tests if OF_THE_CODE.search(_text(path))}
        self.order = {path: number for number, path in enumerate(path for each in folders for path in check.python_files(each))}
        self.imported = {path: files_imported(path) for path in paths}
        self.product = {path: modules_named(path) for path in check.python_files(*product)}
        self.most = most

    def place(self, test, path):
        """How near a test file stands to `path` by its name and its imports: 0, 1 and 3, as in the order above; 4: farther away."""
        if os.path.basename(test) == "test_" + os.path.basename(path):
            return 0
        if path in self.imported[test]:
            return 1
        return 3 if any(path in self.imported.get(helper, ()) for helper in self.imported[test]) else 4

    def files(self, path):
        """At most so many, the nearest first."""
        places = {test: self.place(test, path) for test in self.tests}
        tests = {test: (place, 0, -self.imported[test].get(path, 0), self.order[test]) for test, place in places.items() if place < 4}
        of_area = 1 if path.startswith("core" + os.sep) else 2  # a file of core/ is imported for what stands around it, too
        for number, test in enumerate(area_of(path)):
            if test in self.tests and tests.get(test, (4,))[0] >= of_area:
                tests[test] = of_area, -1, number, 0
        folder = os.path.basename(os.path.dirname(path))
        folder = TESTS_OF.get(folder, folder)
        seen, edge, steps = {path}, [path], 0
        while edge:
            for test, named in self.tests.items():
                shared = _names_shared(named, edge)
                if shared and test not in tests and test not in self.of_the_code:
                    far = steps + (0 if os.path.basename(os.path.dirname(test)) == folder else OTHER_FOLDER)
                    tests[test] = 4, far, -shared, self.order[test]
            edge = [each for each, named in self.product.items() if each not in seen and _names_shared(named, edge)]
            seen.update(edge)
            steps += 1
        return sorted(tests, key=lambda test: tests[test])[: self.most]

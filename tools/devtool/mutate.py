"""`dev.py mutate`: changes random lines of the product, one at a time and in a copy, and names the changes that no fast test notices.

Laws: the checkout is never written to; the same tree, count and seed draw the same mutants; every mutant that was drawn is told, with what
killed it. Each verdict is kept as long as the tree stays as it is: a run that was ended goes on with the same command. How to use it and
what its words mean: tests/README.md.
A mutant has the unit tests that run its statement first (test_by_test.py says which), those first of whose statements most are in its
file, for UNITS_MAX_S; when they pass it has the tests of the other fast legs that run its statement, of the files nearest to it
(nearest.py), which are run once for all such mutants to know that (reaching.py). The first failure ends it. What runs at import has the
unit tests whose file names its own, as test_numbers.py does, then those that run anything of it, for half of UNITS_MAX_S, and then the
quickest of all that import it; of the other legs it has the nearest files whole, for OTHERS_MAX_S, which a busy machine has longer; after
those it is not judged.
"""

import argparse
import collections
import contextlib
import hashlib
import json
import os
import queue
import random
import re
import signal
import sys
import tempfile
import threading
import time

from . import check, copies, legs, mutation_report, mutations, nearest, reaching, test_by_test

ROOT = legs.ROOT
PRODUCT = ("core", "ports", "tools", "firmware", "c_accel")
UNIT = "unit"
OTHER_LEGS = ("tools", "http", "accel", "wire", "serial", "spark", "simulate", "bridge", "durable", "board", "interop", "interop_1_0")
NOT_FAST = re.compile(r"\(.*\bspark\b.*\):|\bmake_board\b")  # in a test file: it waits for Spark's Java, or for a board under node
SLOW = (  # test files that take more than 100 s of a quiet machine
    "tests/accel/test_builds.py",
    "tests/accel/test_sanitized.py",
    "tests/bridge/test_gateway.py",
    "tests/interop_1_0/test_bridge_faults.py",
    "tests/simulate/test_faults.py",
    "tests/simulate/test_simulate.py",
    "tests/spark/test_kills.py",
)
REACHING_MAX = 8  # test files of the other legs that are run to know which of their tests run a mutant's statement, the nearest first
OTHERS_MAX = 5  # of them, for what runs at import: without that knowledge
WANTED = 0.9  # of the mutants are to die

# What CPython's fast legs do not run, by the beginning of its path: why, and which leg's tests run it.
ELSEWHERE = (
    ("core/amqp_0_9/spec_", "generated, a table of numbers; the leg `shared` compares it with the specification"),
    ("core/amqp_0_10/spec_", "generated, a table of numbers; the leg `shared` compares it with the specification"),
    ("core/amqp_1_0/spec_", "generated, a table of numbers; the leg `shared` compares it with the specification"),
    ("core/memory/micropython_sizes", "sums about MicroPython's heap; tests/micropython/test_board_budget.py compares them with it"),
    ("ports/store_flash", "only on boards; tests/board and tests/durable/device_stores.py run it, on MicroPython"),
    ("ports/store_littlefs", "only on boards; tests/board and tests/durable/device_stores.py run it, on MicroPython"),
    ("firmware/boot", "only on boards; tests/board runs it, on MicroPython"),
    ("firmware/main", "only on boards; tests/board runs it, on MicroPython"),
    ("ports/spark/job", "runs in Spark's own processes; the leg `spark` runs it, which takes minutes"),
    ("tools/flash", "talks to a board; tests/board runs it"),
    ("tools/demo", "the demo, with Spark; tests/tools/test_demo.py and the leg `spark` run it, which takes minutes"),
    ("tools/pipeline", "whole pipelines with Spark; the leg `spark` runs them, which takes minutes"),
    ("tools/devtool", "works on the code, and is not installed (pyproject.toml); tests/tools has its tests"),
    ("tools/dev", "works on the code; tests/tools has its tests"),
    ("tools/generate_", "writes files of this repository; `dev.py check` compares them"),
    ("tools/perf", "measures; its figures differ from run to run"),
)
# Of the processor, marked and without a mutant: the unit tests that one mutant is asked, of those that run its statement. The whole leg
# takes about as much, unmarked a sixth of it: a statement that every test runs has them all.
UNITS_MAX_S = 300
# Of the wall clock of a machine that does nothing else: the other legs' tests for one mutant. Of those that run its statement the quickest
# are asked for so long, by what they took without it.
OTHERS_MAX_S = 300
OTHERS_SPARE_S = 20  # the same: what a file's tests have beyond WALL_TIMES of that
ONE_MAX_S = 120  # the same, for one test of them
SOME_FAILED = (1, 2)  # pytest's exit status: tests have failed, or could not be read
PART = 24  # test files of the unit leg that are measured together
UNIT_CPU_MAX_S = 900  # of the processor, for all unit tests of a mutant; each one has its own limit in test_by_test.py
WALL_MAX_S = 600
WALL_SPARE_S, WALL_TIMES = 120, 10  # a mutant that waits for ever ends after so much, and so many times what its tests take without it
CACHE = os.path.join(ROOT, ".cache", "mutate")
KILLER = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\](?= - |$))?)", re.MULTILINE)  # a parameter may have spaces in it


class Mutant:
    """A mutation of a file. `verdict`: "killed", "killed by its time", "survived", or "": not judged; `by`: the test that did it;
    `reached`: a unit test runs the line; `files`: the test files that were asked; `left`: those of the other legs whose tests
    were not asked to the end, because the mutant had had its time."""

    def __init__(self, path, source, mutation):
        self.path = path
        self.source = source
        self.mutation = mutation
        self.verdict = ""
        self.by = ""
        self.reached = False
        self.files = 0
        self.left = 0

    def place(self):
        return f"{self.path}:{self.mutation.line}"

    def statement(self):
        """The first line of its statement of a function; 0: it runs at import."""
        return test_by_test.statement_of(self.source, self.mutation.line)

    def sentence(self):
        return self.mutation.sentence(self.source)


def elsewhere(path):
    """Why the fast legs cannot be asked about a file, or ''."""
    posix = path.replace(os.sep, "/")
    return next((why for start, why in ELSEWHERE if posix.startswith(start)), "")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def draw(count, seed):
    """`count` Mutants: lines at random among all that may be changed, one change of each."""
    places = []
    for path in check.python_files(*PRODUCT):
        if not elsewhere(path):
            source, by_line = read(path), collections.defaultdict(list)
            for mutation in mutations.mutations_of(source):
                by_line[mutation.line].append(mutation)
            places += [(path, source, by_line[line]) for line in sorted(by_line)]
    chosen = random.Random(seed)
    return [Mutant(path, source, chosen.choice(on_line)) for path, source, on_line in chosen.sample(places, min(count, len(places)))]


def run_pytest(place, names, until=None):
    """(exit status or None, output) of pytest over files or tests of them, up to the first failure; `until`: by time.monotonic."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--assert=plain", "--tb=line", "--no-header"]
    wall_s = ONE_MAX_S * copies.slowness() if until is None else max(until - time.monotonic(), 1)
    return copies.run_child(place, [*command, *names], UNIT_CPU_MAX_S, wall_s)[:2]


def run_units(place, request, wall_s):
    """(exit status, output, what test_by_test.py says to a request: a list whose last is the answer)."""
    asked, answered = os.path.join(place, "request.json"), os.path.join(place, "answers.json")
    with open(asked, "w") as file:
        json.dump(request, file)
    program = os.path.join(os.path.dirname(os.path.abspath(test_by_test.__file__)), "test_by_test.py")  # the checkout's: no mutant
    status, output, _ = copies.run_child(place, [sys.executable, program, asked, answered], UNIT_CPU_MAX_S, wall_s)
    if status == test_by_test.FAULTY:
        raise RuntimeError("the unit tests cannot be run one by one: " + output[-2000:])
    with open(answered) as file:
        return status, output, [json.loads(line) for line in file]


# Which tests run which lines


def _digest(paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.encode() + b"\0" + read(path).encode() + b"\0")
    return digest.hexdigest()[:20]


def unit_files():
    return [path for path in check.python_files(os.path.join("tests", UNIT)) if os.path.basename(path).startswith("test_")]


def _measure(place, paths):
    """{test file: {"tests": {test: [seconds, {product file: statements}]}, "imported": product files}} of those that pass."""
    status, output, said = run_units(place, {"measure": paths, "folders": PRODUCT}, WALL_MAX_S * 6)
    if status != test_by_test.DONE:
        raise RuntimeError("the unit tests cannot be run one by one: " + output[-2000:])
    measured = {}
    for path, answer in said[-1].items():
        tests = {} if isinstance(answer, str) else answer["tests"]
        for name, why in [("", answer)] if isinstance(answer, str) else [(name, tests[name][0]) for name in tests]:
            if why:
                print(f"  {path}{name and '::'}{name} fails without a mutant and is left out: {why}", flush=True)
        good = {name: [seconds, lines] for name, (fault, seconds, lines) in tests.items() if not fault}
        if good:
            measured[path] = {"tests": good, "imported": answer["imported"]}
    return measured


def kept(name):
    """The cache's entry under a name, or None."""
    path = os.path.join(CACHE, name + ".json")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def keep(name, answer):
    """Put `answer` into the cache."""
    path = os.path.join(CACHE, name + ".json")
    os.makedirs(CACHE, exist_ok=True)
    with open(path + ".new", "w") as file:
        json.dump(answer, file)
    os.replace(path + ".new", path)


def measure(pool):
    """As _measure, of all unit tests; from the cache where neither test nor product has changed."""
    files = unit_files()
    others = [path for path in check.python_files(*PRODUCT, os.path.join("tests", UNIT)) if path not in files]
    product = "tests-" + _digest(others)
    digests = {name: f"{product}-{_digest([name])}" for name in files}
    measured = {name: kept(digests[name]) for name in files}
    unknown = [name for name in files if measured[name] is None]
    if unknown:
        print(f"Which unit test runs which line: {len(unknown)} files, once for each state of the tree.", flush=True)

    def tell(answer):
        for name in answer:
            measured[name] = answer[name]
            keep(digests[name], answer[name])

    parts = [unknown[at : at + PART] for at in range(0, len(unknown), PART)]
    copies.in_threads(pool.qsize(), lambda part: with_copy(pool, lambda place: _measure(place, part)), parts, tell)
    measured = {name: each for name, each in sorted(measured.items()) if each is not None}
    if len(measured) < len(files) // 2 or not files:
        sys.exit("Most unit tests fail in a copy of the tree without a mutant: run `dev.py test unit` first.")
    return measured


def with_copy(pool, work):
    place = pool.get()
    try:
        return work(place)
    finally:
        pool.put(place)


def names(text, path):
    """Whether a test file's text names a file of the product: core/log/segments.py as "log/segments", or by an import."""
    folder, name = os.path.split(os.path.splitext(path)[0])
    folder = os.path.basename(folder)
    return re.search(rf"\b{folder}/{name}\b|\b{folder} import (?:\w+, )*{name}\b|\b{folder}\.{name} import\b", text) is not None


def _seconds(test):
    return test[2]


class Judge:
    """Runs the tests for mutants, in copies of the tree."""

    def __init__(self, pool, measured, until=None):
        self.pool = pool
        self.measured = measured
        self.until = until  # by time.monotonic: no mutant is begun later
        folders = [path for name in OTHER_LEGS for leg in legs.LEGS if leg.name == name for path in leg.paths]
        left_out = {path for path in check.python_files(*folders) if NOT_FAST.search(read(path))}
        self.nearest = nearest.Nearest(folders, PRODUCT, REACHING_MAX, left_out.union(SLOW))
        self.lock = threading.Lock()
        state = _digest(check.python_files(*PRODUCT, "tests"))
        self.state, self.plains, self.reaches = "verdicts-" + state, "others-" + state, "reaching-" + state
        self.verdicts = kept(self.state) or {}  # place and sentence of a mutant -> verdict, what killed it, reached, test files, tests left
        self.passing = kept(self.plains) or {}  # test of another leg -> whether it passes without a mutant
        self.reaching = kept(self.reaches) or {}  # test file of another leg -> the marks it was asked for, and what tests_reaching says

    def judge(self, mutant, step):
        """The mutant after a step: `in_units` or `in_others`; what is known already is not asked again."""
        name = f"{mutant.place()} {mutant.sentence()}"
        known = self.verdicts.get(name)
        if known is not None:
            mutant.verdict, mutant.by, mutant.reached, mutant.files, mutant.left = known
        if known is not None or self.until is not None and time.monotonic() >= self.until:
            return mutant
        with_copy(self.pool, lambda place: step(place, mutant))
        if mutant.verdict:
            with self.lock:
                self.verdicts[name] = [mutant.verdict, mutant.by, mutant.reached, mutant.files, mutant.left]
                keep(self.state, self.verdicts)
        return mutant

    def units(self, mutant):
        """[[test file, test, seconds], ...]: the unit tests for a mutant, in the order of the text above; and whether one runs its line."""
        line, path = mutant.statement(), mutant.path
        first, near, far = [], [], []
        for file, record in self.measured.items():
            is_named = not line and names(read(file), path)
            for name, (seconds, lines) in record["tests"].items():
                if is_named:
                    first.append((0, seconds, file, name))
                elif line in lines.get(path, ()) if line else path in lines:
                    near.append((-len(lines[path]) / sum(map(len, lines.values())), seconds, file, name))
                elif not line and path in record["imported"]:
                    far.append((0, seconds, file, name))
        return [[file, name, seconds] for _, seconds, file, name in sorted(first) + sorted(near) + sorted(far)], bool(near)

    def in_units(self, place, mutant):
        """Ask the unit tests, for UNITS_MAX_S; without a verdict where none fails."""
        tests, mutant.reached = self.units(mutant)
        asked, spent = [], 0.0
        runs_at_import = not mutant.statement()
        for order, most in ((tests, UNITS_MAX_S / 2 if runs_at_import else UNITS_MAX_S), (sorted(tests, key=_seconds), UNITS_MAX_S)):
            for test in order:
                if spent + test[2] <= most and test not in asked:
                    spent += test[2]
                    asked.append(test)
        if asked:
            self._kills_units(place, mutant, asked)

    def reach(self, mutants, tell):
        """Learn which tests of the other legs run the statements of some mutants, and forget those of others. `tell` is called with each
        test file that was run."""
        mutants = [mutant for mutant in mutants if mutant.statement()]
        statements: dict = {}
        for mutant in mutants:
            statements.setdefault(mutant.path, (mutant.source, set()))[1].add(mutant.statement())
        marks = {reaching.name_of(path, line) for path, (_, lines) in statements.items() for line in lines}
        wanted = collections.Counter(file for mutant in mutants for file in self.nearest.files(mutant.path))
        files = [file for file, _ in wanted.most_common() if not marks.issubset(self.reaching.get(file, [[]])[0])]

        def run(file):
            if self.until is not None and time.monotonic() >= self.until:
                return file, None
            return file, with_copy(self.pool, lambda place: reaching.tests_reaching(place, file, statements))

        def learn(answer):
            file, tests = answer
            if tests is not None:
                self.reaching[file] = [sorted(marks), *tests]
                keep(self.reaches, self.reaching)
                tell(file)

        copies.in_threads(self.pool.qsize(), run, files, learn)

    def in_others(self, place, mutant):
        """Ask tests of the other legs, of a mutant that lives through the unit tests."""
        if mutant.statement():
            self._in_tests_reaching(place, mutant)
        else:
            self._in_nearest(place, mutant)

    def _in_tests_reaching(self, place, mutant):
        """Those that run its statement, file by file, the nearest first. Without a verdict where a file was not run for `reach`, or where
        one has not ended in ten times what it takes."""
        mark, mutant.left, spent = reaching.name_of(mutant.path, mutant.statement()), 0, 0.0
        for file in self.nearest.files(mutant.path):
            _, known, has_ended = self.reaching.get(file, ([], [], False))
            mutant.left += not has_ended
            tests = sorted((seconds, name) for name, seconds, marks in known if mark in marks and self.passing.get(name, True))
            asked = []
            for seconds, name in tests:
                if spent + seconds <= OTHERS_MAX_S * copies.slowness():
                    spent += seconds
                    asked.append(name)
            took_s = sum(seconds for seconds, name in tests if name in asked)
            until = time.monotonic() + OTHERS_SPARE_S * copies.slowness() + WALL_TIMES * took_s
            if asked and self._kills(place, mutant, asked, until):
                return
        mutant.verdict = "" if mutant.left else "survived"

    def _in_nearest(self, place, mutant):
        """The nearest files, whole, for OTHERS_MAX_S. Where they have not ended by then there is no verdict: a quieter machine may give
        one."""
        until = time.monotonic() + OTHERS_MAX_S * copies.slowness()
        mutant.left = 0
        for file in self.nearest.files(mutant.path)[:OTHERS_MAX]:
            if self._kills(place, mutant, [file], until):
                return
        mutant.verdict = "" if mutant.left else "survived"

    def _kills_units(self, place, mutant, tests):
        """Whether one of the unit tests fails with the mutant in this copy, which is whole again afterwards."""
        mutant.files += len({file for file, _, _ in tests})
        wall_s = WALL_SPARE_S + WALL_TIMES * sum(seconds for _, _, seconds in tests)
        with in_copy(place, mutant):
            status, _, said = run_units(place, {"tests": tests}, wall_s)
        if status == test_by_test.DONE and said[-1] is None:
            return False
        mutant.verdict = "killed by its time" if status is None else "killed"
        mutant.by = "::".join(said[-1][:2]) if said else tests[0][0]
        return True

    def _kills(self, place, mutant, asked, until):
        """Whether a test of another leg fails with the mutant in this copy, twice, and passes without it: those tests have limits of time,
        and the machine may be busy. `asked`: a test file, or tests of one. What has not ended `until` then has killed nothing, and is
        counted in `left`."""
        file = asked[0].partition("::")[0]
        mutant.files += 1
        while time.monotonic() < until:
            bad = [name for name, passes in self.passing.items() if not passes and name.startswith(file)]
            with in_copy(place, mutant):
                status, output = run_pytest(place, [*asked, *("--deselect=" + name for name in bad)], until)
                killer = KILLER.search(output)
                name = killer.group(1) if killer else file
                if status not in SOME_FAILED or run_pytest(place, [name])[0] not in SOME_FAILED:
                    mutant.left += status is None
                    return False
            if self.passes(place, name):
                mutant.verdict, mutant.by = "killed", name
                return True
            if name == file:
                return False
        mutant.left += 1
        return False

    def passes(self, place, name):
        """Whether a test passes without a mutant."""
        if name not in self.passing:
            passes = run_pytest(place, [name])[0] == 0
            if not passes:
                print(f"  {name} fails without a mutant and is left out", flush=True)
            with self.lock:
                self.passing[name] = passes
                keep(self.plains, self.passing)
        return self.passing[name]


@contextlib.contextmanager
def in_copy(place, mutant):
    """The mutant stands in a copy of the tree for a while."""
    try:
        copies.write(place, mutant.path, mutations.apply(mutant.source, mutant.mutation))
        yield
    finally:
        copies.write(place, mutant.path, mutant.source)


def run(count, seed, minutes=None):
    """The exit status: 0 when enough of the mutants died. `minutes`: no mutant is begun later; the same command goes on."""
    until = None if minutes is None else time.monotonic() + 60 * minutes
    mutants = draw(count, seed)
    print(f"{len(mutants)} mutants, seed {seed}; what is known is kept in {CACHE}", flush=True)
    with tempfile.TemporaryDirectory(prefix="leveret-mutate-", ignore_cleanup_errors=True) as directory:
        pool: queue.SimpleQueue = queue.SimpleQueue()
        like = copies.make_copy(os.path.join(directory, "whole"))
        for number in range(os.cpu_count() or 1):
            pool.put(copies.make_copy(os.path.join(directory, str(number)), like))
        judge = Judge(pool, measure(pool), until)

        def tell(mutant):
            if mutant.verdict:
                judged = sum(1 for each in mutants if each.verdict)
                print(f"[{judged}/{len(mutants)}] {mutant.place()}  {mutant.sentence()}  {mutant.verdict} {mutant.by}", flush=True)
            elif mutant.left:
                print(f"  {mutant.place()}  {mutant.sentence()}  not judged: tests of other legs did not end in time", flush=True)
            else:
                print(f"  {mutant.place()}  {mutant.sentence()}  lives through {mutant.files} files of unit tests", flush=True)

        def left():
            return [mutant for mutant in mutants if not mutant.verdict]

        try:
            copies.in_threads(pool.qsize(), lambda mutant: judge.judge(mutant, judge.in_units), left(), tell)
            judge.reach(left(), lambda file: print(f"  {file} has said which of its tests run those statements", flush=True))
            copies.in_threads(pool.qsize(), lambda mutant: judge.judge(mutant, judge.in_others), left(), tell)
        except BaseException:  # a signal too: what is known so far is told
            print("\n".join(mutation_report.lines_of(mutants, seed, WANTED, ELSEWHERE)), flush=True)
            raise
    print("\n".join(mutation_report.lines_of(mutants, seed, WANTED, ELSEWHERE)), flush=True)
    return 0 if mutants and mutation_report.killed(mutants) >= WANTED * len(mutants) else 1


def main():
    global CACHE
    parser = argparse.ArgumentParser(prog="tools/dev.py mutate", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=50, metavar="N", help="how many mutants (default 50)")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="draws the same mutants again")
    parser.add_argument("--minutes", type=float, default=None, metavar="N", help="begins no mutant later; the same command goes on")
    parser.add_argument("--state", default=CACHE, metavar="FOLDER", help="where verdicts are kept (default .cache/mutate)")
    options = parser.parse_args()
    if options.count < 1:
        parser.error("--count must be 1 or more")
    CACHE = os.path.abspath(options.state)
    os.nice(10)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    seed = random.SystemRandom().randint(1, 1 << 31) if options.seed is None else options.seed
    try:
        return run(options.count, seed, options.minutes)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


def leave(number, _):
    """Told to end: leave through in_threads, which ends the tests, and through what removes the copies."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())

"""`dev.py mutate`: changes random lines of the product, one at a time and in a copy, and names the changes that no fast test notices.

Laws: the checkout is never written to; the same tree, count and seed draw the same mutants; every mutant that was drawn is told, with what
killed it. Each verdict is kept as long as the tree stays as it is: a run that was ended goes on with the same command. How to use it and
what its words mean: tests/README.md.
A mutant has the unit tests that run its statement first (test_by_test.py says which), those first of whose statements most are in its
file; when all pass it has the nearest tests of the other fast legs (nearest.py). The first failure ends it. What runs at import has the
unit tests that run anything of its file, and then all others.
"""

import argparse
import collections
import compileall
import concurrent.futures
import contextlib
import hashlib
import json
import os
import py_compile
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from . import check, legs, mutations, nearest, test_by_test

ROOT = legs.ROOT
PRODUCT = ("core", "ports", "tools", "firmware", "c_accel")
UNIT = "unit"
OTHER_LEGS = ("tools", "accel", "wire", "serial", "spark", "simulate", "bridge", "durable", "board")
NOT_FAST = re.compile(r"\(.*\bspark\b.*\):|\bmake_board\b")  # in a test file: it waits for Spark's Java, or for a board under node
OTHERS_MAX = 6  # test files of the other legs for one mutant, the nearest first
WANTED = 0.9  # of the mutants are to die

# What CPython's fast legs do not run, by the beginning of its path: why, and which leg's tests run it.
ELSEWHERE = (
    ("core/amqp_0_9/spec_", "generated, a table of numbers; the leg `shared` compares it with the specification"),
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
    ("tools/perf", "measures; its figures differ from run to run"),
)
PLAIN_MAX_S = 120  # of the processor: a test file of another leg that takes more is not fast
CPU_SPARE_S = 20
UNIT_CPU_MAX_S = 900  # of the processor, for all unit tests of a mutant; each one has its own limit in test_by_test.py
WALL_MAX_S = 600
WALL_SPARE_S, WALL_TIMES = 120, 10  # a mutant that waits for ever ends after so much, and so many times what its tests take without it
CACHE = os.path.join(ROOT, ".cache", "mutate")
COPIED = ("core", "ports", "tools", "c_accel", "boards", "firmware", "tests", "build", ".ci")
PACKAGES = ("core", "ports", "tools", "c_accel", "boards", "firmware")
KILLER = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Mutant:
    """A mutation of a file. `verdict`: "killed", "killed by its time", or "survived"; `by`: the test that did it; `reached`: a unit test
    runs the line."""

    def __init__(self, path, source, mutation):
        self.path = path
        self.source = source
        self.mutation = mutation
        self.verdict = ""
        self.by = ""
        self.reached = False
        self.files = 0

    def place(self):
        return f"{self.path}:{self.mutation.line}"

    def sentence(self):
        return self.mutation.sentence(self.source)


def elsewhere(path):
    """Why the fast legs cannot be asked about a file, or ''."""
    posix = path.replace(os.sep, "/")
    return next((why for start, why in ELSEWHERE if posix.startswith(start)), "")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def write(place, path, text):
    with open(os.path.join(place, path), "w", encoding="utf-8") as file:
        file.write(text)


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


# Copies of the tree, and tests in them


def make_copy(parent):
    """A copy of the tree, the folder `leveret` in the new directory `parent`: Python finds it there before the checkout."""
    place = os.path.join(parent, "leveret")
    os.makedirs(place)
    for name in os.listdir(ROOT):
        path = os.path.join(ROOT, name)
        if name in COPIED and os.path.isdir(path):
            shutil.copytree(path, os.path.join(place, name), symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        elif os.path.isfile(path):
            shutil.copyfile(path, os.path.join(place, name))
    for name in (".cache", ".venv"):
        if os.path.isdir(os.path.join(ROOT, name)):
            os.symlink(os.path.join(ROOT, name), os.path.join(place, name))
    # Compiled files say of which text they are: one that is changed within a second of the other is compiled anew.
    for name in PACKAGES:
        compileall.compile_dir(os.path.join(place, name), quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    return place


def _environment(place, temporary):
    given = dict(
        os.environ,
        PYTHONPATH=os.path.dirname(place),
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONHASHSEED="1",
        TMPDIR=temporary,
        LEVERET_FUZZ_SEED="1",
        LEVERET_KILL_SEED="1",
        LEVERET_SPARK_SEED="1",
        LEVERET_CABLE_SEED="1",
        LEVERET_ATTACK_SEED="1",
    )
    given.pop("LEVERET_SHARED", None)
    return given


class Ended(Exception):
    """The run is over: no test is begun any more."""


class Running:
    """The tests that run now, each the leader of a group of processes; `end` kills them all."""

    def __init__(self):
        self.lock = threading.Lock()
        self.children = set()
        self.is_over = False

    def start(self, command, **options):
        """A child in a group of its own. Raises Ended when the run is over."""
        with self.lock:
            if self.is_over:
                raise Ended
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
            self.children.add(child)
            return child

    def stop(self, child):
        """Kill a child and what it has left behind in its group, and collect it."""
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        with self.lock:
            self.children.discard(child)

    def end(self):
        """Kill every group: the threads that wait for them go on, and can begin no other."""
        with self.lock:
            self.is_over = True
            for child in self.children:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


RUNNING = Running()


def in_threads(count, work, items, tell):
    """Call `work` for every item, in `count` threads, and `tell` with each answer as it comes. An exception here, as a signal's is, ends
    what the threads run, begins nothing more, and is raised when they have ended."""
    pool = concurrent.futures.ThreadPoolExecutor(count)
    try:
        for done in concurrent.futures.as_completed([pool.submit(work, item) for item in items]):
            tell(done.result())
    except BaseException:  # signals too: no test may stay behind
        pool.shutdown(wait=False, cancel_futures=True)
        RUNNING.end()
        raise
    finally:
        pool.shutdown()


def run_child(place, command, cpu_s, wall_s):
    """(exit status, output, seconds) of a program in a copy; the status None: it did not end in its time.

    The limit is the processor's time, so that a busy machine kills no mutant; the wall clock's limit is for what waits for ever.
    """

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))

    before = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leveret-mutant-", ignore_cleanup_errors=True) as temporary:
        child = RUNNING.start(
            command,
            cwd=place,
            env=_environment(place, temporary),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=limit,
        )
        try:
            output = child.communicate(timeout=wall_s)[0].decode("utf-8", "replace")
            status = None if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else child.returncode
        except subprocess.TimeoutExpired:
            output, status = "", None
        finally:
            RUNNING.stop(child)  # what the tests have left behind is in their group, or ends with its pipes
            child.stdout.close()
    return status, output, time.monotonic() - before


def run_tests(place, files, cpu_s, wall_s=WALL_MAX_S):
    """run_child of pytest over `files`."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=line", "--no-header", *files]
    return run_child(place, command, cpu_s, wall_s)


def run_units(place, request, wall_s):
    """(exit status, output, what test_by_test.py says to a request: a list whose last is the answer)."""
    asked, answered = os.path.join(place, "request.json"), os.path.join(place, "answers.json")
    with open(asked, "w") as file:
        json.dump(request, file)
    program = os.path.join(os.path.dirname(os.path.abspath(test_by_test.__file__)), "test_by_test.py")  # the checkout's: no mutant
    status, output, _ = run_child(place, [sys.executable, program, asked, answered], UNIT_CPU_MAX_S, wall_s)
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


def measure(copies):
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

    parts = [part for part in (unknown[number :: copies.qsize()] for number in range(copies.qsize())) if part]
    in_threads(copies.qsize(), lambda part: with_copy(copies, lambda place: _measure(place, part)), parts, tell)
    measured = {name: each for name, each in sorted(measured.items()) if each is not None}
    if len(measured) < len(files) // 2 or not files:
        sys.exit("Most unit tests fail in a copy of the tree without a mutant: run `dev.py test unit` first.")
    return measured


def with_copy(copies, work):
    place = copies.get()
    try:
        return work(place)
    finally:
        copies.put(place)


class Judge:
    """Runs the tests for mutants, in copies of the tree."""

    def __init__(self, copies, measured):
        self.copies = copies
        self.measured = measured
        folders = [path for name in OTHER_LEGS for leg in legs.LEGS if leg.name == name for path in leg.paths]
        slow = {path for path in check.python_files(*folders) if NOT_FAST.search(read(path))}
        self.nearest = nearest.Nearest(folders, PRODUCT, OTHERS_MAX, slow)
        self.lock = threading.Lock()
        self.plains = "others-" + _digest(check.python_files(*PRODUCT, *folders))
        self.good = kept(self.plains) or {}  # test file of another leg -> seconds without a mutant, or None: it cannot be asked
        self.state = "verdicts-" + _digest(check.python_files(*PRODUCT, "tests"))
        self.verdicts = kept(self.state) or {}  # place and sentence of a mutant -> verdict, what killed it, reached, test files

    def plain(self, place, file):
        """Seconds that a test file of another leg takes without a mutant, or None: it fails even so, or takes too long."""
        with self.lock:
            if file in self.good:
                return self.good[file]
        status, _, seconds = run_tests(place, [file], PLAIN_MAX_S)
        with self.lock:
            self.good[file] = seconds if status == 0 else None
            keep(self.plains, self.good)
        return self.good[file]

    def judge(self, mutant, step):
        """The mutant after a step: `in_units` or `in_others`; what is known already is not asked again."""
        name = f"{mutant.place()} {mutant.sentence()}"
        known = self.verdicts.get(name)
        if known is not None:
            mutant.verdict, mutant.by, mutant.reached, mutant.files = known
            return mutant
        with_copy(self.copies, lambda place: step(place, mutant))
        if mutant.verdict:
            with self.lock:
                self.verdicts[name] = [mutant.verdict, mutant.by, mutant.reached, mutant.files]
                keep(self.state, self.verdicts)
        return mutant

    def units(self, mutant):
        """[[test file, test, seconds], ...]: the unit tests for a mutant, in the order of the text above; and whether one runs its line."""
        line, path = test_by_test.statement_of(mutant.source, mutant.mutation.line), mutant.path
        near, far = [], []
        for file, record in self.measured.items():
            for name, (seconds, lines) in record["tests"].items():
                if line in lines.get(path, ()) if line else path in lines:
                    near.append((-len(lines[path]) / sum(map(len, lines.values())), seconds, file, name))
                elif not line and path in record["imported"]:
                    far.append((0, seconds, file, name))
        return [[file, name, seconds] for _, seconds, file, name in sorted(near) + sorted(far)], bool(near)

    def in_units(self, place, mutant):
        """Ask the unit tests; without a verdict where none fails."""
        tests, mutant.reached = self.units(mutant)
        if tests:
            self._kills_units(place, mutant, tests)

    def in_others(self, place, mutant):
        """Ask the nearest tests of the other legs, of a mutant that lives through the unit tests."""
        for file in self.nearest.files(mutant.path):
            seconds = self.plain(place, file)
            if seconds is not None and self._kills(place, mutant, file, seconds):
                return
        mutant.verdict = "survived"

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

    def _kills(self, place, mutant, file, seconds):
        """Whether a test file of another leg fails with the mutant in this copy, which is whole again afterwards."""
        mutant.files += 1
        with in_copy(place, mutant):
            status, output, _ = run_tests(place, [file], CPU_SPARE_S + 5 * seconds, WALL_SPARE_S + WALL_TIMES * seconds)
        if status == 0:
            return False
        killer = KILLER.search(output)
        mutant.verdict = "killed by its time" if status is None else "killed"
        mutant.by = killer.group(1) if killer else file
        return True


@contextlib.contextmanager
def in_copy(place, mutant):
    """The mutant stands in a copy of the tree for a while."""
    try:
        write(place, mutant.path, mutations.apply(mutant.source, mutant.mutation))
        yield
    finally:
        write(place, mutant.path, mutant.source)


# What is told


def table(mutants):
    """The lines of the table: for each folder and kind of change how many were made, killed, and survived."""
    rows = [("of", "mutants", "killed", "by their time", "survived", "killed")]
    for title, groups in (
        ("folder", sorted({mutant.path.split(os.sep)[0] for mutant in mutants})),
        ("kind", sorted({mutant.mutation.kind for mutant in mutants})),
        ("", ("all",)),
    ):
        for group in groups:
            chosen = [
                mutant
                for mutant in mutants
                if title == "" or group == (mutant.mutation.kind if title == "kind" else mutant.path.split(os.sep)[0])
            ]
            verdicts = [mutant.verdict for mutant in chosen]
            survived = verdicts.count("survived")
            rows.append(
                (
                    group,
                    str(len(chosen)),
                    str(verdicts.count("killed")),
                    str(verdicts.count("killed by its time")),
                    str(survived),
                    "%.0f %%" % (100 * (len(chosen) - survived) / len(chosen)),
                )
            )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0])] + [row[column].rjust(widths[column]) for column in range(1, len(row))]) for row in rows]


def told(mutants, seed, drawn=0):
    """Everything that is said at the end. `drawn`: how many there are of which these are judged."""
    lines = [
        f"{mutant.place()}  {mutant.sentence()}  SURVIVED"
        + ("" if mutant.reached else " (no unit test runs this line)")
        + f", {mutant.files} test files passed"
        for mutant in mutants
        if mutant.verdict == "survived"
    ]
    survived = len(lines)
    left_out = [f"  {start}*: {why}" for start, why in ELSEWHERE]
    return (
        ["", f"Survivors ({survived}):" if survived else "No survivors."]
        + lines
        + ["", "Not drawn from:"]
        + left_out
        + ["  docstrings, texts, annotations, lines that end processes or remove files: see tools/devtool/mutations.py", ""]
        + table(mutants)
        + ["", f"{len(mutants) - survived} of {len(mutants)} mutants died (seed {seed}, at least {100 * WANTED:.0f} % are to)"]
        + [f"{drawn - len(mutants)} of {drawn} have no verdict yet; those that live through the unit tests come last"]
        * (drawn > len(mutants))
    )


def run(count, seed):
    """The exit status: 0 when enough of the mutants died."""
    mutants = draw(count, seed)
    print(f"{len(mutants)} mutants, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="leveret-mutate-", ignore_cleanup_errors=True) as directory:
        copies: queue.SimpleQueue = queue.SimpleQueue()
        for number in range(os.cpu_count() or 1):
            copies.put(make_copy(os.path.join(directory, str(number))))
        judge = Judge(copies, measure(copies))
        judged: list = []
        left: list = []

        def tell(mutant):
            if not mutant.verdict:
                left.append(mutant)
                print(f"  {mutant.place()}  {mutant.sentence()}  lives through {mutant.files} files of unit tests", flush=True)
                return
            judged.append(mutant)
            print(f"[{len(judged)}/{len(mutants)}] {mutant.place()}  {mutant.sentence()}  {mutant.verdict} {mutant.by}", flush=True)

        try:
            in_threads(copies.qsize(), lambda mutant: judge.judge(mutant, judge.in_units), mutants, tell)
            in_threads(copies.qsize(), lambda mutant: judge.judge(mutant, judge.in_others), list(left), tell)
        except BaseException:  # a signal too: what is known so far is told
            if judged:
                print("\n".join(told(judged, seed, len(mutants))), flush=True)
            raise
    print("\n".join(told(mutants, seed)), flush=True)
    survived = sum(mutant.verdict == "survived" for mutant in mutants)
    return 0 if mutants and len(mutants) - survived >= WANTED * len(mutants) else 1


def main():
    parser = argparse.ArgumentParser(prog="tools/dev.py mutate", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=50, metavar="N", help="how many mutants (default 50)")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="draws the same mutants again")
    options = parser.parse_args()
    if options.count < 1:
        parser.error("--count must be 1 or more")
    os.nice(10)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    try:
        return run(options.count, random.SystemRandom().randint(1, 1 << 31) if options.seed is None else options.seed)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


def leave(number, _):
    """Told to end: leave through in_threads, which ends the tests, and through what removes the copies."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())

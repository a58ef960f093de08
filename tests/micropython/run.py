"""Runs plain test files inside MicroPython: `python tests/micropython/run.py [--interpreter wasm|unix|all] [files...]`.

Without files: tests/unit/test_*.py, which run on both interpreters, tests/memory/device_*.py, which ask for what only MicroPython has, and
tests/simulate/device_*.py, a part of what is simulated on CPython.
Each file gets an interpreter of its own (a fresh heap, and a hang or a crash costs one file). A file may say `HEAP_KB = n` at its top
level: it then runs with n KiB of heap free and no more to be had; only the WebAssembly build can do that, so the unix build leaves it out.

Failures are: a test that raises, a file that cannot be imported, holds no test, or holds a test that was not run, an interpreter that ends
early or is not done in time. The last line is `N passed, N failed`; exit status 0 only if nothing failed and something passed.
Where an interpreter asked for by name is missing the exit status is 2; `all` goes on with those that are there, but wants WebAssembly.
Standard library only.
"""

import argparse
import ast
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import stage
import toolchain

MARK = "\x1e"
FILE_TIMEOUT_S = 600
OUTPUT_TAIL = 2000
EXIT_FAILED, EXIT_MISSING = 1, 2


class Outcome:
    """What one test file came to: `passed` names, `failed` pairs (what, trace)."""

    def __init__(self):
        self.passed = []
        self.failed = []
        self.interpreter = ""
        self.seconds = 0.0


def expectations(path):
    """(names of the test functions written in the file, its HEAP_KB or 0); raises SyntaxError."""
    with open(path, encoding="utf-8") as file:
        body = ast.parse(file.read(), path).body
    names = [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")]
    heap_kb = 0
    for node in body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "HEAP_KB":
            heap_kb = ast.literal_eval(node.value)
    return names, heap_kb


def device_directory(path):
    return "/tests/" + os.path.basename(os.path.dirname(path))


class WebAssembly:
    """The official WebAssembly build under node."""

    name = "WebAssembly build"
    bounds_heap = True

    def __init__(self):
        self.node, self.package = toolchain.webassembly()

    def command(self, staged, path, heap_kb):
        script = os.path.join(stage.HERE, "run_tests.mjs")
        return [*self.node, script, self.package, staged, device_directory(path), module_name(path), str(heap_kb)]

    def environment(self, staged):
        return None


HEAP_MB = 64  # of the unix build: some tests have brokers larger than its default of 2 MB


class Unix:
    """A `micropython` binary on the PATH."""

    name = "unix build"
    bounds_heap = False

    def __init__(self):
        self.binary = toolchain.unix()

    def command(self, staged, path, heap_kb):
        program = "import device_runner; device_runner.main(%r, %r)" % (staged + device_directory(path), module_name(path))
        return [self.binary, "-X", "heapsize=%dm" % HEAP_MB, "-c", program]

    def environment(self, staged):
        return dict(os.environ, MICROPYPATH=os.path.join(staged, "lib"))


def module_name(path):
    return os.path.splitext(os.path.basename(path))[0]


def execute(command, environment, timeout_s):
    """(output text, what went wrong or ""); the process is ended at the time-out."""
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode("utf-8", "replace"), "not done in %g s: it hangs" % timeout_s
    trouble = "the interpreter ended with status %d" % done.returncode if done.returncode != 0 else ""
    return done.stdout.decode("utf-8", "replace"), trouble


def events_of(output):
    """(events, everything else that was printed)."""
    events, rest = [], []
    for line in output.split("\n"):
        text, mark, record = line.partition(MARK)
        if mark:
            events.append(json.loads(record))
        if text:
            rest.append(text)
    return events, "\n".join(rest)


def judge(outcome, events, trouble, printed, expected):
    """Fill `outcome` from what the inside reported and from what it did not."""
    loaded = None
    for event in events:
        if event["event"] == "interpreter":
            outcome.interpreter = "%s, %s" % (event["version"], event["build"])
        elif event["event"] == "loaded":
            loaded = event["tests"]
        elif event["event"] == "not_imported":
            outcome.failed.append(("cannot be imported", event["trace"]))
        elif event["event"] == "passed":
            outcome.passed.append(event["test"])
        elif event["event"] == "failed":
            outcome.failed.append((event["test"], event["trace"]))
    done = set(outcome.passed) | {name for name, _ in outcome.failed}
    missed = sorted((set(expected) | set(loaded or ())) - done)
    if trouble:
        what = missed[0] if loaded and missed else "the file"
        outcome.failed.append((what, "%s\n%s" % (trouble, printed[-OUTPUT_TAIL:])))
    elif loaded is not None and missed:
        outcome.failed.append((", ".join(missed), "written in the file but not run"))
    elif loaded == []:
        outcome.failed.append(("the file", "holds no test"))
    elif not outcome.passed and not outcome.failed:
        outcome.failed.append(("the file", "nothing was reported\n%s" % printed[-OUTPUT_TAIL:]))


def run_file(interpreter, staged, path, heap_kb, timeout_s):
    """Run one test file: its Outcome, or None where it asks for a bounded heap and this interpreter cannot."""
    outcome = Outcome()
    started = time.monotonic()
    try:
        expected, own_heap_kb = expectations(path)
    except (OSError, SyntaxError, ValueError) as error:
        outcome.failed.append(("the file", "cannot be read: %s" % error))
        return outcome
    heap_kb = heap_kb or own_heap_kb
    if heap_kb and not interpreter.bounds_heap:
        return None
    command = interpreter.command(staged, path, heap_kb)
    output, trouble = execute(command, interpreter.environment(staged), timeout_s)
    events, printed = events_of(output)
    judge(outcome, events, trouble, printed, expected)
    outcome.seconds = time.monotonic() - started
    return outcome


def show(path, outcome):
    name = os.path.relpath(path, stage.ROOT)
    print("%s: %d passed, %d failed (%.1f s)" % (name, len(outcome.passed), len(outcome.failed), outcome.seconds))
    for what, trace in outcome.failed:
        print("  FAILED %s" % what)
        for line in trace.rstrip().splitlines():
            print("    " + line)
    sys.stdout.flush()


def run_all(interpreter, paths, heap_kb, timeout_s):
    """(passed, failed) over all files on one interpreter."""
    passed = failed = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leveret-micropython-") as staged:
        stage.make(staged, {os.path.dirname(path) for path in paths})
        for number, path in enumerate(paths):
            outcome = run_file(interpreter, staged, path, heap_kb, timeout_s)
            if outcome is None:
                print("%s: left out, it asks for a bounded heap" % os.path.relpath(path, stage.ROOT))
                continue
            if number == 0:
                print("%s: %s" % (interpreter.name, outcome.interpreter or "did not start"))
            show(path, outcome)
            passed += len(outcome.passed)
            failed += len(outcome.failed)
    print("%s: %d files in %.1f s" % (interpreter.name, len(paths), time.monotonic() - started))
    return passed, failed


def interpreters(wanted):
    """The interpreters to run on; says in one sentence what is left out. Raises Missing where one asked for by name is not there."""
    found = []
    if wanted in ("wasm", "all"):
        found.append(WebAssembly())
    if wanted == "unix":
        found.append(Unix())
    elif wanted == "all":
        try:
            found.append(Unix())
        except toolchain.Missing as missing:
            toolchain.say("micropython: %s" % missing)
    return found


def arguments():
    parser = argparse.ArgumentParser(description="Run the plain test files inside MicroPython.")
    parser.add_argument("files", nargs="*", help="test files; without: tests/unit/test_*.py, device_*.py of tests/memory, tests/simulate")
    parser.add_argument("--interpreter", choices=("wasm", "unix", "all"), default="all")
    parser.add_argument("--heap-kb", type=int, default=0, help="leave so many KiB of heap free, and no more (WebAssembly build)")
    parser.add_argument("--timeout", type=float, default=FILE_TIMEOUT_S, metavar="SECONDS", help="for each file")
    return parser.parse_args()


def default_files():
    patterns = (("unit", "test_*.py"), ("memory", "device_*.py"), ("simulate", "device_*.py"), ("durable", "device_*.py"))
    return [path for pattern in patterns for path in sorted(glob.glob(os.path.join(stage.ROOT, "tests", *pattern)))]


def main():
    options = arguments()
    paths = [os.path.abspath(path) for path in options.files] or default_files()
    try:
        chosen = interpreters(options.interpreter)
    except toolchain.Missing as missing:
        print("micropython: %s" % missing)
        return EXIT_MISSING
    passed = failed = 0
    for interpreter in chosen:
        counts = run_all(interpreter, paths, options.heap_kb, options.timeout)
        passed, failed = passed + counts[0], failed + counts[1]
    print("%d passed, %d failed" % (passed, failed))
    return EXIT_FAILED if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

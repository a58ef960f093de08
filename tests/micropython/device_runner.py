"""Runs the tests of one file inside MicroPython.

A test file holds plain functions `test_*()` with bare asserts. What a file does wrong is reported, never skipped: a test that takes
arguments, a test that returns something (a generator never ran), a class `Test*`.

Each test is a call of its own from outside (`run`, then `tell`): the WebAssembly build collects garbage only when control goes back to
JavaScript, and a report needs memory that the test may have used up.

What it says goes to standard output as lines: the mark 0x1e and a JSON object. `main` drives it on the unix port.
"""

import gc
import io
import json
import sys

_MARK = "\x1e"
_tests = []
_failure = None


def report(fields):
    print(_MARK + json.dumps(fields))


def trace_of(error):
    out = io.StringIO()
    sys.print_exception(error, out)
    return out.getvalue()


def about():
    """Report the interpreter."""
    report({"event": "interpreter", "version": sys.version.split("; ")[-1], "build": getattr(sys.implementation, "_machine", sys.platform)})


def load(directory, name):
    """Import test file `name` of `directory`; returns its number of tests, 0 where it cannot be imported."""
    sys.path.insert(0, directory)
    try:
        module = __import__(name)
    except BaseException as error:  # whatever it is, it is reported
        report({"event": "not_imported", "trace": trace_of(error)})
        return 0
    for attribute in sorted(dir(module)):
        if attribute.startswith("test_") or attribute.startswith("Test"):
            _tests.append((attribute, getattr(module, attribute)))
    report({"event": "loaded", "tests": [attribute for attribute, _ in _tests]})
    return len(_tests)


def run(index):
    """Run test number `index`; the outcome is kept for `tell`."""
    global _failure
    _failure = None
    try:
        if isinstance(_tests[index][1], type):
            raise TypeError("a class is not run here: write plain test functions")
        if _tests[index][1]() is not None:
            raise TypeError("the test returned something: it is a generator, or checks nothing")
    except BaseException as error:  # whatever it is, it is reported
        _failure = error
    gc.collect()


def tell(index):
    """Report the outcome of `run(index)`."""
    name = _tests[index][0]
    if _failure is None:
        report({"event": "passed", "test": name})
    else:
        report({"event": "failed", "test": name, "trace": trace_of(_failure)})
    gc.collect()


def main(directory, name):
    about()
    for index in range(load(directory, name)):
        run(index)
        tell(index)

"""Runs the `check_*` functions of a module one after another: what each came to, by its name without `check_`."""

import traceback

PASSED = "passed"


def run(module, *given):
    """{name: "passed", or the last line of what went wrong}. Each function gets `given`."""
    outcome = {}
    for name, function in list(vars(module).items()):  # in the order of the file
        if name.startswith("check_"):
            outcome[name.removeprefix("check_")] = told(function, given)
    return outcome


def told(function, given):
    """ "passed", or why not, with the place."""
    try:
        function(*given)
    except Exception as error:  # whatever a check raises is its outcome; the next one goes on
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"failed: {type(error).__name__}: {str(error)[:400]} ({place.name}, line {place.lineno}: {place.line})"
    return PASSED

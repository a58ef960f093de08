"""A plugin of pytest for a copy of the tree in which some statements tell of themselves (reaching.py): after each test it notes which did.

It says to `answers` beside the copy, a line of JSON for each test: [name, seconds of the clock, it has passed, marks].
"""

import json
import os
import time

import pytest

BESIDE = os.path.dirname(os.getcwd())
MARKS, ANSWERS = os.path.join(BESIDE, "marks"), os.path.join(BESIDE, "answers")
failed: set = set()


def pytest_runtest_logreport(report):
    if report.failed:
        failed.add(report.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    for name in os.listdir(MARKS):
        os.remove(os.path.join(MARKS, name))
    began = time.monotonic()
    yield
    with open(ANSWERS, "a") as file:
        answer = [item.nodeid, time.monotonic() - began, item.nodeid not in failed, sorted(os.listdir(MARKS))]
        file.write(json.dumps(answer) + "\n")

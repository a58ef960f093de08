"""Runs each suite once, against a `leveret serve` of its own, when the first of its tests is asked for."""

import pytest
import suites


class Runs:
    """What came of the suites: (outcome, what the broker wrote), each run once."""

    def __init__(self):
        self.done = {}

    def of(self, name):
        needs = suites.SUITES[name].needs
        if needs is not None and not needs.present():
            pytest.skip(needs.sentence())
        if name not in self.done:
            try:
                self.done[name] = suites.run(name, "leveret")
            except Exception as error:  # every test of the suite is told the same, and the suite is not run again for each
                self.done[name] = error
        if isinstance(self.done[name], Exception):
            raise self.done[name]
        return self.done[name]


@pytest.fixture(scope="session")
def runs():
    return Runs()

"""Each conformance test that the text of AMQP 0.9r1 names (conformance_0_9r1.txt) is one test of that name with its reply code."""

import os
import re

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def listed():
    """[(name, reply code or "-", guideline)]."""
    with open(os.path.join(HOME, "tools", "conformance_0_9r1.txt"), encoding="utf-8") as file:
        return [tuple(line.strip().split(" | ")) for line in file]


def written():
    """{name: [the lines of each test of that name]}, in all of tests/unit."""
    found: dict = {}
    folder = os.path.join(HOME, "unit")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for test, body in re.findall(r"^def test_(amq_wlp_\w+)\(\):\n((?:    .*\n|\n)+)", file.read(), re.MULTILINE):
                    found.setdefault(test, []).append(body)
    return found


def test_every_conformance_test_of_the_text_is_there_once_and_no_other():
    names = [name for name, _, _ in listed()]
    assert len(names) == len(set(names)) == 17
    assert sorted(names) == sorted(test for test, bodies in written().items() for _ in bodies)


def test_each_looks_for_the_reply_code_of_its_guideline():
    bodies = written()
    for name, code, _ in listed():
        if code != "-":
            assert re.search(r"closed\(%s, 0\)" % code, bodies[name][0]), (name, code)

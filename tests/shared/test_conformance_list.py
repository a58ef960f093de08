"""The list of conformance tests in tests/tools/conformance_0_9r1.txt is what the text of AMQP 0.9r1 (../shared/specs) says."""

import os
import re

from leveret.tools import generate_spec

TEXT = "amqp-0.9r1-technical-specifications.txt"
LIST = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "conformance_0_9r1.txt")


def entries(text):
    """The lines of the list: name, reply code or -, and the guideline that names the test."""
    for paragraph in re.split(r"\n\s*\n", text):
        words = " ".join(paragraph.split())
        if "Conformance test:" not in words:
            continue
        guideline, name = re.fullmatch(r"- (.*) Conformance test: (\w+)\.", words).groups()
        code = re.search(r"reply code (\d+)", guideline)
        yield "%s | %s | %s\n" % (name, code.group(1) if code else "-", guideline)


def test_the_list_is_the_text():
    with open(os.path.join(os.path.dirname(str(generate_spec.TABLES)), TEXT), encoding="utf-8") as file:
        wanted = list(entries(file.read()))
    with open(LIST, encoding="utf-8") as file:
        assert list(file) == wanted

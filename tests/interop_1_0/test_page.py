"""The example of AMQP 1.0 in ports/CLIENTS.md runs as it stands."""

import os
import subprocess

import pytest

from leveret.tools.devtool import pages

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = "/usr/bin/python3"


def test_the_example_of_proton(leveret):
    if subprocess.run([PYTHON, "-c", "import proton"], capture_output=True).returncode:
        pytest.skip("Debian's python3-qpid-proton is missing")
    with open(os.path.join(ROOT, "ports", "CLIENTS.md"), encoding="utf-8") as file:
        (example,) = [each for each in pages.fences(file.read(), "python") if "import BlockingConnection" in each]
    done = subprocess.run([PYTHON, "-c", example.replace(":5672", ":%d" % leveret.port)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "b'21.5'\n", done.stderr

"""The protocol tables in core/ are what the specifications' tables of the workplace (../shared/specs) give."""

import subprocess
import sys

from leveret.tools import generate_spec


def test_the_tables_in_the_tree_are_what_the_specifications_give():
    assert generate_spec.TABLES.is_dir()
    done = subprocess.run([sys.executable, generate_spec.__file__, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_table_that_differs_is_named(monkeypatch, capsys):
    monkeypatch.setattr(generate_spec, "HEAD", generate_spec.HEAD + "# another\n")
    assert generate_spec.main(["--check"]) == 1
    assert "core/amqp_0_9/spec_0_9_1.py" in capsys.readouterr().out

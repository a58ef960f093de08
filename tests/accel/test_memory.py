"""What a form of the hot functions takes beside the broker's tables is counted before `leveret serve` starts."""

import argparse

from leveret import c_accel
from leveret.core.limits import Limits
from leveret.tools import memory, serve


def test_serve_counts_what_c_takes_and_nothing_for_plain_python(monkeypatch):
    limits = Limits()
    in_c = memory.total(limits)
    monkeypatch.setenv(c_accel.VARIABLE, "0")
    assert in_c - memory.total(limits) == c_accel.Engine.memory(limits) > 0


def test_plain_python_has_larger_blocks_unless_the_file_says_otherwise(monkeypatch, tmp_path):
    """It moves a body block by block: a third less of them. What a queued message takes is C's affair."""
    file = tmp_path / "leveret.toml"
    file.write_text("[limits]\nblock_size = 128\n")
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)

    def block_size(*words):
        return serve.settings(parser.parse_args(words))[1].block_size

    assert block_size() == Limits().block_size
    monkeypatch.setenv(c_accel.VARIABLE, "0")
    assert block_size() == serve.PLAIN_BLOCK_SIZE > Limits().block_size
    assert block_size("--config", str(file)) == 128

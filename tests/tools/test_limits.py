"""`leveret limits`: what the memory adds up to and, with --all, every limit with its number, unit and range (tools/limits.py)."""

import argparse

from leveret.core.limit_words import WORDS
from leveret.core.limits import ROWS
from leveret.tools import limits, memory, serve


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    limits.add_arguments(parser)
    return parser.parse_args(arguments)


def printed(capsys, *arguments):
    """(exit status, lines) of the command."""
    status = limits.run(parsed(*arguments))
    return status, capsys.readouterr().out.splitlines()


def test_where_the_memory_goes_is_printed_and_with_all_every_limit_behind_it(capsys):
    addresses, chosen, others = serve.settings(parsed())
    status, short = printed(capsys)
    assert status == 0 and short == list(memory.table(memory.parts(chosen, addresses, *others))) and "in all" in short[-1]
    status, whole = printed(capsys, "--all")
    assert status == 0 and whole[: len(short)] == short
    rows = whole[len(short) :]
    assert len(rows) == len(ROWS)
    for (name, _, _, least, most), row in zip(ROWS, rows):
        assert row.startswith(name + " = ") and row.endswith("  # %s, %d to %d" % (WORDS[name][0], least, most))
        assert int(row.split()[2]) == getattr(chosen, name)

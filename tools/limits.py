"""`leveret limits`: the limits that `leveret serve` has with the same options, and where the memory goes when every one is reached.

It listens nowhere and opens no directory.
"""

from leveret.core.limit_words import WORDS
from leveret.core.limits import ROWS

from . import memory, serve


def add_arguments(parser):
    """The limits of `leveret serve`."""
    serve.add_arguments(parser)
    parser.add_argument("--all", action="store_true", help="every limit too: its number, unit and range")


def run(options):
    """Print; the exit status."""
    addresses, limits, others = serve.settings(options)
    for line in memory.table(memory.parts(limits, addresses, *others)):
        print(line)
    if options.all:
        for name, _, _, least, most in ROWS:
            print(f"{name} = {getattr(limits, name)}  # {WORDS[name][0]}, {least} to {most}")
    return 0

"""Signals that wait: while a child is being started, being told to end must not lose sight of it.

A signal's handler raises where it happens to be; between a child's birth and the line that notes it, nobody would end that child.
For the main thread only. What arrives meanwhile is delivered at the end of the `with` block.
"""

import signal

HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HeldSignals:
    """`with HeldSignals():` start a child and note it."""

    def __enter__(self):
        self._arrived: list = []
        # A handler, not SIG_IGN or a mask: a child would inherit those.
        self._before = [(number, signal.signal(number, lambda number, _: self._arrived.append(number))) for number in HELD]
        return self

    def __exit__(self, *_):
        for number, handler in self._before:
            signal.signal(number, handler)
        for number in self._arrived:
            signal.raise_signal(number)

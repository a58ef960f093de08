"""What a session's publishes came to, until its peer may be told: an answer says that the log is durable up to what it had got by then.

A family counts its publishes and hands each to `taken`, in their order; `runs` are those that may be answered now, as ranges: 0-9-1 makes
acknowledgements of them, 1.0 dispositions, 0-10 completed ranges. A publish of which nothing is logged waits for no sync but that of the
publish before it. Numbers count up by one and wrap at 30 bits; there are fewer than half as many that wait.
"""

from ..memory.layout import MASK

FIRST = 0  # places of a run
LAST = 1
OUTCOME = 2
NEEDS = 3  # what has to be durable in the log before


class Promises:
    """Of one session of `protocol` (contract.Protocol)."""

    def __init__(self, protocol):
        self.protocol = protocol
        self.journal = protocol.connection.broker.journal
        self.needs = 0  # of the last publish
        self.waiting = []  # runs that nobody was told of

    def logged(self):
        """The log has got something of the publish, or the publishes, that `taken` is to hear of next."""
        self.needs = self.journal.last()

    def taken(self, number, outcome, first=None):
        """The publishes from `first` (None: this one) to `number` came to `outcome`: whatever of outcomes.py the family tells apart."""
        needs = self.needs
        if self.waiting:
            run = self.waiting[-1]
            # What the log has not begun to write is written with what it got since then.
            if run[OUTCOME] == outcome and (run[NEEDS] == needs or run[NEEDS] > self.journal.log.begun):
                run[LAST] = number
                run[NEEDS] = needs
                return
        self.waiting.append([number if first is None else first, number, outcome, needs])

    def runs(self):
        """[(first, last, outcome)] whose sync is done, in their order; the protocol goes on when the next ones are durable. Each
        stays until `told`."""
        runs: "list" = []
        for first, last, outcome, needs in self.waiting:
            if self.journal is not None and not self.journal.durable(needs):
                self.journal.wait_for(self.protocol)
                break
            if runs and runs[-1][OUTCOME] == outcome:
                first = runs.pop()[FIRST]
            runs.append((first, last, outcome))
        return runs

    def told(self, number):
        """The peer was told of all publishes up to this one of the first run."""
        while self.waiting and (number - self.waiting[0][LAST]) & MASK <= MASK >> 1:
            self.waiting.pop(0)
        if self.waiting and (number - self.waiting[0][FIRST]) & MASK <= MASK >> 1:
            self.waiting[0][FIRST] = (number + 1) & MASK

"""Outcomes of a session's publishes, until the family may answer them: an answer promises that the log is durable up to that publish.

A family counts its publishes and hands each to `decided`, in their order; `runs` are those that may be answered now, as ranges: 0-9-1 makes
acknowledgements of them, 1.0 dispositions, 0-10 completed ranges. A publish of which nothing is logged waits for no sync but that of the
publish before it. Numbers count up by one and wrap at 30 bits; fewer than half as many wait at a time.
"""

from ..memory.layout import MASK

FIRST = 0  # places of a run
LAST = 1
OUTCOME = 2
NEEDS = 3  # the position up to which the log has to be durable first
ALONE: "list" = [[0, 0, 0]]  # what `runs` gives where one run waits, which is nearly always: no list of its own, which is heap on a board


class Promises:
    """Of one session of `protocol` (contract.Protocol)."""

    def __init__(self, protocol):
        self.protocol = protocol
        self.journal = protocol.connection.broker.journal
        self.needs = 0  # of the last publish
        self.waiting = []  # runs that the family has not answered
        self.spare = None  # a run that was answered, for the next one

    def logged(self):
        """The log has received a record of the publish, or the publishes, that the next `decided` names."""
        self.needs = self.journal.last()

    def decided(self, number, outcome, first=None):
        """The publishes from `first` (None: this one) to `number` came to `outcome`: any outcome of outcomes.py that the family
        distinguishes."""
        needs = self.needs
        if self.waiting:
            run = self.waiting[-1]
            # Records that the log has not begun to write go out with those it received since.
            if run[OUTCOME] == outcome and (run[NEEDS] == needs or run[NEEDS] > self.journal.log.begun):
                run[LAST] = number
                run[NEEDS] = needs
                return
        run, self.spare = self.spare or [0, 0, 0, 0], None
        run[FIRST] = number if first is None else first
        run[LAST] = number
        run[OUTCOME] = outcome
        run[NEEDS] = needs
        self.waiting.append(run)

    def runs(self):
        """[(first, last, outcome)] whose sync is done, in their order; the protocol goes on when the next ones are durable. Each
        stays until `answered`. The list is read before the next call, of any session's."""
        if not self.waiting:
            return ()
        if self.journal is not None and not self.journal.durable(self.waiting[0][NEEDS]):
            self.journal.wait_for(self.protocol)
            return ()
        if len(self.waiting) == 1:
            for place in range(NEEDS):
                ALONE[0][place] = self.waiting[0][place]
            return ALONE
        runs: "list" = []
        for first, last, outcome, needs in self.waiting:
            if self.journal is not None and not self.journal.durable(needs):
                self.journal.wait_for(self.protocol)
                break
            if runs and runs[-1][OUTCOME] == outcome:
                first = runs.pop()[FIRST]
            runs.append((first, last, outcome))
        return runs

    def answered(self, number):
        """The family has answered all publishes of the first run up to this one."""
        while self.waiting and (number - self.waiting[0][LAST]) & MASK <= MASK >> 1:
            self.spare = self.waiting.pop(0)
        if self.waiting and (number - self.waiting[0][FIRST]) & MASK <= MASK >> 1:
            self.waiting[0][FIRST] = (number + 1) & MASK

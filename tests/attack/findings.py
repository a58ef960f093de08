"""Findings: each kind is told once, with its minute, the attackers that were at work, and the command that runs it again."""

import collections
import re
import time

import schedule

FOUND_MAX = 40  # findings that are told at length
PAST_MAX = 60  # attacks that have ended and may have had an effect that shows later


class Findings:
    """`options`: the command line's, with one form."""

    def __init__(self, options):
        self.options = options
        self.form = options.form
        self.rows = {}  # its shape -> [text, minute, attackers, count]
        self.active = {}  # (name, seed) of an attack -> since
        self.past = collections.deque(maxlen=PAST_MAX)  # (name, seed, since, until)
        self.began = time.monotonic()

    def begin(self, name, seed, at):
        """An attack begins."""
        self.active[name, seed] = at

    def end(self, name, seed, at):
        """An attack has ended."""
        self.past.append((name, seed, self.active.pop((name, seed), at), at))

    def at_work(self, since, until):
        """The names of the attackers that were at work at some time from `since` to `until`."""
        rows = list(self.past) + [(*key, began, until) for key, began in self.active.items()]
        return [name for name, _, began, ended in rows if began <= until and ended >= since]

    def found(self, text, at=None, began=None):
        """A finding: told once for each shape, with the minute and who was at work."""
        at = time.monotonic() if at is None else at
        shape = re.sub(r"0x[0-9a-f]+|\d+", "#", text)[:160]
        if shape in self.rows:
            self.rows[shape][3] += 1
            return
        names = sorted(
            {f"{name} {seed}" for name, seed in self.active}
            | {f"{name} {seed}" for name, seed, since, until in self.past if since <= at and until >= (began or at) - 5}
        )
        minute = (at - self.began) / 60
        self.rows[shape] = [text, minute, names, 1]
        if len(self.rows) <= FOUND_MAX:
            self.say(f"FINDING at minute {minute:.2f}: {text}\n    at work: {', '.join(names)}\n    again: {self.again(names)}")

    def again(self, names):
        """The command that runs it again."""
        alone = sorted({name.split()[0] for name in names}) if len(names) <= schedule.LANES + 2 else ()
        only = " ".join(f"--only {name}" for name in alone)
        return f"python3 tools/dev.py attack --form {self.form} --seed {self.options.seed} --minutes {self.options.minutes:g}" + (
            f"    (alone, perhaps: --minutes 0.5 {only})" if only else ""
        )

    def say(self, text):
        """A line with the form in front."""
        print(f"{self.form}: {text}", flush=True)

"""Bridges that change while the broker runs: those whose table has changed end, with what they owe confirmed, and begin anew.

Only bridges that fit the memory the broker began with come up; the others wait for its next start, and it says so.
"""

from .operator_log import WARNING

SPARE = 4  # places in the loop for bridges that come up while the broker runs


class LiveBridges:
    """`bridges`: the Bridges that run, of the `tables` ({name: table}); `begin(settings)` makes further ones; `fits(list of Settings)`:
    whether they have place and memory; `say(sentence, level)`."""

    def __init__(self, bridges, tables, begin, fits, say):
        self.bridges = bridges
        self.tables = tables
        self.begin = begin
        self.fits = fits
        self.say = say
        self.ending = []
        self.coming = []  # Settings that wait for the end of those

    def change(self, tables, settings):
        """Make the bridges those of `settings`, a list with the `tables` that they were read from; what came of it, in words."""
        if tables == self.tables:
            return []
        if not self.fits(settings):
            self.say("[[bridge]] asks for more than this broker has place and memory for now: bridges change with the next start", WARNING)
            return []
        kept = [name for name, table in tables.items() if self.tables.get(name) == table]
        for bridge in self.bridges.bridges:
            if bridge.settings.name not in kept and bridge not in self.ending:
                bridge.stop()
                self.ending.append(bridge)
        self.coming = [each for each in settings if each.name not in kept]
        gone = [name for name in self.tables if name not in tables]
        self.tables = tables
        return [f"{len(self.coming)} bridges begun anew, {len(gone)} ended"]

    def step(self):
        """Go on, when something changes: begin bridges when all that had to end have."""
        if self.ending:
            for bridge in [each for each in self.ending if each.stopped]:
                self.ending.remove(bridge)
                self.bridges.bridges.remove(bridge)
        if self.coming and not self.ending:
            coming, self.coming = self.coming, []
            self.begin(coming)

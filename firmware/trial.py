"""A version that `leveret flash --update` has put on trial (slots.py) is kept once its broker has served for SERVED_MS."""

import sys

from ..core.shim import elapsed
from .say import say

if False:  # for the type checker alone
    from typing import Any

SERVED_MS = 15000
KEPT = "the update is kept"


class Trial:
    """The trial of the version that runs. `gateway`: its Gateway."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.since: "Any" = None  # when it has begun to serve

    def tend(self, now):
        """Keep the version when it has served long enough. Raises OSError: it is tried again."""
        slots = sys.modules["slots"]
        if slots.trial is None or not (self.gateway.loop.listeners or self.gateway.line):
            return
        if self.since is None:
            self.since = now
        elif elapsed(now, self.since) >= SERVED_MS:
            slots.keep()
            say(KEPT)

"""Addresses whose log-ins fail: counted, and refused for a while when they keep failing (0-9-1 section 4.10 asks for a guard of this kind).

Laws: a bounded table; when it is full the address that failed longest ago is forgotten. A log-in that succeeds forgets its address's
failures, because clients behind one address share it. A refused address is looked up once, at accept, and costs nothing else.
"""

from .shim import elapsed


class Failures:
    """`limits`: login_failure_max, login_refusal_ms, login_address_max."""

    def __init__(self, limits):
        self.limits = limits
        self.rows = {}  # address: [failures in a row, time of the last one]
        self.swept = 0

    def failed(self, address, now):
        """A log-in from `address` has failed; true when it is refused from now on. An empty address is nobody's and not counted."""
        if address == "":
            return False
        row = self.rows.get(address)
        if row is None:
            if len(self.rows) >= self.limits.login_address_max:
                self.forget_oldest(now)
            row = self.rows[address] = [0, now]
        if row[0] >= self.limits.login_failure_max:  # connections that were there before it was refused
            return False
        row[0] += 1
        row[1] = now
        return row[0] == self.limits.login_failure_max

    def succeeded(self, address):
        """A log-in from `address` was right."""
        row = self.rows.get(address)
        if row is not None and row[0] < self.limits.login_failure_max:
            del self.rows[address]

    def refuses(self, address):
        """True while nobody may connect from `address`."""
        row = self.rows.get(address)
        return row is not None and row[0] >= self.limits.login_failure_max

    def tick(self, now):
        """Time passes: forget what is older than login_refusal_ms."""
        if not self.rows or 0 <= elapsed(now, self.swept) < 100:
            return
        self.swept = now
        for address in [each for each in self.rows if elapsed(now, self.rows[each][1]) >= self.limits.login_refusal_ms]:
            del self.rows[address]

    def forget_oldest(self, now):
        """Make room for one address."""
        oldest = None
        for address in self.rows:
            if oldest is None or elapsed(now, self.rows[address][1]) > elapsed(now, self.rows[oldest][1]):
                oldest = address
        del self.rows[oldest]

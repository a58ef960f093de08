"""Log-ins that fail: counted for each user at an address, for each address, for each user (0-9-1 section 4.10 asks for such a guard).

Laws, each for login_refusal_ms behind the last failure that counts:
- after login_user_failure_max failures as a user from an address, no log-in as that user succeeds from there: the broker does not check
  the password, and does not count further, so one client with a wrong password does not get its address refused;
- after login_failure_max failures from an address, only users that have logged in from there before may do so; where none has, connections
  are refused at accept: that costs one look-up;
- after as many failures as a user from anywhere, a log-in from an address without an earlier one of that user is answered late,
  right or wrong.
So a peer keeps out only users that share its address. A log-in that succeeds forgets what its own user failed at its own address, and
nothing else: knowing one password allows no more guesses at another. All tables are bounded by login_address_max.
"""

from ..shim import elapsed

NAME_MAX = 32  # characters of a name that count


class Failures:
    """`limits`: login_failure_max, login_user_failure_max, login_refusal_ms, login_address_max, login_timeout_ms.

    Rows: [failures, time of the last one]. An address "" is unknown (a serial line, an interpreter without addresses): it counts nowhere.
    """

    def __init__(self, limits):
        self.limits = limits
        self.at_address = {}  # (network, user's name): row
        self.addresses = {}  # network: row
        self.users = {}  # name: row
        self.good = {}  # (network, user's name) that logged in: a number that is higher the later it was
        self.logins = 0
        self.swept = 0

    def failed(self, address, name, now):
        """A log-in from `address` as `name` (None: none claimed) has failed: returns the sentences for the log."""
        sentences: list = []
        if address == "":
            return sentences
        limits = self.limits
        network = network_of(address)
        seconds = limits.login_refusal_ms // 1000
        if name is not None:
            name = name[:NAME_MAX]
            if self.count(self.users, name, now) == limits.login_failure_max:
                sentences.append(
                    "%d log-ins as %r have failed: from addresses that it has not come from they are answered after %d ms"
                    % (limits.login_failure_max, name, self.late_ms())
                )
            if self.count(self.at_address, (network, name), now) == limits.login_user_failure_max:
                sentences.append(
                    "%d log-ins as %r from %s have failed: they are refused for %d s"
                    % (limits.login_user_failure_max, name, network, seconds)
                )
        if self.count(self.addresses, network, now) == limits.login_failure_max:
            sentences.append("%d log-ins from %s have failed: it is refused for %d s" % (limits.login_failure_max, network, seconds))
        return sentences

    def count(self, rows, key, now):
        """Count a failure in a table; returns how many there are."""
        row = rows.get(key)
        if row is None:
            if len(rows) >= self.limits.login_address_max:
                forget_oldest(rows, now)
            row = rows[key] = [0, now]
        row[0] += 1
        row[1] = now
        return row[0]

    def succeeded(self, address, name):
        """A log-in from `address` as `name` was right."""
        if address == "":
            return
        network = network_of(address)
        name = name[:NAME_MAX]
        row = self.at_address.pop((network, name), None)
        if row is not None:
            for rows, key in ((self.addresses, network), (self.users, name)):
                if key in rows:
                    rows[key][0] -= row[0]
                    if rows[key][0] <= 0:
                        del rows[key]
        key = (network, name)
        if key not in self.good and len(self.good) >= self.limits.login_address_max:
            del self.good[min(self.good, key=lambda each: self.good[each])]
        self.logins += 1
        self.good[key] = self.logins

    def refuses(self, address):
        """True while connections from `address` are refused."""
        if not self.addresses:
            return False
        network = network_of(address)
        return self.is_over(self.addresses, network) and not any(each[0] == network for each in self.good)

    def refuses_user(self, address, name):
        """True while log-ins as `name` from `address` are refused unchecked."""
        if not self.addresses:
            return False
        key = (network_of(address), name[:NAME_MAX])
        row = self.at_address.get(key)
        if row is not None and row[0] >= self.limits.login_user_failure_max:
            return True
        return key not in self.good and self.is_over(self.addresses, key[0])

    def answers_after_ms(self, address, name):
        """Milliseconds that the answer to a checked log-in waits."""
        name = name[:NAME_MAX]
        late = address != "" and self.is_over(self.users, name) and (network_of(address), name) not in self.good
        return self.late_ms() if late else 0

    def late_ms(self):
        """Milliseconds that a late answer waits; it still comes before login_timeout_ms."""
        return self.limits.login_timeout_ms // 2

    def is_over(self, rows, key):
        """True when a row has reached login_failure_max."""
        row = rows.get(key)
        return row is not None and row[0] >= self.limits.login_failure_max

    def tick(self, now):
        """Forget failures older than login_refusal_ms."""
        if self.addresses and not 0 <= elapsed(now, self.swept) < 100:
            self.sweep(now)

    def sweep(self, now):
        """Apart from `tick`, because what a comprehension refers to is heap whenever the function around it is called."""
        self.swept = now
        for rows in (self.at_address, self.addresses, self.users):
            for key in [each for each in rows if elapsed(now, rows[each][1]) >= self.limits.login_refusal_ms]:
                del rows[key]


def forget_oldest(rows, now):
    """Forget the row whose last failure is the oldest."""
    oldest = None
    for key in rows:
        if oldest is None or elapsed(now, rows[key][1]) > elapsed(now, rows[oldest][1]):
            oldest = key
    del rows[oldest]


def network_of(address):
    """The unit that counts as one address: of an IPv6 address its first 64 bits, for a host with one of those addresses has all of them
    (RFC 4291 section 2.5.1); an IPv4 address as it is."""
    if ":" not in address:
        return address
    if address.startswith("::ffff:") and "." in address:
        return address[7:]
    head, gap, tail = address.partition("::")
    groups = head.split(":") if head else []
    if gap:
        behind = tail.split(":") if tail else []
        groups += ["0"] * (8 - len(groups) - len(behind)) + behind
    return ":".join(groups[:4])


def most_numerous(connections):
    """The oldest connection of the address that has most of these: a peer that opens many connections loses its own first."""
    counts: dict = {}
    for each in connections:
        network = network_of(each.address)
        counts[network] = counts.get(network, 0) + 1
    most = max(counts.values())
    for each in connections:
        if counts[network_of(each.address)] == most:
            return each
    return None

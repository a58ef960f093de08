"""`leveret top`: what a running broker does, anew every second, until Ctrl-C.

    leveret top [--seconds N] [--once] [URL]

A head (uptime, connections, messages, memory), how fast it publishes, delivers and settles, and the queues and streams with most messages
with what came and went in a second. `--once` prints it once, without a terminal: for programs `leveret status --json` has more. The live
table needs rich (`pip install "leveret[demo]"`).
"""

import time

from .asking import add_url, answers, manager
from .cli import positive_seconds
from .rows import table, word
from .usage import UsageError

RATES = ("published", "delivered", "settled", "redelivered")
COLUMNS = ("name", "type", "ready", "unsettled", "octets", "consumers", "grows", "full")
ROWS_MAX = 20
REPLY_QUEUES = "amq.rabbitmq.reply-to."


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("--seconds", type=positive_seconds, default=1.0, metavar="N", help="look so often (default 1)")
    parser.add_argument("--once", action="store_true", help="print one look, and end")
    add_url(parser)


class Look:
    """One look at a broker: the overview, counters and rows of queues, at `time.monotonic()`."""

    def __init__(self, asked):
        first, items = asked.pages("overview")
        self.at = time.monotonic()
        self.overview = first["overview"]
        self.counters = {name: count for each in items.get("counters", []) for name, count in each.items()}
        self.messages = {row["name"]: row["messages"] for row in items.get("queues", [])}
        self.messages.update((row["name"], row["next_offset"]) for row in items.get("streams", []))
        self.items = items

    def head(self, before):
        """Lines above the table; rates since the look `before` (None: there are none yet)."""
        memory, totals = self.overview["memory"], self.overview["totals"]
        used = memory["blocks_used"] * memory["block_size"]
        yield (
            f"{self.overview['product']} {self.overview['version']}, up {span(self.overview['uptime_ms'] // 1000)}: "
            f"{totals['connections']} connections, {totals['channels']} channels, "
            f"{totals['consumers']} consumers, {totals['queues']} queues"
        )
        waiting = self.overview["publishers"]["waiting"]
        yield f"{memory['messages_used']} messages, {used >> 10} KiB of bodies; {waiting} publishers wait"
        if before is not None:
            seconds = max(self.at - before.at, 0.001)
            rates = ((name, (self.counters[name] - before.counters[name]) / seconds) for name in RATES)
            yield ", ".join(f"{name} {rate:.0f}/s" for name, rate in rates)

    def rows(self, before):
        """The queues and streams with most messages, as dicts of COLUMNS."""
        seconds = 1.0 if before is None else max(self.at - before.at, 0.001)
        made = []
        for row in self.items.get("queues", []):
            if not row["name"].startswith(REPLY_QUEUES):  # those of who asks, this command's own too
                made.append(dict(row, ready=row["messages"]))
        for row in self.items.get("streams", []):
            ready = row["next_offset"] - row["first_offset"]
            made.append(dict(row, type="stream", ready=ready, unsettled=0, full=False))
        made.sort(key=lambda row: (-row["ready"], row["name"]))
        for row in made[:ROWS_MAX]:
            known = before is not None and row["name"] in before.messages
            row["grows"] = f"{(self.messages[row['name']] - before.messages[row['name']]) / seconds:+.0f}/s" if known else None
            yield {name: row[name] for name in COLUMNS}


def span(seconds):
    """Seconds in words."""
    days, rest = divmod(seconds, 86400)
    return (f"{days} d " if days else "") + f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"


def live(asked, options):
    """Show it until somebody ends it."""
    try:
        from rich.console import Group
        from rich.live import Live
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        raise UsageError('the live table needs rich, as `pip install "leveret[demo]"` brings it; --once does without') from None

    def drawn(look, before):
        made = Table(*COLUMNS, expand=True, box=None)
        for row in look.rows(before):
            made.add_row(*(Text(word(row[name])) for name in COLUMNS), style="bold red" if row["full"] else None)
        return Group(*(Text(line) for line in look.head(before)), "", made)

    before = Look(asked)
    with Live(drawn(before, None), screen=True, auto_refresh=False) as screen:
        while True:
            time.sleep(options.seconds)
            look = Look(asked)
            screen.update(drawn(look, before), refresh=True)
            before = look


def top(options):
    """Look once, or until somebody ends it."""
    with manager(options.url) as asked:
        if not options.once:
            live(asked, options)
        look = Look(asked)
        print("\n".join([*look.head(None), "", *table(COLUMNS, list(look.rows(None)))]))


run = answers("top", top)

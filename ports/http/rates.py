"""Rates: how much counts have grown a second, between looks at them that are SPAN_MS apart at least.

Counts of single queues and sessions are looked at when somebody asks for them: the first answer has rates of 0. Those of the whole broker
are looked at every SPAN_MS, and SAMPLES_MAX looks are kept for charts.
"""

from typing import Any

SPAN_MS = 5000
STALE_MS = 120000
SAMPLES_MAX = 120
WRAP = 1 << 30  # where counts of flat tables begin again

Counts = dict[str, int]


class Rates:
    """Rates by the identity of what they are of."""

    def __init__(self) -> None:
        self.rows: dict[Any, tuple[int, Counts, dict[str, float]]] = {}
        self.swept = 0

    def of(self, key: Any, now_ms: int, counts: Counts) -> dict[str, float]:
        """The rates of counts, by name."""
        row = self.rows.get(key)
        if row is None:
            self.rows[key] = (now_ms, counts, dict.fromkeys(counts, 0.0))
            return self.rows[key][2]
        at, before, rates = row
        if now_ms - at >= SPAN_MS:
            rates = {name: growth(counts[name], before.get(name, counts[name])) * 1000 / (now_ms - at) for name in counts}
            self.rows[key] = (now_ms, counts, rates)
        return rates

    def sweep(self, now_ms: int) -> None:
        """Forget what nobody has asked for lately."""
        if now_ms - self.swept >= STALE_MS:
            self.swept = now_ms
            self.rows = {key: row for key, row in self.rows.items() if now_ms - row[0] < STALE_MS}


def growth(now: int, before: int) -> int:
    """How much a count has grown."""
    return now - before + WRAP if now < before and before - now > WRAP // 2 else now - before


class History:
    """The broker's counts over time: (seconds since 1970, counts), the newest last."""

    def __init__(self) -> None:
        self.looked = -SPAN_MS
        self.samples: list[tuple[int, int, Counts]] = []  # (uptime in ms, seconds since 1970, counts)

    def is_due(self, now_ms: int) -> bool:
        """True when SPAN_MS have passed."""
        return now_ms - self.looked >= SPAN_MS

    def add(self, now_ms: int, seconds: int, counts: Counts) -> None:
        """Look at counts."""
        self.looked = now_ms
        self.samples.append((now_ms, seconds, counts))
        if len(self.samples) > SAMPLES_MAX:
            del self.samples[0]

    def rate(self, name: str) -> float:
        """Of a count between the last two looks."""
        if len(self.samples) < 2:
            return 0.0
        (at, _, before), (now, _, counts) = self.samples[-2:]
        return growth(counts.get(name, 0), before.get(name, 0)) * 1000 / (now - at)

    def details(self, name: str, age_s: int = 0, step_s: int = 0) -> dict[str, Any]:
        """{"rate": ...} as RabbitMQ has it, with samples and averages of the last `age_s` seconds where they are asked for."""
        made: dict[str, Any] = {"rate": self.rate(name)}
        if not age_s or not self.samples:
            return made
        last = self.samples[-1]
        chosen: list[tuple[int, int, Counts]] = []
        for row in reversed(self.samples):
            if row[0] < last[0] - age_s * 1000:
                break
            if not chosen or chosen[-1][0] - row[0] >= step_s * 1000 - SPAN_MS // 2:
                chosen.append(row)
        made["samples"] = [{"sample": row[2].get(name, 0), "timestamp": row[1] * 1000} for row in chosen]
        first = chosen[-1]
        span = last[0] - first[0]
        made["avg_rate"] = growth(last[2].get(name, 0), first[2].get(name, 0)) * 1000 / span if span else 0.0
        made["avg"] = sum(row[2].get(name, 0) for row in chosen) / len(chosen)
        return made

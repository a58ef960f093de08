"""The figures of a bridge: state with reason, rates, lag, backlog, how long until it is full, counters. One dict, flat, for JSON."""

from ...core.shim import elapsed
from ..clock import seconds

if False:  # for the type checker alone
    from typing import Any

WINDOW_MS = 1000
SHARE = 4  # a new rate counts a quarter, the older ones three


class Meter:
    """Rates over the last seconds, from the counters of `bridge`."""

    def __init__(self, bridge: "Any") -> None:
        self._bridge = bridge
        self._at: int | None = None
        self._warned = False
        self._before = (0, 0, 0)
        self.rates: list[float] = [0, 0, 0]  # messages a second upstream, octets a second upstream, octets a second that the backlog grows

    def tick(self, now: int) -> bool:
        """Compute the rates once a second; returns whether it did."""
        if self._at is None:
            self._at = now
        window_ms = elapsed(now, self._at)
        if window_ms < WINDOW_MS:
            return False
        self._at = now
        counters = self._bridge.mover.counters
        figures = (counters["bridged"], counters["bridged_octets"], self._bridge.source.backlog().get("backlog_octets", 0))
        for index in range(3):
            rate = (figures[index] - self._before[index]) * 1000 / window_ms
            self.rates[index] = rate if not self.rates[index] else self.rates[index] + (rate - self.rates[index]) / SHARE
        self._before = figures
        self._warn()
        return True

    def _warn(self) -> None:
        """Warn once that the backlog is nearly full, before messages are lost."""
        backlog = self._bridge.source.backlog()
        full = backlog.get("backlog_octets_max", 0)
        nearly = full > 0 and backlog["backlog_octets"] * 5 > full * 4
        if nearly and not self._warned:
            left_s = self.full_in_s(backlog)
            self._bridge.say(
                "the backlog has %d of %d octets%s; then %s"
                % (
                    backlog["backlog_octets"],
                    full,
                    "" if left_s is None else ", full in %d s as it grows now" % left_s,
                    "the oldest go"
                    if self._bridge.settings.outbox and self._bridge.settings.backlog_full == "drop-oldest"
                    else "messages stay in their queue"
                    if self._bridge.settings.outbox
                    else "what the stream's own retention says",
                )
            )
        self._warned = nearly

    def status(self) -> "dict[str, Any]":
        """The dict. `oldest_age_s` and `full_in_s` are None where nothing waits, or nothing grows."""
        bridge = self._bridge
        settings = bridge.settings
        mover = bridge.mover
        state, reason = bridge.state
        backlog = bridge.source.backlog()
        status = {
            "bridge": settings.name,
            "direction": settings.direction,
            "state": state,
            "reason": reason,
            "upstream": (bridge.target if settings.up else bridge.source).dial.place,
            "messages_per_second": round(self.rates[0], 1),
            "octets_per_second": round(self.rates[1]),
            "unconfirmed": len(mover.flight),
            "waiting": len(mover.lanes[0]) + len(mover.lanes[1]),
            "retrying": len(mover.retry),
            "reconnects": max(bridge.source.connections - 1, 0) + max(bridge.target.connections - 1, 0),
            "last_error": bridge.target.last_error or bridge.source.last_error,
        }
        if settings.up and not settings.plain:
            oldest = backlog.get("oldest") if backlog.get("backlog") else None
            status.update(
                {
                    "gateway": str(mover.marks.gateway, "utf-8"),
                    "backlog": backlog.get("backlog", 0),
                    "backlog_octets": backlog.get("backlog_octets", 0),
                    "backlog_octets_max": backlog.get("backlog_octets_max", 0),
                    "oldest_age_s": None if oldest is None else max(seconds() - oldest, 0),
                    "full_in_s": self.full_in_s(backlog),
                }
            )
        status.update(mover.counters)
        status.update(bridge.counters)
        return status

    def full_in_s(self, backlog: dict[str, int]) -> int | None:
        """Seconds until the backlog has no more room at the rate at which it grows now, or None."""
        rate = self.rates[2]
        if rate < 1 or not backlog:
            return None
        return max(0, round((backlog["backlog_octets_max"] - backlog["backlog_octets"]) / rate))

"""Figures for the operator: how much the log writes, and how long a flash medium lasts.

The estimate of life takes the rate since start for the rate of the future, spreads the wear over the whole medium, and asks the store:
    medium_octets   octets that the medium had to write or erase: whole pages, not what we gave it
    capacity        octets of the medium, 0 when not known
    cycles          how often each place bears that; an assumption of the store, which names it
A store without them gets no estimate.
"""

from ..shim import const

_RATE_MS = const(60000)  # with less time behind it a rate says nothing
_YEAR_S = const(31557600)


def figures(journal):
    """{name: number or text}: sizes and counts since start; `amplification` is None before the first message, `life_years` when unknown."""
    writer = journal.log
    store = writer.store
    values = dict(writer.counters)
    values["sync"] = journal.mode
    values["window_ms"] = journal.window_ms
    values["log_size"] = writer.size()
    values["log_size_max"] = writer.size_max
    values["log_segments"] = len(writer.segments)
    values["log_trouble"] = writer.trouble
    values["log_message_octets"] = journal.message_octets
    medium = max(getattr(store, "medium_octets", 0), writer.counters["log_octets"])
    values["medium_octets"] = medium
    values["erases"] = getattr(store, "erases", 0)
    values["amplification"] = medium / journal.message_octets if journal.message_octets else None
    values["life_years"] = life_years(
        getattr(store, "capacity", 0), getattr(store, "cycles", 0), medium, journal.broker.uptime_ms - journal.began_ms
    )
    return values


SHOWN = (
    "sync",
    "window_ms",
    "size",
    "size_max",
    "segments",
    "octets",
    "message_octets",
    "medium_octets",
    "syncs",
    "erases",
    "amplification",
    "life_years",
    "trouble",
)


def shown(journal):
    """The figures that management shows, in their order, short: numbers with a fraction have two places; None without a journal."""
    if journal is None:
        return None
    values = figures(journal)
    short = {}
    for name in SHOWN:
        value = values[name] if name in values else values["log_" + name]
        short[name] = int(value * 100 + 0.5) / 100 if isinstance(value, float) else value
    return short


def life_years(capacity, cycles, medium_octets, time_ms):
    """Years that a medium lasts when it is written `medium_octets` in `time_ms`; None when the store has no estimate."""
    if not capacity or not cycles or not medium_octets or time_ms < _RATE_MS:
        return None
    return capacity / medium_octets * cycles * (time_ms / 1000) / _YEAR_S

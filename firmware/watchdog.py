"""The watchdog: the board starts anew when nobody has fed it for `watchdog_ms`.

While the broker runs its main loop feeds it. It cannot be stopped once it is started (on most boards not even by a soft reset), so a timer
feeds it whenever another program has the board: for ever while the REPL does, for a bounded time during a call that blocks.
"""

from . import hardware, settings

if False:  # for the type checker alone
    from typing import Any

TICK_MS = 500

_watchdog: "Any" = None
_timer: "Any" = None
_ticks_left = 0  # of the timer; below 0: without end


def start(watchdog_ms):
    """Start the watchdog, fed by the timer for now. Raises hardware.Absent."""
    global _watchdog, _timer
    machine = hardware.module("machine", "the watchdog (watchdog_ms)")
    made = hardware.part(machine, "WDT", "the watchdog (watchdog_ms)")
    timer = hardware.part(machine, "Timer", "the watchdog (watchdog_ms)")
    try:
        _timer = timer(-1)
    except ValueError:  # an ESP32 has no virtual timers
        _timer = timer(0)
    _watchdog = made(timeout=watchdog_ms)
    keep_fed(-1)


def rest():
    """Have the timer feed the watchdog from now on, which is started first where the settings ask for one."""
    if _watchdog is None:
        try:
            watchdog_ms = settings.load()["watchdog_ms"]
        except settings.BadSettings:
            return  # main.py says so
        if watchdog_ms:
            start(watchdog_ms)
    else:
        keep_fed(-1)


def keep_fed(ms):
    """Have the timer feed the watchdog for so many milliseconds, -1: until `feed` is called."""
    global _ticks_left
    if _watchdog is None:
        return
    if _ticks_left == 0:
        _timer.init(period=TICK_MS, callback=_on_timer)
    _ticks_left = -1 if ms < 0 else ms // TICK_MS + 1
    _watchdog.feed()


def _on_timer(timer):
    global _ticks_left
    if _ticks_left:
        _watchdog.feed()
        if _ticks_left > 0:
            _ticks_left -= 1


def feed():
    """The main loop is alive: from now on it alone feeds."""
    global _ticks_left
    if _watchdog is None:
        return
    if _ticks_left:
        _ticks_left = 0
        _timer.deinit()
    _watchdog.feed()

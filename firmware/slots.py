"""Which of two folders the code is imported from: lib, or lib_b where `leveret flash --update` has put another version.

    the file "slot"     "lib_b"            that one
                        "lib_b lib 3"      lib_b is on trial: it has three starts to come up in, then it is lib again
    no such file        lib

Laws: the line is whole, with its end, or it is none; it is replaced as a whole, and where a power cut has left NEW alone, NEW is read
(boot.py). A start is counted before anything of the new version runs. boot.py imports this only while a version is on trial.
"""

import os
import sys

if False:  # for the type checker alone
    from typing import Any

FILE, NEW = "slot", "slot.new"
HANG_MS = 300000  # a version on trial that neither serves nor ends is ended by a reset

trial: "Any" = None  # the slot that is on trial, None: none is
_timer: "Any" = None


def begin(words):
    """Count a start of a version on trial, [slot, slot before, starts left]: the slot to import from, in a list."""
    global trial
    slot, before, left = words
    if left == "0":
        try:
            write(before)
        except OSError:
            pass  # the next start comes here again
        print("leveret: the update in %s did not come up: the version before it, in %s, is back" % (slot, before))
        return [before]
    try:
        write("%s %s %d" % (slot, before, int(left) - 1))
    except OSError as error:  # a start that cannot be counted could be the last one
        print("leveret: the update in %s cannot be tried (%s): the version in %s runs" % (slot, error, before))
        return [before]
    trial = slot
    _watch()
    return [slot]


def keep():
    """Keep the version on trial, because it has come up. Raises OSError."""
    global trial
    write(trial)
    trial = None
    if _timer is not None:
        _timer.deinit()


def ended(is_stopped):
    """Start a version on trial again, because main.py has ended; not when the console has stopped it."""
    if trial is None:
        return
    if is_stopped:
        if _timer is not None:
            _timer.deinit()
        return
    _reset(None)


def write(line):
    """Replace the file. Raises OSError."""
    if NEW in os.listdir() and FILE not in os.listdir():
        os.rename(NEW, FILE)  # a power cut left it alone: a second one while it is written would leave none
    with open(NEW, "w") as file:
        file.write(line + "\n")
    try:
        os.rename(NEW, FILE)
    except OSError:  # FAT replaces no file
        os.remove(FILE)
        os.rename(NEW, FILE)


def _watch():
    """Have a timer reset the board where the version on trial hangs; a board without timers has its watchdog."""
    global _timer
    try:
        import machine

        try:
            _timer = machine.Timer(-1)
        except ValueError:  # an ESP32 has no virtual timers, and the watchdog takes the first
            _timer = machine.Timer(1)
        _timer.init(mode=machine.Timer.ONE_SHOT, period=HANG_MS, callback=_reset)
    except (ImportError, AttributeError):
        _timer = None


def _reset(timer):
    """Start the board anew."""
    try:
        import machine

        machine.reset()
    except (ImportError, AttributeError):
        sys.exit()  # where there is no hardware a soft reset is all

"""Why the board started lately: a line for each start and for each error that ended the broker, in a file that keeps the newest.

A line is "seconds since 1970, a space, and a sentence"; before NTP the seconds are the newest known time (clock.py). The sentence of a
start is "start 12: the watchdog ...", of the twelfth since this file was begun. `leveret status` shows them (status_page.py).
"""

import os

from ..core.errors import words_of
from ..ports.clock import seconds

PATH = "resets.txt"
NEW = "resets.new"
KEPT = 8  # lines
SIZE_MAX = 120  # characters of a sentence

# Names that module machine has for the causes of a reset on different boards, and what they are.
CAUSES = (
    ("PWRON_RESET", "the power came"),
    ("WDT_RESET", "the watchdog: the broker stood still"),
    ("BROWNOUT_RESET", "the voltage was too low"),
    ("SOFT_RESET", "a soft reset"),
    ("DEEPSLEEP_RESET", "the end of a deep sleep"),
    ("HARD_RESET", "the reset pin, or machine.reset()"),
)


def cause():
    """A sentence with the cause of the last reset, by the module machine."""
    try:
        import machine

        number = machine.reset_cause()
    except (ImportError, AttributeError):
        return "an interpreter that does not say why"
    for name, sentence in CAUSES:
        if getattr(machine, name, None) == number:
            return sentence
    return "cause %s" % number


def lines(path=PATH):
    """The lines of the file, the oldest first."""
    try:
        with open(path) as file:
            return [line for line in file.read().split("\n") if line]
    except OSError:
        return []


def starts(kept=None):
    """How often the board has started, by the newest line that says so; 0: none does."""
    for line in reversed(lines() if kept is None else kept):
        words = line.split(" ", 3)
        if len(words) > 2 and words[1] == "start" and words[2][:-1].isdigit():
            return int(words[2][:-1])
    return 0


def note(sentence):
    """Keep a sentence. An unwritable file is ignored, because serving goes on without these notes."""
    kept = lines()[1 - KEPT :] + ["%d %s" % (seconds(), sentence[:SIZE_MAX].replace("\n", " "))]
    try:
        with open(NEW, "w") as file:
            file.write("\n".join(kept) + "\n")
        os.rename(NEW, PATH)
    except OSError:
        return


def started():
    """Note a start."""
    note("start %d: %s" % (starts() + 1, cause()))


def failed(error):
    """Note an error that ends the broker."""
    note("ended by " + words_of(error))

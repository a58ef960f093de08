"""What `leveret serve` tells its operator: one line a sentence on standard error, with time and level.

    2026-03-01T07:30:00.123+01:00 WARNING sentence    a terminal or a file: ISO 8601, local time with its distance from UTC
    <4>sentence                                       journald (JOURNAL_STREAM), which has the time itself: priorities, sd-daemon(3)
    {"time": "2026-...", "level": "WARNING", "text": "sentence"}    for programs: an object a line

Laws: a sentence is one line whatever names peers choose, and of bounded length. What peers cause (`peer`) has a share of each level: a
burst, then so many a second; the rest is counted, and the count is told. Who does not read (a pipe that is full) holds nothing up: what
finds no room is counted too.
"""

import json
import os
import select
import time

INFO = 6
WARNING = 4
ERROR = 3
NAMES = {INFO: "INFO", WARNING: "WARNING", ERROR: "ERROR"}
LEVELS = {NAMES[level].lower(): level for level in NAMES}
TEXT, JSON, JOURNALD = FORMATS = ("text", "json", "journald")

SENTENCE_MAX = 1000  # characters
BURST = 100  # sentences about peers of one level at once
A_SECOND = 2  # and then so many a second: at most 35 MB a day with sentences of the usual length
TELL_EVERY_S = 10  # how often it is told that sentences were left out


class Share:
    """The sentences about peers of one level: a bucket of BURST that fills by A_SECOND a second."""

    def __init__(self, now):
        self.left = BURST
        self.at = now
        self.left_out = 0
        self.told_at = now

    def admits(self, now):
        """True when one more may be told; else it is counted."""
        self.left = min(BURST, self.left + (now - self.at) * A_SECOND)
        self.at = now
        if self.left < 1:
            self.left_out += 1
            return False
        self.left -= 1
        return True

    def owed(self, now):
        """How many were left out since that was told last, when it is time to tell it again; else 0."""
        if not self.left_out or now - self.told_at < TELL_EVERY_S:
            return 0
        count, self.left_out, self.told_at = self.left_out, 0, now
        return count


class OperatorLog:
    """`stream`: a text file, None where there is none; `format`: of FORMATS; `least`: sentences of less weight are not told. `clock`:
    seconds that only grow; `wall`: a function that returns an aware datetime of now."""

    def __init__(self, stream, format=TEXT, least=INFO, clock=time.monotonic, wall=None):
        self.stream = stream
        self.format = format
        self.least = least
        self.clock = clock
        self.wall = wall or now_here
        self.shares = {level: Share(clock()) for level in (INFO, WARNING)}

    def say(self, sentence, level=INFO):
        """Tell a sentence."""
        if self.stream is None or level > self.least:
            return
        line = self.line(one_line(sentence), level)
        if not self.has_room():
            self.shares[INFO].left_out += 1
            return
        try:
            print(line, file=self.stream, flush=True)
        except (OSError, ValueError):
            pass  # who read it has gone, its disk is full, or it was closed: the broker goes on

    def line(self, text, level):
        """A sentence as its reader wants it."""
        if self.format == JOURNALD:
            return f"<{level}>{text}"
        time_ = self.wall().isoformat(timespec="milliseconds")
        if self.format == JSON:
            return json.dumps({"time": time_, "level": NAMES[level], "text": text})
        return f"{time_} {NAMES[level]} {text}"

    def has_room(self):
        """True when a line can be written without waiting: of a pipe the system says so when it takes 4096 octets (pipe(7))."""
        try:
            return bool(select.select((), (self.stream,), (), 0)[1])
        except (OSError, ValueError, TypeError):
            return True  # not a file of the system's, or one with a number that select does not take

    def peer(self, sentence, level=WARNING):
        """Tell what a peer has caused, if its level's share allows."""
        if self.shares[level].admits(self.clock()):
            self.say(sentence, level)

    def event(self, sentence, is_fault=False):
        """Log an event at a connection: Broker.inform."""
        self.peer(sentence, WARNING if is_fault else INFO)

    def tick(self):
        """Time passes: tell how many sentences were left out."""
        now = self.clock()
        for level, share in self.shares.items():
            count = share.owed(now)
            if count:
                self.say(f"{count} sentences were left out: about peers more than {A_SECOND} a second, or more than is read", level)


def now_here():
    """An aware datetime of now. An idle broker that has told nothing does without the module."""
    import datetime

    return datetime.datetime.now().astimezone()


def one_line(sentence):
    """A sentence without control characters, which a peer's names may have, cut to SENTENCE_MAX."""
    text = sentence if len(sentence) <= SENTENCE_MAX else sentence[: SENTENCE_MAX - 3] + "..."
    return text if text.isprintable() else "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def reads_journal(stream, variables):
    """True when what is written to `stream` goes to journald: JOURNAL_STREAM names its device and inode (systemd.exec(5))."""
    try:
        status = os.fstat(stream.fileno())
        return variables.get("JOURNAL_STREAM", "") == f"{status.st_dev}:{status.st_ino}"
    except (OSError, ValueError, AttributeError):  # no such file, or no standard error at all
        return False

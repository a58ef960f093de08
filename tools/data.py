"""Where and how `leveret serve` keeps messages: the options of --data, the [data] table of the configuration file, and what they mean.

    [data]
    directory = "/var/lib/leveret"
    sync = "each"             # before a confirm leaves: "each" syncs in every round of the broker, "batch" gathers for batch_ms or
    batch_ms = 5              #   batch_octets, "none" leaves it to the operating system
    batch_octets = 262144
    disk_max = "1G"           # octets of the log in all; beyond it publishers wait
    segment_size = "8M"       # octets of a file of the log; a file goes when nothing in it is wanted any more

An option of the command line goes before the file's. Whatever is wrong is one sentence; a log that cannot be used is left as it is.
"""
import errno
import os

from leveret.core.amqp_0_9 import properties
from leveret.core.durability import make_durable
from leveret.core.errors import ProtocolError
from leveret.core.journal import BATCH, EACH, NONE
from leveret.core.log import NewerLog
from leveret.core.recovery_fill import TooSmall
from leveret.ports.store_file import DirectoryInUse
from leveret.ports.store_thread import ThreadedFileStore

from .usage import UsageError

MODES = (EACH, BATCH, NONE)
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SEGMENTS_MIN = 4
RESERVE_PART = 16  # of what the log may take, that is kept for the time when the disk is full; and not more than
RESERVE_MAX = 2 << 20  # octets
CONTENTS_MIN = 4  # of the largest size that a log has room for
SEGMENTS_USUAL = 16  # files that a small log has when nobody says otherwise

# name, default, least, most, in words
NUMBERS = (
    ("batch_ms", 5, 1, 60000, "milliseconds"),
    ("batch_octets", 256 << 10, 1, 1 << 30, "octets"),
    ("disk_max", 1 << 30, 256 << 10, 1 << 50, "octets"),
    ("segment_size", 8 << 20, 4 << 10, 1 << 30, "octets"),
)
KEYS = ("directory", "sync") + tuple(row[0] for row in NUMBERS)


class DataFailed(Exception):
    """The directory cannot be used; the text is one sentence."""


class Data:
    """What was chosen: `directory`, `sync` (one of MODES), and the NUMBERS as attributes."""

    def __init__(self, directory, sync, numbers):
        self.directory = directory
        self.sync = sync
        for name in numbers:
            setattr(self, name, numbers[name])

    def window(self):
        """What a power cut can take, in words."""
        if self.sync == EACH:
            return "a power cut loses nothing that was confirmed; every round of the broker is synced before its confirms leave"
        if self.sync == BATCH:
            return (f"a power cut loses nothing that was confirmed; confirms wait up to {self.batch_ms} ms (or until there are "
                    f"{self.batch_octets} octets) for the sync that covers them")
        return (f"sync none: a power cut may take the last {system_window_s()} s of messages and acknowledgements, confirmed or not; "
                "the end of the broker's process alone takes nothing that was confirmed")

    def check(self, limits):
        """Raise UsageError when the log has no room to work with contents as large as the limits let in."""
        largest = min(limits.content_size_max, limits.arena_size)
        if self.disk_max < CONTENTS_MIN * largest:
            raise UsageError(f"the log may take {self.disk_max} octets (disk_max), which is less than {CONTENTS_MIN} messages of the "
                             f"largest size ({largest} octets, content_size_max): raise --disk-max to {as_size(CONTENTS_MIN * largest)}, "
                             f"or make messages smaller with --config, as in [limits] content_size_max = {self.disk_max // CONTENTS_MIN}")

    def reserve(self):
        """Octets that are kept for the time when the disk is full."""
        return min(self.segment_size, self.disk_max // RESERVE_PART, RESERVE_MAX)

    def open(self, broker):
        """Bring back what the directory holds and log into it from now on: (store, report). Raises DataFailed, with nothing changed."""
        store = None
        try:
            store = ThreadedFileStore(self.directory)
            broker.read_messages_with(properties)
            size_max = self.disk_max - self.reserve()
            report = make_durable(broker, store, self.sync, self.batch_ms, self.batch_octets, self.segment_size, size_max)
            store.keep_reserve(self.reserve())
            report += told_of_files(store)
        except (DirectoryInUse, NewerLog, TooSmall, ProtocolError, OSError) as error:
            if store is not None:
                store.close()
            raise DataFailed(reason(self.directory, error)) from None
        if self.sync == NONE:
            broker.journal.window_ms = system_window_s() * 1000
        return store, report


def told_of_files(store):
    """What the directory has that an operator is to know of: "" or more of the report."""
    text = ""
    if store.repaired:
        text += f"; others could read {store.repaired} files of the directory: now they are for their owner alone (0600)"
    if store.strays():
        text += f"; not of the log, and left alone: {', '.join(store.strays())}"
    return text


def reason(directory, error):
    """Why a directory cannot be used."""
    if isinstance(error, DirectoryInUse):
        return str(error)
    if isinstance(error, ProtocolError):
        return f"--data {directory}: the limits have no room for what the log defines: {error.text}"
    return f"--data {directory} cannot be used: {in_words(error) if isinstance(error, OSError) else error}"


def in_words(error):
    """What the system says of a directory, and what to do about it."""
    words = {errno.EACCES: f"user {os.geteuid()} may not write there: give it the directory with chown, or run as its owner",
             errno.EEXIST: "it is a file: name a directory, which is made when it is not there",
             errno.ENOTDIR: "it lies below a file: name a directory, which is made when it is not there",
             errno.ENOSPC: "its disk is full: make room there", errno.EROFS: "its file system can only be read"}
    return words.get(error.errno, error.strerror or str(error))


def system_window_s():
    """Seconds after which Linux has written a file's octets by itself, at the latest: their age and the time between two looks."""
    centiseconds = 0
    for name, usual in (("dirty_expire_centisecs", 3000), ("dirty_writeback_centisecs", 500)):
        try:
            with open("/proc/sys/vm/" + name) as file:
                centiseconds += int(file.read())
        except (OSError, ValueError):
            centiseconds += usual
    return -(-centiseconds // 100)


def add_arguments(parser, where):
    """The options; `where` is the group in which --data excludes --memory."""
    where.add_argument("--data", metavar="DIR", help="keep durable queues and persistent messages in DIR, over restarts and power cuts")
    parser.add_argument("--sync", choices=MODES, help="with --data: when the disk is made to write (default each)")
    parser.add_argument("--batch-ms", metavar="N", help="with --sync batch: how long a confirm may wait (default 5)")
    parser.add_argument("--batch-octets", metavar="SIZE", help="with --sync batch: how much is gathered at most (default 256K)")
    parser.add_argument("--disk-max", metavar="SIZE", help="the log's octets in all, as 500M or 2G (default 1G); beyond it publishers wait")
    parser.add_argument("--segment-size", metavar="SIZE", help="octets of one file of the log (default 8M)")


def chosen(options, path, table):
    """The Data of the command line and of [data] in the file at `path` (`table`, {} when there is none); None: in memory only.

    Raises UsageError.
    """
    check_table(path, table)
    given = {name: getattr(options, name) for name in KEYS if name != "directory" and getattr(options, name) is not None}
    if options.memory or (options.data is None and "directory" not in table):
        unused = sorted(given) or sorted(name for name in table if not options.memory)
        if given:
            raise UsageError(f"{flag(unused[0])} is for messages that are kept on disk: name where with --data DIR")
        if unused:
            raise UsageError(f"{path}: [data] {unused[0]} is for messages that are kept on disk: name where with directory = \"...\"")
        return None
    directory = table.get("directory") if options.data is None else options.data
    if directory == "" or "\0" in directory:
        raise UsageError("--data (and directory in [data]) needs the name of a directory, and no name has a NUL")
    numbers = {}
    for name, default, least, most, words in NUMBERS:
        place = flag(name) if name in given else f"{path}: [data] {name}"
        numbers[name] = number(place, given.get(name, table.get(name, default)), least, most, words)
    if "segment_size" not in given and "segment_size" not in table:
        numbers["segment_size"] = min(numbers["segment_size"], numbers["disk_max"] // SEGMENTS_USUAL)
    if numbers["disk_max"] < SEGMENTS_MIN * numbers["segment_size"]:
        raise UsageError(f"the log may take {numbers['disk_max']} octets (disk_max), which is less than {SEGMENTS_MIN} files of "
                         f"{numbers['segment_size']} (segment_size): raise the one or lower the other")
    return Data(directory, given.get("sync", table.get("sync", EACH)), numbers)


def flag(name):
    """The option that a key has on the command line."""
    return "--" + name.replace("_", "-")


def check_table(path, table):
    """Names and types of what [data] has. Raises UsageError."""
    if not isinstance(table, dict):
        raise UsageError(f"{path}: data must be a table, written [data]")
    for name in table:
        if name not in KEYS:
            raise UsageError(f"{path}: there is no setting {name!r} in [data]; there are {', '.join(KEYS)}")
    if not isinstance(table.get("directory", "-"), str) or table.get("directory", "-") == "":
        raise UsageError(f"{path}: [data] directory must be the name of a directory, as \"/var/lib/leveret\"")
    if table.get("sync", EACH) not in MODES:
        raise UsageError(f"{path}: [data] sync is {table['sync']!r}; it must be one of {', '.join(MODES)}")


def octets_of(text):
    """The octets that a text as 500M or 1048576 stands for, or None."""
    digits, unit = (text[:-1], UNITS[text[-1].upper()]) if text and text[-1].upper() in UNITS else (text, 1)
    return int(digits) * unit if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def number(place, value, least, most, words):
    """A whole number, or a text as 500M. Raises UsageError."""
    found = value
    if isinstance(value, str) and (words == "octets" or value.isdigit()):
        found = octets_of(value)
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        hint = ", or a text as 500K, 64M, 2G" if words == "octets" else ""
        raise UsageError(f"{place} is {value!r}; it must be a whole number of {words} from {least} to {most}{hint}")
    return found


def told(figures, disk_max):
    """The log of a broker that starts, in words."""
    files = figures["log_segments"]
    return (f"the log takes {figures['log_size'] >> 20} MiB in {files} file{'s' * (files != 1)}, "
            f"{disk_max >> 20} MiB at most; `leveret status` tells what it writes from now on, and after a minute "
            "how many years the disk bears that")


def as_size(octets):
    """A number of octets, not smaller, as the options take it."""
    unit = max((unit for unit in UNITS if UNITS[unit] <= octets), key=UNITS.get, default="")
    return f"{-(-octets // UNITS[unit])}{unit}" if unit else str(octets)


def free_octets(directory):
    """Octets that the file system of a directory has left for us."""
    space = os.statvfs(directory)
    return space.f_bavail * space.f_frsize

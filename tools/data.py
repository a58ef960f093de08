"""Where and how `leveret serve` keeps messages: the options of --data, the [data] table of the configuration file, and what they mean.

An option of the command line goes before the file's. Whatever is wrong is one sentence; a log that cannot be used is left as it is.
"""

import errno
import os

from leveret import c_accel
from leveret.core.errors import ProtocolError
from leveret.core.log.journal import BATCH, EACH, NONE
from leveret.core.log.segments import OtherLog
from leveret.core.recovery.opening import make_durable
from leveret.core.recovery.second_pass import TooSmall
from leveret.core.staging.stored import all_in
from leveret.ports.setting_rows import UNITS, named, octets_of, passing, reading, rows
from leveret.ports.settings import Table, as_whole
from leveret.ports.store_file import DirectoryInUse
from leveret.ports.store_thread import ThreadedFileStore

from . import usage
from .usage import UsageError

MODES = (EACH, BATCH, NONE)
STAGED = "staged"  # the folder of staged contents: core/staging/contents.py makes it
SEGMENTS_MIN = 4
RESERVE_PART = 16  # of what the log may take, that is kept for the time when the disk is full; and not more than
RESERVE_MAX = 2 << 20  # octets
CONTENTS_MIN = 4  # of the largest size that a log has room for
SEGMENTS_USUAL = 16  # files that a small log has when nobody says otherwise


def flag(name):
    """The option that a key has on the command line."""
    return "--" + name.replace("_", "-")


def is_full(value):
    """True for a text that is not empty."""
    return isinstance(value, str) and value != ""


def count(least, most):
    """The kind of a number of milliseconds: a whole number, or a text of digits."""
    return reading(
        f"a whole number of milliseconds from {least} to {most}",
        lambda value: as_whole(octets_of(value) if isinstance(value, str) and value.isdigit() else value, least, most),
    )


def size(least, most):
    """The kind of a number of octets: a whole number, or a text as 500M."""
    return reading(
        f"a whole number of octets from {least} to {most}, or a text as 500K, 64M, 2G",
        lambda value: as_whole(octets_of(value) if isinstance(value, str) else value, least, most),
    )


ROWS = rows(
    """
directory | directory | | | where; left out: in memory only
sync | sync | "each" | | before a confirm leaves: each syncs in every round of the broker, batch gathers,
 none leaves it to the operating system
batch_ms | count 1 60000 | 5 | ms | with batch: how long a confirm may wait
batch_octets | size 1 1G | 262144 | octets | with batch: how much is gathered at most
disk_max | size 256K 1024T | 1073741824 | octets | of the log in all; beyond it publishers wait
segment_size | size 4K 1G | 8388608 | octets | of one file of the log
""",
    {
        "directory": passing('the name of a directory, as "/var/lib/leveret"', is_full, "{path}: [data] directory must be {words}"),
        "sync": named(*MODES),
        "count": count,
        "size": size,
    },
)
KEYS = tuple(row[0] for row in ROWS)
TABLE = Table(
    ROWS, "{path}: there is no setting {name!r} in [data]; there are {names}", "{path}: [data] {name} is {value!r}; it must be {words}"
)
OPTIONS = Table([(flag(row[0]),) + row[1:] for row in ROWS], "", "{name} is {value!r}; it must be {words}")


class DataFailed(Exception):
    """The directory cannot be used; the text is one sentence."""


class Data:
    """The chosen settings: the rows of ROWS as attributes."""

    directory: str
    sync: str
    batch_ms: int
    batch_octets: int
    disk_max: int
    segment_size: int

    def __init__(self, values):
        for name in values:
            setattr(self, name, values[name])

    def window(self):
        """The messages that a power cut can cost, in words."""
        if self.sync == EACH:
            return "a power cut loses nothing that was confirmed; every round of the broker is synced before its confirms leave"
        if self.sync == BATCH:
            return (
                f"a power cut loses nothing that was confirmed; confirms wait up to {self.batch_ms} ms (or until there are "
                f"{self.batch_octets} octets) for the sync that covers them"
            )
        return (
            f"sync none: a power cut may take the last {system_window_s()} s of messages and acknowledgements, confirmed or not; "
            "the end of the broker's process alone takes nothing that was confirmed"
        )

    def check(self, limits):
        """Raise UsageError when the log has no room to work with contents as large as the limits let in."""
        largest = min(limits.content_size_max, limits.arena_size)
        if self.disk_max < CONTENTS_MIN * largest:
            raise UsageError(
                f"the log may take {self.disk_max} octets (disk_max), which is less than {CONTENTS_MIN} messages of the "
                f"largest size ({largest} octets, content_size_max): raise --disk-max to {as_size(CONTENTS_MIN * largest)}, "
                f"or make messages smaller with --config, as in [limits] content_size_max = {self.disk_max // CONTENTS_MIN}"
            )

    def reserve(self):
        """Octets that are kept for the time when the disk is full."""
        return min(self.segment_size, self.disk_max // RESERVE_PART, RESERVE_MAX)

    def open(self, broker):
        """Bring back what the directory holds and log into it from now on: (store, report). Raises DataFailed, with nothing changed."""
        store = None
        try:
            store = store_class()(self.directory)
            size_max = self.disk_max - self.reserve()
            report = make_durable(broker, store, self.sync, self.batch_ms, self.batch_octets, self.segment_size, size_max)
            store.keep_reserve(self.reserve())
            report += told_of_files(store)
            report += self.staged(broker)
        except (DirectoryInUse, OtherLog, TooSmall, ProtocolError, OSError) as error:
            if store is not None:
                store.close()
            raise DataFailed(reason(self.directory, error)) from None
        if self.sync == NONE:
            broker.journal.window_ms = system_window_s() * 1000
        return store, report

    def staged(self, broker):
        """Bring back the staged contents of earlier runs: "" or more of the report. Raises OSError."""
        if not os.path.isdir(os.path.join(self.directory, STAGED)) and not all_in(broker.tables):
            return ""
        from leveret.core.staging.contents import open_contents  # here: a broker without contents keeps a few hundred KiB less

        lost = open_contents(broker, False)
        return "; " + lost if lost else ""


def store_class():
    """The class of the store: its syncs are done beside the loop, in C where there is C."""
    if not c_accel.is_chosen():
        return ThreadedFileStore
    from leveret.c_accel.disk import DiskStore  # here: there is no C module on some machines

    return DiskStore


def told_of_files(store):
    """News for the operator about the directory: "" or more of the report."""
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
    """The system's error about a directory, with advice."""
    words = {
        errno.EACCES: f"user {os.geteuid()} may not write there: give it the directory with chown, or run as its owner",
        errno.EEXIST: "it is a file: name a directory, which is made when it is not there",
        errno.ENOTDIR: "it lies below a file: name a directory, which is made when it is not there",
        errno.ENOSPC: "its disk is full: make room there",
        errno.EROFS: "its file system can only be read",
    }
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
    in_file = usage.checked(TABLE.check, table, path=path)
    given = {name: getattr(options, name) for name in KEYS if name != "directory" and getattr(options, name) is not None}
    if options.memory or (options.data is None and "directory" not in table):
        unused = sorted(given) or sorted(name for name in table if not options.memory)
        if given:
            raise UsageError(f"{flag(unused[0])} is for messages that are kept on disk: name where with --data DIR")
        if unused:
            raise UsageError(f'{path}: [data] {unused[0]} is for messages that are kept on disk: name where with directory = "..."')
        return None
    directory = table["directory"] if options.data is None else options.data
    if directory == "" or "\0" in directory:
        raise UsageError("--data (and directory in [data]) needs the name of a directory, and no name has a NUL")
    on_line = usage.checked(OPTIONS.check, {flag(name): value for name, value in given.items()})
    values = {name: on_line.get(flag(name), in_file.get(name, default)) for name, _, default, *_ in ROWS}
    if not {"segment_size"} & (set(given) | set(table)):
        values["segment_size"] = min(values["segment_size"], values["disk_max"] // SEGMENTS_USUAL)
    if values["disk_max"] < SEGMENTS_MIN * values["segment_size"]:
        raise UsageError(
            f"the log may take {values['disk_max']} octets (disk_max), which is less than {SEGMENTS_MIN} files of "
            f"{values['segment_size']} (segment_size): raise the one or lower the other"
        )
    return Data(dict(values, directory=directory))


def log_at_start(figures, disk_max):
    """The log of a broker that starts, in words."""
    files = figures["log_segments"]
    return (
        f"the log takes {figures['log_size'] >> 20} MiB in {files} file{'s' * (files != 1)}, "
        f"{disk_max >> 20} MiB at most; `leveret status` tells what it writes from now on, and after a minute "
        "how many years the disk bears that"
    )


def as_size(octets):
    """A number of octets, not smaller, as the options take it."""
    unit = max((unit for unit in UNITS if UNITS[unit] <= octets), key=UNITS.__getitem__, default="")
    return f"{-(-octets // UNITS[unit])}{unit}" if unit else str(octets)


def free_octets(directory):
    """Octets that the file system of a directory has left for us."""
    space = os.statvfs(directory)
    return space.f_bavail * space.f_frsize

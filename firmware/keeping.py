"""Where a board keeps messages: a folder of its file system, or a part of its flash that no file system has.

    "store": {"kind": "folder", "path": "log", "size": 262144, "segment_size": 16384, "sync": "each"}
    "store": {"kind": "flash", "label": "leveret"}                       a data partition (ESP32), whole
    "store": {"kind": "flash", "start": 917504, "size": 262144}          octets of rp2.Flash or pyb.Flash

`sync` is each, batch (with batch_ms, batch_octets) or none, as with `leveret serve --data`.
"""

from ..core.errors import ProtocolError
from ..core.log.journal import EACH
from ..core.log.segments import OtherLog
from ..core.recovery.opening import make_durable
from ..core.recovery.second_pass import TooSmall
from . import hardware
from .say import CannotStart

SIZE = 262144
SEGMENTS = 8  # of a log, when the settings do not say how large one is
SEGMENT_SIZE_MIN = 4096


class StoreFailed(CannotStart):
    """Messages cannot be kept; the text is one sentence."""


def device(wanted):
    """The block device of a `flash` store. Raises hardware.Absent, StoreFailed."""
    if "label" in wanted:
        partition = hardware.part(hardware.module("esp32", "a flash partition"), "Partition", "a flash partition")
        partitions = partition.find(partition.TYPE_DATA, label=wanted["label"])
        if not partitions:
            raise StoreFailed("the partition table has no data partition called %s" % wanted["label"])
        return partitions[0]
    for name, key in (("rp2", "len"), ("pyb", "len")):
        try:
            flash = __import__(name).Flash
        except (ImportError, AttributeError):
            continue
        return flash(**{"start": wanted["start"], key: wanted["size"]})
    raise StoreFailed("this board has no flash that can be used without a file system: use the kind folder")


def open_store(wanted):
    """(store, octets that the log may take)."""
    if wanted.get("kind", "folder") == "flash":
        from ..ports.store_flash import FlashStore

        store = FlashStore(device(wanted))
        return store, store.capacity
    from ..ports.store_littlefs import FolderStore

    return FolderStore(wanted.get("path", "log")), wanted.get("size", SIZE)


def keep(broker, wanted):
    """Recover the queues and messages of the store, and keep new ones there: (store, the report of the recovery).

    Raises StoreFailed, hardware.Absent."""
    try:
        store, size = open_store(wanted)
        segment_size = wanted.get("segment_size", max(SEGMENT_SIZE_MIN, size // SEGMENTS))
        report = make_durable(
            broker, store, wanted.get("sync", EACH), wanted.get("batch_ms", 20), wanted.get("batch_octets", 8192), segment_size, size
        )
    except (OtherLog, TooSmall, OSError, ValueError, KeyError) as error:
        raise StoreFailed("the messages kept on this board cannot be used: %s" % error) from None
    except ProtocolError as error:
        raise StoreFailed("the limits have no room for what is kept on this board: %s" % error.text) from None
    return store, report

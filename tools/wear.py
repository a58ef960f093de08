"""How long a board's flash lasts with the settings given: what `leveret flash` says of [board.store].

The sums are those of the stores themselves (ports/store_littlefs.py, store_flash.py): each commit writes the last block of its file anew
(folder), or fills the last program unit (flash); each segment is noted when it comes and when it goes (folder). A test has the real log and
stores count the same. Octets of other files on the board are not in it, nor what the chip bears beyond its maker's promise.
"""

from leveret.core.log.journal import BATCH, EACH, NONE
from leveret.ports.store_flash import FlashStore
from leveret.ports.store_littlefs import FolderStore

BLOCK = 4096  # octets of an erasure
UNIT = 256  # octets that are programmed at once
CHUNK = 6 + UNIT // 2  # octets of a commit beside its own, on flash without a file system: head, and half of a unit
MESSAGE = 155  # octets of the log for a reading of two values: its record, and that of its end
SECOND_MS = 1000
YEAR_S = 365.25 * 86400
SIZE, SEGMENTS, SEGMENT_SIZE_MIN = 262144, 8, 4096  # as firmware/keeping.py has them; a test compares
BATCH_MS, BATCH_OCTETS = 20, 8192  # the same


def commits(store, messages):
    """Commits in a second, for `messages` in a second."""
    if store.get("sync", EACH) == NONE:
        return 0.0
    if store.get("sync", EACH) != BATCH:
        return messages
    full = messages * MESSAGE / store.get("batch_octets", BATCH_OCTETS)
    return min(messages, max(full, SECOND_MS / store.get("batch_ms", BATCH_MS)))


def erasures(store, messages):
    """Blocks that are erased in a second."""
    octets = messages * MESSAGE
    if store.get("kind", "folder") == "flash":
        return (octets + CHUNK * commits(store, messages)) / BLOCK
    size = store.get("size", SIZE)
    segment = store.get("segment_size", max(SEGMENT_SIZE_MIN, size // SEGMENTS))
    return octets / BLOCK + commits(store, messages) + 2 * octets / segment


def years(store, flash_size, messages=1.0):
    """Years until a block has been erased as often as its maker promises, at so many messages in a second; `flash_size`: octets of the
    file system, over which littlefs spreads a folder. None: how large the place is nobody has said."""
    is_flash = store.get("kind", "folder") == "flash"
    place = store.get("size") if is_flash else flash_size
    cycles = FlashStore.cycles if is_flash else FolderStore.cycles
    return place / BLOCK * cycles / erasures(store, messages) / YEAR_S if place else None


def lost(store):
    """The loss at a power cut, in words."""
    sync = store.get("sync", EACH)
    if sync == NONE:
        return "everything since the last segment was full"
    if sync == BATCH:
        return f"what came in the last {store.get('batch_ms', BATCH_MS) / SECOND_MS:g} s and is not confirmed"
    return "nothing confirmed"


def sentence_of(settings, flash_size):
    """A sentence for the settings of a board, "" where it keeps nothing."""
    store = settings.get("store")
    if store is None:
        return ""
    every_ms = settings.get("sensor", {}).get("every_ms", SECOND_MS)
    lasts = years(store, flash_size, SECOND_MS / every_ms)
    for_how_long = "" if lasts is None else f"its flash lasts about {lasts:.1f} years at a message in {every_ms / SECOND_MS:g} s; "
    return f"{for_how_long}a power cut costs {lost(store)}"

"""What the log costs a medium: `python tests/measure/log_tables.py [--recover COUNT]... [--json FILE]`

Write amplification: octets that the medium had to write (whole pages of a file with its size, erased blocks of raw flash) for each octet of
persistent messages of 256 octets, by how many of them one sync covers; kept, or taken out of the queue again after each sync. Then
seconds and memory of a start against the size of the log (as tests/measure/durable.py has it); --recover names other counts, 0 for none.
"""

import argparse
import json
import os
import shutil
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, os.pardir, "durable"), os.path.join(HERE, os.pardir, "unit")]

from durable import recover  # noqa: E402 - the path above has to be set first
from flash_device import RamFlash  # noqa: E402 - the path above has to be set first

from leveret.core.broker.broker import Broker  # noqa: E402 - the path above has to be set first
from leveret.core.limits import Limits  # noqa: E402 - the path above has to be set first
from leveret.core.memory import layout  # noqa: E402 - the path above has to be set first
from leveret.core.outcomes import TAKEN, nobody  # noqa: E402 - the path above has to be set first
from leveret.core.recovery import opening  # noqa: E402 - the path above has to be set first
from leveret.ports.store_file import FileStore  # noqa: E402 - the path above has to be set first
from leveret.ports.store_flash import FlashStore  # noqa: E402 - the path above has to be set first

GROUPS = (1, 10, 100)
BODY_SIZE = 256
COUNT = 2000
QUEUE = "readings"
FLASH_BLOCKS = 512
RECOVER = (10000, 100000, 300000)


def amplification(store, group, acknowledges, segment_size, size_max):
    """Octets on the medium for each of a message, `group` of them in a sync."""
    broker = Broker(Limits())
    opening.make_durable(broker, store, "each", 5, 1 << 18, segment_size, size_max)
    queue = broker.topology.make_queue(nobody, QUEUE, True, False, False, {})
    tables = broker.tables
    route = b"\x00" + bytes([len(QUEUE)]) + QUEUE.encode()
    octets = memoryview(struct.pack(">HB", 0x1000, 2) + bytes(BODY_SIZE))
    for _ in range(COUNT // group):
        for _ in range(group):
            message = tables.new_message(route, 3, BODY_SIZE, 0, layout.KIND_DURABLE)
            tables.append(message, octets, 0, len(octets))
            assert broker.put(message, [queue]) == TAKEN
            tables.release(message)
        broker.run()
        if acknowledges:
            broker.queues[QUEUE].purge()
            broker.run()
    return broker.journal.figures()["amplification"]


def amplifications():
    """Rows of the table."""
    rows = []
    for group in GROUPS:
        row = {"group": group}
        for acknowledges in (False, True):
            directory = tempfile.mkdtemp(prefix="log_tables_")
            store = FileStore(directory)
            try:
                row["file", acknowledges] = amplification(store, group, acknowledges, 8 << 20, 1 << 30)
            finally:
                store.close()
                shutil.rmtree(directory)
            flash = FlashStore(RamFlash(FLASH_BLOCKS))
            row["flash", acknowledges] = amplification(flash, group, acknowledges, 65536, 4096 * FLASH_BLOCKS * 3 // 4)
        rows.append({" ".join((key[0], "settled" if key[1] else "kept")) if isinstance(key, tuple) else key: row[key] for key in row})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--recover", type=int, action="append", metavar="COUNT")
    parser.add_argument("--json", default=os.path.join("build", "log_tables.json"), metavar="FILE")
    options = parser.parse_args()
    rows = amplifications()
    columns = [name for name in rows[0] if name != "group"]
    print("write amplification\n%16s" % "messages a sync" + "".join("%20s" % name for name in columns))
    for row in rows:
        print("%16d" % row["group"] + "".join("%20.2f" % row[name] for name in columns), flush=True)
    recovered = []
    print("recovery\n%16s%12s%12s%16s" % ("messages", "log MiB", "seconds", "resident MiB"))
    for count in RECOVER if options.recover is None else [count for count in options.recover if count]:
        recovered.append(recover(count))
        print("%(messages)16d%(log_mib)12d%(seconds)12.1f%(resident_mib)16d" % recovered[-1], flush=True)
    os.makedirs(os.path.dirname(options.json) or ".", exist_ok=True)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"amplification": rows, "recovery": recovered}, file, indent=1)


if __name__ == "__main__":
    main()

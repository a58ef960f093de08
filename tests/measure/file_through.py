"""A file larger than a broker's memory through it: `python tests/measure/file_through.py --mib 1024 --memory 66M`.

It says the broker's largest resident set (VmHWM) and its CPU time after each way. The file is made, sent, received and compared in a folder
of its own, which is removed.
"""

import argparse
import filecmp
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop"))

from broker_process import BrokerProcess

from leveret.ports import files_0_10
from leveret.ports.client import connect

PATIENCE_MS = 120000
MIB = 1 << 20


def used(process):
    """(VmHWM in MiB, seconds of CPU) of a process."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        highest = next(line for line in file if line.startswith("VmHWM"))
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        ticks = file.read().rsplit(")", 1)[1].split()[11:13]
    return int(highest.split()[1]) / 1024, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def told(what, process):
    """Print the figures behind a step."""
    highest, cpu = used(process)
    print(f"{what}: VmHWM {highest:.1f} MiB, CPU {cpu:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of the file")
    parser.add_argument("--memory", default="66M", help="--memory-max of the broker (the least that it takes)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="file-through-") as folder:
        path, got = os.path.join(folder, "image.bin"), os.path.join(folder, "got.bin")
        with open(path, "wb") as file:
            for _ in range(options.mib):
                file.write(os.urandom(MIB))
        broker = BrokerProcess("leveret", arguments=["--data", os.path.join(folder, "data"), "--memory-max", options.memory])
        try:
            client = connect(broker.url)
            client.queue_declare("files", durable=True)
            client.close()
            told("before", broker.process)
            files_0_10.send(broker.url, path, "", "files", timeout_ms=PATIENCE_MS)
            told(f"{options.mib} MiB staged and published", broker.process)
            files_0_10.receive(broker.url, "files", got, wait_s=PATIENCE_MS / 1000)
            told("and delivered", broker.process)
            same = filecmp.cmp(path, got, shallow=False)
        finally:
            broker.stop()
    print("the same octets" if same else "OTHER octets")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())

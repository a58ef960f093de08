"""Bytecode against viper over sockets: `python tests/measure/board_sockets.py`, on a 32-bit `micropython` binary (as micropython32 too).

The firmware's loop and broker run in MicroPython (sockets_inside.py), the client in this process: microseconds of the server's processor a
message, and whose they are. A message of 64 octets is published, delivered and acknowledged, one in each read, or TOGETHER in a read. The
parts, each the median of RUNS runs in turns:

    kernel         poll, reads and writes, as the kernel counts them
    collections    the rest of what a run takes more than one whose garbage is never collected (`gc.threshold` as firmware/main.py has it)
    hot functions  from the receive buffer to the send buffer, the acknowledgement too (time_inside.py)
    the loop       all that is left: the rounds, the streams, what stands between them and the hot functions

This machine's microseconds are not a board's: the ratios and shares carry over.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "micropython"), os.path.join(HERE, os.pardir, "memory")]

import compiled  # noqa: E402 - the path above has to be set first
import stage  # noqa: E402 - as above
import toolchain  # noqa: E402 - as above
from board_load import OPENING  # noqa: E402 - as above
from time_inside import ACKNOWLEDGE, SUBSCRIBE, TOGETHER, publish  # noqa: E402 - as above

PROFILE = "esp32_s3"
HEAP = "1m"
MESSAGES = 6000
SIZE = 64
RUNS = 3
SILENCE_S = 0.5  # nothing more comes of the first messages
THRESHOLD = (1 << 20) // 32
PARTS = ("all", "kernel", "collections", "hot functions", "the loop")
FORMS = {"bytecode": "", "viper": "x86"}
PROGRAM = os.path.join(HERE, "sockets_inside.py")
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_us(process):
    """(user, kernel) microseconds of a process so far."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return int(words[11]) * 1e6 / TICKS, int(words[12]) * 1e6 / TICKS


def started(binary, place, *words):
    """sockets_inside.py in MicroPython."""
    environment = compiled.environment(place, HERE, os.path.join(stage.ROOT, "tests", "memory"))
    command = [binary, "-X", "heapsize=" + HEAP, PROGRAM, *map(str, words)]
    return subprocess.Popen(command, cwd=place, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def size_of_what_comes(client):
    """Octets that come until nothing more does."""
    client.settimeout(SILENCE_S)
    size = 0
    try:
        while True:
            size += len(client.recv(4096))
    except TimeoutError:
        client.settimeout(None)
        return size


def over_sockets(binary, place, together, threshold):
    """(user, kernel) microseconds a message."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with started(binary, place, "socket", port, threshold) as server:
        if server.stdout.readline() != "ready\n":
            sys.exit("the server did not start")
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for octets in OPENING + SUBSCRIBE:
                client.sendall(octets)
                client.recv(4096)
            octets = publish(SIZE) * together
            client.sendall(octets)
            size = size_of_what_comes(client)

            def carry(count):
                for _ in range(count // together):
                    client.sendall(ACKNOWLEDGE + octets)
                    left = size
                    while left:
                        left -= len(client.recv(left))

            carry(MESSAGES // 4)  # the first of a route are remembered
            before = cpu_us(server)
            carry(MESSAGES)
            after = cpu_us(server)
    if server.returncode:
        sys.exit("the server failed")
    return tuple((end - start) / MESSAGES for start, end in zip(before, after, strict=True))


def between_buffers(binary, place, together):
    """Microseconds a message."""
    with started(binary, place, "buffers", together, SIZE) as process:

        def carry():
            process.stdin.write(f"{MESSAGES}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"
            return sum(cpu_us(process))

        before = carry()
        spent = carry() - before
        process.stdin.close()
    return spent / MESSAGES


def measured(binary, places, together):
    """{form: {part: microseconds}}, of runs in turns."""
    runs = {form: [] for form in places}
    for _ in range(RUNS):
        for form, place in places.items():
            user, kernel = over_sockets(binary, place, together, THRESHOLD)
            rest, _ = over_sockets(binary, place, together, 0)
            runs[form].append((user + kernel, kernel, user - rest, between_buffers(binary, place, together)))
    found = {}
    for form, each in runs.items():
        total, kernel, collections, hot = (statistics.median(column) for column in zip(*each, strict=True))
        found[form] = dict(zip(PARTS, (total, kernel, collections, hot, total - kernel - collections - hot), strict=True))
    return found


def main():
    """Print the table; the exit status."""
    try:
        binary = toolchain.unix_32()
    except toolchain.Missing as missing:
        print(missing)
        return 2
    print(f"us a message, {SIZE} octets; medians of {RUNS}, load {os.getloadavg()[0]:.0f}")
    print(f"{'':>22} {'bytecode':>9} {'viper':>9} {'ratio':>6} {'share of viper':>15}")
    with tempfile.TemporaryDirectory(prefix="leveret-sockets-") as directory:
        places = {}
        for form, march in FORMS.items():
            places[form] = os.path.join(directory, form)
            os.mkdir(places[form])
            compiled.make(places[form], PROFILE, march)
        for together in (1, TOGETHER):
            print("one in a read" if together == 1 else f"{together} in a read")
            found = measured(binary, places, together)
            for part in PARTS:
                plain, viper = (found[form][part] for form in FORMS)
                ratio = f"{plain / viper:6.1f}" if viper > 1 else "     -"
                print(f"{part:>22} {plain:9.1f} {viper:9.1f} {ratio} {viper / found['viper'][PARTS[0]]:15.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

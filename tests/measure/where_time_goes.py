"""Where the broker's processor time goes: `python tests/measure/where_time_goes.py [--seconds N]`, as root (perf and strace).

`perf record` watches the broker while `leveret perf` loads it with the scenarios of run.py named in SHOWN; what each sample hit is put into
groups (`group_of`) and told as microseconds of a message's CPU time. strace then counts the system calls of a run of its own, because it
slows the broker down. The table goes into tests/measure/README.md between two marks.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

from run import HERE, SCENARIOS, STREAM, machine, perf, start

README = os.path.join(HERE, "README.md")
BEGIN, END = "<!-- profile: written by tests/measure/where_time_goes.py -->", "<!-- end of profile -->"
SHOWN = ("no_ack", "acks", "confirms", "persistent")
SAMPLES_A_SECOND = 1999
ATTACH_S = 1.0

SCAN, DELIVER, RECORDS = "C: frame scan, checks, routes, queues, acks", "C: deliveries", "C: records of the log"
COPY = "memory to memory copies (memmove, memcpy)"
PYTHON = "Python: the loop, sessions, calls of C and of the system"
KERNEL_COPY, KERNEL_PAGES = "kernel: copies between sockets and memory", "kernel: pages touched for the first time"
KERNEL = "kernel: TCP, epoll, waking others"
THREAD = "the log's thread: write and sync"
GROUPS = (SCAN, DELIVER, RECORDS, COPY, PYTHON, KERNEL_COPY, KERNEL_PAGES, KERNEL, THREAD)
CALLS = ("recvfrom", "sendto", "epoll_wait")


def group_of(is_main, file, symbol):
    """The group of a sample: whether it is of the broker's own thread, the file (dso) and the symbol that perf names."""
    if not is_main:
        return THREAD
    if file.startswith("["):
        if re.search("copy_(to|from|user)|_copy_|rep_movs", symbol):
            return KERNEL_COPY
        return KERNEL_PAGES if re.search("fault|folio|shmem|clear_page|pte", symbol) else KERNEL
    if file.startswith("_hot."):
        if re.search("write_pushed|gather_settled|crc", symbol):
            return RECORDS
        return DELIVER if re.search("pump|put_|next_turn|starve|feed|set_in|sent|room|pending|send", symbol) else SCAN
    return COPY if re.search("memmove|memcpy", symbol) else PYTHON


def shares(recorded, pid):
    """{group: share of the samples} of a file of `perf record`."""
    command = ["perf", "report", "-i", recorded, "--stdio", "-s", "pid,dso,symbol", "-t", "|"]
    report = subprocess.run(command, capture_output=True, text=True)
    found = {}
    for line in report.stdout.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if line.startswith("#") or len(cells) < 4 or not cells[0].endswith("%"):
            continue
        group = group_of(cells[1].split(":")[0] == str(pid), cells[2], cells[3])
        found[group] = found.get(group, 0) + float(cells[0][:-1])
    total = sum(found.values())
    if not total:
        sys.exit("perf recorded nothing: run this as root")
    return {group: share / total for group, share in found.items()}


def watched(command, action):
    """Run `action` while `command` watches: what it answers."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watching:
        time.sleep(ATTACH_S)
        try:
            return action()
        finally:
            watching.send_signal(signal.SIGINT)


def profile(broker, seconds, arguments):
    """(messages a second, CPU microseconds of a message, {group: share}) of one scenario."""
    perf(broker, 1, *arguments)  # so that what is done once is over
    with tempfile.TemporaryDirectory() as directory:
        recorded = os.path.join(directory, "perf.data")
        command = ["perf", "record", "-F", str(SAMPLES_A_SECOND), "-p", str(broker.server_pid), "-o", recorded]
        summary, cpu = watched(command, lambda: perf(broker, seconds, *arguments))
        return summary["received_per_s"], 1e6 * cpu / summary["received"], shares(recorded, broker.server_pid)


def calls(broker, arguments):
    """{system call: how many for 1,000 messages}."""
    with tempfile.TemporaryDirectory() as directory:
        counted = os.path.join(directory, "strace")
        command = ["strace", "-c", "-f", "-o", counted, "-p", str(broker.server_pid)]
        summary, _ = watched(command, lambda: perf(broker, 1, *arguments))
        with open(counted, encoding="utf-8") as file:
            rows = [line.split() for line in file]
    return {row[-1]: 1000 * int(row[3]) / summary["received"] for row in rows if row and row[-1] in CALLS}


def table(found, seconds):
    """The block for README.md, of {scenario: (rate, CPU microseconds, shares, calls)}."""
    told = machine()
    titles = {name: title for name, title, _, _ in SCENARIOS}
    text = (
        "Measured %s, %d cores (%s), Python %s, load average %.1f, %d s each; microseconds of the broker's CPU time for a message of "
        "256 octets on average, %s." % (told["date"], told["cpu_count"], told["cpu"], told["python"], told["load_average"], seconds, STREAM)
    )
    lines = [
        BEGIN,
        textwrap.fill(text, 140),
        "",
        "| | " + " | ".join(titles[name] for name in found) + " |",
        "|---|" + "---:|" * len(found),
    ]

    def row(title, cells):
        lines.append("| %s | %s |" % (title, " | ".join(cells)))

    row("messages/s while watched", ["{:,.0f}".format(rate) for rate, _, _, _ in found.values()])
    row("CPU a message", ["%.2f us" % cpu for _, cpu, _, _ in found.values()])
    for group in GROUPS:
        if any(share.get(group, 0) >= 0.005 for _, _, share, _ in found.values()):
            parts = [(cpu, share.get(group, 0)) for _, cpu, share, _ in found.values()]
            row(group, ["%.2f us (%.0f %%)" % (cpu * part, 100 * part) for cpu, part in parts])
    for call in CALLS:
        row("`%s` for 1,000 messages" % call, ["%.1f" % count.get(call, 0) for _, _, _, count in found.values()])
    return "\n".join(lines + [END])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=5, help="length of each watched run (default 5)")
    options = parser.parse_args()
    missing = [tool for tool in ("perf", "strace") if shutil.which(tool) is None]
    if missing:
        sys.exit("this needs %s: apt install linux-perf strace" % " and ".join(missing))
    found = {}
    for name, title, arguments, _ in SCENARIOS:
        if name not in SHOWN:
            continue
        broker = start("leveret", name == "persistent")
        try:
            found[name] = (*profile(broker, options.seconds, arguments), calls(broker, arguments))
        finally:
            broker.stop()
        print("%s: %d /s, %.2f us" % (title, *found[name][:2]), file=sys.stderr, flush=True)
    block = table(found, options.seconds)
    print(block)
    with open(README, encoding="utf-8") as file:
        text = file.read()
    with open(README, "w", encoding="utf-8") as file:
        file.write(re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: block, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()

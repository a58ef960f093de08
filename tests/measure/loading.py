"""One run of a load program against one broker, for the rows of the bench (run.py, rows_1_0.py): its rate and the broker's CPU time."""

import json
import os
import subprocess
import sys

import psutil

HERE = os.path.dirname(os.path.abspath(__file__))


class RunFailed(Exception):
    """A run of `leveret perf` ended badly; the text is what it said."""


# What a run can end with: it failed, its broker is gone or did not start, its answer makes no sense. The other runs go on.
FAILURES = (RunFailed, OSError, RuntimeError, ValueError, KeyError, AssertionError, psutil.Error)


def say(text):
    print(text, file=sys.stderr, flush=True)


def command_of(program):
    """The command of a program that lies beside this one."""
    return [sys.executable, os.path.join(HERE, program)]


def cpu_seconds(broker):
    times = psutil.Process(broker.server_pid).cpu_times()
    return times.user + times.system


def perf(broker, url, seconds, *arguments):
    """(summary of one run, CPU seconds that the broker took). Raises RunFailed."""
    cpu = cpu_seconds(broker)
    command = [sys.executable, "-m", "leveret.tools.cli", "perf", url, "--json", "-", "--seconds", str(seconds), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RunFailed("%s, %s: %s" % (broker.column, " ".join(map(str, arguments)), done.stderr[-1000:]))
    return json.loads(done.stdout)["summary"], cpu_seconds(broker) - cpu


def add_run(row, column, title, number, measured):
    """A run's figures, as `perf` has them, to a row of cells: {column: {"rates": [...], "cpu_us": [...], "load_us": [...]}}. The
    last is the CPU time of the busier process of the load for a message: without any broker it could do no more than one in that time."""
    summary, cpu = measured
    cell = row.setdefault(column, {"rates": [], "cpu_us": [], "load_us": []})
    if summary.get("received"):
        cell["rates"].append(min(summary["received_per_s"], summary.get("confirmed_per_s", 1e12)))
    else:  # there was no consumer
        cell["rates"].append(summary["confirmed_per_s"])
    count = summary.get("received") or summary["confirmed"]
    cell["cpu_us"].append(1e6 * cpu / count)
    cell.setdefault("load_us", []).append(1e6 * max(summary["cpu_s"].values()) / count)
    say("  %-42s run %d  %-9s %10d /s  %6.2f us CPU" % (title, number + 1, column, cell["rates"][-1], cell["cpu_us"][-1]))

"""How much of the product a leg's tests run: lines, measured by slipcover, which costs a fifth of the leg's time and no settrace.

Where slipcover has no wheel the leg runs without it and says that nothing was measured.
"""

import json
import subprocess

FOLDERS = ("core", "ports", "tools")
# Runs of a line that slipcover has seen before it takes its probes out of all functions at once. With `--immediate` a loop of CPython 3.11
# stays three times as slow as without slipcover, with this it is a tenth; with far fewer it takes probes out too often.
RUNS_MAX = 3000
NOT_MEASURED = "coverage not measured: slipcover is not installed"


def is_installed(python):
    """True when the interpreter that runs the leg has slipcover: it is another one than that of the command."""
    return subprocess.run([python, "-c", "import slipcover"], capture_output=True).returncode == 0


def wrapper(python, record):
    """The arguments between `python` and `-m pytest` with which `record` is written; empty without slipcover."""
    if not is_installed(python):
        return []
    return ["-m", "slipcover", "--threshold", str(RUNS_MAX), "--source", ",".join(FOLDERS), "--json", "--out", record]


def lines_of(record):
    """{folder: (lines that ran, all lines)} of a record, or None when there is none."""
    try:
        with open(record, encoding="utf-8") as file:
            files = json.load(file)["files"]
    except (OSError, ValueError, KeyError):
        return None
    counts = {folder: [0, 0] for folder in FOLDERS}
    for path, lines in files.items():
        folder = path.split("/")[0]
        counts[folder][0] += len(lines["executed_lines"])
        counts[folder][1] += len(lines["executed_lines"]) + len(lines["missing_lines"])
    return {folder: tuple(count) for folder, count in counts.items() if count[1]}


def sentence(record):
    """As "coverage: core 84 %, ports 60 %"."""
    counts = lines_of(record)
    if not counts:
        return NOT_MEASURED
    return "coverage: " + ", ".join("%s %d %%" % (folder, 100 * ran // all_) for folder, (ran, all_) in counts.items())

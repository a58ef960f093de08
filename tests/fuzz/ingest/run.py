"""Fuzzes the C hot functions: `python tests/fuzz/ingest/run.py [--seconds N]` (clang with libFuzzer; default 60 s of one process).

Builds fuzz_ingest.c, ../ingest_0_10/fuzz_ingest_0_10.c and ../framing/fuzz_framing.c with the address and undefined-behaviour
sanitizers and runs one after the other, the first for the time given, the second for half of it more, the third for a tenth. Each
begins with the inputs in its corpus/ (made from encoded frames) and with what earlier runs have found new in build/fuzz/. Ends with 0
unless an input fails; that one is left in build/fuzz/ and named.
"""

import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.append(os.path.join(ROOT, "c_accel"))
import sources  # noqa: E402 - where the fuzzer is built Leveret need not be installed

WORK = os.path.join(ROOT, "build", "fuzz")
INPUT_SIZE_MAX = 6000
TARGETS = (("ingest", 1), ("ingest_0_10", 0.5), ("framing", 0.1))  # tests/fuzz/NAME/fuzz_NAME.c, and its share of the time


def build(target, compiler="clang"):
    """The path of a target's fuzzer."""
    os.makedirs(WORK, exist_ok=True)
    program = os.path.join(WORK, "fuzz_" + target)
    subprocess.run(
        [
            compiler,
            "-std=c11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=fuzzer,address,undefined",
            "-fno-sanitize-recover=all",
            os.path.join(os.path.dirname(HERE), target, "fuzz_%s.c" % target),
            *sources.hot_files(),
            "-o",
            program,
        ],
        check=True,
    )
    return program


def run_target(target, seconds):
    """The exit status of a run of one target."""
    found = os.path.join(WORK, "found" if target == "ingest" else "found_" + target)
    os.makedirs(found, exist_ok=True)
    try:
        program = build(target)
    except subprocess.CalledProcessError:
        print("the fuzzer cannot be built; apt-get install libclang-rt-dev brings clang's libraries for it")
        return 2
    corpus = os.path.join(os.path.dirname(HERE), target, "corpus")
    return subprocess.run(
        [
            program,
            "-max_total_time=%d" % seconds,
            "-max_len=%d" % INPUT_SIZE_MAX,
            "-print_final_stats=1",
            "-artifact_prefix=" + WORK + os.sep,
            found,
            corpus,
        ]
    ).returncode


def run(seconds):
    """The exit status: 0, or the first other one."""
    if shutil.which("clang") is None:
        print("clang is not there; apt-get install clang brings it")
        return 2
    for target, share in TARGETS:
        status = run_target(target, max(1, round(seconds * share)))
        if status:
            return status
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=60)
    sys.exit(run(parser.parse_args().seconds))

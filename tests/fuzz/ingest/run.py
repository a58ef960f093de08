"""Fuzzes the C hot functions: `python tests/fuzz/ingest/run.py [--seconds N]` (clang with libFuzzer; default 60 s of one process).

Builds fuzz_ingest.c with the address and undefined-behaviour sanitizers, begins with the inputs in corpus/ (made here from encoded frames)
and with what earlier runs have found new in build/fuzz/, and ends with 0 unless an input fails; that one is left in build/fuzz/ and named.
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
CORPUS = os.path.join(HERE, "corpus")
sys.path.append(os.path.join(ROOT, "c_accel"))
import sources  # noqa: E402 - where the fuzzer is built Leveret need not be installed

WORK = os.path.join(ROOT, "build", "fuzz")
INPUT_SIZE_MAX = 6000


def build(compiler="clang"):
    """The fuzzer's path."""
    os.makedirs(WORK, exist_ok=True)
    program = os.path.join(WORK, "fuzz_ingest")
    subprocess.run([compiler, "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=fuzzer,address,undefined",
                    "-fno-sanitize-recover=all", os.path.join(HERE, "fuzz_ingest.c"), *sources.hot_files(), "-o", program], check=True)
    return program


def run(seconds):
    """The exit status of a run."""
    if shutil.which("clang") is None:
        print("clang is not there; apt-get install clang brings it")
        return 2
    found = os.path.join(WORK, "found")
    os.makedirs(found, exist_ok=True)
    try:
        program = build()
    except subprocess.CalledProcessError:
        print("the fuzzer cannot be built; apt-get install libclang-rt-dev brings clang's libraries for it")
        return 2
    return subprocess.run([program, "-max_total_time=%d" % seconds, "-max_len=%d" % INPUT_SIZE_MAX, "-print_final_stats=1",
                           "-artifact_prefix=" + WORK + os.sep, found, CORPUS]).returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=60)
    sys.exit(run(parser.parse_args().seconds))

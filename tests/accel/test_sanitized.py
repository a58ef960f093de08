"""Every C file of the hot functions at work in brokers, built with sanitizers.

test_builds.py hands its self-test recorded calls, which have neither dead letters nor remembered ids, sets of bindings, windows, AMQP 1.0
or sockets.
"""

import os
import re
import subprocess
import sys
import sysconfig

from test_builds import HERE, HOT, ROOT, SANITIZE, tool

FILES = (
    "test_converted_1_0.py",
    "test_disk.py",
    "test_drafts_same.py",
    "test_framing.py",
    "test_gets_in_c.py",
    "test_groups_in_c.py",
    "test_large.py",
    "test_latest.py",
    "test_letters_same.py",
    "test_matching.py",
    "test_passing_by.py",
    "test_reading.py",
    "test_remembering.py",
    "test_requests.py",
    "test_returns.py",
    "test_same.py::test_any_octets_behind_a_good_publish",
    "test_same.py::test_packs_of_a_stream",
    "test_same_0_10.py",
    "test_same_1_0.py",
    "test_streams_1_0.py",
    "test_neutral.py",
)
SEEDS = "8"  # where the tests without sanitizers have 40
RUN_LEAST = 50  # per cent of the lines of each file


def built(folder):
    """The path of the module, built with sanitizers and counters of lines."""
    path = os.path.join(folder, "hot.so")
    glue = os.path.join(ROOT, "build", "c_accel", "_hot.c")
    include = ("-I" + os.path.join(ROOT, "c_accel"), "-I" + sysconfig.get_path("include"))
    subprocess.run([tool("gcc"), "-shared", "-fPIC", "--coverage", *SANITIZE, *include, *HOT, glue, "-o", path], check=True, cwd=folder)
    return path


def lines_run(folder):
    """{name of a C file: per cent of its lines that were run}."""
    counted = [name for name in os.listdir(folder) if name.endswith(".gcda")]
    done = subprocess.run([tool("gcov"), "-n", *counted], cwd=folder, capture_output=True, text=True, check=True)
    found = re.findall(r"File '(.*)'\nLines executed:([0-9.]+)%", done.stdout)
    return {os.path.basename(path): float(share) for path, share in found}


def test_each_c_file_is_run_with_sanitizers(tmp_path):
    library = subprocess.run([tool("gcc"), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    given = dict(
        os.environ,
        LD_PRELOAD=library,  # the interpreter was built without it
        ASAN_OPTIONS="detect_leaks=0",  # the interpreter's own, at its end
        PYTHONMALLOC="malloc",  # so that what lies behind a piece of cffi's memory is guarded
        LEVERET_SANITIZED=built(str(tmp_path)),
        LEVERET_SAME_SEEDS=SEEDS,
        PYTHONPATH=HERE,
    )
    tests = [os.path.join(HERE, name) for name in FILES]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "sanitized", *tests], cwd=ROOT, capture_output=True, text=True, timeout=6000, env=given
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    shares = lines_run(str(tmp_path))
    assert {name: shares.get(name, 0) for name in map(os.path.basename, HOT) if shares.get(name, 0) < RUN_LEAST} == {}

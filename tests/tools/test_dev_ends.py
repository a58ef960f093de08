"""Ending `dev.py` from outside, as a terminal that closes or a build system does, ends everything it started."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEV = os.path.join(ROOT, "tools", "dev.py")


def living(processes):
    return [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number, expected", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("arguments, count", [(("demo", "--seconds", "60"), 6), (("test", "serial"), 1)])
def test_nothing_that_dev_started_is_left(arguments, count, number, expected, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    dev = subprocess.Popen(
        [sys.executable, DEV, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )
    limit = time.monotonic() + 180
    children = []
    while len(children) < count and time.monotonic() < limit and dev.poll() is None:
        time.sleep(0.1)
        children = psutil.Process(dev.pid).children(recursive=True)
    assert len(children) >= count, children
    os.killpg(dev.pid, number)  # the group, as a terminal does for Ctrl-C
    told = dev.communicate(timeout=180)[0]
    assert dev.returncode == expected and "Traceback" not in told, (dev.returncode, told)
    assert not living(children)

"""Children of the demo: their failures name the log, and none of them outlives the `with` block, nor does what they started."""

import signal
import sys
import time

import pytest

from leveret.tools.children import Child, ChildFailed, Children
from leveret.tools.held_signals import HeldSignals


def running(process):
    """True while a process lives; one that has ended and waits to be collected does not."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def python(name, program, directory):
    return Child(name, [sys.executable, "-u", "-c", program], str(directory))


def test_a_line_is_waited_for(tmp_path):
    child = python("a", "print('noise'); print('ready amqp://x:1')", tmp_path)
    assert child.wait_line("ready ", 10) == "ready amqp://x:1"
    assert child.wait_end(10) == ["noise", "ready amqp://x:1"]


def test_a_failure_names_the_reason_and_the_logs(tmp_path):
    child = python("b", "import sys; sys.exit('no such device')", tmp_path)
    with pytest.raises(ChildFailed, match=r"b ended with exit status 1: no such device \(logs: .*b\.log, .*b\.err\)"):
        child.wait_line("ready ", 10)


def test_silence_is_a_failure_too(tmp_path):
    child = python("c", "import time; time.sleep(60)", tmp_path)
    with pytest.raises(ChildFailed, match="did not print 'ready' within 0.3 s"):
        child.wait_line("ready ", 0.3)
    with pytest.raises(ChildFailed, match="did not end within 0.1 s"):
        child.wait_end(0.1)
    child.end()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_nothing_outlives_the_block(tmp_path, failure):
    program = (
        "import subprocess, signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(0)); "
        "print('pid', subprocess.Popen(['sleep', '60']).pid); time.sleep(60)"
    )
    with pytest.raises(failure):
        with Children(str(tmp_path)) as children:
            child = python("d", program, tmp_path)
            children._all.append(child)
            grandchild = int(child.wait_line("pid ", 10).split()[1])
            assert running(child.process.pid) and running(grandchild)
            raise failure
    assert not running(child.process.pid) and child.process.returncode == 0
    limit = time.monotonic() + 30
    while running(grandchild) and time.monotonic() < limit:
        time.sleep(0.01)
    assert not running(grandchild)


def test_a_child_that_ended_badly_is_noticed(tmp_path):
    with Children(str(tmp_path)) as children:
        child = children.start("e", ["there.is.no.such.module"])
        child.process.wait(60)
        with pytest.raises(ChildFailed, match="No module named"):
            children.check()


def test_a_signal_that_comes_while_a_child_is_started_is_delivered_after_it_is_noted(tmp_path):
    """A thousand tries would be needed to hit the moment by chance: the signal is raised inside it."""
    children = Children(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        with HeldSignals():
            signal.raise_signal(signal.SIGINT)
            child = python("f", "import time; time.sleep(60)", tmp_path)
            children._all.append(child)
    assert running(child.process.pid)
    children.end_all()
    assert child.process.returncode == -signal.SIGTERM

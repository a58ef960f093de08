"""Copies of the tree for `dev.py mutate`, and the programs that run in them: each in a group of processes of its own, with limits.

Laws: the checkout is never written to; a signal ends what runs, and begins nothing more.
"""

import compileall
import concurrent.futures
import os
import py_compile
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from . import legs

COPIED = ("core", "ports", "tools", "c_accel", "boards", "firmware", "tests", "build", ".ci")
PACKAGES = ("core", "ports", "tools", "c_accel", "boards", "firmware")


def write(place, path, text):
    """Write the text of a file, with a path from the root of the tree, into a copy."""
    with open(os.path.join(place, path), "w", encoding="utf-8") as file:
        file.write(text)


def make_copy(parent, like=None):
    """A copy of the tree, the folder `leveret` in the new directory `parent`: Python finds it there before the checkout. `like`: a copy
    that is whole, with what is compiled in it."""
    place = os.path.join(parent, "leveret")
    if like is not None:
        return shutil.copytree(like, place, symlinks=True)
    os.makedirs(place)
    for name in os.listdir(legs.ROOT):
        path = os.path.join(legs.ROOT, name)
        if name in COPIED and os.path.isdir(path):
            shutil.copytree(path, os.path.join(place, name), symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        elif os.path.isfile(path):
            shutil.copyfile(path, os.path.join(place, name))
    for name in (".cache", ".venv"):
        if os.path.isdir(os.path.join(legs.ROOT, name)):
            os.symlink(os.path.join(legs.ROOT, name), os.path.join(place, name))
    # Compiled files say of which text they are: one that is changed within a second of the other is compiled anew.
    for name in PACKAGES:
        compileall.compile_dir(os.path.join(place, name), quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    return place


def _environment(place, temporary):
    given = dict(
        os.environ,
        PYTHONPATH=os.path.dirname(place),
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONHASHSEED="1",
        TMPDIR=temporary,
        LEVERET_FUZZ_SEED="1",
        LEVERET_KILL_SEED="1",
        LEVERET_SPARK_SEED="1",
        LEVERET_CABLE_SEED="1",
        LEVERET_ATTACK_SEED="1",
    )
    given.pop("LEVERET_SHARED", None)
    return given


class Ended(Exception):
    """The run is over: no test is begun any more."""


class Running:
    """The tests that run now, each the leader of a group of processes; `end` kills them all."""

    def __init__(self):
        self.lock = threading.Lock()
        self.children = set()
        self.is_over = False

    def start(self, command, **options):
        """A child in a group of its own. Raises Ended when the run is over."""
        with self.lock:
            if self.is_over:
                raise Ended
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
            self.children.add(child)
            return child

    def stop(self, child):
        """Kill a child and what it has left behind in its group, and collect it."""
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        with self.lock:
            self.children.discard(child)

    def end(self):
        """Kill every group: the threads that wait for them go on, and can begin no other."""
        with self.lock:
            self.is_over = True
            for child in self.children:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


RUNNING = Running()


def in_threads(count, work, items, tell):
    """Call `work` for every item, in `count` threads, and `tell` with each answer as it comes. An exception here, as a signal's is, ends
    what the threads run, begins nothing more, and is raised when they have ended."""
    pool = concurrent.futures.ThreadPoolExecutor(count)
    try:
        for done in concurrent.futures.as_completed([pool.submit(work, item) for item in items]):
            tell(done.result())
    except BaseException:  # signals too: no test may stay behind
        pool.shutdown(wait=False, cancel_futures=True)
        RUNNING.end()
        raise
    finally:
        pool.shutdown()


def slowness():
    """How many times longer a program takes now than on a quiet machine: processes that want to run, for each core; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def run_child(place, command, cpu_s, wall_s):
    """(exit status, output, seconds) of a program in a copy; the status None: it did not end in its time.

    The limit is the processor's time, so that a busy machine kills no mutant; the wall clock's limit is for what waits for ever.
    """

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))

    before = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leveret-mutant-", ignore_cleanup_errors=True) as temporary:
        child = RUNNING.start(
            command,
            cwd=place,
            env=_environment(place, temporary),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=limit,
        )
        try:
            output = child.communicate(timeout=wall_s)[0].decode("utf-8", "replace")
            status = None if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else child.returncode
        except subprocess.TimeoutExpired:
            output, status = "", None
        finally:
            RUNNING.stop(child)  # what the tests have left behind is in their group, or ends with its pipes
            child.stdout.close()
    return status, output, time.monotonic() - before

"""The `.venv` of the working copy: made once, made again when pyproject.toml, the Python or the wanted extras change.

Laws: nothing is installed outside `.venv`; every failure is one sentence with what to do; a half-made environment is never taken
for a good one (the stamp is written last). It does not install Java, node or other system packages: it says how to.
"""

import fcntl
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys

from .. import components
from ..held_signals import HeldSignals
from . import locks, progress

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, ".venv")
LOGS = os.path.join(ROOT, ".dev", "logs")
STAMP = os.path.join(VENV, "leveret-stamp.json")
INSTALL_SECONDS_MAX = 1800
NEEDS_TESTS = ("setup", "test", "check", "mutate", "bench", "simulate", "attack", "kill")
NEEDS_JAVA = ("setup", "test", "demo")


def venv_python():
    return os.path.join(VENV, "bin", "python")


def wanted_extras(command):
    """The extras of pyproject.toml that `command` can use on this machine."""
    extras = ["demo", "flash", "package", "test", "web"] if command in NEEDS_TESTS else ["demo"]
    if command in ("site", "package"):
        extras.append(command)
    if command in NEEDS_JAVA:
        if components.JAVA.present():
            extras.append("spark")
        elif command == "setup":  # the others say it where the Spark part would be
            print(components.JAVA.sentence(), flush=True)
    return extras


def _project_hash():
    """Of all that says what is installed."""
    octets = b""
    c_files = sorted(glob.glob(os.path.join(ROOT, "c_accel", "*.[ch]")))
    written = sorted(glob.glob(os.path.join(locks.FOLDER, "*.txt")))
    for path in [os.path.join(ROOT, "pyproject.toml"), os.path.join(ROOT, "tools", "build_backend.py"), *written, *c_files]:
        with open(path, "rb") as file:
            octets += file.read()
    return hashlib.sha256(octets).hexdigest()


def _read_stamp():
    """The contents of `.venv`, or None when it must be made again (none yet, another Python, a moved working copy)."""
    try:
        with open(STAMP) as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None
    fits = stamp.get("python") == sys.version and stamp.get("root") == ROOT and os.access(venv_python(), os.X_OK)
    return stamp if fits else None


def _refuse_without_ensurepip():
    try:
        import ensurepip  # noqa: F401 - imported only to see whether Debian's python3-venv is there
        import venv  # noqa: F401 - same
    except ImportError:
        sys.exit(
            "This Python cannot make a virtual environment (Debian keeps that part in a package of its own); "
            "install it with: sudo apt-get install -y python3-venv"
        )


def _make_venv():
    _refuse_without_ensurepip()
    shutil.rmtree(VENV, ignore_errors=True)
    log = os.path.join(LOGS, "venv.log")
    if progress.run("making .venv", [sys.executable, "-m", "venv", VENV], log, INSTALL_SECONDS_MAX) != 0:
        sys.exit(f"Could not make {VENV}: {progress.last_line(log)} (log: {log})")


def _failed_install(log):
    with open(log, errors="replace") as file:
        reasons = [line.strip() for line in file if ("ERROR: " in line and "Exception:" not in line) or "No space left" in line]
    reason = reasons[0] if reasons else progress.last_line(log)
    sys.exit(
        f"Installing the packages failed: {reason[:300]}\n"
        f"Check the network (pip must reach PyPI) and the free disk space, then run the command again; the log is {log}"
    )


def _install(extras, there):
    log = os.path.join(LOGS, "install.log")
    title = "installing " + ", ".join(["leveret"] + extras)
    spark_is_new = "spark" in extras and "spark" not in there
    print(f"{title} into .venv" + (" (pyspark alone is 450 MB: this takes minutes)" if spark_is_new else ""), flush=True)
    pip = [venv_python(), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    locked = [word for group in [locks.CORE, *extras] for word in ("--requirement", locks.path_of(group))]
    try:
        for command in ([*pip, "--require-hashes", *locked], [*pip, "--no-deps", "--no-build-isolation", "--editable", ROOT]):
            if progress.run(title, command, log, INSTALL_SECONDS_MAX) != 0:
                _failed_install(log)
    except progress.TimedOut:
        sys.exit(f"Installing the packages took longer than {INSTALL_SECONDS_MAX // 60} minutes and was stopped; the log is {log}")


def _write_stamp(extras):
    with open(STAMP + ".new", "w") as file:
        json.dump({"python": sys.version, "root": ROOT, "project": _project_hash(), "extras": extras}, file)
    os.replace(STAMP + ".new", STAMP)


def prepare(command):
    """Make `.venv` fit for `command`; the path of its Python. Ends the process with one sentence when that fails."""
    os.makedirs(LOGS, exist_ok=True)
    with open(os.path.join(LOGS, "lock"), "w") as lock:  # two commands at once: the second waits for the first one's set-up
        fcntl.flock(lock, fcntl.LOCK_EX)
        _prepare(wanted_extras(command))
    return venv_python()


def _prepare(wanted):
    stamp = _read_stamp()
    if stamp is None:
        _make_venv()
        stamp = {"project": None, "extras": []}
    if stamp["project"] != _project_hash() or set(wanted) - set(stamp["extras"]):
        extras = sorted(set(wanted) | set(stamp["extras"]))
        _install(extras, stamp["extras"])
        _write_stamp(extras)


def child_environment():
    """Environment for children: `.venv` first on PATH."""
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([os.path.join(VENV, "bin"), environment.get("PATH", os.defpath)])
    environment["VIRTUAL_ENV"] = VENV
    environment.setdefault("PYTHONUNBUFFERED", "1")
    return environment


def run_here(command):
    """Run a child on our own terminal; its exit status. Ctrl-C reaches it too: we wait for its own clean end. SIGTERM we pass on."""
    child = None
    try:
        with HeldSignals():
            child = subprocess.Popen(command, env=child_environment())
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                continue
    finally:
        if child is not None and child.poll() is None:
            child.terminate()
            child.wait()

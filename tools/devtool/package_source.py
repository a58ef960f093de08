"""What the packages are made of: a copy of the sources, the time of their commit, and tools that are run on them."""

import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARTS = ("core", "c_accel", "ports", "tools", "boards", "firmware", "pyproject.toml", "README.md", "LICENSE")
NOT_SOURCES = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")


class PackagingFailed(Exception):
    """One sentence."""


def run(command, **given):
    """What a tool writes to standard output. Raises PackagingFailed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, **given)
    except FileNotFoundError:
        raise PackagingFailed(f"{command[0]} is missing") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise PackagingFailed(f"{os.path.basename(command[0])} failed: " + "\n".join(lines[-20:]))
    return done.stdout


def copy_to(folder):
    """Copy what packages are made of: a build leaves folders behind in the tree that it builds from."""
    for name in PARTS:
        path = os.path.join(ROOT, name)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(folder, name), ignore=NOT_SOURCES)
        else:
            shutil.copy2(path, folder)


def commit_time():
    """Seconds since 1970 of the last commit, which all times in packages are; without git 1980-01-01, the oldest that a zip file knows."""
    try:
        return int(run(["git", "-C", ROOT, "log", "-1", "--format=%ct"]))
    except PackagingFailed:
        return 315532800

"""The source distributions that carry the suites: brought once by pip into .cache/suites, checked by hash before every use.

Laws: nothing is unpacked inside the working copy's own folders; what is unpacked is whole and unmodified; nothing of it is committed.
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "sources.txt")
CACHE = os.path.join(HERE, os.pardir, os.pardir, ".cache", "suites")
DOWNLOAD_S_MAX = 180
ENDS_IN_TGZ = ("amqplib",)


class ArchiveMissing(Exception):
    """A source distribution that could not be had; the text is one sentence."""


def pinned():
    """{project: (version, sha256)} of sources.txt."""
    with open(SOURCES, encoding="ascii") as file:
        matches = re.findall(r"^(\S+)==(\S+) --hash=sha256:(\w+)$", file.read(), re.MULTILINE)
    return {project: (version, digest) for project, version, digest in matches}


def archive_of(project):
    """Path of the archive, downloaded if need be. Raises ArchiveMissing."""
    version, digest = pinned()[project]
    path = os.path.join(CACHE, f"{project}-{version}{'.tgz' if project in ENDS_IN_TGZ else '.tar.gz'}")
    if not is_whole(path, digest):
        download()
        if not is_whole(path, digest):
            raise ArchiveMissing(f"{path} is not the archive that sources.txt names")
    return path


def is_whole(path, digest):
    """True when the file is there and has this SHA-256."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == digest
    except FileNotFoundError:
        return False


def download():
    """Bring all archives with pip, which checks the hashes too. Raises ArchiveMissing."""
    os.makedirs(CACHE, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        ":all:",
        "--require-hashes",
        "--dest",
        CACHE,
        "--requirement",
        SOURCES,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_S_MAX)
    if done.returncode:
        told = done.stderr.strip().splitlines() or ["pip said nothing"]
        raise ArchiveMissing(f"pip could not download the suites (is PyPI reachable?): {told[-1]}; try it by hand: {' '.join(command)}")


def unpack(project, directory):
    """Unpack a project's archive into `directory`: the path of its own folder."""
    with tarfile.open(archive_of(project)) as archive:
        archive.extractall(directory, filter="data")
    return os.path.join(directory, f"{project}-{pinned()[project][0]}")

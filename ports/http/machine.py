"""What the operating system tells of this process and its disk."""

import os
import resource

PID = os.getpid()


def resident() -> int:
    """Octets of memory that are this process's now (VmRSS); the most that it has had, where /proc is not there."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def descriptors() -> tuple[int, int]:
    """(open, most) files of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        return len(os.listdir("/proc/self/fd")) - 1, soft
    except OSError:
        return 0, soft


def disk(directory: str | None) -> int:
    """Octets left on the disk of a directory (None: the current one)."""
    try:
        figures = os.statvfs(directory or ".")
    except OSError:
        return 0
    return figures.f_bavail * figures.f_frsize


def memory() -> int:
    """Octets of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def processors() -> int:
    """How many there are."""
    return os.cpu_count() or 1

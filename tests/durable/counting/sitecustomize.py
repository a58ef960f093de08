"""Python loads this in a broker that held.py counts: at SIGUSR2 the interpreter writes what is allocated in it.

Garbage of cycles is collected first. pymalloc's own table comes with the octets of its blocks in use (sys._debugmallocstats); a last line
has those of the C library, whose blocks are all of more than 512 octets, arrays among them. RSS has what both keep free as well.
"""

import gc
import os
import signal
import sys


def count(*_):
    """A signal's handler: write the file that the environment names, whole or not at all."""
    import ctypes  # here, so that a broker that is never asked does without

    class Allocated(ctypes.Structure):
        """struct mallinfo2 of malloc.h."""

        _fields_ = [
            (name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
        ]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Allocated
    gc.collect()
    path = os.environ["LEVERET_COUNTS"]
    with open(path + ".new", "wb", buffering=0) as file:
        errors = os.dup(2)  # where sys._debugmallocstats writes
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(errors, 2)
        os.close(errors)
        allocated = mallinfo2()
        file.write(b"malloc %d\n" % (allocated.uordblks + allocated.hblkhd))
    os.rename(path + ".new", path)


if "LEVERET_COUNTS" in os.environ:
    signal.signal(signal.SIGUSR2, count)

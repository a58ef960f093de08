"""A serial cable made of two pseudo-terminals: what is written into one end comes out of the other.

Stands in for a real cable where there is none; it has no speed limit and damages nothing. Laws: a full end stops the other one
(64 KiB wait in between at most), so nothing is lost; both ends are raw, so nothing is translated.
"""

import os
import pty
import select
import threading
import tty

CHUNK = 4096
WAITING_MAX = 65536


class Cable:
    """`ends`: the two device names, as /dev/pts/5. `close()` takes the cable out."""

    def __init__(self):
        self._masters, self._slaves = zip(pty.openpty(), pty.openpty())
        for slave in self._slaves:
            tty.setraw(slave)
        for master in self._masters:
            os.set_blocking(master, False)
        self.ends = tuple(os.ttyname(slave) for slave in self._slaves)
        self.carried = 0
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._carry, name="cable", daemon=True)
        self._thread.start()

    def _carry(self):
        waiting = {self._masters[0]: b"", self._masters[1]: b""}  # by the end they are to be written to
        other = dict(zip(self._masters, reversed(self._masters)))
        while True:
            readers = [end for end in self._masters if len(waiting[other[end]]) < WAITING_MAX] + [self._wake_read]
            writers = [end for end in self._masters if waiting[end]]
            readable, writable, _ = select.select(readers, writers, [])
            if self._wake_read in readable:
                return
            for end in readable:
                octets = os.read(end, CHUNK)
                self.carried += len(octets)
                waiting[other[end]] += octets
            for end in writable:
                waiting[end] = waiting[end][_write_some(end, waiting[end]) :]

    def close(self):
        os.write(self._wake_write, b"x")
        self._thread.join()
        # The slaves are kept open until here: a master whose slave nobody has open cannot be read.
        for descriptor in (*self._masters, *self._slaves, self._wake_read, self._wake_write):
            os.close(descriptor)


def _write_some(descriptor, octets):
    """Octets written; a pseudo-terminal may call itself writable and have no room after all."""
    try:
        return os.write(descriptor, octets[:CHUNK])
    except BlockingIOError:
        return 0

"""A serial cable of two pseudo-terminals whose ends can be pulled out and put back under the same name, as a USB adapter's are."""

import os
import pty
import select
import tempfile
import threading
import tty

CHUNK = 4096
WAITING_MAX = 4096


class PluggableCable:
    """`ends`: `count` names of devices on one wire. What is on its way when an end is pulled out is lost. `echo`: what an end sends
    comes back to it too, as with many RS-485 adapters."""

    def __init__(self, count=2, echo=False):
        self._directory = tempfile.mkdtemp(prefix="leveret-", dir="/dev/shm")  # below /dev, where device names are expected
        self.ends = [os.path.join(self._directory, "ttyTest%d" % number) for number in range(count)]
        self.carried = 0
        self._echo = echo
        self._masters = [None] * count
        self._slaves = [None] * count
        self._waiting = [b""] * count
        self._lock = threading.Lock()
        self._stopping = False
        for number in range(count):
            self.plug(number)
        self._thread = threading.Thread(target=self._carry, name="pluggable cable", daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping = True
        self._thread.join()
        for number in range(len(self.ends)):
            self.unplug(number)
        os.rmdir(self._directory)

    def plug(self, number):
        master, slave = pty.openpty()
        tty.setraw(slave)
        os.set_blocking(master, False)
        with self._lock:
            self._masters[number], self._slaves[number] = master, slave
            os.symlink(os.ttyname(slave), self.ends[number])

    def unplug(self, number):
        with self._lock:
            if self._masters[number] is None:
                return
            os.unlink(self.ends[number])
            os.close(self._masters[number])
            os.close(self._slaves[number])
            self._masters[number] = self._slaves[number] = None
            self._waiting = [b""] * len(self.ends)

    def _carry(self):
        while not self._stopping:
            with self._lock:
                masters = [master for master in self._masters if master is not None]
                readable, _, _ = select.select(masters, [], [], 0)
                for number, master in enumerate(self._masters):
                    if master in readable and max(map(len, self._waiting)) < WAITING_MAX:
                        self._spread(number, os.read(master, CHUNK))
                moved = [self._write(number) for number in range(len(self.ends))]
            if not readable and not any(moved):
                select.select([], [], [], 0.002)

    def _spread(self, source, octets):
        self.carried += len(octets)
        for number, master in enumerate(self._masters):
            if master is not None and (number != source or self._echo):
                self._waiting[number] += octets

    def _write(self, number):
        if self._masters[number] is None or not self._waiting[number]:
            return False
        try:
            count = os.write(self._masters[number], self._waiting[number][:CHUNK])
        except BlockingIOError:
            return False
        self._waiting[number] = self._waiting[number][count:]
        return count > 0

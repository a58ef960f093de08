"""The file store of a broker that has others to serve: one thread does what waits for the disk, one job at a time.

The contract is in core/log/segments.py (`begin`, `begin_remove`, `ended`, `wait`). A memory card may take half a second for a sync;
meanwhile the loop goes on. `pollable` can be read when the thread has done its job: `Loop.watch` (tcp.py) wakes for it, and calls `accept`.
"""

from __future__ import annotations

import errno
import os
import queue
import threading

from .store_file import FileStore

if False:  # for the type checker alone: an idle broker does without the module
    from typing import Any


class ThreadedFileStore(FileStore):
    """A FileStore whose caller need not wait for the disk. Raises DirectoryInUse, OSError."""

    def __init__(self, path: str, pollable: int | None = None) -> None:
        FileStore.__init__(self, path)
        self.is_beside = pollable is not None  # the event is another store's
        self.pollable = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if pollable is None else pollable
        self._beside: list[ThreadedFileStore] = []
        self._asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._error: OSError | None = None  # what was begun last has failed
        self._thread = threading.Thread(target=self._work, name="leveret-store", daemon=True)
        self._thread.start()

    def beside(self, name: str, make: bool = True) -> "ThreadedFileStore | None":
        """A store in a folder of this one, which wakes the same loop; None where that folder is not there and the caller wants none made.
        Raises OSError."""
        path = os.path.join(self.path, name)
        if not make and not os.path.isdir(path):
            return None
        self._beside.append(ThreadedFileStore(path, self.pollable))
        return self._beside[-1]

    def begin(self, number: int, octets: bytes | bytearray | memoryview) -> None:
        """Begin to append octets to a segment and to make them durable."""
        self._begin(self._write, number, octets)

    def begin_remove(self, number: int) -> None:
        """Begin to remove a segment."""
        self._begin(self.remove, number)

    def ended(self) -> bool:
        """True when the thread has done the job last begun, false while it works. Raises the job's OSError."""
        if not self._idle.is_set():
            return False
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True

    def wait(self) -> None:
        """Wait until the thread has done the job last begun."""
        self._idle.wait()

    def accept(self, _: object) -> None:
        """Clear the event that woke the loop; the broker asks `ended` by itself."""
        try:
            os.eventfd_read(self.pollable)
        except BlockingIOError:
            return

    def close(self) -> None:
        """End the thread and unlock the directory."""
        for store in self._beside:
            store.close()
        self._asked.put(None)
        self._thread.join()
        if not self.is_beside:
            os.close(self.pollable)
        FileStore.close(self)

    def _begin(self, *asked: "Any") -> None:
        assert self._idle.is_set(), "one thing at a time"
        self._idle.clear()
        self._asked.put(asked)

    def _write(self, number: int, octets: bytes | bytearray | memoryview) -> None:
        self.append(number, octets)
        self.sync(number)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            try:
                asked[0](*asked[1:])
            except OSError as error:
                self._error = error
            except Exception as error:  # an error of ours: the broker learns that it is not written
                self._error = OSError(errno.EIO, f"an error of this broker: {error!r}")
            self._idle.set()
            os.eventfd_write(self.pollable, 1)

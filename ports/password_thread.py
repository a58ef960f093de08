"""Passwords are compared beside the loop: PBKDF2 takes milliseconds by design, and a fleet that logs in would hold up everybody else.

Broker.aside is one: a log-in gives it what is to be calculated, and goes on as a job of the broker when it is calculated
(core/access/login.py). The calculation is one call that runs without the interpreter's lock. `pollable` can be read when something is
done: `Loop.watch` (tcp.py) wakes for it, and calls `accept`.
"""

from __future__ import annotations

import os
import threading
from collections import deque

if False:  # for the type checker alone: an idle broker does without the module
    from typing import Any


class PasswordThread:
    """One thread, which begins with the first log-in; what is asked for is done in that order."""

    def __init__(self, broker: "Any") -> None:
        self.broker = broker
        self.pollable = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._asked: deque[Any] = deque()
        self._done: deque[Any] = deque()
        self._more = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def calculate(self, derivation: "Any", login: "Any") -> None:
        """Have a passwords.Derivation calculated for a login.Login, which is a job of the broker then."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="leveret-passwords", daemon=True)
            self._thread.start()
        self._asked.append((derivation, login))
        self._more.release()

    def accept(self, _: object) -> None:
        """The log-ins whose calculation is done go on."""
        try:
            os.eventfd_read(self.pollable)
        except BlockingIOError:
            return
        while self._done:
            self.broker.jobs.append(self._done.popleft())

    def close(self) -> None:
        """End the thread: the log-ins that it has not done are nobody's."""
        if self._thread is not None:
            self._asked.appendleft(None)
            self._more.release()
            self._thread.join()
        os.close(self.pollable)

    def _work(self) -> None:
        while True:
            self._more.acquire()
            asked = self._asked.popleft()
            if asked is None:
                return
            derivation, login = asked
            try:
                derivation.work()
            except Exception:  # the broker's job calculates it again, and what is raised there is counted and told
                derivation.key = None
            self._done.append(login)
            os.eventfd_write(self.pollable, 1)

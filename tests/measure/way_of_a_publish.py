"""Calls, files and moves of one publish from socket to socket: `python tests/measure/way_of_a_publish.py [--write]`.

A publisher's socket has one message (basic.publish, 64 octets, no confirms) for a queue with a consumer (no acknowledgements); the port's
loop makes steps until the consumer's socket has it. Counted are the calls of the package's Python functions in those steps, the files with
these functions, and the moves: calls into another file, and returns to one. Work inside a call of C is no call here. Two messages went the
way before, so that routes and rows are known. `--write` puts the figures into core/DESIGN.md between two marks.
"""

import os
import socket
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "unit"))

from peer import content, encoded  # noqa: E402 - the path above has to be set first

from leveret import c_accel  # noqa: E402 - the path above has to be set first
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER  # noqa: E402 - the path above has to be set first
from leveret.core.broker import engine  # noqa: E402 - the path above has to be set first
from leveret.core.broker.broker import Broker  # noqa: E402 - the path above has to be set first
from leveret.core.connection.connection import Connection  # noqa: E402 - the path above has to be set first
from leveret.core.limits import BOARD, Limits  # noqa: E402 - the path above has to be set first
from leveret.ports.sockets import SocketStream  # noqa: E402 - as above
from leveret.ports.tcp import Loop  # noqa: E402 - the path above has to be set first

PAGE = os.path.join(ROOT, "core", "DESIGN.md")
BEGIN, END = "<!-- way: written by tests/measure/way_of_a_publish.py -->", "<!-- end of way -->"
BEFORE = {"C": (70, 11, 92), "plain Python": (121, 16, 138), "plain Python, frame by frame": (162, 22, 184)}  # 824af94, by this program


class Ingestless(engine.Plain):
    """Every frame goes by its session."""

    name = "plain Python, frame by frame"
    ingests = False


class Counter:
    """Counts calls while it is the profiler."""

    def __init__(self):
        self.calls = self.moves = 0
        self.files = set()
        self.stack = []

    def __call__(self, frame, event, argument):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(ROOT) and "/tests/" not in path:
            self.calls += 1
            self.files.add(path)
            self.moves += bool(self.stack) and self.stack[-1] != path
            self.stack.append(path)
        elif event == "return" and self.stack and self.stack[-1] == path:
            self.stack.pop()
            self.moves += bool(self.stack) and self.stack[-1] != path


def measured(form):
    """(calls, files, moves) of one message with this form of the engine."""
    engine.chosen = form
    broker = Broker(Limits(**dict(BOARD, connection_count_max=4)), b"unit")
    loop = Loop(4, broker)
    ends = []
    for _ in range(2):
        ours, theirs = socket.socketpair()
        loop.add(SocketStream(ours, "unit"), Connection(broker, "unit"))
        theirs.setblocking(False)
        ends.append(theirs)
    login = encoded("connection_start_ok", 0, {}, "PLAIN", b"\0guest\0guest", "en_US") + encoded("connection_tune_ok", 0, 0, 0, 0)
    login += encoded("connection_open", 0, "/", "", False) + encoded("channel_open", 1, "")
    for end in ends:
        end.send(HEADER)
        steps(loop, 3)
        end.send(login)
        steps(loop, 40)
    reader, writer = ends
    consume = encoded("basic_consume", 1, 0, "q", "c", False, True, False, True, {})
    reader.send(encoded("queue_declare", 1, 0, "q", False, False, False, False, True, {}) + consume)
    steps(loop, 5)
    message = content(1, "", "q", b"x" * 64)
    for _ in range(2):
        writer.send(message)
        steps(loop, 5)
    assert reader.recv(1 << 16).count(b"x" * 64) == 2
    counter = Counter()
    writer.send(message)
    for _ in range(5):
        sys.setprofile(counter)
        loop.step(0)
        sys.setprofile(None)
        try:
            assert reader.recv(1 << 16).count(b"x" * 64) == 1
            break
        except BlockingIOError:
            continue
    else:
        raise AssertionError("the message has not come")
    loop.close()
    return counter.calls, len(counter.files), counter.moves


def steps(loop, count):
    """Let the loop go on."""
    for _ in range(count):
        loop.step(1)


def main():
    """Measure, print, write; the exit status."""
    lines = ["| | calls | files | moves | the same at 824af94 |", "|---|---:|---:|---:|---|"]
    for form in ([] if c_accel.Engine is None else [c_accel.Engine]) + [engine.Plain, Ingestless]:
        name = "C" if form not in (engine.Plain, Ingestless) else form.name
        before = ", ".join([str(each) for each in BEFORE.get(name, ())]) or "-"
        lines.append("| %s | %d | %d | %d | %s |" % ((name, *measured(form), before)))
    print("\n".join(lines))
    if "--write" in sys.argv:
        with open(PAGE, encoding="utf-8") as file:
            text = file.read()
        start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text[:start] + "\n" + "\n".join(lines) + "\n" + text[end:])
    return 0


if __name__ == "__main__":
    sys.exit(main())

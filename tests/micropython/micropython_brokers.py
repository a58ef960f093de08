"""Starts a broker inside MicroPython for a test and ends it: context managers that give the port number.

`WasmBroker` runs broker_bridge.mjs (the WebAssembly build, sockets carried by node), `UnixBroker` runs unix_broker.py on a `micropython`
binary (ports/tcp.py and real sockets). What the process says is kept: an end before its time is an AssertionError when the context is left.
"""

import os
import selectors
import socket
import subprocess
import tempfile
import time

import stage
import toolchain

READY_TIMEOUT_S = 120
END_TIMEOUT_S = 60
OUTPUT_TAIL = 4000
NOISE = ("growMemory: ", "Failed to grow the heap ")  # what the WebAssembly build says each time a bounded heap is asked for more


class MicroPythonProcess:
    """What both have: `port`, `seconds_to_ready`, `output()`. `command(staged)` and `environment(staged)` say what is run."""

    def __init__(self):
        self.port = 0
        self.seconds_to_ready = 0.0

    def environment(self, staged):
        return None

    def __enter__(self):
        self.staged = tempfile.TemporaryDirectory(prefix="leveret-inside-")
        stage.make(self.staged.name)
        self.said = tempfile.TemporaryFile()
        started = time.monotonic()
        self.process = subprocess.Popen(
            self.command(self.staged.name),
            env=self.environment(self.staged.name),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.said,
        )
        try:
            self.port = self.wait_ready()
        except BaseException:  # nothing that was started stays behind
            self.stop()
            raise
        self.seconds_to_ready = time.monotonic() - started
        return self

    def wait_ready(self):
        selector = selectors.DefaultSelector()
        selector.register(self.process.stdout, selectors.EVENT_READ)
        line = self.process.stdout.readline().decode() if selector.select(READY_TIMEOUT_S) else ""
        selector.close()
        if not line.startswith("ready amqp://127.0.0.1:"):
            raise AssertionError("the broker inside MicroPython did not get ready: %r\n%s" % (line, self.output()))
        return int(line.rsplit(":", 1)[1])

    def output(self):
        self.said.seek(0)
        lines = self.said.read().decode("utf-8", "replace").split("\n")
        return "\n".join([line for line in lines if not line.startswith(NOISE)])

    def stop(self):
        """(exit status before it was told to end or None, what it said)."""
        ended = self.process.poll()
        if ended is None:
            self.process.terminate()
            try:
                self.process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        said = self.output()
        self.process.stdout.close()
        self.said.close()
        self.staged.cleanup()
        return ended, said

    def __exit__(self, kind, error, trace):
        ended, said = self.stop()
        if ended is not None:
            raise AssertionError("the broker inside MicroPython ended early with status %d:\n%s" % (ended, said[-OUTPUT_TAIL:])) from error
        if "Traceback" in said:
            raise AssertionError("the broker inside MicroPython had an error of its own:\n%s" % said[-OUTPUT_TAIL:]) from error


class WasmBroker(MicroPythonProcess):
    """`module` (see wasm_port.py) served by the WebAssembly build. `heap_kb` 0: not bounded."""

    def __init__(self, module="wasm_broker", heap_kb=0):
        super().__init__()
        self.module, self.heap_kb = module, heap_kb
        self.node, self.package = toolchain.webassembly()

    def command(self, staged):
        return [*self.node, os.path.join(stage.HERE, "broker_bridge.mjs"), self.package, staged, self.module, str(self.heap_kb)]


class UnixBroker(MicroPythonProcess):
    """unix_broker.py on the `micropython` binary of the PATH."""

    def __init__(self):
        super().__init__()
        self.binary = toolchain.unix()

    def command(self, staged):
        return [self.binary, os.path.join(stage.HERE, "unix_broker.py"), str(free_port())]

    def environment(self, staged):
        return dict(os.environ, MICROPYPATH=os.path.join(staged, "lib"))


def free_port():
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def kinds(heap_kb):
    """(name, function that makes the broker) of all that can be had here; the unix build is there only where its binary is."""
    found = [("wasm", WasmBroker), ("wasm-heap-%d-KiB" % heap_kb, lambda: WasmBroker(heap_kb=heap_kb))]
    try:
        toolchain.unix()
    except toolchain.Missing:
        return found
    return found + [("unix", UnixBroker)]

"""A "board" that is a real MicroPython whose console is a pseudo-terminal, with a folder as its file system.

    UnixBoard(binary, folder)       a `micropython` binary
    WasmBoard(node, package, folder)     the WebAssembly build under node (wasm_board.mjs)

`device` is the line's other end, for mpremote and `leveret flash`. A reset (Ctrl-D at the prompt ends the process) starts it anew, so that
they find what a real board shows them: after a soft reset out of the raw REPL that is the raw REPL again, without main.py.
The terminal is raw, but Ctrl-C interrupts, as a board's console does.
"""

import fcntl
import os
import selectors
import subprocess
import termios
import threading
import tty

HERE = os.path.dirname(os.path.abspath(__file__))
START = os.path.join(HERE, "unix_start.py")
SOFT_REBOOT = b"MPY: soft reboot\r\n"
RAW_PROMPT = b"raw REPL; CTRL-B to exit\r\n>"
PROMPT = b">>> "
PIECE = 4096


def raw(descriptor, interrupts):
    """Make a terminal carry octets as they are, but for Ctrl-C where it `interrupts`."""
    tty.setraw(descriptor)
    if not interrupts:
        return
    settings = termios.tcgetattr(descriptor)
    settings[3] |= termios.ISIG | termios.NOFLSH
    for name in (termios.VQUIT, termios.VSUSP):
        settings[6][name] = b"\0"
    termios.tcsetattr(descriptor, termios.TCSANOW, settings)


class Board:
    """`folder`: the board's file system. `command()` says what is run."""

    interrupts = True  # the terminal makes Ctrl-C a signal

    def __init__(self, folder):
        self.folder = str(folder)
        self.resets = 0
        self.heard = bytearray()  # all that the board has said
        self._ending = False
        self._since = 0  # where in `heard` this process begins
        self._raw = False  # it begins with the raw REPL: what it says before that is not heard
        self._plug_in()
        self._console, self._console_end = os.openpty()  # the board's own console
        os.set_blocking(self._console_end, self.interrupts)
        self._wake_read, self._wake_write = os.pipe()
        self._octets_left = None  # until the cable is taken out
        self._octets_to_kill = None
        self._killed = False  # it did not end by itself

    def __enter__(self):
        self._start()
        self._pump = threading.Thread(target=self._run, daemon=True)
        self._pump.start()
        return self

    def __exit__(self, kind, error, trace):
        self._ending = True
        os.write(self._wake_write, b"x")
        self._pump.join()
        self.process.kill()
        self.process.wait()
        for descriptor in (self._line, self._line_end, self._console, self._console_end, self._wake_read, self._wake_write):
            if descriptor is not None:
                os.close(descriptor)

    def _plug_in(self):
        self._line, self._line_end = os.openpty()  # the line that the computer sees
        tty.setraw(self._line_end)
        self.device = os.ttyname(self._line_end)

    def unplug_after(self, count):
        """Take the cable out when the computer has sent so many more octets: its end of the line is gone."""
        self._octets_left = count

    def kill_after(self, count):
        """As a power cut: the process is killed when the computer has sent so many more octets, and starts anew; None: not any more."""
        self._octets_to_kill = count

    def plug_in_again(self):
        """The cable is back, perhaps under another name."""
        self._plug_in()
        self._selector.register(self._line, selectors.EVENT_READ)

    def _start(self, raw_again=False):
        def own_the_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        raw(self._console_end, self.interrupts)  # a process that was killed has left it as it had it
        self._since = len(self.heard)
        self._raw = raw_again
        environment = dict(os.environ, LEVERET_RAW="1") if raw_again else None
        console = self._console_end
        self.process = subprocess.Popen(
            self.command(),
            cwd=self.folder,
            env=environment,
            stdin=console,
            stdout=console,
            stderr=console,
            start_new_session=True,
            preexec_fn=own_the_terminal,
        )

    def _run(self):
        selector = self._selector = selectors.DefaultSelector()
        for descriptor in (self._line, self._console, self._wake_read):
            selector.register(descriptor, selectors.EVENT_READ)
        while not self._ending:
            for key, _ in selector.select(0.05):
                if key.fd == self._line:
                    self._carry(os.read(self._line, PIECE))
                elif key.fd == self._console:
                    self._hear(os.read(self._console, PIECE))
            if self.process.poll() is not None and not self._ending:
                self.resets += 1
                self._tell(SOFT_REBOOT)
                said = bytes(self.heard[self._since :])
                self._start(raw_again=not self._killed and said.rfind(RAW_PROMPT) > said.rfind(PROMPT))
                self._killed = False
        selector.close()

    def _carry(self, octets):
        """Pass on what the computer says, until the cable is taken out."""
        if self._octets_left is not None:
            self._octets_left -= len(octets)
            if self._octets_left < 0:
                self._octets_left = None
                self._selector.unregister(self._line)
                os.close(self._line)
                os.close(self._line_end)
                self._line = self._line_end = None
                return
        if self._octets_to_kill is not None:
            self._octets_to_kill -= len(octets)
            if self._octets_to_kill < 0:
                self._octets_to_kill = None
                self._killed = True
                self.process.kill()
        if not self._killed:
            os.write(self._console, octets)

    def _tell(self, octets):
        """Say something on the line; without a cable nobody hears it."""
        if self._line is not None:
            os.write(self._line, octets)

    def _hear(self, octets):
        """Pass on what the board says. A process that is to begin with the raw REPL is asked for that at its first prompt."""
        self.heard += octets
        if not self._raw:
            self._tell(octets)
            return
        said = bytes(self.heard[self._since :])
        if said.endswith(RAW_PROMPT):
            self._raw = False
            self._tell(RAW_PROMPT)
        elif said.endswith(PROMPT):
            os.write(self._console, b"\x01")


class UnixBoard(Board):
    """Objects of 64 bits take twice what they take on a board. `before`: statements that run before boot.py, as to mount something."""

    def __init__(self, binary, folder, before=""):
        Board.__init__(self, folder)
        self.binary, self.before = binary, before

    def command(self):
        start = [self.binary, "-X", "heapsize=2m", "-i"]
        return start + (["-c", "%s\nexec(open(%r).read())" % (self.before, START)] if self.before else [START])


class WasmBoard(Board):
    """The WebAssembly build reads Ctrl-C itself."""

    interrupts = False

    def __init__(self, node, package, folder):
        Board.__init__(self, folder)
        self.node, self.package = node, package

    def command(self):
        return [*self.node, os.path.join(HERE, "wasm_board.mjs"), self.package, self.folder]

"""A board at a serial port, through mpremote's transport: its facts, its files, its console.

Laws: whatever the port or the board does is one sentence in `PortFailed` (the port) or `BoardFailed` (what answers there); nothing on
the board is
changed but by `write`, `rename`, `remove` and `make_directories`. Entering stops the program that runs and frees its memory with a soft
reset;
`restart` starts it again. It decides nothing about what belongs on a board.
"""

import ast
import binascii
import contextlib
import io
import struct
import time

import serial
from mpremote.transport import TransportError, TransportExecError
from mpremote.transport_serial import SerialTransport

from leveret.ports.serial_line import explain

BAUD = 115200
PIECE = 2048  # octets that one statement writes: 2.7 KB of base64
ENTER_TRIES = 4
ENTER_S = 1.5
QUIET_S = 0.3
EXEC_S = 15  # a statement that erases or hashes flash takes its time
READ_S = 2  # most that a read waits for the first octet
RAW_PROMPT = b"raw REPL; CTRL-B to exit\r\n"
REBOOT = b"soft reboot\r\n"
ARCHITECTURES = ("", "x86", "x64", "armv6", "armv6m", "armv7m", "armv7em", "armv7emsp", "armv7emdp", "xtensa", "xtensawin", "rv32imc")

FACTS = """
import sys, os, gc
i = sys.implementation
gc.collect()
try:
    s = os.statvfs(os.getcwd())
except Exception:  # a board may have no file system
    s = (0, 0, 0, 0)
try:
    from leveret.flashed import DIGEST as d
except Exception:  # what stands there may be anybody's
    d = ""
try:
    import machine, binascii
    u = binascii.hexlify(machine.unique_id()).decode()
except Exception:  # not every interpreter has a chip with one
    u = ""
m = getattr(i, "_machine", sys.platform)
print(repr((i[0], tuple(i[1])[:3], m, getattr(i, "_mpy", 0), os.getcwd(), s[0], s[2], s[3], d, gc.mem_alloc() + gc.mem_free(), u)))
"""

# Hashes what is asked for and names what else lies below a directory, in pieces that fit a small heap.
HASHES = """
import os, hashlib, binascii
def h(p):
    try:
        f = open(p, "rb")
    except OSError:
        return
    m = hashlib.sha256()
    b = bytearray(512)
    v = memoryview(b)
    while True:
        n = f.readinto(b)
        if not n:
            break
        m.update(v[:n])
    f.close()
    print(p, binascii.hexlify(m.digest()).decode(), os.stat(p)[6])
def w(d):
    try:
        l = list(os.ilistdir(d))
    except OSError:
        return
    for e in l:
        p = d + "/" + e[0]
        if e[1] & 0x4000:
            w(p)
        else:
            h(p)
"""


class PortFailed(Exception):
    """The port cannot be used, or was lost; the text is one sentence."""


class BoardFailed(Exception):
    """The wrong device answers at the port; the text is one sentence."""


class Facts:
    """The description that a board gives. `root` is where it starts; `free` and `size` octets of its file system, in blocks of `block`;
    `heap`: octets of its heap, with what it may grow by; `id`: machine.unique_id() as hexadecimal digits, "" where there is none."""

    def __init__(self, answer):
        self.name, self.version, self.machine, mpy, self.root, self.block, blocks, free, self.digest, self.heap = answer[:10]
        self.id = answer[10] if len(answer) > 10 else ""
        self.mpy_version = mpy & 0xFF
        index = mpy >> 10 & 0xF
        self.architecture = ARCHITECTURES[index] if index < len(ARCHITECTURES) else "?"
        self.size, self.free = blocks * self.block, free * self.block

    def version_text(self):
        return ".".join(str(number) for number in self.version)


@contextlib.contextmanager
def sentences(port):
    """Raise the errors of mpremote and pyserial as PortFailed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # mpremote prints what it did not expect
            yield
    except TransportExecError as error:
        lines = error.error_output.strip().splitlines() or ["nothing"]
        raise BoardFailed(f"the board on {port} cannot do what it is asked: {lines[-1]}") from None
    except (serial.SerialException, OSError, TypeError) as error:
        # pyserial raises TypeError when the port is closed under it
        raise PortFailed(f"{port} was unplugged or lost ({error}): plug it in and run the same command again") from None
    except (TransportError, struct.error) as error:
        raise PortFailed(
            f"the board on {port} stopped answering ({error}): press its reset button and run the same command again"
        ) from None


def open_transport(port):
    """mpremote's SerialTransport. Raises PortFailed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return SerialTransport(port, BAUD, timeout=READ_S)
    except TransportError:
        pass
    except (serial.SerialException, ValueError, OSError) as error:
        raise PortFailed(f"{port} cannot be opened: {error}") from None
    # mpremote does not say why; asking again does.
    try:
        serial.serial_for_url(port, BAUD, exclusive=True).close()
    except (serial.SerialException, OSError, ValueError) as error:
        if "://" in port:
            raise PortFailed(f"nothing listens at {port}: {error}") from None
        raise PortFailed(explain(port, BAUD, error)) from None
    raise PortFailed(f"{port} could not be opened a moment ago and can be now: run the same command again")


class BoardPort:
    """An open port with a board. Raises PortFailed."""

    def __init__(self, port):
        self.port = port
        self._heard = b""
        self.open()

    def open(self):
        """Open the port, again after `close`. Raises PortFailed."""
        self._transport = open_transport(self.port)

    def close(self):
        """Give the port back."""
        try:
            self._transport.close()
        except (serial.SerialException, OSError, TypeError):
            pass  # it is gone

    # The prompt

    def enter(self):
        """Stop what runs and get a prompt with a fresh heap. Raises PortFailed, BoardFailed."""
        with sentences(self.port):
            self._interrupt()
            self._transport.serial.write(b"\x04")
            self._wait_for(REBOOT, ENTER_S * ENTER_TRIES)
            self._wait_for(RAW_PROMPT, ENTER_S * ENTER_TRIES)
            self._transport.in_raw_repl = True

    def _interrupt(self):
        """Ctrl-C and Ctrl-A until the raw prompt is there."""
        line = self._transport.serial
        heard = b""
        for _ in range(ENTER_TRIES):
            line.write(b"\r\x03")
            heard += self._read_until_quiet()
            line.write(b"\r\x01")
            answer = self._transport.read_until(1, RAW_PROMPT + b">", timeout=ENTER_S)
            heard += answer
            if answer.endswith(RAW_PROMPT + b">"):
                return
        if not heard:
            raise BoardFailed(
                f"nothing answers on {self.port}: is this the board's port, and is MicroPython on it (https://micropython.org/download)?"
            )
        raise BoardFailed(
            f"what answers on {self.port} is no MicroPython prompt ({heard[-60:]!r}): press the board's reset "
            f"button and run the "
            "same command again"
        )

    def _read_until_quiet(self):
        heard = b""
        last = time.monotonic()
        while time.monotonic() - last < QUIET_S and len(heard) < 1 << 16:
            waiting = self._transport.serial.in_waiting
            if waiting:
                heard += self._transport.serial.read(waiting)
                last = time.monotonic()
            else:
                time.sleep(0.01)
        return heard

    def _wait_for(self, words, seconds):
        heard = self._transport.read_until(1, words, timeout=seconds)
        if not heard.endswith(words):
            raise BoardFailed(
                f"the board on {self.port} did not come back from a soft reset ({heard[-60:]!r}): press its "
                f"reset button and run "
                "the same command again"
            )

    def run(self, program):
        """The output of a program. Raises PortFailed, BoardFailed."""
        with sentences(self.port):
            printed, error = self._transport.exec_raw(program, timeout=EXEC_S)
            if error:
                raise TransportExecError(printed, error.decode("utf-8", "replace"))
            return printed.decode("utf-8", "replace").replace("\r\n", "\n")

    # Facts and files

    def facts(self):
        """The board's Facts. Raises PortFailed, BoardFailed."""
        said = self.run(FACTS)
        try:
            return Facts(ast.literal_eval(said.strip().splitlines()[-1]))
        except (ValueError, SyntaxError, IndexError, TypeError):
            raise BoardFailed(f"the board on {self.port} does not answer as MicroPython does: {said.strip()[-60:]!r}") from None

    def files(self, directory, names):
        """{path: (sha256, size)} of all files below `directory` (None: nowhere), and of those of `names` that are there."""
        self.run(HASHES)
        walk = f"w({directory!r})\n" if directory else ""
        said = self.run(f"{walk}for n in {tuple(names)!r}:\n h(n)\n")
        digests = {}
        for line in said.splitlines():
            path, sha256, size = line.rsplit(" ", 2)
            digests[path] = (sha256, int(size))
        return digests

    def read(self, path):
        """A file's octets. Raises as `run`."""
        said = self.run(
            f"import binascii\nwith open({path!r}, 'rb') as f:\n while True:\n  b = f.read(512)\n  if not b:\n   break\n"
            "  print(binascii.hexlify(b).decode(), end='')\n"
        )
        return bytes.fromhex(said.strip())

    def make_directories(self, paths):
        """Make the directories that files at `paths` lie in."""
        wanted = set()
        for path in paths:
            parts = path.split("/")[:-1]
            wanted |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
        self.run(f"import os\nfor n in {tuple(sorted(wanted))!r}:\n try:\n  os.mkdir(n)\n except OSError:\n  pass\n")

    def write(self, path, octets):
        """Write a file. Raises as `run`."""
        head = f"from binascii import a2b_base64 as d\nf = open({path!r}, 'wb')\n"
        pieces = [octets[at : at + PIECE] for at in range(0, len(octets), PIECE)] or [b""]
        for number, piece in enumerate(pieces, 1):
            text = binascii.b2a_base64(piece, newline=False)
            tail = "f.close()\n" if number == len(pieces) else ""
            self.run(f"{head}f.write(d({text!r}))\n{tail}")
            head = ""

    def rename(self, pairs):
        """Give files new names, one after the other; what has the new name goes. Raises as `run`."""
        self.run("import os\ndef r(a, b):\n try:\n  os.rename(a, b)\n except OSError:\n  os.remove(b)\n  os.rename(a, b)\n")
        for old, new in pairs:
            self.run(f"r({old!r}, {new!r})")

    def remove(self, paths):
        """Remove files that are there. Raises as `run`."""
        for path in paths:
            self.run(f"import os\nos.remove({path!r})")

    # The console

    def restart(self):
        """Leave the prompt and start the board's program. Raises PortFailed."""
        with sentences(self.port):
            self._transport.exit_raw_repl()
            self._read_until_quiet()
            self._transport.serial.write(b"\x04")
        self._heard = b""

    def line(self, seconds):
        """The next line that the board prints, or None when none comes for so long. Raises PortFailed."""
        limit = time.monotonic() + seconds
        while b"\n" not in self._heard:
            with sentences(self.port):
                waiting = self._transport.serial.in_waiting
                if waiting:
                    self._heard += self._transport.serial.read(waiting)
                    continue
            if time.monotonic() >= limit:
                return None
            time.sleep(0.02)
        line, self._heard = self._heard.split(b"\n", 1)
        return line.decode("utf-8", "replace").strip()

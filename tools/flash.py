"""`leveret flash`: puts the broker on a board, starts it, and says where it can be reached.

    leveret flash --board pico_w --port /dev/ttyACM0 [--wifi SSID] [--config gateway.toml] [--dry-run | --check | --update]
    leveret flash --all --fleet boards.csv [--config gateway.toml] ...      every board that is plugged in (flash_all.py)

What is on the board and right stays: a second flash copies only what changed. Without --wifi and --config the settings on the board stay.
Everything is compiled and checked first; until then, and when something does not fit, nothing on the board is changed. Then the files
are copied
to names that end in .new, compared, and given their names; main.py goes first and comes last, so that a flash that was interrupted
leaves the old
broker or none, and the same command completes it.

--update brings this version beside the one that runs, in a folder of its own; the board tries it, keeps it once its broker has served, and
is back at the version before when it does not come up in three starts. Settings stay as they are; the code takes twice its flash.
With --image it is the version of an image that --stage has made, on another computer perhaps; one that is not whole is not taken.

--all flashes the boards of --fleet, a CSV file, that are plugged in, one after the other: a row for each with its name and id
(machine.unique_id) or port; board, wifi, wifi_password where they differ, and keys of your own, which the --config file names as
${COLUMN}. What was done is added to the record FILE.csv.record.csv; a board that the fleet does not have is left as it was.

Exit status: 0 done (--check: board and computer agree), 1 it was flashed and the broker does not answer, or --check found a difference,
2 wrong
arguments or settings, 3 the port is absent, busy or was unplugged, 4 the board is not one that this can be put on (another board, an old
MicroPython, too little flash). --all: 1 when any board that is plugged in was not done.
"""

import argparse
import fnmatch
import os
import socket
import sys
import time

from . import boards, flash_files, flash_settings, wear
from .usage import UsageError

VERSION_MIN = (1, 24, 0)
NEW = ".new"
FAILED, PORT, BOARD = 1, 3, 4
READY_S = 60
ANSWER_S = 10
SAID = "leveret: "
REBOOT = "soft reboot"
said: list = []  # (is a complaint, sentence): all of this board's
READY, CANNOT_START = "ready ", "cannot start: "
AMQP = b"AMQP\x00\x00\x09\x01"


class Unsuitable(Exception):
    """This cannot be put on that board; the text is one sentence."""


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(__doc__.strip().split("\n")[5:])
    parser.add_argument("--board", metavar="NAME", help=f"one of {', '.join(boards.names())}; needed but with --all")
    parser.add_argument("--port", help="where it is plugged in, as /dev/ttyACM0; with --dry-run it may be left out")
    parser.add_argument(
        "--wifi", metavar="SSID", help=f"the Wi-Fi network to join; its password is asked, or taken from {flash_settings.PASSWORD_VARIABLE}"
    )
    parser.add_argument("--wifi-password-file", metavar="FILE", help="a file whose first line is the Wi-Fi password")
    parser.add_argument("--config", metavar="FILE", help="TOML: [limits], [[user]], [board] (see boards/README.md)")
    parser.add_argument("--all", action="store_true", help="flash every board of --fleet that is plugged in")
    parser.add_argument(
        "--fleet", metavar="FILE", help="with --all, CSV: a row for each board, with the columns name, id or port, and its keys"
    )
    parser.add_argument("--record", metavar="FILE", help="with --all: what was done, a line for each board (default: FLEET.record.csv)")
    # Of one board, by flash_all.py, by what answers, and out of --image.
    parser.set_defaults(name=None, wifi_password=None, facts=None, library=None)
    parser.add_argument("--force", action="store_true", help="take the board for this one, whatever its name and its heap are")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--dry-run", action="store_true", help="say what would be copied, with sizes, and change nothing")
    which.add_argument("--check", action="store_true", help="compare the board with this computer and change nothing")
    which.add_argument(
        "--update", action="store_true", help="bring this version beside the one that runs, which is back if it does not come up"
    )
    which.add_argument("--stage", metavar="DIR", help="write the sources for a frozen firmware and a ROMFS image to DIR, and end")
    parser.add_argument("--image", metavar="FILE", help="with --update: the code of a ROMFS image that --stage has made")


def say(sentence):
    said.append((False, sentence))
    print(sentence, flush=True)


def complain(sentence):
    said.append((True, sentence))
    print("leveret flash: " + sentence, file=sys.stderr, flush=True)


def plan(board, native):
    """The Files that belong on a board, but for its settings. `native`: its hot functions as machine code. Raises CompileFailed."""
    library = flash_files.compiled(board, native) if board.code == "mpy" else []
    return library + flash_files.starters()


class Difference:
    """The differences between a board's files and those that it should have: Files `missing` and `changed`, paths `beside` (of the library,
    and not wanted) and Files `same`.

    `staged`: paths of NEW files of an interrupted flash whose octets are right.
    """

    def __init__(self, files, there):
        self.missing = [file for file in files if file.path not in there]
        self.changed = [file for file in files if file.path in there and there[file.path][0] != file.sha256]
        self.same = [file for file in files if file.path in there and there[file.path][0] == file.sha256]
        known = {file.path for file in files}
        wanted = {file.path + NEW: file.sha256 for file in self.to_copy()}
        self.staged = [path for path in wanted if path in there and there[path][0] == wanted[path]]
        self.beside = sorted(path for path in there if path not in known and path not in wanted)

    def to_copy(self):
        """Files that have to be copied."""
        return self.missing + self.changed

    def none(self):
        return not self.missing and not self.changed and not self.beside


def check_facts(facts, board, port, forced=False):
    """Raise Unsuitable unless `board` is what answers, with a MicroPython that takes what we copy, and a heap that is large enough for it.

    `forced`: whatever its name and its heap are.
    """
    if facts.name != "micropython":
        raise Unsuitable(
            f"the board on {port} runs {facts.name}, not MicroPython: put MicroPython on it (https://micropython.org/download)"
        )
    if facts.version < VERSION_MIN:
        raise Unsuitable(
            f"the board on {port} has MicroPython {facts.version_text()}; at least "
            f"{VERSION_MIN[0]}.{VERSION_MIN[1]} is needed: put a newer "
            "one on it (https://micropython.org/download)"
        )
    if not forced and not is_machine(facts.machine, board):
        right = [name for name in boards.names() if is_machine(facts.machine, boards.load(name))]
        hint = f"use --board {right[0]}" if right else f"that is {board.machines[0]!r}; --force takes it for one"
        raise Unsuitable(f"the board on {port} is {facts.machine!r}, not a {board.name}: {hint}")
    needed = board.heap_size - board.free()
    if not forced and facts.heap < needed:
        raise Unsuitable(
            f"the board on {port} has {facts.heap >> 10} KiB of heap and {board.name} needs {needed >> 10}: use one with more memory (with "
            "PSRAM, and a MicroPython that has it), a smaller --board, or --force if it gets more later"
        )
    if facts.mpy_version != flash_files.MPY_VERSION:
        raise Unsuitable(
            f"the board on {port} loads version {facts.mpy_version} of .mpy files and mpy-cross writes "
            f"{flash_files.MPY_VERSION}: put a "
            f"MicroPython of {VERSION_MIN[0]}.{VERSION_MIN[1]} or later on it"
        )
    if facts.architecture and facts.architecture != board.architecture:
        raise Unsuitable(
            f"the firmware on {port} is for {facts.architecture} and {board.name} is {board.architecture}: put "
            f"the firmware of this "
            "board on it"
        )


def is_machine(machine, board):
    """True when sys.implementation._machine names this board."""
    machine = machine.replace("ESP32-", "ESP32")  # since MicroPython 1.28 the chip is an ESP32-S3
    refused = any(fnmatch.fnmatchcase(machine, each[1:]) for each in board.machines if each.startswith("!"))
    return board.interpreter == "micropython" and not refused and any(fnmatch.fnmatchcase(machine, each) for each in board.machines)


def blocks(facts, files):
    """Octets of the file system that files take."""
    block = max(facts.block, 1)
    return sum(-(-max(len(file.octets), 1) // block) * block for file in files)


def check_room(facts, difference, there, board, port):
    """True when all new files fit beside the old ones; false: each has to take the place of its old one. Raises Unsuitable."""
    staged = set(difference.staged)
    needed = blocks(facts, [file for file in difference.to_copy() if file.path + NEW not in staged])
    margin = 4 * facts.block  # directories, and what the file system needs to write at all
    if needed + margin <= facts.free or not facts.size:
        return True
    given_back = sum(-(-there[file.path][1] // facts.block) * facts.block for file in difference.changed)
    largest = max(blocks(facts, [file]) for file in difference.to_copy())
    if needed - given_back + largest + margin <= facts.free:
        return False
    raise Unsuitable(
        f"the board on {port} has {facts.free >> 10} KiB of flash free and {board.name} needs "
        f"{(needed - given_back + largest + margin) >> 10} "
        "KiB more than is used now: remove files from it, or use a firmware with the code frozen (boards/README.md)"
    )


def show(files, title):
    """Print what is to be copied, with sizes."""
    say(f"{title}: {len(files)} files, {sum(len(file.octets) for file in files)} octets")
    for file in files:
        say(f"  {len(file.octets):7d}  {file.path}")


def copy(place, difference, main, at_once):
    """Bring the Files of a Difference onto the board, `main` last.

    `at_once`: all are copied beside the old ones before the first takes its place; else one after the other. Without main.py nothing starts
    from a mixture of old and new files.
    """
    files = [file for file in difference.to_copy() if file is not main]
    place.make_directories([file.path for file in files])
    if at_once:
        bring(place, files, difference.staged)
    bring(place, [main], difference.staged)
    if main not in difference.missing:
        place.remove([main.path])
    if at_once:
        place.rename([(file.path + NEW, file.path) for file in files])
    else:
        for file in files:
            bring(place, [file], difference.staged)
            place.rename([(file.path + NEW, file.path)])
    place.remove(difference.beside)
    place.rename([(main.path + NEW, main.path)])


def bring(place, files, staged, new=NEW):
    """Copy Files to names that end in `new`, and see that they have arrived."""
    from .flash_board import BoardFailed

    for number, file in enumerate(files, 1):
        if file.path + new in staged:
            continue
        say(f"  [{number}/{len(files)}] {file.path} ({len(file.octets)} octets)")
        place.write(file.path + new, file.octets)
    there = place.files(None, [file.path + new for file in files])
    for file in files:
        if there.get(file.path + new, ("",))[0] != file.sha256:
            raise BoardFailed(f"{file.path} did not arrive on the board as it was sent: run the same command again")


def settings_there(place, there):
    """The settings on the board, or None."""
    return flash_settings.of_octets(place.read(flash_files.SETTINGS)) if flash_files.SETTINGS in there else None


def see_code(place, board, options, facts):
    """Advice about code outside the file system: a sentence, or "" when it is right. A ROMFS image is deployed here.

    Raises Unsuitable where the firmware itself has to be built anew.
    """
    if board.code == "mpy" or facts.digest == flash_files.digest(board, facts.architecture in flash_files.MACHINE_CODE):
        return ""
    if board.code == "frozen":
        raise Unsuitable(
            f"the firmware on {options.port} has {'other' if facts.digest else 'no'} Leveret code frozen in: "
            f"build it anew with "
            f"boards/{board.name}/manifest.py and put it on the board (boards/README.md)"
        )
    from . import flash_images

    octets = flash_images.image(board, facts.architecture in flash_files.MACHINE_CODE)
    if options.check or options.dry_run:
        return f"the ROMFS image ({len(octets)} octets) is {'another one' if facts.digest else 'not there'}"
    say(f"deploying a ROMFS image of {len(octets)} octets")
    flash_images.deploy(place, octets)
    return ""


def look(place, board, options):
    """(Facts, {path: (sha256, size)}, Files wanted with the settings, the settings). Raises Unsuitable, UsageError."""
    facts = options.facts = place.facts()
    check_facts(facts, board, options.port, options.force)
    files = plan(board, facts.architecture in flash_files.MACHINE_CODE)
    names = [file.path for file in files if not file.path.startswith(flash_files.LIBRARY)] + [flash_files.SETTINGS]
    names += [name + NEW for name in names]
    updated = place.files(None, [flash_files.SLOT, flash_files.SLOT_NEW])
    if options.check and updated:
        from . import flash_update

        slot = flash_update.words_of(place, updated)[0]
        files = flash_update.in_slot(files, slot)
        there = place.files(slot, names)
    else:  # a flash puts the code in the first folder, and nothing in the second
        there = place.files(flash_files.LIBRARY, names)
        there.update(updated)
        there.update(place.files(flash_files.SLOTS[1], []))
    settings = flash_settings.wanted(board, options, settings_there(place, there))
    return facts, there, files + [flash_settings.file_of(settings)], settings


def await_broker(place, port):
    """Say what the board says until its broker is ready: the address, or None."""
    limit = time.monotonic() + READY_S
    while time.monotonic() < limit:
        line = place.line(1)
        if line is None:
            continue
        at = line.find(SAID)  # frames of the serial link may stand before it
        if at < 0:
            if line.isprintable() and line and REBOOT not in line:
                say("  " + line)
            continue
        sentence = line[at + len(SAID) :]
        if sentence.startswith(READY):
            return address_of(sentence[len(READY) :], port)
        say("  " + sentence)
        if sentence.startswith(CANNOT_START):
            return None
    complain(f"the board has not said in {READY_S} s that its broker is ready")
    return None


def address_of(said, port):
    """The URL by which this computer reaches what the board calls ready."""
    if said.startswith("serial console"):
        return f"serial://{port}?baud=115200"
    return said


def answers(address):
    """True when an AMQP broker answers at an address of the network; a serial line is the board's word."""
    if not address.startswith("amqp://"):
        return True
    host, _, port = address[len("amqp://") :].rpartition(":")
    limit = time.monotonic() + ANSWER_S
    while time.monotonic() < limit:
        try:
            with socket.create_connection((host, int(port)), timeout=2) as connection:
                connection.sendall(AMQP)
                if connection.recv(7)[:3] == b"\x01\x00\x00":
                    return True
        except OSError:
            time.sleep(0.5)
    return False


def start(place, port):
    """Start the board and wait for its broker: the exit status."""
    place.restart()
    say("started; waiting for the broker")
    address = await_broker(place, port)
    if address is None:
        complain("the broker does not run; the board's own words are above, and its prompt is on " + port)
        return FAILED
    if not answers(address):
        complain(f"the board says that it serves {address}, and nothing answers there: is this computer in the same network?")
        return FAILED
    say("ready " + address)
    return 0


def warn(settings, facts):
    """Remarks on surprises that a user would meet later."""
    lasts = wear.sentence_of(settings, facts.size)
    if lasts:
        say("what is kept: " + lasts)
    if "listen" in settings and not settings.get("users"):
        say("nobody can log in over the network yet, because guest may only come over the cable: name users with [[user]] in --config")


def compare(difference):
    """Print a Difference; the exit status of --check."""
    for title, paths in (
        ("missing", [file.path for file in difference.missing]),
        ("different", [file.path for file in difference.changed]),
        ("not wanted", difference.beside),
    ):
        for path in paths:
            say(f"{title}: {path}")
    say(f"{len(difference.same)} files are the same" + ("" if difference.none() else ", the board is not as it should be"))
    return 0 if difference.none() else FAILED


def work(place, board, options):
    """Look, and do what was asked; the exit status. Raises what it meets."""
    place.enter()
    facts, there, files, settings = look(place, board, options)
    say(f"{facts.machine}, MicroPython {facts.version_text()}, {facts.free >> 10} of {facts.size >> 10} KiB of flash free")
    difference = Difference(files, there)
    code = see_code(place, board, options, facts)
    if code:
        say(code)
    if options.check:
        status = compare(difference)
        place.restart()
        return FAILED if code else status
    at_once = check_room(facts, difference, there, board, options.port) if difference.to_copy() else True
    if options.dry_run:
        show(difference.to_copy(), "would copy")
        for path in difference.beside:
            say(f"  would remove {path}")
        place.restart()
        return 0
    warn(settings, facts)
    if difference.none():
        say(f"all {len(difference.same)} files are there already")
    else:
        say(f"copying {len(difference.to_copy())} files; {len(difference.same)} are there already")
        copy(place, difference, next(file for file in files if file.path == flash_files.MAIN), at_once)
    return start(place, options.port)


def with_board(board, options):
    """Do the work at the port; whatever goes wrong, a board that was not changed runs again. The exit status."""
    from .flash_board import BoardFailed, BoardPort, PortFailed

    place = None
    try:
        place = BoardPort(options.port)
        if options.update:
            from . import flash_update

            return flash_update.work(place, board, options)
        return work(place, board, options)
    except PortFailed as error:
        complain(str(error))
        return PORT
    except (BoardFailed, Unsuitable, flash_files.CompileFailed) as error:
        complain(str(error))
        let_go(place)
        return BOARD
    except (UsageError, KeyboardInterrupt):
        let_go(place)
        raise
    finally:
        if place is not None:
            place.close()


def let_go(place):
    """Have the board's own program run again, where that can be."""
    from .flash_board import BoardFailed, PortFailed

    try:
        place.restart()
    except (PortFailed, BoardFailed):
        pass  # the first sentence says what happened


def stage(board, directory):
    """Write what a frozen firmware and a ROMFS image are made of; the exit status."""
    if os.path.exists(directory) and os.listdir(directory):
        raise UsageError(f"--stage {directory}: it is not empty")
    from . import flash_images

    say(flash_images.write(board, directory))
    return 0


def check_interpreter(board):
    """Raise Unsuitable for a board that runs no MicroPython."""
    if board.interpreter != "micropython":
        raise Unsuitable(
            f"{board.name} runs CPython: install Leveret there with `pip install .` in its folder, and start it with `leveret serve`"
        )


def check_tools():
    """Raise UsageError unless mpremote is there."""
    try:
        import mpremote  # noqa: F401 - looked for before the work
    except ImportError:
        raise UsageError("mpremote is not installed: pip install '.[flash]' in Leveret's folder") from None


def run(options):
    """Flash a board, or all; the exit status."""
    if options.all:
        from . import flash_all

        return flash_all.run(options)
    beside = next((name for name in ("fleet", "record") if getattr(options, name) is not None), None)
    if beside or options.board is None:
        raise UsageError(f"--{beside} is for --all" if beside else "--board is missing: which board it is, as pico_2_w")
    try:
        board = boards.load(options.board)
    except boards.BoardError as error:
        raise UsageError(str(error)) from None
    if options.image is not None and not options.update:
        raise UsageError("--image goes with --update: it brings the image's code beside the version that runs")
    try:
        check_interpreter(board)
        if options.stage:
            return stage(board, options.stage)
        if options.port is None:
            if not options.dry_run:
                raise UsageError("--port is missing: where the board is plugged in, as /dev/ttyACM0")
            files = plan(board, board.architecture in flash_files.MACHINE_CODE)
            show(files + [flash_settings.file_of(flash_settings.wanted(board, options, None))], f"{board.name} gets")
            return 0
        check_tools()
        if options.image is not None:
            from . import flash_images

            options.library = flash_images.unpacked(options.image, board)  # before the board is touched
        return with_board(board, options)
    except (Unsuitable, flash_files.CompileFailed) as error:
        complain(str(error))
        return BOARD

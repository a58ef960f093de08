"""`leveret flash` against real MicroPython (the WebAssembly build, and a `micropython` binary where there is one), through real mpremote.

Each board's console is a pseudo-terminal; a reset starts the interpreter anew (board.py).
"""

import json
import os
import re
import time

import pytest
import serial
from board import UnixBoard
from conftest import flash
from scripted_board import ScriptedBoard

from leveret.tools import boards
from leveret.tools.flash import Unsuitable, check_facts, is_machine
from leveret.tools.flash_board import Facts

READY = "ready serial://"
CHANGED = ("broker/broker", "queue/waiting", "broker/publish", "log/journal", "log/segments", "queue/turns")
BROKER = "lib/leveret/core/broker/broker.mpy"
CUTS = (2500, 3500, 4200, 4600, 5000)  # octets that the computer has sent when the power goes


def names(folder):
    """Paths of all files below a folder."""
    return sorted(os.path.relpath(os.path.join(place, name), folder) for place, _, found in os.walk(folder) for name in found)


def test_a_new_board_is_flashed_and_a_second_flash_copies_only_what_changed(make_board, tmp_path, flashed_files):
    folder = tmp_path / "board"
    folder.mkdir()
    with make_board(folder) as board:
        first = flash("--port", board.device)
        assert first.returncode == 0, first.stdout + first.stderr
        assert first.stdout.splitlines()[-1] == f"ready serial://{board.device}?baud=115200"
        second = flash("--port", board.device)
        assert second.returncode == 0 and f"all {len(flashed_files) + 1} files are there already" in second.stdout, second.stdout
        assert READY in second.stdout
        checked = flash("--port", board.device, "--check")
        assert checked.returncode == 0 and f"{len(flashed_files) + 1} files are the same\n" in checked.stdout
    assert names(folder) == sorted([file.path for file in flashed_files] + ["settings.json", "resets.txt"])
    assert json.loads((folder / "settings.json").read_text())["serial"] == {"line": "console"}


def test_what_differs_is_found_by_check_and_mended_by_the_next_flash(make_board, flashed):
    (flashed / "lib/leveret/core/queue/waiting.mpy").write_bytes(b"of an older version")
    (flashed / "lib/leveret/core/relic.mpy").write_bytes(b"of a version that had more files")
    (flashed / "main.py").write_text("print('the old one')\n")
    (flashed / "data.txt").write_text("not ours\n")
    with make_board(flashed) as board:
        checked = flash("--port", board.device, "--check")
        assert checked.returncode == 1, checked.stderr
        for said in (
            "missing: settings.json",
            "different: lib/leveret/core/queue/waiting.mpy",
            "different: main.py",
            "not wanted: lib/leveret/core/relic.mpy",
        ):
            assert said in checked.stdout
        planned = flash("--port", board.device, "--dry-run")
        assert planned.returncode == 0 and "would copy: 3 files" in planned.stdout
        assert "would remove lib/leveret/core/relic.mpy" in planned.stdout
        done = flash("--port", board.device)
        assert done.returncode == 0 and "copying 3 files" in done.stdout and READY in done.stdout, done.stdout + done.stderr
        assert flash("--port", board.device, "--check").returncode == 0
    assert (flashed / "data.txt").read_text() == "not ours\n"
    assert "lib/leveret/core/relic.mpy" not in names(flashed)


def test_a_cable_that_is_pulled_out_leaves_what_the_next_flash_completes(make_board, flashed):
    changed = ["lib/leveret/core/%s.mpy" % name for name in CHANGED]
    for path in changed:
        assert (flashed / path).exists()
        (flashed / path).write_bytes(b"old")
    with make_board(flashed) as board:
        board.unplug_after(15000)
        cut = flash("--port", board.device)
        assert cut.returncode == 3 and "was unplugged or lost" in cut.stderr and "run the same command again" in cut.stderr, cut.stderr
        assert len(cut.stderr.strip().splitlines()) == 1
        board.plug_in_again()
        done = flash("--port", board.device)
        assert done.returncode == 0 and READY in done.stdout, done.stdout + done.stderr
        assert flash("--port", board.device, "--check").returncode == 0
    assert not [name for name in names(flashed) if name.endswith(".new")]


def test_a_power_cut_at_any_moment_leaves_the_old_broker_or_none(unix_binary, tmp_path, flashed, flashed_files):
    """The interpreter is killed at moments all over a flash; whatever is there then either is the old state whole, or has no main.py."""
    old = {
        "lib/leveret/core/version.mpy": b"old",
        "lib/leveret/core/errors.mpy": b"old",
        "lib/leveret/core/late.mpy": b"old",
        "main.py": b"1",
    }
    right = {file.path: file.octets for file in flashed_files}
    seen = set()
    with UnixBoard(unix_binary, flashed) as board:
        for cut_after in (*CUTS, None):
            for path, octets in old.items():
                (flashed / path).write_bytes(octets)
            if cut_after is not None:
                board.kill_after(cut_after)
            done = flash("--port", board.device)
            board.kill_after(None)
            state = {path: (flashed / path).read_bytes() if (flashed / path).exists() else None for path in (*old, BROKER)}
            main = state["main.py"]
            if main == b"1":
                assert all(state[path] == octets for path, octets in old.items()), (cut_after, done.stdout, done.stderr)
            elif main is not None:
                assert all(state[path] == right.get(path) for path in state), (cut_after, done.stdout, done.stderr)
            seen.add("old" if main == b"1" else "none" if main is None else "new")
        assert done.returncode == 0, done.stdout + done.stderr
    assert {"old", "new"} <= seen, seen


def test_settings_that_cannot_work_are_said_and_the_prompt_stays(make_board, flashed):
    (flashed / "settings.json").write_text(json.dumps({"board": "unix", "serial": {"line": 1}}))
    with make_board(flashed) as board:
        done = flash("--port", board.device)
        assert done.returncode == 1, done.stdout
        assert "cannot start: this MicroPython" in done.stdout and ", which UART 1 needs" in done.stdout
        assert f"its prompt is on {board.device}" in done.stderr
        with serial.Serial(board.device, timeout=5) as line:
            line.write(b"print(6 * 7)\r")
            assert b"42" in line.read_until(b"42\r\n")


def test_a_port_in_use_and_a_port_that_is_not_there(tmp_path):
    with ScriptedBoard(None) as board, serial.Serial(board.device, exclusive=True):
        busy = flash("--port", board.device)
        assert busy.returncode == 3 and "is in use by another program" in busy.stderr, busy.stderr
    absent = flash("--port", "/dev/ttyNOTHING7")
    assert absent.returncode == 3 and "there is no serial device /dev/ttyNOTHING7" in absent.stderr, absent.stderr
    nobody = flash("--port", "socket://127.0.0.1:9")
    assert nobody.returncode == 3 and "nothing listens at socket://127.0.0.1:9" in nobody.stderr, nobody.stderr
    for done in (busy, absent, nobody):
        assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr


def facts(
    name="micropython",
    version=(1, 28, 0),
    machine="linux [GCC 12.2.0] version",
    mpy=0x306,
    block=4096,
    blocks=1000,
    free=1000,
    heap=1 << 20,
):
    return name, version, machine, mpy, "/", block, blocks, free, "", heap


def test_boards_that_this_cannot_be_put_on_are_refused_in_a_sentence():
    for found, said in (
        (facts(version=(1, 22, 2)), "has MicroPython 1.22.2; at least 1.24 is needed"),
        (facts(name="circuitpython"), "runs circuitpython, not MicroPython"),
        (facts(machine="Raspberry Pi Pico W with RP2040"), "is 'Raspberry Pi Pico W with RP2040', not a unix: use --board pico_w"),
        (facts(mpy=0x105), "loads version 5 of .mpy files"),
        (facts(mpy=0x306 | 4 << 10), "is for armv6m and unix is x64"),
        (facts(machine="Adafruit Feather RP2040 with RP2040"), "not a unix: that is 'linux'; --force takes it for one"),
        (facts(heap=200 << 10), "has 200 KiB of heap and unix needs"),
    ):
        with pytest.raises(Unsuitable, match=re.escape(said)):
            check_facts(Facts(found), boards.load("unix"), "/dev/ttyX")
    check_facts(Facts(facts()), boards.load("unix"), "/dev/ttyX")
    check_facts(Facts(facts(machine="any", heap=0)), boards.load("unix"), "/dev/ttyX", True)


MACHINES = (  # names as MicroPython's boards give them (mpconfigboard.h, 1.24 to 1.29-preview), and the board here that each is
    ("Generic ESP32 module with ESP32", "esp32"),
    ("Generic ESP32 module with SPIRAM with ESP32", "esp32_spiram"),
    ("Generic ESP32 module with ESP32-UNICORE", "esp32"),
    ("TinyPICO with ESP32-PICO-D4", "esp32_spiram"),
    ("Generic ESP32S3 module with ESP32S3", "esp32_s3"),
    ("Generic ESP32S3 module with ESP32-S3", "esp32_s3"),
    ("Generic ESP32S3 module with Octal-SPIRAM with ESP32S3", "esp32_s3"),
    ("LOLIN_S3 with ESP32-S3", "esp32_s3"),
    ("OMGS3 with ESP32-S3-PICO-1-N8R2", "esp32_s3"),
    ("Raspberry Pi Pico W with RP2040", "pico_w"),
    ("Raspberry Pi Pico 2 W with RP2350", "pico_2_w"),
    ("PYBD-SF2W with STM32F722IEK", "pyboard_d"),
    ("PYBD-SF3W with STM32F733IEK", "pyboard_d"),
    ("PYBD-SF6W with STM32F767IIK", "pyboard_d"),
    ("PYBv1.1 with STM32F405RG", "stm32f4"),
    ("linux [GCC 12.2.0] version", "unix"),
    ("JS with Emscripten", "unix"),
    ("ESP32C3 module with ESP32C3", "esp32_c3"),
    ("Generic ESP32C3 module with ESP32-C3", "esp32_c3"),
    ("Generic ESP32C6 module with ESP32-C6", "esp32_c6"),
    ("Generic ESP32P4 module with ESP32P4", "esp32_p4"),
    ("Generic ESP32P4 module with WIFI module of external ESP32C6 with ESP32-P4", "esp32_p4"),
    ("Teensy 4.1 with MIMXRT1062DVJ6A", "teensy_41"),
    ("NUCLEO_H743ZI with STM32H743", "stm32h7"),
    ("Teensy 4.0 with MIMXRT1062DVJ6A", None),  # no network
    ("NUCLEO_H723ZG with STM32H723", None),  # half of the heap
    ("Generic ESP32S2 module with ESP32-S2", None),
    ("Raspberry Pi Pico with RP2040", None),  # no network
    ("Raspberry Pi Pico2 with RP2350", None),
)


@pytest.mark.parametrize("machine, right", MACHINES)
def test_a_board_is_known_by_the_names_that_its_makers_give_it(machine, right):
    assert [name for name in boards.names() if is_machine(machine, boards.load(name))] == [name for name in (right,) if name]


def test_a_board_without_the_memory_of_its_profile_is_told_before_anything_is_copied():
    s3 = boards.load("esp32_s3")
    given = Facts(facts(machine="Generic ESP32S3 module with ESP32-S3", mpy=0x306 | 10 << 10, heap=240 << 10))
    with pytest.raises(Unsuitable, match="has 240 KiB of heap and esp32_s3 needs .* PSRAM"):
        check_facts(given, s3, "/dev/ttyX")
    check_facts(Facts(facts(machine="LOLIN_S3 with ESP32S3", mpy=0x306 | 10 << 10, heap=2 << 20)), s3, "/dev/ttyX")


@pytest.mark.parametrize(
    "found, said",
    [
        (facts(version=(1, 22, 2)), "at least 1.24 is needed"),
        (facts(free=25), "has 100 KiB of flash free"),
    ],
)
def test_a_board_that_is_refused_is_left_as_it_was_and_started_again(found, said):
    with ScriptedBoard(found) as board:
        done = flash("--port", board.device)
        limit = time.monotonic() + 60
        while board.restarts < 1 and time.monotonic() < limit:
            time.sleep(0.05)
    assert done.returncode == 4 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stdout + done.stderr
    assert board.restarts == 1
    assert not [program for program in board.programs if "'wb'" in program or "rename" in program or "mkdir" in program], board.programs


def test_a_port_where_nothing_answers():
    with ScriptedBoard(None) as board:
        done = flash("--port", board.device)
    assert done.returncode == 4 and "nothing answers on" in done.stderr, done.stderr


def test_too_little_flash_is_seen_on_a_real_file_system(unix_binary, tmp_path):
    mount = "\n".join(
        (
            "import os",
            "class Chip:",
            "  def __init__(self): self.octets = bytearray(96 * 1024)",
            "  def readblocks(self, n, b, o=0): b[:] = self.octets[n * 512 + o:n * 512 + o + len(b)]",
            "  def writeblocks(self, n, b, o=0): self.octets[n * 512 + o:n * 512 + o + len(b)] = b",
            "  def ioctl(self, op, n): return {4: 192, 5: 512}.get(op, 0)",
            "chip = Chip(); os.VfsLfs2.mkfs(chip); os.mount(chip, '/flash'); os.chdir('/flash')",
        )
    )
    with UnixBoard(unix_binary, tmp_path, before=mount) as board:
        done = flash("--port", board.device)
    assert done.returncode == 4 and "KiB of flash free and unix needs" in done.stderr, done.stdout + done.stderr

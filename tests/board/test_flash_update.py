"""`leveret flash --update` on boards that are real MicroPythons, and the file that says which version runs under a power cut at each line.

What a board does with two versions: firmware/slots.py.
"""

import json
import os
import shutil
import time

import pytest
import toolchain  # in tests/micropython, which conftest.py has put on the path
from conftest import flash, put
from counted_start import CountedStarter
from one_start import CUT, FAT, LITTLEFS, Starter

from leveret.tools import flash_files

VERSION = "lib/leveret/core/version.mpy"
STARTS = 3


def serving(folder, files):
    """A board's folder with the version of `files` in lib, that serves its console."""
    put(folder, files)
    (folder / "settings.json").write_text(json.dumps({"board": "unix", "serial": {"line": "console"}}))


def older(folder):
    """Make the version in lib one that `leveret flash` does not have."""
    (folder / "lib/leveret/relic.mpy").write_bytes(b"of an older version")


def test_an_update_is_tried_and_kept_and_the_next_one_goes_into_the_other_folder(make_board, flashed, flashed_files):
    """lib_b has a part of what an interrupted update has brought: the rest is copied."""
    serving(flashed, flashed_files)
    shutil.copytree(flashed / "lib", flashed / "lib_b")
    older(flashed)
    for file in library(flashed_files)[:2]:
        (flashed / file.path.replace("lib/", "lib_b/")).write_bytes(b"half of it")
    with make_board(flashed) as board:
        done = flash("--port", board.device, "--update")
        assert done.returncode == 0 and done.stdout.endswith("the update is kept\n"), done.stdout + done.stderr
        assert "copying 2 files to lib_b; %d are there already" % (len(library(flashed_files)) - 2) in done.stdout
        checked = flash("--port", board.device, "--check")
        assert checked.returncode == 0, checked.stdout
        again = flash("--port", board.device, "--update")
        assert again.returncode == 0 and "this version is there already, in lib_b" in again.stdout, again.stdout + again.stderr
    assert (flashed / "lib/leveret/relic.mpy").exists(), "the version before it has gone"
    assert (flashed / "slot").read_text() == "lib_b\n"
    (flashed / "lib_b/leveret/relic.mpy").write_bytes(b"older too")
    with make_board(flashed) as board:
        back = flash("--port", board.device, "--update")
        assert back.returncode == 0 and "copying 0 files to lib;" in back.stdout, back.stdout + back.stderr
        assert flash("--port", board.device, "--check").returncode == 0
    assert (flashed / "slot").read_text() == "lib\n" and not (flashed / "lib/leveret/relic.mpy").exists()


def library(files):
    """The Files of the library."""
    return [file for file in files if file.path.startswith(flash_files.LIBRARY)]


def test_a_version_that_does_not_come_up_is_tried_three_times_and_the_one_before_it_is_back(make_board, flashed, flashed_files):
    serving(flashed, flashed_files)
    shutil.copytree(flashed / "lib", flashed / "lib_b")
    (flashed / "lib_b/leveret/core/broker/broker.mpy").write_bytes(b"broken")
    (flashed / "slot").write_text("lib_b lib %d\n" % STARTS)
    with make_board(flashed) as board:
        wait_for(board, b"leveret: the update in lib_b did not come up: the version before it, in lib, is back")
        wait_for(board, b"leveret: ready serial console")
        assert board.resets == STARTS
        done = flash("--port", board.device, "--check")
        assert done.returncode == 0, done.stdout
    assert (flashed / "slot").read_text() == "lib\n"


def test_a_whole_flash_takes_the_other_version_away(make_board, flashed, flashed_files):
    serving(flashed, flashed_files)
    shutil.move(flashed / "lib", flashed / "lib_b")
    (flashed / "slot").write_text("lib_b\n")
    with make_board(flashed) as board:
        done = flash("--port", board.device)
        assert done.returncode == 0 and "ready serial" in done.stdout, done.stdout + done.stderr
        assert flash("--port", board.device, "--check").returncode == 0
    assert not (flashed / "slot").exists() and (flashed / VERSION).exists()
    assert not [name for _, _, names in os.walk(flashed / "lib_b") for name in names]


def test_what_cannot_be_updated_is_refused_in_one_sentence(make_board, flashed, flashed_files):
    with make_board(flashed) as board:
        refused(board, "there is no Leveret on the board")
        serving(flashed, flashed_files)
    (flashed / "boot.py").write_text("pass\n")
    with make_board(flashed) as board:
        refused(board, "boot.py on the board on %s is another one" % board.device)
    assert not (flashed / "slot").exists() and not (flashed / "lib_b").exists()


def refused(board, sentence):
    """An update is refused, and the board runs again."""
    done = flash("--port", board.device, "--update")
    assert done.returncode == 4 and sentence in done.stderr and "flash it without --update" in done.stderr, done.stdout + done.stderr


def wait_for(board, words, seconds=120):
    """Wait until a board has said something."""
    limit = time.monotonic() + seconds
    while words not in board.heard:
        assert time.monotonic() < limit, bytes(board.heard[-2000:])
        time.sleep(0.05)


# The boot, line by line: boot.py, slots.py and main.py as processes, with a gateway of ours, and the power goes at each of their lines

GATEWAY = """
import sys
def main():
    with open("ran", "a") as file:
        file.write("%(slot)s\\n")
    if %(comes_up)s and "slots" in sys.modules and sys.modules["slots"].trial:
        sys.modules["slots"].keep()
    return %(comes_up)s
"""


def two_versions(folder, line, comes_up, trial="lib_b"):
    """A board's folder with a version that runs, and one on trial, in lib_b or lib, which may come up."""
    shutil.rmtree(folder, ignore_errors=True)
    for slot in flash_files.SLOTS:
        firmware = folder / slot / "leveret" / "firmware"
        firmware.mkdir(parents=True)
        (firmware / "watchdog.py").write_text("def rest():\n    pass\n")
        (firmware / "gateway.py").write_text(GATEWAY % {"slot": slot, "comes_up": slot != trial or comes_up})
    for file in flash_files.starters():
        (folder / file.path).write_bytes(file.octets)
    if line:
        (folder / "slot").write_text(line)


@pytest.fixture(scope="module", params=("CPython", "MicroPython"))
def start(request):
    """Starter.start (one_start.py), or CountedStarter's (counted_start.py)."""
    if request.param == "CPython":
        starter = Starter()
    else:
        try:
            starter = CountedStarter(toolchain.unix())
        except toolchain.Missing as missing:
            pytest.skip(str(missing))
    yield starter.start
    starter.close()


def ran(folder):
    """The versions that have run, in order."""
    return (folder / "ran").read_text().split() if (folder / "ran").exists() else []


@pytest.mark.parametrize("file_system", (LITTLEFS, FAT))
def test_a_power_cut_at_any_line_of_the_boot_costs_a_version_that_does_not_come_up_no_more_than_its_starts(start, tmp_path, file_system):
    folder = tmp_path / "board"
    for left in (0, 1, STARTS):
        two_versions(folder, "lib_b lib %d\n" % left, False)
        lines = start(folder, 0, file_system)[1]
        for cut_at in range(1, lines + 1):
            two_versions(folder, "lib_b lib %d\n" % left, False)
            assert start(folder, cut_at, file_system)[0] == CUT
            for _ in range(left + 1):
                start(folder, 0, file_system)
            versions = ran(folder)
            assert versions.count("lib_b") <= left and versions[-1] == "lib", (left, cut_at, versions)
            assert named(folder) == "lib\n", (left, cut_at)


def named(folder):
    """The line that says which version runs: where a power cut has left the new one alone, that."""
    return (folder / ("slot" if (folder / "slot").exists() else "slot.new")).read_text()


@pytest.mark.parametrize("comes_up", (True, False))
@pytest.mark.parametrize("line", ("lib lib_b 3\n", "lib lib_b 0\n"))
def test_a_second_power_cut_where_the_first_left_the_new_line_alone_runs_no_version_without_its_trial(start, tmp_path, line, comes_up):
    """The version on trial is in lib, which is what runs where no line is left."""
    folder = tmp_path / "board"
    cut_at = 0
    status = CUT
    while status == CUT:
        cut_at += 1
        two_versions(folder, "", comes_up, "lib")
        (folder / "slot.new").write_text(line)
        status = start(folder, cut_at, FAT)[0]
        for _ in range(STARTS + 2):
            start(folder, 0, FAT)
        kept = comes_up and line[-2] != "0"
        assert named(folder) == ("lib\n" if kept else "lib_b\n"), (cut_at, ran(folder))
        assert kept or ran(folder).count("lib") <= STARTS and ran(folder)[-1] == "lib_b", (cut_at, ran(folder))


@pytest.mark.parametrize("file_system", (LITTLEFS, FAT))
def test_a_power_cut_at_any_line_of_the_boot_costs_a_version_that_comes_up_nothing(start, tmp_path, file_system):
    folder = tmp_path / "board"
    two_versions(folder, "lib_b lib 3\n", True)
    for cut_at in range(1, start(folder, 0, file_system)[1] + 1):
        two_versions(folder, "lib_b lib 3\n", True)
        assert start(folder, cut_at, file_system)[0] == CUT
        assert start(folder, 0, file_system)[0] == 0
        assert ran(folder)[-1] == "lib_b" and named(folder) == "lib_b\n", cut_at


@pytest.mark.parametrize(
    ("name", "line", "version"),
    (
        ("slot", "lib_b\n", "lib_b"),
        ("slot", "lib_b", "lib"),
        ("slot.new", "lib_b lib 3\n", "lib_b"),
        ("slot.new", "lib_b lib", "lib"),
        ("slot", "nonsense and more of it\n", "lib"),
        ("slot", "\n", "lib"),
    ),
)
def test_a_line_that_is_not_whole_is_none_and_a_new_one_alone_counts(start, tmp_path, name, line, version):
    two_versions(tmp_path / "board", "", True)
    (tmp_path / "board" / name).write_text(line)
    start(tmp_path / "board", 0)
    assert ran(tmp_path / "board") == [version]


def test_a_start_that_cannot_be_counted_runs_the_version_before(start, tmp_path):
    two_versions(tmp_path / "board", "lib_b lib 3\n", True)
    (tmp_path / "board/slot.new").mkdir()
    start(tmp_path / "board", 0)
    assert ran(tmp_path / "board") == ["lib"]

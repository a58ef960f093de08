"""tools/FILES.md, "An update of a board": an image of code comes to a gateway over a link that breaks, goes on where it stopped, has its
checksum, and is on the board beside the version that runs; a broken one is refused before the board is touched, and by what wrote it.

The gateway's lines are the page's own.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import FLASH, HERE, flash
from test_flash_update import library, older, serving

sys.path[:0] = [os.path.join(os.path.dirname(HERE), name) for name in ("interop", "tools")]
from broker_process import BrokerProcess  # noqa: E402 - the path above has to be set first
from test_sensors import CuttingRelay  # noqa: E402 - as above

from leveret.ports.client import connect  # noqa: E402 - as above
from leveret.tools import boards, flash_images  # noqa: E402 - as above

PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "FILES.md")
ARRIVES = 120_000  # octets of a connection before it is cut
CUTS = 2
FILE = [sys.executable, "-m", "leveret.tools.cli", "file"]


@pytest.fixture
def gateway(tmp_path):
    """The gateway's broker, with a queue for updates."""
    broker = BrokerProcess("leveret", arguments=["--data", str(tmp_path / "data")])
    client = connect(broker.url)
    client.queue_declare("updates", durable=True)
    client.close()
    yield broker
    broker.stop()


class CuttingBothWays(CuttingRelay):
    """It cuts what the broker sends, too."""

    def _carry(self, source, target, limit):
        CuttingRelay._carry(self, source, target, ARRIVES if self.cut_count < CUTS else limit)


@pytest.fixture(scope="module")
def image(flashed_files):
    """An image of the board "unix", as `leveret flash --stage` makes it."""
    return flash_images.packed(boards.load("unix"), library(flashed_files))


def service(tmp_path, host, device):
    """The gateway's lines on the page, for this broker, folder and board; they run in a shell."""
    with open(PAGE, encoding="utf-8") as page:
        text = re.search(r"```sh\n(#!/bin/sh -e\n.*?)```", page.read(), re.DOTALL).group(1)
    for word, ours in (
        ("127.0.0.1:5672", host),
        ("/tmp/updates", str(tmp_path / "updates")),
        ("/dev/ttyACM0", device),
        ("pico_2_w", "unix"),
        ("leveret file", " ".join(FILE)),
        ("leveret flash", " ".join(FLASH)),
    ):
        assert word in text, word
        text = text.replace(word, ours)
    return subprocess.run(["/bin/sh", "-ec", text], capture_output=True, text=True, timeout=300)


def test_an_image_comes_over_a_link_that_breaks_and_the_board_keeps_it(webassembly, gateway, image, flashed, flashed_files, tmp_path):
    from board import WasmBoard

    out = tmp_path / "out"
    out.mkdir()
    (out / "leveret.romfs").write_bytes(image)
    assert len(image) > (CUTS + 1) * ARRIVES, "every connection but the last is cut amid it"
    uplink = CuttingRelay((gateway.host, gateway.port), ARRIVES, CUTS)
    sent = subprocess.run(
        [*FILE, "send", uplink.url.replace("//", "//guest:guest@"), str(out / "leveret.romfs"), "--queue", "updates"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert sent.returncode == 0 and "went on at octet" in sent.stdout, sent.stdout + sent.stderr
    assert uplink.cut_count == CUTS
    serving(flashed, flashed_files)
    shutil.copytree(flashed / "lib", flashed / "lib_b")
    older(flashed)
    for file in library(flashed_files)[:2]:
        (flashed / file.path.replace("lib/", "lib_b/")).write_bytes(b"of an older version")
    downlink = CuttingBothWays((gateway.host, gateway.port), ARRIVES, CUTS)
    with WasmBoard(*webassembly, flashed) as board:
        done = service(tmp_path, downlink.url.rpartition("/")[2], board.device)
        assert done.returncode == 0 and done.stdout.endswith("the update is kept\n"), done.stdout + done.stderr
        assert "the last connection went on at octet" in done.stdout and downlink.cut_count >= CUTS, done.stdout
        assert "copying 2 files to lib_b" in done.stdout
        checked = flash("--port", board.device, "--check")
        assert checked.returncode == 0, checked.stdout
    assert (tmp_path / "updates" / "leveret.romfs").read_bytes() == image
    assert (flashed / "slot").read_text() == "lib_b\n"
    for file in library(flashed_files):
        assert (flashed / file.path.replace("lib/", "lib_b/")).read_bytes() == file.octets, file.path


def flipped(image):
    """The image with one bit of its last file changed."""
    return image[:-100] + bytes((image[-100] ^ 1,)) + image[-99:]


@pytest.mark.parametrize(
    "spoil, said",
    [
        (flipped, "has other octets than it was made of"),
        (lambda image: image[:-1000], "is not a whole ROMFS image"),
        (lambda image: b"PK" + image, "is no ROMFS image"),
        (lambda image: b"", "is no ROMFS image"),
        (lambda image: image.replace(b"board unix\n", b"board xinu\n"), "is an image of the board xinu, not of unix"),
        (lambda image: image.replace(b"leveret.txt", b"leveret.abc"), "is not an image that `leveret flash --stage` has made"),
    ],
)
def test_a_broken_image_is_refused_in_a_sentence_before_the_board_is_touched(image, tmp_path, spoil, said):
    (tmp_path / "leveret.romfs").write_bytes(spoil(image))
    done = flash("--port", tmp_path / "no_board", "--update", "--image", tmp_path / "leveret.romfs")
    assert done.returncode == 4 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_every_image_that_was_cut_or_changed_is_refused(image, tmp_path):
    """Wherever: the head, names, sizes, files."""
    board, path = boards.load("unix"), tmp_path / "leveret.romfs"
    from leveret.tools.flash import Unsuitable

    for at in list(range(0, 64)) + list(range(64, len(image), len(image) // 150)):
        for spoiled in (image[:at], image[:at] + bytes((image[at] ^ 0x11,)) + image[at + 1 :]):
            path.write_bytes(spoiled)
            with pytest.raises(Unsuitable):
                flash_images.unpacked(path, board)
    path.write_bytes(image)
    assert {file.path: file.octets for file in flash_images.unpacked(path, board)}


def test_the_octets_of_a_broken_image_would_be_run_if_they_were_taken(image, tmp_path):
    """What the refusal is for: the record of a changed image still holds files."""
    from leveret.tools import romfs

    files = dict(romfs.files(flipped(image)))
    assert len(files) == len(dict(romfs.files(image))) and files != dict(romfs.files(image))


def test_an_image_goes_with_an_update(tmp_path):
    done = flash("--port", "x", "--image", "leveret.romfs")
    assert done.returncode == 2 and "--image goes with --update" in done.stderr

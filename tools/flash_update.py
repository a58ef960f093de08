"""`leveret flash --update`: this version, or that of an image, beside the one that runs on a board, in the folder that it does not use.

What the board does with the two: firmware/slots.py. The folder is filled and compared before one file names it; from then on the board
decides: it keeps the version, or goes back. An update that was interrupted leaves the board as it was, and the same command completes it.
"""

import time

from leveret.firmware import trial

from . import flash, flash_files
from .flash import NEW, Difference, Unsuitable, blocks, bring, check_facts, complain, say

STARTS = 3  # in which a version may come up
KEPT_S = trial.SERVED_MS / 1000 + 30


def words_of(place, there):
    """The words of the file that says which folder the code is in, as firmware/boot.py reads it."""
    for name in (flash_files.SLOT, flash_files.SLOT_NEW):
        if name in there:
            line = place.read(name).decode("utf-8", "replace")
            if line.endswith("\n"):
                return line.split()
    return [flash_files.SLOTS[0]]


def in_slot(files, slot):
    """Files, those of the library at their paths in a folder."""
    library = flash_files.LIBRARY + "/"
    length = len(flash_files.SLOTS[0])
    return [flash_files.File(slot + file.path[length:], file.octets) if file.path.startswith(library) else file for file in files]


def check_update(board, there, starters, options):
    """Raise Unsuitable where only a whole flash can bring this version."""
    again = "flash it without --update"
    if board.code != "mpy":
        raise Unsuitable(f"the code of {board.name} is in its firmware, of which there is one: {again}")
    if flash_files.SETTINGS not in there:
        raise Unsuitable(f"there is no Leveret on the board on {options.port}: {again}")
    for file in starters:
        if there.get(file.path, ("",))[0] != file.sha256:
            raise Unsuitable(f"{file.path} on the board on {options.port} is another one, and both versions are started by it: {again}")
    if options.wifi or options.config:
        raise Unsuitable(f"both versions have the settings that are there, which --wifi and --config would change: {again}")


def check_room(facts, difference, there, board, port):
    """Raise Unsuitable when the new files do not fit beside the version that runs."""
    gone = difference.beside + [file.path for file in difference.changed]
    given_back = sum(-(-there[path][1] // facts.block) * facts.block for path in gone) if facts.size else 0
    missing = blocks(facts, difference.to_copy()) + 4 * facts.block - given_back - facts.free
    if facts.size and missing > 0:
        raise Unsuitable(
            f"the board on {port} has {facts.free >> 10} KiB of flash free, and two versions of {board.name} need "
            f"{-(-missing >> 10) or 1} KiB more: remove files from it, or flash it without --update"
        )


def work(place, board, options):
    """Bring the version, have the board try it, and wait until it is kept; the exit status. Raises what it meets."""
    place.enter()
    facts = options.facts = place.facts()
    check_facts(facts, board, options.port, options.force)
    starters = flash_files.starters()
    names = [file.path for file in starters] + [flash_files.SETTINGS, flash_files.SLOT, flash_files.SLOT_NEW]
    there = place.files(None, names)
    check_update(board, there, starters, options)
    library = options.library or flash_files.compiled(board, facts.architecture in flash_files.MACHINE_CODE)
    words = words_of(place, there)
    used = words[0] if len(words) == 1 else words[1]
    if len(words) == 1 and same(place, library, used):
        say(f"this version is there already, in {used}")
        return flash.start(place, options.port)
    slot = flash_files.SLOTS[used == flash_files.SLOTS[0]]
    if len(words) > 1:
        name_slot(place, used)  # a version on trial is about to change
    files = in_slot(library, slot)
    there = place.files(slot, [])
    difference = Difference(files, there)
    check_room(facts, difference, there, board, options.port)
    say(f"copying {len(difference.to_copy())} files to {slot}; {len(difference.same)} are there already")
    place.remove(difference.beside)
    place.make_directories([file.path for file in files])
    bring(place, difference.to_copy(), (), "")
    name_slot(place, f"{slot} {used} {STARTS}")
    status = flash.start(place, options.port)
    return status or await_kept(place, options.port)


def same(place, library, slot):
    """True when a folder holds these Files and no others."""
    return Difference(in_slot(library, slot), place.files(slot, [])).none()


def name_slot(place, line):
    """Replace the file that says which folder the code is in."""
    place.write(flash_files.SLOT + NEW, line.encode() + b"\n")
    place.rename([(flash_files.SLOT + NEW, flash_files.SLOT)])


def await_kept(place, port):
    """Wait until the board keeps the version: the exit status."""
    limit = time.monotonic() + KEPT_S
    while time.monotonic() < limit:
        line = place.line(1) or ""
        if line.endswith(trial.KEPT):
            say(trial.KEPT)
            return 0
        if flash.SAID in line:
            say("  " + line[line.find(flash.SAID) + len(flash.SAID) :])
    complain(f"the board on {port} has not kept the update in {KEPT_S:g} s; after {STARTS} starts it is back at the version before")
    return flash.FAILED

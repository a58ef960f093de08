"""The stores inside MicroPython, also in the WebAssembly build (its files lie in memory): records come back, ends are cut, segments go."""

import os

from flash_device import RamFlash

from leveret.core.log import segments
from leveret.ports.store_flash import FlashStore
from leveret.ports.store_littlefs import FolderStore


def empty_folder(name):
    """The path of a folder that is empty."""
    path = "/" + name
    try:
        for each in os.listdir(path):
            os.remove(path + "/" + each)
    except OSError:
        pass  # it is not there
    return path


def write(store, count):
    """A log of `count` records in small segments."""
    writer = segments.Log(store, 600, 1 << 20)
    writer.begin(1, 0)
    for number in range(count):
        writer.append(segments.MESSAGE, (b"%d " % number, bytes(50)))
        assert writer.commit(), writer.trouble
    return writer


def numbers(store):
    """(the numbers of all records, damages)."""
    found, damages = [], []
    for segment in store.numbers():
        reader = segments.Reader(store, segment)
        if reader.head():
            record = reader.next()
            while record is not None:
                for _, payload in segments.ungrouped(record[1]) if record[0] == segments.GROUP else (record,):
                    found.append(int(bytes(payload).split(b" ")[0]))
                record = reader.next()
        if reader.damage is not None:
            damages.append(reader.damage)
    return found, damages


def test_a_folder_gives_back_what_was_written():
    path = empty_folder("folder")
    store = FolderStore(path)
    writer = write(store, 40)
    assert len(writer.segments) > 3 and writer.remove_oldest()
    store.close()
    found, damages = numbers(FolderStore(path))
    assert found == list(range(found[0], 40)) and found[0] > 0 and not damages


def test_a_folder_puts_a_damaged_end_aside():
    path = empty_folder("folder")
    store = FolderStore(path)
    write(store, 40)
    store.close()
    last = store.numbers()[-1]
    store.cut(last, store.size(last) - 5)
    found, damages = numbers(store)
    assert found == list(range(39)) and len(damages) == 1
    store.keep_aside(damages[0].number, damages[0].offset)
    assert numbers(FolderStore(path)) == (found, [])
    assert len([name for name in os.listdir(path) if ".damaged-" in name]) == 1


def test_raw_flash_gives_back_what_was_written():
    device = RamFlash(24, 1024, 64)
    writer = write(FlashStore(device, 64), 40)
    assert writer.remove_oldest()
    writer.append(segments.MESSAGE, (b"40 ",))
    assert writer.commit()
    found, damages = numbers(FlashStore(device, 64))
    assert found[-1] == 40 and not damages

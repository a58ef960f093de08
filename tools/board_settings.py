"""What the [board] table of a configuration file may say: every key, its values, and what a mistake is called.

Laws: a mistake is found here and not by the board, where it would be a TypeError on a console that nobody reads; each is one sentence with
the table, the key, the value and what it may be. Meanings: tools/flash_settings.py, firmware/keeping.py, firmware/sensor.py.
"""
import re

from leveret.core.journal import BATCH, EACH, NONE

from .address import BAUD_MAX
from .usage import UsageError

WATCHDOG_MS = {"RP2": 8388}  # the longest that a chip's watchdog waits, by what its boards are called
WATCHDOG_MS_MIN, WATCHDOG_MS_MAX = 1000, 32000
PIN_MAX = 255


def whole(least, most):
    """(test, words) of a whole number."""
    return lambda value: type(value) is int and least <= value <= most, f"a whole number from {least} to {most}"


def one_of(*words):
    """(test, words) of one of a few texts."""
    return lambda value: isinstance(value, str) and value in words, " or ".join(f'"{word}"' for word in words)


def text(least, most):
    """(test, words) of a text of so many octets."""
    return (lambda value: isinstance(value, str) and least <= len(value.encode()) <= most,
            f"a text of {least} to {most} octets" if least else f"a text of at most {most} octets")


def is_place(value):
    """True for a port, or an address and a port."""
    if not isinstance(value, str):
        return type(value) is int and 0 <= value <= 65535
    host, _, port = value.rpartition(":")
    return host != "" and port.isascii() and port.isdigit() and 0 < int(port) <= 65535


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TABLE = (lambda value: isinstance(value, dict), "a table")
ROWS = {
    "[board]": {
        "name": text(1, 32), "listen": (is_place, 'a port as 5672 (0: none), or an address and a port as "0.0.0.0:5672"'),
        "country": (lambda value: isinstance(value, str) and re.fullmatch("[A-Z]{2}", value), 'two capital letters, as "DE"'),
        "ethernet": TABLE, "serial": (lambda value: value == "console" or isinstance(value, dict),
                                      '"console", or a table as { line = 1, baud = 115200, tx = 4, rx = 5 }'),
        "watchdog_ms": (lambda value: value == 0 or whole(WATCHDOG_MS_MIN, WATCHDOG_MS_MAX)[0](value),
                        f"0 (none), or {whole(WATCHDOG_MS_MIN, WATCHDOG_MS_MAX)[1]}"),
        "ntp": text(0, 255), "store": TABLE, "sensor": TABLE},
    "[board.serial]": {
        "line": (lambda value: value == "console" or whole(0, PIN_MAX)[0](value), 'the number of a UART, or "console"'),
        "baud": whole(300, BAUD_MAX), "tx": whole(0, PIN_MAX), "rx": whole(0, PIN_MAX)},
    "[board.store]": {
        "kind": one_of("folder", "flash"), "path": text(1, 64), "label": text(1, 16), "start": whole(0, 1 << 30),
        "size": whole(16384, 1 << 30), "segment_size": whole(4096, 1 << 24), "sync": one_of(EACH, BATCH, NONE),
        "batch_ms": whole(1, 60000), "batch_octets": whole(1, 1 << 24)},
    "[board.sensor]": {
        "queue": text(1, 255), "every_ms": whole(1, 1 << 28), "keep": whole(1, 1 << 24),
        "adc": (lambda value: isinstance(value, dict) and all(whole(0, PIN_MAX)[0](pin) for pin in value.values()),
                "a table of names and pins, as { light = 26 }"),
        "i2c": (lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value),
                'a list of tables, as [{ name = "celsius", address = 72 }]')},
    "i2c in [board.sensor]": {
        "name": text(1, 64), "bus": whole(0, 15), "scl": whole(0, PIN_MAX), "sda": whole(0, PIN_MAX), "address": whole(0, 127),
        "register": whole(0, 255), "size": whole(1, 8), "scale": (is_number, "a number")},
}
NEEDED = {"[board.serial]": ("line",), "i2c in [board.sensor]": ("name", "address")}
TOGETHER = (("[board.serial]", "tx", "rx"), ("i2c in [board.sensor]", "scl", "sda"))


def check_table(path, title, table):
    """Names and values of one table. Raises UsageError."""
    rows = ROWS[title]
    for key, value in table.items():
        if key not in rows:
            raise UsageError(f"{path}: there is no setting {key!r} in {title}; there are {', '.join(rows)}")
        test, words = rows[key]
        if not test(value):
            raise UsageError(f"{path}: {title} {key} is {value!r}; it must be {words}")
    for key in NEEDED.get(title, ()):
        if key not in table:
            raise UsageError(f"{path}: {title} has no {key}; it must be {rows[key][1]}")
    for where, one, other in TOGETHER:
        if where == title and (one in table) != (other in table):
            raise UsageError(f"{path}: {title} has one of {one} and {other}; it takes both or none")


def check(path, table, board):
    """The [board] table of the file at `path`, for this board. Raises UsageError."""
    check_table(path, "[board]", table)
    if isinstance(table.get("serial"), dict):
        check_table(path, "[board.serial]", table["serial"])
    check_store(path, table.get("store", {}))
    sensor = table.get("sensor", {})
    check_table(path, "[board.sensor]", sensor)
    for each in sensor.get("i2c", []):
        check_table(path, "i2c in [board.sensor]", each)
    for chip, most in WATCHDOG_MS.items():
        if table.get("watchdog_ms", 0) > most and any(chip in machine for machine in board.machines):
            raise UsageError(f"{path}: [board] watchdog_ms is {table['watchdog_ms']}; the watchdog of {board.name} waits {most} ms at most")


def check_store(path, store):
    """[board.store], also what its settings have to do with each other. Raises UsageError."""
    check_table(path, "[board.store]", store)
    of_flash = [key for key in ("label", "start") if key in store]
    if store.get("kind", "folder") == "folder" and of_flash:
        raise UsageError(f"{path}: [board.store] {of_flash[0]} is for kind = \"flash\"")
    if store.get("kind") == "flash" and "label" not in store and not ("start" in store and "size" in store):
        raise UsageError(f"{path}: [board.store] kind = \"flash\" needs a label (a partition of an ESP32), or start and size")

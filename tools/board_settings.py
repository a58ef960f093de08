"""What the [board] table of a configuration file may say: a row for each key, with what it means.

Laws: a mistake is found here and not by the board, where it would be a TypeError on a console that nobody reads; each is one sentence with
the table, the key, the value and what it may be. More about them: firmware/keeping.py, firmware/sensor.py.
"""

import re

from leveret.core.log.journal import BATCH, EACH, NONE
from leveret.ports.setting_rows import TABLE, is_tables, number, passing, quoted, rows, text
from leveret.ports.settings import Table, whole

from .address import BAUD_MAX
from .board_parts import DRAFTS
from .usage import UsageError, checked

WATCHDOG_CHIP_MS = {"RP2": 8388}  # the longest that a chip's watchdog waits, by what its boards are called
WATCHDOG_MS_MIN, WATCHDOG_MS_MAX = 1000, 32000
PIN_MAX = 255
NTP, WATCHDOG_MS, PORT = "pool.ntp.org", 8000, 5672


def is_place(value):
    """True for a port, or an address and a port."""
    if not isinstance(value, str):
        return type(value) is int and 0 <= value <= 65535
    host, _, port = value.rpartition(":")
    return host != "" and port.isascii() and port.isdigit() and 0 < int(port) <= 65535


def is_pin(value):
    return type(value) is int and 0 <= value <= PIN_MAX


def is_pair(one, other):
    """The relation of two settings of which a table has both or none."""
    return (
        (one, other),
        lambda values: None not in (values[one], values[other]),
        "{path}: {table} has one of %s and %s; it takes both or none" % (one, other),
    )


def is_wait(value):
    """True for what a watchdog may wait, and for none."""
    return type(value) is int and (value == 0 or WATCHDOG_MS_MIN <= value <= WATCHDOG_MS_MAX)


def table(text, *relations):
    """A Table with these sentences."""
    return Table(
        rows(text, KINDS),
        "{path}: there is no setting {name!r} in {table}; there are {names}",
        "{path}: {table} {name} is {value!r}; it must be {words}",
        relations,
    )


SERIAL_WORDS = '"console", or a table as { line = 1, baud = 115200, tx = 4, rx = 5 }'
WAITS_WORDS = f"0 (none), or a whole number from {WATCHDOG_MS_MIN} to {WATCHDOG_MS_MAX}"
LINE_WORDS = 'the number of a UART, or "console"'
KINDS: dict = {
    "text": text,
    "whole": whole,
    "pin": whole(0, PIN_MAX),
    "table": TABLE,
    "number": number("a number"),
    "place": passing('a port as 5672 (0: none), or an address and a port as "0.0.0.0:5672"', is_place),
    "country": passing('two capital letters, as "DE"', lambda value: isinstance(value, str) and re.fullmatch("[A-Z]{2}", value)),
    "serial": passing(SERIAL_WORDS, lambda value: value == "console" or isinstance(value, dict)),
    "waits": passing(WAITS_WORDS, is_wait),
    "line": passing(LINE_WORDS, lambda value: value == "console" or is_pin(value)),
    "store": quoted("folder", "flash"),
    "draft": quoted(*DRAFTS),
    "sync": quoted(EACH, BATCH, NONE),
    "pins": passing(
        "a table of names and pins, as { light = 26 }", lambda value: isinstance(value, dict) and all(map(is_pin, value.values()))
    ),
    "tables": passing('a list of tables, as [{ name = "celsius", address = 72 }]', is_tables),
}
TABLES = {
    "[board]": table(
        """
name | text 1 32 | | | on the network and in the sensor's messages; left out: the profile's
listen | place | | TCP port | where AMQP is served over the network; left out: 5672 where there is one
country | country | | | Wi-Fi's country code
ethernet | table | | | an interface of MicroPython's module network (kind), and its arguments
serial | serial | | | AMQP over a line; console: the one it was flashed over, beside the prompt; left out: that where there is no network
version | draft | | | the draft of 2005 that is served in place of 0-9 (0.9a5) or 0-8 (0.9r1); left out: none, or the only one on the board
watchdog_ms | waits | 8000 | ms | the board starts anew when its broker stands still so long; 0 on a computer
ntp | text 0 255 | "pool.ntp.org" | | where it asks the time; "": nowhere
store | table | | | [board.store]: keep messages over restarts
sensor | table | | | [board.sensor]: publish what pins and I2C devices say
"""
    ),
    "[board.serial]": table(
        f"""
line | line | | UART | which line
baud | whole 300 {BAUD_MAX} | 115200 | bits/s | its speed
tx | pin | | pin | where it sends
rx | pin | | pin | where it listens
""",
        ((), lambda values: values["line"] is not None, "{path}: {table} has no line; it must be " + LINE_WORDS),
        is_pair("tx", "rx"),
    ),
    "[board.store]": table(
        """
kind | store | "folder" | | files of the board's file system, or flash of its own
path | text 1 64 | "log" | | folder: its name
label | text 1 16 | | | flash: the partition of an ESP32
start | whole 0 1G | | octets | flash: where it begins
size | whole 16K 1G | | octets | what the log may take; a folder left without: 262144
segment_size | whole 4K 16M | | octets | of a file of the log
sync | sync | "each" | | as in [data]
batch_ms | whole 1 60000 | 20 | ms | as in [data]
batch_octets | whole 1 16M | 8192 | octets | as in [data]
""",
        (("label", "start"), lambda values: values["kind"] == "flash", '{path}: {table} {name} is for kind = "flash"'),
        (
            (),
            lambda values: values["kind"] != "flash" or values["label"] is not None or None not in (values["start"], values["size"]),
            '{path}: {table} kind = "flash" needs a label (a partition of an ESP32), or start and size',
        ),
    ),
    "[board.sensor]": table(
        """
queue | text 1 255 | "sensors" | | where readings go
every_ms | whole 1 256M | 1000 | ms | between two rounds
keep | whole 1 16M | 100 | messages | the newest that the queue keeps
adc | pins | | pins | names and pins of analogue inputs
i2c | tables | | | devices, as below
"""
    ),
    "i2c in [board.sensor]": table(
        """
name | text 1 64 | | | of the reading
bus | whole 0 15 | 0 | bus | the number of the I2C bus
scl | pin | | pin | clock
sda | pin | | pin | data
address | whole 0 127 | | 7 bits | of the device
register | whole 0 255 | 0 | register | read from there
size | whole 1 8 | 2 | octets | of the reading, most significant first
scale | number | 1 | factor | what a reading is multiplied with
""",
        ((), lambda values: values["name"] is not None, "{path}: {table} has no name; it must be " + text(1, 64)[1]),
        ((), lambda values: values["address"] is not None, "{path}: {table} has no address; it must be a whole number from 0 to 127"),
        is_pair("scl", "sda"),
    ),
}


def check_table(path, title, given):
    """One table. Raises UsageError."""
    checked(TABLES[title].full, given, path=path, table=title)


def check(path, given, board):
    """The [board] table of the file at `path`, for this board. Raises UsageError."""
    check_table(path, "[board]", given)
    if isinstance(given.get("serial"), dict):
        check_table(path, "[board.serial]", given["serial"])
    check_table(path, "[board.store]", given.get("store", {}))
    sensor = given.get("sensor", {})
    check_table(path, "[board.sensor]", sensor)
    for each in sensor.get("i2c", []):
        check_table(path, "i2c in [board.sensor]", each)
    for chip, most in WATCHDOG_CHIP_MS.items():
        if given.get("watchdog_ms", 0) > most and any(chip in machine for machine in board.machines):
            raise UsageError(f"{path}: [board] watchdog_ms is {given['watchdog_ms']}; the watchdog of {board.name} waits {most} ms at most")

"""A fleet: the boards of a CSV file, their names and keys, and the record of what was done to them.

    id,port,board,name,wifi,wifi_password,key
    e6614104035a1b2c,,pico_2_w,greenhouse,,,q5n2...
    ,/dev/ttyUSB0,esp32,shed,,,x81k...

`id` is machine.unique_id() of the board as hexadecimal digits, `port` where it is plugged in; a row has one of them or both. `name` is
[board] name. Each other column is a key: ${COLUMN} in a text of the --config file stands for the row's value. It writes nothing but the
record, in which no key ever is.
"""

import csv
import os
import re
import time

from leveret.core.version import VERSION

from . import boards
from .usage import UsageError, meant

OWN = ("id", "port", "board", "name", "wifi", "wifi_password")
RECORD = ("time", "id", "port", "board", "name", "version", "result", "address", "sentence")
RECORD_END = ".record.csv"
ROW_COUNT_MAX = 10000
NAME_SIZE_MAX = 32  # as [board] name
PLACE = re.compile(r"\$\{([^}]*)\}")


class Row:
    """A board of the fleet. `place`: where it stands, for messages; `keys`: {column: value} of what the configuration file may name."""

    def __init__(self, place, values):
        self.place = place
        self.id = plain_id(values.get("id", ""))
        self.port, self.board, self.name = (values.get(name, "") for name in ("port", "board", "name"))
        self.wifi, self.wifi_password = values.get("wifi", ""), values.get("wifi_password", "")
        self.keys = {name: value for name, value in values.items() if name == "name" or name not in OWN}


class Filled(str):
    """The path of a configuration file, with the `settings` that were read from it (config.read) and filled in for a row."""

    settings: dict


def plain_id(text):
    """An id as it is compared: hexadecimal digits alone, in small letters."""
    return text.replace(":", "").replace("-", "").replace(" ", "").lower()


def read(path):
    """[Row] of a CSV file, looked at all together. Raises UsageError."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [(reader.line_num, line) for reader in [csv.reader(file, strict=True)] for line in reader if any(map(str.strip, line))]
    except OSError as error:
        raise UsageError(f"the fleet {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"the fleet {path} is no CSV file in UTF-8: {error}") from None
    if len(lines) < 2:
        raise UsageError(f"the fleet {path} has no board: its first line names the columns, as id,name,key, and each other one is a board")
    if len(lines) > ROW_COUNT_MAX + 1:
        raise UsageError(f"the fleet {path} has {len(lines) - 1} boards; {ROW_COUNT_MAX} are the most")
    columns = [name.strip() for name in lines[0][1]]
    check_columns(path, columns)
    rows = [Row(place, values) for place, values in (valued(path, columns, number, line) for number, line in lines[1:])]
    seen: dict = {}
    for row in rows:
        check_row(row)
        for column, value in (("id", row.id), ("port", row.port), ("name", row.name)):
            if value and seen.setdefault((column, value), row) is not row:
                raise UsageError(f"{row.place}: the {column} {value!r} stands in {seen[column, value].place} too; each board has its own")
    return rows


def check_columns(path, columns):
    """Raise UsageError unless the first line names what a fleet needs, each once."""
    for name in columns:
        if columns.count(name) > 1 or not name:
            raise UsageError(f"the fleet {path}: " + (f"the column {name!r} is there twice" if name else "a column has no name"))
    if "name" not in columns or not {"id", "port"} & set(columns):
        likely = [meant(name, OWN) for name in columns if name not in OWN]
        hint = next(filter(None, likely), "")
        raise UsageError(f"the fleet {path} needs a column name, and id or port; its first line is {','.join(columns)!r}{hint}")


def valued(path, columns, number, line):
    """(place, {column: value}) of a line. Raises UsageError."""
    place = f"{path} line {number}"
    if len(line) != len(columns):
        raise UsageError(f"{place} has {len(line)} values, and there are {len(columns)} columns")
    return place, {name: value.strip() for name, value in zip(columns, line)}


def check_row(row):
    """Raise UsageError unless a row by itself can be a board."""
    if not row.id and not row.port:
        raise UsageError(f"{row.place} has neither an id nor a port, so no board is known to be it")
    if row.id and re.fullmatch("([0-9a-f]{2})+", row.id) is None:
        raise UsageError(f"{row.place}: the id {row.id!r} is not hexadecimal digits, as e6614104035a1b2c")
    if not 0 < len(row.name.encode()) <= NAME_SIZE_MAX:
        raise UsageError(f"{row.place}: the name {row.name!r} must be a text of 1 to {NAME_SIZE_MAX} octets")
    if row.wifi_password and not row.wifi:
        raise UsageError(f"{row.place} has a wifi_password and no wifi")
    if row.board:
        profile(row.board, row.place)


def profile(name, place):
    """The Board of that name. Raises UsageError."""
    try:
        return boards.load(name)
    except boards.BoardError as error:
        raise UsageError(f"{place}: {error}") from None


# The configuration file, for each board


def filled(path, settings, row):
    """A Filled: the settings of the file at `path` with a row's values in place of ${COLUMN}. Raises UsageError."""
    made = Filled(path)
    made.settings = put_in(settings, row, path)
    return made


def put_in(value, row, path):
    """A setting, whatever it is, with values in place of ${COLUMN}."""
    if isinstance(value, dict):
        return {name: put_in(each, row, path) for name, each in value.items()}
    if isinstance(value, list):
        return [put_in(each, row, path) for each in value]
    return PLACE.sub(lambda match: value_of(match[1], row, path), value) if isinstance(value, str) else value


def value_of(column, row, path):
    """A row's value for the configuration file. Raises UsageError."""
    if column not in row.keys:
        raise UsageError(f"{path}: there is no column {column!r} for ${{{column}}} in {row.place.rpartition(' line ')[0]}")
    if not row.keys[column]:
        raise UsageError(f"{row.place}: {column} is empty, and {path} asks for it")
    return row.keys[column]


def named(value):
    """The columns that a setting asks for."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {name for each in value for name in named(each)}
    return set(PLACE.findall(value)) if isinstance(value, str) else set()


def check_keys(path, rows, config_path, settings):
    """Raise UsageError for a column that nothing asks for: a misspelt one would leave a board without its key."""
    unused = sorted(set(rows[0].keys) - named(settings) - {"name"})
    if unused:
        where = f"which {config_path} does not ask for as ${{{unused[0]}}}" if config_path else "and there is no --config that asks for it"
        raise UsageError(f"the fleet {path} has a column {unused[0]!r}, {where}; its own columns are {', '.join(OWN)}")


# The record


class Record:
    """A CSV file to which a line is added for each board, on the disk before the next board. Raises UsageError where it cannot be
    written."""

    def __init__(self, path):
        self.path = path
        try:
            is_new = not os.path.exists(path) or os.path.getsize(path) == 0
            self._file = open(path, "a", encoding="utf-8", newline="")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise UsageError(f"the record {path} cannot be written: {error.strerror}") from None
        self._writer = csv.writer(self._file)
        if is_new:
            self._write(RECORD)

    def _write(self, values):
        self._writer.writerow(values)
        self._file.flush()
        os.fsync(self._file.fileno())

    def add(self, unique_id, port, board, name, result, address="", sentence=""):
        """A board: `result` is done, same, failed, refused, unknown or lost (tools/flash_all.py)."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._write((now, unique_id, port, board, name, VERSION, result, address, sentence))

    def close(self):
        """Close the file."""
        self._file.close()

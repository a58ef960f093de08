"""`leveret flash --all --fleet FILE.csv`: every board of a fleet that is plugged in, one after the other.

    leveret flash --all --fleet boards.csv [--config gateway.toml] [--wifi SSID] [--board NAME] [--update | --check | --dry-run]
                        [--record FILE]

The file (tools/fleet.py) is looked at as a whole before any board is touched. A board is known by the port that its row names, by the
serial number that its USB tells, or, where rows with an id are left, by the answer of its prompt; one that the fleet does not have, or
that answers as no board, is left as it was. What happened to each is a line of the record, and the next board gets its turn whatever
happened to the last. `result` there: done, checked (--check, --dry-run), failed (flashed, and no broker answers; --check: it differs),
refused (it cannot be put on this board), unknown (not in the fleet), lost (the port).

Exit status: 0 all that are plugged in are done, 1 one or more are not, or none is plugged in, 2 wrong arguments, settings or rows.
"""

import copy
import os

from . import board_settings, boards, config, flash, flash_settings, fleet
from .usage import UsageError

DONE, CHECKED, REFUSED, UNKNOWN, LOST = "done", "checked", "refused", "unknown", "lost"
RESULTS = {0: DONE, flash.FAILED: "failed", flash.PORT: LOST, flash.BOARD: REFUSED}
SETTINGS = 2  # of `leveret`'s exit statuses: settings that cannot be


class Plugged:
    """A port with something at it. `serial`: the USB's serial number, plain as an id, or ""."""

    def __init__(self, port, serial=""):
        self.port, self.serial = port, serial
        self.id = ""  # what the board itself says


def plugged_in():
    """[Plugged] of the USB serial ports of this computer, by name."""
    from serial.tools import list_ports

    there = [Plugged(each.device, fleet.plain_id(each.serial_number or "")) for each in list_ports.comports() if each.vid is not None]
    return sorted(there, key=lambda each: each.port)


class Fleet:
    """A run over all boards. Raises UsageError for what is wrong with the files."""

    def __init__(self, options):
        self.options = options
        self.rows = fleet.read(options.fleet)
        self.settings = config.read(options.config)
        fleet.check_keys(options.fleet, self.rows, options.config, self.settings)
        for row in self.rows:
            self._check(row)
        self.record = fleet.Record(options.record or options.fleet + fleet.RECORD_END)

    def _check(self, row):
        """See that a row's settings can be, as far as its board is known."""
        name = row.board or self.options.board
        options = self.options_of(row)
        if not name:
            return
        board = fleet.profile(name, row.place)
        if options.wifi or options.config:
            options.dry_run = True  # it asks for no password
            try:
                flash_settings.wanted(board, options, None)
            except UsageError as error:
                raise UsageError(f"{row.place}: {error}") from None
        else:
            board_settings.check(row.place, {"name": row.name}, board)

    def options_of(self, row):
        """The options for one board."""
        options = copy.copy(self.options)
        options.name, options.port = row.name, row.port
        if options.config:
            options.config = fleet.filled(options.config, self.settings, row)
        if row.wifi:
            options.wifi, options.wifi_password = row.wifi, row.wifi_password
        return options

    # Who is where

    def pairs(self, there):
        """([(Plugged, Row or None)] of all that is plugged in, as far as it is known without asking; the rows with an id that are left)."""
        left = list(self.rows)
        known = []
        for plugged in there:
            row = next((row for row in left if self._is(row, plugged)), None)
            if row is not None:
                left.remove(row)
            known.append((plugged, row))
        return known, [row for row in left if row.id]

    @staticmethod
    def _is(row, plugged):
        """True when a row's port, or its id where the USB tells that, is this one."""
        if row.port:
            return row.port == plugged.port
        return row.id == plugged.serial

    def ask(self, plugged):
        """Have a board say its id, and let its program run again: the Facts. Raises flash_board.PortFailed, BoardFailed."""
        from .flash_board import BoardPort

        place = BoardPort(plugged.port)
        try:
            place.enter()
            facts = place.facts()
            plugged.id = facts.id
            place.restart()
        finally:
            place.close()
        return facts

    # One board

    def flash(self, plugged, row):
        """Flash a board that a row is for: its exit status, with a line in the record."""
        flash.said.clear()
        options = self.options_of(row)
        options.port = plugged.port
        name = row.board or options.board
        try:
            if row.id and row.id != plugged.serial or not name:
                machine = self.ask(plugged).machine
                if row.id and row.id not in (plugged.id, plugged.serial):
                    raise flash.Unsuitable(
                        f"the board on {plugged.port} is {plugged.id or 'one without an id'}, and {row.place} has {row.id}"
                    )
                name = name or self.profile_of(machine, plugged.port)
            status = flash.with_board(loaded(name, options), options)
        except flash.Unsuitable as error:
            flash.complain(str(error))
            status = flash.BOARD
        except UsageError as error:
            flash.complain(str(error))
            status = SETTINGS
        except errors() as error:
            flash.complain(str(error))
            status = flash.PORT
        if options.facts is not None:
            plugged.id = options.facts.id
        self.note(plugged, row, name, status)
        return status

    def profile_of(self, machine, port):
        """The name of the profile of what answers. Raises Unsuitable."""
        right = [name for name in boards.names() if flash.is_machine(machine, boards.load(name))]
        if not right:
            raise flash.Unsuitable(
                f"the board on {port} is {machine!r}, which is no board here: name one in the column board, or with --board"
            )
        return right[0]

    def note(self, plugged, row, name, status):
        """Write a board's line."""
        ready = [text[len(flash.READY) :] for is_complaint, text in flash.said if not is_complaint and text.startswith(flash.READY)]
        complaints = [text for is_complaint, text in flash.said if is_complaint]
        result = RESULTS.get(status, REFUSED)
        if status == 0 and (self.options.check or self.options.dry_run):
            result = CHECKED
        self.record.add(
            plugged.id or plugged.serial, plugged.port, name, row.name, result, ready[-1] if ready else "", "; ".join(complaints)
        )

    def meet(self, plugged, wanted):
        """A board that no row is known to be for: the Row that has its id, or None after its line in the record."""
        try:
            if wanted:
                self.ask(plugged)
        except errors() as error:
            flash.complain(str(error))
            self.record.add(plugged.serial, plugged.port, "", "", LOST, "", str(error))
            return None
        row = next((row for row in wanted if row.id == plugged.id), None)
        if row is None:
            unique_id = plugged.id or plugged.serial
            sentence = f"the board on {plugged.port} ({unique_id or 'it tells no id'}) is not in {self.options.fleet}: it is left as it was"
            flash.complain(sentence)
            self.record.add(unique_id, plugged.port, "", "", UNKNOWN, "", sentence)
        return row

    def work(self):
        """All boards that are plugged in: the exit status."""
        there = plugged_in()
        known = {each.port for each in there}
        there += [Plugged(row.port) for row in self.rows if row.port and row.port not in known and is_there(row.port)]
        pairs, wanted = self.pairs(there)
        if not there:
            flash.complain("no board is plugged in: no USB serial port is there, and none of the ports of the fleet")
        done, missing = 0, list(self.rows)
        for number, (plugged, row) in enumerate(pairs, 1):
            flash.say(f"[{number}/{len(pairs)}] {plugged.port}" + (f": {row.name}" if row else ""))
            if row is None:
                row = self.meet(plugged, wanted)
                if row is None:
                    continue
                wanted.remove(row)
                flash.say(f"  {plugged.id} is {row.name}")
            missing.remove(row)
            done += self.flash(plugged, row) == 0
        if missing:
            names = ", ".join(row.name for row in missing[:10]) + (" ..." if len(missing) > 10 else "")
            flash.say(f"not plugged in: {len(missing)} of {len(self.rows)} ({names})")
        flash.say(f"{done} of {len(pairs)} boards done; the record is {self.record.path}")
        return 0 if pairs and done == len(pairs) else flash.FAILED


def errors():
    """The errors of a port, or of the device that answers there."""
    from .flash_board import BoardFailed, PortFailed

    return PortFailed, BoardFailed


def is_there(port):
    """True for a port that a row names and that may be opened: a device of this computer, or one over the network."""
    return "://" in port or os.path.exists(port)


def loaded(name, options):
    """The Board of that name, that MicroPython runs on. Raises UsageError, flash.Unsuitable."""
    board = fleet.profile(name, options.fleet)
    flash.check_interpreter(board)
    return board


def run(options):
    """Flash all; the exit status. Raises UsageError."""
    if options.fleet is None:
        raise UsageError("--all needs --fleet FILE.csv, which names the boards (boards/README.md)")
    if options.port is not None:
        raise UsageError("--all is for every port; leave --port out, or --all")
    if options.image is not None:
        raise UsageError("--image is an image of one board: flash each with --board, without --all")
    if options.stage is not None:
        raise UsageError("--stage writes for one profile, not for --all boards")
    flash.check_tools()
    whole = Fleet(options)
    try:
        return whole.work()
    finally:
        whole.record.close()

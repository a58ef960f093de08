"""`leveret flash --all`: a fleet's file, its boards (a real MicroPython, and ports that answer as we choose), and the record.

The computer's USB ports are ours (serial.tools.list_ports); all else is the command, through real mpremote.
"""

import csv
import json
import types

import pytest
from board import WasmBoard
from scripted_board import ScriptedBoard
from serial.tools import list_ports
from test_flash import facts

from leveret.core.access import passwords
from leveret.core.version import VERSION
from leveret.tools import cli, fleet

OURS, STRANGER, SMALL, SERIAL = "e6614104035a1b01", "e6614104035a1b99", "e6614104035a1b02", "E6:61:41:04:03:5A:1B:03"
CONFIG = """
[[user]]
name = "${name}"
password = "${key}"
read = ".*"
[board]
name = "not this one"
"""


@pytest.fixture
def plugged(monkeypatch):
    """Set the USB ports of this computer: (device, serial number) each."""

    def set_ports(*ports):
        there = [types.SimpleNamespace(device=device, serial_number=number, vid=0x2E8A) for device, number in ports]
        there.append(types.SimpleNamespace(device="/dev/ttyS0", serial_number=None, vid=None))  # no USB: nobody's board
        monkeypatch.setattr(list_ports, "comports", lambda: there)

    set_ports()
    return set_ports


@pytest.fixture
def write(tmp_path):
    """Write a file, and its path."""

    def put(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return put


def flash_all(*arguments):
    """The exit status of `leveret flash --all`."""
    return cli.main(["flash", "--all", *map(str, arguments)])


def recorded(path):
    """The lines of a record, as dicts."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_board_that_is_plugged_in_is_flashed_and_a_failing_one_stops_no_other(webassembly, flashed, tmp_path, plugged, write, capsys):
    (flashed / "machine.py").write_text("def unique_id():\n    return bytes.fromhex(%r)\n" % OURS)
    small = facts(heap=100 << 10) + (SMALL,)
    stranger = facts(machine="Adafruit Feather RP2040 with RP2040") + (STRANGER,)
    config = write("gateway.toml", CONFIG)
    with (
        ScriptedBoard(small) as refused,
        ScriptedBoard(stranger) as unknown,
        ScriptedBoard(None) as silent,
        WasmBoard(*webassembly, flashed) as good,
    ):
        boards = write(
            "fleet.csv",
            "\ufeffid,port,name,key\n"
            f"{SMALL.upper()},,cellar,secret-of-cellar\n"
            f"{OURS},,greenhouse,secret-of-greenhouse\n"
            f"{SERIAL},,attic,secret-of-attic\n"
            ",/dev/ttyNONE9,shed,secret-of-shed\n",
        )
        ports = {refused.device: "", unknown.device: "0001", silent.device: SERIAL, good.device: ""}
        plugged(*ports.items())
        assert flash_all("--fleet", boards, "--board", "unix", "--config", config) == 1
        said = capsys.readouterr()
        lines = {line["port"]: line for line in recorded(boards + ".record.csv")}
        assert set(lines) == set(ports)
        told = {name: (lines[each.device]["result"], lines[each.device]["id"], lines[each.device]["name"]) for name, each in
                (("refused", refused), ("unknown", unknown), ("silent", silent), ("good", good))}  # fmt: skip
        assert told == {
            "refused": ("refused", SMALL, "cellar"),
            "unknown": ("unknown", STRANGER, ""),
            "silent": ("refused", SERIAL.replace(":", "").lower(), "attic"),
            "good": ("done", OURS, "greenhouse"),
        }, said
        assert "has 100 KiB of heap and unix needs" in lines[refused.device]["sentence"]
        assert "is not in" in lines[unknown.device]["sentence"] and "it is left as it was" in said.err
        assert "nothing answers on" in lines[silent.device]["sentence"]
        assert lines[good.device]["address"] == f"serial://{good.device}?baud=115200" and lines[good.device]["version"] == VERSION
        assert lines[good.device]["time"].endswith("Z") and lines[good.device]["board"] == "unix"
        assert unknown.restarts == 1 and refused.restarts >= 1
        for board in (refused, unknown):
            assert not [program for program in board.programs if "'wb'" in program or "rename" in program or "mkdir" in program]
        assert "not plugged in: 1 of 4 (shed)" in said.out and "1 of 4 boards done; the record is " in said.out
        plugged((good.device, OURS))
        assert flash_all("--fleet", boards, "--board", "unix", "--check", "--config", config, "--record", tmp_path / "second.csv") == 0
        assert [line["result"] for line in recorded(tmp_path / "second.csv")] == ["checked"]
    settings = json.loads((flashed / "settings.json").read_text())
    assert settings["name"] == "greenhouse" and [user["name"] for user in settings["users"]] == ["greenhouse"]
    check = passwords.stored(settings["users"][0]["password_hash"]).check(b"secret-of-greenhouse")
    while not check.work():
        pass
    assert check.good
    everything = said.out + said.err + (tmp_path / "fleet.csv.record.csv").read_text() + json.dumps(settings)
    assert "secret-of-" not in everything


def test_no_board_and_a_port_that_goes(plugged, write, capsys):
    boards = write("fleet.csv", "port,name,board\n/dev/ttyNONE9,shed,unix\n")
    assert flash_all("--fleet", boards) == 1
    assert "no board is plugged in" in capsys.readouterr().err
    plugged(("/dev/ttyNONE9", None))
    assert flash_all("--fleet", boards) == 1
    assert flash_all("--fleet", boards, "--dry-run") == 1
    assert [(line["result"], line["name"]) for line in recorded(boards + ".record.csv")] == [("lost", "shed")] * 2
    assert "there is no serial device /dev/ttyNONE9" in recorded(boards + ".record.csv")[0]["sentence"]


def test_a_row_whose_port_has_another_board_is_refused(plugged, write, capsys):
    with ScriptedBoard(facts() + (STRANGER,)) as board:
        boards = write("fleet.csv", f"id,port,name\n{OURS},{board.device},greenhouse\n")
        plugged((board.device, None))
        assert flash_all("--fleet", boards, "--board", "unix") == 1
        assert f"the board on {board.device} is {STRANGER}, and {boards} line 2 has {OURS}" in capsys.readouterr().err
        assert [line["result"] for line in recorded(boards + ".record.csv")] == ["refused"]
        assert not [program for program in board.programs if "'wb'" in program]


def test_a_profile_is_known_by_what_answers_where_none_is_named(plugged, write, capsys):
    for machine, said in (
        ("Raspberry Pi Pico 2 W with RP2350", "has MicroPython 1.22.2"),
        ("Abacus with beads", "which is no board here: name one in the column board"),
    ):
        with ScriptedBoard(facts(machine=machine, version=(1, 22, 2)) + (OURS,)) as board:
            plugged((board.device, None))
            assert flash_all("--fleet", write("fleet.csv", f"id,name\n{OURS},greenhouse\n")) == 1
            assert said in capsys.readouterr().err
    lines = recorded(write("fleet.csv", "") + ".record.csv")
    assert [line["board"] for line in lines] == ["pico_2_w", ""]


GOOD = "id,name,key\ne661,greenhouse,k1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    (
        ("", "has no board: its first line names the columns"),
        ("id,name\n", "has no board"),
        ("id,label\ne661,x\n", "needs a column name, and id or port; its first line is 'id,label'"),
        ("id,name,nmae\ne661,x,y\n", "has a column 'nmae', and there is no --config that asks for it"),
        ("id,name,name\ne661,x,y\n", "the column 'name' is there twice"),
        ("id,name,\ne661,x,y\n", "a column has no name"),
        ("id,name\ne661\n", "line 2 has 1 values, and there are 2 columns"),
        ("id,port,name\n,,x\n", "line 2 has neither an id nor a port"),
        ("id,name\nxyz,x\n", "line 2: the id 'xyz' is not hexadecimal digits"),
        ("id,name\n\ne661,\n", "line 3: the name '' must be a text of 1 to 32 octets"),
        ("id,name\ne661," + 33 * "x" + "\n", "must be a text of 1 to 32 octets"),
        ("id,name\ne661,x\nE6:61,y\n", "line 3: the id 'e661' stands in "),
        ("id,name\ne661,x\ne662,x\n", "line 3: the name 'x' stands in "),
        ("id,name,board\ne661,x,abacus\n", "line 2: there is no board 'abacus'"),
        ("id,name,wifi_password\ne661,x,y\n", "line 2 has a wifi_password and no wifi"),
        ('id,name\ne661,"x\n', "is no CSV file in UTF-8"),
        ("id,name,wifi,wifi_password,board\ne661,x,net,y,stm32f4\n", "line 2: --wifi: stm32f4 has no Wi-Fi"),
    ),
)
def test_a_wrong_line_is_told_before_any_board_is_touched(text, said, plugged, write, capsys):
    plugged(("/dev/ttyNONE9", "e661"))
    boards = write("fleet.csv", text)
    assert flash_all("--fleet", boards) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.strip().splitlines()) == 1
    assert "secret" not in error


@pytest.mark.parametrize(
    ("text", "config", "said"),
    (
        (GOOD, "[board]\nname = 'x'\n", "has a column 'key', which "),
        (GOOD, '[board]\nname = "${key} ${kye}"\n', "there is no column 'kye' for ${kye} in "),
        ("id,name,key\ne661,x,\n", '[board]\nname = "${key}"\n', "line 2: key is empty, and "),
        (GOOD, '[board]\nname = "${key}"\nwatchdog_ms = 1\n', "line 2: "),
        (GOOD, "[board\n", "is not TOML"),
    ),
)
def test_a_configuration_that_does_not_fit_the_fleet_is_told(text, config, said, plugged, write, capsys):
    boards = write("fleet.csv", text)
    assert flash_all("--fleet", boards, "--board", "unix", "--config", write("gateway.toml", config)) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    (
        (("flash", "--all"), "--all needs --fleet FILE.csv"),
        (("flash", "--all", "--fleet", "/dev/null/x"), "cannot be read"),
        (("flash", "--all", "--fleet", "x.csv", "--port", "/dev/ttyACM0"), "--all is for every port"),
        (("flash", "--all", "--fleet", "x.csv", "--stage", "d"), "--stage writes for one profile"),
        (("flash", "--board", "unix", "--fleet", "x.csv"), "--fleet is for --all"),
        (("flash", "--port", "/dev/ttyACM0"), "--board is missing"),
    ),
)
def test_arguments_that_do_not_go_together(arguments, said, capsys):
    assert cli.main(list(arguments)) == 2
    assert said in capsys.readouterr().err


def test_an_unwritable_record_is_told_before_any_board_is_touched(plugged, write, capsys):
    boards = write("fleet.csv", "id,name,board\ne661,x,unix\n")
    assert flash_all("--fleet", boards, "--record", "/dev/null/record.csv") == 2
    assert "the record /dev/null/record.csv cannot be written" in capsys.readouterr().err


def test_keys_stand_in_lists_and_tables_and_other_text_stays(write):
    [row] = fleet.read(write("fleet.csv", 'id,name,key\ne661,x,"a ""$quote, \\n"\n'))
    made = fleet.filled("gateway.toml", {"bridge": [{"upstream": ["amqp://${name}:${key}@b/"], "routing_key": "{key}.$x", "n": 1}]}, row)
    assert made.settings == {"bridge": [{"upstream": ['amqp://x:a "$quote, \\n@b/'], "routing_key": "{key}.$x", "n": 1}]}

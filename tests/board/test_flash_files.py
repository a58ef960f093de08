"""What `leveret flash` puts on each board, offline: plans, compiled code, settings without secrets shown, images."""

import argparse
import ast
import json
import os
import subprocess

import pytest
from conftest import flash

from leveret.core.access import passwords
from leveret.tools import boards, cli, flash_files, flash_settings
from leveret.tools.devtool import pages
from leveret.tools.usage import UsageError

SOME = ("esp32_s3", "pico_w", "stm32f4")  # one of each architecture, with code frozen and not
SECRET = "correct horse"
NOT_ON_A_BOARD = {"ports/tls.py", "ports/url_0_10.py", "ports/url_older.py"}  # a bridge whose upstream asks for one of them is refused
USERS = """
[limits]
arena_size = 16384
content_size_max = 8192
[[user]]
name = "reader"
password = "tell nobody"
read = ".*"
[board]
name = "greenhouse"
country = "DE"
[board.sensor]
every_ms = 500
adc = { light = 26 }
"""


def options(**given):
    plain = {"name": None, "wifi": None, "wifi_password": None, "wifi_password_file": None, "config": None, "dry_run": False}
    return argparse.Namespace(**dict(plain, **given))


@pytest.mark.parametrize("name", SOME)
def test_a_dry_run_without_a_board_shows_the_plan_and_its_sizes(name):
    network = ("--wifi", "home") if boards.load(name).network == "wifi" else ()
    done = flash("--dry-run", *network, board=name)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()[1:]]
    title = done.stdout.splitlines()[0]
    assert title == f"{name} gets: {len(lines)} files, {sum(int(size) for size, _ in lines)} octets"
    paths = [path for _, path in lines]
    assert {"boot.py", "main.py", "settings.json"} <= set(paths)
    assert ("lib/leveret/core/broker/broker.mpy" in paths) == (boards.load(name).code == "mpy")


@pytest.mark.parametrize("name", SOME)
def test_every_source_of_a_board_compiles_for_it_and_the_hot_ones_to_machine_code(name):
    board = boards.load(name)
    files = {file.path: file.octets for file in flash_files.compiled(board, True)}
    assert all(octets[:2] == b"M\x06" for octets in files.values())
    machine_code = {path for path, octets in files.items() if octets[2] >> 2}
    marked = {path for path, text in flash_files.sources(board, True).items() if "micropython.viper" in text}
    assert machine_code == {"lib/leveret/%s.mpy" % path[:-3] for path in marked} and len(marked) >= 3
    assert "lib/leveret/firmware/gateway.mpy" in files


def test_the_wifi_password_comes_from_the_environment_or_a_file_and_is_never_shown(tmp_path, monkeypatch):
    board = boards.load("pico_w")
    monkeypatch.setenv(flash_settings.PASSWORD_VARIABLE, SECRET)
    assert flash_settings.wanted(board, options(wifi="home"), None)["wifi"] == {"ssid": "home", "password": SECRET}
    shown = flash("--dry-run", "--wifi", "home", board="pico_w", environment={flash_settings.PASSWORD_VARIABLE: SECRET})
    assert shown.returncode == 0 and SECRET not in shown.stdout + shown.stderr
    monkeypatch.delenv(flash_settings.PASSWORD_VARIABLE)
    (tmp_path / "secret").write_text("from a file\n")
    settings = flash_settings.wanted(board, options(wifi="home", wifi_password_file=str(tmp_path / "secret")), None)
    assert settings["wifi"]["password"] == "from a file"
    again = flash_settings.wanted(board, options(wifi="home"), settings)
    assert again["wifi"]["password"] == "from a file", "the board knows it already"
    monkeypatch.setattr("sys.stdin", open(os.devnull))
    with pytest.raises(UsageError, match="is asked at a terminal"):
        flash_settings.wanted(board, options(wifi="another"), settings)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)


def test_settings_of_a_network_with_users_hold_hashes_and_are_the_same_the_second_time(tmp_path, monkeypatch):
    monkeypatch.setenv(flash_settings.PASSWORD_VARIABLE, SECRET)
    (tmp_path / "gateway.toml").write_text(USERS)
    asked = options(wifi="home", config=str(tmp_path / "gateway.toml"))
    board = boards.load("pico_w")
    first = flash_settings.wanted(board, asked, None)
    assert "tell nobody" not in json.dumps(first)
    check = passwords.stored(first["users"][0]["password_hash"]).check(b"tell nobody")
    while not check.work():
        pass
    assert check.good
    assert first["limits"]["arena_size"] == 16384 and first["limits"]["content_size_max"] == 8192
    assert first["name"] == "greenhouse" and first["wifi"]["country"] == "DE"
    assert first["listen"] == {"host": "0.0.0.0", "port": 5672} and first["ntp"] and first["watchdog_ms"]
    assert first["sensor"] == {"every_ms": 500, "adc": {"light": 26}} and "serial" not in first
    assert flash_settings.wanted(board, asked, first) == first, "a second flash would copy the settings again"
    assert flash_settings.wanted(board, options(), first) is first, "without --wifi and --config they stay"


@pytest.mark.parametrize(
    "text, said",
    [
        ("[board]\ncolour = 1\n", "there is no setting 'colour' in [board]"),
        ("[board]\nwatchdog_ms = 'long'\n", "[board] watchdog_ms is 'long'; it must be 0 (none), or a whole number from 1000 to"),
        ("[board]\nstore = { disk = 'c' }\n", "there is no setting 'disk' in [board.store]"),
        ("[board]\nlisten = 'everywhere'\n", "it must be a port as 5672"),
        ("[limits]\narena_size = 8388608\n", "make them smaller"),
        ("[limits]\narena_size = 10\n", "arena_size is 10"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_sentence(tmp_path, text, said):
    (tmp_path / "gateway.toml").write_text(text)
    done = flash("--dry-run", "--config", tmp_path / "gateway.toml", board="pico_w")
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    "text, said",
    [
        ("[board]\nwatchdog_ms = 9000\n", "the watchdog of pico_w waits 8388 ms at most"),
        ("[board]\nname = 3\n", "[board] name is 3; it must be a text of 1 to 32 octets"),
        ("[board]\nlisten = 70000\n", "[board] listen is 70000; it must be a port as 5672"),
        ("[board]\ncountry = 'Germany'\n", "country is 'Germany'; it must be two capital letters"),
        ("[board]\nserial = 'consol'\n", "[board] serial is 'consol'; it must be \"console\", or a table"),
        ("[board]\nserial = { lin = 1 }\n", "there is no setting 'lin' in [board.serial]"),
        ("[board]\nserial = { line = 1, tx = 4 }\n", "[board.serial] has one of tx and rx"),
        ("[board.store]\nkind = 'foldr'\n", '[board.store] kind is \'foldr\'; it must be "folder" or "flash"'),
        ("[board.store]\nkind = 'flash'\n", 'kind = "flash" needs a label'),
        ("[board.store]\nlabel = 'log'\n", '[board.store] label is for kind = "flash"'),
        ("[board.sensor]\nevery_ms = 'often'\n", "every_ms is 'often'; it must be a whole number"),
        ("[board.sensor]\nadc = 26\n", "[board.sensor] adc is 26; it must be a table of names and pins"),
        ("[board.sensor]\nadc = { light = 'x' }\n", "it must be a table of names and pins"),
        ("[board.sensor]\ni2c = [{ name = 'c', adress = 72 }]\n", "there is no setting 'adress' in i2c in [board.sensor]"),
        ("[board.sensor]\ni2c = [{ name = 'c' }]\n", "i2c in [board.sensor] has no address"),
        ("[board.sensor]\ni2c = [{ name = 'c', address = 72, scl = 5 }]\n", "has one of scl and sda"),
    ],
)
def test_what_a_board_would_stumble_over_is_found_before_it_gets_it(tmp_path, text, said):
    (tmp_path / "gateway.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        flash_settings.wanted(boards.load("pico_w"), options(config=str(tmp_path / "gateway.toml"), wifi="home", dry_run=True), None)
    assert said in str(refused.value) and str(tmp_path) in str(refused.value)


def test_topic_permissions_are_not_left_out_in_silence(tmp_path):
    (tmp_path / "gateway.toml").write_text("[[user]]\nname = 'a'\ntopic_permissions = { e = { write = 'a', read = 'b' } }\n")
    with pytest.raises(UsageError, match="user 'a': no board carries topic permissions"):
        flash_settings.stored_users(str(tmp_path / "gateway.toml"), boards.load("pico_w"), {})


def test_what_the_boards_page_shows_is_taken(tmp_path):
    with open(os.path.join(boards.ROOT, "boards", "README.md"), encoding="utf-8") as file:
        page = file.read()
    shown = next(block for block in pages.fences(page, "toml") if "[board.sensor]" in block)
    (tmp_path / "gateway.toml").write_text(shown)
    settings = flash_settings.wanted(
        boards.load("pico_2_w"), options(config=str(tmp_path / "gateway.toml"), wifi="home", dry_run=True), None
    )
    assert settings["sensor"]["i2c"][0]["name"] == "celsius"
    assert settings["store"] == {"kind": "folder", "size": 524288, "sync": "batch", "batch_ms": 45000}


@pytest.mark.parametrize("sync, batch", [('"batch"', 8192), ('"batch"\nbatch_octets = 65536', 65536), ('"each"', 0), (None, None)])
def test_the_budget_has_the_batch_of_the_store(tmp_path, capsys, sync, batch):
    """What a batch gathers is written from one buffer that is there from the start (core/recovery/opening.py)."""
    path = tmp_path / "gateway.toml"
    path.write_text("[board.store]\nkind = 'folder'\nsync = " + sync if sync else "[board]\nname = 'x'\n")
    board = boards.load("pico_w")
    without = board.free() + board.log_heap
    tried = flash_settings.settled(board, str(path))
    assert tried.free() == without - (0 if batch is None else boards.LOG_HEAP + batch)
    status = cli.main(["board", "pico_w", "--config", str(path)])
    said = capsys.readouterr().out
    assert ("with %s for a batch ([board.store])" % "{:,}".format(batch or 1) in said) == bool(batch)
    if batch == 65536:
        assert status == 1 and "octets are missing" in said and "a smaller batch_octets in [board.store]" in said
        with pytest.raises(UsageError, match=r"or batch_octets in \[board.store\]"):
            flash_settings.wanted(board, options(config=str(path), wifi="home", dry_run=True), None)
    else:
        assert status == 0 and said.endswith("It fits.\n")
        assert flash_settings.wanted(board, options(config=str(path), wifi="home", dry_run=True), None)["limits"]


@pytest.mark.parametrize(
    "arguments, board, status, said",
    [
        ((), "pico_w", 2, "--port is missing"),
        (("--dry-run",), "abacus", 2, "there is no board 'abacus'"),
        (("--dry-run", "--wifi", "home"), "stm32f4", 2, "stm32f4 has no Wi-Fi"),
        (("--dry-run",), "raspberry_pi", 4, "runs CPython"),
        (("--dry-run",), "pico_w", 2, "serial needs the part 'link', which pico_w does not carry"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(arguments, board, status, said):
    done = flash(*arguments, board=board)
    assert done.returncode == status and said in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_romfs_image_holds_the_board_s_code_and_micropython_imports_from_it(unix_binary, tmp_path):
    stage = tmp_path / "stage"
    done = flash("--stage", stage, board="unix")
    assert done.returncode == 0 and "leveret.romfs of" in done.stdout, done.stderr
    program = "\n".join(
        (
            "import sys, vfs",
            "with open(%r, 'rb') as f: image = f.read()" % str(stage / "leveret.romfs"),
            "vfs.mount(vfs.VfsRom(image), '/rom')",
            "sys.path[:] = ['/rom/lib']",
            "from leveret.firmware import gateway",
            "from leveret.flashed import DIGEST",
            "print(gateway.__file__, DIGEST)",
        )
    )
    said = subprocess.run([unix_binary, "-c", program], capture_output=True, text=True, timeout=60)
    assert said.stdout.split() == ["/rom/lib/leveret/firmware/gateway.mpy", flash_files.digest(boards.load("unix"), False)], said.stderr
    assert (stage / "leveret" / "core" / "broker.py").exists()


@pytest.mark.parametrize("name", SOME[:2])
def test_a_manifest_freezes_what_the_board_carries(name, tmp_path, monkeypatch, capfd):
    """boards/<NAME>/manifest.py as MicroPython's build runs it: `include` and `package` are the build's, which reads what it prints."""
    monkeypatch.setenv("PATH", os.path.dirname(flash.__globals__["sys"].executable) + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    packages = []

    def include(path, **given):
        if path.startswith("$("):
            return
        place = os.path.join(boards.BOARDS, name, path)
        known = argparse.Namespace(defaults=lambda **usual: None, **given)
        with open(place) as file:
            exec(
                compile(file.read(), place, "exec"),
                {"include": include, "options": known, "package": lambda *names, **how: packages.append((names, how))},
            )

    include("manifest.py")
    assert capfd.readouterr().out == ""
    ((names, how),) = packages
    assert names == ("leveret",) and how["opt"] == 3
    frozen = {
        os.path.relpath(os.path.join(place, each), os.path.join(how["base_path"], "leveret"))
        for place, _, found in os.walk(os.path.join(how["base_path"], "leveret"))
        for each in found
    }
    assert frozen == set(flash_files.sources(boards.load(name), True))


def drafts_of(tmp_path, choice, version, monkeypatch):
    """The settings of an ESP32-S3 with these versions of AMQP, whose file names a draft, or none."""
    monkeypatch.setenv(flash_settings.PASSWORD_VARIABLE, "x")
    board = boards.load("esp32_s3")
    board.carries = dict(board.carries, dialects=choice)
    (tmp_path / "gateway.toml").write_text("[board]\n" + (f'version = "{version}"\n' if version else ""))
    return flash_settings.wanted(board, options(wifi="home", config=str(tmp_path / "gateway.toml")), None)


@pytest.mark.parametrize(
    "choice, version, served",
    [
        (["amqp_0_9"], None, None),
        (["amqp_0_9a5"], None, "0.9a5"),
        (["amqp_0_9r1"], None, "0.9r1"),
        (["amqp_0_9", "amqp_0_9a5"], None, None),
        (["amqp_0_9", "amqp_0_9a5"], "0.9a5", "0.9a5"),
        (["amqp_0_9a5", "amqp_0_9r1"], "0.9r1", "0.9r1"),
    ],
)
def test_a_board_serves_the_draft_that_it_carries_alone_or_is_told(tmp_path, monkeypatch, choice, version, served):
    assert drafts_of(tmp_path, choice, version, monkeypatch).get("version") == served


@pytest.mark.parametrize(
    "choice, version, said",
    [
        (["amqp_0_9a5", "amqp_0_9r1"], None, 'one listener serves one of them: say version = "0.9a5" or "0.9r1" in [board]'),
        (["amqp_0_9", "amqp_0_9r1"], "0.9a5", "[board] version is '0.9a5', which esp32_s3 does not carry"),
        (["amqp_0_9"], "0.9a5", "[board] version is '0.9a5', which esp32_s3 does not carry"),
        (["amqp_0_9"], "0-9", "[board] version is '0-9'; it must be"),
    ],
)
def test_a_draft_that_a_board_cannot_serve_is_refused(tmp_path, monkeypatch, choice, version, said):
    with pytest.raises(UsageError) as caught:
        drafts_of(tmp_path, choice, version, monkeypatch)
    assert said in str(caught.value)


def test_a_board_that_carries_every_part_has_all_that_its_files_import_late():
    board = boards.load("unix")
    board.carries["dialects"] = sorted(boards.DIALECTS)
    board.carries["parts"] = sorted(set(boards.PARTS) - {"client", "client_1_0"})  # those two are what a board has that is no broker
    carried = set(flash_files.source_paths(board))
    for path in sorted(carried):
        with open(os.path.join(boards.ROOT, path), encoding="utf-8") as file:
            for node in ast.walk(ast.parse(file.read())):
                if isinstance(node, ast.ImportFrom) and node.level:
                    assert set(boards.places(path, node)) <= carried | NOT_ON_A_BOARD, (
                        f"{path} imports what is not carried: a row of boards.PARTS lacks it"
                    )


def test_no_number_of_a_board_is_larger_than_a_float_of_32_bits():
    """MicroPython's build cannot freeze one where a board's floats have 32 bits: 1e308 had kept an STM32H7's firmware from being built."""
    for name in boards.names():
        if boards.load(name).interpreter == "micropython":
            for path in flash_files.source_paths(boards.load(name)):
                with open(os.path.join(boards.ROOT, path), encoding="utf-8") as file:
                    for node in ast.walk(ast.parse(file.read())):
                        if isinstance(node, ast.Constant) and isinstance(node.value, float):
                            assert abs(node.value) < 3.4e38, (path, node.lineno)


def test_every_microcontroller_has_a_manifest():
    for name in boards.names():
        if boards.load(name).interpreter == "micropython":
            with open(os.path.join(boards.BOARDS, name, "manifest.py")) as file:
                assert f'include("../manifest.py", board="{name}")' in file.read()

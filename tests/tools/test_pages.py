"""The pages: no dead link, no command that the parsers do not take, no configuration that is refused; the quick commands are run."""

import functools
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib

import pytest

from leveret.core.limits import Limits
from leveret.tools import cli, config, dev, generate_readme, manage, memory, pipeline_config
from leveret.tools.devtool import pages, site
from leveret.tools.devtool.pages import ROOT, read

# What the scripts behind `python3 tools/dev.py NAME` and `python tests/...` parse: a program that ends where its parser is through.
PARSED = 99
PARSE_ONLY = (
    """
import argparse, runpy, sys
parse = argparse.ArgumentParser.parse_args
def parse_and_end(self, *given, **named):
    parse(self, *given, **named)
    sys.exit(%d)
argparse.ArgumentParser.parse_args = parse_and_end
sys.argv = sys.argv[1:]
if sys.argv[0].endswith(".py"):
    sys.path.insert(0, sys.argv[0].rpartition("/")[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
else:
    runpy.run_module(sys.argv[0], run_name="__main__")
"""
    % PARSED
)
SCRIPTS = {
    "simulate": "tests/simulate/run.py",
    "faults": "tests/bridge/faults.py",
    "attack": "tests/attack/attack.py",
    "bench": "tests/measure/run.py",
    "demo": "leveret.tools.demo",
}
NAMED = re.compile(r"(?<![\w./*{}-])((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:py|c))\b(?!\w)")
WITH_NAMES = (".py", ".c", ".h", ".md")
OPERATORS = ("&&", "||", "|", ";", "&")
STAND_INS = {"N": "7", "HOST": "127.0.0.1"}  # words of the pages in the place of a number


def split(line):
    """The commands of a shell line, each a list of words; comments, variables set in front, and what < and > name are left out."""
    command, commands, words = [], [], iter(shlex.split(line, comments=True))
    for word in words:
        if word in OPERATORS:
            commands.append(command)
            command = []
        elif word in ("<", ">"):
            next(words)
        elif command or not re.match(r"[A-Z_]+=", word):
            command.append(word)
    return [command for command in commands + [command] if command]


@functools.cache
def shell_commands():
    """(page, words) of each command in the pages' fenced shell blocks."""
    found = []
    for page in pages.names():
        for block in pages.fences(read(page), "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                found += [(page, tuple(words)) for words in split(line)]
    return found


def of_leveret(words):
    """The arguments of a `leveret` command, wherever it is installed; None for other commands."""
    return list(words[1:]) if os.path.basename(words[0]) == "leveret" else None


def of_dev(words):
    return list(words[2:]) if words[0].startswith("python") and words[1:2] == ("tools/dev.py",) else None


def of_script(words):
    """(path, arguments) of `python tests/...`, or of `dev.py NAME` where NAME hands its options on; None for other commands."""
    if words[0].startswith("python") and words[1:2] and words[1].startswith("tests/") and words[1].endswith(".py"):
        return words[1], words[2:]
    given = of_dev(words)
    return (SCRIPTS[given[0]], tuple(given[1:])) if given and given[0] in SCRIPTS else None


def parses(parse, *given):
    try:
        parse(*given)
    except SystemExit as ended:  # 0: --help
        return ended.code == 0
    return True


def leveret_parses(arguments):
    return parses(cli.make_parser(next((word for word in arguments if not word.startswith("-")), None)).parse_args, arguments)


def test_no_link_of_a_page_is_dead():
    assert list(pages.dead_links()) == []
    assert sum(len(pages.links(read(page))) for page in pages.names()) > 50


def test_a_dead_link_is_found(monkeypatch):
    """To a file, to a heading of another page, of its own; headings are named as GitHub names them."""
    texts = {
        "a.md": "# A b (`--c`)\n[1](b.md) [2](b.md#x-y) [3](#a-b---c) [4](http://x) [5](c.md) [6](b.md#z) [7](#z)\n```sh\n[8](no)\n```\n",
        "b.md": "## X: y\n# X y\n",
    }
    monkeypatch.setattr(pages, "names", lambda: list(texts))
    monkeypatch.setattr(pages, "read", texts.get)
    monkeypatch.setattr(os.path, "exists", lambda path: os.path.basename(path) in texts)
    assert list(pages.dead_links()) == [("a.md", "c.md"), ("a.md", "b.md#z"), ("a.md", "#z")]
    assert pages.anchors(texts["b.md"]) == ["x-y", "x-y-1"]


def test_the_site_has_every_page_once():
    rows, found = site.navigation([]), []
    for row in rows:
        for value in row.values():
            found += [value] if isinstance(value, str) else [name for each in value for name in each.values()]
    assert sorted(found) == sorted(pages.names())
    assert {"README.md", "tools/SERVE.md", "core/SPEC.md"} <= set(found)


def test_files_that_the_pages_name_are_there():
    """Programs to run, and sources in backticks."""
    for page in pages.names():
        if page == "CHANGELOG.md":  # of its time
            continue
        text = read(page)
        named = re.findall(r"python3? ((?:tests|tools)/[\w/]+\.py)", text)
        named += re.findall(r"`((?:tools|ports|tests|core)/[\w/]+\.(?:py|c))[`:]", text)
        for path in named:
            assert os.path.exists(os.path.join(ROOT, path)), (page, path)


def test_files_that_the_sources_of_the_product_name_are_there():
    """In docstrings, comments and core/'s pages: a file that is moved takes its name along."""
    there = []
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in ("build", "node_modules", "__pycache__") and not name.startswith(".")]
        there += [os.path.relpath(os.path.join(folder, name), ROOT).replace(os.sep, "/") for name in names]
    ends = {"/".join(name.split("/")[-depth:]) for name in there for depth in range(1, name.count("/") + 2)}
    looked = [name for name in there if name.endswith(WITH_NAMES) and name.startswith(("core/", "c_accel/", "ports/", "firmware/"))]
    assert len(looked) > 150
    absent = []
    for name in looked:
        absent += [(name, found) for found in NAMED.findall(read(name)) if found not in ends | {"ship/leveret_pipeline.py"}]
    assert not absent, absent


@pytest.mark.parametrize(
    "line, commands",
    [
        ("leveret perf --rate 5    # quick", [["leveret", "perf", "--rate", "5"]]),
        ("A=1 x && y 'a b' | z < file", [["x"], ["y", "a b"], ["z"]]),
        ("# nothing", []),
    ],
)
def test_a_shell_line_is_split_as_a_shell_does(line, commands):
    assert split(line) == commands


@pytest.mark.parametrize(
    "arguments, good",
    [
        (["serve", "--data", "DIR"], True),
        (["serve", "--dta", "DIR"], False),
        (["dance"], False),
        (["attach"], False),
        (["log", "check", "DIR"], True),
    ],
)
def test_a_command_that_no_longer_works_is_found(arguments, good):
    assert leveret_parses(arguments) is good


def test_the_parsers_take_every_leveret_command_of_the_pages():
    found = [(page, of_leveret(words)) for page, words in shell_commands() if of_leveret(words)]
    assert len(found) > 40
    assert [(page, words) for page, words in found if not leveret_parses(words)] == []


def test_the_parser_takes_every_dev_py_command_of_the_pages():
    found = [(page, of_dev(words)) for page, words in shell_commands() if of_dev(words)]
    served = {"setup", "demo", "test", "check", "bench", "site", "simulate", "kill", "attack", "faults", "mutate", "package", "lock"}
    assert served == {words[0] for _, words in found}
    assert [(page, words) for page, words in found if not parses(dev.parse, words)] == []


def test_the_programs_behind_dev_py_and_of_the_tests_take_their_options():
    found = {script for _, words in shell_commands() if (script := of_script(words)) and script[1]}
    assert len(found) > 5
    for script, given in sorted(found):
        command = [sys.executable, "-c", PARSE_ONLY, script, *[STAND_INS.get(word, word) for word in given]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert done.returncode == PARSED, (script, given, done.stderr)


def test_commands_within_the_text_have_options_that_there_are():
    """`leveret ...` and `python3 tools/dev.py ...` between backticks, where words as URL and DIR may be left out."""
    count = 0
    for page in pages.names():
        for text in re.findall(r"`((?:leveret|python3 tools/dev\.py) [^`\n]+)`", pages.FENCE.sub("", read(page))):
            words = text.split()
            name = words[1 if words[0] == "leveret" else 2]
            if words[0] == "leveret" and name in dict(cli.COMMANDS):
                count += 1
                parser = cli.make_parser(name)
                shown = parser.format_help() + "".join(each.format_help() for each in parsers_below(parser))
                assert [word for word in words if word.startswith("--") and word.partition("=")[0] not in shown] == [], (page, text)
            elif words[0] != "leveret":
                count += 1
                assert parses(dev.parse, words[2:]), (page, text)
            else:
                assert not name.islower() or name.startswith("-"), (page, text)
    assert count > 30


def parsers_below(parser):
    """All parsers of a parser's subcommands."""
    for action in parser._actions:
        for each in (getattr(action, "choices", None) or {}).values() if isinstance(getattr(action, "choices", None), dict) else ():
            yield each
            yield from parsers_below(each)


def test_configuration_files_of_the_pages_are_taken(tmp_path):
    """Each TOML block that `leveret serve` reads, with a hash in the place of three dots."""
    path, count = str(tmp_path / "leveret.toml"), 0
    stored = "pbkdf2-sha256$10000$LYWDyA00gl0HR7h6SMJ4vA==$TVmDKwhofDsTPEVN8B8vOzKgJEgLvRqHZF9ipUqg3U8="
    for page in pages.names():
        for block in pages.fences(read(page), "toml"):
            if not set(tomllib.loads(block)) <= {row[0] for row in config.FILE.rows}:
                continue
            with open(path, "w", encoding="utf-8") as file:
                file.write(block.replace('"..."', '"%s"' % stored))
            options = cli.make_parser("serve").parse_args(["serve", "--config", path])
            given, most = config.given_limits(path)
            assert memory.fitting(given, memory.octets(most or "1G")), page
            for look in (config.listeners, config.policies, config.bridges, config.virtual_host):
                look(path)
            config.access(path, Limits())
            config.kept(options)
            count += 1
    assert count >= 8


def test_the_pipelines_configuration_of_its_page_is_taken(tmp_path):
    shown = next(block for block in pages.fences(read("ports/spark/README.md"), "toml") if "[source]" in block)
    (tmp_path / "pipeline.toml").write_text(shown)
    options = cli.make_parser("pipeline").parse_args(["pipeline", "run", "--config", str(tmp_path / "pipeline.toml")])
    assert pipeline_config.of_arguments(options)


QUICK = ("limits", "board", "status", "definitions", "password")  # they end by themselves, at once


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A directory with a broker beside it that keeps its log in DIR there, as README.md starts it."""
    line = next(words for page, words in shell_commands() if page == "README.md" and "--data" in words)
    process = subprocess.Popen(
        [sys.executable, "-m", "leveret.tools.cli", *line[1:], "--listen", "amqp://127.0.0.1:0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(manage, "URL_DEFAULT", "amqp://guest:guest@" + process.stdout.readline().strip().rpartition("/")[2])
        yield process
    finally:
        process.kill()
        process.communicate()


def of_the_pages(*names):
    """The arguments of the `leveret` commands called so, in the pages' order; without those that name a machine or a device."""
    given = [of_leveret(words) for _, words in shell_commands() if of_leveret(words)]
    return [words for words in given if words[0] in names and not any("://" in word or "/dev/" in word for word in words)]


def test_quick_commands_of_the_pages_run(scratch, monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("secret\n")
    ran = []
    for words in of_the_pages(*QUICK):
        with open(tmp_path / "file", encoding="utf-8") as file:
            monkeypatch.setattr(sys, "stdin", file)
            try:
                status = cli.main(words)
            except SystemExit as ended:  # --help
                status = ended.code
        assert status == 0, (words, capsys.readouterr().err)
        ran.append(words[0])
    assert set(QUICK) == set(ran) and (tmp_path / "broker.json").exists()
    scratch.send_signal(signal.SIGTERM)  # README.md: serves until told to end; then its log may be looked at
    assert scratch.wait(timeout=120) == 0
    logs = of_the_pages("log")
    assert {words[1] for words in logs} == {"check", "dump", "compact", "salvage"}
    assert [(words, cli.main(words)) for words in logs] == [(words, 0) for words in logs]


BENCH = """<!-- bench: x -->
Measured today: `cmd`.

| | Leveret (C) | Leveret (plain Python) | RabbitMQ | C relay (limit) |
|---|---:|---:|---:|---:|
"""
TITLES = (
    "no acknowledgements, messages/s",
    "acks, prefetch 200",
    "confirms, window 200",
    "durable, persistent, confirms",
    "latency p50",
    "latency p99",
    "start to first answer",
    "resident memory, idle",
    "CPU when idle",
)


def bench_page(titles):
    return BENCH + "".join("| %s | 1 | 2 | 3 | 4 |\n" % title for title in titles) + "<!-- end of bench -->\n"


def test_the_front_pages_figures_are_rows_of_the_bench():
    """README.md shows a few rows of tests/measure/README.md, without the relay's column, and how they were measured."""
    text = generate_readme.figures(bench_page(TITLES))
    assert text.startswith("Measured today: `cmd`.\n\n| | Leveret (C) | Leveret (plain Python) | RabbitMQ |\n")
    assert "| confirms, window 200 | 1 | 2 | 3 |\n" in text and "CPU when idle" not in text and "| 4 |" not in text
    for title in TITLES[:-1]:
        with pytest.raises(generate_readme.NoSource):
            generate_readme.figures(bench_page([each for each in TITLES if each != title]))


def test_tables_that_are_old_fail_the_check(tmp_path, capsys):
    for page in ("README.md", "tools/PERF.md", "core/LIMITS.md", "core/DESIGN.md", "boards/README.md"):
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text(read(page))
    assert generate_readme.main(["--check"], tmp_path) == 0
    for page, cell in (
        ("README.md", "| acks, prefetch 200, messages/s | "),
        ("tools/PERF.md", "| transactions of 10 | "),
        ("core/LIMITS.md", "| `channel_max` | "),
        ("core/DESIGN.md", "| [queue](queue/README.md) | "),
        ("boards/README.md", "| esp32 | 0-9-1 | "),
    ):
        (tmp_path / page).write_text(read(page).replace(cell, cell + "9"))
        assert generate_readme.main(["--check"], tmp_path) == 1 and page in capsys.readouterr().out
        assert generate_readme.main([], tmp_path) == 0 and (tmp_path / page).read_text() == read(page)

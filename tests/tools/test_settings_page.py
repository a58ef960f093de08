"""tools/SETTINGS.md: every setting with what it may be, its unit and its default, and the same as the tables that check them."""

import os
import re
import subprocess
import sys

import pytest

from leveret.core import limit_words, limits
from leveret.ports.bridge import setting_words
from leveret.ports.bridge import settings as bridge
from leveret.ports.settings import words_of
from leveret.ports.spark import option_tables
from leveret.tools import address, board_settings, config, data, generate_settings, pipeline_config

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLES = {
    "file": config.FILE,
    "limits": config.LIMITS,
    "data": data.TABLE,
    "user": config.USER,
    "policy": config.POLICY_TABLE,
    "bridge": bridge.TABLE,
    "pipeline": pipeline_config.FILE,
    "metric": pipeline_config.METRIC,
    "node": config.NODE,
    "serial line": address.SERIAL,
    "spark source": option_tables.SOURCE,
    "spark sink": option_tables.SINK,
    **board_settings.TABLES,
    **pipeline_config.SECTIONS,
}
# of the launcher, of tools/dev.py, of what tests run beside (tools/components.py)
NOT_FOR_USERS = {"LEVERET_KEPT", "LEVERET_SPARK_SUBMIT", "LEVERET_SHARED", "LEVERET_KILLS", "LEVERET_RABBITMQADMIN"}


def page():
    with open(os.path.join(ROOT, "tools", "SETTINGS.md"), encoding="utf-8") as file:
        return file.read()


def test_the_page_is_what_the_tables_say_and_an_old_one_fails_the_check(monkeypatch, tmp_path, capsys):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "generate_settings.py"), "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    monkeypatch.setattr(generate_settings, "PAGE", tmp_path / "SETTINGS.md")
    monkeypatch.setattr(generate_settings, "spark_options", lambda: option_tables)
    assert generate_settings.main(["--check"]) == 1 and "tools/SETTINGS.md is not" in capsys.readouterr().out
    assert generate_settings.main([]) == 0 and generate_settings.main(["--check"]) == 0
    monkeypatch.setattr(data.TABLE, "rows", data.TABLE.rows[1:])
    assert generate_settings.main(["--check"]) == 1


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_every_table_is_on_the_page_with_its_range_and_a_default_that_it_takes(name):
    text = page()
    for setting, kind, default, *_ in TABLES[name].rows:
        assert f"`{setting}`" in text, setting
        assert name == "limits" or not words_of(kind) or words_of(kind).replace("|", "\\|") in text, setting
        said = str(default).lower() if name.startswith(("spark ", "serial ")) and default is not None else default  # options are texts
        assert default is None or setting == "watchdog_ms" or kind[0](said, kind[2], kind[3]) is not None, setting


def is_number(name, kind):
    """True for a kind of numbers, which stand in a file as they are and in URLs and options as texts, that is not one of words too."""
    samples = ("16", "256") if name.startswith(("spark ", "serial ")) else (16, 256, 1 << 20)
    takes = [each for each in samples if kind[0](each, kind[2], kind[3]) is not None]
    return re.search("(a|whole|the) number", words_of(kind)) or bool(takes) and kind[0]("text", kind[2], kind[3]) is None


@pytest.mark.parametrize("name", TABLES)
def test_every_setting_says_what_it_may_be_and_every_number_its_unit(name):
    words = limit_words.WORDS if name == "limits" else setting_words.WORDS if name == "bridge" else {}
    for setting, kind, _, *more in TABLES[name].rows:
        unit, meaning = more or words[setting]
        assert meaning and (name == "limits" or words_of(kind)), setting  # limits: their ranges are in core/limits.py
        assert unit or not is_number(name, kind), "a number without a unit: %s" % setting


def test_every_limit_is_on_the_page_with_its_range():
    for name, gateway, board, least, most in limits.ROWS:
        assert f"| `{name}` | {gateway} | {board} | {least} to {most} | " in page()


def test_every_setting_of_a_bridge_has_its_words():
    assert [row[0] for row in bridge.ROWS] == list(setting_words.WORDS) and all(words for _, words in setting_words.WORDS.values())


def test_every_variable_that_a_command_reads_is_on_the_page():
    read = set()
    for folder in ("core", "ports", "tools"):
        for directory, _, files in os.walk(os.path.join(ROOT, folder)):
            for name in files:
                if name.endswith(".py") and "devtool" not in directory and name not in ("generate_settings.py", "generate_layout.py"):
                    with open(os.path.join(directory, name), encoding="utf-8") as file:
                        read |= set(re.findall(r"\"(LEVERET_[A-Z_]+)\"", file.read()))
    assert read and not [name for name in read - NOT_FOR_USERS if f"| `{name}` |" not in page()]

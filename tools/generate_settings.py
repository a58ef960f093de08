"""Writes tools/SETTINGS.md from the tables that check settings: what each may be, its unit, its default, where it is given.

.venv/bin/python tools/generate_settings.py            write it
.venv/bin/python tools/generate_settings.py --check    exit 1 when the page is not what the tables say
"""

import ast
import importlib
import pathlib
import re
import sys
import types

from leveret.core import limits
from leveret.core.limit_words import WORDS as LIMIT_WORDS
from leveret.ports.bridge import setting_words
from leveret.ports.bridge import settings as bridge
from leveret.ports.settings import words_of
from leveret.tools import address, board_settings, config, data, pipeline_config

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "tools" / "SETTINGS.md"
HEAD = """# Every setting
Written by tools/generate_settings.py from the tables that check them; do not edit. What is left out has the default; an empty one: there is
none. A mistake ends the command with one sentence that names file, setting and what is allowed (core/REFUSALS.md).

```toml
# leveret.toml, for `leveret serve --config leveret.toml`; [board] is for `leveret flash`
listen = ["amqp://127.0.0.1:5672"]
[limits]
memory_max = "256M"
[data]
directory = "/var/lib/leveret"
[[user]]
name = "sensor"
password = "..."
write = "^sensors$"
[[node]]
pattern = "^orders\\\\."
kind = "queue"
[[policy]]
name = "short"
pattern = "^sensor\\\\."
definition = { message-ttl = 60000, max-length = 1000 }
[[bridge]]
name = "uplink"
gateway = "gw7"
stream = "readings"
upstream = ["amqps://gw7:secret@broker.example/?ca=/etc/leveret/ca.pem"]
exchange = "telemetry"
```
"""
# Options of a command line that go before a file's setting.
OPTIONS = {
    "leveret.toml": {"listen": "--listen"},
    "[data]": {name: "--data" if name == "directory" else data.flag(name) for name in data.KEYS},
    "pipeline.toml": {"out": "--out"},
    "[spark]": {"master": "--master"},
    "[doubles]": {"watermark": "--watermark"},
    "[windows]": {"length_s": "--window"},
    "[source]": {"url": "--source", "streams": "--stream"},
    "[[bridge]]": {
        "name": "--name",
        "gateway": "--gateway",
        "queue": "--queue",
        "stream": "--stream",
        "upstream": "--to",
        "exchange": "--exchange",
        "routing_key": "--routing-key",
        "prefetch": "--prefetch",
        "direction": "--down",
    },
}
ENVIRONMENT = (
    ("LEVERET_WIFI_PASSWORD", "`leveret flash`: the password of the Wi-Fi network; it is never an argument"),
    ("LEVERET_PIPELINE_PASSWORD", "`leveret pipeline run`: the password of the user that --source names"),
    ("LEVERET_ACCEL", "when Leveret is built: 1 makes a missing C compiler an error"),
)


def row(cells):
    """A line of a table."""
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"


def shown(default):
    """A default as a file has it."""
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default is None else f"`{default}`".replace("'", '"') if isinstance(default, (int, float, list)) else f'`"{default}"`'


def sentences(table):
    """Conditions on the settings of a table together."""
    lines = []
    for names, _, sentence in table.relations:
        for place in ("{path}: ", "user {user!r}: ", "{table} ", "{section}", "{name} "):
            sentence = sentence.replace(place, "")
        lines.append("- " + (", ".join(f"`{name}`" for name in names) + ": " if names else "") + sentence)
    return lines


def section(title, where, table, words=None):
    """The lines of a table's section. `words`: {name: (unit, meaning)} where the rows have none."""
    options = OPTIONS.get(title, {})
    lines = [f"## {title}", where, "", "| setting | option | what it may be | unit | default | meaning |", "|---|---|---|---|---|---|"]
    for name, kind, default, *more in table.rows:
        unit, meaning = more or words[name]
        lines.append(row((f"`{name}`", f"`{options[name]}`" if name in options else "", words_of(kind), unit, shown(default), meaning)))
    return lines + [""] + sentences(table) + [""] * bool(table.relations)


def limit_lines():
    """The section of [limits]."""
    calls = [node for node in ast.walk(ast.parse(pathlib.Path(limits.__file__).read_text())) if isinstance(node, ast.Call)]
    together = [ast.literal_eval(call.args[1]) for call in calls if getattr(call.func, "id", "") == "require"]
    lines = [
        "## [limits]",
        "In leveret.toml; those of a board are in its profile, and in the file given to `leveret flash`. What the file "
        "does not give is chosen by the machine's memory: `memory_max` (option `--memory-max`) bounds their sum, at least 1M, half of "
        "the machine's memory when it is left out. Octets may be texts, as 500K, 64M, 2G. `leveret limits --all` prints those of this "
        "machine.",
        "",
        "| limit | gateway | board | range | unit | at the limit |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        row((f"`{name}`", gateway, board, f"{least} to {most}", *LIMIT_WORDS[name])) for name, gateway, board, least, most in limits.ROWS
    ]
    return lines + [""] + [f"- {sentence}" for sentence in together] + [""]


def url_lines():
    """The settings in a listener's URL."""
    lines = [
        "## A listener's URL",
        "What stands behind the ? of a `listen` or `--listen`; for `amqps://`, `wss://` and `amqp://`: cert, key, ca (files) "
        f"and verify=peer, as {address.TLS_FORM}; for `serial://`:",
        "",
        "| setting | what it may be | unit | default | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [
        row((f"`{name}`", words_of(kind), unit, shown(default), meaning)) for name, kind, default, unit, meaning in address.SERIAL.rows
    ]
    return lines + [""]


def spark_options():
    """ports/spark/option_tables.py, also where there is no Spark."""
    package = types.ModuleType("leveret.ports.spark")
    package.__path__ = [str(ROOT / "ports" / "spark")]
    sys.modules["leveret.ports.spark"] = package
    return importlib.import_module("leveret.ports.spark.option_tables")


def page():
    """The page."""
    spark = spark_options()
    lines = section("leveret.toml", "`leveret serve --config FILE`; other commands take what they need from the same file.", config.FILE)
    lines += url_lines() + limit_lines()
    lines += section("[data]", "In leveret.toml: messages that outlive the broker. An option goes before the file.", data.TABLE)
    lines += section("[[user]]", "In leveret.toml, any number.", config.USER)
    lines += section("[[node]]", "In leveret.toml, any number; the first whose pattern fits a name counts.", config.NODE)
    lines += section("[[policy]]", "In leveret.toml, any number.", config.POLICY_TABLE)
    lines += section(
        "[[bridge]]",
        "In leveret.toml, any number; for `leveret bridge` as options, or `--option NAME=VALUE`. On a board "
        "`prefetch` is 32, `buffer_size` 4096 and `frame_size_max` 8192 by default.",
        bridge.TABLE,
        setting_words.WORDS,
    )
    for title, table in board_settings.TABLES.items():
        lines += section(title, "In the file given to `leveret flash --config FILE`.", table)
    lines += section("pipeline.toml", "`leveret pipeline run --config FILE`.", pipeline_config.FILE)
    for name, table in pipeline_config.SECTIONS.items():
        lines += section(f"[{name}]", "In pipeline.toml.", table)
    lines += section("[metrics.NAME]", "In pipeline.toml, any number.", pipeline_config.METRIC)
    lines += section('Spark: readStream.format("amqp")', "Options, in any case.", spark.SOURCE)
    lines += section('Spark: writeStream.format("amqp")', "Options, in any case.", spark.SINK)
    lines += ["## Environment", "", "| variable | meaning |", "|---|---|"] + [row((f"`{name}`", words)) for name, words in ENVIRONMENT]
    return HEAD + "\n" + re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def main(arguments):
    """Write or check; the exit status."""
    wanted = page()
    if "--check" in arguments:
        current = PAGE.exists() and PAGE.read_text() == wanted
        if not current:
            print("generate_settings: tools/SETTINGS.md is not what the tables say; run .venv/bin/python tools/generate_settings.py")
        return int(not current)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

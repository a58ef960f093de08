"""The /etc/leveret/leveret.toml of packages: every setting of the tables that check it (tools/config.py and others), explained, with its
default behind a #. The file as it stands gives a broker as `leveret serve --data /var/lib/leveret` would be."""

import json
import textwrap

from leveret.core import limits
from leveret.core.limit_words import WORDS
from leveret.ports.bridge import setting_words
from leveret.ports.bridge import settings as bridge
from leveret.ports.settings import words_of

from .. import config, data

WIDTH = 110
HEAD = """Leveret's configuration. Each setting stands here with its default: take the # away to change it.
A mistake is told with its line: leveret serve --config /etc/leveret/leveret.toml --check-config
Then: systemctl reload leveret (users, permissions, policies, bridges, log level, some limits), or systemctl restart leveret.
Left alone this file lets in guest with the password guest, from this machine alone. Pages: /usr/share/doc/leveret, man leveret-serve."""
TABLES = ("limits", "data", "user", "node", "policy", "bridge", "board")  # of their own, below
GIVEN = {"directory": "/var/lib/leveret"}  # what is set


def comment(text):
    """A text as comment lines."""
    return [line for each in text.split("\n") for line in textwrap.wrap(each, WIDTH, initial_indent="# ", subsequent_indent="# ")]


def setting(name, kind, default, unit, meaning, words=""):
    """The lines of a setting."""
    may_be = words or words_of(kind)
    meanings = "; ".join(filter(None, (meaning, may_be, unit if unit and unit not in may_be else "")))
    if name in GIVEN:
        return [*comment(meanings), f"{name} = {json.dumps(GIVEN[name])}", ""]
    return [*comment(meanings), f"#{name} =" + ("" if default is None else " " + json.dumps(default)), ""]


def several(title, about, table, words=None):
    """The lines of tables of which there may be any number."""
    lines = [*comment(f"{about} Any number of these."), f"#[[{title}]]"]
    for name, kind, default, *more in table.rows:
        lines += setting(name, kind, default, *(more or words[name]))
    return lines


def text():
    """The file."""
    lines = [*comment(HEAD), ""]
    for row in config.FILE.rows:
        if row[0] not in TABLES:
            lines += setting(*row)
    lines += [*comment("Messages, queues, users and policies that outlive the broker."), "[data]"]
    for row in data.TABLE.rows:
        lines += setting(*row)
    about = "Every maximum. What is left out is chosen by the machine's memory; the numbers here are the most that is chosen."
    lines += [*comment(about), "[limits]"]
    lines += setting(*config.LIMITS.rows[0])
    for name, gateway, _, least, most in limits.ROWS:
        unit, meaning = WORDS[name]
        lines += setting(name, None, gateway, "", meaning, f"{least} to {most} {unit}")
    lines += several("user", "Who may log in. With one of these there is no guest.", config.USER)
    lines += several("node", "What AMQP 1.0 makes on use.", config.NODE)
    lines += several("policy", "Settings of queues and exchanges by their names.", config.POLICY_TABLE)
    lines += several("bridge", "Messages to or from another broker.", bridge.TABLE, setting_words.WORDS)
    return "\n".join(lines).rstrip() + "\n"

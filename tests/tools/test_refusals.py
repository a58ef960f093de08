"""core/REFUSALS.md: every sentence of the sources is there, each with what to do."""

import ast
import os
import subprocess
import sys

import pytest

from leveret.core.amqp_0_9.spec_0_9_1 import REPLIES
from leveret.tools import generate_refusals, refusals

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text(source):
    return generate_refusals.text_of(ast.parse(source, mode="eval").body)


def test_the_page_is_what_the_sources_say_and_every_sentence_has_its_advice():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "generate_refusals.py"), "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_condition_of_the_protocol_has_general_advice():
    assert {name for name, _, _ in REPLIES} - {"reply-success", "no-consumers", "no-route", "invalid-path"} <= set(refusals.CONDITIONS)


@pytest.mark.parametrize(
    "source, expected",
    [
        ("'a %s b' % name", "a %s b"),
        ("f'a {name!r} b'", "a {} b"),
        ("'a ' + name", "a {}"),
        ("'a' if one else 'b'", "a"),
        ("name", None),
        ("('a ' 'b')", "a b"),
    ],
)
def test_the_text_of_an_expression(source, expected):
    assert text(source) == expected


def test_a_sentence_without_advice_and_a_page_that_is_old_fail_the_check(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generate_refusals, "PAGE", tmp_path / "REFUSALS.md")
    assert generate_refusals.main(["--check"]) == 1 and "core/REFUSALS.md is not" in capsys.readouterr().out
    assert generate_refusals.main([]) == 0 and generate_refusals.main(["--check"]) == 0
    advice, conditions, replies = generate_refusals.read_data()
    fewer = [row for row in advice if "tools/config" not in row[0]]
    monkeypatch.setattr(generate_refusals, "read_data", lambda: (fewer, conditions, replies))
    assert generate_refusals.main(["--check"]) == 1
    assert "tools/config.py" in capsys.readouterr().out


def test_what_people_meet_first_is_on_the_page():
    page = generate_refusals.page()[0]
    for words in (
        "Login was refused using authentication mechanism",
        "no queue '...' in ",
        "inequivalent arg",
        "cannot listen on",
        "basic.return 312",
        "connection.blocked",
        "there is no setting",
    ):
        assert words in page, words

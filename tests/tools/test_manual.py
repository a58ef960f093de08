"""The man pages have what the commands say of themselves, and groff takes them without a warning."""

import os
import shutil
import subprocess

import pytest

from leveret.tools import cli, command_tree, manual


def test_each_command_has_a_page_with_every_option():
    pages = manual.pages()
    assert set(pages) == {"leveret.1", *(f"leveret-{name}.1" for name, _ in cli.COMMANDS)}
    for command in command_tree.read().commands:
        text = pages[f"leveret-{command.path[0]}.1"]
        assert manual.escaped(command.help) in text
        for each in command.all():
            for flag in [flag for option in each.options for flag in option.flags]:
                assert f"\\fB{manual.escaped(flag)}\\fR" in text, flag


def test_no_line_of_text_is_a_request():
    assert manual.escaped(".so /etc/passwd\n'br a\\b --x") == "\\&.so /etc/passwd\n\\&'br a\\eb \\-\\-x"


def test_groff_takes_them_without_a_warning(tmp_path):
    if not shutil.which("man"):
        pytest.skip("man-db is not there")
    environment = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="120", MANROFFSEQ="")
    for name, text in manual.pages().items():
        (tmp_path / name).write_text(text)
        done = subprocess.run(["man", "--warnings", "-l", str(tmp_path / name)], capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (0, ""), name

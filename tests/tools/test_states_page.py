"""core/STATES.md and tools/generate_states.py: the page is current, and what is wrong with a table is told."""

import os
import pathlib
import subprocess
import sys

from leveret.tools import generate_states

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def machine(tmp_path, *rows, words="Actions: actions.py. "):
    (tmp_path / "actions.py").write_text("def go(): pass\nfrom x import y as imported\n")
    return generate_states.Machine(tmp_path / "states.py", "DOOR", 1, rows, words)


def faults(monkeypatch, tmp_path, *rows, **given):
    monkeypatch.setattr(generate_states, "ROOT", tmp_path)
    return list(generate_states.faults([machine(tmp_path, *rows, **given)]))


def test_the_page_is_what_the_tables_say_and_they_are_sound():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "generate_states.py"), "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_an_old_page_fails_the_check(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generate_states, "PAGE", tmp_path / "STATES.md")
    assert generate_states.main(["--check"]) == 1 and "core/STATES.md is not" in capsys.readouterr().out
    assert generate_states.main([]) == 0 and generate_states.main(["--check"]) == 0
    (tmp_path / "STATES.md").write_text("old")
    assert generate_states.main(["--check"]) == 1


def test_a_sound_table_has_no_faults(monkeypatch, tmp_path):
    assert (
        faults(monkeypatch, tmp_path, ("shut", "push", "open", "go"), ("open", "*", "*", "!not-allowed"), ("shut", "*", "*", "imported"))
        == []
    )


def test_what_is_wrong_with_a_table_is_told(monkeypatch, tmp_path):
    assert "does not say above it" in faults(monkeypatch, tmp_path, ("shut", "push", "open", "go"), words="")[0]
    assert "an action run that is not in actions.py" in faults(monkeypatch, tmp_path, ("shut", "push", "open", "run"))[0]
    hidden = faults(monkeypatch, tmp_path, ("*", "pu*", "open", "go"), ("shut", "push", "open", "go"))
    assert len(hidden) == 1 and "hides behind" in hidden[0]
    (tmp_path / "user.py").write_text("if door.state == 'opne' or door.state in ('shut', 'locked'):\n    door.state = 'ajar'\n")
    told = faults(monkeypatch, tmp_path, ("shut", "push", "open", "go"))
    assert sorted(told) == [
        "user.py:1: 'locked' is no state of .",
        "user.py:1: 'opne' is no state of .",
        "user.py:2: 'ajar' is no state of .",
    ]


def test_arrows_leave_out_inputs_that_an_earlier_row_has_and_states_that_stay(tmp_path):
    door = machine(pathlib.Path(tmp_path), ("open", "push", "shut", "go"), ("shut", "push", "shut", "go"), ("*", "push", "locked", "go"))
    assert door.arrows() == {("open", "shut"): ["push"]}
    assert door.states() == ["open", "shut", "locked"]

"""What is made once for many processes (tools/kept.py) is what each of them would make."""

import os

import pytest

from leveret.tools import kept


def test_without_the_variable_everything_is_made_each_time(monkeypatch):
    monkeypatch.delenv(kept.VARIABLE, raising=False)
    made = []
    for number in (1, 2):
        assert kept.kept(("a", 1), lambda: made.append(0) or len(made)) == number


def test_the_same_texts_are_made_once_and_others_for_themselves(tmp_path, monkeypatch):
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path))
    made = []

    def make():
        made.append(0)
        return [{"b": "\u2713", "a": ""}, len(made)]

    first = kept.kept(({"x": "1"}, ["-O3"]), make)
    assert kept.kept(({"x": "1"}, ["-O3"]), make) == first == [{"b": "\u2713", "a": ""}, 1]
    assert list(kept.kept(({"x": "1"}, ["-O3"]), make)[0]) == ["b", "a"], "in its order"
    assert kept.kept(({"x": "1"}, ["-O2"]), make)[1] == 2
    assert kept.kept(({"y": "1"}, ["-O3"]), make)[1] == 3
    monkeypatch.setattr(kept, "_tools", lambda: "other programs")
    assert kept.kept(({"x": "1"}, ["-O3"]), make)[1] == 4
    assert len(os.listdir(tmp_path)) == 4, "and nothing half-written stays"


def test_what_cannot_be_made_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        kept.kept("a", lambda: 1 // 0)
    assert os.listdir(tmp_path) == [] and kept.kept("a", lambda: 1) == 1

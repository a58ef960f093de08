"""What --data and [data] mean: the numbers that are chosen, those that do not go together, and the words for a directory that cannot be
used (tools/data.py)."""

import argparse
import errno
import os

import pytest

from leveret.core.limits import Limits
from leveret.tools import data
from leveret.tools.usage import UsageError

KIB, MIB = 1 << 10, 1 << 20


def chosen(*arguments, **table):
    """The Data of a command line and of [data] in a file."""
    parser = argparse.ArgumentParser()
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--memory", action="store_true")
    data.add_arguments(parser, where)
    return data.chosen(parser.parse_args(arguments), "file.toml", table)


def test_the_command_line_goes_before_the_file_and_the_file_before_what_is_usual():
    made = chosen("--data", "d", "--sync", "batch", "--batch-ms", "7", directory="other", sync="none", batch_octets="1M", disk_max="2G")
    assert (made.directory, made.sync, made.batch_ms, made.batch_octets, made.disk_max) == ("d", "batch", 7, MIB, 2 << 30)
    made = chosen(directory="d")
    assert (made.directory, made.sync, made.batch_ms, made.batch_octets) == ("d", "each", 5, 256 * KIB)
    assert (made.disk_max, made.segment_size) == (1 << 30, 8 * MIB)


def test_without_a_directory_nothing_is_kept_and_an_option_for_it_is_refused():
    assert chosen() is None and chosen("--memory") is None and chosen("--memory", directory="d") is None
    with pytest.raises(UsageError, match="--sync is for messages that are kept on disk"):
        chosen("--sync", "batch")
    with pytest.raises(UsageError, match=r"file.toml: \[data\] sync is for messages that are kept on disk"):
        chosen(sync="none")
    for name in ("", "a\0b"):
        with pytest.raises(UsageError, match="needs the name of a directory"):
            chosen("--data", name)


def test_a_small_log_has_sixteen_files_unless_their_size_is_given():
    assert chosen("--data", "d", "--disk-max", "16M").segment_size == MIB
    assert chosen("--data", "d", "--disk-max", "16M", "--segment-size", "2M").segment_size == 2 * MIB
    assert chosen("--data", "d", "--disk-max", "16M", segment_size="2M").segment_size == 2 * MIB
    assert chosen("--data", "d", "--disk-max", "8M", "--segment-size", "2M").disk_max == 8 * MIB, "four files are the least"
    with pytest.raises(UsageError, match="less than 4 files of 2097153"):
        chosen("--data", "d", "--disk-max", "8M", "--segment-size", "2097153")


def test_a_part_is_kept_for_a_full_disk():
    for disk_max, segment_size, reserve in ((1 << 30, 8 * MIB, 2 * MIB), (16 * MIB, 4 * MIB, MIB), (64 * MIB, 4096, 4096)):
        assert data.Data({"disk_max": disk_max, "segment_size": segment_size}).reserve() == reserve


def test_a_log_has_room_for_four_of_the_largest_messages():
    made = data.Data({"disk_max": 4 * MIB})
    made.check(Limits(content_size_max=MIB, arena_size=64 * MIB))
    with pytest.raises(UsageError, match=r"raise --disk-max to .* content_size_max = 1048576"):
        made.check(Limits(content_size_max=MIB + 1, arena_size=64 * MIB))


def test_what_a_power_cut_can_take_is_said(monkeypatch):
    monkeypatch.setattr(data, "system_window_s", lambda: 35)
    made = data.Data({"sync": "each", "batch_ms": 7, "batch_octets": 99})
    assert made.window().startswith("a power cut loses nothing that was confirmed; every round")
    made.sync = "batch"
    assert "up to 7 ms (or until there are 99 octets)" in made.window()
    made.sync = "none"
    assert "may take the last 35 s" in made.window()


def test_the_systems_window_is_the_sum_of_its_two_times_rounded_up(monkeypatch, tmp_path):
    real = open

    def fake(path, *arguments):
        return real(str(tmp_path / os.path.basename(path)), *arguments)

    monkeypatch.setattr("builtins.open", fake)
    assert data.system_window_s() == 35, "Linux's usual ones"
    real(tmp_path / "dirty_expire_centisecs", "w").write("1001\n")
    assert data.system_window_s() == 16
    real(tmp_path / "dirty_writeback_centisecs", "w").write("99\n")
    assert data.system_window_s() == 11
    real(tmp_path / "dirty_writeback_centisecs", "w").write("words\n")
    assert data.system_window_s() == 16


def test_why_a_directory_cannot_be_used():
    for number, words in (
        (errno.EACCES, "may not write there"),
        (errno.EEXIST, "it is a file"),
        (errno.ENOTDIR, "it lies below a file"),
        (errno.ENOSPC, "its disk is full"),
        (errno.EROFS, "can only be read"),
    ):
        assert words in data.in_words(OSError(number, "x")) and data.reason("d", OSError(number, "x")).startswith(
            "--data d cannot be used: "
        )
    assert data.in_words(OSError(errno.EIO, "Input/output error")) == "Input/output error" and data.in_words(OSError("odd")) == "odd"
    assert data.reason("d", data.DirectoryInUse("taken")) == "taken"
    assert data.reason("d", data.OtherLog("of another version")) == "--data d cannot be used: of another version"
    assert data.reason("d", data.ProtocolError(404, "too many queues")).endswith("no room for what the log defines: too many queues")


def test_strays_and_files_that_others_could_read_are_told():
    class Store:
        repaired = 0
        names = ()

        def strays(self):
            return list(self.names)

    store = Store()
    assert data.told_of_files(store) == ""
    store.repaired, store.names = 2, ("a", "b")
    assert data.told_of_files(store) == (
        "; others could read 2 files of the directory: now they are for their owner alone (0600); not of the log, and left alone: a, b"
    )

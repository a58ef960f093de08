"""A driver that is killed while Spark writes the plan of its very first batch leaves a checkpoint that Spark itself refuses."""

import os

from leveret.ports.spark.tables import Tables


def leave(path, *names):
    """A folder as such a driver leaves it: a checkpoint with these files among the offsets."""
    offsets = os.path.join(path, "_checkpoint", "offsets")
    os.makedirs(offsets)
    for name in names:
        open(os.path.join(offsets, name), "w", encoding="utf-8").close()


def test_a_checkpoint_without_a_planned_batch_is_begun_anew(tmp_path):
    leave(tmp_path, ".0.d733d767.tmp", "..0.d733d767.tmp.crc")
    Tables(str(tmp_path)).close()
    assert not (tmp_path / "_checkpoint").exists()


def test_a_checkpoint_with_a_planned_batch_is_kept(tmp_path):
    leave(tmp_path, "0", ".1.d733d767.tmp")
    Tables(str(tmp_path)).close()
    assert (tmp_path / "_checkpoint" / "offsets" / "0").exists()

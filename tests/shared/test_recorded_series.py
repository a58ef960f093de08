"""The detector on the recorded series of the workplace (../shared), by the rules of the Numenta Anomaly Benchmark."""

import os
import sys

import pytest

from leveret.tools import components

if not components.JAVA.present():
    pytest.skip(components.JAVA.sentence(), allow_module_level=True)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "measure"))
from nab_score import RECORDED, score_folder  # noqa: E402 - the path is set above


def test_the_recorded_series_score_58_or_more():
    names, windows, (total, _, each) = score_folder(RECORDED)
    assert len(names) == 6 and sum(windows) == 15
    assert total >= 58
    assert sum(found for _, found, _ in each) >= 12

"""The anomaly detector: its scores do not depend on how readings are cut or mixed, only on the past; it finds what is unusual once."""

import numpy
import pytest

from leveret.ports.spark import detector


def noise(rows, seed=1):
    """(seconds, values): a reading each five minutes around 20."""
    return 1.4e9 + 300.0 * numpy.arange(rows), numpy.random.default_rng(seed).normal(20.0, 1.0, rows)


def score(seconds, values):
    return detector.score_rows(detector.new_states(1), numpy.zeros(len(values), "i8"), seconds, values)


def test_scores_are_the_same_alone_and_beside_others_and_in_any_cut():
    series = numpy.random.default_rng(5).integers(0, 7, 3000)
    seconds, values = noise(3000)
    values[::97] += 15
    together = detector.score_rows(detector.new_states(7), series, seconds, values)
    states = detector.new_states(7)
    for begin in range(0, 3000, 171):
        piece = slice(begin, begin + 171)
        assert numpy.array_equal(together[piece], detector.score_rows(states, series[piece], seconds[piece], values[piece]))
    for each in range(7):
        mine = series == each
        assert numpy.array_equal(together[mine], score(seconds[mine], values[mine]))


def test_a_state_survives_as_bytes():
    seconds, values = noise(800)
    states = detector.new_states(1)
    zeros = numpy.zeros(400, "i8")
    detector.score_rows(states, zeros, seconds[:400], values[:400])
    kept = numpy.frombuffer(states.tobytes(), detector.STATE).copy()
    assert numpy.array_equal(detector.score_rows(kept, zeros, seconds[400:], values[400:]), score(seconds, values)[400:])


def test_only_the_past_is_used():
    seconds, values = noise(1000)
    other = values.copy()
    other[700:] *= 9
    assert numpy.array_equal(score(seconds, values)[:700], score(seconds, other)[:700])


def test_one_event_is_one_alarm_and_a_rarer_one_behind_it_another():
    seconds, values = noise(3000)
    values[1500:1504] += 25
    values[2000] += 4.5
    values[2010] += 400
    alarms = numpy.flatnonzero(score(seconds, values) >= 0.7)
    assert list(alarms[(alarms >= 1500) & (alarms < 1520)]) == [1500]
    assert 2010 in alarms
    assert len(alarms) <= 8


@pytest.mark.parametrize("break_", ["level", "daily", "silence"])
def test_breaks_are_seen(break_):
    seconds, values = noise(4032)
    values += 15 * numpy.sin(2 * numpy.pi * seconds / 86400)
    if break_ == "level":
        values[3000:] += 40
    elif break_ == "daily":
        values[3000:3144] -= 2 * 15 * numpy.sin(2 * numpy.pi * seconds[3000:3144] / 86400)
    else:
        values[3000:3100] = 0.0
    assert score(seconds, values)[3000:3060].max() >= detector.ALARM


def test_quiet_things_make_no_alarm():
    seconds, values = noise(3000)
    assert (score(seconds, numpy.full(3000, 7.0)) < detector.ALARM).all()
    assert (score(seconds, values) >= 0.7).sum() <= 8
    assert (score(seconds[: detector.WARM_UP_ROWS], values[: detector.WARM_UP_ROWS]) == 0).all()


def test_scores_lie_between_0_and_1_whatever_comes():
    seconds, values = noise(1500)
    values[100], values[200], values[300], values[400], values[1400] = numpy.nan, numpy.inf, 1e300, -1e-300, 1e18
    found = score(seconds, values)
    assert numpy.isfinite(found).all() and found.min() >= 0 and found.max() <= 1
    assert found[100] == found[200] == 0
    assert len(detector.score_rows(detector.new_states(3), [], [], [])) == 0

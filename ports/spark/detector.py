"""How unusual is a reading, given what its series did before? A score from 0 to 1, online, for many series at once.

Five views of a series are watched, each as the distance from what was expected in units of its usual distance:
the value against a slow and against a quick mean, its change, its value against the same time on earlier days, the mean of twelve against
a slow mean. How rare a distance is comes from a histogram of all earlier ones of that view, and beyond the largest dozen from the slope
of their tail (Hill's estimator): a noisy series and a quiet one alarm equally often. The rarity of a reading is RARITY_OF_MAX of the rarest
view and the rest of the mean over views, in natural logarithms: 3 is one in twenty, 7 one in a thousand.

An alarm is a score of at least ALARM. After one the bar is raised by its rarity and sinks back within some REST rows, so one event is one
alarm, and a rarer one soon after it is another.

Laws: only the past is used; a series is a record of STATE (1.3 KB), and its scores do not depend on which others are scored beside it,
or on how its readings are cut into batches. What is no number is passed over with the score 0. Needs numpy, not Spark.
"""

from typing import Any

import numpy

ALARM = 0.5
WARM_UP_ROWS = 60  # readings before the first score above 0
RARITY_MIN = 3.5  # of an alarm
RARITY_OF_MAX = 0.3
RARITY_SCALE = 6.0  # above RARITY_MIN; the score is 0.82 there
REST = 60.0

SLOW, QUICK = 0.01, 0.1  # shares of a new value in its mean
GAINS = numpy.array((SLOW, QUICK, SLOW, SLOW))
VIEWS = 5  # slow mean, quick mean, change, mean of MEAN_OF, time of day
MEAN_OF = 12
OUTLIER = 4.0  # usual distances: a mean follows no further in one step
DAY_S = 86400
DAY_PARTS = 48
DAY_GAIN = 0.05

BIN_MIN, BINS_PER_OCTAVE, BINS = -4, 4, 56  # distances from 2^-4 to 2^10 usual ones
BIN_WIDTH = numpy.log(2.0) / BINS_PER_OCTAVE
TAIL_ROWS = 12
TAIL_SHAPE_MIN = 0.12
COUNTED_IN = numpy.tri(BINS, BINS + 1, dtype="u2")  # for each bin what a distance in it adds to `at_least`; the row behind adds nothing
COUNTED_IN = numpy.concatenate((COUNTED_IN, numpy.zeros((1, BINS + 1), "u2")))
ROWS_MAX = 16384  # then the histograms are halved: what was long ago counts less
TINY = 1e-12

Array = numpy.ndarray[Any, Any]
State = dict[str, Array]  # the fields of STATE, each with a row for each series
STATE = numpy.dtype(
    [
        ("rows", "f8"),
        ("bar", "f8"),
        ("last", "f8"),
        ("recent", "f8", (MEAN_OF,)),
        ("mean", "f8", (VIEWS - 1,)),
        ("usual", "f8", (VIEWS,)),
        ("day", "f8", (DAY_PARTS,)),
        ("day_rows", "f4", (DAY_PARTS,)),
        ("at_least", "u2", (VIEWS, BINS + 1)),
    ]
)


def new_states(count: int) -> Array:
    """The states of `count` series that have had no reading yet: an array of STATE."""
    return numpy.zeros(count, STATE)


def score_rows(states: Array, series: Any, seconds: Any, values: Any) -> Array:
    """
    Scores of readings in the order in which they came; `states` is changed. `series`: for each its place in `states`; `seconds` since 1970;
    `values`: float64 arrays of one length. Each series' readings must be in the order of time.
    """
    series, seconds, values = numpy.asarray(series), numpy.asarray(seconds, "f8"), numpy.asarray(values, "f8")
    scores = numpy.zeros(len(series))
    known = numpy.flatnonzero(numpy.isfinite(values))
    if not len(known):
        return scores
    order = known[numpy.argsort(series[known], kind="stable")]
    sorted_series = series[order]
    begins = numpy.flatnonzero(numpy.diff(sorted_series, prepend=sorted_series[0] - 1))
    lengths = numpy.diff(begins, append=len(order))
    by_length = numpy.argsort(-lengths, kind="stable")
    begins, lengths = begins[by_length], lengths[by_length]
    places = sorted_series[begins]
    # Each field on its own, the longest series first: who has a reading in a step is then the beginning of each field.
    fields = {name: states[name][places] for name in STATE.names or ()}
    for step in range(lengths[0]):  # one reading of every series that has as many
        rows = order[begins[: numpy.searchsorted(-lengths, -step)] + step]
        state = {name: field[: len(rows)] for name, field in fields.items()}
        scores[rows] = _score_step(state, seconds[rows], values[rows])
    for name, field in fields.items():
        states[name][places] = field
    return scores


def _score_step(state: State, seconds: Any, values: Any) -> Array:
    """The scores of one finite reading for each series of `state`, whose fields are changed."""
    first = state["rows"] == 0
    state["last"][first] = values[first]
    state["rows"] += 1
    rarity = _rarity(state, _distances(state, seconds, values))
    return _alarms(state, RARITY_OF_MAX * rarity.max(1) + (1 - RARITY_OF_MAX) * rarity.sum(1) / VIEWS)


def _distances(state: State, seconds: Any, values: Any) -> Array:
    """Distances of each view from what was expected, in usual ones: (series, VIEWS)."""
    rows = state["rows"]
    every = numpy.arange(len(rows))
    state["recent"][every, (rows.astype("i8") - 1) % MEAN_OF] = values
    recent = state["recent"].sum(1) / numpy.minimum(rows, MEAN_OF)
    seen = numpy.stack((values, values, values - state["last"], recent), 1)
    state["last"][:] = values
    first = rows == 1
    state["mean"][first] = seen[first]
    part = (seconds % DAY_S * (DAY_PARTS / DAY_S)).astype("i8")
    part_rows = state["day_rows"][every, part]
    expected = numpy.where(part_rows > 0, state["day"][every, part], state["mean"][:, 0])
    away = numpy.concatenate((seen - state["mean"], (values - expected)[:, None]), 1)
    unit = state["usual"] + (TINY + 1e-9 * numpy.abs(values))[:, None]
    distances: Array = numpy.abs(away) / unit
    distances[:, -1] *= part_rows > 0
    _follow(state, away, unit)
    state["day"][every, part] = expected + numpy.where(part_rows > 0, numpy.maximum(DAY_GAIN, 1 / (part_rows + 1)), 1) * (values - expected)
    state["day_rows"][every, part] = part_rows + 1
    return distances


def _follow(state: State, away: Array, unit: Array) -> None:
    """Move the means and the usual distances towards what was seen; after the warm-up no further than an outlier's distance."""
    rows = state["rows"][:, None]
    bound = numpy.where(rows > WARM_UP_ROWS // 2, OUTLIER * unit, numpy.inf)
    away = numpy.clip(away, -bound, bound)
    gains = numpy.maximum(GAINS, 1 / rows)
    state["mean"] += gains * away[:, :-1]
    gains = numpy.concatenate((gains, numpy.maximum(SLOW, 1 / rows)), 1)
    state["usual"] += gains * (numpy.abs(away) - state["usual"])


def _rarity(state: State, distances: Array) -> Array:
    """-log of how often each view was as far away or further: (series, VIEWS). Counts the distances for the next."""
    place = numpy.clip((numpy.log2(distances + TINY) - BIN_MIN) * BINS_PER_OCTAVE, 0, BINS - 1e-6)
    bins = place.astype("i8")
    at_least, counted = state["at_least"], state["at_least"][:, :1, 0].astype("f8")  # all views have counted as often
    every, views = numpy.arange(len(bins))[:, None], numpy.arange(VIEWS)
    here, beyond = at_least[every, views, bins].astype("f8"), at_least[every, views, bins + 1]
    further = here - (place - bins) * (here - beyond)
    rarity: Array = numpy.log((counted + 1) / (further + 1))
    tail_rows = numpy.clip(counted // 10, 1, TAIL_ROWS)
    rare = numpy.nonzero(here < tail_rows)
    if len(rare[0]):
        rarity[rare] = numpy.maximum(rarity[rare], _tail_rarity(at_least[rare], tail_rows[rare[0], 0], place[rare]))
    rarity[state["rows"] <= WARM_UP_ROWS] = 0
    at_least += COUNTED_IN[numpy.where(state["rows"][:, None] > WARM_UP_ROWS // 2, bins, -1)]
    full = counted[:, 0] >= ROWS_MAX
    if full.any():
        at_least[full] >>= 1
    return rarity


def _tail_rarity(at_least: Array, tail_rows: Array, place: Array) -> Array:
    """-log of the share of distances beyond `place`, which lies where fewer than `tail_rows` were seen, from the slope of that tail."""
    edge = numpy.maximum((at_least >= tail_rows[:, None]).sum(1), 1)
    every = numpy.arange(len(edge))
    in_tail = at_least[every, edge]
    # The sum of their places behind the edge: each is counted once for every bin that it lies beyond, and stands in the middle of its own.
    in_bins = numpy.where(numpy.arange(BINS + 1) > edge[:, None], at_least, 0).sum(1) + 0.5 * in_tail
    shape = numpy.maximum(in_bins * BIN_WIDTH / numpy.maximum(in_tail, 1), TAIL_SHAPE_MIN)
    rarity: Array = numpy.log((at_least[:, 0] + 1.0) / (in_tail + 1.0)) + (place - edge) * BIN_WIDTH / shape
    return rarity


def _alarms(state: State, rarity: Array) -> Array:
    """Scores of rarities; an alarm raises the bar for those behind it."""
    bar = state["bar"] * numpy.exp(-1 / REST)
    alarm = rarity >= RARITY_MIN + bar
    state["bar"][:] = numpy.where(alarm, numpy.maximum(rarity, bar), bar)
    loud = 1 - (1 - ALARM) * numpy.exp((RARITY_MIN - rarity) / RARITY_SCALE)
    return numpy.where(alarm, loud, ALARM * 0.99 * numpy.minimum(rarity / (RARITY_MIN + bar), 1))

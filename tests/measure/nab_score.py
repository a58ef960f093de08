"""The scoring of the Numenta Anomaly Benchmark (standard profile), as its paper describes it, for the recorded series in ../shared.

    python tests/measure/nab_score.py [FOLDER]     a table: for each series the windows found and the false alarms, and the score of all

FOLDER holds `anomaly_windows.json` ({file: [[begin, end], ...]}) and the files it names. A window that is found earns up to 1, more the
earlier; one that is missed costs 1; a false alarm costs 0.11, less when it comes soon behind a window. The first 15 % of a series (750
rows at most) do not count. One threshold serves all series, the best one; 0 is silence and 100 is perfect.
"""

import json
import math
import os
import sys

import numpy

from leveret.ports.spark import detector
from leveret.tools.components import shared_folder
from leveret.tools.pipeline_score import read_series, score_all, seconds_of

RECORDED = os.path.join(shared_folder(), "data", "sensors")
FALSE_ALARM = 0.11
MISSED = 1.0
NOT_COUNTED, NOT_COUNTED_MAX = 0.15, 750


def sigmoid(place):
    """1 long before the end of a window (place -1), 0 at its end, -1 long after."""
    return 2 / (1 + math.exp(5 * place)) - 1


def rows_of(windows, seconds):
    """Windows as (first row, last row)."""
    found = []
    for begin, end in windows:
        inside = [row for row, second in enumerate(seconds) if seconds_of(begin) <= second <= seconds_of(end)]
        found.append((inside[0], inside[-1]))
    return found


def points(scores, windows, threshold):
    """(points, windows found, false alarms) of one series for alarms at `threshold`; `windows` as rows."""
    begin = int(min(NOT_COUNTED * len(scores), NOT_COUNTED_MAX))
    best = [None] * len(windows)
    total, false_alarms = 0.0, 0
    for row in begin + numpy.flatnonzero(scores[begin:] >= threshold):
        inside = [at for at, (first, last) in enumerate(windows) if first <= row <= last]
        if inside:
            first, last = windows[inside[0]]
            value = sigmoid(-(last - row + 1) / (last - first + 1)) / sigmoid(-1)
            best[inside[0]] = max(value, best[inside[0]] or 0.0)
            continue
        false_alarms += 1
        before = [(first, last) for first, last in windows if last < row]
        place = (row - before[-1][1]) / max(before[-1][1] - before[-1][0], 1) if before else 4
        total += FALSE_ALARM * (sigmoid(place) if place <= 3 else -1)
    found = [value for value in best if value is not None]
    return total + sum(found) - MISSED * (len(windows) - len(found)), len(found), false_alarms


def corpus_score(series):
    """(score, threshold, [(points, found, false alarms)]) for [(scores, windows as rows)], at the threshold that is best for all."""
    window_count = sum(len(windows) for _, windows in series)
    thresholds = sorted({round(float(score), 3) for scores, _ in series for score in scores if score >= detector.ALARM / 2})
    outcomes = []
    for threshold in thresholds:
        each = [points(scores, windows, threshold) for scores, windows in series]
        score = 100 * (sum(found[0] for found in each) + MISSED * window_count) / (window_count * (1 + MISSED))
        outcomes.append((score, threshold, each))
    return max(outcomes)


def score_folder(folder):
    """(names, what `corpus_score` says) for a folder of labelled series, scored by ports/spark/detector.py."""
    with open(os.path.join(folder, "anomaly_windows.json"), encoding="utf-8") as file:
        labels = json.load(file)
    found = [read_series(os.path.join(folder, name)) for name in labels]
    scores = score_all(detector, found)
    series = [(scores[at], rows_of(windows, [row[2] for row in found[at]])) for at, windows in enumerate(labels.values())]
    return list(labels), [len(windows) for _, windows in series], corpus_score(series)


def main():
    """Print the table."""
    names, windows, (score, threshold, each) = score_folder(sys.argv[1] if len(sys.argv) > 1 else RECORDED)
    for name, count, (earned, found, false_alarms) in zip(names, windows, each):
        print(f"{name:44} {found} of {count} windows, {false_alarms:3} false alarms, {earned:6.2f} points")
    print(f"score {score:.1f} (standard profile) at threshold {threshold}")


if __name__ == "__main__":
    main()

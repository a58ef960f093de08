"""`leveret pipeline score`: anomaly scores for series in files, by the detector that the pipeline runs (ports/spark/detector.py).

    leveret pipeline score --csv FILE [FILE...] [--out PATH]

In: `timestamp,value` files with that header; a timestamp is ISO 8601 (UTC where it names no zone) or seconds since 1970; an empty value is
a gap. Out: `timestamp,value,anomaly_score`, the first two as they came, scores from 0 to 1, 0.5 and more is an alarm; each score is made
from the rows above it only. For one FILE to standard output or to the file --out, for several to files of the same names in the folder
--out. Needs numpy, not Spark. Exit status: 0 done, 1 a file that cannot be read or written, 2 wrong arguments.
"""

import csv
import datetime
import os
import sys

from .usage import UsageError

HEADER = ["timestamp", "value"]


class BadSeries(Exception):
    """A file that is no series; the text is a sentence."""


def add_arguments(parser):
    """The options of `leveret pipeline score`."""
    parser.add_argument("--csv", required=True, nargs="+", metavar="FILE", help="`timestamp,value` files, one series each")
    parser.add_argument(
        "--out", metavar="PATH", help="a file, or a folder for several series (made when missing); default: standard output, for one series"
    )


def run(options):
    """The exit status."""
    try:
        from leveret.ports.spark import detector
    except ImportError as error:
        raise UsageError(f"{error.name} is missing; install it with: pip install '.[spark]' in Leveret's folder") from None
    names = [os.path.basename(path) for path in options.csv]
    if len(names) > 1 and not options.out:
        raise UsageError("several series need --out FOLDER")
    if len(set(names)) != len(names):
        raise UsageError("two of the files have the same name: their scores would go to one file")
    try:
        series = [read_series(path) for path in options.csv]
        write_all(options, names, series, score_all(detector, series))
    except BadSeries as error:
        print(f"leveret pipeline score: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"leveret pipeline score: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def read_series(path):
    """[(timestamp as text, value as text, seconds, value)] of a file. Raises BadSeries, OSError."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            if [name.strip().lower() for name in header] != HEADER:
                raise BadSeries(f"{path}: the first line is {','.join(header)!r}; it must be 'timestamp,value'")
            return [reading(path, rows.line_num, row) for row in rows if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadSeries(f"{path}: no CSV file in UTF-8: {error}") from None


def reading(path, line, row):
    """One row. Raises BadSeries."""
    if len(row) != 2:
        raise BadSeries(f"{path} line {line}: {len(row)} columns; there must be 2")
    try:
        value = float(row[1]) if row[1].strip() else float("nan")
    except ValueError:
        raise BadSeries(f"{path} line {line}: value {row[1]!r} is not a number") from None
    try:
        return row[0], row[1], seconds_of(row[0].strip()), value
    except (ValueError, OverflowError):
        raise BadSeries(f"{path} line {line}: timestamp {row[0]!r} is neither ISO 8601 nor seconds since 1970") from None


def seconds_of(text):
    """Seconds since 1970. Raises ValueError."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        seconds = float(text)
        if not abs(seconds) < 1e12:
            raise
        return seconds
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp()


def score_all(detector, series):
    """The scores of each series; all are scored side by side, which is quicker and gives the same."""
    places = [place for place, rows in enumerate(series) for _ in rows]
    rows = [row for rows in series for row in rows]
    scores = detector.score_rows(detector.new_states(len(series)), places, [row[2] for row in rows], [row[3] for row in rows])
    parts, at = [], 0
    for rows in series:
        parts.append(scores[at : at + len(rows)])
        at += len(rows)
    return parts


def write_all(options, names, series, scores):
    """Write what was scored where --out says. Raises OSError."""
    if not options.out:
        write(sys.stdout, series[0], scores[0])
        return
    folder = len(names) > 1 or os.path.isdir(options.out)
    if folder:
        os.makedirs(options.out, exist_ok=True)
    for name, rows, results, source in zip(names, series, scores, options.csv):
        target = os.path.join(options.out, name) if folder else options.out
        if os.path.exists(target) and os.path.samefile(target, source):
            raise BadSeries(f"{target} is the series itself: name another --out")
        with open(target, "w", newline="", encoding="utf-8") as file:
            write(file, rows, results)


def write(file, rows, scores):
    """One series with its scores."""
    file.write("timestamp,value,anomaly_score\n")
    for (timestamp, value, _, _), score in zip(rows, scores):
        file.write(f"{timestamp},{value},{score:.6f}\n")

"""The detector beside Spark: states of thousands of series in hash buckets, one file a bucket and batch.

    _detector/bucket-007/00000012.npz    keys ("gateway\\ndevice\\nmetric"), states, seen (batch of the last reading), after batch 12

A series is (gateway, device, metric). One function call scores all readings of a bucket in a batch, and its cost is per bucket, not per
series (SPARK.md section 7.1: Spark's own state operators take 0.3 ms a key and batch, and with buckets of megabytes they copied more than
they computed).
Laws: batch N starts from the newest file before N, so a batch that is done again, or by two tasks at once, comes out the same; a file
appears by one rename. Readings of a series are scored in the order of their time. Two batches back is enough for every retry. A bucket
remembers SERIES_MAX series after a batch; of more, those that were silent longest are forgotten.
"""

import json
import os
import uuid
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as compute

from .detector import STATE, Array, new_states, score_rows

BUCKETS = 16
FILES_KEPT = 3
SERIES_MAX = 65_536  # in a bucket: 85 MB
Places = dict[str, int]
Known = tuple[Places, Array, Array]
_known: dict[str, tuple[int, Places, Array, Array]] = {}  # folder: (batch, places, states, seen): what this worker wrote last


def score_bucket(table: Any, folder: str, batch: int) -> Array:
    """The scores of a bucket's readings (an Arrow table with gateway, device, metric, time, value, sequence): a numpy array, row by row."""
    places, states, seen = _load(folder, batch)
    keys = compute.binary_join_element_wise(table.column("gateway").fill_null(""), table.column("device"), table.column("metric"), "\n")
    keys = keys.combine_chunks().dictionary_encode()
    of_key = []
    for key in keys.dictionary.to_pylist():
        of_key.append(places.setdefault(key, len(places)))
    if len(places) > len(states):
        states = numpy.concatenate([states, new_states(len(places) - len(states))])
        seen = numpy.concatenate([seen, numpy.zeros(len(places) - len(seen), numpy.int64)])
    seen[of_key] = batch
    series = numpy.array(of_key, numpy.int64)[keys.indices.to_numpy()]
    seconds = table.column("time").cast(pyarrow.int64()).to_numpy() / 1e6
    order = numpy.lexsort((table.column("offset").to_numpy(), table.column("part").to_numpy(), seconds))
    scores = numpy.empty(len(series))
    scores[order] = score_rows(states, series[order], seconds[order], table.column("value").to_numpy()[order])
    _store(folder, batch, *_newest(places, states, seen))
    return scores


def _newest(places: Places, states: Array, seen: Array) -> Known:
    """The series to remember: all, or the SERIES_MAX with the newest readings."""
    if len(places) <= SERIES_MAX:
        return places, states, seen
    kept = numpy.sort(numpy.argsort(-seen, kind="stable")[:SERIES_MAX])
    keys = list(places)
    return {keys[old]: new for new, old in enumerate(kept)}, states[kept], seen[kept]


def _load(folder: str, batch: int) -> Known:
    """(places by key, states, seen) after the newest batch before `batch`."""
    nothing: Known = {}, new_states(0), numpy.zeros(0, numpy.int64)
    numbers = sorted(number for number in _numbers(folder) if number < batch)
    if not numbers:
        return nothing
    known = _known.get(folder)
    if known is not None and known[0] == numbers[-1]:
        return dict(known[1]), known[2].copy(), known[3].copy()
    with numpy.load(_file(folder, numbers[-1])) as file:
        keys, octets = json.loads(file["keys"].tobytes()), file["states"].tobytes()
        seen = file["seen"] if "seen" in file.files else numpy.zeros(len(keys), numpy.int64)
    if len(octets) != len(keys) * STATE.itemsize:
        return nothing  # of another version of the detector: it learns anew
    return {key: place for place, key in enumerate(keys)}, numpy.frombuffer(octets, STATE).copy(), seen


def _store(folder: str, batch: int, places: Places, states: Array, seen: Array) -> None:
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{uuid.uuid4().hex}.npz")
    numpy.savez(
        temporary,
        keys=numpy.frombuffer(json.dumps(list(places)).encode(), numpy.uint8),
        states=numpy.frombuffer(states.tobytes(), numpy.uint8),
        seen=seen,
    )
    os.replace(temporary, _file(folder, batch))
    _known[folder] = (batch, places, states, seen)
    for number in sorted(_numbers(folder))[:-FILES_KEPT]:
        try:
            os.remove(_file(folder, number))
        except FileNotFoundError:
            continue  # another task of the same batch was faster


def _numbers(folder: str) -> list[int]:
    if not os.path.isdir(folder):
        return []
    return [int(name[:8]) for name in os.listdir(folder) if name.endswith(".npz") and name[:8].isdigit()]


def _file(folder: str, number: int) -> str:
    return os.path.join(folder, f"{number:08}.npz")


def scorer(folder: str, batch: int) -> Callable[[Any], Any]:
    """For GroupedData.applyInArrow over `bucket`: the table with a column `score` in the place of `bucket`."""

    def score(table: Any) -> Any:
        bucket = table.column("bucket")[0].as_py()
        scores = score_bucket(table, os.path.join(folder, f"bucket-{bucket:03}"), batch)
        return table.drop_columns(["bucket"]).append_column("score", pyarrow.array(scores))

    return score

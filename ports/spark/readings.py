"""A message body to a reading, or to the reason why it is none.

    {"device": "kiln-3", "metric": "temperature", "sequence": 17, "time": 1700000000.25, "value": 812.5}

device and metric: text of 1 to 255 octets; sequence: whole number from 0; time: seconds since 1970, from the year 2000 to a day ahead of
the clock; value: a finite number within +-1e18. Other names in the object are passed over.

Laws: never raises for what a publisher sent; the same body at the same `time_max_s` gives the same answer (a batch that is read again must
come out the same). No Spark here but the Arrow form at the end, which is what runs in the executors.
"""
import json
import math

import pyarrow

TEXT_OCTETS_MAX = 255
SEQUENCE_MAX = 2**63 - 1
TIME_MIN_S = 946684800  # 2000-01-01: a clock that was never set starts before that
TIME_AHEAD_MAX_S = 86400
VALUE_MAX = 1e18
DECODED = ("device string, metric string, sequence long, time timestamp, value double, offset long, reason string, "
           "payload binary, routing_key string")
_DECODED_ARROW = pyarrow.schema([
    ("device", pyarrow.string()), ("metric", pyarrow.string()), ("sequence", pyarrow.int64()),
    ("time", pyarrow.timestamp("us", tz="UTC")), ("value", pyarrow.float64()), ("offset", pyarrow.int64()), ("reason", pyarrow.string()),
    ("payload", pyarrow.binary()), ("routing_key", pyarrow.string())])


class BadReading(Exception):
    """The text is the reason."""


def decode(body, time_max_s):
    """(device, metric, sequence, time in microseconds, value) of `body`, which is bytes. Raises BadReading."""
    try:
        found = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadReading("not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadReading("not JSON") from None
    if not isinstance(found, dict):
        raise BadReading("not a JSON object")
    device, metric = _text(found, "device"), _text(found, "metric")
    sequence = _present(found, "sequence")
    if type(sequence) is not int or not 0 <= sequence <= SEQUENCE_MAX:
        raise BadReading("sequence is not a whole number from 0 to 2^63 - 1")
    time_s = _number(found, "time")
    if not TIME_MIN_S <= time_s <= time_max_s:
        raise BadReading("time is before the year 2000" if time_s < TIME_MIN_S else "time is more than a day ahead")
    value = _number(found, "value")
    if abs(value) > VALUE_MAX:
        raise BadReading("value is outside +-1e18")
    return device, metric, sequence, round(time_s * 1_000_000), float(value)


def _present(found, name):
    thing = found.get(name)
    if thing is None:
        raise BadReading(f"{name} is missing")
    return thing


def _text(found, name):
    text = _present(found, name)
    if not isinstance(text, str):
        raise BadReading(f"{name} is not text")
    try:
        octets = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise BadReading(f"{name} is not valid Unicode") from None
    if not 1 <= octets <= TEXT_OCTETS_MAX:
        raise BadReading(f"{name} is empty or longer than {TEXT_OCTETS_MAX} octets")
    return text


def _number(found, name):
    number = _present(found, name)
    if type(number) not in (int, float):
        raise BadReading(f"{name} is not a number")
    if isinstance(number, float) and not math.isfinite(number):
        raise BadReading(f"{name} is not finite")
    return number


def decode_batches(batches):
    """
    For mapInArrow: batches of (value binary, offset long, routing_key string, now timestamp) to batches of DECODED.
    What is no reading has `reason`, `payload` and `routing_key`, and its offset as sequence, so that no two are ever taken for the same.
    """
    for batch in batches:
        if batch.num_rows:
            time_max_s = batch.column("now")[0].as_py().timestamp() + TIME_AHEAD_MAX_S
            bodies, offsets, keys = (batch.column(name).to_pylist() for name in ("value", "offset", "routing_key"))
            yield _arrow([_row(body, offset, key, time_max_s) for body, offset, key in zip(bodies, offsets, keys)])


def _row(body, offset, routing_key, time_max_s):
    try:
        return decode(body, time_max_s) + (offset, None, None, None)
    except BadReading as reason:
        return None, None, offset, None, None, offset, str(reason), body, routing_key


def _arrow(rows):
    columns = [pyarrow.array(column, type=field.type) for column, field in zip(zip(*rows), _DECODED_ARROW)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=_DECODED_ARROW)

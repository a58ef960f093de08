"""A message body to a reading, or to the reason why it is none.

    {"device": "kiln-3", "metric": "temperature", "sequence": 17, "time": 1700000000.25, "value": 812.5}

device and metric: text of 1 to 255 octets; sequence: whole number from 0; time: seconds since 1970, from the year 2000 to a day ahead of
the clock; value: a finite number within +-1e18. Other names in the object are passed over.

Laws: raises nothing but BadReading for what a publisher sent; the same body at the same `time_max_s` gives the same answer (a batch that
is read again must come out the same). No Spark here.
"""

import json
import math
from typing import Any

Reading = tuple[str, str, int | None, int, float]  # device, metric, sequence, microseconds, value
TEXT_OCTETS_MAX = 255
SEQUENCE_MAX = 2**63 - 1
TIME_MIN_S = 946684800  # 2000-01-01: a clock that was never set starts before that
TIME_AHEAD_MAX_S = 86400
VALUE_MAX = 1e18


class BadReading(Exception):
    """The text is the reason."""


def decode(body: bytes, time_max_s: float, sequence_needed: bool = True) -> Reading:
    """(device, metric, sequence or None, time in microseconds, value) of `body`, which is bytes. Raises BadReading."""
    return reading_of(parse(body), time_max_s, sequence_needed)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises BadReading."""
    try:
        record = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadReading("not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadReading("not JSON") from None
    if not isinstance(record, dict):
        raise BadReading("not a JSON object")
    return record


def reading_of(record: dict[str, Any], time_max_s: float, sequence_needed: bool) -> Reading:
    """As `decode`, of a parsed object."""
    device, metric = _text(record, "device"), _text(record, "metric")
    sequence = _present(record, "sequence") if sequence_needed else record.get("sequence")
    if sequence is not None and (type(sequence) is not int or not 0 <= sequence <= SEQUENCE_MAX):
        raise BadReading("sequence is not a whole number from 0 to 2^63 - 1")
    time_us = whole_time(finite_number(_present(record, "time"), "time"), time_max_s)
    value = finite_number(_present(record, "value"), "value")
    if abs(value) > VALUE_MAX:
        raise BadReading("value is outside +-1e18")
    return device, metric, sequence, time_us, float(value)


def whole_time(time_s: float, time_max_s: float) -> int:
    """Seconds since 1970 in microseconds. Raises BadReading outside the years that a reading can have."""
    if not TIME_MIN_S <= time_s <= time_max_s:
        raise BadReading("time is before the year 2000" if time_s < TIME_MIN_S else "time is more than a day ahead")
    return round(time_s * 1_000_000)


def _present(record: dict[str, Any], name: str) -> Any:
    value = record.get(name)
    if value is None:
        raise BadReading(f"{name} is missing")
    return value


def _text(record: dict[str, Any], name: str) -> str:
    text = _present(record, name)
    if not isinstance(text, str):
        raise BadReading(f"{name} is not text")
    if not 1 <= see_unicode(text, name) <= TEXT_OCTETS_MAX:
        raise BadReading(f"{name} is empty or longer than {TEXT_OCTETS_MAX} octets")
    return text


def see_unicode(text: str, name: str) -> int:
    """The octets of a text in UTF-8. Raises BadReading where it has none: JSON can name half a character, and no column can hold that."""
    try:
        return len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise BadReading(f"{name} is not valid Unicode") from None


def finite_number(number: Any, name: str) -> float:
    """An int or float that a double holds. Raises BadReading."""
    if type(number) not in (int, float):
        raise BadReading(f"{name} is not a number")
    if isinstance(number, float) and not math.isfinite(number):
        raise BadReading(f"{name} is not finite")
    bounded: float = min(max(number, -1e300), 1e300)
    return bounded

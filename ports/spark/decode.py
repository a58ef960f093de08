"""Messages to readings and dead letters: what runs in the executors, on Arrow batches (mapInArrow).

    format       a message body is
    json         one flat object (readings.py)
    senml+json   a pack of RFC 8428 (senml.py)
    senml+cbor   the same in CBOR
    number       a number as text; its device is the routing key, its metric "value", its time that of the message
    auto         by content type; without one that is known by the first octet: [ is SenML, { an object, a digit or sign a number

Cleaning: `metrics` is {metric: {"unit", "min", "max"}}; a value in another unit is converted where UNITS knows how; what is outside the
range, or in a unit that cannot be converted, is a dead letter. Metrics that are not listed are taken as they are.

Laws: every message gives at least one row; every record of a pack one row. A row has either a reading or a `reason` with the message's
octets as `payload`; of a message of more than PAYLOAD_REPEATED_MAX octets only the first such row has them. One more row for each Arrow
batch counts them (part -1: sequence is how many rows there are, key_number how many messages), so that what is dropped later can be told.
The same message at the same time gives the same rows.
The key columns say what a double is: by "gateway" headers x-gateway and x-sequence with the place in the pack, where the message has
them; else, and always with by "reading", (device, metric, sequence) of the reading; what has neither is never a double. A dead letter's
key is by its headers, whatever `by` is.
"""

import datetime
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow

from . import senml
from .readings import TIME_AHEAD_MAX_S, VALUE_MAX, BadReading, parse, reading_of, see_unicode, whole_time

MESSAGE = (
    "value binary, stream string, offset long, position long, timestamp timestamp, routing_key string, content_type string, "
    "gateway string, sequence long"
)
DECODED = (
    "device string, metric string, sequence long, time timestamp, value double, unit string, gateway string, stream string, "
    "offset long, part int, reason string, payload binary, routing_key string, position long, "
    "key_owner string, key_part string, key_number long"
)
_TEXT, _LONG, _TIME = pyarrow.string(), pyarrow.int64(), pyarrow.timestamp("us", tz="UTC")
_DECODED = pyarrow.schema(
    [
        ("device", _TEXT),
        ("metric", _TEXT),
        ("sequence", _LONG),
        ("time", _TIME),
        ("value", pyarrow.float64()),
        ("unit", _TEXT),
        ("gateway", _TEXT),
        ("stream", _TEXT),
        ("offset", _LONG),
        ("part", pyarrow.int32()),
        ("reason", _TEXT),
        ("payload", pyarrow.binary()),
        ("routing_key", _TEXT),
        ("position", _LONG),
        ("key_owner", _TEXT),
        ("key_part", _TEXT),
        ("key_number", _LONG),
    ]
)
Metrics = dict[str, dict[str, Any]]
GATEWAY_OCTETS_MAX = 64
PAYLOAD_REPEATED_MAX = 16384  # or a pack of ten thousand bad records would be ten thousand times its size
NUMBER = re.compile(rb"[ \t\r\n]*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?[ \t\r\n]*\Z")
CONTENT_TYPES = {"application/senml+json": "senml+json", "application/senml+cbor": "senml+cbor", "text/plain": "number"}
UNITS = {  # (from, to): (factor, offset); the names are those of RFC 8428 section 12.1, and the usual ones
    ("degF", "Cel"): (5 / 9, -160 / 9),
    ("F", "Cel"): (5 / 9, -160 / 9),
    ("K", "Cel"): (1, -273.15),
    ("C", "Cel"): (1, 0),
    ("degC", "Cel"): (1, 0),
    ("Cel", "K"): (1, 273.15),
    ("mV", "V"): (1e-3, 0),
    ("mA", "A"): (1e-3, 0),
    ("mW", "W"): (1e-3, 0),
    ("kW", "W"): (1e3, 0),
    ("hPa", "Pa"): (100, 0),
    ("mbar", "Pa"): (100, 0),
    ("bar", "Pa"): (1e5, 0),
    ("kPa", "Pa"): (1e3, 0),
    ("Pa", "hPa"): (0.01, 0),
    ("%", "/"): (0.01, 0),
    ("/", "%"): (100, 0),
    ("%RH", "%"): (1, 0),
    ("km/h", "m/s"): (1 / 3.6, 0),
    ("ms", "s"): (1e-3, 0),
    ("min", "s"): (60, 0),
    ("mm", "m"): (1e-3, 0),
    ("cm", "m"): (1e-2, 0),
    ("km", "m"): (1e3, 0),
    ("Wh", "J"): (3600, 0),
    ("kWh", "J"): (3.6e6, 0),
}


class Decoder:
    """`metrics` as above; `by`: "gateway" or "reading". Goes to the executors as it is."""

    def __init__(self, form: str = "auto", metrics: Metrics | None = None, by: str = "gateway") -> None:
        self._form, self._metrics, self._by = form, metrics or {}, by

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """For mapInArrow: batches of MESSAGE and now timestamp to batches of DECODED."""
        for batch in batches:
            if batch.num_rows:
                time_max_s = batch.column("now")[0].as_py().timestamp() + TIME_AHEAD_MAX_S
                columns = [
                    batch.column(name).to_pylist()
                    for name in ("value", "stream", "offset", "position", "timestamp", "routing_key", "content_type", "gateway", "sequence")
                ]
                rows: list[Any] = []
                for message in zip(*columns):
                    self._rows(rows, time_max_s, *message)
                stream, offset, position = (column[0] for column in columns[1:4])
                rows.append(
                    (
                        None,
                        None,
                        len(rows),
                        None,
                        None,
                        None,
                        None,
                        stream,
                        offset,
                        -1,
                        None,
                        None,
                        None,
                        position,
                        None,
                        f"{stream}/count/{offset}",
                        batch.num_rows,
                    )
                )
                arrays = [pyarrow.array(column, type=field.type) for column, field in zip(zip(*rows), _DECODED)]
                yield pyarrow.RecordBatch.from_arrays(arrays, schema=_DECODED)

    def _rows(
        self,
        rows: list[Any],
        time_max_s: float,
        body: bytes,
        stream: str,
        offset: int,
        position: int,
        moment: datetime.datetime | None,
        routing_key: str | None,
        content_type: str | None,
        gateway: str | None,
        number: int | None,
    ) -> None:
        """Appends the rows of one message."""
        moment_s = moment.timestamp() if moment is not None else None
        try:
            if gateway is not None and not 1 <= len(gateway.encode("utf-8", "replace")) <= GATEWAY_OCTETS_MAX:
                gateway, wrong = None, f"x-gateway is empty or longer than {GATEWAY_OCTETS_MAX} octets"
                raise BadReading(wrong)
            answers = self._decode(body, content_type, routing_key, moment_s, time_max_s)
        except BadReading as reason:
            answers = [reason]
        numbered = gateway is not None and number is not None
        payload: bytes | None = body
        for part, one in enumerate(answers):
            try:
                if isinstance(one, BadReading):
                    raise one
                device, metric, sequence, time_us, value, unit = one
                value, unit = self._clean(metric, value, unit)
            except BadReading as reason:
                key = (gateway, f"dead/{part}", number) if numbered else (None, f"{stream}/{part}", offset)
                rows.append(
                    (None, None, None, None, None, None, gateway, stream, offset, part, str(reason), payload, routing_key, position) + key
                )
                payload = payload if len(body) <= PAYLOAD_REPEATED_MAX else None
                continue
            if self._by == "gateway" and numbered:
                key = (gateway, str(part), number)
            elif sequence is not None:
                key = (device, metric, sequence)
            else:
                key = (None, f"{stream}/{part}", offset)
            rows.append(
                (
                    device,
                    metric,
                    number if sequence is None else sequence,
                    time_us,
                    value,
                    unit,
                    gateway,
                    stream,
                    offset,
                    part,
                    None,
                    None,
                    None,
                    position,
                )
                + key
            )

    def _decode(
        self, body: bytes, content_type: str | None, routing_key: str | None, moment_s: float | None, time_max_s: float
    ) -> list[Any]:
        """The readings of a body as (device, metric, sequence, microseconds, value, unit), or BadReadings among them."""
        form = self._form if self._form != "auto" else CONTENT_TYPES.get((content_type or "").partition(";")[0].strip().lower())
        if form is None:
            form = "senml+json" if body[:1] == b"[" else "number" if NUMBER.match(body) else "json"
        if form == "json":
            record = parse(body)
            unit = record.get("unit")
            if isinstance(unit, str):
                see_unicode(unit, "unit")
            return [reading_of(record, time_max_s, self._by != "gateway") + (unit if isinstance(unit, str) else None,)]
        if form == "number":
            return [_number(body, routing_key, moment_s, time_max_s)]
        records = senml.records_of_json(body) if form == "senml+json" else senml.records_of_cbor(body)
        now_s = moment_s if moment_s is not None else time_max_s - TIME_AHEAD_MAX_S
        answers = senml.readings(records, now_s, time_max_s)
        if not answers:
            raise BadReading("a SenML pack without a value")
        return [one if isinstance(one, BadReading) else one[:2] + (None,) + one[2:] for one in answers]

    def _clean(self, metric: str, value: float, unit: str | None) -> tuple[float, str | None]:
        rule = self._metrics.get(metric)
        if rule is None:
            return value, unit
        wanted = rule.get("unit")
        if wanted is not None and unit is not None and unit != wanted:
            if (unit, wanted) not in UNITS:
                raise BadReading(f"{metric} is in {unit[:32]!r}, and cannot be converted to {wanted!r}")
            factor, offset = UNITS[unit, wanted]
            value = value * factor + offset
        least, most = rule.get("min"), rule.get("max")
        if (least is not None and value < least) or (most is not None and value > most):
            raise BadReading(f"{metric} is {value:g}, outside {'' if least is None else least} to {'' if most is None else most}")
        return value, unit if wanted is None else wanted


def _number(body: bytes, routing_key: str | None, moment_s: float | None, time_max_s: float) -> tuple[str, str, None, int, float, None]:
    if not NUMBER.match(body):
        raise BadReading("not a number")
    if moment_s is None:
        raise BadReading("a bare number in a message without a timestamp")
    value = float(body)
    if abs(value) > VALUE_MAX:
        raise BadReading("value is outside +-1e18")
    return routing_key or "unnamed", "value", None, whole_time(moment_s, time_max_s), value, None

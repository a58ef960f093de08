"""SenML (RFC 8428) packs to readings: JSON and CBOR have the same records, CBOR with numbers as labels (section 6).

    [{"bn": "kiln-3/", "bt": 1700000000, "bu": "Cel", "n": "temperature", "v": 812.5}, {"n": "temperature", "t": 1, "v": 812.75}]

A name, base name and name together, is `device` and `metric`: cut at the last "/" or ":" ("kiln-3/temperature",
"urn:dev:ow:10e2073a01080063:temperature"); without one it is the device, and the metric is "value". Numbers are readings; so are booleans,
as 1 and 0, and a sum ("s") without a value, whose metric has "_sum" behind it. A text or data value is none.

Laws: a pack that cannot be read is one BadReading; a record that is no reading is one BadReading beside the others' readings; the
same pack at the same time gives the same.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from . import senml_cbor
from .readings import TEXT_OCTETS_MAX, VALUE_MAX, BadReading, finite_number, see_unicode, whole_time

Record = dict[Any, Any]
Answer = tuple[str, str, int, float, str | None] | BadReading
VERSION = 10  # section 4.4
RELATIVE_MAX_S = 2**28  # section 4.5.3: times below are relative to now
RECORDS_MAX = 10_000
PACK_OCTETS_MAX = 2**21  # an empty array is one octet of a pack, and 64 of memory
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9\-:./_]*\Z")  # section 4.5.1


def records_of_json(body: bytes) -> list[Record]:
    """The records of a pack in JSON. Raises BadReading."""
    _see_size(body)
    try:
        pack = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadReading("not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadReading("not JSON") from None
    if not isinstance(pack, list) or not pack:
        raise BadReading("a SenML pack is an array of records")
    if len(pack) > RECORDS_MAX:
        raise BadReading(f"a SenML pack of more than {RECORDS_MAX} records")
    if not all(isinstance(record, dict) for record in pack):
        raise BadReading("a SenML record that is no object")
    return pack


def records_of_cbor(body: bytes) -> list[Record]:
    """The records of a pack in CBOR, with labels as names. Raises BadReading."""
    _see_size(body)
    return senml_cbor.records_of(body, RECORDS_MAX)


def _see_size(body: bytes) -> None:
    if len(body) > PACK_OCTETS_MAX:
        raise BadReading(f"a SenML pack of more than {PACK_OCTETS_MAX} octets")


def readings(records: Iterable[Record], now_s: float, time_max_s: float) -> list[Answer]:
    """
    For each record with something in it: (device, metric, microseconds, value, unit or None), or a BadReading.
    `now_s`: what relative times refer to. Raises BadReading for what makes the whole pack unreadable.
    """
    base: Record = {}
    answers: list[Answer] = []
    for record in records:
        _must_understand(record)
        for name in ("bn", "bt", "bu", "bv", "bs"):
            if name in record:
                base[name] = record[name]
        if any(name in record for name in ("n", "v", "vb", "vs", "vd", "s")):
            try:
                answers.append(_reading(record, base, now_s, time_max_s))
            except BadReading as reason:
                answers.append(reason)
    return answers


def _must_understand(record: Record) -> None:
    for name in record:
        if isinstance(name, str) and name.endswith("_"):
            raise BadReading(f"the SenML field {name[:40]!r} must be understood, and is not")
    version = record.get("bver", VERSION)
    if version != VERSION:
        shown = version if type(version) is int and 0 <= version < 1000 else "that is none"  # its text could be of any length
        raise BadReading(f"SenML of version {shown}, not {VERSION}")


def _reading(record: Record, base: Record, now_s: float, time_max_s: float) -> tuple[str, str, int, float, str | None]:
    device, metric = _name(_joined(base, record, "bn", "n"))
    time_s = finite_number(base.get("bt", 0), "bt") + finite_number(record.get("t", 0), "t")
    value, summed = _value(record, base)
    if abs(value) > VALUE_MAX:
        raise BadReading("value is outside +-1e18")
    unit = record.get("u", base.get("bu"))
    if unit is not None and not isinstance(unit, str):
        raise BadReading("unit is not text")
    see_unicode(unit or "", "unit")
    return device, metric + "_sum" * summed, whole_time(now_s + time_s if time_s < RELATIVE_MAX_S else time_s, time_max_s), value, unit


def _joined(base: Record, record: Record, base_name: str, name: str) -> str:
    parts = base.get(base_name, ""), record.get(name, "")
    if not all(isinstance(part, str) for part in parts):
        raise BadReading("a SenML name is not text")
    return "".join(parts)


def _name(name: str) -> tuple[str, str]:
    if not NAME.match(name) or len(name) > TEXT_OCTETS_MAX:
        raise BadReading(f"{name[:40]!r} is no SenML name")
    cut = max(name.rfind("/"), name.rfind(":"))
    if cut <= 0 or cut == len(name) - 1:
        return name.rstrip("/:"), "value"
    return name[:cut], name[cut + 1 :]


def _value(record: Record, base: Record) -> tuple[float, bool]:
    """(value, whether it is a sum)."""
    if "v" in record:
        return float(finite_number(record["v"], "v") + finite_number(base.get("bv", 0), "bv")), False
    if "vb" in record:
        if not isinstance(record["vb"], bool):
            raise BadReading("vb is neither true nor false")
        return float(record["vb"]), False
    if "vs" in record or "vd" in record:
        raise BadReading("the value is text or data, not a number")
    if "s" in record or "bs" in base:
        return float(finite_number(record.get("s", 0), "s") + finite_number(base.get("bs", 0), "bs")), True
    if "bv" in base:
        return float(finite_number(base["bv"], "bv")), False
    raise BadReading("a SenML record without a value")

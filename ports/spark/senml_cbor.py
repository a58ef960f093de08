"""The records of a SenML pack in CBOR (RFC 8428 section 6), values read by cbor2.

The pack, its records and their labels are read here, head by head, so that each is bounded before anything is made of it; cbor2 reads the
values of fields.

| of a pack | |
|---|---|
| octets, records, fields of a record | PACK_OCTETS_MAX and RECORDS_MAX (senml.py), FIELDS_MAX |
| labels | whole numbers of 64 bits, texts; never arrays, whose hashes a sender can choose |
| depth of a value | VALUE_DEPTH_MAX arrays, maps and tags |
| tags | 2 and 3 (big numbers of BIG_OCTETS_MAX), 4 and 5 (fractions that a double holds), 1 and 55799 (passed over); no others |

Laws: every octet is used or it is a BadReading; nothing else is raised; the same octets give the same reason, none in cbor2's words.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from cbor2 import CBORDecodeEOF, CBORDecoder, CBORError

from .readings import BadReading

Record = dict[Any, Any]
Semantic = Callable[[Any, bool], Any]
FIELDS_MAX, NAME_OCTETS_MAX = 64, 255
VALUE_DEPTH_MAX = 14  # with the pack and its record: 16
BIG_OCTETS_MAX = 64
EXPONENT_MAX, MANTISSA_MAX = 400, 2**64
SELF_DESCRIBED = b"\xd9\xd9\xf7"  # tag 55799, RFC 8949 section 3.4.6
ARRAY, MAP = 4, 5
BREAK, INDEFINITE = 0xFF, None
LABELS = {
    -1: "bver",
    -2: "bn",
    -3: "bt",
    -4: "bu",
    -5: "bv",
    -6: "bs",
    0: "n",
    1: "u",
    2: "v",
    3: "vs",
    4: "vb",
    5: "s",
    6: "t",
    7: "ut",
    8: "vd",
}


def records_of(octets: bytes, count_max: int) -> list[Record]:
    """The records, with labels as names. Raises BadReading."""
    decoder = CBORDecoder(
        BytesIO(octets.removeprefix(SELF_DESCRIBED)), semantic_decoders=TAGS, max_depth=VALUE_DEPTH_MAX, strict_hashable_types=True
    )
    try:
        records = _pack(decoder, count_max)
    except CBORDecodeEOF:
        raise BadReading("CBOR that ends too early") from None
    except CBORError as error:
        if isinstance(error.__cause__, BadReading):
            raise error.__cause__ from None
        raise BadReading("CBOR that cannot be read, or that no reading has: too deep, or against RFC 8949") from None
    try:
        decoder.read(1)
    except CBORDecodeEOF:
        return records
    raise BadReading("CBOR with octets behind its end")


def _pack(decoder: CBORDecoder, count_max: int) -> list[Record]:
    kind, count = _head(decoder, decoder.read(1)[0])
    records: list[Record] = []
    while kind == ARRAY and (count is INDEFINITE or len(records) < count):
        first = decoder.read(1)[0]
        if first == BREAK and count is INDEFINITE:
            break
        if (count or len(records) + 1) > count_max:
            raise BadReading(f"a SenML pack of more than {count_max} records")
        inner, fields = _head(decoder, first)
        if inner != MAP:
            raise BadReading("a SenML record that is no object")
        records.append(_record(decoder, fields))
    if not records:
        raise BadReading("a SenML pack is an array of records")
    return records


def _record(decoder: CBORDecoder, count: int | None) -> Record:
    """The fields of a map whose head has been read."""
    record: Record = {}
    at = 0
    while count is INDEFINITE or at < count:
        first = decoder.read(1)[0]
        if first == BREAK and count is INDEFINITE:
            break
        if at == FIELDS_MAX:
            raise BadReading(f"a SenML record of more than {FIELDS_MAX} fields")
        name = NAMES[first] or _name(decoder, first)
        record[name] = decoder.decode()
        at += 1
    return record


def _name(decoder: CBORDecoder, first: int) -> str | int:
    """The name of a field that is not one of NAMES' short labels."""
    kind, number = _head(decoder, first)
    if kind < 2 and number is not INDEFINITE:
        number = -1 - number if kind else number
        return LABELS.get(number, number)
    if kind != 3 or number is INDEFINITE or number > NAME_OCTETS_MAX:
        raise BadReading(f"a CBOR map with a name that is neither number nor text of at most {NAME_OCTETS_MAX} octets")
    try:
        return decoder.read(number).decode("utf-8")
    except UnicodeDecodeError:
        raise BadReading("CBOR text that is not UTF-8") from None


def _head(decoder: CBORDecoder, first: int) -> tuple[int, int | None]:
    """(major type, number or INDEFINITE) of an item that begins with the octet `first` (RFC 8949 section 3)."""
    kind, short = first >> 5, first & 31
    if short < 24:
        return kind, short
    if short < 28:
        return kind, int.from_bytes(decoder.read(1 << short - 24), "big")
    if short < 31:
        raise BadReading("CBOR with a reserved length")
    return kind, INDEFINITE


# By the octet that a short label is: its name, None for others.
NAMES = [LABELS.get(first if first < 24 else 31 - first) if first < 24 or 32 <= first < 56 else None for first in range(256)]


def _big(sign: int) -> Semantic:
    def number(octets: Any, in_key: bool) -> int:
        if not isinstance(octets, bytes) or len(octets) > BIG_OCTETS_MAX:
            raise BadReading(f"a CBOR number of more than {BIG_OCTETS_MAX} octets, or of none")
        whole = int.from_bytes(octets, "big")
        return whole if sign > 0 else -1 - whole

    return number


def _fraction(base: int) -> Semantic:
    def number(parts: Any, in_key: bool) -> float:
        if not isinstance(parts, (list, tuple)) or len(parts) != 2 or not all(type(part) is int for part in parts):
            raise BadReading("a CBOR fraction that is no pair of whole numbers")
        exponent, mantissa = parts
        if abs(exponent) > EXPONENT_MAX or abs(mantissa) >= MANTISSA_MAX:
            raise BadReading("a CBOR fraction outside what a double holds")
        try:
            return float(f"{mantissa}e{exponent}") if base == 10 else mantissa * 2.0**exponent
        except OverflowError:
            raise BadReading("a CBOR fraction outside what a double holds") from None

    return number


def _passed_over(value: Any, in_key: bool) -> Any:
    return value


class _Tags(dict[int, Semantic]):
    """The functions that cbor2 calls for tags, also for those that it would read by itself (dates, patterns, references ...)."""

    def __missing__(self, tag: int) -> Semantic:
        raise BadReading(f"CBOR with the tag {tag}, which no reading has")


TAGS = _Tags({1: _passed_over, 2: _big(1), 3: _big(-1), 4: _fraction(10), 5: _fraction(2), 55799: _passed_over})

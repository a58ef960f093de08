"""The options of `format("amqp")`, a row for each: texts, their names in any case. It needs nothing of Spark's."""

from collections.abc import Mapping
from typing import Any

from ..setting_rows import reading, rows
from ..settings import Table

if False:  # for the type checker alone
    from ..setting_rows import Kind

RETRY_S = 60
ROWS_PER_EPOCH_MAX = 100_000
_IGNORED = ("path",)


def count(words: str, least: int) -> "Kind":
    """The kind of a whole number that is given as a text of digits."""
    return reading(words, lambda text: int(text) if text.isdecimal() and len(text) < 20 and int(text) >= least else None)


def word(*words: str) -> "Kind":
    """The kind of one of a few words, in any case."""
    return reading(" or ".join(words), lambda text: next((word for word in words if word.lower() == text.lower()), None))


KINDS = {
    "text": reading("a text", lambda text: text),
    "count": count("a number from 1", 1),
    "amount": count("a number", 0),
    "seconds": count("a whole number of seconds, 0 for ever", 0),
    "truth": reading("true or false", lambda text: {"true": True, "false": False}.get(text.lower())),
    "mode": word("stream", "queue"),
    "delivery": word("exactlyOnce", "atLeastOnce"),
}
OF_BOTH = f"""
url | text | | | amqp:// or amqps://[user@]host[:port][/vhost][?ca=FILE&cert=FILE&key=FILE&name=HOST];
 a source: several with commas, each has the streams
passwordEnv | text | | | where the password is looked up, in the process that connects (driver and executors); without a user: guest
passwordFile | text | | | or so
retrySeconds | seconds | {RETRY_S} | s | so long a broker that cannot be reached is asked again before the query fails
"""
OF_SOURCE = """
stream | text | | | names, with commas
streams | text | | | the same
startingOffsets | text | "earliest" | | earliest, latest, a number, a time as 2026-01-31T12:00:00Z,
 or JSON {label: any of these}; for a new query
maxRowsPerTrigger | count | | rows | of one micro-batch, over all streams
maxBytesPerTrigger | count | | octets | the same, reckoned with the stream's mean
minPartitions | count | 1 | partitions | so many ranges are read in parallel, if there is enough to read
failOnDataLoss | truth | true | | true: what is gone is an error; false: it is passed over, counted in the offset ("lost")
mode | mode | "stream" | | queue: a classic queue, at least once
"""
OF_SINK = f"""
exchange | text | "" | | where there is no such column
routingKey | text | | | where there is no column routing_key
delivery | delivery | "exactlyOnce" | | by a transaction of the driver, or by the executors with confirms
maxRowsPerEpoch | amount | {ROWS_PER_EPOCH_MAX} | rows | of a micro-batch with exactlyOnce
mandatory | truth | true | | what no queue takes makes the query fail; false: the broker drops it
checkpointLocation | text | | | Spark's own
"""
UNKNOWN, WRONG = "amqp: unknown option {name}; known are {names}", "amqp: {name} is {words}, not {value!r}"
NOT_BOTH = ((), lambda values: not (values["passwordEnv"] and values["passwordFile"]), "amqp: either passwordEnv or passwordFile, not both")
SOURCE = Table(
    rows(OF_BOTH.rstrip() + OF_SOURCE, KINDS),
    UNKNOWN,
    WRONG,
    (NOT_BOTH, (("streams",), lambda values: values["stream"] is None, "amqp: either stream or streams, not both (they mean the same)")),
)
SINK = Table(rows(OF_BOTH.rstrip() + OF_SINK, KINDS), UNKNOWN, WRONG, (NOT_BOTH,))


def checked(options: Mapping[str, str], table: Table) -> dict[str, Any]:
    """{name: value} of every row of `table`, from options with names in any case."""
    known = {row[0].lower(): row[0] for row in table.rows}
    return table.full({known.get(name.lower(), name.lower()): text for name, text in options.items() if name.lower() not in _IGNORED})

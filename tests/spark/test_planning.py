"""What the source plans of a stream's state: where a query begins, how a batch is cut, what is lost. Without Spark and without a broker."""

import pytest

from leveret.core.amqp_0_9 import properties
from leveret.ports.spark import columns, source
from leveret.ports.spark.columns import Chunk
from leveret.ports.spark.options import Options
from leveret.ports.spark.stream_client import DataLoss, StreamError, StreamUnavailable


class Asked:
    """What a stream's client would answer: `states` in turn, the last again and again."""

    def __init__(self, *states, since=None):
        self.states = list(states)
        self.since = since

    def state(self, stream):
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def offset_since(self, stream, seconds):
        return self.since


@pytest.fixture
def reader(monkeypatch):
    """Makes a streaming reader of stream "s" whose broker answers as `asked` does."""

    def make(asked, **options):
        monkeypatch.setattr(source, "client", lambda address: asked)
        return source.AmqpStreamReader(Options(dict({"url": "amqp://h", "stream": "s"}, **options)), source.SCHEMA)

    return make


def at(identity="i", start=0, begin=0, following=0, lost=0):
    return {"s": {"id": identity, "start": start, "from": begin, "next": following, "lost": lost}}


@pytest.mark.parametrize(
    "wanted, since, offset",
    [("earliest", None, 100), ("latest", None, 400), ("250", None, 250), ("100", None, 100), ("400", None, 400)]
    + [("2026-01-31T12:00:00Z", 300, 300), ("2026-01-31T12:00:00Z", None, 400), ("2026-01-31T12:00:00Z", 0, 0)],
)
def test_a_new_query_begins_where_it_is_told(reader, wanted, since, offset):
    """A time of which nothing is later is the end of the stream."""
    made = reader(Asked(("i", 100, 400, 0), since=since), startingOffsets=wanted)
    assert made.initialOffset() == at(start=offset, begin=offset, following=offset)


def test_a_beginning_that_is_gone_or_not_there_yet_is_said(reader):
    with pytest.raises(DataLoss, match="offsets 50 to 99 are gone, the first is 100"):
        reader(Asked(("i", 100, 400, 0)), startingOffsets="50").initialOffset()
    with pytest.raises(StreamError, match="startingOffsets 401 is beyond the next offset 400"):
        reader(Asked(("i", 100, 400, 0)), startingOffsets="401").initialOffset()
    made = reader(Asked(("i", 100, 400, 0)), startingOffsets="50", failOnDataLoss="false")
    assert made.initialOffset() == at(start=100, begin=100, following=100)


def test_a_batch_ends_at_the_head_or_where_a_limit_says(reader):
    everything = source.ReadAllAvailable()
    planned = at(start=100, begin=100, following=100)
    assert reader(Asked(("i", 100, 400, 0))).latestOffset(planned, everything)["s"]["next"] == 400
    limited = reader(Asked(("i", 100, 400, 0)), maxRowsPerTrigger="120")
    assert limited.latestOffset(planned, source.ReadMaxRows(120)) == at(start=100, begin=100, following=220)
    assert limited.reportLatestOffset()["s"]["next"] == 400
    by_size = reader(Asked(("i", 100, 400, 3000)), maxBytesPerTrigger="500")
    assert by_size.latestOffset(planned, source.ReadMaxBytes(500))["s"]["next"] == 150, "ten octets a message"
    with pytest.raises(StreamError, match="maxBytesPerTrigger needs a broker that tells a stream's octets"):
        reader(Asked(("i", 100, 400, 0)), maxBytesPerTrigger="500").latestOffset(planned, source.ReadMaxBytes(500))


def test_an_offset_at_which_nothing_is_new_stays_the_same(reader):
    """What is another offset is new data for Spark."""
    planned = at(start=0, begin=100, following=400)
    assert reader(Asked(("i", 100, 400, 0))).latestOffset(planned, source.ReadAllAvailable()) is not planned
    assert reader(Asked(("i", 100, 400, 0))).latestOffset(planned, source.ReadAllAvailable()) == planned


@pytest.mark.parametrize(
    "state, words",
    [
        (("j", 0, 400, 0), "was made again (id i is now j): what followed offset 200 is gone"),
        (("i", 300, 400, 0), "offsets 200 to 299 are gone (retention), the first is 300"),
        (("i", 0, 150, 0), "offsets 150 to 199 were read, but now it ends at 150"),
    ],
)
def test_what_is_gone_is_an_error_that_names_the_offsets(reader, state, words):
    with pytest.raises(DataLoss) as told:
        reader(Asked(state)).latestOffset(at(following=200), source.ReadAllAvailable())
    assert words in str(told.value)


@pytest.mark.parametrize(
    "state, following",
    [
        (("j", 20, 400, 0), at("j", -180, 20, 400, 25)),
        (("i", 300, 400, 0), at("i", 0, 300, 400, 105)),
    ],
)
def test_what_is_gone_is_counted_where_that_is_wanted(reader, state, following):
    made = reader(Asked(state), failOnDataLoss="false")
    assert made.latestOffset(at(following=200, lost=5), source.ReadAllAvailable()) == following


def test_a_run_over_what_is_there_ends_at_the_head_of_its_beginning(reader):
    made = reader(Asked(("i", 0, 100, 0), ("i", 0, 500, 0)))
    made.prepareForTriggerAvailableNow()
    assert made.latestOffset(at(), source.ReadAllAvailable())["s"]["next"] == 100
    again = reader(Asked(("i", 0, 100, 0), ("j", 0, 500, 0)), failOnDataLoss="false")
    again.prepareForTriggerAvailableNow()
    assert again.latestOffset(at(), source.ReadAllAvailable())["s"]["next"] == 500, "another stream has another head"


def test_a_batch_is_cut_into_parts_of_one_size(reader):
    made = reader(Asked(("i", 0, 0, 0)), minPartitions="3")
    ranges = made._ranges({"s": (100, 30100)}, 7)
    assert [(each.start, each.end, each.position) for each in ranges] == [(100, 10100, 7), (10100, 20100, 10007), (20100, 30100, 20007)]
    small = made._ranges({"s": (0, 3000), "t": (5, 10)})
    assert [(each.label, each.start, each.end, each.position) for each in small] == [("s", 0, 3000, 0), ("t", 5, 10, 3000)]
    assert made._ranges({"s": (5, 5)}) == []


def test_limits_share_a_batch_among_the_streams(reader):
    made = reader(Asked(("i", 0, 0, 0)))
    planned = {name: {"from": 0, "next": count} for name, count in (("a", 300), ("b", 100), ("c", 0))}
    made._cap(planned, [], 100)
    assert [each["next"] for each in planned.values()] == [75, 25, 0]
    made._cap(planned, [], None)
    assert [each["next"] for each in planned.values()] == [75, 25, 0]


def test_what_lies_between_two_offsets(reader):
    """A stream that is new in the query counts from its beginning; one that was made again from where this batch begins."""
    end = {"s": {"id": "i", "start": 10, "from": 10, "next": 50}}
    assert source.spans_of(None, end) == {"s": (10, 50)}
    assert source.spans_of({"s": {"id": "i", "next": 30}}, end) == {"s": (30, 50)}
    assert source.spans_of({"s": {"id": "j", "next": 30}}, end) == {"s": (10, 50)}


def test_a_column_that_there_is_not_is_one_sentence(reader):
    schema = source.StructType().add("value", source.StringType())
    with pytest.raises(StreamError, match="there is no column value string; the columns are struct<value:binary"):
        source.arrow_schema(schema)


class Fetched:
    """What a client would fetch: chunks (first, count), and an error behind each of the first `breaks` fetches."""

    def __init__(self, chunks, breaks=0):
        self.chunks, self.breaks, self.asked = chunks, breaks, []

    def fetch(self, stream, start, end, fail_on_data_loss):
        self.asked.append((start, end, fail_on_data_loss))
        for first, count in self.chunks:
            if first >= start:
                yield Chunk(first, [None] * count, b"")
                if self.breaks:
                    self.breaks -= 1
                    raise StreamUnavailable("the broker has gone")


def fetched(monkeypatch, asked):
    monkeypatch.setattr(source, "client", lambda address: asked)
    monkeypatch.setattr(source.time, "sleep", lambda seconds: None)
    options = Options({"url": "amqp://h", "stream": "s", "failOnDataLoss": "false"})
    return [(chunk.first, chunk.count) for chunk in source._fetch(options, source.Range("s", 10, 40, 0))]


def test_reading_goes_on_where_a_connection_broke(monkeypatch, capsys):
    asked = Fetched([(10, 10), (20, 20)], breaks=1)
    assert fetched(monkeypatch, asked) == [(10, 10), (20, 20)]
    assert asked.asked == [(10, 40, False), (20, 40, False)] and capsys.readouterr().err == ""


def test_offsets_that_are_passed_over_are_named(monkeypatch, capsys):
    assert fetched(monkeypatch, Fetched([(15, 5), (20, 20)])) == [(15, 5), (20, 20)]
    assert capsys.readouterr().err == "amqp: stream 's': offsets 10 to 14 are gone and passed over\n"


def test_headers_are_text_or_json_and_octets_of_any_kind_are_text():
    octets = properties.encode({"headers": {"text": "a", "number": 5, "list": [1, b"\xff"], "octets": b"caf\xc3\xa9"}})
    told = dict(columns._headers_of(octets))
    assert (told["text"], told["number"], told["list"]) == ("a", "5", '[1, "\\ufffd"]')
    assert "caf" in told["octets"] and "b'" not in told["octets"]
    assert columns._headers_of(octets[:-3]) == []

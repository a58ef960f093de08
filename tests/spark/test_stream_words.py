"""Addresses, refusals and offsets as ports/spark/stream_client.py has them, without a broker."""

import pytest

from leveret.core.amqp_0_9 import properties
from leveret.ports.client import ChannelClosed, ConnectionLost, LoginRefused, TlsRefused
from leveret.ports.client_errors import LinkDetached
from leveret.ports.spark.stream_client import Address, DataLoss, Refused, StreamUnavailable, _gathered, dense, offset_of, stream_error
from leveret.ports.url import read_url


def test_an_address_is_a_url_with_its_password_and_a_text_without_it():
    address = Address("host", 5672, "a b", "p/w:d", "/", query="heartbeat=5")
    assert address.url() == "amqp://a%20b:p%2Fw%3Ad@host:5672/%2F?heartbeat=5"
    assert str(address) == "host:5672 (user a b, virtual host /)"
    assert Address("fe80::1", 1, "u", "p", "v/w", "amqps").url() == "amqps://u:p@[fe80::1]:1/v%2Fw"
    url = read_url(Address("host", 5672, "a b", "p/w:d", "/").url())
    assert (url.host, url.port, url.user, url.password) == ("host", 5672, "a b", "p/w:d")


def test_two_addresses_are_told_apart_by_everything_in_them():
    values = ("host", 5672, "user", "password", "/", "amqp", "")
    assert Address(*values).key() == Address(*values).key()
    for place in range(len(values)):
        others = list(values)
        others[place] = 1 if place == 1 else "other"
        assert Address(*others).key() != Address(*values).key(), place


@pytest.mark.parametrize(
    "error, code",
    [
        (LoginRefused("no"), 0),
        (TlsRefused("no"), 0),
        (ChannelClosed("no", 404, "text"), 404),
        (ConnectionLost("no", 530, "text"), 530),
        (ConnectionLost("no", 320, "text"), None),
        (ConnectionLost("no", 0, ""), None),
        (ConnectionLost("no", "", ""), None),
        (ConnectionLost("no", "amqp:connection:forced", "text"), None),
        (LinkDetached("no", "amqp:not-found", "text"), 0),
        (LinkDetached("no", "amqp:link:stolen", "text"), None),
    ],
    ids=lambda value: str(value),
)
def test_what_a_broker_refuses_is_final_and_what_is_lost_may_come_back(error, code):
    """320 connection-forced is an operator's, and may be another time; of a connection lost without a code nothing is known. Conditions of
    AMQP 1.0 say the same."""
    made = stream_error(error, "s", Address("host", 1, "u", "secret", "/"))
    assert type(made) is (StreamUnavailable if code is None else Refused)
    assert code is None or made.code == code
    assert "stream 's' at host:1 (user u, virtual host /)" in str(made) and "secret" not in str(made)


class Message:
    def __init__(self, given):
        self.properties_octets = properties.encode(given)
        self.properties = properties.decode_all(self.properties_octets)


def test_the_offset_of_a_delivery_is_its_header_wherever_that_stands():
    for headers in ({"x-stream-offset": ("l", 7)}, {"a": "b", "x-stream-offset": ("l", 7)}):
        message = Message({"content_type": "t", "headers": headers})
        assert offset_of(message, 7) == offset_of(message, 6) == offset_of(message, None) == 7
    assert offset_of(Message({"headers": {"x-stream-offset": 7}}), 7) == 7, "of another type"
    for given in ({}, {"headers": {}}, {"headers": {"a": 1}}):
        assert offset_of(Message(given), 0) is None, given


class Record(Message):
    """A delivery of a record of a stream."""

    exchange_octets, routing_key_octets = b"", b"s"

    def __init__(self, offset):
        Message.__init__(self, {"headers": {"x-stream-offset": ("l", offset)}})
        self.body = b"%d" % offset


class Subscription:
    """One that gives these records, so many at a time."""

    def __init__(self, offsets, size):
        self.lots = [[Record(offset) for offset in offsets[at : at + size]] for at in range(0, len(offsets), size)]

    def messages(self, timeout_s, wanted):
        return self.lots.pop(0) if self.lots else []


@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_records_with_gaps_are_chunks_without_them(size):
    """A broker may begin before the offset, and retention may take what is in the middle: each chunk's offsets are consecutive."""
    given = [3, 4, 5, 6, 9, 10, 12, 13]
    chunks = list(_gathered(Subscription(given, size), "s", 5, 14))
    assert [chunk.first + place for chunk in chunks for place in range(chunk.count)] == [5, 6, 9, 10, 12, 13]
    octets = b"".join(chunk.octets for chunk in chunks)
    assert [octets.count(b"\x00\x01s" + Record(offset).properties_octets + b"%d" % offset) for offset in (4, 5, 9, 12, 13)] == [
        0,
        1,
        1,
        1,
        1,
    ]
    with pytest.raises(DataLoss, match="offsets 7 to 8 are gone"):
        list(dense(chunks, "s", 5, 14, True))
    assert sum(chunk.count for chunk in dense(chunks, "s", 5, 11, False)) == 4
    with pytest.raises(StreamUnavailable, match="offset 14 of those up to 20 did not come"):
        list(_gathered(Subscription(given, size), "s", 5, 20))

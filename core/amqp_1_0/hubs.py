"""What clients of Event Hubs ask at `$management`: which partitions a hub has, and where the events of one begin and end.

    request    properties: message-id; application-properties: operation = "READ", type = a row of TYPES, name = the hub, partition = "0"
    response   properties: correlation-id; application-properties: status-code, status-description (Event Hubs' names), statusCode,
               statusDescription (the draft's); amqp-value: a map

    request    application-properties: operation = "put-token", at `$cbs`       response   status-code 202

AMQP Management (OASIS, working draft 9), with the types that Event Hubs has. The streams HUB-0, HUB-1 ... are the partitions of HUB
(addresses.partition). A sequence number is an offset; only what survives a power cut is told. Permission: read, on each stream. Azure's
clients put a token to `$cbs` (Claims-based Security, working draft 5) before they do anything else. Nobody reads it here: what a peer may
do is what the user of its log-in may.
"""

from ..access.permissions import READ
from ..errors import ACCESS_REFUSED, ProtocolError
from ..memory import layout
from . import composites, types

if False:  # for the type checker alone
    from typing import Any

READ_OPERATION = "READ"
TOKEN_OPERATION = "put-token"
TOKEN_TEXT = "this broker does not read tokens: permissions are those of the log-in"
PARTITIONS_MAX = 256  # of a hub, that a request counts
_APPLICATION = 0x74
_VALUE = 0x77


class Unknown(Exception):
    """A request names a hub or a partition that does not exist: the status and a sentence."""


def asks(given):
    """Application properties (a map or None) are those of a request to this management."""
    return isinstance(given, dict) and "operation" in given


def answer(request, given):
    """The octets of the response to a management.Request with these application properties."""
    try:
        if given["operation"] == TOKEN_OPERATION:
            status, text, body = 202, TOKEN_TEXT, {}
        else:
            status, text, body = 200, "OK", read(request, given)
    except Unknown as error:
        (status, text), body = error.args, {}
    except ProtocolError as error:
        status, text, body = 401 if error.condition == ACCESS_REFUSED else 400, error.text, {}
    return response(request.number, status, text, body)


def response(number, status, text, body):
    """The octets of a response."""
    properties = {"status-code": ("int", status), "status-description": text, "statusCode": ("int", status), "statusDescription": text}
    head = composites.write("properties", {"correlation-id": number}) + types.encode(("described", ("ulong", _APPLICATION), properties))
    return head + types.encode(("described", ("ulong", _VALUE), body))


def read(request, given):
    """The body of a response: a map. Raises Unknown, ProtocolError."""
    kind = given.get("type")
    if given["operation"] != READ_OPERATION or not isinstance(kind, str) or kind not in TYPES:
        words = "this broker has operation READ of %s, not %.40r of %.80r"
        raise Unknown(501, words % (" and ".join(sorted(TYPES)), given["operation"], kind))
    name = given.get("name")
    if not isinstance(name, str):
        raise Unknown(400, "a request of type %s names the hub in the application property name" % kind)
    return TYPES[kind](request, name, given.get("partition"))


def stream_of(request, hub, partition):
    """The Stream that is a partition of a hub, None where there is none. Raises ProtocolError for who may not read it."""
    queue = request.broker.queues.get("%s-%s" % (hub, partition))
    if queue is None or not queue.is_stream:
        return None
    request.allow(READ, "queue", queue.name)
    request.promise(queue.name)
    return queue


def hub(request, name, _):
    """A hub with the numbers of its partitions, from 0 up to the first that is not there."""
    count = 0
    while count < PARTITIONS_MAX and stream_of(request, name, count) is not None:
        count += 1
    if count == 0:
        raise Unknown(404, "there is no hub '%s': its partitions are streams called '%s-0', '%s-1' ..." % ((name[:80],) * 3))
    return {
        "name": name,
        "type": "com.microsoft:eventhub",
        "created_at": ("timestamp", 0),  # nobody wrote it down
        "partition_count": ("int", count),
        "partition_ids": ("array", "string", ["%d" % number for number in range(count)]),
    }


def partition(request, name, given):
    """A partition: its first and last events, and which stream it is (x-stream-id: a stream that is made again has another)."""
    stream = stream_of(request, name, given) if isinstance(given, str) else None
    if stream is None:
        raise Unknown(404, "hub '%s' has no partition %.40r: it would be a stream called '%s-NUMBER'" % (name[:80], given, name[:80]))
    following = stream.readable_offset()
    first = min(stream.first_offset, following)
    arrived = None if first == following else stream.arrived_at(following - 1)
    return {
        "name": name,
        "type": "com.microsoft:partition",
        "partition": given,
        "begin_sequence_number": ("long", first),
        "last_enqueued_sequence_number": ("long", following - 1),
        "last_enqueued_offset": "%d" % (following - 1),
        "last_enqueued_time_utc": ("timestamp", 0 if arrived is None else (arrived + layout.EPOCH) * 1000),
        "is_partition_empty": first == following,
        "x-stream-id": stream.id,
    }


TYPES: "dict[str, Any]" = {"com.microsoft:eventhub": hub, "com.microsoft:partition": partition}

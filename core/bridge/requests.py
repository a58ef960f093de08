"""Requests of a bridge to the broker that it sends from, by management (core/management/requests.py).

    bridge {"name", "stream", "consumer", "queue", "count", "status", "note"} Moves up to `count` messages from the head of `queue` (null:
    none) to the stream, whose settled ones go; keeps `status` for the request `bridges`; and answers with the stream's figures: "id",
    "logged", "first", "next", "position" (of the consumer; null: none kept), "octets", "octets_max", "age_max_s", "oldest" (seconds since
    1970 of the message at the position, null: none), "moved", "queued" (messages left in `queue`), "noted" (with "note" true: the number of
    the log's record that has the position, which is there after a power cut when an answer's "synced" is as large; null: there is no log)
    report-bridge {"name", "status"} Keeps `status`, of a bridge that has no stream bridges {"name"} "status" of a bridge with
    "reported_ms_ago"; without a name "names" of all

A move is one verb: out of the queue and into the stream stand in one commit of the log.
"""

from ..access.permissions import READ, WRITE, check
from ..errors import NOT_FOUND, PRECONDITION_FAILED, ProtocolError
from ..memory import layout
from ..memory.layout import EPOCH
from ..outcomes import TAKEN
from ..shim import json_text

MOVE_MAX = 1000
STATUS_MAX = 4096  # octets of a status


def bridge(broker, request):
    """Carry out a bridge's request: its moves, its position and its status."""
    stream = named(broker, request, "stream")
    if not stream.is_stream:
        raise ProtocolError(PRECONDITION_FAILED, "queue '%s' is no stream" % stream.name)
    if not isinstance(request.get("consumer", ""), (str, type(None))):
        raise ProtocolError(PRECONDITION_FAILED, "a consumer is named by a text")
    if isinstance(request.get("status"), dict):
        keep_status(broker, request)
    moved = 0
    queued = 0
    if request.get("queue") is not None:
        queue = named(broker, request, "queue")
        if queue.is_stream:
            raise ProtocolError(PRECONDITION_FAILED, "'%s' is a stream: it needs no other one" % queue.name)
        check(broker, request["user"], READ, "queue", queue.name)
        check(broker, request["user"], WRITE, "exchange", "")
        stream.drop_settled()
        broker.tables.lend(1)
        try:
            moved = move(broker, queue, stream, number(request, "count", MOVE_MAX))
        finally:
            broker.tables.lend(-1)
        queued = queue.message_count()
    log = broker.journal if stream.id_in_log else None
    noted = None
    if request.get("note") is True and log is not None:
        stream.note_kept(log)
        noted = log.promise()
    return json_text(
        {
            "ok": True,
            "noted": noted,
            "synced": None if log is None else log.log.synced,
            "id": stream.id,
            "logged": stream.id_in_log != 0,
            "first": stream.first_offset,
            "next": stream.next_offset(),
            "position": position(stream, request.get("consumer")),
            "octets": stream.size,
            "octets_max": stream.size_max,
            "age_max_s": stream.age_max_s,
            "oldest": oldest(stream, request.get("consumer")),
            "moved": moved,
            "queued": queued,
        }
    )


def named(broker, request, key):
    """The queue that a request names."""
    name = request.get(key)
    if not isinstance(name, str) or name not in broker.queues:
        raise ProtocolError(NOT_FOUND, "no " + broker.topology.called("queue", name))
    return broker.queues[name]


def number(request, key, most):
    """The whole number from 0 to `most` in a request."""
    value = request.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ProtocolError(PRECONDITION_FAILED, "%s must be a whole number from 0 to %d" % (key, most))
    return value


def move(broker, queue, target, most):
    """Move messages from the head of a queue to the end of another one, or of a stream, until that has no room or refuses one: how many."""
    tables = broker.tables
    count = 0
    while count < most:
        if queue.is_paging() and queue.head() == layout.NONE:
            queue.pages.pager.bring(queue)
        if queue.rules is not None:
            queue.rules.before_delivery(broker, queue)
        entry = queue.head()
        if entry == layout.NONE:
            break
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        segment = tables.messages[message + layout.MESSAGE_SEGMENT]
        if broker.put(message, [target]) != TAKEN:
            break
        written = tables.messages[message + layout.MESSAGE_SEGMENT]
        tables.messages[message + layout.MESSAGE_SEGMENT] = segment  # the place in the queue that the other one's record settles
        queue.drop(queue.pop())
        tables.messages[message + layout.MESSAGE_SEGMENT] = written
        count += 1
    broker.counters["moved"] += count
    return count


def position(stream, consumer):
    """The offset kept for a consumer's name, up to this moment; None: there is none."""
    for each in stream.consumers:
        if each.keeps is not None and each.keeps == consumer:
            stream.keep(each)
    return stream.kept.get(consumer)


def oldest(stream, consumer):
    """Seconds since 1970 at which the message at a consumer's position came, or None."""
    offset = position(stream, consumer)
    arrived = stream.arrived_at(stream.first_offset if offset is None else offset)
    return None if arrived is None else arrived + EPOCH


def keep_status(broker, request):
    """Keep a bridge's status; when there are too many, forget the bridge that has been silent longest."""
    name = request.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= 255 or len(json_text(request["status"])) > STATUS_MAX:
        raise ProtocolError(PRECONDITION_FAILED, "a bridge has a name of at most 255 characters and a status of at most %d" % STATUS_MAX)
    keep(broker, name, request["status"])


def keep(broker, name, status):
    """Keep a status under a bridge's name."""
    if broker.limits.bridge_count_max == 0:
        return
    if name not in broker.bridges and len(broker.bridges) >= broker.limits.bridge_count_max:
        del broker.bridges[min(broker.bridges, key=lambda each: broker.bridges[each][0])]
    broker.bridges[name] = (broker.uptime_ms, status)


def report(broker, request):
    """Keep the status of a bridge that has no stream."""
    if not isinstance(request.get("status"), dict):
        raise ProtocolError(PRECONDITION_FAILED, "a report has a status")
    keep_status(broker, request)
    return json_text({"ok": True})


def bridges(broker, request):
    """The kept status of one bridge, or the names of all."""
    name = request.get("name")
    if name is None:
        return json_text({"ok": True, "names": sorted(broker.bridges)})
    if not isinstance(name, str) or name not in broker.bridges:
        raise ProtocolError(NOT_FOUND, "there is no bridge '%s'" % name)
    at, status = broker.bridges[name]
    return json_text({"ok": True, "status": status, "reported_ms_ago": broker.uptime_ms - at})

"""A board's own page of `leveret status`: heap, the largest piece of it, starts and their reasons; queues where there is no management.

    {"request": "board"} to amq.leveret.management     {"ok": true, "board": {...}}

Where the board carries core/management this is one more of its requests; where it does not, this alone answers, and refuses any other one.
It is asked for over whatever carries AMQP, a serial line too, by a user with one of the tags of READERS.
"""

import gc
import sys

from ..core.broker import whole
from ..core.errors import ACCESS_REFUSED, NOT_IMPLEMENTED, PRECONDITION_FAILED, ProtocolError
from ..core.memory.layout import MESSAGE_BODY, NONE
from ..core.message import reading
from ..core.message.formats import BASIC
from ..core.parts import part
from ..core.shim import json_text
from ..core.version import VERSION
from . import resets

READERS = ("administrator", "monitoring", "management", "policymaker")
PROPERTIES = b"\x80\x00\x10application/json"  # content-type (0-9-1 section 1.8.1)
EXACT = 16  # the largest hole is told to a 16th of itself: each try that fails is a collection


def heap():
    """(octets of heap, free, of the largest piece), after a collection; None for each where the interpreter does not say."""
    gc.collect()
    if hasattr(gc, "mem_free"):
        free = gc.mem_free()
        return free + gc.mem_alloc(), free, largest(free)  # type: ignore[attr-defined]  # MicroPython's own
    return None, None, None


def largest(free):
    """Octets of the largest piece of heap, or up to a 16th less; `free`: of all."""
    least, most = 0, free
    while most - least > most // EXACT + 16:
        middle = (least + most) // 2
        try:
            bytearray(middle)
            least = middle
        except MemoryError:
            most = middle
    return least


def figures(gateway, room):
    """The page, a dict of at most `room` octets as JSON. Where that is too little, the last figures are left out first."""
    broker = gateway.broker
    size, free, hole = heap()
    implementation = sys.implementation
    page = {
        "board": gateway.wanted["board"],
        "name": gateway.wanted["name"],
        "machine": getattr(implementation, "_machine", sys.platform),
        "micropython": ".".join([str(number) for number in implementation.version[:3]]),
        "version": VERSION,
        "uptime_ms": broker.uptime_ms - (broker.began_ms or 0),
        "heap": size,
        "heap_free": free,
        "heap_hole": hole,
        "faults": broker.counters["internal_errors"],
        "starts": resets.starts(),
        "reasons": resets.lines(),
    }
    if part("management.requests") is None:
        page["connections"] = len(broker.connections)
        page["queues"] = {name: broker.queues[name].message_count() for name in broker.queues}
    for name in ("queues", "reasons"):
        rows = page.get(name)
        while rows and len(json_text(page).encode("utf-8")) > room:
            rows.pop(0 if name == "reasons" else sorted(rows)[-1])
    return page


class Page:
    """The page of one Gateway."""

    def __init__(self, gateway):
        self.gateway = gateway

    def tell(self, broker, request):
        """The answer as JSON text."""
        limits = broker.limits
        return json_text({"ok": True, "board": figures(self.gateway, min(limits.management_size_max, limits.content_size_max) - 64)})

    def answer(self, broker, user, message, before):
        """Answer a complete message as core/management/requests.py does. Raises ProtocolError."""
        if not [tag for tag in READERS if tag in user.tags]:
            raise ProtocolError(ACCESS_REFUSED, "management refused for user '%s': it needs the tag %s" % (user.name, " or ".join(READERS)))
        tables = broker.tables
        target = reading.properties_of(tables, message).get("reply_to")
        if target not in broker.queues:
            raise ProtocolError(PRECONDITION_FAILED, "a management request needs reply-to, the name of a queue")
        size = tables.messages[message + MESSAGE_BODY]
        if b'"board"' in bytes(tables.octets(message, tables.size_of(message) - size, size)):
            text = self.tell(broker, None)
        else:
            text = json_text(
                {"ok": False, "condition": NOT_IMPLEMENTED, "error": "this board has no management: it answers the request board"}
            )
        return None, whole.publish(broker, "", target.encode("utf-8"), PROPERTIES, (BASIC, NONE), text.encode("utf-8"))

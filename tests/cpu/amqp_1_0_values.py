"""Scenes of peers of AMQP 1.0 whose frames are full of tiny values: as many as a frame holds, and as many as are taken."""

import struct

from amqp_1_0_scenes import VALUE, Quick10
from peer_1_0 import data
from scenes import row

from leveret.core.amqp_1_0 import composites, frame, sections, types

FRAME = 125000  # octets of values in a frame, or fewer
KEY = ("symbol", "k")
ONE = {"handle": 0, "delivery-id": 0, "delivery-tag": b"0"}


class Written:
    """A value that is octets already."""

    def __init__(self, octets):
        self.octets = octets


def listed(octets, count):
    return Written(b"\xd0" + struct.pack(">II", len(octets) + 4, count) + octets)


def mapped(octets, count):
    return Written(b"\xd1" + struct.pack(">II", len(octets) + 4, count) + octets)


def number(each):
    return b"\x70" + struct.pack(">I", each)


# kind of values -> (octets of each, a function of how many that makes a value of them)
TINY = {
    "null": (1, lambda n: listed(b"\x40" * n, n)),
    "smallint": (2, lambda n: listed(b"\x54\x01" * n, n)),
    "null and smallint": (1.5, lambda n: listed(b"\x40\x54\x01" * (n // 2), n // 2 * 2)),
    "empty string": (2, lambda n: listed(b"\xa1\x00" * n, n)),
    "list of one": (2, lambda n: listed(b"\xc0\x02\x01\x40" * (n // 2), n // 2)),
    "array of ubyte": (1, lambda n: Written(b"\xf0" + struct.pack(">II", n + 5, n) + b"\x50" + bytes(n))),
    "array of symbols": (1, lambda n: Written(b"\xf0" + struct.pack(">II", n + 5, n) + b"\xa3" + bytes(n))),
    "map": (3, lambda n: mapped(b"".join([number(each) + b"\x40" for each in range(n // 2)]), n // 2 * 2)),
}


def octets_of(value):
    """A value's octets; maps and lists in their wide form, so that any of theirs may be Written."""
    if isinstance(value, Written):
        return value.octets
    if isinstance(value, tuple) and value[0] == "described":
        return b"\x00" + types.encode(value[1]) + octets_of(value[2])
    if isinstance(value, list):
        return listed(b"".join([octets_of(each) for each in value]), len(value)).octets
    if isinstance(value, dict):
        return mapped(b"".join([types.encode(each) + octets_of(value[each]) for each in value]), 2 * len(value)).octets
    return types.encode(value)


def framed(name, fields, payload=b"", channel=0):
    return frame.write(frame.AMQP, channel, octets_of(composites.described(name, fields)) + payload)


def frames_with(value):
    """{place: frame} of the places where a peer may put any value."""
    queue, fields = ("source", {"address": "/queues/q"}), {KEY: value}
    link = {"name": "z", "handle": 7, "role": True, "source": queue, "target": ("target", {})}
    filtered = ("source", {"address": "/queues/q", "filter": {KEY: ("described", ("symbol", "amqp:properties-filter"), value)}})
    sender = {"name": "z", "handle": 7, "role": False, "target": ("target", {"address": "/queues/q"}), "initial-delivery-count": 0}
    window = {"next-incoming-id": 0, "incoming-window": 9, "next-outgoing-id": 0, "outgoing-window": 9}
    begin = {"next-outgoing-id": 0, "incoming-window": 9, "outgoing-window": 9}
    error = {"condition": "a:b", "info": fields}
    disposition = {"role": True, "first": 0, "settled": True}
    made = {
        "attach, properties": framed("attach", dict(link, properties=fields)),
        "attach, unsettled": framed("attach", dict(link, unsettled={b"a": value})),
        "attach, filter": framed("attach", dict(link, source=filtered)),
        "attach, node properties": framed("attach", dict(link, target=("target", {"dynamic-node-properties": fields}))),
        "attach of a sender, filter": framed("attach", dict(sender, source=filtered)),
        "flow": framed("flow", dict(window, properties=fields)),
        "begin": framed("begin", dict(begin, properties=fields), channel=1),
        "open": framed("open", {"container-id": "x", "properties": fields}),
        "modified": framed("disposition", dict(disposition, state=("modified", {"message-annotations": fields}))),
        "rejected": framed("disposition", dict(disposition, state=("rejected", {"error": error}))),
        "detach": framed("detach", {"handle": 0, "closed": True, "error": error}),
        "close": framed("close", {"error": error}),
        "amqp-value": framed("transfer", ONE, VALUE + value.octets),
    }
    for code, key in ((sections.DELIVERY_ANNOTATIONS, KEY), (sections.MESSAGE_ANNOTATIONS, KEY), (sections.APPLICATION_PROPERTIES, "k")):
        section = bytes((0, 0x53, code)) + octets_of({key: value})
        made[sections.NAMES[code][0]] = framed("transfer", ONE, section + data(b"x"))
    return made


def ready(crowd):
    """A peer with a sender of queue q, one message of it and its reader."""
    crowd.peer().queue("q")
    peer = Quick10(crowd)
    peer.sender()
    return peer


def tiny(kind, place):
    """A row: `n` such values in one frame, or as many as it holds; then as many as are taken."""

    @row("1.0: values, %s, in %s" % (kind, place), 125000)
    def scene(crowd, n):
        size, make = TINY[kind]
        in_section = place in [sections.NAMES[code][0] for code in sections.NAMES]
        most = min(sections.VALUES_MAX if in_section else types.VALUES_MAX, n) - 64
        yield
        for count in (int(min(n, FRAME / size)), int(min(most, FRAME / size))):
            ready(crowd).say(frames_with(make(count))[place])

    return scene


for one in TINY:
    for where in frames_with(listed(b"", 0)):
        if one == "smallint" or where in ("attach, filter", "flow", "application-properties"):
            tiny(one, where)


def many(place):
    """A row: what a peer's receive buffer holds of frames with values, each not large."""

    @row("1.0: values, many frames, in %s" % place, 32)
    def scene(crowd, n):
        peer = ready(crowd)
        yield
        if place == "flow":
            peer.say(*[frames_with(listed(b"\x54\x01" * 4000, 4000))["flow"] for _ in range(n)])
            return
        octets = bytes((0, 0x53, sections.APPLICATION_PROPERTIES)) + octets_of({"k": listed(b"\x54\x01" * 4000, 4000)})
        if place == "messages":
            frames = [
                framed("transfer", {"handle": 0, "delivery-id": each, "delivery-tag": b"%d" % each}, octets + data(b"x"))
                for each in range(n)
            ]
        else:  # one message, whose body does not come
            frames = [framed("transfer", dict(ONE, more=True), octets + b"\x00")] + [
                framed("transfer", {"handle": 0, "more": True}) for _ in range(10 * n)
            ]
        peer.say(*frames)

    return scene


for where in ("flow", "messages", "empty transfers"):
    many(where)


# Links that copy, and drain, behind costly filters

COSTLY = " OR ".join(["a%d LIKE '%%b%%c'" % each for each in range(40)])


def searching(name, arguments, mode, most):
    @row("1.0: links with costly filters that find nothing, " + name, most)
    def scene(crowd, n):
        other = crowd.peer()
        other.queue("q", arguments)
        sender = Quick10(crowd)
        sender.sender()
        sender.posts(300, settled=True)
        peer = Quick10(crowd)
        filters = {KEY: ("described", ("symbol", "apache.org:selector-filter:string"), COSTLY)}
        source = ("source", {"address": "/queues/q", "filter": filters, "distribution-mode": mode})
        for handle in range(n):
            peer.attach("l%d" % handle, handle, True, None, source=source)
        peer.frames()
        window = {"next-incoming-id": 0, "incoming-window": 99, "next-outgoing-id": 0, "outgoing-window": 99}
        flow = dict(window, **{"link-credit": 10, "delivery-count": 0, "drain": True})
        yield
        for _ in range(2):
            peer.say(*[framed("flow", dict(flow, handle=handle)) for handle in range(n)])
            crowd.pass_time(500)
        assert not peer.connection.session.closing

    return scene


searching("copies", None, "copy", 16)
searching("consumers", None, "move", 16)

"""Limits that fit the machine: what a broker with given limits takes on CPython, and the largest ones that fit in so many octets.

Without --memory-max (or memory_max in [limits]) that is half of what the machine, or its control group, has. Limits that the configuration
gives are kept; the others lie between the gateway's of core/limits.py and LEAST, all the same part of the way. It opens
nothing but /proc and /sys.
"""

import os

from leveret import c_accel
from leveret.core.limits import GATEWAY, ROWS, Limits, check_range
from leveret.core.memory.cpython_sizes import memory_parts
from leveret.core.memory.micropython_sizes import bridge_memory, line_memory

from . import address, data
from .usage import UsageError

# The least that a gateway is given; what is not here does not depend on the machine.
LEAST = {
    "connection_count_max": 16,
    "receive_buffer_size": 32768,
    "send_buffer_size": 65536,
    "channel_count_max": 128,
    "properties_size_max": 16384,
    "content_size_max": 1 << 20,
    "arena_size": 4 << 20,
    "message_count_max": 4096,
    "entry_count_max": 8192,
    "chunk_count_max": 4096,
    "queue_count_max": 128,
    "queue_share_max": 96,
    "exchange_count_max": 48,
    "binding_count_max": 512,
    "binding_share_max": 384,
    "policy_count_max": 16,
    "consumer_count_max": 128,
    "route_count_max": 512,
    "argument_size_max": 1024,
    "copy_size_max": 1024,
    "return_count_max": 16,
    "management_size_max": 32768,
    "user_count_max": 16,
    "granted_count_max": 512,
    "identity_count_max": 4096,
    "waiting_count_max": 1024,
    "transaction_count_max": 1024,
    "offset_count_max": 128,
    "bridge_count_max": 8,
    "login_address_max": 128,
    "link_count_max": 64,
    "target_count_max": 16,
    "staged_count_max": 1,
    "staged_memory_max": 65536,
}
STEPS = 1024  # from LEAST to GATEWAY
HEADS = 2048  # octets of a send buffer beside the properties of a delivery
TLS_CONNECTION = 60000  # octets that OpenSSL takes for a connection
WEB_SOCKET = 73728  # octets that the WebSocket layer takes for a connection at most: ports/web_socket.py, MEMORY; a test compares
HTTP = 18874368  # octets that HTTP takes at most: ports/http/server.py, MEMORY; a test compares
HTTP_SLOTS = 32  # connections of the listeners for HTTP together: there, CONNECTIONS_MAX; a test compares
LOG = 8 << 20  # octets of what is gathered, written and read back at once


def machine():
    """Octets that this machine, or the control group of this process, has."""
    octets_there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in groups(read("/proc/self/cgroup")):
        text = read(path).strip()
        if text.isdigit():
            octets_there = min(octets_there, int(text))
    return octets_there


def read(path):
    """A file's text; "" when there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def groups(text):
    """The files with the limits of the control groups in /proc/self/cgroup's `text`, and of those above them."""
    for line in text.splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "memory"):
            top, name = ("/sys/fs/cgroup", "memory.max") if kinds == "" else ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            parts = [part for part in path.split("/") if part]
            for count in range(len(parts) + 1):
                yield "/".join([top, *parts[:count], name])


def parts(limits, addresses=(), bridges=(), kept=False):
    """memory_parts with what the form of the hot functions, listeners, bridges and a log take."""
    lines = sum(isinstance(place, address.SerialAddress) for place in addresses)
    secured = any(isinstance(place, address.TlsAddress) for place in addresses)
    http = any(getattr(place, "scheme", "") in ("http", "https") for place in addresses)
    web = any(getattr(place, "scheme", "") in ("ws", "wss") for place in addresses)
    return memory_parts(limits) + [
        ("the hot functions' own tables", c_accel.memory_of(limits), ("queue_count_max", "consumer_count_max", "binding_count_max")),
        ("TLS", TLS_CONNECTION * limits.connection_count_max if secured else 0, ("connection_count_max",)),
        ("WebSocket", WEB_SOCKET * limits.connection_count_max if web else 0, ("connection_count_max",)),
        ("HTTP", HTTP if http else 0, ()),
        ("serial lines", lines * line_memory(limits), ("line_connection_count_max", "line_connection_room")),
        ("bridges", sum(bridge_memory(each.buffer_size) for each in bridges), ()),
        ("log", LOG if kept else 0, ()),
    ]


def total(*given):
    """Octets of `parts`."""
    return sum(octets for _, octets, _ in parts(*given))


def most(text):
    """The octets that all limits may add up to: memory_max, or without it (None) half of the machine's. Raises UsageError."""
    return machine() // 2 if text is None else octets(text)


def octets(text):
    """The octets that --memory-max allows. Raises UsageError."""
    size = data.octets_of(text) if isinstance(text, str) else text
    if not isinstance(size, int) or isinstance(size, bool) or size < 1 << 20:
        raise UsageError(f"memory_max is {text!r}; it must be at least 1M, as 256M or 2G, or a number of octets")
    return size


def fitting(given, most, *others):
    """The largest Limits with the numbers `given` that take at most `most` octets with `others` (as in `parts`). Raises UsageError, and
    ValueError where those given cannot be."""
    for row in ROWS:
        if row[0] in given:
            check_range(row, given[row[0]])
    low, high = 0, STEPS
    if total(between(given, low), *others) > most:
        raise UsageError(refusal(given, most, others))
    while low < high:
        middle = (low + high + 1) // 2
        if total(between(given, middle), *others) <= most:
            low = middle
        else:
            high = middle - 1
    return between(given, low)


def between(given, step):
    """Limits `step` of STEPS from LEAST to GATEWAY, those in `given` as they are, and what limits.check asks of the others. Raises
    ValueError where those that are given contradict each other."""
    chosen = {name: least + (GATEWAY[name] - least) * step // STEPS for name, least in LEAST.items()}
    chosen.update(given)

    def bound(name, choose, value):
        if name not in given:
            chosen[name] = choose(chosen[name], value)

    for share, count in (("queue_share_max", "queue_count_max"), ("binding_share_max", "binding_count_max")):
        if share in given:
            bound(count, max, chosen[share])
        bound(share, min, chosen[count])
    if "message_count_max" in given:
        bound("entry_count_max", max, chosen["message_count_max"] // 2)
    bound("message_count_max", min, 2 * chosen["entry_count_max"])
    if "properties_size_max" in given:
        bound("receive_buffer_size", max, chosen["properties_size_max"] + 32)
        bound("send_buffer_size", max, chosen["properties_size_max"] + HEADS)
    bound("properties_size_max", min, max(128, min(chosen["receive_buffer_size"] - 32, chosen["send_buffer_size"] - HEADS)))
    if "content_size_max" in given:
        bound("arena_size", max, (chosen["content_size_max"] + chosen["properties_size_max"] + 512) * 4 // 3 + 1)
    bound("content_size_max", min, max(1024, chosen["arena_size"] * 3 // 4 - chosen["properties_size_max"] - 512))
    return Limits(**chosen)


def refusal(given, most, others):
    """Why the numbers `given` cannot fit: the limits of the largest part that follows one of them."""
    limits = between(given, 0)
    needed = total(limits, *others)
    least = total(between({}, 0), *others)
    if least > most or not given:
        return f"a broker takes at least {least >> 20} MiB, and memory_max is {most >> 20} MiB"
    before = {part: size for part, size, _ in parts(between({}, 0), *others)}
    grown = sorted(((size - before[part], behind) for part, size, behind in parts(limits, *others)), reverse=True)
    names = [name for _, behind in grown[:3] for name in behind if name in given]
    return (
        f"the limits add up to {needed >> 20} MiB with the least of all that are not given, and memory_max is {most >> 20} MiB: "
        f"make {' or '.join(dict.fromkeys(names)) or 'what [limits] gives'} smaller, or memory_max larger; `leveret limits` prints "
        "where it goes"
    )


def table(parts):
    """`parts` as lines for people."""
    for name, size, behind in sorted(parts, key=lambda part: -part[1]):
        if size:
            yield f"{size / 1048576:10.2f} MiB  {name:38} {', '.join(behind)}".rstrip()
    yield f"{sum(part[1] for part in parts) / 1048576:10.2f} MiB  in all"

"""Health checks: 200 {"status": "ok"}, or 503 with {"status": "failed", "reason": ...} and what is missing; log-ins; feature flags."""

import ssl
import time
from typing import Any

from .. import troubles
from . import answers
from .answers import Answer, bad, written
from .call import Call
from .listing import Row
from .nodes import check_node

UNITS = {"days": 86400, "weeks": 604800, "months": 2592000, "years": 31536000}
AMQP = ("amqp", "amqps")
# RabbitMQ's names of protocols -> the listeners that serve them; all versions of AMQP come to one listener
NAMES = {
    **dict.fromkeys(("amqp", "amqp091", "amqp0.9.1", "amqp0-9-1", "amqp10", "amqp1.0", "amqp1-0"), AMQP),
    **dict.fromkeys(("amqp/ssl", "amqps"), ("amqps",)),
    **{name: (name,) for name in ("http", "https", "ws", "wss")},
}
PROTOCOL = {"amqps": "amqp/ssl"}


def ok(**more: Any) -> Answer:
    """The answer of a check that passed."""
    return answers.of({"status": "ok", **more})


def failed(reason: str, **more: Any) -> Answer:
    """The answer of a check that failed."""
    return Answer(503, written({"status": "failed", "reason": reason, **more}))


def alarms(call: Call) -> Answer:
    """/api/health/checks/alarms and local-alarms: the log cannot be written, publishers wait for room."""
    rows = troubles.alarms(call.broker)
    if rows:
        return failed("alarm(s) in effect", alarms=[{"node": call.server.node, "resource": name, "reason": why} for name, why in rows])
    return ok()


def well(call: Call) -> Answer:
    """A check of what one node cannot fail."""
    return ok()


def led(call: Call) -> Answer:
    """/api/health/checks/quorum-queues-without-elected-leaders/vhost/VHOST: the one node leads every queue."""
    call.host()
    return ok()


def connection_limit(call: Call) -> Answer:
    """/api/health/checks/below-node-connection-limit: a further client gets a place."""
    most, there = call.broker.limits.connection_count_max, len(call.broker.connections)
    return ok() if there < most else failed("connection limit is reached", limit=most, connections=there)


def node(call: Call) -> Answer:
    """/api/healthchecks/node[/NODE]: RabbitMQ's check of old, all in one."""
    if "node" in call.names:
        check_node(call)
    rows = troubles.alarms(call.broker)
    return answers.of({"status": "failed", "reason": "; ".join(why for _, why in rows)} if rows else {"status": "ok"})


def rebalanced(call: Call) -> Answer:
    """POST /api/rebalance/queues: the leaders of one node's queues are where they should be."""
    return Answer(204)


def alone(call: Call) -> Answer:
    """A check of what only a cluster can fail."""
    return ok(reason="single node cluster")


def port_listener(call: Call) -> Answer:
    """/api/health/checks/port-listener/PORT."""
    given = call.names["port"]
    if not (given.isascii() and given.isdigit() and len(given) < 6):
        raise bad("the port is no number")
    ports = [port for _, _, port in call.server.listeners]
    if int(given) in ports:
        return ok(port=int(given))
    return failed("No active listener", missing=int(given), ports=ports)


def protocol_listener(call: Call) -> Answer:
    """/api/health/checks/protocol-listener/PROTOCOL."""
    wanted = call.names["protocol"]
    there = [protocol for protocol, _, _ in call.server.listeners]
    for each in wanted.split(","):  # one of them is enough
        for protocol in NAMES.get(each.lower(), ()):
            if protocol in there:
                return ok(protocol=PROTOCOL.get(protocol, protocol))
    return failed("No active listener", missing=wanted, protocols=[PROTOCOL.get(each, each) for each in there])


def certificates(call: Call) -> Answer:
    """/api/health/checks/certificate-expiration/WITHIN/UNIT."""
    unit, within = call.names["unit"], call.names["within"]
    if unit not in UNITS or not (within.isascii() and within.isdigit() and len(within) < 6):
        raise bad(f"invalid expiration: a number of {', '.join(UNITS)}")
    limit = time.time() + int(within) * UNITS[unit]
    expired: list[Row] = []
    for path in call.server.certificates:
        try:
            ends = expiry_of(path)
        except (OSError, ValueError):
            continue
        if ends < limit:
            expired.append({"certfile": path, "certfile_expires_on": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends))})
    return failed("Certificates expiring", expired=expired) if expired else ok()


def expiry_of(path: str) -> float:
    """When the first certificate of a PEM file ends, seconds since 1970. Raises OSError, ValueError."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    begin = text.index("-----BEGIN CERTIFICATE-----")
    end = text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
    octets = ssl.PEM_cert_to_DER_cert(text[begin:end])
    try:
        at, _ = item(octets, 0)  # Certificate
        at, _ = item(octets, at)  # TBSCertificate (RFC 5280 section 4.1)
        if octets[at] == 0xA0:  # version
            at = behind(octets, at)
        for _ in range(3):  # serialNumber, signature, issuer
            at = behind(octets, at)
        at, _ = item(octets, at)  # validity
        at = behind(octets, at)  # notBefore
        start, size = item(octets, at)
        digits = octets[start : start + size].decode("ascii").rstrip("Z")
    except (IndexError, UnicodeError):
        raise ValueError(f"{path} is no certificate") from None
    if octets[at] == 0x17:  # UTCTime: years from 1950 to 2049
        digits = ("19" if digits >= "50" else "20") + digits
    return ssl.cert_time_to_seconds(time.strftime("%b %d %H:%M:%S %Y GMT", time.strptime(digits[:14], "%Y%m%d%H%M%S")))


def item(octets: bytes, at: int) -> tuple[int, int]:
    """(where its content begins, its size) of the DER item at `at`."""
    size = octets[at + 1]
    if size < 0x80:
        return at + 2, size
    count = size & 0x7F
    return at + 2 + count, int.from_bytes(octets[at + 2 : at + 2 + count], "big")


def behind(octets: bytes, at: int) -> int:
    """Where the item behind the one at `at` begins."""
    start, size = item(octets, at)
    return start + size


def attempts(call: Call) -> Answer:
    """/api/auth/attempts/NODE: log-ins of all protocols."""
    check_node(call)
    refused, good = [now - then for now, then in zip(attempt_counts(call), call.server.attempts_before, strict=True)]
    return answers.of(
        [{"protocol": "amqp", "auth_attempts": refused + good, "auth_attempts_failed": refused, "auth_attempts_succeeded": good}]
    )


def attempt_counts(call: Call) -> tuple[int, int]:
    """Log-ins that were refused, and the others."""
    return call.broker.counters["logins_refused"], call.broker.failures.logins


def forget_attempts(call: Call) -> Answer:
    """DELETE /api/auth/attempts/NODE: what was counted so far is not told from now on."""
    check_node(call)
    call.server.attempts_before = attempt_counts(call)
    return Answer(204)


def attempts_by_source(call: Call) -> Answer:
    """/api/auth/attempts/NODE/source: not counted one by one, as in RabbitMQ unless it is told to."""
    check_node(call)
    return answers.of([])


def feature_flags(call: Call) -> Answer:
    """/api/feature-flags: what clients ask for and this broker has."""
    return answers.of(
        [
            {"name": name, "desc": words, "doc_url": "", "state": "enabled", "stability": "stable", "provided_by": "leveret"}
            for name, words in FLAGS
        ]
    )


def enable_flag(call: Call) -> Answer:
    """PUT /api/feature-flags/NAME/enable: those that there are are on."""
    if call.names["name"] not in [name for name, _ in FLAGS]:
        raise bad("unsupported")
    return Answer(204)


FLAGS = (
    ("quorum_queue", "Queues of type quorum"),
    ("stream_queue", "Queues of type stream"),
)

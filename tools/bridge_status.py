"""The status of a bridge (ports/bridge/meter.py, a flat dict) as lines for people; who wants to compute takes `--json`.

    uplink: running  (up, gateway gw7, to broker.example:5671)
      rate        1,204.5 messages/s, 96.3 KB/s; 32 unconfirmed, 0 waiting, 0 tried again
      backlog     12,000 messages, 1.2 of 67.1 MB; the oldest waits for 45 s; full in 2 h 5 min at this rate
      since start 3,400,000 messages, 272.0 MB; replayed 12,000, returned 3
      last error  upstream broker.example:5671: the peer closed the stream

What is 0 among the counters is left out, and so is a line that would say nothing. A name that is not known here is shown as it is.
"""

import re
import time

SHOWN = {
    "bridge",
    "direction",
    "state",
    "reason",
    "upstream",
    "gateway",
    "messages_per_second",
    "octets_per_second",
    "unconfirmed",
    "waiting",
    "retrying",
    "last_error",
    "backlog",
    "backlog_octets",
    "backlog_octets_max",
    "oldest_age_s",
    "full_in_s",
    "bridged",
    "bridged_octets",
    "reported_s_ago",
}
SILENT_S = 5
UNIX_TIME = re.compile(r"until (\d{9,})")


def octets(count):
    """With three figures or so: 812 B, 96.3 KB, 1.2 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def span(seconds):
    """As 45 s, 12 min, 2 h 5 min, 3 d 4 h."""
    minutes = round(seconds) // 60
    if minutes < 1:
        return f"{round(seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 1440 else f"{minutes // 1440} d {minutes // 60 % 24} h"


def backlog(status):
    """The backlog; '' downwards, where the messages wait upstream."""
    if "backlog" not in status:
        return ""
    most = f" of {octets(status['backlog_octets_max'])}" if status["backlog_octets_max"] else ""
    text = f"{status['backlog']:,} messages, {octets(status['backlog_octets'])}{most}"
    if status["oldest_age_s"] is not None:
        text += f"; the oldest waits for {span(status['oldest_age_s'])}"
    return text + ("" if status["full_in_s"] is None else f"; full in {span(status['full_in_s'])} at this rate")


def rate(status):
    speed = f"{status['messages_per_second']:,} messages/s, {octets(status['octets_per_second'])}/s"
    return f"{speed}; {status['unconfirmed']:,} unconfirmed, {status['waiting']:,} waiting, {status['retrying']:,} tried again"


def since_start(status):
    counted = [
        f"{name.replace('_', ' ')} {value:,}" for name, value in status.items() if name not in SHOWN and isinstance(value, int) and value
    ]
    return "; ".join([f"{status['bridged']:,} messages, {octets(status['bridged_octets'])}"] + ([", ".join(counted)] if counted else []))


def reason(status):
    """With the time of day where it says until when."""
    return UNIX_TIME.sub(lambda match: time.strftime("until %H:%M:%S", time.localtime(int(match[1]))), status["reason"])


def lines(status):
    """The lines, without their ends."""
    why = reason(status)
    way = f"up, gateway {status['gateway']}, to" if "gateway" in status else f"{status['direction']}, upstream"
    yield f"{status['bridge']}: {status['state']}{', ' + why if why else ''}  ({way} {status['upstream']})"
    silent = span(status["reported_s_ago"]) + " ago: it may be gone" if status["reported_s_ago"] > SILENT_S else ""
    facts = (
        ("rate", rate(status)),
        ("backlog", backlog(status)),
        ("since start", since_start(status)),
        ("last error", status["last_error"]),
        ("reported", silent),
    )
    for title, text in facts:
        if text:
            yield f"  {title:<11} {text}"

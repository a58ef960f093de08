"""`leveret bridge status` for people: every fact of the status is a line or part of one, and what there is not is not said."""

import time

import pytest

from leveret.tools import bridge_status

UP = {
    "bridge": "uplink",
    "direction": "up",
    "state": "running",
    "reason": "",
    "upstream": "broker.example:5671",
    "gateway": "gw7",
    "messages_per_second": 1204.5,
    "octets_per_second": 96300,
    "unconfirmed": 32,
    "waiting": 0,
    "retrying": 0,
    "reconnects": 2,
    "last_error": "",
    "backlog": 12000,
    "backlog_octets": 1200000,
    "backlog_octets_max": 67100000,
    "oldest_age_s": 45,
    "full_in_s": 7500,
    "bridged": 3400000,
    "bridged_octets": 272000000,
    "replayed": 12000,
    "returned": 0,
    "dropped_unsent": 5,
    "reported_s_ago": 0.4,
}


def test_a_bridge_upwards():
    assert list(bridge_status.lines(UP)) == [
        "uplink: running  (up, gateway gw7, to broker.example:5671)",
        "  rate        1,204.5 messages/s, 96.3 KB/s; 32 unconfirmed, 0 waiting, 0 tried again",
        "  backlog     12,000 messages, 1.2 MB of 67.1 MB; the oldest waits for 45 s; full in 2 h 5 min at this rate",
        "  since start 3,400,000 messages, 272.0 MB; reconnects 2, replayed 12,000, dropped unsent 5",
    ]


def test_troubles_are_said_with_the_time_of_day_and_silence_with_its_length():
    at = 1763760000
    told = list(
        bridge_status.lines(
            dict(
                UP,
                state="backing off",
                reason=f"until {at} (in 3.2 s): no broker",
                last_error="no broker",
                oldest_age_s=None,
                full_in_s=None,
                backlog_octets_max=0,
                reported_s_ago=200,
            )
        )
    )
    assert told[0].startswith(f"uplink: backing off, until {time.strftime('%H:%M:%S', time.localtime(at))} (in 3.2 s): no broker  (")
    assert told[2] == "  backlog     12,000 messages, 1.2 MB"
    assert told[4:] == ["  last error  no broker", "  reported    3 min ago: it may be gone"]


def test_a_bridge_downwards_has_no_backlog_of_its_own():
    down = {name: value for name, value in UP.items() if "backlog" not in name and name not in ("gateway", "oldest_age_s", "full_in_s")}
    told = list(bridge_status.lines(dict(down, direction="down")))
    assert told[0] == "uplink: running  (down, upstream broker.example:5671)" and not [line for line in told if "backlog" in line]


@pytest.mark.parametrize(
    "seconds, said", [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h 0 min"), (90000, "1 d 1 h")]
)
def test_a_span_of_time(seconds, said):
    assert bridge_status.span(seconds) == said

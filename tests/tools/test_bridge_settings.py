"""The ranges of a [[bridge]]'s settings as tools/SETTINGS.md and ports/bridge/README.md tell them: the last good value and the first bad
one of each (ports/bridge/settings.py)."""

import pytest

from leveret.ports.bridge.settings import Settings

GIVEN = {"name": "b", "gateway": "g", "queue": "q", "exchange": "e", "upstream": "amqp://h/"}


def made(**changes):
    return Settings({name: value for name, value in {**GIVEN, **changes}.items() if value is not None})


def refused(**changes):
    with pytest.raises(ValueError) as told:
        made(**changes)
    return str(told.value)


@pytest.mark.parametrize(
    "name, least, most",
    [
        ("hops_max", 1, 255),
        ("prefetch", 1, 4000),
        ("backlog_octets_max", 1024, 1 << 50),
        ("refusal_attempts", 0, 1000000),
        ("heartbeat_seconds", 0, 3600),
        ("buffer_size", 2048, 1 << 28),
        ("frame_size_max", 8192, 1 << 24),
        ("connect_seconds", 0.01, 86400),
        ("stall_seconds", 0.01, 86400),
    ],
)
def test_numbers_have_a_range(name, least, most):
    for value in (least, most):
        assert getattr(made(**{name: value}), name) == value
    step = 1 if isinstance(least, int) else 0.001
    for value in (least - step, most + step, "5", True):
        assert name in refused(**{name: value}), value


@pytest.mark.parametrize(
    "name, most", [("name", 200), ("gateway", 200), ("queue", 255), ("exchange", 255), ("header_prefix", 127), ("stream", 255)]
)
def test_texts_have_so_many_octets_at_most(name, most):
    others = {"queue": None} if name == "stream" else {}
    for text in ("x" * most, "é" * (most // 2)):
        assert getattr(made(**{name: text, **others}), name) == text
    for text in ("x" * (most + 1), "é" * (most // 2 + 1)):
        told = refused(**{name: text, **others})
        assert told == f"{name} has {len(text.encode())} octets; it must have at most {most}"


def test_what_is_left_out_is_the_usual():
    found = made()
    assert (found.direction, found.header_prefix, found.hops_max, found.prefetch, found.refusal_attempts) == ("up", "", 8, 1000, 10)
    assert (found.heartbeat_seconds, found.connect_seconds, found.stall_seconds) == (15, 10, 30)
    assert (found.reconnect_seconds_min, found.reconnect_seconds_max, found.buffer_size, found.frame_size_max) == (0.5, 60, 262144, 131072)
    assert (found.replay_messages_per_second, found.replay_octets_per_second, found.backlog_full) == (0, 0, "wait")


def test_what_does_not_go_together():
    assert made(reconnect_seconds_min=7, reconnect_seconds_max=7).reconnect_seconds_min == 7
    assert refused(reconnect_seconds_min=8, reconnect_seconds_max=7) == "reconnect_seconds_min must not be above reconnect_seconds_max"
    assert "a queue or a stream" in refused(stream="s") and "a queue or a stream" in refused(queue=None)
    assert "it needs an exchange" in refused(exchange=None) and "it needs upstream" in refused(upstream=None)
    assert "the one upstream to take from" in refused(direction="down", queue=None, gateway=None)
    assert "is for direction up" in refused(direction="down")
    assert "is for a queue" in refused(queue=None, stream="s", backlog_octets_max=5000)
    assert "needs backlog_full" in refused(backlog_age_max="5m", backlog_octets_max=5000)
    assert "one of Y M D h m s" in refused(backlog_age_max="5x", backlog_octets_max=5000, backlog_full="drop-oldest")
    for upstream in (5, [], ["amqp://h/", 5], {}):
        assert "upstream must be a URL or a list of URLs" in refused(upstream=upstream)
    for headers in (5, {"a": 5}, ["a"]):
        assert "headers" in refused(headers=headers)

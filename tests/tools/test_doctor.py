"""What `leveret doctor` finds, function by function (tools/doctor.py): each finding at the bound from which on it is told, and not before.
The command as a whole, with a broker: tests/tools/test_commands.py."""

import resource
import types

import pytest

from leveret.core.version import VERSION
from leveret.ports import tls
from leveret.ports.http import health
from leveret.tools import address, doctor, log, manage, memory, serve

DAY_S = 86400


def levels(findings, word=""):
    """[(level, sentence)] of the findings with a word in their sentences."""
    return [(each["level"], each["sentence"]) for each in findings if word in each["sentence"]]


@pytest.fixture
def at_noon(monkeypatch):
    """The time stands still."""
    now = 1_800_000_000
    monkeypatch.setattr(doctor.time, "time", lambda: now)
    return now


@pytest.mark.parametrize(
    "left_s, found",
    [
        (40 * DAY_S, []),
        (30 * DAY_S, []),
        (30 * DAY_S - 1, [("note", "cert.pem ends in 30 days")]),
        (2 * DAY_S, [("note", "cert.pem ends in 2 days")]),
        (1, [("note", "cert.pem ends in 0 days")]),
        (0, [("wrong", "cert.pem has ended: clients refuse it")]),
        (-DAY_S, [("wrong", "cert.pem has ended: clients refuse it")]),
    ],
)
def test_a_certificate_is_told_a_month_before_its_end(monkeypatch, at_noon, left_s, found):
    asked = []
    monkeypatch.setattr(tls, "Certificates", lambda *given: asked.append(given))
    monkeypatch.setattr(health, "expiry_of", lambda path: at_noon + left_s)
    place = address.parse("amqps://127.0.0.1:5671?cert=cert.pem&key=key.pem&ca=ca.pem")
    assert levels(doctor.of_listener(place)) == found
    assert asked == [("cert.pem", "key.pem", "ca.pem", place.verify)]


def test_certificates_that_cannot_be_read_are_wrong_with_the_reason(tmp_path):
    place = address.parse(f"amqps://127.0.0.1:5671?cert={tmp_path}/none.pem&key={tmp_path}/none.key")
    ((level, sentence),) = levels(doctor.of_certificates(place))
    assert level == "wrong" and "none.pem" in sentence


def test_a_listener_without_tls_is_told_where_other_machines_reach_it():
    assert levels(doctor.of_listener(address.parse("amqp://127.0.0.1:5672"))) == []
    ((level, sentence),) = levels(doctor.of_listener(address.parse("amqp://0.0.0.0:5672")))
    assert level == "note" and "without TLS" in sentence


def test_a_serial_line_is_there_and_may_be_used(monkeypatch, tmp_path):
    device = tmp_path / "ttyX"
    place = address.parse(f"serial://{device}?baud=115200")
    assert levels(doctor.of_listener(place)) == [("wrong", f"{device} is not there")]
    device.write_text("")
    assert levels(doctor.of_listener(place)) == []
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: (path, mode) != (str(device), doctor.os.R_OK | doctor.os.W_OK))
    assert levels(doctor.of_listener(place)) == [("wrong", f"this user may not use {device}")]


@pytest.mark.parametrize("hard, is_wrong", [(1023, True), (1024, False), (resource.RLIM_INFINITY, False)])
def test_a_process_needs_a_thousand_files(monkeypatch, hard, is_wrong):
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda number: (10, hard))
    assert levels(doctor.of_machine(), "files here") == ([("wrong", f"a process may open {hard} files here")] if is_wrong else [])


def test_the_machine_s_memory_clock_and_forms(monkeypatch):
    monkeypatch.setattr(memory, "machine", lambda: 3 << 30)
    monkeypatch.setattr(doctor.c_accel, "is_chosen", lambda: True)
    found = list(doctor.of_machine())
    assert ("ok", "the hot functions run in C") in levels(found)
    assert levels(found, "3072 MiB of memory") and not levels(found, "the clock says")
    monkeypatch.setattr(doctor.time, "time", lambda: doctor.EPOCH_2025 - 1)
    monkeypatch.setattr(doctor.c_accel, "is_chosen", lambda: False)
    monkeypatch.setattr(doctor.c_accel, "install", lambda: "no C here")
    for stale, level in ((True, "wrong"), (False, "note")):
        monkeypatch.setattr(doctor.c_accel, "STALE", stale)
        found = list(doctor.of_machine())
        assert (level, "no C here") in levels(found) and levels(found, "the clock says")[0][0] == "wrong"


@pytest.mark.parametrize("free, level", [((64 << 20) - 1, "wrong"), (64 << 20, "ok")])
def test_a_disk_that_is_nearly_full_is_wrong(monkeypatch, tmp_path, free, level):
    monkeypatch.setattr(doctor.data, "free_octets", lambda directory: free)
    found = levels(doctor.of_directory(str(tmp_path)))
    assert found[0][0] == level and f"{free >> 20} MiB" in found[0][1]
    assert found[1] == ("ok", f"{tmp_path} has no log yet")


def test_a_directory_that_nobody_can_begin_with(monkeypatch, tmp_path):
    assert levels(doctor.of_directory(str(tmp_path / "none"))) == [("note", f"{tmp_path / 'none'} is not there: the broker makes it")]

    def refused(directory):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(log, "open_store", refused)
    assert levels(doctor.of_directory(str(tmp_path)))[-1] == ("wrong", f"{tmp_path} cannot be used: Input/output error")
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    assert levels(doctor.of_directory(str(tmp_path))) == [("wrong", f"this user may not write {tmp_path}")]


@pytest.mark.parametrize("damage, losses", [("a hole", ""), ("", "12 messages"), ("a hole", "12 messages")])
def test_a_damaged_log_is_wrong_and_its_store_is_closed(monkeypatch, tmp_path, damage, losses):
    closed = []
    store = types.SimpleNamespace(close=lambda: closed.append(True))
    monkeypatch.setattr(log, "open_store", lambda directory: store)
    monkeypatch.setattr(log, "Wanted", lambda store: types.SimpleNamespace(damage=lambda: damage, losses=lambda: losses, records=7))
    level, sentence = levels(doctor.of_directory(str(tmp_path)))[-1]
    assert level == "wrong" and sentence == "the log is damaged: " + "; ".join(filter(None, (damage, losses))) and closed == [True]


# A running broker

OVERVIEW = {
    "product": "Leveret",
    "version": VERSION,
    "uptime_ms": 61999,
    "publishers": {"waiting": 0, "reason": ""},
    "memory": {f"{pool}_{kind}": 50 for pool in ("blocks", "messages", "entries") for kind in ("used", "free")},
    "log": None,
}


def of_broker(monkeypatch, items=None, **changed):
    """[(level, sentence)] about a broker with this overview."""

    class Manager:
        def __init__(self, url):
            assert url == "amqp://there"

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def pages(self, name):
            return {name: {**OVERVIEW, **changed}}, items or {}

    monkeypatch.setattr(manage, "Manager", Manager)
    return levels(doctor.of_broker("amqp://there"))


def test_a_broker_that_is_well(monkeypatch):
    assert of_broker(monkeypatch) == [("ok", f"Leveret {VERSION} has run for 61 s")]
    assert of_broker(monkeypatch, version="0.0")[1] == ("note", f"it is version 0.0, and this command is of {VERSION}")


def test_publishers_that_wait_are_told_with_their_reason(monkeypatch):
    for reason, words in (("arena_size is used up", "arena_size is used up"), ("", "a queue is full")):
        found = of_broker(monkeypatch, publishers={"waiting": 3, "reason": reason})
        assert found[1:] == [("wrong", f"3 publishers wait: {words}")]


def test_a_pool_is_told_when_nine_tenths_are_used(monkeypatch):
    for used, is_told in ((90, False), (91, True)):
        for pool in ("blocks", "messages", "entries"):
            found = of_broker(monkeypatch, memory={**OVERVIEW["memory"], f"{pool}_used": used, f"{pool}_free": 100 - used})
            assert found[1:] == ([("wrong", f"{used} of 100 {pool} are used")] if is_told else [])


def test_queues_that_are_full_or_that_nobody_reads_are_counted(monkeypatch):
    rows = [
        {"name": "a", "full": False, "messages": 1, "consumers": 0},
        {"name": "b", "full": True, "messages": 9, "consumers": 1},
        {"name": "c", "full": False, "messages": 0, "consumers": 0},
        {"name": "d", "full": True, "messages": 9, "consumers": 0},
    ]
    assert of_broker(monkeypatch, {"queues": rows})[1:] == [
        ("wrong", "2 queues are full, as 'b': their publishers wait"),
        ("note", "2 queues have messages and no consumer, as 'a'"),
    ]
    assert of_broker(monkeypatch, {"queues": rows[2:3]})[1:] == []


def test_the_log_s_trouble_and_its_medium_s_life(monkeypatch):
    for kept, found in (
        ({"trouble": "no space left"}, [("wrong", "its log cannot be written: no space left")]),
        ({"trouble": "", "life_years": 1.9}, [("wrong", "at this rate the medium of the log lasts 1.9 years")]),
        ({"life_years": 2}, []),
        ({"life_years": None}, []),
    ):
        assert of_broker(monkeypatch, log=kept)[1:] == found


def test_counters_of_faults_are_told_with_what_to_do(monkeypatch):
    items = {"counters": [{"internal_errors": 2, "published": 9}, {"poisoned": 0, "dead_letters_lost": 1}]}
    assert of_broker(monkeypatch, items)[1:] == [("note", "internal_errors 2"), ("note", "dead_letters_lost 1")]


# A configuration


def test_a_file_with_passwords_is_the_broker_s_alone(tmp_path):
    path = tmp_path / "l.toml"
    path.write_text('[[user]]\nname = "a"\npassword = "a"\n')
    for mode, level in ((0o600, "note"), (0o640, "wrong"), (0o604, "wrong"), (0o700, "note")):
        path.chmod(mode)
        assert [each[0] for each in levels(doctor.of_configuration(str(path)), "passwords in the clear")] == [level], oct(mode)


def test_connections_need_files(monkeypatch, tmp_path):
    path = tmp_path / "l.toml"
    path.write_text("[limits]\nconnection_count_max = 500\n")
    limits = serve.settings(doctor.serving(str(path)))[1]
    needed = limits.connection_count_max + limits.surplus_count_max + serve.DESCRIPTORS_BESIDE
    for hard, count in ((needed, 0), (needed - 1, 1), (resource.RLIM_INFINITY, 0)):
        monkeypatch.setattr(doctor.resource, "getrlimit", lambda number, hard=hard: (10, hard))
        assert len(levels(doctor.of_configuration(str(path)), f"its connections need {needed} open files")) == count


def test_messages_in_memory_alone_are_told_and_the_directory_is_the_file_s(tmp_path):
    path = tmp_path / "l.toml"
    path.write_text("")
    assert levels(doctor.of_configuration(str(path)), "in memory only")[0][0] == "note"
    assert doctor.named_directory(str(path)) is None
    path.write_text(f'[data]\ndirectory = "{tmp_path}/there"\n')
    assert levels(doctor.of_configuration(str(path)), "in memory only") == []
    assert doctor.named_directory(str(path)) == f"{tmp_path}/there"
    path.write_text("queues = 3\n")
    assert doctor.named_directory(str(path)) is None

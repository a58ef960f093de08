"""Hostile clients beside honest ones, a minute in each form, and the canaries that an attack has to find."""

import concurrent.futures
import os
import random
import subprocess
import sys

import attack
import honest
import pytest
import schedule
from launch import CANARIES

MINUTES = 1.0
# canary: what the attack says of it
FOUND = {
    "dies": "the broker ended by itself",
    "stalls": "a question waited",
    "leaks": "memory:",
    "tells_tracebacks": "standard error:",
    "cuts_off": "was cut off while the broker lived",
    "loses": "missing",
    "fills_the_log": "lines in a minute",
    "keeps_messages": "in use when everybody has gone",
}


def begin(*arguments):
    """An attack as a process."""
    command = [sys.executable, os.path.join(attack.HERE, "attack.py"), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_nothing_that_a_peer_does_harms_another():
    """Every attacker, drawn by a seed, in both forms of the hot path side by side: no finding."""
    seed = os.environ.get("LEVERET_ATTACK_SEED") or str(random.SystemRandom().randrange(1 << 30))
    child = begin("--minutes", str(MINUTES), "--seed", seed)
    said = child.communicate()[0]
    print(said)
    assert child.returncode == 0, said[-4000:]
    for form in attack.FORMS:
        assert f"{form}: 0 findings" in said


def test_every_canary_has_its_words():
    assert set(FOUND) == set(CANARIES)


@pytest.fixture(scope="module")
def sung():
    """{canary: (what the attack said, exit status)}, one for each processor at a time: honest clients that wait for a turn of the processor
    are not at work yet when the canary sings."""
    given = ("--minutes", "0.3", "--seed", "1", "--form", "c", "--no-deeds", "--only", "half_headers", "--canary")

    def attacked(canary):
        child = begin(*given, canary)
        return child.communicate()[0], child.returncode

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(FOUND, pool.map(attacked, FOUND)))


@pytest.mark.parametrize("canary", sorted(FOUND))
def test_a_broker_that_is_deliberately_wrong_is_found(canary, sung):
    """An attack that finds nothing in it would prove nothing."""
    said, status = sung[canary]
    assert status == 1, said
    findings = [line for line in said.splitlines() if "FINDING" in line]
    assert any(FOUND[canary] in line for line in findings), said
    assert "--seed 1" in said, "a finding names its seed"


def test_a_finding_names_who_was_at_work(sung):
    said, _ = sung["dies"]
    assert "at work: half_headers 1." in said and "--only half_headers" in said, said


def test_the_schedule_follows_from_the_seed():
    names = list(schedule.attackers())
    assert schedule.schedule(names, 7, 300) == schedule.schedule(names, 7, 300) != schedule.schedule(names, 8, 300)
    assert schedule.deeds(7, 300) == schedule.deeds(7, 300) != schedule.deeds(8, 300)


def test_a_schedule_has_every_attacker_before_one_comes_again_and_ends_in_time():
    names = list(schedule.attackers())
    rows = sorted(row for lane in schedule.schedule(names, 3, 600) for row in lane)
    assert sorted(name for _, name, _, _ in rows[: len(names)]) == sorted(names)
    assert all(start + seconds <= 600 for start, _, seconds, _ in rows)
    assert len({(name, seed) for _, name, _, seed in rows}) == len(rows), "each attack has a seed of its own"


def test_every_attacker_says_what_it_does():
    assert all(len(function.__doc__ or "") > 20 for _, function in schedule.attackers().values())


@pytest.mark.parametrize(("ends", "stale"), [((100.2,), 0), ((100.2, 117), 0), ((117,), 1), ((99, 117), 1)])
def test_an_acknowledgement_was_known_when_it_was_old_at_the_first_end_behind_it(monkeypatch, ends, stale):
    sentences = []
    ledger = honest.Ledger("honest.work", sentences.append)
    monkeypatch.setattr(honest.time, "monotonic", lambda: now)
    now = 98
    ledger.publish(1)
    ledger.confirm(1)
    assert ledger.receive(1, redelivered=False)
    for now in sorted((100, *ends)):
        if now == 100:
            ledger.settle(1)
        else:
            ledger.broke()
    now = 118
    assert not ledger.receive(1, redelivered=True)
    assert len(sentences) == ledger.stale == stale

"""A few hundred seeds of the simulation, those that found something once, and the canaries that it has to catch."""

import multiprocessing

import pytest
import run
from canaries import CANARIES, CANARIES_1_0, SEEDS_MAX
from model import Wrong
from world import World
from world_1_0 import World10

from leveret.core.broker import engine

SEEDS = 240
SEEDS_1_0 = 60
FIRST = 100001


def in_parallel(seeds):
    """Run seeds on all cores: the failures, as lines that rerun them, and the counts."""
    total, failures = {}, []
    with multiprocessing.get_context("fork").Pool() as pool:
        for seed, counts, wrong in pool.imap_unordered(run.one, seeds, 5):
            run.add(total, counts)
            if wrong:
                failures.append("%s  # %s" % (run.rerun(seed), wrong[:500]))
    return failures, total


def test_what_was_found_once_stays_mended():
    """seeds.txt."""
    failures, _ = in_parallel(run.kept_seeds())
    assert not failures, "\n".join(failures)


def test_hundreds_of_seeds():
    """Nothing that is confirmed is lost, nothing settled and synced comes back, whatever the store does."""
    failures, total = in_parallel(range(FIRST, FIRST + SEEDS))
    print(run.summary(total, SEEDS, 0))
    assert not failures, "\n".join(failures)
    for name in (
        "cuts",
        "kills",
        "recovery_cuts",
        "flips",
        "lost",
        "troubles",
        "freed",
        "copied",
        "confirmed",
        "checked",
        "delivered",
        "delayed",
        "interrupted",
    ):
        assert total[name] > 0, "the seeds try no " + name


def test_seeds_with_clients_of_amqp_1_0():
    """Beside all that: exactly once over cut connections, links that are stolen and power cuts; transactions whole or not at all."""
    failures, total = in_parallel(range(run.MIXED + FIRST, run.MIXED + FIRST + SEEDS_1_0))
    print(run.summary(total, SEEDS_1_0, 0))
    assert not failures, "\n".join(failures)
    for name in ("cuts", "confirmed", "delivered", "attached_again", "resumed", "exactly_once", "transactions"):
        assert total[name] > SEEDS_1_0 // 4, "the seeds try no " + name


@pytest.mark.parametrize("owner, name, wrong", CANARIES_1_0, ids=[each[1] for each in CANARIES_1_0])
def test_a_broker_of_amqp_1_0_that_forgets_is_caught(monkeypatch, owner, name, wrong):
    """What the accounts are for: each of these is caught within so many seeds."""
    monkeypatch.setattr(owner, name, wrong)
    for seed in range(run.MIXED + 1, run.MIXED + SEEDS_MAX + 1):
        try:
            World10(seed, mode="batch").run()
        except Wrong as caught:
            print("%s: caught with seed %d: %s" % (name, seed, str(caught)[:200]))
            return
    raise AssertionError("%s went through %d seeds" % (name, SEEDS_MAX))


def test_a_seed_reruns_exactly():
    """The same counts, to the last one."""
    assert World10(run.MIXED + 7).run() == World10(run.MIXED + 7).run()
    for delayed in (False, True):
        assert World(7, delayed=delayed).run() == World(7, delayed=delayed).run()


def test_a_seed_is_the_same_story_in_c():
    """Every form of the engine lives through the same."""
    for seed in (1, 3, 5):
        assert run.form_of(seed) is not engine.Plain, "the C module is not there: pip install -e . builds it where there is a compiler"
        assert run.one(seed) == run.one(seed, form=engine.Plain)


@pytest.mark.parametrize("canary, spoils_store, mode, delayed", CANARIES, ids=[row[0].__name__ for row in CANARIES])
def test_canaries_are_caught(canary, spoils_store, mode, delayed):
    """A broker that is deliberately wrong does not get through."""
    for seed in range(1, SEEDS_MAX + 1):
        spoiled = {"spoil_store": canary} if spoils_store else {"spoil_journal": canary}
        try:
            World(seed, mode=mode, delayed=delayed, **spoiled).run()
        except Wrong as caught:
            print("%s: caught with seed %d: %s" % (canary.__name__, seed, str(caught)[:200]))
            return
    raise AssertionError("%s went through %d seeds" % (canary.__name__, SEEDS_MAX))

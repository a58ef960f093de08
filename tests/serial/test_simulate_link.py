"""Seeds of the serial link's simulation, those that found something once, and the canaries that it has to catch."""

import pytest
import simulate_link
from link_canaries import CANARIES, SEEDS_MAX
from link_world import World

SEEDS = 25
FIRST = 200001


def test_what_was_found_once_stays_mended():
    _, _, failures = simulate_link.run_all(simulate_link.kept_seeds(), None)
    assert not failures, "\n".join(failures)


def test_tens_of_seeds():
    """Nothing is lost, doubled or altered; nothing ends for nothing; when it is calm, all arrives."""
    total, _, failures = simulate_link.run_all(range(FIRST, FIRST + SEEDS), None)
    print(total)
    assert not failures, "\n".join(failures)
    for name in total:
        assert total[name] > 0, "the seeds try no " + name


def test_a_seed_reruns_exactly():
    assert World(5).run() == World(5).run()


@pytest.mark.parametrize("canary, kind", CANARIES, ids=[row[0].__name__ for row in CANARIES])
def test_canaries_are_caught(canary, kind):
    """A link that is deliberately wrong does not get through."""
    for seed in range(1, SEEDS_MAX + 1):
        try:
            World(seed, spoil=canary, kind=kind).run()
        except Exception as caught:  # whatever is raised is what the canary is for
            print("%s: caught with seed %d: %r" % (canary.__name__, seed, caught))
            return
    raise AssertionError("%s went through %d seeds" % (canary.__name__, SEEDS_MAX))

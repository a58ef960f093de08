"""Decorrelated jitter: bounded, spread, and back to the base when asked."""

from leveret.core.bridge.backoff import Backoff


def test_each_pause_lies_between_the_base_and_three_times_the_one_before():
    backoff = Backoff(100, 5000)
    random = 12345
    before = 100
    for _ in range(200):
        random = (random * 1103515245 + 12345) & 0x3FFFFFFF
        pause = backoff.next_ms(random)
        assert 100 <= pause <= min(before * 3, 5000)
        before = pause


def test_the_longest_pauses_reach_the_cap_and_stay():
    backoff = Backoff(100, 1000)
    pauses = []
    longest = 100
    for _ in range(5):
        longest = min(longest * 3, 1000)
        pauses.append(backoff.next_ms(longest - 100))
        if longest == 1000:
            assert backoff.next_ms(3 * 1000 - 100) == 1000
    assert pauses == [300, 900, 1000, 1000, 1000]


def test_random_numbers_spread_the_pauses():
    pauses = set()
    for number in range(0, 1000, 10):
        pauses.add(Backoff(500, 30000).next_ms(number * 1000003 & 0x3FFFFFFF))
    assert len(pauses) > 60


def test_reset_starts_over():
    backoff = Backoff(100, 5000)
    for _ in range(10):
        backoff.next_ms(0x3FFFFFFF)
    backoff.reset()
    assert backoff.next_ms(0x3FFFFFFF) <= 300

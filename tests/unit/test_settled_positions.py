"""Which positions of a queue are settled, as ranges and pages of bits, says the same as a plain set of them (log/settled_positions.py)."""

from same_random import Random

from leveret.core.log.settled_positions import PAGE, Settled, add_range, end_of

MOST = 4 * PAGE


def same(found, wanted, asked):
    """A Settled says of the positions `asked`, and of ranges between them, what the set `wanted` says."""
    assert found.end == (max(wanted) + 1 if wanted else 0)
    for position in asked:
        assert found.has(position) == (position in wanted), position
        behind = position
        while behind in wanted:
            behind += 1
        assert found.behind(position) == behind, position
        if behind > position:
            assert found.covers(position, behind) and not found.covers(position, behind + 1), position
        assert found.covers(position, position)
    for first, end in found.ranges:
        assert first % PAGE == end % PAGE == 0 and first < end
    for (_, end), (first, _) in zip(found.ranges, found.ranges[1:]):
        assert end < first, "ranges rise and do not touch"
    for number, bits in found.pages.items():
        count = sum([bin(each).count("1") for each in bits])
        assert found.counts[number] == count and 0 < count < PAGE, "a page that is full is a range"


def edges():
    """Positions around the borders of pages."""
    return [position for page in range(5) for position in range(max(page * PAGE - 2, 0), page * PAGE + 3)]


def test_ranges_within_a_page_over_borders_and_of_whole_pages():
    for ranges in (
        ((0, 1),),
        ((0, PAGE),),
        ((0, PAGE - 1), (PAGE - 1, PAGE)),
        ((5, PAGE + 5), (0, 5)),
        ((PAGE - 1, PAGE + 1),),
        ((1, 3 * PAGE),),
        ((0, 3 * PAGE - 1),),
        ((PAGE, 2 * PAGE), (3 * PAGE, 4 * PAGE), (2 * PAGE, 3 * PAGE)),
        ((PAGE + 7, PAGE + 9), (PAGE, 2 * PAGE)),
        ((0, PAGE), (7, 9), (PAGE - 3, PAGE + 3)),
        ((10, 20), (10, 20), (15, 25)),
        ((2 * PAGE, 2 * PAGE),),
    ):
        found, wanted = Settled(), set()
        for first, end in ranges:
            found.add(first, end)
            wanted.update(range(first, end))
            if wanted:
                same(found, wanted, edges() + [first, end - 1, end, 6, 8, 12, 22])


def test_positions_one_by_one_in_any_order_become_one_range():
    found = Settled()
    order = list(range(PAGE, 2 * PAGE))
    Random(3).shuffle(order)
    for number, position in enumerate(order):
        assert not found.has(position)
        found.add_one(position)
        assert found.has(position)
        if number % 400 == 0:
            same(found, set(order[: number + 1]), edges() + order[:50])
    assert found.ranges == [(PAGE, 2 * PAGE)] and not found.pages and not found.counts
    found.add_one(PAGE + 3)
    assert found.ranges == [(PAGE, 2 * PAGE)] and not found.pages


def test_any_ranges_say_the_same_as_a_set():
    chance = Random(11)
    for _ in range(5):
        found, wanted = Settled(), set()
        for _ in range(14):
            first = chance.below(MOST)
            end = min(first + chance.choice((1, 2, 100, PAGE, PAGE + 77, 2 * PAGE)), MOST)
            first = first if chance.below(3) else first // PAGE * PAGE
            found.add(first, end)
            wanted.update(range(first, end))
        same(found, wanted, edges() + [chance.below(MOST + 10) for _ in range(40)])


def test_what_lies_below_a_position_is_forgotten_by_the_page():
    """And a position of a page that is kept is known as before; forgetting is never undone."""
    found = Settled()
    found.add(3, 9)
    found.add(PAGE, 2 * PAGE)
    found.add(2 * PAGE + 3, 2 * PAGE + 9)
    found.forget_below(PAGE - 1)
    assert found.lowest == 0 and found.has(3)
    found.forget_below(2 * PAGE + 5)
    assert found.lowest == 2 and not found.ranges and list(found.pages) == list(found.counts) == [2]
    assert not found.has(3) and found.has(2 * PAGE + 3) and found.end == 2 * PAGE + 9
    found.forget_below(PAGE)
    assert found.lowest == 2
    found.add(4 * PAGE, 6 * PAGE)
    found.forget_below(5 * PAGE)
    assert found.ranges == [(4 * PAGE, 6 * PAGE)] and not found.pages, "a range goes when all of it is below"
    found.forget_below(6 * PAGE)
    assert not found.ranges


def test_ranges_that_touch_are_one():
    for added, wanted in (
        ((0, 5), [(0, 5), (10, 20), (30, 40)]),
        ((0, 10), [(0, 20), (30, 40)]),
        ((0, 9), [(0, 9), (10, 20), (30, 40)]),
        ((20, 30), [(10, 40)]),
        ((21, 29), [(10, 20), (21, 29), (30, 40)]),
        ((12, 15), [(10, 20), (30, 40)]),
        ((0, 50), [(0, 50)]),
        ((40, 45), [(10, 20), (30, 45)]),
        ((41, 45), [(10, 20), (30, 40), (41, 45)]),
    ):
        ranges = [(10, 20), (30, 40)]
        add_range(ranges, *added)
        assert ranges == wanted, added
    ranges = [(10, 20), (30, 40), (50, 60)]
    for position, end in ((9, None), (10, 20), (19, 20), (20, None), (29, None), (30, 40), (39, 40), (40, None), (59, 60), (60, None)):
        assert end_of(ranges, position) == end, position
    assert end_of([], 0) is None

"""Topic routing: its cost follows the patterns that fit, not the number of bindings; counted in looks into the tree, not in time."""

from leveret.core.exchange.types.topic import Type
from leveret.core.limits import GATEWAY
from leveret.core.patterns.topic import Topic


class Counting(dict):
    """A node's children that count how often they are looked into."""

    looks = 0

    def get(self, key):
        Counting.looks += 1
        return self[key] if key in self else None


def counting(node):
    """The same tree with counting children."""
    children = Counting()
    for word in node[0]:
        children[word] = counting(node[0][word])
    return [children, node[1], node[2]]


def looks(patterns, key):
    """(destinations found, looks into the tree) for a key."""
    tree = Topic()
    for pattern in patterns:
        tree.add(pattern, pattern)
    tree.root = counting(tree.root)
    Counting.looks = 0
    return sorted(tree.match(key)), Counting.looks


MATCHING = [b"site7.*.temperature", b"site7.device3.#", b"#.temperature"]


def others(count):
    """Patterns of all shapes that do not fit site7.device3.temperature."""
    shapes = (b"site%d.device3.pressure", b"*.device%d.humidity", b"#.metric%d", b"site7.device%d.voltage", b"site%d.#.x", b"*.*.m%d")
    return [shapes[number % len(shapes)] % (number + 100) for number in range(count)]


def test_the_cost_does_not_grow_with_bindings_that_do_not_match():
    few = looks(MATCHING + others(7), b"site7.device3.temperature")
    many = looks(MATCHING + others(1200), b"site7.device3.temperature")
    assert few[0] == many[0] == sorted(MATCHING)
    assert many[1] <= 2 * few[1], (few, many)


def test_many_loose_words_cost_no_more_than_nodes_by_words():
    """A pattern of many # on a key of many equal words: no node is visited twice for one word."""
    pattern = b".".join([b"#", b"a"] * 60)
    found, count = looks([pattern], b".".join([b"a"] * 100))
    assert found == [pattern]
    assert count < 4 * 120 * 100, count


class Draws:
    """The same letters in every run."""

    def __init__(self):
        self.state = 1

    def __call__(self, letters):
        self.state = (self.state * 1103515245 + 12345) & 0x3FFFFFFF
        place = (self.state >> 16) % len(letters)
        return letters[place : place + 1]


def test_as_many_patterns_of_many_loose_words_as_one_client_may_bind_cost_a_bounded_number_of_looks():
    """A word behind a second # may fit at each word of a key: it counts for many bindings (506 when they are used up)."""
    draw = Draws()
    patterns, share = [], GATEWAY["binding_share_max"]
    while share > 0:
        patterns.append(b".".join([b"#." + draw(b"ab*") for _ in range(12)]))
        share -= Type.weight(None, patterns[-1], {})
    assert 10 < len(patterns) < 100
    assert looks(patterns, b".".join([draw(b"ab") for _ in range(125)]))[1] < 500000
    assert [Type.weight(None, pattern, {}) for pattern in (b"a", b"a.*.#", b"#.a.b.c.#", b"#", b"#.a.#.b")] == [1, 1, 2, 1, 18]


def test_wild_cards_in_a_key_are_words():
    tree = Topic()
    for pattern in (b"a.*", b"a.#", b"a.b"):
        tree.add(pattern, pattern)
    assert sorted(tree.match(b"a.*")) == sorted(tree.match(b"a.#")) == [b"a.#", b"a.*"]


def test_removing_leaves_nothing_behind():
    tree = Topic()
    patterns = MATCHING + others(60)
    for pattern in patterns:
        tree.add(pattern, pattern)
        tree.add(pattern, "twice")
    for pattern in patterns:
        tree.remove(pattern, "twice")
        tree.remove(pattern, pattern)
    assert tree.root[0] == {} and tree.root[1] == []

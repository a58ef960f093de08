"""The bindings of an exchange laid flat, so that C finds the queues for a key that the route cache does not know (match.c).

A tree is laid flat when routes through it have been asked for often enough since its last change to be worth it; until then, and for all
that takes more than exchange and key, Python finds the way. What C knows is forgotten with the route cache, whenever a binding changes.
"""

from array import array

from ._hot import ffi, lib

ASKED_SHARE = 16  # a tree of n bindings is laid flat after n / ASKED_SHARE routes
ASKED_LEAST = 4  # and not before: where queues come and go, each change is followed by a few
WAYS_MAX = 32  # exchanges, for each user that publishes there: LEVERET_WAYS_MAX of hot.h


class Matcher:
    """One exchange's tree. `matcher`: the C side, None until it was laid flat."""

    def __init__(self, exchange):
        self.exchange = exchange
        self.changes = exchange.changes
        self.asked = 0
        self.matcher = None

    def is_current(self, exchange):
        """True when this is the exchange as it is now."""
        return self.exchange is exchange and self.changes == exchange.changes

    def lay_flat(self):
        """Make the C side."""
        nodes, words, ends = flat(root_of(self.exchange), self.exchange.type == "direct")
        count = len(nodes) // 7
        size = 8
        while size < 2 * count:
            size *= 2
        self.name = self.exchange.name.encode("utf-8")
        self.name_at = ffi.from_buffer("uint8_t[]", self.name)
        self.kept = [nodes, words, ends]
        made = self.matcher = ffi.new("leveret_matcher *")
        made.node_count = count
        made.index_size = size
        made.whole = self.exchange.type == "direct"
        made.nodes = ffi.from_buffer("int32_t[]", nodes)
        made.words = ffi.from_buffer("uint8_t[]", words)
        made.ends = ffi.from_buffer("int32_t[]", ends)
        for name, length in (("index", size), ("stamps", count), ("here", count), ("ahead", count), ("staying", count)):
            self.kept.append(ffi.new("int32_t[]", length))
            setattr(made, name, self.kept[-1])
        lib.leveret_index(made)

    def targets(self, key):
        """The handles of the queues for a key, each once; more than 64: the first ones are left out, for 65 stands for too many."""
        handles = ffi.new("int32_t[64]")
        count = lib.leveret_match(self.matcher, key, len(key), handles)
        return list(handles[0 : min(count, 64)]), count


def root_of(exchange):
    """The bindings as a tree of core/patterns/topic.py's nodes: [children by word, destinations, ...]."""
    if exchange.type == "topic":
        return exchange.tree.root
    if exchange.type == "fanout":
        return [{b"#": [{}, exchange.destinations]}, []]
    return [{key: [{}, exchange.destinations[key]] for key in exchange.destinations}, []]


def flat(root, whole):
    """(nodes, words, queues) as match.c reads them; `whole`: a key is one word, and there are no wild cards."""
    nodes, words, ends = array("i"), bytearray(), array("i")
    waiting = [(root, -1, b"", False)]
    for node, parent, word, is_word in waiting:
        number = len(nodes) // 7
        children, destinations = node[0], node[1]
        nodes.extend((parent, len(words) if is_word else -1, len(word), -1, -1, len(ends), len(destinations)))
        ends.extend([queue.handle for queue in destinations])
        if is_word:
            words += word
        elif parent >= 0:
            nodes[7 * parent + (3 if word == b"*" else 4)] = number
        for child in children:
            waiting.append((children[child], number, child, whole or child not in (b"*", b"#")))
    words += b"\0"
    ends.append(-1)
    return nodes, words, ends


class Ways:
    """What C knows of the exchanges of one broker. `table` is the C side."""

    def __init__(self, tables):
        self.matchers = {}  # by the exchange's name
        self.table = ffi.new("leveret_ways *")
        self.table.octets_size = len(tables.route_octets)
        self.table.targets_size = len(tables.route_targets)
        self.kept = {}  # what the rows point to
        self.places = {}  # the row of a user and an exchange
        self.named = {}  # by the exchange's name: what its row of `named` points to

    def see(self, user, exchange):
        """A route through `exchange` was looked up for the user with this number, who may publish there."""
        known = self.matchers.get(exchange.name)
        if known is None or not known.is_current(exchange):
            known = self.matchers[exchange.name] = Matcher(exchange)
        known.asked += 1
        if known.matcher is None:
            if known.asked < ASKED_LEAST or known.asked * ASKED_SHARE < len(exchange.bindings):
                return
            known.lay_flat()
        place = self.places.get((user, exchange.name))
        if place is None:
            place = self.places[(user, exchange.name)] = len(self.places) % WAYS_MAX
        row = self.table.rows[place]
        row.user = user
        row.name_size = len(known.name)
        row.name = known.name_at
        row.matcher = known.matcher
        self.kept[place] = (known, known.matcher)
        self.table.count = max(self.table.count, place + 1)

    def see_names(self, exchange_name, names):
        """Routes through an exchange depend on the headers with these names (bytes)."""
        name = exchange_name.encode("utf-8")
        if name in self.named or len(self.named) == WAYS_MAX:
            return
        packed = b"".join(bytes((len(each),)) + each for each in names)
        kept = ffi.from_buffer("uint8_t[]", name), ffi.from_buffer("uint8_t[]", packed), name, packed
        row = self.table.named[len(self.named)]
        row.name_size, row.name, row.size, row.names = len(name), kept[0], len(packed), kept[1]
        self.named[name] = kept
        self.table.named_count = len(self.named)

    def forget(self):
        """What exchanges, bindings or queues there are has changed."""
        self.table.count = self.table.named_count = 0
        self.named = {}
        self.places = {}
        if len(self.matchers) > WAYS_MAX:
            self.matchers = {}

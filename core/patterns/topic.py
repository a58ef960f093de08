"""Topic patterns (0-9-1 section 3.1.3.3): words between dots; * is one word, # is none or more.

A tree of words. A node is a list [children by word, destinations by binding, stamp]. Matching walks the nodes whose words fit the key so
far, so its cost follows the patterns that fit so far, not the number of bindings; it does not recurse (a key may have 128 words). The stamp
of a # is the word for which it is already in the list of nodes that stay, so that a pattern of many # costs no more than its nodes for each
word.
"""

_CHILDREN = 0
_ENDS = 1
_STAYS = 2


class Topic:
    """The bindings of one topic exchange. Patterns and keys are bytes."""

    def __init__(self):
        self.root = new_node()
        self.stamp = 0  # counts the words of all keys

    def add(self, pattern, destination):
        """Add one binding."""
        node = self.root
        for word in words_of(pattern):
            if word not in node[_CHILDREN]:
                node[_CHILDREN][word] = new_node()
            node = node[_CHILDREN][word]
        node[_ENDS].append(destination)

    def remove(self, pattern, destination):
        """Remove one binding that was added, and the nodes that no other binding uses."""
        path = [self.root]
        words = words_of(pattern)
        for word in words:
            path.append(path[-1][_CHILDREN][word])
        path[-1][_ENDS].remove(destination)
        while len(path) > 1:
            node = path.pop()
            if node[_CHILDREN] or node[_ENDS]:
                return
            del path[-1][_CHILDREN][words[len(path) - 1]]

    def match(self, key):
        """The destinations of all bindings whose pattern fits `key`; a destination with several bindings may come more than once."""
        self.stamp += 1
        here = [self.root]
        staying: list = []
        loose(here, staying, self.stamp)
        for word in words_of(key):
            self.stamp += 1
            stamp = self.stamp
            ahead = []
            plain = word != b"#" and word != b"*"  # in a key * and # are words as any other, and no pattern can name them
            for node in staying:
                node[_STAYS] = stamp
            for nodes in (here, staying):
                for node in nodes:
                    children = node[_CHILDREN]
                    if children:  # each node has one parent, which was reached once: so is the node
                        child = children.get(word) if plain else None
                        if child is not None:
                            ahead.append(child)
                        child = children.get(b"*")
                        if child is not None:
                            ahead.append(child)
            loose(ahead, staying, stamp)
            here = ahead
            if not here and not staying:
                return []
        destinations = []
        for nodes in (here, staying):
            for node in nodes:
                destinations.extend(node[_ENDS])
        return destinations


def new_node():
    """A new node, without children and destinations."""
    return [{}, [], 0]


def words_of(text):
    """The words of a key or pattern; an empty one has none."""
    return text.split(b".") if text else ()


def loose(here, staying, stamp):
    """Add the # children of all reached nodes to the list of nodes that stay, once: # fits no word at all, and stays for the words to
    come."""
    for nodes in (here, staying):  # the second list grows during the loop: # behind #
        for node in nodes:
            child = node[_CHILDREN].get(b"#")
            if child is not None and child[_STAYS] != stamp:
                child[_STAYS] = stamp
                staying.append(child)

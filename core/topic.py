"""Topic patterns (0-9-1 section 3.1.3.3): words between dots; * is one word, # is none or more.

A tree of words. A node is a list [children by word, destinations by binding]. Matching walks all nodes that can be reached word by word,
so its cost follows the patterns that fit so far, not the number of bindings; it does not recurse (a key may have 128 words).
"""

_CHILDREN = 0
_ENDS = 1


class Topic:
    """The bindings of one topic exchange. Patterns and keys are bytes."""

    def __init__(self):
        self.root = [{}, []]

    def add(self, pattern, destination):
        """Add one binding."""
        node = self.root
        for word in words_of(pattern):
            if word not in node[_CHILDREN]:
                node[_CHILDREN][word] = [{}, []]
            node = node[_CHILDREN][word]
        node[_ENDS].append(destination)

    def remove(self, pattern, destination):
        """Remove one binding that was added, and the nodes that only it used."""
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
        """The destinations of all bindings whose pattern fits `key`; one that is bound more than once may come more than once."""
        here = [(self.root, False)]
        loose(here)
        for word in words_of(key):
            ahead = []
            for node, stays in here:
                if stays:
                    ahead.append((node, True))
                children = node[_CHILDREN]
                for name in (word, b"*"):
                    child = children.get(name)
                    if child is not None and not (name == b"#" or is_in(ahead, child)):
                        ahead.append((child, False))
            loose(ahead)
            here = ahead
            if not here:
                return []
        found = []
        for node, _ in here:
            found.extend(node[_ENDS])
        return found


def words_of(text):
    """The words of a key or pattern; an empty one has none."""
    return text.split(b".") if text else ()


def loose(nodes):
    """Add the # children of all nodes reached: # fits no word at all, and stays for the words to come."""
    for node, _ in nodes:
        child = node[_CHILDREN].get(b"#")
        if child is not None and not is_in(nodes, child, True):
            nodes.append((child, True))


def is_in(nodes, node, stays=False):
    """True when `node` is reached already, in the same way."""
    for known, known_stays in nodes:
        if known is node and known_stays == stays:
            return True
    return False

"""Long lists in JSON answers of a bounded size, page by page.

A place in a list is told by a number of the item's identity, and the items go in the order of these numbers: a place is short, and stays
right when something is made or removed between two pages. The numbers are of one run of the broker: the hash that the interpreter has of
each string anyway, or thousands of bindings would take too long for one turn. An item that no page can hold, or that JSON cannot write, is
named instead.
"""

from ..shim import json_text, number_of

NEXT_SIZE = 128  # octets that ,"next":["permissions","0123456789abcdef0123"] and the brackets of a page take at most
NAMED_MAX = 128  # characters of the sentence about an item that is left out


def written(place):
    """A place as it stands in `next`: which run of the broker it is of, and the number."""
    return "%04x%016x" % (number_of("run") & 0xFFFF, place)


def read(text):
    """The number of a written place. Raises ValueError for that of another run."""
    try:
        place = int(text[4:], 16)
    except ValueError:
        place = -1
    if place < 0 or written(place) != text:
        raise ValueError("'after' is of an earlier run of this broker: ask for the first page again")
    return place


def page(head, sections, after, size_max):
    """The JSON text of {head..., "items": {section: [...], "left_out": [sentence...]}, "next": place or null}, at most `size_max` octets.

    `sections`: (name, iterable of (identity, subject), function of a subject: its item); `after`: the `next` of the page before, or None.
    Raises ValueError for a place that does not exist.
    """
    section, place = 0, 0
    if after is not None:
        names = [each[0] for each in sections]
        if not isinstance(after, list) or len(after) != 2 or after[0] not in names or not isinstance(after[1], str):
            raise ValueError("'after' is not the 'next' of another page")
        section, place = names.index(after[0]), read(after[1])
    filled = Page(size_max - len(json_text(head).encode("utf-8")) - NEXT_SIZE)
    for name, subjects, make in sections[section:]:
        if not filled.add(name, subjects, make, place):
            break
        place = 0
    whole = dict(head)
    whole["next"] = filled.next
    text = json_text(whole)
    return text[:-1] + ',"items":{' + ",".join(['"%s":[%s]' % (name, ",".join(items)) for name, items in filled.lists]) + "}}"


class Page:
    """A page that is being filled; `room`: octets that are left."""

    def __init__(self, room):
        self.room = room
        self.count = 0
        self.lists = []  # (name, [JSON text])
        self.named = []
        self.next = None

    def add(self, name, subjects, make, begin):
        """Put the items of a section from the place `begin` on the page; false when the page is full."""
        waiting = []
        for identity, subject in subjects:
            place = number_of(identity)
            if place >= begin:
                waiting.append((place, subject))
        waiting.sort(key=lambda row: row[0])
        items: list = []
        self.room -= len(name) + 6
        if waiting:
            self.lists.append((name, items))
        for place, subject in waiting:
            if not self.put(name, items, make, subject):
                self.next = [name, written(place)]
                return False
        return True

    def put(self, name, items, make, subject):
        """Put one item on the page; false when the item belongs on the next page."""
        try:
            written = json_text(make(subject))
        except ValueError as error:
            return self.name(str(error))
        size = len(written.encode("utf-8")) + 1
        if size > self.room:
            return False if self.count else self.name("one of the %s left out: it takes %d octets" % (name, size))
        self.room -= size
        self.count += 1
        items.append(written)
        return True

    def name(self, sentence):
        """Put a sentence about a left-out item on the page; false when the sentence belongs on the next page."""
        written = json_text(sentence[:NAMED_MAX])
        size = len(written.encode("utf-8")) + (1 if self.named else 16)
        if size > self.room and self.count:
            return False
        if not self.named:
            self.lists.insert(0, ("left_out", self.named))
        self.room -= size
        self.count += 1
        self.named.append(written)
        return True

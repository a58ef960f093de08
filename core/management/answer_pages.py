"""Long lists in JSON answers of a bounded size, page by page.

A place in a list is told by a digest of the item's identity, and the items go in the order of their digests: a place is short, and stays
right when something is made or removed between two pages. An item that no page can hold, or that JSON cannot write, is named instead.
"""

import binascii
import hashlib

from ..shim import json_text

NEXT_SIZE = 128  # octets that ,"next":["permissions","0123456789abcdef"] and the brackets of a page take at most
NAMED_MAX = 128  # characters of the sentence about an item that is left out


def place_of(identity):
    """Where an item stands: 16 characters."""
    return str(binascii.hexlify(hashlib.sha256(identity.encode("utf-8")).digest()[:8]), "utf-8")


def page(head, sections, after, size_max):
    """The JSON text of {head..., "items": {section: [...], "left_out": [sentence...]}, "next": place or null}, at most `size_max` octets.

    `sections`: (name, function that lists (identity, function that makes the item)); `after`: the `next` of the page before, or None.
    Raises ValueError for a place that does not exist.
    """
    begin = 0
    if after is not None:
        names = [name for name, _ in sections]
        if not isinstance(after, list) or len(after) != 2 or after[0] not in names or not isinstance(after[1], str):
            raise ValueError("'after' is not the 'next' of another page")
        begin = names.index(after[0])
    filled = Page(size_max - len(json_text(head).encode("utf-8")) - NEXT_SIZE)
    for name, listing in sections[begin:]:
        last = after[1] if after is not None and after[0] == name else ""
        if not filled.take(name, listing, last):
            break
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

    def take(self, name, listing, last):
        """Put the items of a section that stand behind place `last` on the page; false when the page is full."""
        placed = [(place_of(identity), make) for identity, make in listing()]
        waiting = sorted([row for row in placed if row[0] > last], key=lambda row: row[0])
        items: list = []
        self.room -= len(name) + 6
        if waiting:
            self.lists.append((name, items))
        for place, make in waiting:
            if not self.put(name, items, make):
                self.next = [name, last]
                return False
            last = place
        return True

    def put(self, name, items, make):
        """Put one item on the page; false when the item belongs on the next page."""
        try:
            written = json_text(make())
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

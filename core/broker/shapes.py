"""Messages that differ in their ids alone: two of them show where the ids stand in what was converted and in the result, and the following
ones are the same result with their own ids in it (crossing.py). C does so too (c_accel/shapes.h).

Every family has an id as its octets, where it is a plain text: ASCII without zeros, no urn:uuid:, and of a uuid's form or not as the two
were.
"""

IDS = ("correlation_id", "message_id")  # the fields that may vary
SIZE_MAX = 1024  # octets of properties that are looked at
_LEAD = b"urn:uuid:"
_DIGITS = 32  # of a uuid as text, beside its hyphens


def ids_of(given):
    """The octets of the ids of properties by name; None for one that is not there or no text."""
    ids = [given.get(name) for name in IDS]
    return [each.encode("utf-8") if isinstance(each, str) and each else None for each in ids]


def is_uuid(octets):
    """True for a text that may be a uuid's."""
    return b"-" in octets and len(octets) - octets.count(b"-") == _DIGITS


def places_of(octets, other, ids, others):
    """[(place, place behind, number of the id)], in their order, of the ids in some octets that are others in `other`. None: they differ in
    more, or an id may be at several places."""
    fields: list = []
    for number, (id_, its) in enumerate(zip(ids, others)):
        if id_ is None or its is None or len(id_) != len(its) or id_ == its:
            continue
        at = octets.find(id_)
        places = []
        while at >= 0:
            if other[at : at + len(id_)] == its:
                places.append((at, at + len(id_), number))
            at = octets.find(id_, at + 1)
        if len(places) > 1:
            return None
        fields += places
    fields.sort()
    last = 0
    for at, behind, _ in fields:
        if at < last or octets[last:at] != other[last:at]:
            return None
        last = behind
    return fields if octets[last:] == other[last:] else None


class Shape:
    """A message's octets and what was made of them; from the second one of its shape on, where ids stand in them."""

    def __init__(self, octets, made, ids):
        self.octets, self.ids = octets, ids
        self.made, self.more = parts_of(made)
        self.size = len(octets) + len(self.made)
        self.varied: list = []  # of each id: position, position behind, octets before it, place in `pieces`, whether it is as a uuid's
        self.rest: "bytes | None" = None  # octets behind the last id
        self.pieces: list = []  # the result, with ids

    def __len__(self):
        return self.size

    def learn(self, octets, made, ids):
        """Find the ids by a second message: false for one that differs in more."""
        made, more = parts_of(made)
        if len(made) != len(self.made) or more != self.more:
            return False
        sources, targets = places_of(self.octets, octets, self.ids, ids), places_of(self.made, made, self.ids, ids)
        order = [number for _, _, number in targets or ()]
        if not order or sorted(order) != sorted([number for _, _, number in sources or ()]):
            return False
        if not all(map(is_alike, [self.ids[each] for each in order], [is_uuid(ids[each]) for each in order])):
            return False
        last = 0
        for at, behind, number in sources:
            self.varied.append((at, behind, octets[last:at], 1 + 2 * order.index(number), is_uuid(ids[number])))
            last = behind
        self.rest = octets[last:]
        last = 0
        for at, behind, _ in targets:
            self.pieces += [made[last:at], b""]
            last = behind
        self.pieces.append(made[last:])
        self.octets, self.made = b"", b""
        return True

    def made_of(self, octets):
        """What is made of another message's octets of the same size; None: it is not known."""
        pieces, last = self.pieces, 0
        for at, behind, before, place, has_form in self.varied:
            id_ = pieces[place] = octets[at:behind]
            if octets[last:at] != before or not is_alike(id_, has_form):
                return None
            last = behind
        if octets[last:] != self.rest:
            return None
        made = b"".join(pieces)
        return made if self.more is None else (made,) + self.more


def parts_of(made):
    """(octets, what else there is or None) of the result of a conversion."""
    return (made[0], made[1:]) if isinstance(made, tuple) else (made, None)


def is_alike(octets, has_form):
    """True for an id that every family has as it is: a plain text, of a uuid's form or not."""
    return max(octets) < 128 and 0 not in octets and not octets.startswith(_LEAD) and is_uuid(octets) == has_form

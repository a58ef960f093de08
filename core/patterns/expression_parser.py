"""From a regular expression to its program (expression_program.py): the part of PCRE's language that needs no memory of what was matched.

    .  [a-z]  [^a-z]  [[:alpha:]]  \\d \\D \\w \\W \\s \\S  \\n \\r \\t \\f \\e \\a \\xhh  \\. (any sign)
    (...)  (?:...)  (?<name>...)  (?P<name>...)  |  *  +  ?  {n}  {n,}  {n,m}  (and lazy: *? ...)
    ^  $  \\b  \\B  \\A  \\z  \\Z  (?i) (?m) (?s) (?i:...)  and, in front of all else, ^(?!...)

Octets, not characters, as RabbitMQ's. Everything else (backreferences, other look-around, possessive repetition, \\Q, \\p, ...) is a
ValueError that names it; no expression means anything else than in PCRE.

A *fragment* is a part of the expression: [sets, nullable, first, last, pairs], its places numbered from 0: `sets` says which octets a place
takes (a whole number, a bit an octet) or which assertion it is, `first` and `last` are sets of places, `pairs` a dict: the places that may
follow, and the place that they follow.
"""

from ..shim import MICROPYTHON
from .expression_program import BEGIN, BEHIND, BORDER, END, INSIDE, LINE_BEGIN, LINE_END

WORK_MAX = 512  # steps for one octet of text: with 255 octets of name at most about 15 ms on a small PC

SIZES = (200, 12, 20) if MICROPYTHON else (300, 48, 72)  # octets of a program's fixed part, of an octet in its table, and of a pair

OCTETS_MAX = 16  # octets that a program has in a dict; for more it has a table of all 256

SETS, NULLABLE, FIRST, LAST, PAIRS = range(5)

ALL = (1 << 256) - 1
LINE_FEED = 1 << 10
DIGITS = 0x3FF << 48
UPPER = 0x3FFFFFF << 65
LOWER = 0x3FFFFFF << 97
WORD = DIGITS | UPPER | LOWER | 1 << 95
SPACE = 0x1F << 9 | 1 << 32
GRAPHIC = ((1 << 94) - 1) << 33
CLASSES = {"d": DIGITS, "w": WORD, "s": SPACE, "D": ALL & ~DIGITS, "W": ALL & ~WORD, "S": ALL & ~SPACE}
NAMED = {
    "alpha": UPPER | LOWER,
    "digit": DIGITS,
    "alnum": UPPER | LOWER | DIGITS,
    "upper": UPPER,
    "lower": LOWER,
    "space": SPACE,
    "blank": 1 << 9 | 1 << 32,
    "punct": GRAPHIC & ~(UPPER | LOWER | DIGITS),
    "word": WORD,
    "graph": GRAPHIC,
    "print": GRAPHIC | 1 << 32,
    "cntrl": (1 << 32) - 1 | 1 << 127,
    "xdigit": DIGITS | 0x3F << 65 | 0x3F << 97,
    "ascii": (1 << 128) - 1,
}
SIGNS = {"n": 10, "r": 13, "t": 9, "f": 12, "e": 27, "a": 7}
ASSERTIONS = {"b": BORDER, "B": INSIDE, "A": BEGIN, "z": BEHIND, "Z": END}
LOOKS = {
    "=": "a look ahead",
    "!": "a look ahead",
    ">": "an atomic group",
    "#": "a comment",
    "(": "a condition",
    "&": "a recursion",
    "R": "a recursion",
    "|": "a branch reset",
}


def programs_of(text, size_max):
    """((program, whether a text must match it), ...) for an expression in octets: one, or two where it begins with a look ahead."""
    made = []
    while text.startswith(b"^(?!"):
        inner = Parser(text[4:], size_max, True)
        text = b"^" + text[4 + inner.at :]
        made.append((program_of(inner.whole, 0), False))
    rest = Parser(text, size_max, False)
    if made and rest.branches:
        raise ValueError("has a look ahead in front of only one of its branches, which this broker does not serve")
    made.append((program_of(rest.whole, None), True))
    return made


class Parser:
    """`whole` is the fragment for all of `text`; with `inside` for what comes before a bracket that was not opened: `at` is behind it.
    `branches`: there is a | outside of brackets."""

    def __init__(self, text, size_max, inside):
        self.text = text
        self.size_max = size_max
        self.at = 0
        self.waiting: list = []  # for each open bracket: the branches and the sequence before it, and its flags
        self.branches = None
        self.sequence = empty()
        self.flags = ""
        self.place_count = 0
        if len(text) > size_max:
            raise ValueError("is longer than %d octets" % size_max)
        while self.at < len(text):
            letter = self.next()
            if letter == ")" and inside and not self.waiting:
                self.whole = self.close()
                return
            self.one(letter)
        if self.waiting or inside:
            raise ValueError("has a bracket that is not closed")
        self.whole = self.close()

    def next(self):
        """The next octet as a character."""
        if self.at >= len(self.text):
            raise ValueError("ends too soon")
        self.at += 1
        return chr(self.text[self.at - 1])

    def next_is(self, sign):
        """Step over `sign` (one character) when it comes next; true then."""
        if self.text[self.at : self.at + 1] != sign.encode("utf-8"):
            return False
        self.at += 1
        return True

    def one(self, letter):
        """Add the next element of the expression."""
        if letter == "(":
            self.open()
        elif letter == ")":
            if not self.waiting:
                raise ValueError("has a bracket that was not opened")
            group = self.close()
            self.branches, self.sequence, self.flags = self.waiting.pop()
            self.add(self.repeated(group))
        elif letter == "|":
            self.branches = self.close()
            self.sequence = empty()
        elif letter in "*+?" or letter == "{" and self.counts() is not None:
            raise ValueError("has a repetition of nothing")
        elif letter == "^":
            self.add(single(LINE_BEGIN if "m" in self.flags else BEGIN))
        elif letter == "$":
            self.add(single(LINE_END if "m" in self.flags else END))
        elif letter == "\\" and self.at < len(self.text) and chr(self.text[self.at]) in ASSERTIONS:
            self.add(single(ASSERTIONS[self.next()]))
        else:
            self.add(self.repeated(single(self.set_of(letter))))

    def set_of(self, letter):
        """The octets that an element stands for."""
        if letter == ".":
            return ALL if "s" in self.flags else ALL & ~LINE_FEED
        if letter == "[":
            return self.class_()
        return self.folded(self.escape() if letter == "\\" else 1 << ord(letter))

    def folded(self, octets):
        """A set with the other case of its letters, under (?i)."""
        return octets | (octets & UPPER) << 32 | (octets & LOWER) >> 32 if "i" in self.flags else octets

    def escape(self, inside=False):
        """The set for the letter behind a backslash; `inside`: of a class, where \\b is a backspace."""
        letter = self.next()
        if letter in CLASSES:
            return CLASSES[letter]
        if letter in SIGNS:
            return 1 << SIGNS[letter]
        if letter == "b" and inside:
            return 1 << 8
        if letter == "x":
            return 1 << self.hexadecimal()
        if "0" <= letter <= "9":
            raise ValueError("has \\%s, a backreference or octal number, which this broker does not serve" % letter)
        if "a" <= letter <= "z" or "A" <= letter <= "Z":
            raise ValueError("has the escape \\%s, which this broker does not serve" % letter)
        return 1 << ord(letter)

    def hexadecimal(self):
        """The number behind \\x: two digits, or some in braces."""
        if self.next_is("{"):
            digits = ""
            while not self.next_is("}"):
                digits += self.next()
        else:
            digits = self.next() + self.next()
        for digit in digits:
            if digit not in "0123456789abcdefABCDEF":
                digits = ""
        if not 1 <= len(digits) <= 8 or int(digits, 16) > 255:
            raise ValueError("has a \\x without the two digits of an octet")
        return int(digits, 16)

    def class_(self):
        """The set of a class in square brackets."""
        negated = self.next_is("^")
        octets = 0
        letter = self.next()
        while True:
            low = self.class_member(letter)
            letter = self.next()
            if letter == "-" and self.at < len(self.text) and self.text[self.at] != 93:
                high = self.class_member(self.next())
                if high < low or low & low - 1 or high & high - 1:
                    raise ValueError("has a range in a class that is none")
                low = (high << 1) - low
                letter = self.next()
            octets |= low
            if letter == "]":
                octets = self.folded(octets)
                return ALL & ~octets if negated else octets

    def class_member(self, letter):
        """The set of one member of a class."""
        if letter == "\\":
            return self.escape(True)
        if letter == "[" and self.text[self.at : self.at + 1] in (b":", b".", b"="):
            end = self.text.find(b":]", self.at)
            name = str(self.text[self.at + 1 : end], "utf-8") if self.text[self.at] == 58 and end > 0 else ""
            octets = NAMED.get(name[1:] if name.startswith("^") else name)
            if octets is None:
                raise ValueError("has a class in a class that this broker does not know")
            self.at = end + 2
            return ALL & ~octets if name.startswith("^") else octets
        return 1 << ord(letter)

    def open(self):
        """Read the signs behind an opening bracket."""
        before = (self.branches, self.sequence, self.flags)
        if self.next_is("*"):
            raise ValueError("has a verb (*, which this broker does not serve")
        if self.next_is("?"):
            kind = self.next()
            if kind == "P" and self.text[self.at : self.at + 1] == b"<":
                kind = self.next()
            behind = self.text[self.at : self.at + 1]
            if kind in ("<", "'") and behind not in (b"=", b"!"):
                while self.next() not in (">", "'"):
                    pass
            elif kind == "<":
                raise ValueError("has a look behind, which this broker does not serve")
            elif kind in LOOKS or kind == "P" or "0" <= kind <= "9" or kind == "+":
                raise ValueError("has %s, which this broker does not serve" % LOOKS.get(kind, "a reference to a group"))
            elif kind != ":" and not self.set_flags(kind):
                return  # flags for the rest of the group around: nothing was opened
        self.waiting.append(before)
        self.branches, self.sequence = None, empty()

    def set_flags(self, letter):
        """The flags behind (? : true when they are for a group of their own."""
        on = True
        while letter not in ":)":
            if letter == "-" and on:
                on = False
            elif letter not in "ims":
                raise ValueError("has the group (?%s, which this broker does not serve" % letter)
            else:
                self.flags = self.flags.replace(letter, "") + (letter if on else "")
            letter = self.next()
        return letter == ":"

    def close(self):
        """The branches so far and the sequence, as one fragment."""
        return self.sequence if self.branches is None else either(self.branches, self.sequence)

    def add(self, fragment):
        """Put a fragment at the end of the sequence."""
        self.place_count += len(fragment[SETS])
        self.sequence = joined(self.sequence, fragment)

    def counts(self):
        """(least, most) of a repetition in braces that begins here, behind its {; None: the brace is a letter."""
        end = self.text.find(b"}", self.at)
        parts = self.text[self.at : end].split(b",") if end > 0 else []
        if not 1 <= len(parts) <= 2 or not parts[0].isdigit() or parts[-1] and not parts[-1].isdigit() or end - self.at > 9:
            return None
        self.at = end + 1
        return int(parts[0]), int(parts[-1]) if parts[-1] else None

    def repeated(self, fragment):
        """A fragment with the repetition that is behind it."""
        counts: tuple = (1, 1)
        if self.next_is("*"):
            counts = (0, None)
        elif self.next_is("+"):
            counts = (1, None)
        elif self.next_is("?"):
            counts = (0, 1)
        elif self.next_is("{"):
            counts = self.counts()
            if counts is None:
                self.at -= 1
                return fragment
        else:
            return fragment
        if self.next_is("+"):
            raise ValueError("has a possessive repetition, which this broker does not serve")
        self.next_is("?")
        at = self.at
        letter = self.text[at : at + 1]
        if letter in (b"*", b"+", b"?") or self.next_is("{") and self.counts() is not None:
            raise ValueError("has a repetition of a repetition")
        self.at = at
        least, most = counts
        if most is not None and most < least:
            raise ValueError("has a repetition {%d,%d}" % (least, most))
        if len(fragment[SETS]) * max(least, most or 1) + self.place_count > self.size_max:
            raise ValueError("is too large with its repetitions written out")
        return times(fragment, least, most)


# Fragments


def empty():
    """The fragment of nothing."""
    return [[], True, 0, 0, {}]


def single(octets):
    """The fragment of one place."""
    return [[octets], False, 1, 1, {}]


def add_pairs(pairs, more, shift):
    """Add the pairs of a fragment whose places are `shift` further on."""
    for following in more:
        pairs[following << shift] = pairs.get(following << shift, 0) | more[following] << shift


def joined(left, right):
    """Two fragments one behind the other; the left one is used up."""
    shift = len(left[SETS])
    if not shift:
        return right
    pairs = left[PAIRS]
    first = right[FIRST] << shift
    if first and left[LAST]:
        pairs[first] = pairs.get(first, 0) | left[LAST]
    add_pairs(pairs, right[PAIRS], shift)
    left[SETS].extend(right[SETS])
    return [
        left[SETS],
        left[NULLABLE] and right[NULLABLE],
        left[FIRST] | (first if left[NULLABLE] else 0),
        right[LAST] << shift | (left[LAST] if right[NULLABLE] else 0),
        pairs,
    ]


def either(left, right):
    """One of two fragments; the left one is used up."""
    shift = len(left[SETS])
    if is_octet(left) and is_octet(right):
        return single(left[SETS][0] | right[SETS][0])
    add_pairs(left[PAIRS], right[PAIRS], shift)
    left[SETS].extend(right[SETS])
    return [
        left[SETS],
        left[NULLABLE] or right[NULLABLE],
        left[FIRST] | right[FIRST] << shift,
        left[LAST] | right[LAST] << shift,
        left[PAIRS],
    ]


def is_octet(fragment):
    """True for a fragment that takes exactly one octet."""
    return len(fragment[SETS]) == 1 and fragment[SETS][0] >= 0 and not fragment[NULLABLE] and not fragment[PAIRS]


def times(fragment, least, most):
    """A fragment `least` to `most` (None: any number of) times in a row."""
    sets, nullable, first, last, pairs = fragment
    size = len(sets)
    if size == 0 or most == 0:
        return empty()
    copies = max(least, most or 1)
    made = [[], nullable or least == 0, first, 0, {}]
    ends = 0  # of the copies so far that the next one may follow
    for number in range(copies):
        shift = number * size
        add_pairs(made[PAIRS], pairs, shift)
        made[SETS].extend(sets)
        begins = first << shift
        if ends:
            made[PAIRS][begins] = made[PAIRS].get(begins, 0) | ends
        if nullable and number:
            made[FIRST] |= begins
        ends = last << shift | (ends if nullable else 0)
        if number + 1 >= least:
            made[LAST] |= ends
    if most is None:
        begins = first << (copies - 1) * size
        made[PAIRS][begins] = made[PAIRS].get(begins, 0) | last << (copies - 1) * size
    return made


# Programs


def program_of(fragment, where):
    """The program of a fragment (see expression_program.py); `where` 0: only at the text's begin, None: anywhere."""
    if where == 0:
        fragment = joined(single(BEGIN), fragment)
    sets, nullable, first, last, pairs = fragment
    chain = 0
    ways: dict = {}
    for following in pairs:
        places = pairs[following]
        if following & following - 1 == 0 and places & following >> 1:
            chain |= following >> 1
            places &= ~(following >> 1)
        if places:
            ways[places] = ways.get(places, 0) | following
    classes, masks, others, asserts = tables_of(sets)
    asserted = begins = 0
    for kind, places in asserts:
        asserted |= places
        if kind == BEGIN:
            begins |= places
    rest = tuple([(places, ways[places]) for places in ways])
    program = (classes, masks, others, chain, rest, first, first & ~begins, last, nullable, asserts, asserted)
    if (count_asserted(program) + 1) * (len(rest) + 4) > WORK_MAX:
        raise ValueError("asks for too much work: it has %d branches and repetitions that go on in different ways" % len(rest))
    return program


def tables_of(sets):
    """(classes, masks, others, asserts) for the sets of the places."""
    places_of: dict = {}
    bit = 1
    for octets in sets:
        places_of[octets] = places_of.get(octets, 0) | bit
        bit <<= 1
    by_octet = [0] * 256
    for octets in places_of:
        places = places_of[octets]
        if octets > 0 and octets & octets - 1 == 0:
            by_octet[bit_number(octets)] |= places
        elif octets > 0:
            low = octets.to_bytes(32, "little")
            for octet in range(256):
                if low[octet >> 3] >> (octet & 7) & 1:
                    by_octet[octet] |= places
    counts: dict = {}
    for mask in by_octet:
        counts[mask] = counts.get(mask, 0) + 1
    others = by_octet[0]
    for mask in counts:
        if counts[mask] > counts[others]:
            others = mask
    one_of = {mask: mask for mask in counts}  # equal numbers are one object
    masks = {octet: one_of[by_octet[octet]] for octet in range(256) if by_octet[octet] != others}
    classes = b""
    if len(masks) > OCTETS_MAX:
        known = list(one_of)
        classes = bytes([known.index(mask) for mask in by_octet])
        masks = {number: known[number] for number in range(len(known)) if known[number] != others}
    return classes, masks, others, tuple([(kind, places_of[kind]) for kind in places_of if kind < 0])


def bit_number(value):
    """Which bit a power of two is."""
    return len("%x" % value) * 4 - 4 + (0, 0, 1, 0, 2, 0, 0, 0, 3)[int(("%x" % value)[0])]


def count_asserted(program):
    """How many assertions may stand right behind another one: each is a further round for the same octet."""
    chain, pairs, asserted = program[3], program[4], program[10]
    behind = (asserted & chain) << 1
    for places, following in pairs:
        if asserted & places:
            behind |= following
    behind &= asserted
    count = 0
    while behind:
        behind &= behind - 1
        count += 1
    return count


def size_of(program):
    """Octets that a program takes, as an upper bound."""
    base, entry, pair = SIZES
    octets = base + len(program[0]) + entry * len(program[1])
    for number in set(program[1].values()):
        octets += number_size(number)
    for places, following in program[4]:
        octets += pair + number_size(places) + number_size(following)
    return octets


def number_size(number):
    """Octets of a whole number."""
    return (0 if MICROPYTHON and number < 1 << 30 else 32) + len("%x" % number) * 8 // 15

"""Patterns of text with two wild cards: one for any run of characters, one for a single character (SQL's LIKE, and x-matcher).

A pattern is cut into pieces at the "any run" cards. The first piece must stand at the beginning and the last at the end; the others stand
where they first fit: whenever there is a match, these places are one. So a pattern compares each character of a text once: the search for a
piece of plain text is one for text, the search for a piece with single-character cards has all its places at once (a bit each).
"""

SEARCHED_MAX = 512  # characters of a text that a search for a piece with single-character cards may read, between two cards for any run
TEXT_MAX = 1024  # the same for one without such cards


def pieces_of(pattern, any_run, any_one, escape):
    """The pieces of a pattern (see above), or None when it ends with `escape`. `escape`: one character, or "" for none.

    A piece is its text, or a list of (characters, or None for "one character") where it has such cards.
    """
    pieces: list = [[]]
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if escape and letter == escape:
            at += 1
            if at == len(pattern):
                return None
            pieces[-1].append(pattern[at])
        elif letter == any_run:
            pieces.append([])
        else:
            pieces[-1].append(None if letter == any_one else letter)
        at += 1
    return [piece if None in piece else "".join(piece) for piece in pieces]


def searches(pieces):
    """How many pieces need a search with all their places at once: those with single-character cards between two for any run."""
    return len([piece for piece in pieces[1:-1] if not isinstance(piece, str)])


def matches(pieces, text):
    """True when the whole text fits the pattern."""
    first = pieces[0]
    if len(pieces) == 1:
        return len(text) == len(first) and fits(first, text, 0)
    last = pieces[-1]
    end = len(text) - len(last)
    if end < len(first) or not fits(first, text, 0) or not fits(last, text, end):
        return False
    at = len(first)
    for piece in pieces[1:-1]:
        at = behind(piece, text, at, end)
        if at < 0:
            return False
    return True


def fits(piece, text, at):
    """True when a piece fits at this place; there are enough characters."""
    if isinstance(piece, str):
        return text[at : at + len(piece)] == piece
    for letter in piece:
        if letter is not None and letter != text[at]:
            return False
        at += 1
    return True


def behind(piece, text, at, end):
    """The end of the first place in text[at:end] where a piece fits; -1: there is none, or the text is too long for a piece with cards."""
    if isinstance(piece, str):
        place = text.find(piece, at, end) if end - at <= TEXT_MAX else -1
        return place + len(piece) if place >= 0 else -1
    if end - at > SEARCHED_MAX:
        return -1
    places: dict = {}
    cards = 0
    bit = 1
    for letter in piece:
        if letter is None:
            cards |= bit
        else:
            places[letter] = places.get(letter, 0) | bit
        bit <<= 1
    begun = 0  # places of the piece up to which the characters so far fit
    for letter in text[at:end]:
        at += 1
        begun = (begun << 1 | 1) & (places.get(letter, 0) | cards)
        if begun & bit >> 1:
            return at
    return -1

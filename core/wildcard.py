"""Patterns of text with two wild cards: one for any run of characters, one for a single character (SQL's LIKE, and x-matcher).

A pattern is cut into pieces at the "any run" cards. A piece is a list of characters, None for "one character". The first piece must
stand at the beginning and the last at the end; those between are taken where they first fit, which finds a match whenever there is one.
"""


def pieces_of(pattern, any_run, any_one, escape):
    """The pieces of a pattern (see above), or None when it ends with `escape`. `escape`: one character, or "" for none."""
    pieces = [[]]
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
    return pieces


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
        while at + len(piece) <= end and not fits(piece, text, at):
            at += 1
        if at + len(piece) > end:
            return False
        at += len(piece)
    return True


def fits(piece, text, at):
    """True when a piece fits at this place; there are enough characters."""
    for letter in piece:
        if letter is not None and letter != text[at]:
            return False
        at += 1
    return True

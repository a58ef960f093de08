"""Words of a selector: the text of a SQL-92 WHERE condition, cut into tokens (Java Message Service 2.0, section 3.8.1.1).

A token is a tuple (kind, value, position); positions count characters from 1, for people. Keywords in any case; 'it''s' is text;
"x-name" is an identifier with any characters (SQL-92's delimited identifier).
"""

from ..errors import PRECONDITION_FAILED, ProtocolError

END = "end"
NUMBER = "number"
TEXT = "text"
NAME = "name"
SIGN = "sign"  # operators and brackets; keywords are signs in capitals

KEYWORDS = ("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE")

_SIGNS = ("<>", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "(", ")", ",")
_DIGITS = "0123456789"
_BLANKS = " \t\r\n\f"


def fail(position, text):
    """Raise precondition-failed for a selector that is wrong at `position`."""
    raise ProtocolError(PRECONDITION_FAILED, "invalid selector at position %d: %s" % (position, text))


def tokens_of(text):
    """All tokens, the last of kind END."""
    tokens = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in _BLANKS:
            at += 1
            continue
        if letter in _DIGITS or (letter == "." and text[at + 1 : at + 2] in _DIGITS and at + 1 < len(text)):
            token, at = number_at(text, at)
        elif letter in "'\"":
            token, at = quoted_at(text, at, letter)
        elif begins_name(letter):
            token, at = name_at(text, at)
        else:
            token, at = sign_at(text, at)
        tokens.append(token)
    tokens.append((END, None, len(text) + 1))
    return tokens


def begins_name(letter):
    """True for a letter that an identifier may begin with (as in Java)."""
    return letter.isalpha() or letter in "_$" or ord(letter) > 127


def name_at(text, start):
    """An identifier or a keyword: (token, place behind it)."""
    at = start
    while at < len(text) and (begins_name(text[at]) or text[at] in _DIGITS or text[at] == "."):
        at += 1
    name = text[start:at]
    if name.upper() in KEYWORDS:
        return (SIGN, name.upper(), start + 1), at
    return (NAME, name, start + 1), at


def quoted_at(text, start, quote):
    """A text in single quotes, or an identifier in double ones; a doubled quote stands for itself."""
    parts = []
    at = start + 1
    while True:
        end = text.find(quote, at)
        if end < 0:
            fail(start + 1, "a quote %s that is not closed" % quote)
        parts.append(text[at:end])
        at = end + 1
        if text[at : at + 1] != quote:
            break
        at += 1
    value = quote.join(parts)
    if quote == '"' and not value:
        fail(start + 1, "an empty identifier")
    return (TEXT if quote == "'" else NAME, value, start + 1), at


def number_at(text, start):
    """A number: whole (57, 0x39, 57L) or with a fraction or exponent (7., .5, 7E3, 5.7d)."""
    at = start
    if text[at : at + 2].lower() == "0x":
        return whole_at(text, start, run(text, at + 2, _DIGITS + "abcdefABCDEF"), 16)
    at = run(text, at, _DIGITS)
    whole = at
    if text[at : at + 1] == ".":
        at = run(text, at + 1, _DIGITS)
    if at < len(text) and text[at] in "eE":
        behind = at + 2 if text[at + 1 : at + 2] in ("+", "-") else at + 1
        if run(text, behind, _DIGITS) == behind:
            fail(start + 1, "a number whose exponent has no digits")
        at = run(text, behind, _DIGITS)
    if at == whole and not (at < len(text) and text[at] in "fFdD"):
        return whole_at(text, start, at, 10)
    value = float(text[start:at])
    if at < len(text) and text[at] in "fFdD":
        at += 1
    return closed((NUMBER, value, start + 1), text, at)


def whole_at(text, start, at, base):
    """A whole number whose digits end at `at`, of 64 bits at most."""
    digits = text[start + 2 : at] if base == 16 else text[start:at]
    if not digits:
        fail(start + 1, "a number without digits")
    value = int(digits, base)
    if value >> 63:
        fail(start + 1, "a number above 64 bits")
    if at < len(text) and text[at] in "lL":
        at += 1
    return closed((NUMBER, value, start + 1), text, at)


def closed(token, text, at):
    """The token and the place behind it, where no letter may follow."""
    if at < len(text) and begins_name(text[at]):
        fail(token[2], "a number with letters behind it")
    return token, at


def run(text, at, letters):
    """The place behind as many of `letters` as stand at `at`."""
    while at < len(text) and text[at] in letters:
        at += 1
    return at


def sign_at(text, at):
    """An operator or bracket: (token, place behind it)."""
    for sign in _SIGNS:
        if text[at : at + len(sign)] == sign:
            return (SIGN, sign, at + 1), at + len(sign)
    return fail(at + 1, "the character '%s' has no meaning here" % text[at])

"""Neutral conditions to reply codes, texts and scopes of 0-9-1 (its reference, section 1.2: soft closes the channel, hard all)."""

from ..errors import INTERNAL_ERROR


def reply_of(dialect, condition):
    """(reply code, hard) of a neutral condition in a dialect, a row as spec_0_9_1."""
    for name, code, hard in dialect.REPLIES:
        if name == condition:
            return code, hard
    return reply_of(dialect, INTERNAL_ERROR)


def reply_text(condition, text):
    """The text clients show, as RabbitMQ words it: NOT_FOUND - no queue 'x' in vhost '/'; cut to the 255 octets of a short string."""
    whole = (condition.upper().replace("-", "_") + " - " + text).encode("utf-8")
    while len(whole) > 255 or not is_text(whole):
        whole = whole[: min(len(whole) - 1, 255)]
    return str(whole, "utf-8")


def is_text(octets):
    """True when `octets` do not end inside a UTF-8 character."""
    try:
        str(octets, "utf-8")
        return True
    except UnicodeError:
        return False

"""The console: one line for each sentence, so that `leveret flash` and people can read it. No secret ever comes here."""

READY = "ready "  # with an address behind it: the broker can be reached there
CANNOT_START = "cannot start: "  # with the reason behind it


class CannotStart(Exception):
    """Why there is no broker; the text is one sentence."""


def say(sentence):
    """Print one sentence."""
    print("leveret: " + sentence)

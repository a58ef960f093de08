"""The one error of the command line: what the user asked for cannot be."""

LIKENESS_MIN = 0.6
COMMON = ("max", "min", "count", "size", "octet", "second", "ms", "")  # words that many names have


class UsageError(Exception):
    """The text is one sentence for the user; the command ends with exit status 2."""


class ListenFailed(Exception):
    """A listener that cannot be opened; the text is one sentence."""


def meant(name, names):
    """For a message about a name that there is not: the one that was probably meant, or ""."""
    near = max(names, key=lambda each: _likeness(str(name), each))
    return f" (is it {near}?)" if _likeness(str(name), near) >= LIKENESS_MIN else ""


def checked(look, *given, **place):
    """The answer of `look` (a Table's `check` or `full`, ports/settings.py), its ValueError as a UsageError. Raises UsageError."""
    try:
        return look(*given, **place)
    except ValueError as error:
        raise UsageError(str(error)) from None


def read_toml(path, sentence):
    """The settings of a TOML file, a dict. `sentence` about a file that cannot be opened: {path}, {reason}. Raises UsageError."""
    import tomllib  # here: a broker without a file keeps a MiB less

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UsageError(sentence.format(path=path, reason=error.strerror)) from None
    except (ValueError, RecursionError) as error:  # also for a number of thousands of digits
        raise UsageError(f"{path} is not TOML: {error}") from None


def _likeness(name, other):
    """0 to 1. Words go before letters, and what few names have before what many have: max_connections is connection_count_max, and
    body_size_max is not copy_size_max."""
    import difflib  # here: a broker whose settings are right keeps neither in its memory
    import re

    words, others = ([word.rstrip("s") for word in re.split("[^a-z0-9]+", each.lower()) if word] for each in (name, other))
    rare, others_rare = ([word for word in each if word not in COMMON] or each for each in (words, others))
    near = [word for word in rare if difflib.get_close_matches(word, others_rare, 1, 0.75)]
    shared = sum(word in others for word in words) if near else 0
    by_words = (2 * shared + 2 * len(near) + 1) / (len(words) + len(others) + 2 * len(near) + 1)
    begins = len(name) > 3 and other.startswith(name)
    return max(by_words, difflib.SequenceMatcher(None, "_".join(rare), "_".join(others_rare)).ratio(), 0.7 * begins)

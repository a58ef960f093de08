"""The one error of the command line: what the user asked for cannot be."""


import difflib


class UsageError(Exception):
    """The text is one sentence for the user; the command ends with exit status 2."""


def meant(name, names):
    """For a message about a name that there is not: the one that was probably meant, or ""."""
    near = difflib.get_close_matches(str(name), names, 1)
    return f" (is it {near[0]}?)" if near else ""

"""The one error of the command line: what the user asked for cannot be."""


class UsageError(Exception):
    """The text is one sentence for the user; the command ends with exit status 2."""

"""What a session (0-8 and 0-9: a channel) has of class file: the content that its peer stages, and what is delivered to it."""

if False:  # for the type checker alone
    from typing import Any


class Account:
    """`owner`: the session, as Contents knows it."""

    def __init__(self, owner):
        self.owner = owner
        self.staging: "Any" = None  # the Content that the peer has opened
        self.has_last = False  # its last octets have come
        self.prefetch_size = 0  # octets of deliveries that are not acknowledged, 0: no limit
        self.prefetch_count = 0
        self.delivered: "list" = []  # (delivery tag, octets) of those, in their order
        self.out: "Any" = None  # the delivering.Delivery whose open the peer has not answered

    def stop_staging(self):
        """The peer stages nothing now."""
        if self.staging is not None and self.staging.owner is self.owner:
            self.staging.owner = None
        self.staging, self.has_last = None, False

    def tags(self, tag, multiple):
        """The unacknowledged delivery tags up to one, or that one alone; all of them for 0 with `multiple`; None: there is no such
        delivery."""
        known = [each[0] for each in self.delivered]
        if multiple and not tag:
            return known
        if tag not in known:
            return None
        return known[: known.index(tag) + 1] if multiple else [tag]

    def has_window(self, size):
        """True when a delivery of `size` octets may be sent in advance."""
        return lets(self.prefetch_count, self.prefetch_size, [each[1] for each in self.delivered], size)


def lets(count, octets, sizes, size):
    """True when a window of `count` deliveries and so many octets (0: no limit) has room for `size` more behind those of `sizes`; one
    larger than the window goes alone."""
    if count and len(sizes) >= count:
        return False
    return not octets or not sizes or sum(sizes) + size <= octets

"""A bounded set of offsets as ranges: those that upstream has confirmed ahead of the bridge's first lane."""


class Ranges:
    """Sorted, separate ranges [first, end); at most `most` of them. Beyond that the set forgets the smallest, and the bridge sends it
    again, as a double."""

    def __init__(self, most=64):
        self.most = most
        self.ranges = []

    def add(self, offset):
        """Add an offset."""
        ranges = self.ranges
        at = len(ranges)
        while at and ranges[at - 1][0] > offset:
            at -= 1
        if at and offset < ranges[at - 1][1]:
            return
        joins_left = at > 0 and ranges[at - 1][1] == offset
        joins_right = at < len(ranges) and ranges[at][0] == offset + 1
        if joins_left and joins_right:
            ranges[at - 1][1] = ranges.pop(at)[1]
        elif joins_left:
            ranges[at - 1][1] += 1
        elif joins_right:
            ranges[at][0] = offset
        else:
            ranges.insert(at, [offset, offset + 1])
            if len(ranges) > self.most:
                ranges.remove(min(ranges, key=lambda range_: range_[1] - range_[0]))

    def has(self, offset):
        """True when the offset is in the set."""
        for first, end in self.ranges:
            if first <= offset < end:
                return True
        return False

    def forget_below(self, offset):
        """Forget offsets below `offset`: the mover no longer asks for these."""
        ranges = self.ranges
        while ranges and ranges[0][1] <= offset:
            ranges.pop(0)
        if ranges and ranges[0][0] < offset:
            ranges[0][0] = offset

"""Two streams as one: what comes in at one side goes out at the other, through a fixed buffer each way.

`Joint(size)` has two sides, `near` and `far`, each an endpoint (core/DESIGN.md section 1). A side whose buffer is full is not read, so
the slower stream slows the faster one. When one side's stream is gone, the other one is `closed` as soon as what came before is out.
"""

NOTHING = memoryview(b"")


class Buffer:
    """Octets that wait: octets[start:end]."""

    def __init__(self, size: int) -> None:
        self.octets = memoryview(bytearray(size))
        self.start = self.end = 0

    def writable(self) -> memoryview:
        """The free octets behind `end`, to be filled."""
        if self.start:
            left = self.end - self.start
            self.octets[:left] = self.octets[self.start : self.end]
            self.start, self.end = 0, left
        return self.octets[self.end :]


class Side:
    """One side: fills `inward`, empties `outward`, which is the other side's `inward`."""

    def __init__(self, inward: Buffer, outward: Buffer) -> None:
        self.other: "Side" = self  # until the Joint has made both
        self.gone = False
        self._inward = inward
        self._outward = outward

    @property
    def closed(self) -> bool:
        return self.gone or (self.other.gone and self._outward.start == self._outward.end)

    def writable(self) -> memoryview:
        if self.gone:
            return NOTHING
        if self.other.gone:
            self._inward.start = self._inward.end = 0  # nobody is there to get it
        return self._inward.writable()

    def received(self, size: int) -> None:
        if size == 0:
            self.gone = True
        else:
            self._inward.end += size

    def pending(self) -> memoryview:
        return self._outward.octets[self._outward.start : self._outward.end]

    def sent(self, size: int) -> None:
        self._outward.start += size

    def tick(self, now: int) -> None:
        """Nothing to do: a joint has no timers."""


class Joint:
    """Buffers of `size` octets each way."""

    def __init__(self, size: int) -> None:
        forth, back = Buffer(size), Buffer(size)
        self.near, self.far = Side(forth, back), Side(back, forth)
        self.near.other, self.far.other = self.far, self.near

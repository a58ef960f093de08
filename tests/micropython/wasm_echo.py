"""An endpoint that sends back what it receives, for the test of the carrier alone: small buffer, so it often refuses to be read into.

The functions at the end are what wasm_port.py asks of a module. A received 0xff closes the connection after its answer.
"""

SIZE = 64
CLOSE = 0xFF


class Echo:
    """One region: filled, sent, free again."""

    def __init__(self):
        self.region = memoryview(bytearray(SIZE))
        self.filled = 0
        self.gone = 0
        self.closed = False

    def writable(self):
        return self.region[self.filled :] if not self.gone and not self.closed else self.region[:0]

    def received(self, size):
        if size == 0:
            self.closed = True
            return
        if self.region[self.filled + size - 1] == CLOSE:
            self.closed = True
        self.filled += size

    def pending(self):
        return self.region[self.gone : self.filled]

    def sent(self, size):
        self.gone += size
        if self.gone == self.filled:
            self.gone = self.filled = 0

    def tick(self, now):
        pass


def start():
    pass


def make_endpoint():
    return Echo()


def tick(now):
    pass


def run(now):
    pass

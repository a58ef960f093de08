"""Module select for the WebAssembly build: poll of the sockets beside this file, which never waits."""

POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16


class poll:
    """A set of sockets."""

    def __init__(self):
        self.there = []  # [socket, flags]
        self.found = []

    def register(self, pollable, flags):
        """Add one."""
        self.there.append([pollable, flags])

    def modify(self, pollable, flags):
        """Ask for other flags."""
        for each in self.there:
            if each[0] is pollable:
                each[1] = flags

    def unregister(self, pollable):
        """Remove one."""
        self.there = [each for each in self.there if each[0] is not pollable]

    def ipoll(self, wait_ms):
        """[(socket, flags)] of those that are ready."""
        self.found.clear()
        for pollable, wanted in self.there:
            flags = pollable.ready(wanted)
            if flags:
                self.found.append((pollable, flags))
        return self.found

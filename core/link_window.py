"""The sending half of the link's window: frames that went out and are not acknowledged yet, kept for sending again.

    base ... sent, not acknowledged ... cursor ... to be sent (again) ... next ... room
Sequence numbers are octets (modulo 256). The receiver takes frames in order only (go back n), so sending again means: put the cursor back.
Law: buffers are made in the constructor, `count` slots of `payload_size_max` octets; nothing is put where there is no room.
"""

from .shim import copy, table

SEQUENCE_MASK = 0xFF


class SendWindow:
    """`count` slots, a power of two up to 64, so that slot numbers follow sequence numbers over their end."""

    def __init__(self, count, payload_size_max):
        self._slots = tuple([memoryview(bytearray(payload_size_max)) for _ in range(count)])
        self._sizes = table(count)
        self.reset()

    def reset(self):
        """A new session: numbers start at 0, nothing is kept."""
        self.base = 0
        self.cursor = 0
        self.next = 0

    def outstanding(self):
        """Frames that are kept."""
        return (self.next - self.base) & SEQUENCE_MASK

    def has_room(self):
        return self.outstanding() < len(self._slots)

    def is_known(self, acknowledged):
        """True for an acknowledgement of something that was sent."""
        return (acknowledged - self.base) & SEQUENCE_MASK <= self.outstanding()

    def put(self, source, size):
        """Keep source[0:size] as the next frame; needs room."""
        slot = self.next & (len(self._slots) - 1)
        copy(self._slots[slot], 0, source, 0, size)
        self._sizes[slot] = size
        self.next = (self.next + 1) & SEQUENCE_MASK

    def payload(self):
        """The slot at the cursor; `payload_size` octets of it count."""
        return self._slots[self.cursor & (len(self._slots) - 1)]

    def payload_size(self):
        return self._sizes[self.cursor & (len(self._slots) - 1)]

    def step(self):
        """The frame at the cursor goes out."""
        self.cursor = (self.cursor + 1) & SEQUENCE_MASK

    def release(self, acknowledged):
        """Frames before number `acknowledged` have arrived; returns how many that were new."""
        count = (acknowledged - self.base) & SEQUENCE_MASK
        if (self.cursor - self.base) & SEQUENCE_MASK < count:
            self.cursor = acknowledged
        self.base = acknowledged
        return count

    def go_back(self):
        """Send everything that is kept again; returns how many frames of it had been sent."""
        count = (self.cursor - self.base) & SEQUENCE_MASK
        self.cursor = self.base
        return count

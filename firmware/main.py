"""Runs after boot.py: the broker, until Ctrl-C or until it cannot go on; then the REPL has the board, or the next start tries a version
that is on trial again (slots.py).

Garbage is collected before it fills the heap: what lives long lies close together then. Without that an ESP32 refused its second client
with 10 KB of its heap free, in pieces of 512 octets.
"""

import gc
import sys

heap_size = (gc.mem_alloc() if hasattr(gc, "mem_alloc") else 0) + (gc.mem_free() if hasattr(gc, "mem_free") else 0)
if heap_size and hasattr(gc, "threshold"):
    gc.threshold(heap_size // 32)


def serve():
    """Serve: true when the console has stopped it."""
    try:
        from leveret.firmware import gateway
    except ImportError as error:
        print("leveret: cannot start: the flash is not complete (%s); run `leveret flash` again" % error)
        return False
    return gateway.main()


is_stopped = False
try:
    is_stopped = serve()
except Exception as error:  # told as the interpreter would, and the prompt comes
    sys.print_exception(error)  # type: ignore[attr-defined]  # MicroPython's own
if "slots" in sys.modules:
    sys.modules["slots"].ended(is_stopped)

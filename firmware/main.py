"""Runs after boot.py: the broker, until Ctrl-C or until it cannot go on; then the REPL has the board.

Garbage is collected before it fills the heap: what lives long lies close together then. Without that an ESP32 refused its second client
with 10 KB of its heap free, in pieces of 512 octets.
"""

import gc

if hasattr(gc, "threshold") and hasattr(gc, "mem_alloc") and hasattr(gc, "mem_free"):
    gc.threshold((gc.mem_alloc() + gc.mem_free()) // 32)
try:
    from leveret.firmware import gateway
except ImportError as error:
    print("leveret: cannot start: the flash is not complete (%s); run `leveret flash` again" % error)
else:
    gateway.main()

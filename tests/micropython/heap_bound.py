"""Bounds the heap inside the WebAssembly build: afterwards `heap_kb` KiB in one piece are free, and no more can be had.

Called by interpreter.mjs after the code is loaded and after the C heap is filled: so the number is what a board has left where the code
is frozen. Garbage is collected only when control goes back to JavaScript: a bounded run is stricter than a board.
"""

import gc

_ballast = None


def fill(heap_kb):
    """Hold all free memory but `heap_kb` KiB; that comes free when this returns."""
    global _ballast
    reserve = bytearray(heap_kb * 1024)
    for size in (65536, 8192, 1024, 128, 16):
        try:
            while True:
                _ballast = [_ballast, None]  # first: without memory for it `size` octets would come free behind the bound
                _ballast[1] = bytearray(size)
        except MemoryError:
            pass
    del reserve
    gc.collect()

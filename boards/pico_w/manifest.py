"""The frozen firmware of this board; in a working copy of MicroPython:

make -C ports/rp2 BOARD=RPI_PICO_W FROZEN_MANIFEST=.../boards/pico_w/manifest.py
"""

include("$(BOARD_DIR)/manifest.py")  # noqa: F821 - MicroPython's build gives it
include("../manifest.py", board="pico_w")  # noqa: F821 - as above

"""The frozen firmware of this board; in a working copy of MicroPython:

make -C ports/mimxrt BOARD=TEENSY41 FROZEN_MANIFEST=.../boards/teensy_41/manifest.py
"""

include("$(PORT_DIR)/boards/manifest.py")  # noqa: F821 - MicroPython's build gives it
include("../manifest.py", board="teensy_41")  # noqa: F821 - as above

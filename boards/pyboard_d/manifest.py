"""The frozen firmware of this board; in a working copy of MicroPython:

make -C ports/stm32 BOARD=PYBD_SF2 FROZEN_MANIFEST=.../boards/pyboard_d/manifest.py
"""

include("$(BOARD_DIR)/manifest.py")  # noqa: F821 - MicroPython's build gives it
include("../manifest.py", board="pyboard_d")  # noqa: F821 - as above

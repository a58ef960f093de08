"""The frozen firmware of this board; in a working copy of MicroPython:

make -C ports/stm32 BOARD=PYBV11 FROZEN_MANIFEST=.../boards/stm32f4/manifest.py
"""

include("$(PORT_DIR)/boards/manifest.py")  # noqa: F821 - MicroPython's build gives it
include("../manifest.py", board="stm32f4")  # noqa: F821 - as above

"""The frozen firmware of this board; in a working copy of MicroPython:

make -C ports/stm32 BOARD=NUCLEO_H743ZI FROZEN_MANIFEST=.../boards/stm32h7/manifest.py
"""

include("$(PORT_DIR)/boards/manifest.py")  # noqa: F821 - MicroPython's build gives it
include("../manifest.py", board="stm32h7")  # noqa: F821 - as above

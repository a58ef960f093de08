"""The frozen firmware of this board; in a working copy of MicroPython:

make -C ports/esp32 BOARD=ESP32_GENERIC_C6 FROZEN_MANIFEST=.../boards/esp32_c6/manifest.py
"""

include("$(PORT_DIR)/boards/manifest.py")  # noqa: F821 - MicroPython's build gives it
include("../manifest.py", board="esp32_c6")  # noqa: F821 - as above

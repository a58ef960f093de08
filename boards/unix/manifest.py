"""The frozen firmware of this board; in a working copy of MicroPython:

make -C ports/unix FROZEN_MANIFEST=.../boards/unix/manifest.py
"""

include("$(PORT_DIR)/variants/manifest.py")  # noqa: F821 - MicroPython's build gives it
include("../manifest.py", board="unix")  # noqa: F821 - as above

"""Freezes Leveret into a firmware: what the board `board` carries, taken from this tree by `leveret flash --stage` (which has to be on
the PATH).

The manifest of a board includes this file; MicroPython's build (tools/makemanifest.py) runs it and gives it `include`, `package` and
`options`. Since 1.29 it runs it twice, and reads paths of C modules from its standard output: nothing is printed there.
"""

import os
import shutil
import subprocess
import tempfile

options.defaults(board="")  # noqa: F821 - MicroPython's build gives it
_stage = os.path.join(tempfile.gettempdir(), "leveret-frozen-%s-%d" % (options.board, os.getuid()))  # noqa: F821 - as above
shutil.rmtree(_stage, ignore_errors=True)
subprocess.run(["leveret", "flash", "--board", options.board, "--stage", _stage], check=True, stdout=subprocess.DEVNULL)  # noqa: F821 - as above
package("leveret", base_path=_stage, opt=3)  # noqa: F821 - as above

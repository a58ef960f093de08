"""One start of a board in the current directory under CPython: boot.py, then main.py; the power goes at the n-th line of the files there.

python -I -S one_start.py N fat|littlefs        N 0: never; prints how many lines ran; exit status 9 for a power cut
"""

import os
import sys

HERE = os.getcwd()
CUT_AT, FILE_SYSTEM = int(sys.argv[1]), sys.argv[2]
STARTERS = ("boot.py", "slots.py", "main.py")
lines = 0


def trace(frame, event, argument):
    """Count the lines of the files that start a board."""
    global lines
    name = frame.f_code.co_filename
    if os.path.dirname(name) not in (HERE, "") or os.path.basename(name) not in STARTERS:
        return None
    if event == "line":
        lines += 1
        if lines == CUT_AT:
            os._exit(9)  # nothing is flushed
    return trace


def rename_as_fat(old, new, rename=os.rename):
    """os.rename where no file is replaced."""
    if os.path.exists(new):
        raise OSError(17, "EEXIST")
    rename(old, new)


if FILE_SYSTEM == "fat":
    os.rename = rename_as_fat
sys.path[:0] = [HERE]
sys.path.append(os.path.join(HERE, "lib"))
sys.print_exception = lambda error: print("raised", repr(error))
sys.settrace(trace)
try:
    for starter in ("boot.py", "main.py"):
        with open(starter) as file:
            text = file.read()
        exec(compile(text, os.path.join(HERE, starter), "exec"), {"__name__": "__main__"})
except SystemExit:
    pass  # a soft reset
sys.settrace(None)
print(lines)

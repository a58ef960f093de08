"""What a board does after a reset, for a `micropython` binary: boot.py, then main.py unless the raw prompt is wanted, then the REPL.

sys.path is a board's. A file that raises prints its trace, as on a board, and the next step follows. LEVERET_RAW in the environment: a soft
reset out of the raw REPL, after which a board runs boot.py alone.
"""

import os
import sys

sys.path[:] = ["", ".frozen", "lib"]
for _name in ("boot.py",) if os.getenv("LEVERET_RAW") else ("boot.py", "main.py"):
    try:
        with open(_name) as _file:
            _source = _file.read()
    except OSError:
        continue
    try:
        exec(compile(_source, _name, "exec"), {"__name__": "__main__"})
    except Exception as _error:  # as a board's main.py: told, and the prompt comes
        sys.print_exception(_error)
    except KeyboardInterrupt:
        print("KeyboardInterrupt")

"""Writes c_accel/layout.h from core/memory/layout.py: the C functions work on the same records.

python3 tools/generate_layout.py           write it
python3 tools/generate_layout.py --check   exit status 1 when what is there is not what it would write
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from core.memory import layout  # type: ignore[import-not-found]  # noqa: E402 - the path above has to be set first; the package need not be installed for this

PATH = os.path.join("c_accel", "layout.h")


def text():
    """The header."""
    names = [name for name in vars(layout) if name.isupper()]
    rows = ["    %s = %d," % (name, getattr(layout, name)) for name in names]
    return (
        "/* Written by tools/generate_layout.py from core/memory/layout.py, which says what each is. */\n"
        "#ifndef LEVERET_LAYOUT_H\n#define LEVERET_LAYOUT_H\n\nenum {\n" + "\n".join(rows) + "\n};\n\n#endif\n"
    )


def main():
    path = os.path.join(ROOT, PATH)
    if "--check" not in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text())
        return 0
    with open(path, encoding="utf-8") as file:
        if file.read() == text():
            return 0
    print("%s is not what tools/generate_layout.py writes: run it" % PATH)
    return 1


if __name__ == "__main__":
    sys.exit(main())

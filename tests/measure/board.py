"""Measures what a message costs a board: `python tests/measure/board.py`, on a 32-bit `micropython` binary (micropython32 on the PATH).

Microseconds from receive buffer to send buffer and for the acknowledgement, of the plain form (bytecode) and the viper form (machine code)
of the hot functions, without a port. This machine's microseconds are not a board's: the ratio between the forms is what carries over.
"""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "micropython"))

import compiled  # noqa: E402 - the path above has to be set first
import toolchain  # noqa: E402 - the path above has to be set first

PROFILE = "esp32_s3"
SIZES = (16, 64, 256, 1000)
MESSAGES = 2000


def measured(binary, march):
    """{octets of body: microseconds a message}."""
    with tempfile.TemporaryDirectory(prefix="leveret-bench-") as staged:
        compiled.make(staged, PROFILE, march)
        lines = compiled.run(binary, staged, os.path.join(HERE, "time_inside.py"), MESSAGES, *SIZES)
    return {int(line.split()[0]): float(line.split()[1]) for line in lines}


def main():
    """Print the table; the exit status."""
    try:
        binary = toolchain.unix_32()
    except toolchain.Missing as missing:
        print(missing)
        return 2
    plain, viper = measured(binary, ""), measured(binary, "x86")
    print(f"{'octets of body':>15} {'plain us':>10} {'viper us':>10} {'ratio':>6}")
    for size in SIZES:
        print(f"{size:15} {plain[size]:10.1f} {viper[size]:10.1f} {plain[size] / viper[size]:6.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

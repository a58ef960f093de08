"""Measures what a message costs a board: `python tests/measure/board.py`, on a 32-bit `micropython` binary (micropython32 on the PATH).

Microseconds from receive buffer to send buffer and for the acknowledgement, of the plain form (bytecode) and the viper form (machine code)
of the hot functions, without a port. This machine's microseconds are not a board's: the ratio between the forms is what carries over.
"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "micropython"))

import stage  # noqa: E402 - the path above has to be set first
import toolchain  # noqa: E402 - the path above has to be set first

from leveret.tools import generate_viper  # noqa: E402 - beside the others

SIZES = (16, 64, 256, 1000)
MESSAGES = 2000
MEMORY = os.path.join(stage.ROOT, "tests", "memory")


def measured(binary, viper):
    """{octets of body: microseconds a message}."""
    with tempfile.TemporaryDirectory(prefix="leveret-bench-") as staged:
        stage.make(staged)
        if viper:
            generate_viper.write(os.path.join(staged, "lib", "leveret", "core"))
        done = subprocess.run(
            [binary, "-X", "heapsize=4m", os.path.join(HERE, "time_inside.py"), str(MESSAGES), *[str(size) for size in SIZES]],
            cwd=staged,
            env=dict(os.environ, MICROPYPATH=f"{HERE}:{MEMORY}:{staged}/lib"),
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return {int(line.split()[0]): float(line.split()[1]) for line in done.stdout.splitlines()}


def main():
    """Print the table; the exit status."""
    try:
        binary = toolchain.unix_32()
    except toolchain.Missing as missing:
        print(missing)
        return 2
    plain, viper = measured(binary, False), measured(binary, True)
    print(f"{'octets of body':>15} {'plain us':>10} {'viper us':>10} {'ratio':>6}")
    for size in SIZES:
        print(f"{size:15} {plain[size]:10.1f} {viper[size]:10.1f} {plain[size] / viper[size]:6.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

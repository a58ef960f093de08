"""Records the golden octets of AMQP 0-10: what Qpid's JMS client 6.4 writes for each control, command and struct that it knows.

python tests/vectors/record_0_10.py        needs a JDK and Maven (tests/interop_1_0/brought.py); writes amqp_0_10.json here
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop_1_0"))

import brought  # noqa: E402 - its path has to be set first

if __name__ == "__main__":
    done = subprocess.run(brought.java("Octets010"), capture_output=True, text=True, check=True)
    with open(os.path.join(HERE, "amqp_0_10.json"), "w", encoding="utf-8") as file:
        file.write(done.stdout)

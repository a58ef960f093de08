"""Lets hostile clients loose on a broker, beside honest ones: `python3 tools/dev.py attack [--minutes N] [--seed S] [--form plain|c|both]`.

A real `leveret serve --data` with small limits, on a free loopback port, in each form of the hot path. Attackers (hostile_*.py) come and
go as the seed says (schedule.py), several at once (lanes.py); the broker is killed with kill -9 and started again, and told to read its
certificates (keeper.py). Honest clients (honest.py) keep a ledger; watch.py looks at memory, descriptors, disk and log lines, and a client
asks how long a question waits. It ends with a table (tell.py), and with exit status 1 when there was a finding. `--only NAME` runs one
attacker (again and again), `--list` names them. This file is the command line; director.py has the run.

Laws: everything is on the loopback, bounded in number and time, and stops by itself; only processes that were started here are ended.
"""

import argparse
import os
import random
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "interop"))

import director  # noqa: E402 - amqp_wire, which it needs, is found by the path above
import schedule  # noqa: E402 - the same

FORMS = ("plain", "c")


def both(options):
    """Both forms side by side: the worse status."""
    arguments = [word for word in sys.argv[1:] if word != "both" and not word.startswith("--form")]
    if not any(word.startswith("--seed") for word in arguments):
        arguments += ["--seed", str(options.seed)]
    children = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "--form", form] + arguments) for form in FORMS]
    try:
        return max(abs(child.wait()) for child in children)
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
                child.wait()


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/dev.py attack", description="Let hostile clients loose on a broker beside honest ones.")
    parser.add_argument("--minutes", type=float, default=2.0, metavar="N", help="how long (default 2, in each form)")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="who attacks when, and with what (default: drawn, and said)")
    parser.add_argument("--form", choices=FORMS + ("both",), default="both", help="of the hot path: plain Python, C, or both side by side")
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=sorted(schedule.attackers()), help="only this attacker; may be given again"
    )
    parser.add_argument("--no-deeds", action="store_true", help="no kill -9 and no SIGHUP")
    parser.add_argument("--canary", default="", help="a broker that is deliberately wrong (launch.py): the attack has to find it")
    parser.add_argument("--list", action="store_true", help="name the attackers")
    options = parser.parse_args()
    if options.minutes <= 0:
        parser.error("--minutes must be more than 0")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 30)
    return options


def main():
    """Run; 1 when there was a finding."""
    options = arguments()
    if options.list:
        for name, (file, function) in schedule.attackers().items():
            print(f"{file:12} {name:26} {function.__doc__.splitlines()[0]}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return both(options) if options.form == "both" else 1 if director.Run(options).run() else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""One command for work on Leveret: set-up, demo, test, check, bench, site, package.

    python3 tools/dev.py setup | demo [...] | test [LEG ...] | check | mutate [...] | bench [...] | site
    python3 tools/dev.py package wheel | sdist ...
    python3 tools/dev.py simulate [...] | faults [...] | attack [...] | kill [--times N]

Laws: the standard library only; every command sets up what it needs by itself (`.venv`, pinned packages) and says what it does;
the exit status is 0 only when everything that had to run ran and passed.
This file holds only the command line and is written so that an old Python still reads it and gets a clear sentence;
the work is done in `tools/devtool/`.
"""

import os
import signal
import sys

OLDEST = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def refuse_old_python():
    if sys.version_info < OLDEST:
        sys.exit(
            "Leveret needs Python %d.%d or newer, and this is %d.%d (%s): run this command with a newer python3."
            % (*OLDEST, *sys.version_info[:2], sys.executable)
        )


def parse(arguments):
    import argparse

    parser = argparse.ArgumentParser(prog="tools/dev.py", description="Set up, show, test and measure Leveret.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("setup", help="make .venv with everything this machine can use (the other commands do it by themselves)")
    commands.add_parser("demo", help="sensors, gateway, bridge, upstream, Spark, Parquet; `demo --help` lists its options", add_help=False)
    test = commands.add_parser("test", help="run every leg of the tests, or only the named ones")
    test.add_argument("legs", nargs="*", metavar="LEG")
    commands.add_parser("check", help="style, forbidden constructs, generated files")
    commands.add_parser(
        "mutate", help="change random lines, one at a time, and name what no fast test notices: --count N [--seed S]", add_help=False
    )
    commands.add_parser("bench", help="measure; options go to tests/measure/run.py", add_help=False)
    commands.add_parser("simulate", help="power cuts, drawn from seeds: --seeds N [--first S]; --help lists more", add_help=False)
    commands.add_parser(
        "faults", help="the bridge through faulty links, drawn from seeds: --runs N [--first S]; --help lists more", add_help=False
    )
    commands.add_parser("attack", help="hostile clients beside honest ones: --minutes N [--seed S]; --help lists more", add_help=False)
    commands.add_parser("site", help="the pages and the API as a site, in build/site; dead links fail")
    commands.add_parser("package", help="what others install, in dist/: --help lists the kinds", add_help=False)
    commands.add_parser("lock", help="write tools/devtool/locks: every package that is installed, by version and hash")
    kill = commands.add_parser("kill", help="kill -9 a real `leveret serve --data` under real clients, again and again")
    kill.add_argument("--times", type=int, default=200, metavar="N", help="how often (default 200, about ten minutes)")
    known, rest = parser.parse_known_args(arguments)
    if known.command == "kill" and known.times < 1:
        parser.error("--times must be 1 or more")
    if rest and known.command not in ("demo", "bench", "mutate", "simulate", "faults", "attack", "package"):
        parser.error("unknown argument %s" % rest[0])
    return known, rest


def dispatch(options, rest):
    """The exit status of one command."""
    sys.path.insert(0, ROOT)
    from tools.devtool import environment, legs, locks  # type: ignore[import-not-found]  # found by the path above

    if options.command == "lock":
        return locks.main()
    if options.command == "test":
        legs.refuse_unknown(options.legs)
    python = environment.prepare(options.command)
    if options.command == "setup":
        return 0
    if options.command == "test":
        return legs.run(python, options.legs)
    if options.command == "check":
        return environment.run_here([python, "-m", "leveret.tools.devtool.check"])
    if options.command == "site":
        return environment.run_here([python, "-m", "leveret.tools.devtool.site"])
    if options.command == "package":
        return environment.run_here([python, "-m", "leveret.tools.devtool.package"] + rest)
    if options.command == "mutate":
        return environment.run_here([python, "-m", "leveret.tools.devtool.mutate"] + rest)
    if options.command == "simulate":
        return environment.run_here([python, os.path.join(ROOT, "tests", "simulate", "run.py")] + rest)
    if options.command == "faults":
        return environment.run_here([python, os.path.join(ROOT, "tests", "bridge", "faults.py")] + rest)
    if options.command == "attack":
        return environment.run_here([python, os.path.join(ROOT, "tests", "attack", "attack.py")] + rest)
    if options.command == "kill":
        os.environ["LEVERET_KILLS"] = str(options.times)
        return environment.run_here([python, "-m", "pytest", "-q", "-s", os.path.join(ROOT, "tests", "durable", "test_kill.py")])
    if options.command == "demo":
        return environment.run_here([python, "-m", "leveret.tools.demo"] + rest)
    return environment.run_here([python, os.path.join(ROOT, "tests", "measure", "run.py")] + rest)


def leave(number, _):
    """Told to end: leave through the `finally` blocks that end the children."""
    sys.exit(128 + number)


def main():
    refuse_old_python()
    options, rest = parse(sys.argv[1:])
    for name in ("SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), leave)
    try:
        sys.exit(dispatch(options, rest))
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()

"""Runs seeds of the simulation: `python3 tools/dev.py simulate [--seeds N] [--first S] [--cuts N] [--workers N]`.

The broker of odd seeds works in C, where that is built; the story is the same in both forms. Seeds from MIXED on have clients of
AMQP 1.0 beside those of 0-9-1; behind each second seed runs the one of these with its number, so that `--seeds N` takes in both. A seed
that fails prints one line that reruns it alone, with its story. The last line is what was done: seeds, power cuts, crashes, messages
checked. Exit status 1 when a seed failed. `--cuts N`: go on until there were so many power cuts.
"""

import argparse
import multiprocessing
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SEEDS = os.path.join(HERE, "seeds.txt")

sys.path[:0] = [path for path in (HERE, os.path.join(ROOT, "tests", "unit")) if path not in sys.path]

MIXED = 20000000  # seeds from here on are those of a World10
CHUNK = 10  # seeds that a worker gets at once


def kept_seeds():
    """The seeds that found something once."""
    with open(SEEDS, encoding="utf-8") as file:
        return [int(line.split()[0]) for line in file if line.strip() and not line.startswith("#")]


def form_of(seed):
    """The engine of a seed's brokers."""
    from leveret import c_accel
    from leveret.core.broker import engine

    class InC(c_accel.Engine):
        """With turns as in the plain form, for the same story."""

        turn = engine.Plain.turn

    return InC if seed % 2 and c_accel.lib is not None else engine.Plain


def one(seed, printing=False, form=None):
    """(seed, counts, what went wrong or ""). `form`: an engine other than the seed's own."""
    from world import World
    from world_1_0 import World10

    from leveret.core.broker import engine

    world = (World10 if seed >= MIXED else World)(seed, printing=printing)
    before, engine.chosen = engine.chosen, form or form_of(seed)
    try:
        return seed, world.run(), ""
    except Exception as error:  # whatever is raised is the finding, with its seed
        place = traceback.extract_tb(error.__traceback__)[-1]
        if printing:
            traceback.print_exc()
        return seed, world.counts, "%s at %s:%d: %s" % (type(error).__name__, os.path.basename(place.filename), place.lineno, error)
    finally:
        engine.chosen = before


def rerun(seed):
    """The command line that reruns a seed."""
    return "python3 tools/dev.py simulate --seeds 1 --first %d" % seed


def add(total, counts):
    """Add counts to a total."""
    for name in counts:
        total[name] = total.get(name, 0) + counts[name]


def seeds_of(options):
    """The seeds to run, in order; without end for --cuts."""
    seed = options.first
    while options.cuts or seed < options.first + options.seeds:
        yield seed
        if seed < MIXED and seed % 4 < 2:
            yield MIXED + seed
        seed += 1


def run_all(options):
    """(total counts, number of seeds, failures)."""
    total, count, failures = {}, 0, []
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for seed, counts, wrong in pool.imap_unordered(one, seeds_of(options), CHUNK if not options.cuts else 1):
            count += 1
            add(total, counts)
            if wrong:
                failures.append(seed)
                print("%s  # %s" % (rerun(seed), wrong[:600]), flush=True)
            if options.cuts and total["cuts"] >= options.cuts:
                pool.terminate()
                break
    return total, count, failures


def summary(total, count, seconds):
    """What was done, in one line."""
    return (
        "%d seeds in %.0f s: %d power cuts (%d of them during recovery), %d kills, %d bits flipped, %d segments lost; %d confirms, "
        "%d recovered messages checked, %d deliveries; %d syncs took their time, %d crashes in the middle of one; "
        "%d failed writes and syncs, %d segments freed, %d messages copied forward, %d only in the log and %d given back to it, "
        "%d of them unreadable; %d read again from streams; AMQP 1.0: %d links attached again, %d deliveries resumed, "
        "%d messages processed exactly once, %d transactions"
        % (
            count,
            seconds,
            total["cuts"],
            total["recovery_cuts"],
            total["kills"],
            total["flips"],
            total["lost"],
            total["confirmed"],
            total["checked"],
            total["delivered"],
            total["delayed"],
            total["interrupted"],
            total["troubles"],
            total["freed"],
            total["copied"],
            total["paged"],
            total["given_back"],
            total["unreadable"],
            total["read_again"],
            total.get("attached_again", 0),
            total.get("resumed", 0),
            total.get("exactly_once", 0),
            total.get("transactions", 0),
        )
    )


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/dev.py simulate", description="Cut the power of a simulated broker, again and again.")
    parser.add_argument("--seeds", type=int, default=300, metavar="N", help="how many seeds (default 300)")
    parser.add_argument("--first", type=int, default=1, metavar="S", help="the first seed (default 1)")
    parser.add_argument("--cuts", type=int, default=0, help="go on until there were so many power cuts")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N", help="processes (default: one for each core)")
    options = parser.parse_args()
    for name in ("seeds", "workers"):
        if getattr(options, name) < 1:
            parser.error("--%s must be 1 or more" % name)
    return options


def main():
    """Run; 1 when something failed."""
    options = arguments()
    started = time.monotonic()
    if options.seeds == 1 and not options.cuts:
        seed, counts, wrong = one(options.first, True)
        print("seed %d: %s" % (seed, wrong or counts))
        return 1 if wrong else 0
    total, count, failures = run_all(options)
    print(summary(total, count, time.monotonic() - started))
    if failures:
        print("%d seeds failed; each reruns alone, with its story:" % len(failures))
        for seed in sorted(failures):
            print("    " + rerun(seed))
    else:
        print("no seed failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

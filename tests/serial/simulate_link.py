"""Runs seeds of the serial link's simulation: `python tests/serial/simulate_link.py --seeds N [--first S] [--workers N]`.

A seed that fails prints one line that reruns it alone. The last line is what was done. Exit status 1 when a seed failed.
"""

import argparse
import multiprocessing
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = os.path.join(HERE, "link_seeds.txt")

if HERE not in sys.path:
    sys.path.insert(0, HERE)


def kept_seeds():
    """The seeds that found something once."""
    with open(SEEDS, encoding="utf-8") as file:
        return [int(line.split()[0]) for line in file if line.strip() and not line.startswith("#")]


def one(seed):
    """(seed, counts, what went wrong or "")."""
    from link_world import World

    world = World(seed)
    try:
        return seed, world.run(), ""
    except Exception as error:  # whatever is raised is the finding, with its seed
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = "%s:%d" % (os.path.basename(place.filename), place.lineno)
        return seed, world.counts, "%s: %s at %s: %s" % (world.kind, type(error).__name__, where, error)


def run_all(seeds, workers):
    """(total counts, number of seeds, [line that reruns a failure])."""
    total, count, failures = {}, 0, []
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        for seed, counts, wrong in pool.imap_unordered(one, seeds, 5):
            count += 1
            for name in counts:
                total[name] = total.get(name, 0) + counts[name]
            if wrong:
                failures.append("python tests/serial/simulate_link.py --seeds 1 --first %d  # %s" % (seed, wrong[:400]))
                print(failures[-1], flush=True)
    return total, count, failures


def main():
    """Run; 1 when something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    started = time.monotonic()
    if options.seeds == 1:
        from link_world import World

        world = World(options.first)
        print(world.kind, world.settings)
        print(world.run())
        return 0
    total, count, failures = run_all(range(options.first, options.first + options.seeds), options.workers)
    print("%d seeds in %.0f s: %s" % (count, time.monotonic() - started, ", ".join("%d %s" % (total[name], name) for name in total)))
    print("no seed failed" if not failures else "%d seeds failed" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

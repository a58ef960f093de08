"""What `dev.py mutate` says at its end: survivors, mutants without a verdict, and a table. A mutant without a verdict has not died."""

import os

COLUMNS = ("of", "mutants", "killed", "by their time", "survived", "not judged", "killed")


def killed(mutants):
    return sum(mutant.verdict.startswith("killed") for mutant in mutants)


def _row(name, mutants):
    verdicts = [mutant.verdict for mutant in mutants]
    counts = [len(mutants)] + [verdicts.count(each) for each in ("killed", "killed by its time", "survived", "")]
    return (name, *map(str, counts), "%.0f %%" % (100 * killed(mutants) / len(mutants)))


def table(mutants):
    """The lines of the table: for each folder and kind of change how many were made, killed, survived, and are not judged."""
    rows = [COLUMNS]
    for group in (lambda mutant: mutant.path.split(os.sep)[0], lambda mutant: mutant.mutation.kind, lambda mutant: "all"):
        for name in sorted({group(mutant) for mutant in mutants}):
            rows.append(_row(name, [mutant for mutant in mutants if group(mutant) == name]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return ["  ".join([row[0].ljust(widths[0])] + [row[column].rjust(widths[column]) for column in range(1, len(row))]) for row in rows]


def _survivor(mutant):
    unseen = "" if mutant.reached else " (no unit test runs this line)"
    return f"{mutant.place()}  {mutant.sentence()}  SURVIVED{unseen}, {mutant.files} test files passed"


def lines_of(mutants, seed, wanted, elsewhere):
    """Everything that is said at the end. `wanted`: which part of the mutants is to die; `elsewhere`: rows (beginning of a path, why no
    mutant is drawn from it)."""
    survivors = [_survivor(mutant) for mutant in mutants if mutant.verdict == "survived"]
    unjudged = [f"{mutant.place()}  {mutant.sentence()}{', out of time' * (mutant.left > 0)}" for mutant in mutants if not mutant.verdict]
    lines = ["", f"Survivors ({len(survivors)}):" if survivors else "No survivors.", *survivors]
    if unjudged:
        lines += ["", f"Not judged ({len(unjudged)}); the same command goes on:", *unjudged]
    lines += ["", "Not drawn from:"]
    lines += [f"  {start}*: {why}" for start, why in elsewhere]
    lines += ["  docstrings, texts, annotations, what is the same program by a rule, lines that end processes or remove files:"]
    lines += ["    see tools/devtool/mutations.py", ""]
    lines += table(mutants)
    count, part = killed(mutants), 100 * wanted
    return [
        *lines,
        "",
        f"{count} of {len(mutants)} mutants died, {len(unjudged)} are not judged (seed {seed}, at least {part:.0f} % are to die)",
    ]

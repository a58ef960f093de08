"""The table at the end of an attack: attackers, honest clients, broker, findings."""

NOT_ANSWERS = ("times", "rounds", "connections")


def lines(run):
    """The whole table of a director.Run, as lines."""
    return attackers(run) + [""] + honest(run) + [""] + clients(run) + [""] + broker(run) + findings(run)


def attackers(run):
    """Each attacker: how often, and how the broker answered it."""
    rows = [("attacker", "kind", "times", "rounds", "connections", "longest wait ms", "how answered")]
    for name in sorted(run.names, key=lambda name: (run.table[name][0], name)):
        counts = run.reports[name]
        if counts["times"]:
            answers = ", ".join(f"{key} {counts[key]}" for key in sorted(counts) if key not in NOT_ANSWERS)
            figures = tuple(counts[key] for key in NOT_ANSWERS)
            rows.append((name, run.table[name][0], *figures, f"{run.longest[name]:.0f}", answers))
    return table(rows)


def honest(run):
    """Each honest queue: its ledger and its times."""
    head = ("honest", "published", "confirmed", "refused", "received", "missing", "doubled")
    rows = [(*head, "confirm ms p50/p99/max", "delivery ms p50/p99/max")]
    for row in run.report["rows"] if run.report else ():
        rows.append(row[:7] + tuple("/".join(f"{each:.0f}" for each in figures) for figures in row[7:]))
    return table(rows)


def clients(run):
    """Each honest client: how it fared."""
    rows = [("client", "connections lost", "cut off", "blocked s", "longest log-in ms")]
    for name, lost, cut, blocked, ms in run.report["clients"] if run.report else ():
        rows.append((name, lost, cut, f"{blocked:.1f}", f"{ms:.0f}"))
    return table(rows)


def broker(run):
    """How long questions waited, and what the broker's process took."""
    watch, keeper = run.watch, run.keeper
    p50, p99, most = run.report["waits"] if run.report else (0, 0, 0)
    return [
        f"questions: p50 {p50:.0f} ms, p99 {p99:.0f}, max {most:.0f}; most work of the broker while one waited {run.stall_cpu:.2f} s",
        f"broker: memory at most {watch.rss_kib >> 10} MiB of {watch.sum_mib} ({watch.base_kib >> 10} at the start), "
        f"{watch.descriptors} descriptors, {watch.disk >> 20} MiB of disk, {watch.lines_max} lines in a minute; "
        f"{keeper.kills} kill -9, {keeper.hangups} SIGHUP, {keeper.deaths} ends by itself, "
        f"{keeper.hangs} hangs; longest start {watch.start_s:.1f} s; "
        f"cleaned {run.cleaned} times",
    ]


def findings(run):
    """Each finding in short."""
    rows = run.findings.rows
    said = [f"{len(rows)} findings" + (f"; what is left is in {run.directory}" if rows else "")]
    for text, minute, names, count in rows.values():
        first = text.strip().splitlines()
        said.append(f"  minute {minute:.2f}, {count} times: {first[0][:200]}{' ... ' + first[-1][:200] if len(first) > 1 else ''}")
        said.append(f"    at work: {', '.join(names)}")
    return said


def table(rows):
    """Rows as lines with columns."""
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  ".join(
            f"{str(cell):<{width}}" if column == 0 else f"{str(cell):>{width}}" for column, (cell, width) in enumerate(zip(row, widths))
        )
        + "  "
        + str(row[-1])
        for row in rows
    ]

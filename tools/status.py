"""`leveret status [URL]`: what a running broker holds and has done, as plain text; with --json the same as one object.

One fact a line: a word, a space, the rest. The order and the words stay: scripts may read them.

    product Leveret 0.1.0
    virtual_host NAME
    uptime_ms N
    publishers waiting N since_ms N reason TEXT         TEXT: what is full when they wait for long, else "" (JSON)
    memory blocks_used N ...        counter NAME N
    log sync each|batch|none        log NAME N|- ...        with --data: octets written, syncs, write amplification, years the medium lasts
    total queues N ...              queue NAME messages N unsettled N octets N consumers N full yes|no policy NAME|- type classic|quorum
    stream NAME first_offset N next_offset N octets N octets_max N dropped N consumers N policy NAME|-
    connection NAME user NAME|- state STATE channels N
    board NAME VALUE        of a board itself: board name machine micropython version uptime_ms faults starts heap heap_free heap_hole
    board reason TIME SENTENCE      why it started the last times, and what ended its broker; the newest last

Names are written as JSON strings, so that one with a space in it is still one word to who reads JSON. Exit status 1: no answer.
"""

import json
import sys
import time

from leveret.core.errors import NOT_IMPLEMENTED

from . import manage

MEMORY = ("block_size", "blocks_used", "blocks_free", "messages_used", "messages_free", "entries_used", "entries_free", "octets_max")
TOTALS = ("connections", "channels", "consumers", "queues", "exchanges", "bindings", "policies", "users")
BOARD = ("board", "name", "machine", "micropython", "version", "uptime_ms", "faults", "starts", "connections")
HEAP = ("heap", "heap_free", "heap_hole")
COLUMNS = {
    "queues": ("queue", ("messages", "unsettled", "octets", "consumers", "full", "policy", "type")),
    "streams": ("stream", ("first_offset", "next_offset", "octets", "octets_max", "dropped", "consumers", "policy")),
    "connections": ("connection", ("user", "state", "channels")),
}


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("url", nargs="?", default=manage.URL_DEFAULT, metavar="URL", help=manage.URL_HELP)
    parser.add_argument("--json", action="store_true", help="one object: overview, counters, queues, streams, connections, board")


def word(value):
    """A value as one word."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value) if isinstance(value, str) else str(value)


def lines(overview, items):
    """The text, line by line."""
    yield f"product {overview['product']} {overview['version']}"
    yield f"virtual_host {word(overview.get('virtual_host', '/'))}"
    yield f"uptime_ms {overview['uptime_ms']}"
    publishers = overview.get("publishers")  # an older broker does not say
    if publishers is not None:
        yield f"publishers waiting {publishers['waiting']} since_ms {publishers['since_ms']} reason {word(publishers['reason'])}"
    for name in MEMORY:
        yield f"memory {name} {overview['memory'][name]}"
    for name, value in (overview["log"] or {}).items():
        yield f"log {name} {value if name == 'sync' else word(value)}"
    for name in TOTALS:
        yield f"total {name} {overview['totals'][name]}"
    for each in sorted(items.get("counters", []), key=list):
        for name, count in each.items():
            yield f"counter {name} {count}"
    for section, (title, columns) in COLUMNS.items():
        for row in sorted(items.get(section, []), key=lambda row: row["name"]):
            yield " ".join([title, word(row["name"]), *(f"{name} {plain(name, row[name])}" for name in columns)])


def lines_of_board(page):
    """The text of a board's own page, line by line (firmware/status_page.py)."""
    for name in BOARD:
        if name in page:
            yield f"board {name} {word(page[name])}"
    for name in HEAP:
        yield f"board {name} {word(page[name])}"
    for line in page["reasons"]:
        seconds, _, sentence = line.partition(" ")
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds))) if seconds.isdigit() else "-"
        yield f"board reason {when} {word(sentence)}"
    for name, count in sorted(page.get("queues", {}).items()):
        yield f"queue {word(name)} messages {count}"


def asked(manager):
    """(the overview's first answer or None, its items, the board's own page or None). Raises manage.ManageFailed."""
    try:
        first, items = manager.pages("overview")
    except manage.ManageFailed as error:
        if error.condition != NOT_IMPLEMENTED:
            raise
        first, items = None, {}  # a board without management: its page is all
    if first is None or first.get("board"):
        return first, items, manager.ask("board")["board"]
    return first, items, None


def plain(name, value):
    """A column's value; the few words that the broker chooses itself stand without quotes."""
    return value if name in ("state", "type") else word(value)


def run(options):
    """Print it; the exit status."""
    try:
        with manage.Manager(options.url) as manager:
            first, items, page = asked(manager)
    except manage.ManageFailed as error:
        print(f"leveret status: {error}", file=sys.stderr)
        return 1
    if options.json:
        counters = {name: count for each in items.pop("counters", []) for name, count in each.items()}
        made = dict(items, overview=first["overview"], counters=counters) if first else {}
        if page is not None:
            made["board"] = page
        print(json.dumps(made, indent=1, sort_keys=True))
        return 0
    for line in lines(first["overview"], items) if first else ():
        print(line)
    for line in lines_of_board(page) if page else ():
        print(line)
    return 0

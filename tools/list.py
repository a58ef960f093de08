"""`leveret list WHAT [URL]`: what a running broker has of one kind, a row each, sorted by name.

    $ leveret list queues
    name      messages  unsettled  octets  consumers  full  policy  type
    readings  12        0          3072    1          no    -       classic

`--json` prints an array of objects with the same columns, for programs. Exit status 1: no answer.
"""

import sys

from . import manage, status
from .rows import show

QUEUES = ("name", *status.COLUMNS["queues"][1])
STREAMS = ("name", *status.COLUMNS["streams"][1])
CONNECTIONS = ("name", *status.COLUMNS["connections"][1])
OUR_OWN = manage.REPLY_TO + "."  # the queue in which the answer comes
# What: the request that has it, its columns.
KINDS = {
    "queues": ("overview", QUEUES),
    "streams": ("overview", STREAMS),
    "connections": ("overview", CONNECTIONS),
    "exchanges": ("definitions", ("name", "type", "durable", "auto_delete", "internal", "arguments")),
    "bindings": ("definitions", ("source", "destination_type", "destination", "routing_key", "arguments")),
    "users": ("definitions", ("name", "tags")),
    "permissions": ("definitions", ("user", "configure", "write", "read")),
    "policies": ("definitions", ("name", "pattern", "apply-to", "priority", "definition")),
}


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("what", choices=tuple(KINDS), metavar="WHAT", help=", ".join(KINDS))
    parser.add_argument("url", nargs="?", default=manage.URL_DEFAULT, metavar="URL", help=manage.URL_HELP)
    parser.add_argument("--json", action="store_true", help="an array of objects")


def run(options):
    """Print the rows; the exit status."""
    request, columns = KINDS[options.what]
    try:
        with manage.Manager(options.url) as manager:
            _, items = manager.pages(request)
    except manage.ManageFailed as error:
        print(f"leveret list: {error}", file=sys.stderr)
        return 1
    rows = [{name: row.get(name) for name in columns} for row in items.get(options.what, [])]
    rows = [row for row in rows if not str(row.get("name")).startswith(OUR_OWN)]
    if options.what == "users" and not rows:
        print("leveret list: nobody is named; guest may log in with the password guest, from the broker's machine alone", file=sys.stderr)
    rows.sort(key=lambda row: [str(row[name]) for name in columns])
    show(columns, rows, options.json)
    return 0

"""`leveret branches`: branches of distributed transactions (AMQP 0-10, class dtx) whose transaction manager does not come back.

    leveret branches list [--of URL]
    leveret branches commit|rollback [--of URL] XID

A decision about a prepared branch is heuristic: the broker tells it to whoever asks for the branch later, until the manager says forget. An
active one can be rolled back. Exit status 1: the broker did not do it.
"""

import sys

from . import manage

UNKNOWN = "there is no request "  # how a broker that never had a branch begins its answer


def add_arguments(parser):
    """The subcommand's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("list", "show the branches that are active, prepared, or decided and not forgotten"),
        ("commit", "let all of a prepared branch take effect, without its transaction manager"),
        ("rollback", "let nothing of a prepared or active branch take effect, without its transaction manager"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("--of", dest="url", default=manage.URL_DEFAULT, metavar="URL", help=manage.URL_HELP)
        if name != "list":
            action.add_argument("xid", metavar="XID", help="as `list` shows it")


def line_of(branch):
    """One line for a branch."""
    state = branch["state"] + (f": {branch['outcome']}" if branch["outcome"] else "")
    return f"{branch['xid']}  {state}, user {branch['user']}, {branch['published']} to publish, {branch['consumed']} consumed"


def run(options):
    """Do it; returns the exit status."""
    try:
        with manage.Manager(options.url) as manager:
            if options.action == "list":
                for branch in branches_of(manager):
                    print(line_of(branch))
            else:
                manager.ask("decide-branch", xid=options.xid, outcome=options.action)
    except manage.ManageFailed as error:
        print(f"leveret branches: {error}", file=sys.stderr)
        return 1
    return 0


def branches_of(manager):
    """The branches; none where the broker has never had one."""
    try:
        return manager.ask("branches")["branches"]
    except manage.ManageFailed as error:
        if str(error).startswith(UNKNOWN):
            return []
        raise

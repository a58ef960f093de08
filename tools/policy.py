"""`leveret policy`: policies of a running broker.

    leveret policy list [--json] [URL]
    leveret policy set NAME PATTERN DEFINITION [--priority N] [--apply-to WHAT] [URL]      DEFINITION: JSON, as '{"max-length": 1000}'
    leveret policy clear NAME [URL]

They need the tag administrator or policymaker (`list`, and all with --operator: administrator). --operator is about operator policies:
bounds of max-length, max-length-bytes, message-ttl, expires and delivery-limit that no policy and no declaration goes beyond.
"""

from leveret.core.management.parameters import OPERATOR

from .asking import add_url, answers, manager, value_of
from .rows import show
from .usage import UsageError
from .users import imported

COLUMNS = ("name", "pattern", "apply-to", "priority", "definition")


def add_policy(parser):
    """The arguments of `policy`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (("list", "show the policies"), ("set", "add a policy, or replace it"), ("clear", "remove a policy")):
        action = actions.add_parser(name, help=text)
        action.add_argument(
            "--operator", action="store_true", help="of operator policies: bounds that no policy and no declaration goes beyond"
        )
        if name == "list":
            action.add_argument("--json", action="store_true", help="an array of objects")
        else:
            action.add_argument("name", metavar="NAME", help="of the policy")
        if name == "set":
            action.add_argument("pattern", metavar="PATTERN", help="regular expression of the names of queues or exchanges")
            action.add_argument("definition", metavar="DEFINITION", help="JSON, as '{\"max-length\": 1000}'")
            action.add_argument("--priority", type=int, default=0, metavar="N", help="the highest that fits applies (default 0)")
            action.add_argument(
                "--apply-to",
                metavar="WHAT",
                help="all, queues, exchanges, streams, classic_queues, quorum_queues (default all, with --operator queues)",
            )
        add_url(action)


def of_operator(items):
    """The operator policies among the definitions, which have them as parameters."""
    return [{**row["value"], **row} for row in items.get("parameters", []) if row["component"] == OPERATOR]


def policy(options):
    """Do one of the actions."""
    if options.action == "set":
        definition = value_of(options.definition)
        if not isinstance(definition, dict):
            raise UsageError(f"the definition {options.definition!r} is no JSON object, as '{{\"max-length\": 1000}}'")
    with manager(options.url) as asked:
        if options.action == "list":
            _, items = asked.pages("definitions")
            given = of_operator(items) if options.operator else items.get("policies", [])
            rows = [{name: row[name] for name in COLUMNS} for row in given]
            show(COLUMNS, sorted(rows, key=lambda row: row["name"]), options.json)
        elif options.action == "clear":
            asked.ask("remove-operator-policy" if options.operator else "remove-policy", name=options.name)
        else:
            value = {"pattern": options.pattern, "definition": definition, "priority": options.priority}
            value["apply-to"] = options.apply_to or ("queues" if options.operator else "all")
            if options.operator:
                imported(asked, parameters=[{"component": OPERATOR, "name": options.name, "value": value}])
            else:
                asked.ask("set-policy", name=options.name, **value)


COMMANDS = {"policy": (add_policy, answers("policy", policy))}

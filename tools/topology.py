"""`leveret declare | delete | bind | unbind | purge`: queues, exchanges and bindings of a running broker.

    leveret declare queue NAME [--type classic|quorum|stream] [--transient] [--auto-delete] [--argument NAME=VALUE]... [URL]
    leveret declare exchange NAME [--type TYPE] [--transient] [--auto-delete] [--internal] [--argument NAME=VALUE]... [URL]
    leveret delete queue NAME [--if-empty] [--if-unused] [URL]
    leveret delete exchange NAME [--if-unused] [URL]
    leveret bind SOURCE DESTINATION [--key KEY] [--to-exchange] [--argument NAME=VALUE]... [URL]
    leveret unbind SOURCE DESTINATION [--key KEY] [--to-exchange] [--argument NAME=VALUE]... [URL]
    leveret purge QUEUE [URL]

They are the methods of AMQP 0-9-1, with the permissions that those need, so they work with RabbitMQ too. What is declared again as it is
stays, with exit status 0; deleting what is not there is exit status 1.
"""

from .asking import Asked, add_arguments_of, add_url, answers, pairs, request

QUEUE_TYPES = ("classic", "quorum", "stream")


def add_declare(parser):
    """The arguments of `declare`."""
    nouns = parser.add_subparsers(dest="noun", required=True, metavar="WHAT")
    for noun, types, default in (("queue", "classic, quorum or stream", "classic"), ("exchange", "as direct, fanout, topic", "direct")):
        each = nouns.add_parser(
            noun, help=f"make a {noun} if it is not there" if noun == "queue" else "make an exchange if it is not there"
        )
        each.add_argument("name", metavar="NAME", help=f"of the {noun}")
        choices = QUEUE_TYPES if noun == "queue" else None
        each.add_argument("--type", "-t", default=default, choices=choices, metavar="TYPE", help=f"{types} (default {default})")
        each.add_argument("--transient", action="store_true", help="it is gone after a restart (default: durable)")
        each.add_argument("--auto-delete", action="store_true", help="it goes with its last consumer, or its last binding")
        if noun == "exchange":
            each.add_argument("--internal", action="store_true", help="only other exchanges publish to it")
        add_arguments_of(each, noun)
        add_url(each)


def declare(options):
    """Declare a queue or an exchange."""
    given = pairs(options.argument)
    with Asked(options.url) as client:
        if options.noun == "queue":
            if options.type != "classic":
                given.setdefault("x-queue-type", options.type)
            client.queue_declare(options.name, durable=not options.transient, auto_delete=options.auto_delete, arguments=given)
        else:
            client.exchange_declare(
                options.name,
                options.type,
                durable=not options.transient,
                auto_delete=options.auto_delete,
                internal=options.internal,
                arguments=given,
            )


def add_delete(parser):
    """The arguments of `delete`."""
    nouns = parser.add_subparsers(dest="noun", required=True, metavar="WHAT")
    for noun in ("queue", "exchange"):
        each = nouns.add_parser(
            noun, help="remove a queue with its messages" if noun == "queue" else "remove an exchange with its bindings"
        )
        each.add_argument("name", metavar="NAME", help=f"of the {noun}")
        if noun == "queue":
            each.add_argument("--if-empty", action="store_true", help="only when it has no messages")
        each.add_argument(
            "--if-unused", action="store_true", help="only when it has no " + ("consumers" if noun == "queue" else "bindings")
        )
        add_url(each)


def delete(options):
    """Delete a queue or an exchange."""
    with Asked(options.url) as client:
        if options.noun == "queue":
            client.queue_declare(options.name, passive=True)  # 0-9-1 deletes what is not there without a word
            count = client.queue_delete(options.name, options.if_unused, options.if_empty)
            print(f"deleted with {count} messages")
        else:
            client.exchange_declare(options.name, passive=True)
            client.exchange_delete(options.name, options.if_unused)


def add_binding(parser):
    """The arguments of `bind` and `unbind`."""
    parser.add_argument("source", metavar="SOURCE", help="the exchange that messages come from")
    parser.add_argument("destination", metavar="DESTINATION", help="the queue that they go to")
    parser.add_argument("--key", "-k", default="", metavar="KEY", help="the routing key, or pattern (default: empty)")
    parser.add_argument("--to-exchange", action="store_true", help="the destination is an exchange")
    add_arguments_of(parser, "binding")
    add_url(parser)


def bound(verb):
    """The function that binds, or unbinds."""

    def act(options):
        given = pairs(options.argument)
        with Asked(options.url) as client:
            if verb == "unbind":  # 0-9-1 takes away what is not there without a word
                client.exchange_declare(options.source, passive=True)
                (client.exchange_declare if options.to_exchange else client.queue_declare)(options.destination, passive=True)
            if options.to_exchange:
                request(client, "exchange_" + verb, 0, options.destination, options.source, options.key, False, given)
            else:
                getattr(client, "queue_" + verb)(options.destination, options.source, options.key, given)

    return act


def add_purge(parser):
    """The arguments of `purge`."""
    parser.add_argument("name", metavar="QUEUE", help="whose ready messages are dropped")
    add_url(parser)


def purge(options):
    """Drop the ready messages of a queue."""
    with Asked(options.url) as client:
        print(f"{client.queue_purge(options.name)} messages purged")


COMMANDS = {
    "declare": (add_declare, answers("declare", declare)),
    "delete": (add_delete, answers("delete", delete)),
    "bind": (add_binding, answers("bind", bound("bind"))),
    "unbind": (add_binding, answers("unbind", bound("unbind"))),
    "purge": (add_purge, answers("purge", purge)),
}

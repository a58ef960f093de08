"""`leveret publish` and `leveret get`: single messages.

    leveret publish EXCHANGE KEY [BODY] [--file FILE] [--property NAME=VALUE]... [--header NAME=VALUE]... [--count N] [URL]
    leveret get QUEUE [--count N] [--take] [--json] [URL]

`publish` returns when the broker has confirmed; a message that no queue gets is exit status 1. EXCHANGE may be "" or amq.default. BODY may
be given as --body TEXT too, which a body that begins as a broker's URL needs; without it and --file standard input is published. `get`
shows what is at the head of a queue and leaves it there, with bodies cut to what one answer of management holds; with --take the messages
leave the queue, whole, acknowledged when they have been printed. An empty queue is exit status 0 and a sentence on standard error.
"""

import base64
import json
import re
import sys

from . import manage
from .asking import Asked, add_url, answers, manager, pairs
from .usage import UsageError

NUMBERS = ("delivery_mode", "priority", "timestamp")
COUNT_MAX = 1000000
DEFAULT = "amq.default"
URL = re.compile(r"(amqps?|serial)://")


def count(text):
    """How many messages; for argparse."""
    if not text.isdigit() or not 0 < int(text) <= COUNT_MAX:
        raise ValueError(text)
    return int(text)


def add_publish(parser):
    """The arguments of `publish`."""
    parser.add_argument("exchange", metavar="EXCHANGE", help=f'"" or {DEFAULT} is the default exchange')
    parser.add_argument("key", metavar="KEY", help="the routing key; of the default exchange a queue's name")
    parser.add_argument("text", nargs="?", metavar="BODY", help="the body (default: standard input)")
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", metavar="TEXT", help="the same, for one that begins as a broker's URL")
    body.add_argument("--file", metavar="FILE", help="a file with the body")
    parser.add_argument("--property", action="append", default=[], metavar="NAME=VALUE", help="as delivery_mode=2, content_type=text/plain")
    parser.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="a header; the value is JSON, or else a text")
    parser.add_argument("--count", type=count, default=1, metavar="N", help="publish it so often (default 1)")
    add_url(parser)


def settle_places(options):
    """Of two last words, both of which may be left out, the first is the URL where it is alone and looks like one. Raises UsageError."""
    if options.text is not None and options.url == manage.URL_DEFAULT and URL.match(options.text):
        options.text, options.url = None, options.text
    if options.text is not None:
        if options.body is not None or options.file is not None:
            raise UsageError(f"the body is given twice: {options.text!r}, and by --body or --file")
        options.body = options.text


def body_of(options):
    """The body. Raises UsageError."""
    if options.body is not None:
        return options.body.encode("utf-8", "surrogateescape")
    if options.file is None:
        return sys.stdin.buffer.read()
    try:
        with open(options.file, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{options.file} cannot be read: {error.strerror}") from None


def properties_of(options):
    """The properties by name. Raises UsageError."""
    made = {name.replace("-", "_"): value for name, value in pairs(options.property).items()}
    for name, value in made.items():
        if name in NUMBERS and type(value) is not int:
            raise UsageError(f"the property {name} is a whole number, not {value!r}")
        if name not in NUMBERS:
            made[name] = value if isinstance(value, str) else json.dumps(value)
    if options.header:
        made["headers"] = pairs(options.header)
    return made


def publish(options):
    """Publish a message, `count` times."""
    settle_places(options)
    body, properties = body_of(options), properties_of(options)
    exchange = "" if options.exchange == DEFAULT else options.exchange
    with Asked(options.url) as client:
        try:
            for _ in range(options.count):
                client.publish(exchange, options.key, body, properties, mandatory=True, confirm=False)
            client.wait_confirmed()
        except KeyError as error:
            raise UsageError(str(error.args[0])) from None


def add_get(parser):
    """The arguments of `get`."""
    parser.add_argument("queue", metavar="QUEUE", help="whose messages are shown")
    parser.add_argument("--count", type=count, default=1, metavar="N", help="at most so many (default 1; 100 without --take)")
    parser.add_argument("--take", action="store_true", help="take them out of the queue")
    parser.add_argument("--json", action="store_true", help="an object a line, the payload as text, or in base64 where it is none")
    add_url(parser)


def get(options):
    """Show messages."""
    if options.take:
        with Asked(options.url) as client:
            for number in range(options.count):
                message = client.get(options.queue)
                if message is None:
                    tell_empty(options.queue, number)
                    break
                tell(shown(message), bytes(message.body), options.json)
                sys.stdout.flush()  # before the broker forgets it
                client.ack(message)
        return
    with manager(options.url) as asked:
        rows = asked.ask("look", queue=options.queue, count=min(options.count, 100))["messages"]
        tell_empty(options.queue, len(rows))
        for row in rows:
            body = base64.b64decode(row.pop("payload"))
            tell(row, body, options.json)


def tell_empty(queue, number):
    """Say that there is nothing to show, where there was nothing: `number` messages have been."""
    if number == 0:
        print(f"leveret get: queue {queue!r} has no message that is ready", file=sys.stderr)


def shown(message):
    """A Message of the client as `look` answers."""
    return {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "redelivered": message.redelivered,
        "properties": message.properties,
        "payload_bytes": len(message.body),
        "message_count": message.message_count,
    }


def tell(row, body, as_json):
    """Print one message."""
    try:
        payload, encoding = body.decode(), "string"
    except UnicodeDecodeError:
        payload, encoding = base64.b64encode(body).decode(), "base64"
    if as_json:
        print(json.dumps(dict(row, payload=payload, payload_encoding=encoding), default=repr))
        return
    about = " ".join(f"{name} {json.dumps(value, default=repr)}" for name, value in row.items() if value not in ({}, False))
    cut = "" if len(body) == row["payload_bytes"] else f" (the first {len(body)} octets)"
    print(f"{about}{cut}\n{payload if encoding == 'string' else 'base64 ' + payload}")


COMMANDS = {"publish": (add_publish, answers("publish", publish)), "get": (add_get, answers("get", get))}

"""The `leveret` command: chooses the subcommand and hands over.

    leveret serve | status | alive | list | top | declare | delete | bind | unbind | publish | get | purge | close | users | policy | drain
          | reload | doctor | limits | board | definitions | branches | log | password | attach | bridge | file | perf | pipeline
          | completion

Laws: a subcommand's file is imported only when it is asked for (the broker starts without Spark, the bridge without the broker);
bad arguments give one clear sentence and exit status 2, no arguments the help. Who reads our output may stop reading it, as `head` does:
that ends us without a word. A subcommand's file offers `add_arguments(parser)` and
`run(options) -> exit status`, or has several in a table (TOGETHER); `run` may raise `UsageError` for what argparse cannot see.
"""

import argparse
import importlib
import os
import sys

from .usage import UsageError

COMMANDS = (
    ("serve", "run a broker"),
    ("status", "show what a running broker holds and has done"),
    ("alive", "ask a broker whether it answers, without a log-in: a health check"),
    ("list", "list queues, streams, connections, exchanges, bindings, users, permissions or policies of a running broker"),
    ("top", "show what a running broker does, anew every second"),
    ("declare", "make a queue or an exchange"),
    ("delete", "remove a queue or an exchange"),
    ("bind", "bind a queue, or an exchange, to an exchange"),
    ("unbind", "remove a binding"),
    ("publish", "publish a message"),
    ("get", "show messages of a queue, and take them out of it where that is asked for"),
    ("purge", "drop the ready messages of a queue"),
    ("close", "close a connection, or all of a user's"),
    ("users", "show, add, remove users, and say what they may"),
    ("policy", "show, set and clear policies"),
    ("drain", "let clients go and no other in, before maintenance"),
    ("trace", "turn the firehose on or off: each message copied to amq.rabbitmq.trace"),
    ("reload", "have a running broker read its configuration file anew"),
    ("doctor", "look at this machine, a configuration, a data directory and a running broker for what is wrong"),
    ("definitions", "export or import users, permissions, policies, exchanges, queues and bindings as RabbitMQ's JSON"),
    ("limits", "show what a broker's limits add up to here, and what they are"),
    ("board", "show what a board's memory goes to, and whether its limits fit"),
    ("flash", "put the broker on a microcontroller"),
    ("branches", "show prepared branches of distributed transactions, and decide about them"),
    ("log", "check, dump or compact the log of a broker that does not run"),
    ("password", "make the password_hash of a user"),
    ("attach", "give the AMQP clients on this computer the broker at the other end of a serial line"),
    ("bridge", "move messages from a local queue to an upstream exchange"),
    ("file", "send a file to a broker, or receive one, and go on where a connection was lost"),
    ("perf", "load any AMQP 0-9-1 broker and measure rates and latencies"),
    ("pipeline", "run the Spark job: stream queue to Parquet"),
    ("completion", "print the script that has bash, zsh or fish complete these commands"),
)

# Those whose file has several of them, in a table called COMMANDS: name -> (add_arguments, run).
TOGETHER = {
    **dict.fromkeys(("declare", "delete", "bind", "unbind", "purge"), "topology"),
    **dict.fromkeys(("publish", "get"), "messages"),
    **dict.fromkeys(("close", "drain", "reload", "trace"), "steer"),
    "users": "users",
    "policy": "policy",
}

READER_GONE = 141  # as a shell tells a program that SIGPIPE ended


class Formatter(argparse.HelpFormatter):
    """argparse's, which would import shutil for the width: half a MiB that a broker keeps for as long as it runs."""

    def __init__(self, prog):
        try:
            width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (OSError, ValueError):
            width = 80
        super().__init__(prog, width=width - 2)


class Parser(argparse.ArgumentParser):
    """argparse with one sentence instead of the usage block."""

    def __init__(self, **given):
        super().__init__(formatter_class=Formatter, **given)

    def error(self, message):
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def positive_seconds(text):
    """An argument in seconds, greater than 0; for argparse."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds greater than 0")
    return seconds


class ShowVersion(argparse.Action):
    """`--version`, looked up only when asked for."""

    def __call__(self, parser, namespace, values, option_string=None):
        from importlib.metadata import version

        print("leveret " + version("leveret"))
        parser.exit(0)


def parts_of(name):
    """(add_arguments, run) of a subcommand."""
    module = importlib.import_module("leveret.tools." + TOGETHER.get(name, name))
    return module.COMMANDS[name] if name in TOGETHER else (module.add_arguments, module.run)


def make_parser(chosen):
    """The parser; only `chosen`'s own arguments are filled in."""
    parser = Parser(prog="leveret", description="An AMQP broker for where the sensors are.")
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="print the version and end")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS:
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == chosen:
            add_arguments, run = parts_of(name)
            add_arguments(command)
            command.set_defaults(run=run)
    return parser


def main(arguments=None):
    """Entry point of `leveret`; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # here, and not at the interpreter's end, where nobody catches anything
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in Python's buffer goes there at the end
        return READER_GONE


def _run(arguments):
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    parser = make_parser(chosen)
    if not arguments:
        parser.print_help()
        return 0
    options, beyond = parser.parse_known_args(arguments)
    if len(beyond) == 1 and "://" in beyond[0] and hasattr(options, "url") and "://" in (options.url or "://"):
        options.url = beyond.pop()  # behind options argparse (3.11) has no place for an argument that may be left out
    if beyond:
        command = f"{parser.prog} {chosen}"
        parser.exit(2, f"{command}: unrecognized arguments: {' '.join(beyond)} (see {command} --help)\n")
    try:
        return options.run(options)
    except UsageError as error:
        print(f"leveret {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

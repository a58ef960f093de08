"""`leveret bridge`: ports/bridge as a process of its own, and what bridges say of themselves.

    leveret bridge --from amqp://127.0.0.1:5672 --queue uplink --to amqps://user:password@upstream/ --exchange telemetry --gateway gw7
    leveret bridge --config FILE [--name NAME] [--from URL]     a [[bridge]] of a broker's file, outside of the broker that serves by it
    leveret bridge status [--json] [URL]                        all bridges that report to a running broker; --json: an object a line

Laws: one JSON status line on standard output every --status-seconds and one at the end, sentences for people on standard error;
SIGTERM and Ctrl-C finish the outstanding confirms (at most 5 s), close both connections and exit with 0.
"""

import argparse
import json
import signal
import sys
import time
from urllib.parse import quote

from leveret.ports.bridge.settings import ROWS, Settings
from leveret.ports.tcp import Loop
from leveret.ports.url import read_url

from . import address, bridge_status, config, manage
from .usage import UsageError

LOCAL_DEFAULT = "amqp://guest:guest@127.0.0.1:5672/"


def broker_url(text):
    """An argument that is a broker's URL; for argparse."""
    try:
        read_url(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a broker's URL, as amqp://user:password@host:5672/: {error}") from None
    return text


def whole_number(text):
    """A prefetch count; for argparse."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 4000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 4000")
    return int(text)


def option(text):
    """NAME=VALUE of a row of ports/bridge/settings.py; for argparse."""
    name, equals, value = text.partition("=")
    kinds = {row[0]: row[1] for row in ROWS}
    if not equals or name not in kinds:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE with a NAME among {', '.join(kinds)}")
    for form in (int, float) if kinds[name][0](value, *kinds[name][2:4]) is None and value.isascii() and "_" not in value else ():
        try:
            return name, form(value)
        except ValueError:
            continue
    return name, value


def add_arguments(parser):
    """The subcommand's arguments."""
    from .cli import positive_seconds

    parser.add_argument("action", nargs="?", choices=["status"], help="show what the bridges of a running broker say of themselves")
    parser.add_argument("url", nargs="?", default=manage.URL_DEFAULT, metavar="URL", help="of that broker")
    # argparse takes no positional behind an option when it is optional: the URL there is the option's.
    parser.add_argument("--json", nargs="?", const="", metavar="URL", help="with status: one JSON object a line")
    parser.add_argument(
        "--from",
        dest="source",
        type=broker_url,
        metavar="URL",
        help=f"the local broker (default {LOCAL_DEFAULT}, with --config the first listener of that file)",
    )
    parser.add_argument("--queue", help="the queue to take messages from")
    parser.add_argument("--stream", help="the stream to read, instead of a queue")
    parser.add_argument(
        "--to",
        dest="upstream",
        action="append",
        type=broker_url,
        metavar="URL",
        help="the upstream broker; may be given again: they are tried in turn",
    )
    parser.add_argument("--exchange", help="the exchange to publish to")
    parser.add_argument("--down", action="store_true", help="the other way: from a queue of --to to an exchange of --from")
    parser.add_argument("--gateway", help="this gateway's id: messages carry it with a sequence number; without it they carry none")
    parser.add_argument("--name", help="what the bridge is called (default bridge)")
    parser.add_argument("--routing-key", metavar="TEMPLATE", help="as site7.{key}; without it each message keeps its own")
    parser.add_argument("--prefetch", type=whole_number, metavar="COUNT", help="most messages held at a time in a lane (default 1000)")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=option,
        metavar="NAME=VALUE",
        help="any setting of a [[bridge]], as replay_messages_per_second=500",
    )
    parser.add_argument("--config", metavar="FILE", help="take the [[bridge]] called --name of a broker's file")
    parser.add_argument("--status-seconds", type=positive_seconds, default=10, metavar="N", help="between two status lines (default 10)")


def say(sentence):
    """For people."""
    print("bridge: " + sentence, file=sys.stderr, flush=True)


def settings_of(options):
    """The Settings that the command line asks for. Raises UsageError."""
    if options.config:
        chosen = [each for each in config.bridges(options.config) if options.name in (None, each.name)]
        if len(chosen) != 1:
            raise UsageError(
                f"{options.config} has {len(chosen)} bridges"
                + (f" called {options.name!r}" if options.name else "; choose one with --name")
            )
        return chosen[0]
    given = {
        "name": options.name or "bridge",
        "direction": "down" if options.down else "up",
        "upstream": options.upstream,
        "queue": options.queue,
        "stream": options.stream,
        "exchange": options.exchange,
        "gateway": options.gateway,
        "routing_key": options.routing_key,
        "prefetch": options.prefetch,
        **dict(options.option),
    }
    plain = options.gateway is None and options.stream is None and not options.down
    try:
        return Settings({name: value for name, value in given.items() if value is not None}, plain)
    except ValueError as error:
        raise UsageError(f"{error} (see leveret bridge --help)") from None


def source_of(options):
    """The URL of the local broker. Raises UsageError when the file's broker cannot be reached without more being said."""
    if options.source or not options.config:
        return options.source or LOCAL_DEFAULT
    ask = "say where it is and who logs in with --from amqp://USER:PASSWORD@HOST:PORT/"
    if config.read(options.config).get("user"):
        raise UsageError(f"{options.config} names the users of the local broker: {ask}")
    name = config.virtual_host(options.config)[0]
    path = "" if name == "/" else quote(name, safe="")
    urls = config.listeners(options.config)
    if not urls:
        return LOCAL_DEFAULT + path
    plain = [place for place in map(address.parse, urls) if isinstance(place, address.TcpAddress) and place.port]
    if not plain:
        raise UsageError(f"{options.config} has no listener amqp://HOST:PORT for the bridge to come to: {ask}")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(plain[0].host, plain[0].host)
    return address.TcpAddress(host, plain[0].port).url().replace("amqp://", "amqp://guest:guest@") + "/" + path


def status(url, as_json):
    """Print what the bridges say of themselves; the exit status."""
    try:
        with manage.Manager(url) as manager:
            names = manager.ask("bridges")["names"]
            if not names:
                say(f"no bridge reports to the broker at {manage.url_without_password(url)}")
            for name in names:
                answer = manager.ask("bridges", name=name)
                figures = dict(answer["status"], reported_s_ago=round(answer["reported_ms_ago"] / 1000, 1))
                print(json.dumps(figures) if as_json else "\n".join(bridge_status.lines(figures)), flush=True)
    except manage.ManageFailed as error:
        print(f"leveret bridge: {error}", file=sys.stderr)
        return 1
    return 0


def run(options):
    """Bridge until told to end; returns 0."""
    if options.action == "status":
        return status(options.json or options.url, options.json is not None)
    from leveret.ports.bridge.bridge import Bridge

    settings = settings_of(options)
    if settings.plain:
        say("without --gateway messages carry no x-gateway and x-sequence: who reads upstream cannot tell doubles")
    loop = Loop(2)
    source = read_url(source_of(options))
    say(f"the local broker is {source.place()}")
    bridge = Bridge(loop, settings, say, source)
    asked = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: asked.append(number))
    due = time.monotonic() + options.status_seconds
    moved = False
    while not bridge.stopped:
        loop.step(0 if moved else bridge.wait_ms())
        moved = bridge.step()
        loop.deliver()
        loop.arm()
        if asked and not bridge.stopping:
            bridge.stop()
        if time.monotonic() >= due:
            due = time.monotonic() + options.status_seconds
            print(json.dumps(bridge.status()), flush=True)
    loop.close()
    print(json.dumps(bridge.status()), flush=True)
    return 0

"""`leveret file`: files to and from a broker over AMQP 0-10's class file, resumed where a connection was lost.

Laws: what has come is never sent again, as far as the broker or the receiver still has it; a received file gets its name when it is whole
and its checksum right. It keeps trying while the far end comes back; a refusal ends it. Exit status 0: done; 1: one sentence says why not.
"""

import os
import random
import sys
import time

from leveret.core.bridge.backoff import Backoff
from leveret.ports import files_0_10
from leveret.ports.client_errors import ClientError, LoginRefused, TlsRefused

from .cli import positive_seconds
from .usage import UsageError

RETRY_S = 3600.0
PAUSE_MS, PAUSE_MS_MAX = 500, 30000  # between two attempts
WAIT_S = 60.0
SHOW_S = 1.0  # between two numbers on a terminal
LINE_S = 15.0  # between two lines elsewhere
FINAL = (files_0_10.Refused, LoginRefused, TlsRefused)
HOST_HELP = "the broker: HOST, HOST:PORT, or a URL with the user's name and password (amqp://USER:PASSWORD@HOST/, amqps://...)"


def add_arguments(parser):
    """The arguments of `leveret file`."""
    deeds = parser.add_subparsers(dest="deed", required=True, metavar="DEED")
    send = deeds.add_parser("send", help="send a file to a queue, or to an exchange")
    receive = deeds.add_parser("receive", help="receive the next file of a queue")
    for each in (send, receive):
        each.add_argument("host", help=HOST_HELP)
        each.add_argument("file", help="the file" if each is send else "where to put it: the name of the file, or a folder that is there")
        each.add_argument("--quiet", action="store_true", help="show no progress")
        text = "how long to try again after a connection was lost, without getting further (default %d s)" % RETRY_S
        each.add_argument("--retry", type=positive_seconds, default=RETRY_S, metavar="S", help=text)
    send.add_argument("--queue", help="the queue to send it to")
    send.add_argument("--exchange", default="", help="an exchange to publish it to, with --key, in place of a queue")
    send.add_argument("--key", default="", help="the routing key for --exchange")
    send.add_argument("--identifier", default="", help="under which it is staged (default: made from its octets and its name)")
    receive.add_argument("--queue", required=True, help="the queue")
    text = "how long to wait for a file, and for more of one, before the connection is taken for lost (default %d s)" % WAIT_S
    receive.add_argument("--wait", type=positive_seconds, default=WAIT_S, metavar="S", help=text)


def run(options):
    """Do it: the exit status."""
    url = url_of(options.host)
    shown = Progress(options.file, sys.stderr, options.quiet)
    try:
        if options.deed == "send":
            resumed = send(options, url, shown)
            said = f"{options.file}: {os.path.getsize(options.file)} octets are in the broker's hands"
        else:
            path, resumed = receive(options, url, shown)
            said = f"{path}: {os.path.getsize(path)} octets, checksum right"
    except ClientError as error:
        shown.end()
        print(f"leveret file: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        shown.end()
        print(f"leveret file: {error.filename or options.file}: {error.strerror}", file=sys.stderr)
        return 1
    shown.end()
    print(said + (f"; the last connection went on at octet {resumed}" if resumed else ""))
    return 0


def send(options, url, shown):
    """Send, over as many connections as it takes: the octet at which the last of them went on."""
    if bool(options.queue) == bool(options.exchange):
        raise UsageError("either --queue, or --exchange with --key")
    if not os.path.isfile(options.file):
        raise UsageError(f"there is no file {options.file}")
    key = options.queue or options.key
    return again(lambda: files_0_10.send(url, options.file, options.exchange, key, options.identifier, shown.note), options.retry, shown)


def receive(options, url, shown):
    """Receive, over as many connections as it takes: (path, the octet at which the last of them went on)."""
    name, resumed = again(lambda: files_0_10.receive(url, options.queue, options.file, shown.note, options.wait), options.retry, shown)
    return files_0_10.place(options.file, name), resumed


def again(once, retry_s, shown):
    """What `once` returns: it is called until it does, or raises what another call would not change, or nothing has moved for `retry_s`."""
    pauses = Backoff(PAUSE_MS, PAUSE_MS_MAX)
    moved_at, at = time.monotonic(), shown.at
    while True:
        try:
            return once()
        except FINAL:
            raise
        except ClientError as error:
            if shown.at != at:
                moved_at, at = time.monotonic(), shown.at
                pauses.reset()
            if time.monotonic() - moved_at > retry_s:
                raise
            shown.lose(error)
            time.sleep(min(pauses.next_ms(random.getrandbits(30)) / 1000, retry_s))


def url_of(host):
    """A client's URL for what the user wrote."""
    return host if "://" in host else f"amqp://{host}/"


class Progress:
    """How far it is, on a terminal or in lines."""

    def __init__(self, name, stream, is_quiet):
        self.name = name
        self.stream = stream
        self.is_quiet = is_quiet
        self.on_terminal = stream.isatty()
        self.shown_at = 0.0
        self.shown = -1  # octets that were told last
        self.at = 0

    def note(self, at, size):
        """`at` of `size` octets have gone."""
        self.at = at
        now = time.monotonic()
        is_due = now - self.shown_at >= (SHOW_S if self.on_terminal else LINE_S) or at == size != self.shown
        if self.is_quiet or not is_due:
            return
        self.shown_at, self.shown = now, at
        text = f"{self.name}: {at} of {size} octets ({100 * at // (size or 1)} %)"
        print(("\r" if self.on_terminal else "") + text, end="" if self.on_terminal else "\n", file=self.stream, flush=True)

    def lose(self, error):
        """A connection was lost."""
        if not self.is_quiet:
            self.end()
            print(f"{error}; trying again", file=self.stream, flush=True)

    def end(self):
        """No more of the line."""
        if self.on_terminal and self.shown_at and not self.is_quiet:
            print(file=self.stream)

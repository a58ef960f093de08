"""What the commands that change a running broker share: its URL, a connection to it, and mistakes in one sentence.

Exit status of all of them: 0 done; 1 the broker refused, did not answer, or has not what was asked for; 2 a mistake in the command line.
"""

import json
import sys

from leveret.ports.client import connect
from leveret.ports.client_errors import ChannelClosed, ClientError

from . import manage
from .usage import UsageError


def add_url(parser):
    """The broker's URL, the last argument of each of these commands."""
    parser.add_argument("url", nargs="?", default=manage.URL_DEFAULT, metavar="URL", help=manage.URL_HELP)


def add_arguments_of(parser, subject):
    """`--argument NAME=VALUE`, any number of them."""
    parser.add_argument(
        "--argument",
        "-a",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"an argument of the {subject}, as x-max-length=1000; the value is JSON, or else a text",
    )


def value_of(text):
    """A value of the command line: what JSON makes of it, or the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def pairs(texts):
    """{name: value} of NAME=VALUE texts. Raises UsageError."""
    made = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{text!r} is not NAME=VALUE")
        made[name] = value_of(value)
    return made


def check_url(url):
    """Raise UsageError for a URL that is none: a word too many stands where it is."""
    if "://" not in url:
        raise UsageError(f"{url!r} is no URL of a broker; it is as {manage.URL_DEFAULT}")


class Asked:
    """An AMQP connection to the broker at `url`; use it in a `with`. Raises manage.ManageFailed."""

    def __init__(self, url):
        check_url(url)
        try:
            self.client = connect(url, manage.TIMEOUT_MS)
        except (ClientError, ValueError) as error:
            raise manage.ManageFailed(f"{manage.url_without_password(url)}: {error}") from None

    def __enter__(self):
        return self.client

    def __exit__(self, kind, error, trace):
        if isinstance(error, ClientError):
            self.close()
            raise manage.ManageFailed(error.text if isinstance(error, ChannelClosed) else str(error)) from None
        self.close()

    def close(self):
        """Leave the broker."""
        try:
            self.client.close()
        except ClientError:
            pass  # what went wrong has been said


def request(client, name, *arguments):
    """Any method of 0-9-1 that is answered, by its name in core/amqp_0_9/spec_0_9_1.py. Here, and no method of the client: boards carry
    that one, and pay for each."""
    return client._ask(client._channel.request, name, *arguments)


def manager(url):
    """A manage.Manager of the broker at `url`. Raises UsageError, manage.ManageFailed."""
    check_url(url)
    return manage.Manager(url)


def carried_out(command, action, options):
    """Do what a command's function does, and say in a sentence why it could not be done: the exit status."""
    try:
        return action(options) or 0
    except manage.ManageFailed as error:
        print(f"leveret {command}: {error}", file=sys.stderr)
        return 1


def answers(command, action):
    """The `run` of a command."""
    return lambda options: carried_out(command, action, options)

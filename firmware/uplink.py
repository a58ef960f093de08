"""The bridges of a board (settings.json's `bridges`: tables of ports/bridge/settings.py), in the main loop.

Laws: a name that is looked up may block for RESOLVE_MS, and a timer feeds the watchdog that long. There is no TLS on a board: a URL that
asks for it is refused at the start. A bridge's sentences go to the console; they contain no password.
"""

from ..ports.bridge.bridges import Bridges
from ..ports.bridge.dial import NetworkDial
from ..ports.bridge.settings import Settings
from . import watchdog
from .clock import RESOLVE_MS
from .say import CannotStart, say


class Dial(NetworkDial):
    """To a Url, with the watchdog fed while its host is looked up."""

    def begin(self):
        """Look up the host."""
        watchdog.keep_fed(RESOLVE_MS)
        NetworkDial.begin(self)


def checked(tables):
    """The Settings of the bridges. Raises CannotStart."""
    made = []
    for table in tables:
        name = table.get("name") if isinstance(table, dict) else table
        try:
            made.append(Settings(table))
        except (ValueError, TypeError) as error:
            raise CannotStart("bridge %r: %s" % (name, error)) from None
        if [url for url in made[-1].upstream_urls if url.tls is not None]:
            raise CannotStart("bridge %r: a board has no TLS: its upstream must be amqp://" % name)
    return made


def start(loop, broker, settings):
    """Start the bridges: a Bridges."""
    return Bridges(loop, broker, settings, say, Dial)

"""A board's module network for the long run: a radio, or a cable, that is lost for a moment each LOSS_MS."""

import time

STA_IF = 0
STAT_WRONG_PASSWORD, STAT_NO_AP_FOUND, STAT_CONNECT_FAIL = -3, -2, -1
LOSS_MS, LOST_MS = 60000, 300
ADDRESS = "127.0.0.1"


def hostname(name):
    """Take a name."""


def country(name):
    """Take a country."""


class WLAN:
    """An interface that joins at once."""

    def __init__(self, kind=STA_IF, **given):
        self.began = time.ticks_ms()

    def active(self, on):
        """Switch it on or off."""

    def isconnected(self):
        """Whether the network is there now."""
        return time.ticks_diff(time.ticks_ms(), self.began) % LOSS_MS < LOSS_MS - LOST_MS

    def ifconfig(self):
        """Address, mask, gateway and name server."""
        return (ADDRESS, "255.0.0.0", "0.0.0.0", "0.0.0.0")

    def connect(self, *given):
        """Join."""

    def disconnect(self):
        """Leave."""

    def status(self):
        """How it is."""
        return 0


LAN = WLAN

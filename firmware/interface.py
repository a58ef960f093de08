"""The network interface: brought up, watched, and joined again with growing pauses when it is lost. Nothing here waits.

`tick(now)` is called by the main loop; `address` is "" while there is no network; `events` gives (true or false, sentence) once for each
change.
"""

import os

from ..core.bridge.backoff import Backoff
from ..core.shim import elapsed
from . import hardware

JOIN_MS = 20000  # a join that lasts longer begins anew
ADDRESS_MS = 10000  # between two looks at the address that the network gave: each is heap
PAUSE_MS_MIN, PAUSE_MS_MAX = 1000, 30000
PINS = ("mdc", "mdio", "power", "ref_clk", "cs", "int", "reset")

# Wi-Fi's own reasons, by the names that `network` has for them on different boards.
REASONS = (
    ("STAT_WRONG_PASSWORD", "the password is wrong"),
    ("STAT_NO_AP_FOUND", "there is no such network in reach"),
    ("STAT_CONNECT_FAIL", "the access point did not let it in"),
)


class Interface:
    """A Wi-Fi station or an Ethernet port, as the settings say. Raises hardware.Absent, or OSError and ValueError of the driver."""

    def __init__(self, settings):
        network = hardware.module("network", "a network")
        self.network = network
        self.wifi = settings["wifi"]
        self.address = ""
        self._backoff = Backoff(PAUSE_MS_MIN, PAUSE_MS_MAX)
        self._tried_at = self._looked_at = None
        self._pause_ms = 0
        self._joining = False
        if hasattr(network, "hostname"):
            network.hostname(settings["name"])
        if self.wifi is not None:
            self.device = self._station()
            self.name = "the Wi-Fi network %s" % self.wifi["ssid"]
        else:
            self.device = self._ethernet(settings["ethernet"])
            self.name = "the Ethernet"

    def _station(self):
        if self.wifi.get("country") and hasattr(self.network, "country"):
            self.network.country(self.wifi["country"])
        station = hardware.part(self.network, "WLAN", "a Wi-Fi network")(self.network.STA_IF)
        station.active(True)
        return station

    def _ethernet(self, wanted):
        arguments = {name: wanted[name] for name in wanted if name != "kind"}
        for name in arguments:
            if name in PINS:
                arguments[name] = hardware.module("machine", "Ethernet").Pin(arguments[name])
            elif isinstance(arguments[name], str):
                arguments[name] = hardware.part(self.network, arguments[name], "Ethernet")
        device = hardware.part(self.network, wanted.get("kind", "LAN"), "Ethernet")(**arguments)
        device.active(True)
        return device

    def tick(self, now):
        """A sentence about a change, or None."""
        if self.device.isconnected():
            return self._connected(now)
        if self.address:
            self.address = ""
            self._joining = False
            self._pause_ms = 0
            return "%s is lost; joining it again" % self.name
        return self._try(now)

    def _connected(self, now):
        if self.address and elapsed(now, self._looked_at) < ADDRESS_MS:
            return None
        self._looked_at = now
        address = self.device.ifconfig()[0]
        if address == self.address or address == "0.0.0.0":
            return None
        self.address = address
        self._backoff.reset()
        return "%s is there; this board is %s" % (self.name, address)

    def _try(self, now):
        """Begin to join the network; begin again when joining has taken too long."""
        if self._tried_at is not None and elapsed(now, self._tried_at) < (JOIN_MS if self._joining else self._pause_ms):
            return None
        self._tried_at = now
        if self._joining:
            self._joining = False
            self._pause_ms = self._backoff.next_ms(int.from_bytes(os.urandom(3), "big"))
            return "%s cannot be joined: %s; trying again" % (self.name, self._reason())
        self._joining = True
        if self.wifi is None:
            return "waiting for %s" % self.name
        try:
            self.device.disconnect()
        except OSError:
            pass  # it was not connected
        self.device.connect(self.wifi["ssid"], self.wifi.get("password") or None)
        return "joining %s" % self.name

    def _reason(self):
        status = self.device.status() if self.wifi is not None else None
        for name, words in REASONS:
            if getattr(self.network, name, self) == status:
                return words
        return "no answer in %d s" % (JOIN_MS // 1000)

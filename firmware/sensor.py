"""An on-board sensor as an example: reads ADC pins and I2C registers and publishes JSON into the broker, without a connection.

    "sensor": {"queue": "sensors", "every_ms": 1000, "keep": 100,
               "adc": {"light": 26},                               pin; 0 to 65535
               "i2c": [{"name": "celsius", "bus": 0, "scl": 5, "sda": 4, "address": 72, "register": 0, "size": 2, "scale": 0.0078125}]}

A message is {"gateway": name, "time": seconds since 1970, "number": counted from 1, name: value, ...}; a sensor that does not answer is
null, and said once on the console. The queue is declared durable and keeps the newest `keep` messages. What the broker has no room for, or
refuses, is counted, and newer ones are published. A message is in the log, where there is one, with the log's next commit.
"""

import json

from ..core.broker import whole
from ..core.errors import ProtocolError
from ..core.memory.layout import KIND_DURABLE, NONE
from ..core.message.formats import BASIC
from ..core.outcomes import NO_ROOM, REFUSED, nobody
from ..core.shim import elapsed
from ..ports.clock import seconds
from . import hardware

QUEUE = "sensors"
EVERY_MS = 1000
KEEP = 100
AGAIN_MS = 5000  # after the queue could not be declared
PROPERTIES = b"\x90\x00\x10application/json\x02"  # content-type and delivery-mode (0-9-1 section 1.8.1), 2: persistent
COLUMNS = (BASIC | KIND_DURABLE, NONE)


class Adc:
    """An analogue pin."""

    def __init__(self, pin):
        machine = hardware.module("machine", "an ADC")
        self._adc = hardware.part(machine, "ADC", "an ADC")(pin)

    def read(self):
        """0 to 65535."""
        return self._adc.read_u16()


class I2c:
    """A register of an I2C device: a signed big-endian number times `scale`."""

    def __init__(self, wanted):
        machine = hardware.module("machine", "I2C")
        made = hardware.part(machine, "I2C", "I2C")
        if "scl" in wanted:
            self._bus = made(wanted.get("bus", 0), scl=machine.Pin(wanted["scl"]), sda=machine.Pin(wanted["sda"]))
        else:
            self._bus = made(wanted.get("bus", 0))
        self._address, self._register, self._scale = wanted["address"], wanted.get("register", 0), wanted.get("scale", 1)
        self._octets = bytearray(wanted.get("size", 2))

    def read(self):
        """The number. Raises OSError when the device does not answer."""
        octets = self._octets
        self._bus.readfrom_mem_into(self._address, self._register, octets)
        number = -(octets[0] >> 7)
        for octet in octets:
            number = number << 8 | octet
        return number * self._scale


def inputs(wanted):
    """[(name, object with `read()`)] of the settings. Raises hardware.Absent, or ValueError for a pin that there is not."""
    analog = [(name, Adc(wanted["adc"][name])) for name in sorted(wanted.get("adc", {}))]
    return analog + [(each["name"], I2c(each)) for each in wanted.get("i2c", [])]


class Sensor:
    """Publishes what `inputs` read, as the settings' `sensor` says. `say` takes a sentence."""

    def __init__(self, broker, name, wanted, say, sources=None):
        self.inputs = inputs(wanted) if sources is None else sources
        self.name = name
        self.queue = wanted.get("queue", QUEUE)
        self.every_ms = wanted.get("every_ms", EVERY_MS)
        self.keep = wanted.get("keep", KEEP)
        self.say = say
        self.published = self.refused_count = self.missed_count = 0
        self.trouble = ""
        self._silent = set()  # inputs that did not answer last time
        self._broker = broker
        self._declared = False
        self._failed_at = None  # when it could not be
        self._read_at = None

    def step(self, now):
        """Publish a reading when `every_ms` have passed."""
        if self._read_at is not None and elapsed(now, self._read_at) < self.every_ms:
            return
        if self._declared and self.queue in self._broker.queues or self._declare(now):
            self._read_at = now
            self._publish()

    def _declare(self, now):
        """Declare the queue, or fail for AGAIN_MS: true when it is there."""
        if self._failed_at is not None and elapsed(now, self._failed_at) < AGAIN_MS:
            return False
        self._failed_at = now
        try:
            self._broker.topology.declare_queue(nobody, self.queue, False, True, False, False, {"x-max-length": self.keep})
        except ProtocolError as error:
            self._fail(error.text)
            return False
        self._failed_at = None
        self._declared = True
        self.trouble = ""
        return True

    def _publish(self):
        values = {"gateway": self.name, "time": seconds(), "number": self.published + 1}
        for name, source in self.inputs:
            values[name] = self._value(name, source)
        body = json.dumps(values).encode("utf-8")
        if len(body) > self._broker.limits.content_size_max:
            self._fail("its messages have %d octets: raise content_size_max" % len(body))
            return
        outcome = whole.publish(self._broker, "", self.queue.encode("utf-8"), PROPERTIES, COLUMNS, body)
        if outcome == NO_ROOM:
            self.missed_count += 1
        elif outcome == REFUSED:
            self.refused_count += 1
        else:
            self.published += 1

    def _value(self, name, source):
        try:
            value = source.read()
        except OSError as error:
            if name not in self._silent:
                self._silent.add(name)
                self.say("the sensor %s does not answer (%s)" % (name, error))
            return None
        self._silent.discard(name)
        return value

    def _fail(self, text):
        if text != self.trouble:
            self.say("the sensor cannot publish: %s" % text)
        self.trouble = text

"""An on-board sensor as an example: reads ADC pins and I2C registers and publishes JSON through the local broker, without a socket.

    "sensor": {"queue": "sensors", "every_ms": 1000, "keep": 100,
               "adc": {"light": 26},                               pin; 0 to 65535
               "i2c": [{"name": "celsius", "bus": 0, "scl": 5, "sda": 4, "address": 72, "register": 0, "size": 2, "scale": 0.0078125}]}

A message is {"gateway": name, "time": seconds since 1970, "number": counted from 1, name: value, ...}; a sensor that does not answer is
null, and said once on the console. The queue is declared durable, keeps the newest `keep` messages, and each is published with a confirm:
the sensor counts messages that the broker refuses, and goes on with newer ones.
"""

import json

from ..core.amqp_0_9.client.events import Events
from ..core.shim import elapsed
from ..ports.clock import seconds
from . import hardware
from .local import Local

QUEUE = "sensors"
EVERY_MS = 1000
KEEP = 100
AGAIN_MS = 5000  # after the broker has closed the connection or the channel
PERSISTENT = {"content_type": "application/json", "delivery_mode": 2}


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


class Sensor(Events):
    """Publishes what `inputs` read, as the settings' `sensor` says. `say` takes a sentence."""

    def __init__(self, broker, name, wanted, say, sources=None):
        self.inputs = inputs(wanted) if sources is None else sources
        self.name = name
        self.queue = wanted.get("queue", QUEUE)
        self.every_ms = wanted.get("every_ms", EVERY_MS)
        self.keep = wanted.get("keep", KEEP)
        self.say = say
        self.published = self.confirmed_count = self.refused_count = self.missed_count = 0
        self.trouble = ""
        self._silent = set()  # inputs that did not answer last time
        self._broker = broker
        self._local = Local(broker, self)
        self._channel = self._local.client.channels[1]
        self._ready = False
        self._failed_at = None  # when the broker closed the channel or the connection
        self._read_at = None

    def step(self, now):
        """Publish when it is time; move waiting octets."""
        if self._local.client.closed:
            self._again(now)
        elif self._channel.state == "closed" and self._local.client.state == "open" and self._waited(now):
            self._channel.open()
        elif self._ready and (self._read_at is None or elapsed(now, self._read_at) >= self.every_ms):
            self._read_at = now
            self._publish()
        while self._local.step(now):
            pass

    def _waited(self, now):
        """False for AGAIN_MS after a failure."""
        if self.trouble and self._failed_at is None:
            self._failed_at = now
        if self._failed_at is not None and elapsed(now, self._failed_at) < AGAIN_MS:
            return False
        self._failed_at = None
        return True

    def _again(self, now):
        """Make a new connection for the one that the broker has closed."""
        if self._waited(now):
            self._local = Local(self._broker, self)
            self._channel = self._local.client.channels[1]

    def _publish(self):
        values = {"gateway": self.name, "time": seconds(), "number": self.published + 1}
        for name, source in self.inputs:
            values[name] = self._value(name, source)
        if self._channel.basic_publish("", self.queue, json.dumps(values).encode("utf-8"), PERSISTENT):
            self.published += 1
        else:
            self.missed_count += 1  # no room now: the broker is full, or the last ones are not confirmed yet

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

    # Reports of the client

    def opened(self):
        self._channel.open()

    def replied(self, channel, name, arguments):
        if name == "channel_open_ok":
            channel.confirm_select()
        elif name == "confirm_select_ok":
            channel.queue_declare(self.queue, durable=True, arguments={"x-max-length": self.keep})
        elif name == "queue_declare_ok":
            self._ready = channel.state == "open"
            self.trouble = ""

    def confirmed(self, channel, sequence, positive):
        if positive:
            self.confirmed_count += 1
        else:
            self.refused_count += 1

    def channel_closed(self, channel, code, text):
        self._fail("%d %s" % (code, text))

    def ended(self, code, text):
        self._fail("%d %s" % (code, text))

    def _fail(self, text):
        self._ready = False
        if text != self.trouble:
            self.say("the sensor cannot publish: %s" % text)
        self.trouble = text

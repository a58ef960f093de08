"""What `leveret drain` and `leveret reload` do to the process of a broker (ports/steering.py asks)."""

from leveret.core.errors import NOT_FOUND, PRECONDITION_FAILED, ProtocolError

READINGS_MAX = 8  # of the configuration file whose sentences are kept


class Reading:
    """One reading of the configuration file: what it said, and whether it is over."""

    def __init__(self):
        self.sentences = []
        self.over = False
        self.failed = False


class Steered:
    """A Port of ports/steering.py. `serving`: serve.Server; `log(sentence, level)`: tells the operator."""

    def __init__(self, serving, log):
        self.serving = serving
        self.log = log
        self.draining = False
        self.readings = {}
        self.number = 0

    def drain(self):
        """No client comes in any more."""
        if not self.draining:
            self.draining = True
            self.log("no client comes in any more (leveret drain); SIGHUP lets them in again")

    def began(self):
        """A reading begins, whoever asked for it: clients come in again."""
        if self.draining:
            self.draining = False
            self.log("clients come in again")
        self.number += 1
        self.readings[self.number] = Reading()
        if len(self.readings) > READINGS_MAX:
            del self.readings[min(self.readings)]

    def reload(self):
        """Begin a reading: its number."""
        if not self.serving.path:
            raise ProtocolError(PRECONDITION_FAILED, "this broker has no configuration file (--config) to read anew")
        self.began()
        self.serving.reload()
        return self.number

    def trace(self, *given):
        """Turn the firehose on or off."""
        self.serving.trace(*given)

    def reading(self, number):
        """Whether a reading is over, whether it failed, and what it said."""
        one = self.readings.get(number)
        if one is None:
            raise ProtocolError(NOT_FOUND, f"there is no reading {number} of the configuration file")
        return one

    def say(self, sentence, *level):
        """Tell the operator, and who asked for the reading."""
        if self.number in self.readings:
            self.readings[self.number].sentences.append(sentence)
        self.log(sentence, *level)

    def over(self, failed):
        """The reading has ended."""
        one = self.readings[self.number]
        one.over, one.failed = True, failed

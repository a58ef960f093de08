"""What the Python programs share: each is told the broker in one argument of JSON, runs its functions scenario_NAME(place), and prints a
line for each: `ok NAME`, or `failed NAME: why`. No scenario hears of another; the queues of one are called CLIENT.NAME and
CLIENT.NAME.other.
"""

import json
import sys
import traceback

WAIT_S = 15


class Place:
    """host, port, user, password of a broker and the addresses of the nodes there that one scenario may use."""

    def __init__(self, told, scenario):
        self.__dict__.update(told)
        self.node = "%s.%s" % (told["client"], scenario)
        self.own_queue = told["queue"] % self.node
        self.other_queue = told["queue"] % (self.node + ".other")
        self.own_topic = told["topic"] % self.node
        self.own_subscription = told["subscription"] % self.node
        self.url = "amqp://%s:%d" % (self.host, self.port)


def equal(got, wanted):
    """An assertion whose message says both."""
    assert got == wanted, "%r, not %r" % (got, wanted)


def run(scenarios):
    """Run the functions scenario_* of a module's names, all or those of the second argument."""
    told = json.loads(sys.argv[1])
    chosen = sys.argv[2:]
    for name, scenario in list(scenarios.items()):
        if not name.startswith("scenario_") or (chosen and name[len("scenario_") :] not in chosen):
            continue
        name = name[len("scenario_") :]
        try:
            scenario(Place(told, name))
        except BaseException as error:  # whatever a client raises is this scenario's failure, and the next one runs
            traceback.print_exc()
            print("failed %s: %s: %s" % (name, type(error).__name__, " ".join(str(error).split())[:600]), flush=True)
        else:
            print("ok %s" % name, flush=True)

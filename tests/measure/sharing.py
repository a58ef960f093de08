"""How gateways share a load over upstream partitions, by simulation: `python tests/measure/sharing.py [--write]` (into LIMITS.md).

A gateway's bridge publishes to an x-consistent-hash exchange upstream with its own name as key, and each partition (a queue, or a node with
one) is served by one consumer. The choice is the broker's own (core/exchange/types/consistent_hash.py); rates and capacities are given in
messages a second, and time goes in steps of a second. The same seed gives the same figures.
"""

import collections
import math
import os
import random
import sys

from leveret.core.exchange.types.consistent_hash import Type

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "LIMITS.md")
BEGIN, END = "<!-- sharing: written by tests/measure/sharing.py -->\n", "<!-- end of sharing -->"

Destination = collections.namedtuple("Destination", "name is_exchange")
Binding = collections.namedtuple("Binding", "destination key")

GATEWAYS = 10000
PARTITIONS = (2, 4, 8, 16, 32)
LOADS = (0.5, 0.7, 0.9)  # of the capacity of all partitions
AWAY_S = 600  # how long a partition is away
SEED = 15

FLEETS = (1000, 3000, 10000)  # gateways
EACH_PER_S = 10  # messages a second of a gateway, on average
FULLEST = 0.7  # of a partition's capacity, at most
# What one partition does, in messages a second: measured here (two cores, persistent, confirms and acks; README.md, ports/spark/README.md).
UPSTREAMS = (
    ("a RabbitMQ queue", 18404),
    ("a Leveret queue", 130772),
    ("a Leveret stream, read at its end", 37381),
    ("one that a Spark job reads through the detector", 83749),
)


def ways(partitions):
    """The exchange with so many queues of weight 1."""
    exchange = Type.__new__(Type)  # without a broker: `match` asks for the rows alone
    exchange.header = exchange.property = None
    exchange.bindings = {number: Binding(Destination("partition.%d" % number, False), b"1") for number in range(partitions)}
    exchange.weigh()
    return exchange


def shares(gateways, partitions):
    """[number of the partition] of each gateway."""
    exchange = ways(partitions)
    return [int(exchange.match(b"gateway-%d" % number, None)[0].name.partition(".")[2]) for number in range(gateways)]


def rates(gateways, seed=SEED):
    """Messages a second of each gateway, of one in all: one in ten sends as much as ten of the others."""
    random_ = random.Random(seed)
    drawn = [10.0 if random_.random() < 0.1 else 1.0 for _ in range(gateways)]
    return [each / sum(drawn) for each in drawn]


def busiest(placed, weights, partitions):
    """What the fullest partition gets, of the mean."""
    sums = [0.0] * partitions
    for place, weight in zip(placed, weights, strict=True):
        sums[place] += weight
    return max(sums) * partitions


def outage(placed, weights, partitions, load):
    """(seconds until the last backlog is gone, backlog at its highest as seconds of the whole fleet's messages) behind AWAY_S without
    partition 0, whose gateways keep their messages (a bridge's outbox) meanwhile. `load`: of the capacity of all partitions."""
    coming = [0.0] * partitions
    for place, weight in zip(placed, weights, strict=True):
        coming[place] += weight * load * partitions  # of one partition's capacity a second
    backlog, highest, second = [0.0] * partitions, 0.0, 0
    while second < AWAY_S or any(each > 1e-9 for each in backlog):
        second += 1
        for place in range(partitions):
            served = 0.0 if place == 0 and second <= AWAY_S else 1.0
            backlog[place] = max(0.0, backlog[place] + coming[place] - served)
        highest = max(highest, sum(backlog))
        if second > 100 * AWAY_S:
            return None, highest / (load * partitions)  # a partition gets more than it can do: it never ends
    return second - AWAY_S, highest / (load * partitions)


def needed(gateways, capacity):
    """The fewest partitions of a capacity in messages a second of which none is fuller than FULLEST with a fleet's messages."""
    weights, load = rates(gateways), gateways * EACH_PER_S / (FULLEST * capacity)
    partitions = max(1, math.ceil(load))
    while load * busiest(shares(gateways, partitions), weights, partitions) > partitions:
        partitions += 1
    return partitions


def table_of_fleets():
    """How many partitions fleets need, as lines of Markdown."""
    lines = ["Partitions for a fleet, %d messages a second a gateway, none fuller than %d %%:" % (EACH_PER_S, 100 * FULLEST), ""]
    lines.append("| a partition is | messages/s | %s |" % " | ".join(["{:,} gateways".format(count) for count in FLEETS]))
    lines.append("|---|" + "---:|" * (1 + len(FLEETS)))
    for name, capacity in UPSTREAMS:
        found = " | ".join([str(needed(count, capacity)) for count in FLEETS])
        lines.append("| %s | %s | %s |" % (name, "{:,}".format(capacity), found))
    return lines


def table():
    """The figures as lines of Markdown."""
    weights = rates(GATEWAYS)
    lines = [
        "%d gateways, one in ten sends ten times as much as the others; a partition is away for %d s." % (GATEWAYS, AWAY_S),
        "",
        "| partitions | fullest, gateways | fullest, messages | gateways that move for one partition more | "
        + " | ".join("drained after, load %d %%" % (100 * load) for load in LOADS)
        + " |",
        "|---:" * (4 + len(LOADS)) + "|",
    ]
    for partitions in PARTITIONS:
        placed, more = shares(GATEWAYS, partitions), shares(GATEWAYS, partitions + 1)
        moved = sum(before != after for before, after in zip(placed, more, strict=True)) / GATEWAYS
        drained = [outage(placed, weights, partitions, load)[0] for load in LOADS]
        lines.append(
            "| %d | %.2f of the mean | %.2f of the mean | %.1f %% (1 / %d) | %s |"
            % (
                partitions,
                busiest(placed, [1 / GATEWAYS] * GATEWAYS, partitions),
                busiest(placed, weights, partitions),
                100 * moved,
                partitions + 1,
                " | ".join("never" if each is None else "%d s" % each for each in drained),
            )
        )
    return lines


def text_of_page():
    """What stands between the marks."""
    return "\n".join([*table(), "", *table_of_fleets()]) + "\n"


def main():
    text = text_of_page()
    if sys.argv[1:] != ["--write"]:
        print(text, end="")
        return
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + text + END + after)


if __name__ == "__main__":
    main()

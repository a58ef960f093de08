"""Operator policies: bounds for queues that no user's policy and no declaration goes beyond (RabbitMQ's).

One applies beside the policy of a queue, the one with the highest priority among those that fit. Of a key that both have, or that the
declaration has too, the smallest value counts.
"""

from .policies import SMALLER, Policy, bad

KEYS = tuple([key[2:] for key in SMALLER])


class OperatorPolicy(Policy):
    """One operator policy. Raises ProtocolError for an invalid one."""

    kind = "operator policy"

    def __init__(self, name, pattern, definition, priority=0, apply_to="queues"):
        Policy.__init__(self, name, pattern, definition, priority, apply_to)
        for key in definition:
            if key not in KEYS:
                bad(name, "an operator policy has no key '%s'; there are %s" % (str(key)[:80], ", ".join(KEYS)))
        if apply_to == "exchanges":
            bad(name, "an operator policy is of queues")

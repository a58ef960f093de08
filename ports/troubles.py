"""What keeps publishers waiting, in RabbitMQ's word and in a sentence."""

from typing import Any


def alarms(broker: Any) -> list[tuple[str, str]]:
    """(what, why) of each."""
    rows = []
    if broker.journal is not None and broker.journal.log.trouble:
        rows.append(("disk", broker.journal.log.trouble))
    if broker.pressure and broker.pressure.reason:
        rows.append(("memory", broker.pressure.reason))
    return rows

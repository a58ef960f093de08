"""How many channels and queues came and went, since the API is there: no record of the broker's counts them."""

from typing import Any

from ...core.memory import layout
from ..over import over


class Churn:
    """`counts`: by RabbitMQ's names of its churn rates."""

    def __init__(self, broker: Any) -> None:
        self.broker = broker
        self.counts = dict.fromkeys(("channel_created", "channel_closed", "queue_declared", "queue_created", "queue_deleted"), 0)
        for owner, name, function in (
            (broker.consumers, "open_session", self.open_session),
            (broker.consumers, "close_session", self.close_session),
            (broker.topology, "declare_queue", self.declare_queue),
            (broker.topology, "make_queue", self.make_queue),
            (broker.topology, "forget_queue", self.forget_queue),
        ):
            over(owner, name, function)

    def count(self, name: str) -> None:
        """One more."""
        self.counts[name] += 1

    def open_session(self, before: Any, connection: Any = None) -> Any:
        """A session gets its record, or none."""
        handle = before(connection)
        if handle is not None:
            self.count("channel_created")
        return handle

    def close_session(self, before: Any, session: Any) -> None:
        """A session ends, once: it may be asked for again while its deliveries go back."""
        if session.handle != layout.NONE and session not in self.broker.consumers.leaving:
            self.count("channel_closed")
        before(session)

    def declare_queue(self, before: Any, *given: Any) -> Any:
        """A declaration that is answered."""
        made = before(*given)
        self.count("queue_declared")
        return made

    def make_queue(self, before: Any, *given: Any) -> Any:
        """A queue is made."""
        made = before(*given)
        self.count("queue_created")
        return made

    def forget_queue(self, before: Any, queue: Any) -> None:
        """A queue is removed."""
        before(queue)
        self.count("queue_deleted")

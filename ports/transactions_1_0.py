"""Transactions of the blocking AMQP 1.0 client (part 4): the messages and outcomes of a transaction take effect together, or not at all.

    with client.transaction() as work:              # leaving it commits; an exception rolls back
        work.send(sender, b"21.5", {"durable": True})
        work.settle(receiver, message)              # accepted; or any other outcome
    work = client.transaction(); ...; work.commit() # or work.rollback()

Several may be open at a time. commit raises NotAccepted where the broker refuses the whole: then nothing has happened.
"""

from ..core.amqp_1_0.client import transactions
from ..core.amqp_1_0.client.message import message_head
from .client_1_0 import not_accepted

if False:  # for the type checker alone
    from typing import Any

    from .client_1_0 import Connection, Controller, Receiver, Sender


class Transaction:
    """One transaction. `id`: the broker's name for it, None when it is over."""

    def __init__(self, connection: "Connection", controller: "Controller") -> None:
        self._connection = connection
        self._controller = controller
        self._senders: "list[Any]" = []
        number: int = self._ask(lambda: controller.link.declare())
        outcome, fields = self._answer(number)
        if outcome != "declared":
            raise not_accepted("a transaction", [(number, outcome, fields)])
        self.id: "Any" = fields["txn-id"]

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(self, kind: "Any", error: "Any", trace: "Any") -> None:
        if self.id is not None:
            if kind is None:
                self.commit()
            else:
                self.rollback()

    def send(self, sender: "Sender", body: "Any", *sections: "Any") -> int:
        """As Sender.send, `sections` being its fields, application properties and annotations. Returns when the message is in the send
        buffer, since nothing has happened before `commit`."""
        if sender not in self._senders:
            self._senders.append(sender)
        sender.link.work = transactions.state(self.id)
        try:
            number: int = sender.send_octets(message_head(*sections), body, False)
        finally:
            sender.link.work = b""
        return number

    def settle(self, receiver: "Receiver", message: "Any", outcome: str = "accepted", fields: "dict[str, Any] | None" = None) -> None:
        """Give a message its outcome, at the commit."""
        receiver.settle(message, *transactions.outcome(self.id, outcome, fields))

    def commit(self) -> None:
        """Commit the transaction. After NotAccepted none of its work has taken effect."""
        for sender in self._senders:
            sender.wait_settled()
        self._discharge(False)

    def rollback(self) -> None:
        """Undo the whole transaction: deliveries that were settled in it are unsettled as before, at the broker."""
        self._discharge(True)

    def _discharge(self, fail: bool) -> None:
        id_, self.id = self.id, None
        if id_ is None:
            raise ValueError("the transaction is over")
        number: int = self._ask(lambda: self._controller.link.discharge(id_, fail))
        outcome, fields = self._answer(number)
        if outcome != "accepted":
            raise not_accepted("the transaction", [(number, outcome, fields)])

    def _ask(self, ask: "Any") -> "Any":
        """The number of a message to the coordinator, which may have to wait for room."""
        numbers: "list[Any]" = []

        def asked() -> bool:
            number = ask()
            if number:
                numbers.append(number)
            return bool(number)

        self._connection.wait(asked)
        return numbers[0]

    def _answer(self, number: int) -> "Any":
        """The outcome of such a message: (name, fields)."""
        answers = self._controller.answers
        self._connection.wait(lambda: number in answers)
        return answers.pop(number)

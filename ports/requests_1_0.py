"""Requests to a node that answers them (AMQP Management; `$cbs`, `$management`), and the tokens of a connection with auth=cbs.

    node = Node(connection, "$management")
    code, text, body = node.ask(lambda number, reply_to: octets)

A blocking form over client_1_0.py. Errors are those of client_1_0.py; a token that is not taken is LoginRefused.
"""

from random import getrandbits

from ..core.amqp_1_0.client import tokens
from ..core.shim import elapsed
from .client_errors import LoginRefused
from .clock import now_ms, seconds

if False:  # for the type checker alone
    from collections.abc import Callable
    from typing import Any

    from .client_1_0 import Connection
    from .url_1_0 import Url10

TOKEN_S = 3600


class Node:
    """A node and the two links to it."""

    def __init__(self, connection: "Connection", address: str) -> None:
        self.connection = connection
        self.reply_to = "leveret-%08x" % getrandbits(30)
        self.receiver = connection.receiver(address, 4, reply_to=self.reply_to)
        self.sender = connection.sender(address)
        self.count = 0

    def ask(self, request: "Callable[[int, str], bytes]") -> "tuple[int, str, Any]":
        """(status code, its sentence, the body) of the answer to the octets that `request` gives for a number and the address of our end.
        Raises Timeout, LinkDetached, NotAccepted."""
        self.count += 1
        self.sender.send_octets(request(self.count, self.reply_to))
        while True:
            message = self.connection.next_of(self.receiver)
            self.receiver.accept(message)
            number, code, text = tokens.answer(message)
            if number == self.count:
                return code, text, message.body


class Authority:
    """The tokens of one connection, made of a policy's name and key (core/amqp_1_0/client/tokens.py)."""

    def __init__(self, connection: "Connection", place: "Url10") -> None:
        self._place = place
        self._addresses: "list[str]" = []
        self._put_at = now_ms()
        self._node = Node(connection, tokens.NODE)

    def grant(self, address: str) -> None:
        """Put a token for an address to the broker. Raises LoginRefused."""
        if address not in self._addresses:
            self._put(address)
            self._addresses.append(address)

    def renew(self) -> None:
        """Put the tokens again when half of their time is over."""
        if elapsed(now_ms(), self._put_at) > TOKEN_S * 500:
            self._put_at = now_ms()
            for address in self._addresses:
                self._put(address)

    def token(self, address: str) -> str:
        """A token for an address."""
        made: str = tokens.sas_token(self._resource(address), self._place.user, self._place.password, seconds() + TOKEN_S)
        return made

    def _resource(self, address: str) -> str:
        return "amqps://%s/%s" % (self._place.name(), address)

    def _put(self, address: str) -> None:
        resource, token = self._resource(address), self.token(address)
        code, text, _ = self._node.ask(lambda number, reply_to: tokens.put_token(token, resource, number, reply_to))
        if code not in (200, 202):
            advice = "see the policy's name and key in the URL, and its rights"
            raise LoginRefused("a token for %s is refused: %d %s: %s" % (resource, code, text, advice))

"""Proton's Python client: reactive MessagingHandlers, durable subscriptions and transactions."""

import runner
from proton import Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container, DurableSubscription
from proton_python import connected, nothing_comes
from runner import WAIT_S, equal


def scenario_order(place):
    """1,000 messages arrive in order, ten at a time, each once."""
    got = []

    class Both(MessagingHandler):
        def __init__(self):
            super().__init__(prefetch=10)
            self.sent = 0

        def on_start(self, event):
            connection = event.container.connect(place.url, user=place.user, password=place.password, allowed_mechs="PLAIN")
            event.container.create_sender(connection, place.own_queue)
            event.container.create_receiver(connection, place.own_queue)
            event.container.schedule(WAIT_S * 2, self)

        def on_sendable(self, event):
            while event.sender.credit and self.sent < 1000:
                event.sender.send(Message(body=self.sent))
                self.sent += 1

        def on_message(self, event):
            got.append(event.message.body)
            if len(got) == 1000:
                event.connection.close()
                event.container.stop()

        def on_timer_task(self, event):
            event.container.stop()

    Container(Both()).run()
    equal(got, list(range(1000)))


def scenario_durable_subscription(place):
    """A durable subscription keeps what was sent while its receiver was detached; who closes the link ends it."""
    options = {"container_id": "proton-durable"}

    class Handler(MessagingHandler):
        def __init__(self, wanted, end):
            super().__init__()
            self.wanted, self.end, self.got, self.error = wanted, end, [], None

        def on_start(self, event):
            connection = event.container.connect(place.url, user=place.user, password=place.password, allowed_mechs="PLAIN")
            self.receiver = event.container.create_receiver(connection, place.own_subscription, name="kept", options=DurableSubscription())
            self.timer = event.container.schedule(WAIT_S, self)

        def on_link_opened(self, event):
            if not self.wanted:
                self.finish(event)

        def on_link_error(self, event):
            self.error = event.link.remote_condition
            event.connection.close()
            self.timer.cancel()

        def on_message(self, event):
            self.got.append(event.message.body)
            if len(self.got) == self.wanted:
                self.finish(event)

        def finish(self, event):
            self.timer.cancel()
            (self.receiver.close if self.end else self.receiver.detach)()
            if not self.end:
                event.connection.close()

        def on_link_closed(self, event):
            event.connection.close()

        def on_timer_task(self, event):
            self.error = "nothing came"
            event.container.stop()

    def run(wanted, end=False):
        handler = Handler(wanted, end)
        container = Container(handler)
        container.container_id = options["container_id"]
        container.run()
        assert handler.error is None, handler.error
        return handler.got

    run(0)
    connection = connected(place)
    sender = connection.create_sender(place.own_topic)
    for number in range(3):
        sender.send(Message(body=number, durable=True))
    equal(run(3), [0, 1, 2])
    sender.send(Message(body="last"))
    equal(run(1, end=True), ["last"])
    connection.close()


def transacted(place, steps):
    """Run a generator's steps in transactions of one connection: it yields "declare", "commit", "abort" or None (wait for a message)."""

    class Handler(MessagingHandler, TransactionHandler):
        def __init__(self):
            super().__init__(prefetch=0, auto_accept=False)
            self.transaction, self.sender, self.receiver, self.steps, self.error = None, None, None, None, "it did not end"

        def on_start(self, event):
            self.container = event.container
            connection = event.container.connect(place.url, user=place.user, password=place.password, allowed_mechs="PLAIN")
            self.connection = connection
            self.sender = event.container.create_sender(connection, place.own_queue)
            self.receiver = event.container.create_receiver(connection, place.own_queue)
            self.timer = event.container.schedule(WAIT_S, self)
            self.steps = steps(self)
            self.step(None)

        def step(self, value):
            try:
                wish = self.steps.send(value)
            except StopIteration:
                self.error = None
                self.stop()
                return
            except AssertionError as error:
                self.error = error
                self.stop()
                return
            if wish == "declare":
                self.container.declare_transaction(self.connection, handler=self, settle_before_discharge=False)
            elif wish == "commit":
                self.transaction.commit()
            elif wish == "abort":
                self.transaction.abort()
            elif wish == "message":
                self.receiver.flow(1)

        def stop(self):
            self.timer.cancel()
            self.connection.close()

        def on_message(self, event):
            self.step((event.message.body, event.delivery))

        def on_transaction_declared(self, event):
            self.transaction = event.transaction
            self.step(None)

        def on_transaction_committed(self, event):
            self.step("committed")

        def on_transaction_aborted(self, event):
            self.step("aborted")

        def on_transaction_declare_failed(self, event):
            self.error = "the transaction was not declared"
            self.stop()

        def on_link_error(self, event):
            self.error = event.link.remote_condition
            self.stop()

        def on_timer_task(self, event):
            self.container.stop()

    handler = Handler()
    Container(handler).run()
    assert handler.error is None, handler.error


def scenario_transaction_commit(place):
    """Messages of a transaction are there after its commit, and not before (part 4, 4.3)."""

    def steps(handler):
        yield "declare"
        handler.transaction.send(handler.sender, Message(body="first"))
        handler.transaction.send(handler.sender, Message(body="second"))
        watching = connected(place)
        assert nothing_comes(watching.create_receiver(place.own_queue)), "a message came before the commit"
        watching.close()
        equal((yield "commit"), "committed")
        equal((yield "message")[0], "first")
        equal((yield "message")[0], "second")

    transacted(place, steps)


def scenario_transaction_abort(place):
    """Messages of a transaction that is rolled back never come."""

    def steps(handler):
        yield "declare"
        handler.transaction.send(handler.sender, Message(body="never"))
        equal((yield "abort"), "aborted")
        handler.sender.send(Message(body="plain"))
        equal((yield "message")[0], "plain")

    transacted(place, steps)


def scenario_transaction_accept(place):
    """What was accepted in a transaction is gone after its commit (part 4, 4.4.2)."""
    connection = connected(place)
    connection.create_sender(place.own_queue).send(Message(body="work"))

    def steps(handler):
        body, delivery = yield "message"
        equal(body, "work")
        yield "declare"
        handler.transaction.accept(delivery)
        equal((yield "commit"), "committed")

    transacted(place, steps)
    assert nothing_comes(connection.create_receiver(place.own_queue))
    connection.close()


if __name__ == "__main__":
    runner.run(globals())

"""The topology of a broker: exchanges, queues, bindings, and the verbs that make and remove them.

Every verb is a ladder of guards: name, exists or passive, permission, limits, act. A guard refuses with a ProtocolError whose text is
RabbitMQ's, because clients and their users know those (core/SPEC.md). `connection` is the client's: it owns exclusive queues and has a
share.
"""

import binascii
import hashlib

from ..access.permissions import CONFIGURE, check
from ..errors import ACCESS_REFUSED, COMMAND_INVALID, NOT_FOUND, PRECONDITION_FAILED, RESOURCE_ERROR, RESOURCE_LOCKED, ProtocolError
from ..exchange.base import ALTERNATE, Binding
from ..exchange.registry import PREDECLARED, SYSTEM, type_named
from ..limits import cost
from ..memory import layout
from ..memory.hot import allocate, deactivate, give
from ..message.type_words import alike, type_word
from ..parts import needed
from ..queue import rules
from ..queue.queue import Queue
from . import route_cache

UNKNOWN_SIZE = 64  # characters of the name of an argument in the log

OWN = ("leveret.poison", "leveret.prepared")  # names of the broker's own queues (poison.py, amqp_0_10/branches.py)
BINDINGS_A_TURN = 512  # bindings of a deleted queue or exchange that one turn removes


class NoPolicies:
    """Stands for policies.Policies on a board that does not carry them."""

    by_name: dict = {}
    operators: dict = {}
    pending = failed = ()

    def again(self, *given):
        """There is nothing to do."""

    apply_to_queue = apply_to_exchange = again

    def made(self, *given):
        """Refuse a policy in the log, which another build wrote."""
        needed("broker.policies", "policies")


class Topology:
    """Exchanges and queues by name, and their bindings; its verbs are a broker's."""

    def __init__(self, broker):
        self.broker = broker
        self.limits = broker.limits
        self.tables = broker.tables
        self.exchanges = broker.exchanges
        self.queues = broker.queues
        self.queue_objects = broker.queue_objects
        self.names_made = 0
        self.binding_count = 0
        self.unknown_logged = []  # arguments that the log has been told of
        for name, type_ in PREDECLARED:
            class_ = type_named(type_)
            if class_ is not None:
                self.exchanges[name] = class_(name, True, False, False, {})

    def called(self, kind, name):
        """A queue or exchange as error texts name it."""
        return "%s '%s' in vhost '%s'" % (kind, name, self.broker.virtual_host)

    # Exchanges (0-9-1 section 1.6)

    def exchange(self, name):
        """The exchange called `name`; not-found when there is none."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise ProtocolError(NOT_FOUND, "no " + self.called("exchange", name))
        return exchange

    def declare_exchange(self, connection, name, type_, passive, durable, auto_delete, internal, arguments):
        """Make an exchange, or check that the existing one is equivalent (section 1.6.2.1)."""
        broker = self.broker
        if name == "":
            raise ProtocolError(ACCESS_REFUSED, "operation not permitted on the default exchange")
        if passive:
            return self.exchange(name)
        class_ = type_named(type_)
        if class_ is None:
            raise ProtocolError(COMMAND_INVALID, "%s exchange type '%s'" % ("invalid" if type_ == SYSTEM else "unknown", type_))
        exchange = self.exchanges.get(name)
        if exchange is not None:
            self.same_exchange(exchange, class_.type, durable, auto_delete, internal, arguments)
            return exchange
        self.check_new_name("exchange", name)
        self.check_exchange_arguments(name, class_, arguments)
        if len(self.exchanges) >= self.limits.exchange_count_max:
            raise ProtocolError(RESOURCE_ERROR, "this broker holds %d exchanges at most" % self.limits.exchange_count_max)
        made = class_(name, durable, auto_delete, internal, arguments, broker.nonce + name.encode("utf-8"))
        for each in arguments:
            if each not in class_.arguments_served:
                self.log_unknown("exchange", each)
        broker.policies.apply_to_exchange(made)
        if durable and broker.journal is not None:
            broker.journal.define(broker.journal.definitions.exchange_definition(made))
        self.exchanges[name] = made  # last: a second declaration of an existing exchange is not logged
        return made

    def check_exchange_arguments(self, name, class_, arguments):
        """Raise precondition-failed for arguments that make no sense to the type; unknown arguments are accepted."""
        self.check_size(arguments)
        if not isinstance(arguments.get(ALTERNATE, ""), str):
            raise ProtocolError(
                PRECONDITION_FAILED,
                "invalid type '%s' for arg '%s' in %s" % (type_word(arguments[ALTERNATE]), ALTERNATE, self.called("exchange", name)),
            )
        class_.check_arguments(arguments)

    def same_exchange(self, exchange, type_, durable, auto_delete, internal, arguments):
        """Raise precondition-failed when a declaration differs from what is there."""
        subject = self.called("exchange", exchange.name)
        self.equivalent("type", subject, type_, exchange.type)
        self.equivalent("durable", subject, durable, exchange.durable)
        self.equivalent("auto_delete", subject, auto_delete, exchange.auto_delete)
        self.equivalent("internal", subject, internal, exchange.internal)
        self.equivalent_arguments(subject, arguments, exchange.arguments)

    def delete_exchange(self, name, if_unused):
        """Remove an exchange and its bindings (section 1.6.2.3); a missing exchange counts as removed.

        False: only some of many bindings are removed yet; call this again for the rest.
        """
        if name == "":
            raise ProtocolError(ACCESS_REFUSED, "operation not permitted on the default exchange")
        if name.startswith("amq."):
            raise ProtocolError(ACCESS_REFUSED, "deletion of system %s not allowed" % self.called("exchange", name))
        exchange = self.exchanges.get(name)
        if exchange is None:
            return True
        if if_unused and exchange.bindings:
            raise ProtocolError(PRECONDITION_FAILED, self.called("exchange", name) + " in use")
        if self.unbind_many(exchange.bindings) or self.unbind_many(exchange.bound):
            return False
        self.remove_bindings(list(exchange.bindings.values()) + list(exchange.bound.values()))
        if self.exchanges.get(name) is exchange:  # it was not auto-deleted with its last binding
            self.exchange_gone(exchange)
        return True

    def exchange_gone(self, exchange):
        """Forget an exchange's name."""
        broker = self.broker
        if exchange.durable and broker.journal is not None:  # first: a second deletion is not logged
            definitions = broker.journal.definitions
            broker.journal.define(definitions.gone(definitions.exchange_definition(exchange)))
        del self.exchanges[exchange.name]
        route_cache.forget(self.tables)

    # Queues (section 1.7)

    def queue(self, name, connection):
        """The queue called `name`; not-found when there is none, resource-locked when another connection owns it."""
        queue = self.queues.get(name)
        if queue is None:
            raise ProtocolError(NOT_FOUND, "no " + self.called("queue", name))
        if queue.owner is not None and queue.owner is not connection:
            self.locked(name)
        return queue

    def declare_queue(self, connection, name, passive, durable, exclusive, auto_delete, arguments):
        """Make a queue, or check that the existing one is equivalent (section 1.7.2.1). An empty name asks for a generated one."""
        if passive:
            queue = self.queue(name, connection)
            queue.used = True
            return queue
        if name in self.queues:
            queue = self.queue(name, connection)
            self.same_queue(queue, durable, exclusive, auto_delete, arguments)
            queue.used = True
            return queue
        if name == "":
            name = self.generated_name("amq.gen-")
            check(self.broker, connection.user, CONFIGURE, "queue", name)
        else:
            self.check_new_name("queue", name)
        self.check_queue_arguments(name, durable, exclusive, auto_delete, arguments)
        if self.broker.parameters is not None:
            self.broker.parameters.check_queue(name)
        self.check_queue_room(connection)
        for each in arguments:
            if not rules.is_known(each):
                self.log_unknown("queue", each)
        return self.make_queue(connection, name, durable, exclusive, auto_delete, arguments)

    def check_queue_arguments(self, name, durable, exclusive, auto_delete, arguments):
        """Raise precondition-failed for arguments that this broker knows and cannot satisfy."""
        self.check_size(arguments)
        subject = self.called("queue", name)
        rules.check_queue(subject, arguments)
        if arguments.get("x-queue-type") == "quorum":
            needed("queue.quorum", "quorum queues").check_properties(subject, durable, exclusive, auto_delete, self.broker.journal)
        if arguments.get("x-queue-type") == "stream":
            for flag, given in (("durable", not durable), ("exclusive", exclusive), ("auto-delete", auto_delete)):
                if given:
                    raise ProtocolError(
                        PRECONDITION_FAILED,
                        "invalid property '%s' for %s: a stream is durable, not exclusive and not auto-delete" % (flag, subject),
                    )

    def check_queue_room(self, connection):
        """Raise resource-error when the broker or the connection's share has no place for one more queue."""
        if self.tables.queue_pool[2] < 1:
            raise ProtocolError(RESOURCE_ERROR, "this broker holds %d queues at most" % self.limits.queue_count_max)
        if connection.queues_declared >= self.limits.queue_share_max:
            raise ProtocolError(RESOURCE_ERROR, "one connection declares %d queues at most" % self.limits.queue_share_max)

    def make_queue(self, connection, name, durable, exclusive, auto_delete, arguments):
        """The queue object, all guards passed."""
        tables = self.tables
        handle = allocate(tables.queues, tables.queue_pool, 0, layout.QUEUE_WIDTH)
        try:
            made = self.queue_at(handle, connection, name, durable, exclusive, auto_delete, arguments)
        except Exception:  # all of it or nothing
            self.queues.pop(name, None)
            self.broker.queue_list = None
            self.queue_objects.pop(handle, None)
            give(tables.queues, tables.queue_pool, 0, handle)
            raise
        connection.queues_declared += 1
        if exclusive:
            connection.exclusive_queues = connection.exclusive_queues or []
            connection.exclusive_queues.append(made)
        return made

    def queue_at(self, handle, connection, name, durable, exclusive, auto_delete, arguments):
        """Make a queue on a free record, by its name, and log it."""
        broker, tables = self.broker, self.tables
        if arguments.get("x-queue-type") == "stream":
            made = needed("stream.stream", "streams").Stream(
                tables, handle, name, durable, arguments, self.generated_name("stream-"), self.limits
            )
        else:
            class_ = needed("queue.quorum", "quorum queues").Quorum if arguments.get("x-queue-type") == "quorum" else Queue
            made = class_(tables, handle, name, durable, auto_delete, arguments, connection if exclusive else None)
            made.effective = made.with_defaults(arguments)
            made.rules = rules.rules_of(made.effective)
        if name in OWN:
            made.is_own = True
        made.declared_by = connection
        self.queues[name] = made
        broker.queue_list = None
        self.queue_objects[handle] = made
        broker.policies.apply_to_queue(broker, made)
        if durable and not exclusive and broker.journal is not None:
            broker.journal.queue_made(made)
        elif made.rules is not None or made.is_stream:
            made.update_plain()
        return made

    def same_queue(self, queue, durable, exclusive, auto_delete, arguments):
        """Raise precondition-failed when a declaration differs from what is there."""
        subject = self.called("queue", queue.name)
        self.equivalent("durable", subject, durable, queue.durable)
        if exclusive != (queue.owner is not None):
            self.locked(queue.name)
        self.equivalent("auto_delete", subject, auto_delete, queue.auto_delete)
        self.equivalent_arguments(subject, arguments, queue.arguments)

    def delete_queue(self, connection, name, if_unused, if_empty):
        """Remove a queue (section 1.7.2.9): the number of its ready messages; one that is not there is removed already.

        None: only some of many bindings are removed yet; call this again for the rest.
        """
        if name not in self.queues:
            return 0
        queue = self.queue(name, connection)
        if queue.is_own:
            raise ProtocolError(ACCESS_REFUSED, self.called("queue", name) + " is the broker's own")
        if if_unused and queue.consumers:
            raise ProtocolError(PRECONDITION_FAILED, self.called("queue", name) + " in use")
        if if_empty and queue.message_count():
            raise ProtocolError(PRECONDITION_FAILED, self.called("queue", name) + " not empty")
        return None if self.unbind_many(queue.bound) else self.drop_queue(queue)

    def drop_queue(self, queue):
        """Remove a queue: its name is free at once, unless it has many bindings; a job removes the rest in turns. The number of ready
        messages."""
        broker = self.broker
        count = queue.message_count()
        broker.jobs.append(Removal(broker, queue))  # first: nothing is half done when there is no memory for it
        try:
            is_first = not self.unbind_many(queue.bound)
            if is_first:
                self.forget_queue(queue)
        except Exception:  # all or nothing: the queue is there yet
            broker.jobs.pop()
            raise
        if is_first and not queue.consumers:  # who deletes a queue hears of its own consumers after delete-ok, as from RabbitMQ
            broker.work(broker.jobs.pop())
        return count

    def forget_queue(self, queue):
        """Take a queue out of everything that knows its name, with what is only in the log; the rest is for `end_some`."""
        broker = self.broker
        queue.auto_delete = False
        broker.counters["dropped_with_queue"] += queue.purge(0)
        queue.end()
        self.remove_bindings(queue.bound.values())
        if broker.journal is not None:
            broker.journal.queue_gone(queue)
        queue.declared_by.queues_declared -= 1
        if queue.owner is not None:
            queue.owner.exclusive_queues.remove(queue)
        del self.queues[queue.name]
        broker.queue_list = None
        queue.rules = None
        queue.update_plain()
        self.tables.queues[queue.handle + layout.QUEUE_IDENTITY] = 0  # no copy is made of what is left
        route_cache.forget(self.tables)

    def end_some(self, queue):
        """Release as much of a removed queue as this turn has effort left for; true when nothing is left of the queue, and its record is
        free.

        Dead letters that wait come by themselves, and deliveries of channels that are over.
        """
        broker, tables, state, queues = self.broker, self.tables, self.tables.state, self.tables.queues
        if self.queues.get(queue.name) is queue:  # it had many bindings
            if self.unbind_many(queue.bound):
                return False
            self.forget_queue(queue)
        while queue.consumers and state[layout.STATE_LEFT] > 0:
            consumer = queue.consumers[0]
            channel = consumer.channel
            unsettled = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED]
            state[layout.STATE_LEFT] -= tables.engine.effort // 256 + unsettled // 16  # about the effort of ending a consumer there
            broker.counters["consumers_cancelled"] += 1
            broker.consumers.cancel(consumer)
            try:
                channel.session.cancelled(consumer, NOT_FOUND)
            except Exception as error:  # an error of ours is that connection's alone
                channel.connection.broke(error)
        most = max(state[layout.STATE_LEFT], 0)
        count = queue.purge(most)
        count += broker.waiting.drop(queue, min(most - count, broker.consumers.looked_at(most)))
        for channel in broker.consumers.open_sessions() if queue.unsettled_count() else ():
            if count < most and channel not in broker.consumers.leaving:
                count += tables.engine.drop_held(channel.handle, queue.handle, most - count)
        state[layout.STATE_LEFT] -= count
        broker.counters["dropped_with_queue"] += count
        if queue.consumers or queues[queue.handle + layout.QUEUE_BLOCKS] or queue.message_count():
            broker.dead_letters.retry()
            return False
        if broker.journal is not None:
            broker.journal.gather_settled()
        deactivate(queues, state, queue.handle)  # its record may soon be another queue's
        del self.queue_objects[queue.handle]
        give(queues, tables.queue_pool, 0, queue.handle)
        return True

    # Bindings

    def bind(self, connection, queue_name, exchange_name, key, arguments):
        """Bind a queue (section 1.7.2.3); a binding that is there already stays one."""
        queue = self.queue(queue_name, connection)
        not_default(exchange_name)
        self.bind_to(connection, queue, self.exchange(exchange_name), key, arguments)

    def bind_exchange(self, connection, destination_name, source_name, key, arguments):
        """Bind an exchange to an exchange (RabbitMQ's exchange.bind): what the source matches goes on to the destination."""
        not_default(source_name)
        not_default(destination_name)
        source = self.exchange(source_name)
        self.bind_to(connection, self.exchange(destination_name), source, key, arguments)

    def bind_to(self, connection, destination, exchange, key, arguments):
        """Bind a queue or an exchange to an exchange."""
        broker = self.broker
        if not destination.is_exchange and destination.is_own:
            raise ProtocolError(ACCESS_REFUSED, self.called("queue", destination.name) + " is the broker's own")
        exchange.check_binding(destination, key, arguments)
        if exchange.find(destination, key, arguments) is not None:
            return
        self.check_size(arguments)
        weight = exchange.weight(key, arguments)
        if self.binding_count + weight > self.limits.binding_count_max:
            raise ProtocolError(RESOURCE_ERROR, "this broker holds %d bindings at most" % self.limits.binding_count_max)
        if connection.bindings_made + weight > self.limits.binding_share_max:
            raise ProtocolError(RESOURCE_ERROR, "one connection makes %d bindings at most" % self.limits.binding_share_max)
        binding = Binding(exchange, destination, key, arguments)
        binding.made_by = connection
        binding.weight = weight
        exchange.bind(binding)
        try:
            if broker.journal is not None and broker.journal.definitions.is_durable(binding):
                broker.journal.define(broker.journal.definitions.binding_definition(binding))
        except Exception:  # all of it or nothing
            exchange.unbind(binding)
            raise
        connection.bindings_made += weight
        self.binding_count += weight
        route_cache.forget(self.tables)

    def unbind(self, connection, queue_name, exchange_name, key, arguments):
        """Remove a binding (section 1.7.2.5); one that is not there, or whose queue or exchange is not, is removed already."""
        not_default(exchange_name)
        if queue_name in self.queues:
            self.unbind_from(self.queue(queue_name, connection), exchange_name, key, arguments)

    def unbind_exchange(self, destination_name, source_name, key, arguments):
        """Remove a binding between exchanges (RabbitMQ's exchange.unbind); one that is not there is removed already."""
        not_default(source_name)
        not_default(destination_name)
        if destination_name in self.exchanges:
            self.unbind_from(self.exchanges[destination_name], source_name, key, arguments)

    def unbind_from(self, destination, exchange_name, key, arguments):
        """Remove a destination's binding to an exchange, if both are there."""
        if exchange_name in self.exchanges:
            binding = self.exchanges[exchange_name].find(destination, key, arguments)
            if binding is not None:
                self.remove_bindings((binding,))

    def unbind_many(self, bindings):
        """Remove BINDINGS_A_TURN of more than so many (a dict of them), which is all of a turn: true when there were more."""
        if len(bindings) <= BINDINGS_A_TURN:
            return False
        some = []
        for binding in bindings.values():
            some.append(binding)
            if len(some) == BINDINGS_A_TURN:
                break
        self.remove_bindings(some)
        self.tables.state[layout.STATE_LEFT] = 0
        return True

    def remove_bindings(self, bindings):
        """Remove bindings, and each auto-delete exchange whose last one went (section 1.6.2.1), with the bindings to it, and so on.

        Auto-delete looks only at the bindings of which an exchange is the source, as in RabbitMQ.
        """
        broker = self.broker
        waiting = list(bindings)
        route_cache.forget(self.tables)
        while waiting:
            binding = waiting.pop()
            exchange = binding.exchange
            if exchange.bindings.get(binding.identity) is not binding:
                continue  # an exchange that was bound to itself
            exchange.unbind(binding)
            try:
                if broker.journal is not None and broker.journal.definitions.is_durable(binding):
                    definitions = broker.journal.definitions
                    broker.journal.define(definitions.gone(definitions.binding_definition(binding)))
            except Exception:  # all of it or nothing: what is removed again, and gone, is not logged again
                exchange.bind(binding)
                raise
            binding.made_by.bindings_made -= binding.weight
            self.binding_count -= binding.weight
            if exchange.auto_delete and not exchange.bindings and self.exchanges.get(exchange.name) is exchange:
                self.exchange_gone(exchange)
                waiting.extend(exchange.bound.values())

    # Guards and names

    def check_new_name(self, kind, name):
        """Raise when a client may not make something of this name."""
        if name.startswith("amq."):
            raise ProtocolError(ACCESS_REFUSED, "%s name '%s' contains reserved prefix 'amq.*'" % (kind, name))
        if name in OWN:
            raise ProtocolError(ACCESS_REFUSED, "%s name '%s' is the broker's own" % (kind, name))
        if len(name.encode("utf-8")) > self.limits.name_size_max:
            raise ProtocolError(
                PRECONDITION_FAILED, "this %s name is longer than the %d octets that this broker takes" % (kind, self.limits.name_size_max)
            )

    def locked(self, name):
        """Raise resource-locked for a queue that is another connection's, or exclusive where the declaration is not."""
        raise ProtocolError(
            RESOURCE_LOCKED,
            "cannot obtain exclusive access to locked %s. It could be originally declared on another "
            "connection or the exclusive property value does not match that of the original declaration." % self.called("queue", name),
        )

    def log_unknown(self, kind, name):
        """Say once in the log that an argument means nothing to this broker: it is kept with what was declared, and has no effect."""
        name = name[:UNKNOWN_SIZE]
        if not name.startswith("x-") or name in self.unknown_logged or len(self.unknown_logged) >= self.limits.unknown_argument_count_max:
            return
        self.unknown_logged.append(name)
        self.broker.log("the argument %r of a %s means nothing to this broker: it is kept and has no effect" % (name, kind))

    def check_size(self, arguments):
        """Raise when kept arguments are larger than the limit."""
        if arguments and cost(arguments) > self.limits.argument_size_max:
            raise ProtocolError(
                PRECONDITION_FAILED, "the arguments are larger than the %d octets that this broker keeps" % self.limits.argument_size_max
            )

    def equivalent(self, argument, subject, received, current):
        """Raise precondition-failed when a property of a second declaration differs."""
        if not alike(received, current):
            raise ProtocolError(
                PRECONDITION_FAILED,
                "inequivalent arg '%s' for %s: received '%s' but current is '%s'" % (argument, subject, word(received), word(current)),
            )

    def equivalent_arguments(self, subject, received, current):
        """Raise precondition-failed when an argument with a meaning to the broker differs."""
        names = [name for name in list(current) + list(received) if name.startswith("x-") or name == ALTERNATE]
        for name in names:
            if name == "x-queue-type" and received.get(name, "classic") == current.get(name, "classic"):
                continue
            if name in received and name in current:
                self.equivalent(name, subject, received[name], current[name])
            elif name in received or name in current:
                raise ProtocolError(
                    PRECONDITION_FAILED,
                    "inequivalent arg '%s' for %s: received %s but current is %s"
                    % (name, subject, described(received.get(name)), described(current.get(name))),
                )

    def generated_name(self, prefix):
        """A name that this broker has not given before."""
        self.names_made += 1
        digest = hashlib.sha256(self.broker.nonce + str(self.names_made).encode()).digest()
        return prefix + str(binascii.hexlify(digest[:11]), "utf-8")


class Removal:
    """The removal of a queue: a job of the broker (`jobs`) until nothing of it is left."""

    subject = "a queue that is removed%s"

    def __init__(self, broker, queue):
        self.broker = broker
        self.queue = queue

    def work(self):
        """Delete a further part."""
        if self.broker.queue_objects.get(self.queue.handle) is self.queue and not self.broker.topology.end_some(self.queue):
            self.broker.jobs.append(self)


def not_default(exchange_name):
    """Raise access-refused for the default exchange, which nobody binds or unbinds."""
    if exchange_name == "":
        raise ProtocolError(ACCESS_REFUSED, "operation not permitted on the default exchange")


def word(item):
    """A property as error texts write it."""
    if item is True or item is False:
        return "true" if item else "false"
    return str(item)


def described(item):
    """An argument as error texts write it: none, or its value and type."""
    if item is None:
        return "none"
    return "the value '%s' of type '%s'" % (word(item), type_word(item))

"""What became of a published message, what a consumer says of one that it got, and whom a thing belongs to when nobody is there."""

TAKEN = 0
UNROUTABLE = 1
NO_ROOM = 2  # nothing was changed: the publisher is asked to wait, and it is tried again
REFUSED = 3  # by a rule of a queue: the publisher gets a negative confirm
SWALLOWED = 4  # taken by a rule of a queue, and not kept
NOT_YET = 5  # of management: the answer leaves when the log has what it says

# What a consumer says of deliveries (Consumers.settle). The first three have the numbers that the engine knows (layout.ACCEPTED ...).
ACCEPTED = 0
REJECTED = 1  # dropped, or dead-lettered
MODIFIED = 2  # back to the queue; it counts as a delivery that has failed: 0-9-1's requeue
RELEASED = 3  # back to the queue as if it had not been delivered
FAILS = 4  # beside REJECTED or MODIFIED (rejected, modified of AMQP 1.0): a dead letter is to say that this delivery has failed


class Nobody:
    """Stands for a connection that has gone, where something it declared lives on, and for definitions: it has no share to use up."""

    exclusive_queues = ()
    queues_declared = property(lambda self: 0, lambda self, count: None)
    bindings_made = property(lambda self: 0, lambda self, count: None)


nobody = Nobody()

"""The unit of each row of limits.py, and what happens at the limit: for README.md, `leveret limits` and sentences about wrong values.

A file of its own because text takes heap: no board carries it, and there a sentence about a wrong value goes without the unit.

A refusal is named by its condition (errors.py); core/LIMITS.md says what each family makes of it.
"""

# name of the row: unit, effect at the limit
WORDS = {
    "connection_count_max": ("connections", "one that has not logged in gives way; when all have, a further one is refused"),
    "stranger_share_max": (
        "percent of connection_count_max: connections that have not logged in",
        "for a further one the oldest of the address that has most of them is closed",
    ),
    "surplus_count_max": (
        "connections beyond connection_count_max that are told so: resource-error",
        "the oldest of them is closed; with 0 each is closed at once",
    ),
    "line_connection_count_max": ("connections over one serial line", "a further one is closed at once"),
    "line_connection_room": ("octets that wait for one of them", "its peer sends no more of it, the others go on"),
    "channel_max": ("sessions of one connection (0-9-1: channels)", "negotiated; one more: not-allowed"),
    "channel_count_max": ("sessions of all connections", "a further one: resource-error"),
    "frame_size_max": ("octets", "negotiated; a larger frame: frame-error"),
    "receive_buffer_size": (
        "octets a connection",
        "a frame that is no part of a body must fit whole: resource-error; bodies stream through",
    ),
    "send_buffer_size": ("octets a connection", "deliveries wait until there is room"),
    "properties_size_max": ("octets of the properties of one content", "content-too-large"),
    "content_size_max": ("octets of one body", "content-too-large"),
    "content_timeout_ms": ("ms without an octet of a begun content", "resource-error"),
    "arena_size": ("octets of routes, properties and bodies", "publishers wait, and are told where their protocol can"),
    "block_size": ("octets of one arena block", "grain of the arena"),
    "message_count_max": ("messages in all queues", "publishers wait"),
    "entry_count_max": ("places of messages in queues", "publishers wait"),
    "chunk_count_max": (
        "pieces of the log with messages of streams or beyond memory",
        "publishers to queues that are over their share wait, streams let their oldest piece go; a piece holds 256 messages, more"
        " when many are used",
    ),
    "queue_count_max": ("queues", "a further one: resource-error"),
    "queue_share_max": ("queues that one connection declares", "a further one: resource-error"),
    "exchange_count_max": ("exchanges", "a further one: resource-error"),
    "binding_count_max": ("bindings", "a further one: resource-error"),
    "binding_share_max": ("bindings that one connection makes", "a further one: resource-error"),
    "policy_count_max": ("policies and parameters", "a further one is refused"),
    "consumer_count_max": ("consumers", "a further one: resource-error"),
    "route_count_max": ("ways (user, exchange, routing key) that are remembered, rounded up to a power of two", "they are looked up again"),
    "name_size_max": ("octets of a queue, exchange or consumer name", "a longer one: precondition-failed"),
    "argument_size_max": ("octets of the arguments kept with a queue, exchange, binding or consumer", "larger ones: precondition-failed"),
    "copy_size_max": ("octets of the routing keys in CC and BCC of one content, and two for each", "precondition-failed"),
    "return_count_max": ("returned messages that wait in a session", "the connection is not read until they are gone"),
    "management_size_max": (
        "octets of a management request, and of an answer",
        "a larger request: content-too-large; a longer answer comes in pages",
    ),
    "heartbeat_s": ("seconds proposed to a peer; 0: none", "two of them in silence: connection closed"),
    "consumer_timeout_ms": ("ms a delivery may stay unsettled; 0: for ever", "its session ends: precondition-failed"),
    "send_timeout_ms": (
        "ms without one octet taken by a peer for which octets wait, over a network; 0: for ever",
        "the connection ends, its deliveries go back",
    ),
    "login_timeout_ms": ("ms from accept to the end of the log-in", "the connection is closed"),
    "login_pause_ms": ("ms from a log-in that fails to its answer", "the peer is not read meanwhile"),
    "login_failure_max": (
        "log-ins that fail from one address, or as one user",
        "from the address only who has come from there before is let in, the user is answered late elsewhere",
    ),
    "login_user_failure_max": ("log-ins as one user that fail from one address", "log-ins as it from there are refused"),
    "login_refusal_ms": ("ms without a further failure, then failures are forgotten", "until then a refused address stays refused"),
    "login_address_max": (
        "addresses, users, and users at addresses whose failures are counted; users at addresses that have logged in",
        "the one of longest ago is forgotten",
    ),
    "password_rounds": ("rounds of PBKDF2 in a new password hash", "more take longer to guess, and to log in with"),
    "unknown_argument_count_max": (
        "names of arguments that mean nothing to the broker and that its log has been told of",
        "further ones are taken without a word",
    ),
    "user_count_max": ("users", "a further one in definitions is left out"),
    "waiting_count_max": (
        "messages that wait for a moment (x-delay, x-delayed-retry-min)",
        "a publisher that asks for a delay waits; what comes back does so at once",
    ),
    "transaction_count_max": (
        "publishes and acknowledgements that all sessions keep for a commit; 64 octets of CC and BCC count as one more",
        "resource-error",
    ),
    "offset_count_max": (
        "names of consumers whose offsets streams keep, in all",
        "a consumer with a further name (x-stream-consumer): resource-error",
    ),
    "identity_count_max": (
        "message ids, publishers and last values that all queues remember together (x-deduplication, x-publisher-id, x-last-value-key)",
        "the queue or stream that remembers most forgets its oldest; last values have half: a message with a further one is refused",
    ),
    "bridge_count_max": ("bridges whose status is kept for who asks", "the one that has been silent longest is forgotten"),
    "granted_count_max": ("names that users are known to have a permission for, in all", "they are looked up again"),
    "link_count_max": (
        "links of AMQP 1.0; one with a long name, large termini or filters counts for several",
        "a further one is detached: amqp:resource-limit-exceeded",
    ),
    "target_count_max": (
        "targets of AMQP 1.0 whose deliveries the broker remembers until their senders settle them (rcv-settle-mode second); "
        "32 times as many deliveries in all",
        "a link to a further one is detached: amqp:resource-limit-exceeded",
    ),
    "staged_count_max": (
        "contents that are staged (classes file of AMQP 0-10, 0-9 and 0-8), or that messages refer to",
        "a further one is refused: resource-error",
    ),
    "staged_memory_max": (
        "octets of them on a broker without a log, where they are in memory",
        "a larger one is refused: content-too-large; one for which others leave too little: resource-error",
    ),
    "staged_size_max": (
        "octets of them on a broker with a log, where they are on the disk",
        "the same",
    ),
    "staged_share_max": (
        "percent of them, by their number and by their octets, that one user may have",
        "a further one is refused: resource-error",
    ),
    "staged_age_s": (
        "seconds for which a content is kept that nobody goes on staging, or publishes",
        "it is removed, and counted as staged_expired",
    ),
    "session_timeout_s": (
        "seconds that a session of AMQP 0-10 lives beyond its transport; a quarter of channel_count_max sessions do",
        "granted to who asks for more; 0 to a further session",
    ),
}

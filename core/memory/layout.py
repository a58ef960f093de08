"""Where each field of a record stands in its flat table.

A record is named by its handle: the index of its first integer. A field is table[handle + FIELD]; NONE is "no record".
Numbers stay below 2^30, so that no interpreter makes a big integer of them; counters that only grow wrap there (MASK).
The hot functions import the names; what compiles for boards puts the numbers in (tools/generate_viper.py).
"""

NONE = -1
GOT = -2  # in the place of a consumer: basic.get
RETURNING = -3  # the same: it is on its way back to its queue, in turns
MASK = 0x3FFFFFFF

EPOCH = 1577836800  # 2020-01-01, where MESSAGE_ARRIVED starts to count: seconds since 1970 no longer fit in 30 bits

# A message: its octets lie in a chain of arena blocks: route (exchange and routing key, as two short strings), annotations (where its kind
# says so: core/message/annotations.py), properties, body.
MESSAGE_FIRST = 0  # block; in a free record: the next free record
MESSAGE_LAST = 1
MESSAGE_ROUTE = 2  # octets
MESSAGE_PROPERTIES = 3
MESSAGE_BODY = 4
MESSAGE_FILLED = 5  # octets in the chain so far; of a message that is whole, all of them: annotations have no field of their own
MESSAGE_BLOCKS = 6  # blocks taken from the arena's account, all at the content header
MESSAGE_REFERENCES = 7
MESSAGE_ARRIVED = 8  # seconds since 2020-01-01
MESSAGE_SEGMENT = 9  # the log segment that has it; 0: none
MESSAGE_KIND = 10  # see below
MESSAGE_LIFETIME = (
    11  # milliseconds that its publisher gives it; NONE: for ever; below NONE: -2 less the seconds, where that is 2^30 or more
)
MESSAGE_WIDTH = 12

# MESSAGE_KIND: what rules ask of each message, so that none of them has to read its properties. Bits 0 to 7: whose format these are in
# (core/message/formats.py); bits 8 to 15: its priority, 0 where it gives none.
KIND_FORMAT = 255
KIND_PRIORITY = 8  # where the priority begins
KIND_DURABLE = 1 << 16  # its publisher wants it to survive a restart
KIND_ANNOTATED = 1 << 18  # the broker has annotations on it
KIND_HAS_PRIORITY = 1 << 19  # its publisher gives a priority, perhaps 0
KIND_FOR_US = 1 << 20  # its publisher sent octets that are not for all receivers (1.0: delivery-annotations, first-acquirer)
KIND_CHANGED = (
    1 << 21
)  # of its places in the log the last record counts: the broker has given it other annotations since (amqp_1_0/modified.py)
KIND_REPLY_TO = 1 << 22  # its annotations are nothing but an address (text) for the direct reply-to that its 0-9-1 publisher sent
KIND_ACQUIRED = 1 << 23  # a receiver of 1.0 has had it: none is told to be the first (noted with KIND_FOR_US alone)
KIND_GRAFTED = 1 << 24  # headers of a death are among its publisher's (core/queue/letters.py)
KIND_FAILED = 1 << 25  # a receiver of 1.0 has failed a delivery of it: its dead letters say how often (queue/features/dead_letter.py)
KIND_REWORKED = (
    KIND_FORMAT | KIND_ANNOTATED | KIND_REPLY_TO
)  # any of these: what 0-9-1 delivers is not the publisher's octets, and is made for each delivery

# An entry: a message's place in one queue, in one channel's unsettled list, or neither.
ENTRY_MESSAGE = 0  # in a free record: the next free record
ENTRY_NEXT = 1
ENTRY_PREVIOUS = 2
ENTRY_POSITION = 3  # counts up in its queue: the order to requeue into; a stream's offset, 30 bits of it
ENTRY_QUEUE = 4
ENTRY_REDELIVERED = (
    5  # how often it came back: failed (8 bits), released (8); above them its level of priorities; NONE: a stream's, or dropped; PASSED_BY
)
ENTRY_TAG = 6  # low 30 bits of the delivery tag
ENTRY_CONSUMER = 7  # NONE: it is gone; GOT: basic.get; RETURNING: it comes back
ENTRY_DEADLINE = 8  # see features/expiry.py; 0 where the queue has had no such rule
ENTRY_WIDTH = 9
PASSED_BY = -2  # ENTRY_REDELIVERED of an entry in no list of its queue: its message goes to the log alone, and the entry is free then
ENTRY_RELEASED = 8  # where the second of them begins
ENTRY_RETURNS = 65535  # both
ENTRY_LEVEL = 16  # where the level begins
LEVEL_ABOVE = ENTRY_TAG  # of the last entry of a level, -2 less what levels.py says: below 0 as of every ready entry of such a queue

QUEUE_HEAD = 0  # in a free record: the next free record
QUEUE_TAIL = 1
QUEUE_LENGTH = 2  # entries ready
QUEUE_UNSETTLED = 3  # entries delivered and not settled
QUEUE_BLOCKS = 4  # arena blocks of both
QUEUE_POSITION = 5  # of the next entry
QUEUE_OCTETS = 6  # of the bodies of ready messages
QUEUE_PLAIN = 7  # what may be pushed without asking Python, see below; Queue.update_plain keeps it
QUEUE_CONSUMERS = 8  # how many it has
QUEUE_ACTIVE = 9  # 1: in the list of queues that may have something to deliver (STATE_ACTIVE_HEAD)
QUEUE_NEXT_ACTIVE = 10  # behind it in that list
QUEUE_TURN = 11  # which of its consumers, counted from 0 in the order of Queue.consumers, is the next
QUEUE_IDENTITY = 12  # its id in the log; 0: nothing of it is logged
QUEUE_LOGGED = 13  # low 30 bits of the whole position of the last message that the log has seen of it
QUEUE_LOGGED_HIGH = 14
QUEUE_LIMITS = 15  # which limits are kept without asking Python, see below; Queue.update_plain writes this and the three behind it
QUEUE_TTL = 16  # x-message-ttl, milliseconds; NONE: none
QUEUE_LENGTH_MAX = 17  # x-max-length
QUEUE_OCTETS_MAX = 18  # x-max-length-bytes
QUEUE_RETURNED = 19  # the root of the tree of ready entries that were put back behind others (see returned.requeue); NONE: there is none
QUEUE_RETURNING = 20  # unsettled entries that come back, in turns: none is delivered until all have
QUEUE_WIDTH = 21

# QUEUE_PLAIN: a queue takes messages without a look at them ...
NOT_PLAIN = 0  # ... never: it has rules that QUEUE_LIMITS does not say, is a stream without a log, or keeps messages beyond memory
PLAIN = 1  # ... always
PLAIN_LOGGED = 2  # ... but a persistent one has to go into the log
PLAIN_STREAM = 4  # ... a stream in the log: each goes there, but for those of publishers with a name (stream/publishers.py)
PLAIN_PAGED = 8  # ... one that keeps messages beyond memory, where LIMIT_PAGED says how

# Bits of QUEUE_LIMITS.
LIMIT_EXPIRES = 1  # entries have deadlines: the head is looked at before a delivery
LIMIT_DROPS = 2  # the oldest go when there are too many
LIMIT_REFUSES = 4  # none is taken then: Python is to refuse it
LIMIT_DEAD_LETTERS = 8  # what goes is to be published again: Python is to do it
LIMIT_RETURNS = 16  # what comes back is looked at: Python is to do it
LIMIT_LEVELS = 32  # the ready list is in the order of levels (levels.py)
LIMIT_REMEMBERS = 64  # message ids are looked up (features/deduplication.py); only where the engine does that
LIMIT_LATEST = 128  # a message replaces the one with its value (features/last_value.py); only where the engine does that
LIMIT_HIGHEST = 8  # where the highest level begins, 8 bits
LIMIT_GROUPS = 65536  # messages have no tag until they are delivered (features/groups.py); only where the engine does that
LIMIT_PAGED = 131072  # persistent messages go to the log alone (log/beyond_memory.py); only where the engine does that
LIMIT_COUNTS = 262144  # what comes back more often than it may is looked at (features/delivery_limit.py): Python is to do it
LIMIT_MOST = 19  # where that number begins, 8 bits

CHANNEL_UNSETTLED_HEAD = 0  # in a free record: the next free record
CHANNEL_UNSETTLED_TAIL = 1
CHANNEL_UNSETTLED = 2  # entries on that list that consumers have got: what a prefetch counts
CHANNEL_TAG = 3  # low 30 bits of the last delivery tag
CHANNEL_TAG_HIGH = 4
CHANNEL_PREFETCH = (
    5  # basic.qos global: with so many unsettled no consumer of the channel gets more; 0: no limit, -1: none gets any (channel.flow)
)
CHANNEL_CONFIRM = 6  # 1: confirm mode
CHANNEL_PUBLISHED = 7  # low 30 bits of the last publish in confirm mode
CHANNEL_PUBLISHED_HIGH = 8
CHANNEL_INDEXED = 9  # the last unsettled entry that is in the index of tags: so are all before it; NONE: none is
CHANNEL_PLAIN = (
    10  # 1: publishes and acknowledgements need no look at the channel: open, no transaction, no content begun; 2: a transaction keeps
)
# the publishes
CHANNEL_COUNTED = 11  # 1: in the list of channels whose publishes hot.ingest has counted (STATE_COUNTED_HEAD); 2: some are to be logged
CHANNEL_NEXT_COUNTED = 12  # behind it in that list
CHANNEL_NUMBER = 13  # by which its peer knows it: the family's own, no neutral file reads it (dev.py check)
CHANNEL_COUNTED_FROM = 14  # CHANNEL_PUBLISHED before the first of them
CHANNEL_CONSUMERS = 15  # its first consumer, the others linked by CONSUMER_NEXT; NONE: none
CHANNEL_GOT = 16  # entries on that list that were got (GOT): no prefetch counts them
CHANNEL_WIDTH = 17

# The index of tags, behind the channels' records: the first entry (plus 1; 0: none) for each slot, then the next one behind each entry. The
# slot of an unsettled entry is (the channel's number among the records + its tag) & STATE_TAG_MASK. Entries come into it when one is asked
# for that is near neither end of its channel's list, so who settles in order never pays for it.

CONSUMER_QUEUE = 0  # in a free record: the next free record
CONSUMER_CHANNEL = 1
CONSUMER_CREDIT = 2  # deliveries it may still get
CONSUMER_NO_ACK = 3
CONSUMER_MODE = 4  # whether settling gives credit back, see below
CONSUMER_NEXT = 5  # behind it among the consumers of its channel
CONSUMER_WIDTH = 6

CHUNK_WIDTH = 12  # integers of a record of log/chunk_index.py

# The tree of what came back to a queue (QUEUE_RETURNED): ordered by position, and no entry is heavier than the one that it hangs at. What
# it weighs comes from its handle, so that the tree is about as deep as its logarithm. Nobody but `returned.requeue` needs it, to begin
# near an old place: one that has become deep all the same is given up.
TREE_LOWER = ENTRY_TAG  # these two have no other use in the ready list of a queue that is not NOT_PLAIN
TREE_HIGHER = ENTRY_CONSUMER
TREE_WEIGHT = 4500
TREE_WEIGHT_MASK = 0xFFFF
TREE_DEEP = 200  # steps

CREDIT_UNLIMITED = 0x3FFFFFFF

# CONSUMER_MODE: what CONSUMER_CREDIT counts.
WINDOW = 0  # deliveries until as many are unsettled as its prefetch says
COUNTED = 1  # deliveries that its peer has asked for, settled or not

# The state table: three integers a pool (first free record, next record never used, records left), then single numbers.
POOL_BLOCKS = 0
POOL_MESSAGES = 3
POOL_ENTRIES = 6
STATE_BLOCK_SIZE = 9
STATE_CURSOR_BLOCK = 10  # where `hot.extract` stopped
STATE_CURSOR_OFFSET = 11
STATE_PUBLISHED = 12  # counters, 30 bits, folded into Broker.counters by each tick
STATE_DELIVERED = 13
STATE_SETTLED = 14
STATE_SETTLED_LIST = 15  # entries whose settlement has to be logged, linked by ENTRY_NEXT; NONE: none
STATE_ACTIVE_HEAD = 16  # queues that may have something to deliver, linked by QUEUE_NEXT_ACTIVE; NONE: none
STATE_ACTIVE_TAIL = 17
STATE_SECONDS = 18  # since 2020-01-01
STATE_COUNTED_HEAD = 19  # channels with publishes to confirm, linked by CHANNEL_NEXT_COUNTED; NONE: none
STATE_AT = 20  # the parameters of `ingest`, see amqp_0_9/hot_in.py
STATE_END = 21
STATE_SIZE = 22
STATE_FRAME_MAX = 23  # this one and the next are the family's own, too
STATE_NUMBERS = 24
STATE_USER = 25
STATE_CONTENT_MAX = 26  # limits that it keeps
STATE_PROPERTIES_MAX = 27
STATE_ROUTE_EPOCH = 28  # slots of the route cache with another one are empty
STATE_ROUTE_SLOTS = 29  # a power of two
STATE_ROUTE_LAST = 30  # the slot that was used last
STATE_ROUTE_OCTETS = 31  # used of the cache's octets, and of its targets
STATE_ROUTE_TARGETS = 32
STATE_LOG_ROOM = 33  # octets that the log has room for: STATE_LOGGED_OCTETS, and what `ingest` takes next, go into that
STATE_LOGGED_HEAD = 34  # entries with messages that it has taken and that are to be logged, linked by ENTRY_CONSUMER, in order, those of a
# message in a row; NONE: none
STATE_LOGGED_TAIL = 35
STATE_LOGGED_OCTETS = 36  # of their records, as they stand in a group
STATE_LOGGED_COUNT = 37
STATE_NOW = 38  # milliseconds, as Broker.now
STATE_EXPIRED = 39  # counters as those above
STATE_DROPPED_HEAD = 40
STATE_REJECTED = 41
STATE_REDELIVERED = 42
STATE_LOGGED_PLACES = 43  # in how many queues those messages are that are to be logged
STATE_TAGS = 44  # where the index of tags begins in the table of channels
STATE_TAG_MASK = 45  # its slots less 1; 0: there is none, lists are short
STATE_UPTIME = 46  # seconds that the broker has run
STATE_DUE = 47  # the earliest deadline of an entry that may be left, milliseconds as ENTRY_DEADLINE; 0: none is known
STATE_LEFT = 48  # what a connection's turn may do yet: a frame, a message's place in a queue and a delivery that is settled count one each
STATE_KIND = 49  # MESSAGE_KIND and MESSAGE_LIFETIME of the properties that `ingest` has checked last
STATE_LIFETIME = 50
STATE_ALTERNATE = 51  # a counter as those above
STATE_WAY = 52  # the slot of the route cache that its caller gives `ingest` for the next publish; NONE: it finds the route itself
STATE_KEEP = 53  # publishes that transactions may still keep
STATE_KEPT_HEAD = (
    54  # messages that `ingest` has taken for a transaction, linked by MESSAGE_SEGMENT (plus 1; 0: none behind it); NONE: none
)
STATE_KEPT_TAIL = 55
STATE_KEPT_CHANNEL = 56  # whose transaction it is
STATE_REPLACED = 57  # counters as those above
STATE_GOT = 58
STATE_GOT_NO_ACK = 59
STATE_WIDTH = 60

# A slot of the route cache (broker/route_cache.py): where messages of one user to one exchange with one key go.
ROUTE_EPOCH = 0
ROUTE_USER = 1
ROUTE_SIZE = 2
ROUTE_OCTETS = 3  # where its octets begin
ROUTE_TARGETS = 4  # where the handles of its queues begin
ROUTE_COUNT = 5
ROUTE_ALTERNATES = 6  # alternate exchanges on the way
ROUTE_WIDTH = 7
ROUTE_PROBES = 8  # slots that are looked at for one route

# How deliveries are settled.
ACCEPTED = 0
REFUSED = 1
RETURNED = 2

# What `ingest` answers.
INCOMPLETE = -1
ASK = -2
ASK_ROUTE = -3
TURN_OVER = -4

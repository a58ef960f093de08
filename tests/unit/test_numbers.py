"""The numbers that the core has from others, shares with others or promises to others, each a second time: a change of one is a decision.

What a specification, a disk or a cable says is no choice of ours; what bounds the work of a turn or the memory of a peer is one, and stands
in core/SPEC.md or beside its line. Names that begin with _ are read from the source: MicroPython folds them away.
"""

from leveret.core.memory import layout

# What AMQP's specifications, the files of the log and of staging, packs of messages, and the serial link's page say.
GIVEN = (
    ("access/passwords", "SALT_SIZE=16 KEY_SIZE=32 ROUNDS_MAX=16777216 _SLICE=32 _RABBIT_SALT_SIZE=4 _BLOCK=64"),
    ("amqp_0_10/branches", "OK=0 RBROLLBACK=1 RBTIMEOUT=2 HEURHAZ=3 HEURCOM=4 HEURRB=5 HEURMIX=6 RDONLY=7"),
    ("amqp_0_10/client/client", "FRAME_MAX=65535 LOGIN_REFUSED=320"),
    ("amqp_0_10/commands", "OCTETS=1"),
    ("amqp_0_10/conditions", "TEXT_MAX=255"),
    ("amqp_0_10/convert", "LATIN_MAX=255"),
    (
        "amqp_0_10/frame",
        "HEAD=12 FIRST_SEGMENT=8 LAST_SEGMENT=4 FIRST_FRAME=2 LAST_FRAME=1 WHOLE=15 CONTROL=0 COMMAND=1 HEADER=2 BODY=3 SIZE_LEAST=4096",
    ),
    ("amqp_0_10/hot_in", "_FORMAT=3 _HEAD=12 _PRIORITY_MAX=9"),
    ("amqp_0_10/hot_row", "EXPLICIT=0 NOT_ACQUIRED=1"),
    ("amqp_0_10/hot_transfers", "_FORMAT=3 _HEAD=12"),
    ("amqp_0_10/properties", "PERSISTENT=2"),
    ("amqp_0_10/protocol", "FRAME_MAX=65535"),
    ("amqp_0_10/session", "KNOWN_MAX=1073741824 REJECTED_UNROUTABLE=1"),
    ("amqp_0_10/subscribing", "NOT_ACQUIRED=1 PREFETCH=1"),
    ("amqp_0_10/subscription", "ENDLESS=4294967295 CREDIT=0 WINDOW=1"),
    ("amqp_0_10/transfer", "REJECTED_IMMEDIATE=2"),
    ("amqp_0_10/types", "LONG_MAX=9223372036854775807"),
    ("amqp_0_9/client/channel", "_ACK=3932240 _NACK=3932280 _BASIC_HEADER=3932160"),
    ("amqp_0_9/client/client", "_BODY=3 _METHOD=1 _HEADER=2 _HEARTBEAT=8 _END=206"),
    ("amqp_0_9/client/message", "DELIVER=3932220 GET_OK=3932231 RETURN=3932210"),
    ("amqp_0_9/client/output", "_END=206 _CLASS_BASIC=3932160 _HEAD_OVERHEAD=28"),
    ("amqp_0_9/content", "USER_ID=16 EXPIRATION=1 REPLY_TO=2"),
    ("amqp_0_9/deliver", "CONFIRM_SIZE=21 HEADER_HEAD=20"),
    ("amqp_0_9/deliver_stream", "HEADS_MAX=77 PACKED_HEADS=180"),
    ("amqp_0_9/described", "HEADERS=32 DELIVERY_MODE=16 PRIORITY=8 EXPIRATION=1"),
    ("amqp_0_9/drafts/contents", "_HEAD_SIZE=12"),
    ("amqp_0_9/drafts/fields", "NAME_MAX=128"),
    ("amqp_0_9/drafts/frames", "METHOD=1 HEADER=2 BODY=3 TRACE=7 HEARTBEAT=8 META=9"),
    ("amqp_0_9/drafts/session_0_9a5", "BASIC=6 JMS=7 AUTOMATIC=1 STANDARD=2 DISTRIBUTED=3"),
    ("amqp_0_9/drafts/session_0_9r1", "BASIC=6 JMS=7"),
    ("amqp_0_9/exact", "_ARRAY=65 _TABLE=70"),
    ("amqp_0_9/field_table", "_BOOL=116 _DECIMAL=68 _TIMESTAMP=84 _LONGSTR=83 _BYTES=120 _ARRAY=65 _TABLE=70 _VOID=86"),
    ("amqp_0_9/frame", "METHOD=1 HEADER=2 BODY=3 HEARTBEAT=8 END=206 OVERHEAD=8 FRAME_MIN_SIZE=4096"),
    ("amqp_0_9/hot_out", "_HEAD=7 _OVERHEAD=8 _END=206 _HEADER_HEAD=20"),
    ("amqp_0_9/method", "CODE=0 NAME=1 FIELDS=2 SENDER=3 CONTENT=4 REPLIES=5 CLIENT=1 SERVER=2"),
    (
        "amqp_0_9/older",
        "TEXT_MAX=65535 OK=0 NO_EXCHANGE=1 NO_QUEUE=2 NO_BINDINGS=3 QUEUE_NOT_BOUND=4 KEY_NOT_BOUND=5 QUEUE_AND_KEY_NOT_BOUND=6",
    ),
    ("amqp_0_9/packed", "VERSION=3 HEAD_SIZE=16 COLUMNS_SIZE=20"),
    ("amqp_0_9/sending", "NO_ROUTE_CODE=312"),
    ("amqp_0_9/session", "_METHOD=1 _HEADER=2 _BODY=3 _HEARTBEAT=8 _END=206 _OVERHEAD=8"),
    ("amqp_1_0/arguments", "_NUMBER_MAX=9223372036854775807"),
    ("amqp_1_0/client/link", "MASK=4294967295"),
    (
        "amqp_1_0/client/message",
        "_HEADER=112 _ANNOTATIONS=114 _PROPERTIES=115 _APPLICATION=116 _DATA=117 _SEQUENCE=118 _VALUE=119 _FOOTER=120",
    ),
    ("amqp_1_0/client/recovering", "SECOND=1 UNSETTLED_STATE=2"),
    ("amqp_1_0/client/session", "CHANNEL=0"),
    ("amqp_1_0/client/transactions", "_VALUE=119"),
    ("amqp_1_0/convert", "MAP_8=193 MAP_32=209 TTL_MAX=4294967295 MILLISECONDS_MAX=9223372036854775807"),
    ("amqp_1_0/family", "HEADER_SIZE=8"),
    (
        "amqp_1_0/filters",
        "SELECTOR=77567109365764 NO_LOCAL=77567109365763 DIRECT_BINDING=77567109365760 TOPIC_BINDING=77567109365761 "
        "PROPERTIES=371 APPLICATION_PROPERTIES=372 SQL=288",
    ),
    ("amqp_1_0/frame", "HEADER_SIZE=8 AMQP=0 SASL=1 SIZE_MIN_MAX=512"),
    ("amqp_1_0/hot_in", "_FORMAT=2 _TAG_MAX=32"),
    ("amqp_1_0/hot_row", "_TRANSFER=20 _DISPOSITION=21 _FLOW=19"),
    ("amqp_1_0/hot_transfers", "_FORMAT=2"),
    ("amqp_1_0/hubs", "_APPLICATION=116 _VALUE=119"),
    ("amqp_1_0/link", "FIRST=0 SECOND=1 UNSETTLED=0 SETTLED=1"),
    ("amqp_1_0/management", "_PROPERTIES=115 _APPLICATION=116 _VALUE=119"),
    ("amqp_1_0/properties", "SHORT_MAX=255 LONG_MAX=9223372036854775807"),
    ("amqp_1_0/sasl_layer", "_OK=0 _AUTH=1"),
    (
        "amqp_1_0/sections",
        "HEADER=112 DELIVERY_ANNOTATIONS=113 MESSAGE_ANNOTATIONS=114 PROPERTIES=115 APPLICATION_PROPERTIES=116 DATA=117 "
        "SEQUENCE=118 VALUE=119 FOOTER=120",
    ),
    ("amqp_1_0/sole", "CLOSE_EXISTING=1"),
    ("amqp_1_0/termini", "UNSETTLED_STATE=2"),
    ("amqp_1_0/types", "_DESCRIBED=0 _SMALL_ULONG=83"),
    ("amqp_1_0/upstream", "TTL_MAX=4294967295"),
    ("broker/policies", "PRIORITY_MAX=2147483647"),
    ("broker/publish", "_RECORD_SIZE=33 _PLACE_SIZE=12 _IN_C=196800"),
    ("log/flat_records", "_MESSAGE=1 RECORD_SIZE=33 _BIG=1073741824"),
    ("log/message_record", "HEAD_SIZE=28 PLACE_SIZE=12"),
    ("log/read_back", "HEAD_SIZE=13 PART_SIZE=5"),
    (
        "log/segments",
        "HEAD=0 MESSAGE=1 SETTLED=2 DEFINED=3 GROUP=4 KEPT=5 TRANSIENT=6 VERSION=3 OLDEST=3 HEAD_LEAST=14 _OVERHEAD=13 _MASK=1073741823",
    ),
    ("memory/serial", "MASK=4294967295 _HALF=2147483648"),
    ("message/formats", "BASIC=0 AMQP_1_0=2 AMQP_0_10=3 STORED=4 NUMBER=255"),
    ("message/route", "PART_MAX=255"),
    (
        "patterns/expression_parser",
        "LINE_FEED=1024 DIGITS=287948901175001088 UPPER=2475880041677272402379145216 LOWER=10633823807823001954701781295154855936 "
        "WORD=10633823849912963253799171395480977408 GRAPHIC=170141183460469231731687303707294171136",
    ),
    ("queue/quorum", "DELIVERY_LIMIT=20 UNLIMITED=-1"),
    ("queue/rules", "NUMBER_MAX=9223372036854775807 LIFETIME_MS_MAX=315360000000"),
    (
        "serial_link/frame",
        "_FLAG=126 _ESCAPE=125 _CONTROL=32 _INTERRUPT=3 _FILL=0 _TURN=2 _ENDED=3 HEADER_SIZE=3 OVERHEAD=8 DATA=1 STATUS=2 PING=3 "
        "END=4 TURN=5 HELLO=6 WELCOME=7 CALL=8 NAME_MASK=15 FROM_ACTIVE=16 CHECK_32=32",
    ),
    ("serial_link/link", "VERSION=2 NONCE_MAX=1073741823 SPEED_MAX=4000000 _GREETING_SIZE=19"),
    (
        "serial_link/streams",
        "_DATA=0 _OPEN=64 _CREDIT=128 _CLOSE=192 _KIND_MASK=192 _NUMBER_MASK=63 _HEADER_SIZE=3 STREAM_COUNT_MAX=64 ROOM_MAX=32768",
    ),
    ("serial_link/stuffing", "_FLAG=126 _ESCAPE=125 _TURNED=32"),
    ("serial_link/window", "SEQUENCE_MASK=255"),
    ("staging/content", "PART_SIZE=8192 OVERHEAD=13 OPENED=1 PART=2 WHOLE=3 REFERRED=4 VERSION=1"),
    ("staging/stored", "SIZE_SIZE=8"),
    ("staging/rate", "HIGH=5"),
    ("wire/family", "SNIFF_MAX=16"),
)

# What bounds a turn, a peer's share, a text or a wait; and room that is kept for answers.
BOUNDS = (
    ("access/login", "RESPONSE_MAX=1024"),
    ("access/login_failures", "NAME_MAX=32"),
    ("amqp_0_10/branches", "BRANCH_SIZE=4 BROUGHT_MAX=65536"),
    ("amqp_0_10/browsing", "STEPS_MAX=16384 LOOKS_MAX=64 BROWSED_MAX=1024"),
    ("amqp_0_10/hot_row", "LEAST=26 WHOLE_LEAST=16 WAY_MAX=512 LOW_CREDIT=1048576"),
    ("amqp_0_10/hot_transfers", "_FRONT=34"),
    ("amqp_0_10/outgoing", "_LEAST=256"),
    ("amqp_0_10/properties", "MILLISECONDS_LEAST=100000000000"),
    ("amqp_0_10/protocol", "FRAMES_A_TURN=64"),
    ("amqp_0_10/ranges", "RUNS_MAX=1024"),
    ("amqp_0_10/replay", "KEPT_MAX=1024 KEPT_SIZE_MAX=1048576 ROOM=1024 TURN=64"),
    ("amqp_0_10/sending", "COMPLETED_ROOM=512"),
    ("amqp_0_10/session", "NAME_MAX=1024 WAITING_MAX=8192 REPLY_AT=65536"),
    ("amqp_0_10/sessions", "SHARE=4 PAST_MAX=1073741824 IDS_A_RECORD=65536"),
    ("amqp_0_10/subscription", "RUNS_MAX=4096"),
    ("amqp_0_10/types", "DEPTH_MAX=16 VOIDS_MAX=1024"),
    ("amqp_0_10/watch", "CLOSING_MS=3000 CALM_MS=3600000"),
    ("amqp_0_9/bridge_marks", "KEY_SIZE_MAX=255"),
    ("amqp_0_9/client/client", "_ANSWER_ROOM=32 _CLOSE_ROOM=320 _CLOSE_TEXT_MAX=120"),
    ("amqp_0_9/client/output", "_PIECE_MIN_SIZE=64"),
    ("amqp_0_9/deliver_stream", "PACK_FIRST=16384 FILTER_TURN=64 FILTER_COST=256 QUICK_LOOKS=512"),
    ("amqp_0_9/drafts/contents", "CONTENTS_MAX=64 LEVELS_MAX=8 OCTETS_MAX=16384 HEADS=64"),
    ("amqp_0_9/drafts/fields", "DEPTH_MAX=8 DECIMALS_MAX=9"),
    ("amqp_0_9/drafts/outgoing", "LEAST=256"),
    ("amqp_0_9/drafts/session", "LEAST_ROOM=512"),
    ("amqp_0_9/drafts/tickets", "TICKETS_MAX=255"),
    ("amqp_0_9/field_table", "DEPTH_MAX=8"),
    ("amqp_0_9/further", "OCTETS_MAX=512"),
    ("amqp_0_9/hot_in", "_DEPTH_MAX=8"),
    ("amqp_0_9/older", "STOPPED=-1"),
    ("amqp_0_9/older_browsing", "STEPS_MAX=16384 LOOKS_MAX=64 BROWSERS_MAX=64 STOPPED=-1"),
    ("amqp_0_9/packed", "OCTETS_DEFAULT=1048576"),
    ("amqp_0_9/session", "NUMBERS_LEAST=4 FRAMES_A_TURN=64 EFFORT=32"),
    ("amqp_0_9/watch", "INGEST_WAIT_MS=100 TOLD_AFTER_MS=200 CLOSING_MS=3000 CALM_MS=3600000"),
    ("amqp_1_0/body", "SECTIONS_MAX=1024 HEAD_MAX=320 _DEPTH_MAX=4"),
    (
        "amqp_1_0/bounds",
        "HANDLE_MAX=255 WINDOW=2048 OUTGOING_WINDOW=2147483647 FLOW_ROOM=128 ATTACH_ROOM=512 BATCH=2147563264 TAG_MAX=32 "
        "CREDIT=200 CREDIT_MAX=1024 GROW_MS=100 GROWTH_SHARE=4 CREDIT_SHARE=8 DELIVERIES_SHARE=4 LEFT_SHARE=2 TAGS_A_TARGET=32 "
        "PLACE_SIZE=1024 LARGE=1024 TURN_OCTETS=32768 TERMINI_MAX=2048 POSITION_SIZE=16 MESSAGE_MAX=512 RESPONSE_LEAST=8192 "
        "REFUSED_MAX=32",
    ),
    ("amqp_1_0/browsing", "STEPS_MAX=16384 LOOKS_MAX=64"),
    ("amqp_1_0/client/client", "_CLOSE_ROOM=512 _TEXT_MAX=200 _FRAME_MAX=1048576"),
    ("amqp_1_0/client/link", "STREAM_MIN=512"),
    ("amqp_1_0/client/session", "_WINDOW=2048 _PIECE_MIN=64 _OVERHEAD=64 HANDLE_MAX=255"),
    ("amqp_1_0/conditions", "DESCRIPTION_MAX=255"),
    ("amqp_1_0/convert", "CHANGED=1310720"),
    ("amqp_1_0/dispositions", "SETTLE_ROOM=512 RANGES_MAX=16"),
    ("amqp_1_0/filters", "FIELDS_MAX=16 TEXT_MAX=4096 FILTERS_MAX=16 ROUND_STEPS=8192 LOOK_STEPS=64 STEP_OCTETS=2 TURN_SIZE=2048"),
    ("amqp_1_0/hot_in", "_NEAR=64 _STRINGS=5181 _EXPIRY=8"),
    ("amqp_1_0/hot_row", "NULLS=5 _LEAST=16"),
    ("amqp_1_0/hot_transfers", "_ROOM=64 _BEHIND=14 _LAST=3"),
    ("amqp_1_0/hubs", "PARTITIONS_MAX=256"),
    ("amqp_1_0/link", "ATTACHES_A_TURN=32"),
    ("amqp_1_0/link_layout", "KEYS_MAX=16 LINK_WIDTH=30"),
    ("amqp_1_0/link_management", "RESPONSES_MAX=32 SMALL=1024 CREDIT=8"),
    ("amqp_1_0/management", "HELD=False"),
    ("amqp_1_0/modified", "LOOKS=4 TOLD_MAX=2048 CHANGED_MAX=8192"),
    ("amqp_1_0/nodes", "_OWN_SIZE=30"),
    ("amqp_1_0/opening", "IDLE_LEAST_MS=100"),
    ("amqp_1_0/outgoing", "_FIELDS=11 _LEAST=256"),
    ("amqp_1_0/positions", "_DIGITS_MAX=18"),
    ("amqp_1_0/properties", "DEPTH_MAX=8"),
    ("amqp_1_0/protocol", "FRAMES_A_TURN=64"),
    ("amqp_1_0/resuming", "RESUMED_MAX=4096 TAG_SIZE=12 _MARKED=1024"),
    ("amqp_1_0/sections", "_SYMBOL_MAX=64 VALUES_MAX=4096"),
    ("amqp_1_0/transactions", "WORK_MAX=16 WORK_SIZE=2"),
    ("amqp_1_0/types", "DEPTH_MAX=16 VALUES_MAX=20480 EMPTY_MAX=1024"),
    ("amqp_1_0/watch", "CLOSING_MS=3000 CALM_MS=3600000 DYNAMIC_MS=1000"),
    ("bridge/mover", "RETRY_MS=1000 RETRY_MS_MAX=30000"),
    ("bridge/requests", "MOVE_MAX=1000 STATUS_MAX=4096"),
    ("broker/ages", "JUMP_S=5 STOP_S=86400 FRAMES_MAX=16"),
    ("broker/broker", "JOBS_A_ROUND=64 TURNS=4 RULES_EVERY_MS=50 DUE_QUEUES=64 DUE_MAX_MS=1000 NOTE_EVERY_MS=1000"),
    ("broker/consumers", "AGAIN_MS=1000 LOOKED_AT_MAX=1000"),
    ("broker/further", "NAMES_MAX=16 EXCHANGES_MAX=16"),
    ("broker/growing", "ROUTE_SIZE_MAX=512"),
    ("broker/guard", "KNOWN_MAX=16 HEAD_AFTER=2 FEATURES_AFTER=6 AGAIN_MS=1000"),
    ("broker/poison", "SHARE=16 REASON_MAX=200"),
    ("broker/policies", "PATTERN_SIZE_MAX=8192 COMPARISONS_MAX=2000 APPLYING=10"),
    ("broker/pressure", "BEGINS_MS=1000 ENDS_MS=5000 SHARE=20 QUEUES_MAX=3 NAME_MAX=64"),
    ("broker/route_cache", "TARGETS_MAX=64"),
    ("broker/selecting", "TEXT_MAX=4096 ROUND_STEPS=8192 LOOK_STEPS=64 STEP_OCTETS=2"),
    ("broker/timeouts", "UNSETTLED_EVERY_MS=1000"),
    ("broker/topology", "UNKNOWN_SIZE=64 BINDINGS_A_TURN=512"),
    ("broker/transaction", "COPIES_SIZE=64 TURN=256 EFFORT=4 COPIES_EFFORT=16 FORGOTTEN_A_TURN=4096 LOG_ROOM=65536 TURN_LOOKED_AT=4096"),
    ("connection/connection", "FINISH_ATTEMPTS=3 LINGER_MS=3000"),
    ("exchange/chance", "SPAN=4294967296"),
    ("exchange/types/consistent_hash", "WEIGHT_MAX=1048576 SPAN=4294967296"),
    ("exchange/types/topic", "_STAYING=16"),
    (
        "limits",
        "PATTERN_BASE=320 SURPLUS_RECEIVE=4096 SURPLUS_SEND=2048 REPLY_ROOM=320 ROUTE_SIZE_MEAN=32 ROUTE_TARGETS_MEAN=2 INDEXED_LEAST=1024",
    ),
    ("log/beyond_memory", "READY_MIN=512 TURN_MESSAGES=256 TURN_OCTETS=131072 ROUND_TURNS=8 PIECE=65536 PURGE_CHUNKS=1024 TRIES=10"),
    ("log/chunk_index", "MESSAGES=256 SIZE=65536"),
    ("log/copy_forward", "READ_RETRY_MS=200 KIB=1024 CHUNKS_TURN=16384 LOOKS=32 SHARED_MAX=4096"),
    ("log/figures", "_RATE_MS=60000 _YEAR_S=31557600"),
    ("log/flat_records", "RUN_WIDTH=6 RUNS=128 _NEAR=8 _TARGETS_MAX=64 _RUN_MESSAGES=256 _RUN_SIZE=65536"),
    (
        "log/journal",
        "IDLE_MS=1000 RUNS=32 RANGES_MAX=256 RETRY_MS=100 TURNS_MAX=4 SEGMENTS_MAX=64 SEGMENTS_FEW=8 COPIES_TURN=512 "
        "SNAPSHOT_TURN=65536 BIG=1073741824",
    ),
    ("log/read_back", "KNOWN_MAX=64"),
    ("log/segments", "GATHERED_MAX=1048576"),
    ("log/settled_positions", "PAGE=4096 _SHIFT=12"),
    ("management/answer_pages", "NEXT_SIZE=128 NAMED_MAX=128"),
    ("management/rabbitmq_definitions", "DEPTH_MAX=8"),
    ("management/requests", "SENTENCE_MAX=256 SENTENCE_ROOM=1540 IMPORT_EFFORT=2000"),
    (
        "memory/cpython_sizes",
        "INTERPRETER=31457280 CONNECTION=20000 ARGUMENT=5 SESSION=6500 LINK=2400 PLACE=1024 DELIVERY=400 DELIVERIES_SHARE=4 "
        "TAG=220 TAGS_A_TARGET=32 STAGED=262144 TEXT=80",
    ),
    ("memory/hot", "_SPREAD=2533 _NEAR=2"),
    ("memory/invariants", "SPREAD=2533"),
    ("memory/returned", "_STEPS=16"),
    ("message/annotations", "SIZE_MAX=65535 DEPTH_MAX=16"),
    ("message/reading", "HEADS=128"),
    (
        "patterns/expression_parser",
        "WORK_MAX=512 OCTETS_MAX=16 ALL=115792089237316195423570985008687907853269984665640564039457584007913129639935 "
        "SPACE=4294983168 SETS=0 NULLABLE=1 FIRST=2 LAST=3 PAIRS=4",
    ),
    ("patterns/selector", "DEPTH_MAX=32"),
    ("patterns/sql", "TEXT_MAX=4096 TOKENS_MAX=200"),
    ("patterns/wildcard", "SEARCHED_MAX=512 TEXT_MAX=1024"),
    ("queue/dead_letters", "LETTERS_MAX=64"),
    ("queue/features/dead_letter", "COUNT_MAX=9223372036854775807 NESTED_MAX=4 ANNOTATIONS_MAX=65000"),
    ("queue/features/expiry", "FAR_MS=268435456 EXPIRED_MAX=1000"),
    ("queue/features/groups", "SCAN_MAX=200 UNSETTLED_MAX=8192 FORGOTTEN_MAX=256 SHIFT=30"),
    ("queue/features/length", "TRIMMED_MAX=1000"),
    ("queue/identities", "DIGEST_SIZE=15"),
    ("queue/letters", "KNOWN_MAX=512 OCTETS_MAX=768 NEVER=40108032"),
    ("queue/queue", "STEPS_A_TURN=50000"),
    ("queue/refusals", "LOOKS=4"),
    (
        "queue/turns",
        "_TURNS=64 _SERVED_TURNS=8 _CAREFUL_TURN=32 _CAREFUL_DELIVERIES=256 _GROUPED_DELIVERIES=48 _STREAM_DELIVERIES=400 "
        "_SHARE=32 _MADE_DELIVERIES=64 _ASKED_EACH_TIME=64 _ASKED=8192",
    ),
    ("queue/wishes", "LOOKS_MAX=64 STEPS_MAX=4096 WALK_STEPS=16 MARK_STEPS=64 SCAN_MAX=256 REFUSED_MAX=1024"),
    ("recovery/lost_offsets", "PLACE_LEAST=45 _AHEAD_MAX=268435456"),
    ("recovery/record_check", "POSITION_MAX=2305843009213693952 IDENTITY_MAX=2147483647 DEPTH_MAX=12"),
    ("recovery/recovery", "FAULTS_TOLD=8"),
    ("serial_link/bus", "_SILENT_MAX=2"),
    ("serial_link/flow", "_GAP_FRAMES=8"),
    ("serial_link/link", "_ASKS_MAX=2 _ASKS_FAST_MAX=4 _TRIALS_MAX=2"),
    ("serial_link/streams", "_PIECE_MIN=16 _PATIENCE_MS=5000"),
    ("serial_link/window", "GRAIN_COUNT_MAX=128 GRAIN_SIZE_MIN=16 _ORDER_MAX=268435456"),
    ("shim", "_TIME_MASK=1073741823"),
    ("staging/content", "PARTS_READ=8"),
    ("staging/contents", "GATHER=131072 GRACE_S=60 LOOK_S=5 NAME_MAX=255"),
    ("stream/publishers", "PUBLISHERS_MAX=1024"),
    ("stream/reading_on", "FILTER_TURN=64 FILTER_COST=256"),
    ("stream/stream", "AGE_S_MAX=1073741824 DROPS_TURN=1000"),
    ("stream/subscription", "FILTER_PART=4 KEPT_MAX=256"),
    ("stream/windows", "TURN_MESSAGES=512 TURN_OCTETS=262144 FREE_PART=8 WINDOW_PART=4"),
)

# What an object is as long as nobody says otherwise.
AT_FIRST = (
    ("access/sasl", "Mechanism.guessable=True Anonymous.guessable=False"),
    ("access/sasl_external", "External.guessable=False"),
    ("amqp_0_10/away", "Away.closed=False Away.closing=False Away.reading=True Away.frame_max_out=0"),
    ("amqp_0_10/branches", "Branch.closing=False"),
    ("amqp_0_10/file_delivery", "FileConsumer.lasts=False"),
    ("amqp_0_10/protocol", "Protocol.has_intake=False"),
    ("amqp_0_10/stream_class", "StreamConsumer.lasts=False"),
    ("amqp_0_10/subscription", "Subscription.lasts=True"),
    (
        "amqp_0_9/channel",
        "Channel.left=-1 Channel.purged=0 Channel.prefetch=0 Channel.tags_made=0 Channel.watched_tag=-1 Channel.watched_since=0",
    ),
    (
        "amqp_0_9/drafts/frames",
        "Frames9a5.least=1024 Frames9a5.overhead=17 Frames9a5.number_size=1 Frames9a5.drops_empty=True Frames9r1.least=4096 "
        "Frames9r1.overhead=9 Frames9r1.number_size=2 Frames9r1.drops_empty=False",
    ),
    ("amqp_0_9/drafts/session", "Draft.has_intake=False Draft.tells_capabilities=False Draft.tags=0 Draft.wire_code=0"),
    ("amqp_0_9/drafts/session_0_9a5", "Session09a5.frame_max=0"),
    ("amqp_0_9/older", "Older.tells_capabilities=False"),
    ("amqp_0_9/sending", "Sending.promised=0 Sending.starved=False"),
    (
        "amqp_0_9/session",
        "Session.has_intake=True Session.most_taken=1 Session.tells_capabilities=True Session.heartbeat_ms=0 Session.body_size=0 "
        "Session.held_since=0 Session.told_blocked=False Session.channel_max=0 Session.unfinished=0 Session.patient=True "
        "Session.effort=0",
    ),
    ("amqp_1_0/browsing", "BrowsingLink.role=True"),
    ("amqp_1_0/client/link", "Link.is_sender=False Sender.is_sender=True"),
    ("amqp_1_0/hot_row", "Link.flow_size=0 Link.accepted=0 Row.reads_flows=False Row.notes_routes=False"),
    (
        "amqp_1_0/link",
        "Link.role=False Link.kept_octets=-1 Link.credit_max=0 Link.is_refused=False Link.settled=False "
        "Link.is_plain_receiver=False Link.writes_all=False",
    ),
    ("amqp_1_0/link_in", "Delivery.format=0 IncomingLink.role=False IncomingLink.credit_wanted=0"),
    ("amqp_1_0/link_management", "Responses.role=True Responses.settled=True Responses.writes_all=True"),
    ("amqp_1_0/link_out", "OutgoingLink.role=True OutgoingLink.is_plain_receiver=True"),
    ("broker/local", "Noted.is_alone=True"),
    (
        "amqp_1_0/nodes",
        "Reading.exclusive=False Reading.ends=False Reading.own=False Reading.bound=False Reading.private=False Reading.local=False",
    ),
    (
        "broker/consumers",
        "Consumer.cursor_offset=0 Consumer.overtaken=False Consumer.strict=False Consumer.unfiltered=False "
        "Consumer.pack_records=0 Consumer.pack_octets=0 Consumer.pack_now=0",
    ),
    ("broker/engine", "Plain.turn=32 Plain.deliveries=512 Plain.effort=1000 Plain.ingests=True Plain.limits=0"),
    ("broker/incoming", "Incoming.mandatory=False Incoming.body_left=0"),
    ("connection/connection", "Connection.ending_since=0 Connection.queues_declared=0 Connection.bindings_made=0"),
    (
        "exchange/base",
        "Exchange.is_exchange=True Exchange.looks_at_key=True Exchange.delays=False Exchange.by_key=False Exchange.draws=False "
        "Exchange.changes=0 Exchange.exchange_count=0 Exchange.plain=True",
    ),
    ("exchange/chance", "Chance.looks_at_key=False Chance.draws=True"),
    ("exchange/types/consistent_hash", "Type.looks_at_key=False"),
    ("exchange/types/delayed", "Type.delays=True"),
    ("exchange/types/direct", "Type.by_key=True"),
    ("exchange/types/fanout", "Type.by_key=True Type.looks_at_key=False"),
    ("exchange/types/headers", "Type.looks_at_key=False"),
    ("exchange/types/matcher", "Type.looks_at_key=False"),
    ("exchange/types/selector", "Type.looks_at_key=False"),
    ("exchange/types/topic", "Type.by_key=True"),
    ("log/copy_forward", "Copies.left=0 Copies.at=0 Copies.promised=0 Copies.again=False"),
    ("log/segments", "Segment.changed=0 Reader.CHUNK=65536"),
    ("management/messages", "Holder.closing=False Holder.watched_tag=-1 Holder.watched_since=0"),
    ("queue/features/expiry", "Rule.behind=False"),
    ("queue/features/feature", "Feature.bit=0"),
    (
        "queue/queue",
        "Queue.is_stream=False Queue.is_exchange=False Queue.is_own=False Queue.id_in_log=0 Queue.prioritised=False "
        "Queue.single_active=False Queue.needs_care=False",
    ),
    ("queue/wishes", "Rule.is_cut=False"),
    ("stream/stream", "Stream.is_stream=True Stream.drops_max=64"),
)

# Which of several is meant: columns of a record, states, kinds of an answer. Any numbers would do that are apart.
KINDS = (
    ("access/permissions", "CONFIGURE WRITE READ"),
    ("access/sasl", "CONTINUE ACCEPTED REFUSED WORKING"),
    ("amqp_0_9/deliver", "NO_ROOM WRITTEN NOT_YET"),
    ("amqp_1_0/client/link", "_UNSETTLED _SETTLED _MIXED"),
    ("amqp_1_0/client/link", "_FIRST _SECOND"),
    (
        "amqp_1_0/link_layout",
        "LINK_CHANNEL LINK_RECORD LINK_HANDLE LINK_ROUTE LINK_SETTLES LINK_IS_NEXT LINK_NEXT LINK_NEXT_HIGH LINK_CREDIT LINK_TAKEN "
        "LINK_IS_SETTLED LINK_NUMBER LINK_NUMBER_HIGH LINK_SLOT LINK_KEYS",
    ),
    ("bridge/mover", "LIVE REPLAY"),
    ("broker/ages", "_FIRST _LAST _SHIFT"),
    ("broker/getting", "READY EMPTY LATER"),
    ("broker/promises", "FIRST LAST OUTCOME NEEDS"),
    ("log/chunk_index", "NEXT PREVIOUS SEGMENT OFFSET SKIP END POSITION SPAN COUNT OCTETS COME_BACK NEWEST"),
    ("management/requests", "NOTHING TELLS CHANGES"),
    ("outcomes", "TAKEN UNROUTABLE NO_ROOM REFUSED SWALLOWED NOT_YET"),
    ("outcomes", "ACCEPTED REJECTED MODIFIED RELEASED"),
    ("patterns/expression_program", "BEGIN END BEHIND BORDER INSIDE LINE_BEGIN LINE_END"),
    ("patterns/topic", "_CHILDREN _ENDS _STAYS"),
    ("queue/rules", "TEXT FLAG NAME AGE"),
    ("serial_link/stuffing", "_FILL _ROOM _TURN _ENDED"),
    ("serial_link/window", "_FREE _QUEUED _SENT _ARRIVED"),
    ("stream/windows", "NOT_NOW LOST"),
    ("wire/family", "NO MORE MATCH"),
    ("wire/holding", "NO_ROOM WRITTEN NOT_YET"),
)

# Marks that one number holds together: each has a bit of its own.
MARKS = (
    ("serial_link/flow", "_DUE_STATUS _DUE_PING _DUE_ACKNOWLEDGE"),
    ("serial_link/link", "_DUE_END _DUE_HELLO _DUE_WELCOME _DUE_CALL"),
    ("serial_link/streams", "_SAY_OPEN _SAY_CLOSE _IN_USE _CLOSED_HERE _CLOSED_THERE"),
)


def source_of(module):
    """The lines of a module's source, or [] where there is none (a board)."""
    if not module.__file__.endswith(".py"):
        return []
    with open(module.__file__) as source:
        return source.read().split("\n")


def value_of(module, lines, name):
    """A number of a module or of a class in it; None: there is no source that says it."""
    if not name.startswith("_"):
        for part in name.split("."):
            module = getattr(module, part)
        return module
    begins = name + " = const("
    texts = [line for line in lines if line.startswith(begins)]
    if not texts:
        return getattr(module, name, None)
    return eval(texts[0][len(begins) : texts[0].split("#")[0].rindex(")")])


def values_of(path, names):
    module = __import__("leveret.core." + path.replace("/", "."), None, None, ["*"])
    lines = source_of(module)
    return [value_of(module, lines, name) for name in names]


def wrong(rows):
    """The numbers that are others than their row says."""
    faults = []
    for path, text in rows:
        pairs = [each.split("=") for each in text.split(" ")]
        for (name, wanted), value in zip(pairs, values_of(path, [name for name, _ in pairs])):
            if value is not None and repr(value) != wanted:
                faults.append("%s.%s is %r, and not %s" % (path, name, value, wanted))
    return faults


def test_numbers_that_others_give_are_theirs():
    assert wrong(GIVEN) == []


def test_a_bound_is_what_was_decided():
    assert wrong(BOUNDS) == []


def test_an_object_begins_as_its_class_says():
    assert wrong(AT_FIRST) == []


def test_kinds_are_apart():
    for path, text in KINDS:
        values = [value for value in values_of(path, text.split(" ")) if value is not None]
        assert len(set(values)) == len(values), (path, text, values)


def test_each_mark_has_a_bit_of_its_own():
    for path, text in MARKS:
        values = [value for value in values_of(path, text.split(" ")) if value is not None]
        assert sum(values) == (1 << len(values)) - 1 and all(value & value - 1 == 0 for value in values), (path, values)


RECORDS = ("MESSAGE", "ENTRY", "QUEUE", "CHANNEL", "CONSUMER", "ROUTE")
NO_COLUMNS = (
    "ENTRY_RELEASED",
    "ENTRY_RETURNS",
    "ENTRY_LEVEL",
    "ROUTE_PROBES",
)  # parts of a column; slots that are looked at


def test_the_columns_of_a_record_are_its_width_and_none_is_two():
    for record in RECORDS:
        names = [name for name in dir(layout) if name.startswith(record + "_") and name not in NO_COLUMNS]
        columns = sorted([getattr(layout, name) for name in names if not name.endswith("_WIDTH")])
        assert columns == list(range(getattr(layout, record + "_WIDTH"))), (record, columns)


def test_pools_have_three_numbers_each_and_the_state_table_one_for_each_name_behind_them():
    pools = [layout.POOL_BLOCKS, layout.POOL_MESSAGES, layout.POOL_ENTRIES]
    assert pools == [0, 3, 6]
    numbers = sorted([getattr(layout, name) for name in dir(layout) if name.startswith("STATE_") and name != "STATE_WIDTH"])
    assert numbers == list(range(9, layout.STATE_WIDTH)), numbers


def test_numbers_of_the_flat_state_that_are_no_columns():
    assert [layout.NONE, layout.GOT, layout.RETURNING] == [-1, -2, -3]  # none of them is a handle
    assert layout.MASK == layout.CREDIT_UNLIMITED == (1 << 30) - 1
    assert layout.EPOCH == 1577836800  # 2020-01-01T00:00:00Z
    kinds = ("DURABLE", "ANNOTATED", "HAS_PRIORITY", "FOR_US", "CHANGED", "REPLY_TO", "ACQUIRED", "GRAFTED", "FAILED")
    bits = [getattr(layout, "KIND_" + name) for name in kinds]
    assert bits == [1 << bit for bit in (16, 18, 19, 20, 21, 22, 23, 24, 25)]  # as in the log's records
    assert (layout.KIND_FORMAT, layout.KIND_PRIORITY) == (0xFF, 8)
    assert layout.KIND_REWORKED == 0xFF | 1 << 18 | 1 << 22
    limits_kept = ("EXPIRES", "DROPS", "REFUSES", "DEAD_LETTERS", "RETURNS", "LEVELS", "REMEMBERS")
    assert [getattr(layout, "LIMIT_" + name) for name in limits_kept] == [1 << bit for bit in range(7)]
    assert layout.LIMIT_HIGHEST == layout.ENTRY_RELEASED == layout.ROUTE_PROBES == 8
    assert (layout.ENTRY_RETURNS, layout.ENTRY_LEVEL) == (0xFFFF, 16)
    assert [layout.NOT_PLAIN, layout.PLAIN, layout.PLAIN_LOGGED, layout.PLAIN_STREAM] == [0, 1, 2, 4]
    assert [layout.WINDOW, layout.COUNTED] == [0, 1] and [layout.ACCEPTED, layout.REFUSED, layout.RETURNED] == [0, 1, 2]
    assert [layout.INCOMPLETE, layout.ASK, layout.ASK_ROUTE, layout.TURN_OVER] == [-1, -2, -3, -4]
    assert layout.LEVEL_ABOVE == layout.TREE_LOWER == layout.ENTRY_TAG and layout.TREE_HIGHER == layout.ENTRY_CONSUMER
    assert [layout.TREE_WEIGHT, layout.TREE_WEIGHT_MASK, layout.TREE_DEEP, layout.CHUNK_WIDTH] == [4500, 0xFFFF, 200, 12]


# Tables that tools/generate_spec.py has written from the specifications, which are not beside every clone: their sum, so that a
# number that a hand has changed is seen without them. After a new generation the failed test tells the new one.
GENERATED = (
    ("amqp_0_9/spec_0_8", 71030379),
    ("amqp_0_9/spec_0_9", 227318375),
    ("amqp_0_9/spec_0_9_1", 988042182),
    ("amqp_0_9/drafts/spec_0_9a5", 848368563),
    ("amqp_0_9/drafts/spec_0_9r1", 546480103),
    ("amqp_0_10/spec_0_10", 796872417),
    ("amqp_1_0/spec_1_0", 1608868),
)


def sum_of(value, begins):
    """A sum of 30 bits over what a table holds, in its order; of a dict's pairs in any order."""
    if isinstance(value, dict):
        return sum([sum_of(pair, begins) for pair in value.items()]) & 0x3FFFFFFF
    if isinstance(value, (tuple, list)):
        for each in value:
            begins = sum_of(each, begins * 31 + 7 & 0x3FFFFFFF)
        return begins
    if isinstance(value, str):
        value = value.encode("utf-8")
    if isinstance(value, bytes):
        for octet in value:
            begins = begins * 31 + octet & 0x3FFFFFFF
        return begins
    return begins * 31 + (-1 if value is None else int(value)) & 0x3FFFFFFF


def test_tables_of_the_specifications_are_as_they_were_written():
    for path, wanted in GENERATED:
        module = __import__("leveret.core." + path.replace("/", "."), None, None, ["*"])
        names = sorted([name for name in dir(module) if name == name.upper() and not name.startswith("_")])
        total = sum([sum_of(getattr(module, name), 1) for name in names]) & 0x3FFFFFFF
        assert total == wanted, (path, total, names)

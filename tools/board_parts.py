"""What a board may carry, by the names that `[carries]` of its board.toml has, and the files in which each begins (tools/boards.py finds
the others by the imports at their heads).

Any subset of DIALECTS goes on a board: files of a version that is not among them are not there, and a peer of that version is answered as a
stranger. Of the drafts of 2005 a listener serves the one that `version` in [board] names.
"""

# The versions of AMQP: the file that registers it, then what its first peer has imported.
DIALECTS = {
    "amqp_0_9": ("core/amqp_0_9/family.py",),
    "amqp_0_8": ("core/amqp_0_9/older_family.py", "core/amqp_0_9/older.py", "core/limits_further.py"),
    "amqp_0_9a5": (
        "core/amqp_0_9/drafts/family.py",
        "core/amqp_0_9/drafts/family_0_9a5.py",
        "core/amqp_0_9/drafts/session_0_9a5.py",
        "core/limits_further.py",
    ),
    "amqp_0_9r1": (
        "core/amqp_0_9/drafts/family.py",
        "core/amqp_0_9/drafts/family_0_9r1.py",
        "core/amqp_0_9/drafts/session_0_9r1.py",
        "core/limits_further.py",
    ),
    "amqp_0_10": ("core/amqp_0_10/family.py", "core/amqp_0_10/protocol.py", "core/limits_further.py", "core/queue/wishes.py"),
    "amqp_1_0": ("core/amqp_1_0/family.py", "core/amqp_1_0/protocol.py", "core/limits_further.py", "core/queue/wishes.py"),
}
TITLES = {
    "amqp_0_9": "0-9-1",
    "amqp_0_8": "0-8 and 0-9",
    "amqp_0_9a5": "0.9a5",
    "amqp_0_9r1": "0.9r1",
    "amqp_0_10": "0-10",
    "amqp_1_0": "1.0",
}
DRAFTS = {"0.9a5": "amqp_0_9a5", "0.9r1": "amqp_0_9r1"}  # what `version` may say: the dialect that it needs
# Choices of dialects, for [sizes]: each alone, and some together.
CHOICES: dict = {name: (name,) for name in DIALECTS}
CHOICES["both"] = ("amqp_0_9", "amqp_1_0")
CHOICES["all"] = tuple(DIALECTS)

# What [carries] parts may name, and where the imports begin.
PARTS = {
    "log": ("core/recovery/opening.py", "core/log/publish.py", "core/broker/poison.py", "ports/store_littlefs.py"),
    "management": ("core/management/requests.py", "core/broker/pressure.py"),
    "policies": ("core/broker/policies.py",),
    "patterns": ("core/patterns/expression_parser.py",),
    "streams": ("core/stream/stream.py", "core/stream/subscription.py"),
    "transactions": ("core/broker/transaction.py",),
    "filters": ("core/broker/selecting.py", "core/queue/wishes.py"),
    "files": ("core/staging/contents.py",),
    "fragments": (),
    "link": ("core/serial_link/link.py",),
    "tcp": ("ports/sockets.py",),
    "patience": ("core/connection/patience.py",),
    "bridge": (
        "ports/bridge/bridge.py",
        "ports/bridge/bridges.py",
        "ports/bridge/dial.py",
        "ports/bridge/settings.py",
        "core/bridge/requests.py",
        "core/management/requests.py",
        "core/stream/stream.py",
        "core/stream/subscription.py",
        "core/amqp_0_9/deliver_stream.py",
    ),
    "bridge_1_0": (
        "ports/url_1_0.py",
        "ports/bridge/target_1_0.py",
        "ports/bridge/source_1_0.py",
        "core/access/client_scram.py",
        "core/amqp_0_9/exact.py",
    ),
    "client": ("core/amqp_0_9/client/client.py", "ports/client.py"),
    "client_1_0": ("core/amqp_1_0/client/client.py", "ports/client_1_0.py"),
}
# What else is carried with a file: it is imported when it is first needed.
BEHIND = {
    "core/broker/transaction.py": ("core/broker/kept.py",),
    "core/queue/features/dead_letter.py": ("core/queue/dead_letters.py",),
    "core/queue/features/priority.py": ("core/memory/levels.py",),
    "core/queue/features/delayed_retry.py": ("core/queue/waiting.py",),
    "core/exchange/types/delayed.py": ("core/queue/waiting.py",),
    "core/recovery/opening.py": ("core/broker/ages.py",),
    "core/stream/stream.py": ("core/broker/ages.py", "core/queue/stream_arguments.py"),
}
# And with a part, or with another family, beside a family.
BESIDE = {
    ("amqp_0_9", "streams"): ("core/amqp_0_9/deliver_stream.py",),
    ("amqp_1_0", "streams"): ("core/amqp_1_0/deliver_stream.py",),
    ("amqp_1_0", "transactions"): ("core/amqp_1_0/transactions.py", "core/amqp_1_0/batches.py"),
    ("amqp_0_8", "filters"): ("core/amqp_0_9/older_browsing.py",),
    ("amqp_0_8", "streams"): ("core/amqp_0_9/deliver_stream.py",),
    ("amqp_0_9a5", "streams"): ("core/amqp_0_9/deliver_stream.py",),
    ("amqp_0_9r1", "streams"): ("core/amqp_0_9/deliver_stream.py",),
    ("amqp_0_10", "files"): ("core/amqp_0_10/file_class.py", "core/amqp_0_10/stream_class.py"),
    ("amqp_0_10", "fragments"): ("core/amqp_0_10/fragments.py",),
    ("amqp_0_10", "streams"): ("core/amqp_0_10/deliver_stream.py",),
}
# Where versions of several folders meet: what tells the others of a folder's messages, and delivers theirs.
MEETING = {
    "amqp_0_9": ("core/amqp_0_9/exact.py", "core/amqp_0_9/foreign.py"),
    "amqp_0_10": ("core/amqp_0_10/exact.py", "core/amqp_0_10/foreign.py"),
    "amqp_1_0": ("core/amqp_1_0/exact.py",),
}
OF_AMQP_0_9 = ("bridge", "client")  # parts that go with that family alone: they speak it to the broker that they stand beside

"""What this broker can be asked for by name: tests/fuzz feeds it extremes with these words, tests/attack attacks it with them."""

EXCHANGE_TYPES = (
    "direct",
    "fanout",
    "topic",
    "headers",
    "x-consistent-hash",
    "x-local-random",
    "x-property",
    "x-matcher",
    "x-selector",
    "x-lossy",
    "x-delayed-message",
)
DEFINING_REQUESTS = ("overview", "counters", "definitions", "import", "set-policy", "remove-policy", "remove-user")
BRIDGE_REQUESTS = ("bridge", "report-bridge", "bridges")

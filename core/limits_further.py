"""Limits of AMQP 1.0 and 0-10 and of staged contents, which few boards carry: further rows of limits.py, which has them where this file
is."""

# name, gateway default, board default, least, most
ROWS = (
    ("link_count_max", 2048, 16, 1, 1 << 20),
    ("target_count_max", 256, 2, 0, 65535),
    ("staged_count_max", 16, 1, 0, 65535),
    ("staged_memory_max", 4 << 20, 4096, 0, 1 << 40),
    ("staged_size_max", 1 << 32, 0, 0, 1 << 50),
    ("staged_share_max", 50, 100, 1, 100),
    ("staged_age_s", 86400, 86400, 1, 1 << 30),
    ("session_timeout_s", 3600, 60, 0, 1 << 30),
)

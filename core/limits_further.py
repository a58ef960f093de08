"""Limits of AMQP 1.0, which few boards carry: further rows of limits.py, which has them where this file is."""

# name, gateway default, board default, least, most
ROWS = (
    ("link_count_max", 2048, 16, 1, 1 << 20),
    ("target_count_max", 256, 2, 0, 65535),
)

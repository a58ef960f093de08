"""What `ingest` (hot_in.py) is told of a session, and what it has found: one flat table, as core/memory/layout.py has records."""

IN_RECORD = 0  # of the session, in the table of channels
IN_LEAD = 1  # octets of the command's frame, which is the same for all transfers of a run
IN_EXCHANGE = 2  # octets of the exchange as a short string, which the way begins with
IN_MOST = 3  # transfers that may be taken
IN_TAKEN = 4  # transfers that were taken
IN_ROUTE = 5  # octets of the way: the exchange, and the routing key of the transfer that was read last
IN_KEYS = 6  # where the keys of application-headers stand, KEYS_MAX of them
KEYS_MAX = 16
IN_WIDTH = IN_KEYS + KEYS_MAX

"""What `ingest` (hot_in.py) is told of a session and a link, and what it has found: one flat table, as core/memory/layout.py has records.

Numbers of 32 bits stand in two fields, as delivery tags do: their low 30 bits, and behind them the high two.
"""

LINK_CHANNEL = 0  # of the frames
LINK_RECORD = 1  # of the session, in the table of channels
LINK_HANDLE = 2  # NONE: no transfer is taken
LINK_ROUTE = 3  # octets of the route of its messages
LINK_SETTLES = 4  # snd-settle-mode (section 2.8.2): 0 unsettled, 1 settled, 2 mixed
LINK_IS_NEXT = 5  # 1: the delivery-id that comes next is known
LINK_NEXT = 6
LINK_NEXT_HIGH = 7
LINK_CREDIT = 8  # transfers that may be taken
LINK_TAKEN = 9  # transfers that were taken, in a row of delivery-ids up to the one before LINK_NEXT
LINK_IS_SETTLED = 10  # 1: their sender has settled them
LINK_NUMBER = 11  # the number that read_number has read last
LINK_NUMBER_HIGH = 12
LINK_SLOT = 13  # of the route cache, for its route; NONE: not looked up in this call
LINK_KEYS = 14  # where the keys of application-properties stand, KEYS_MAX of them
KEYS_MAX = 16
LINK_WIDTH = LINK_KEYS + KEYS_MAX

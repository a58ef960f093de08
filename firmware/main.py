"""Runs after boot.py: the broker, until Ctrl-C or until it cannot go on; then the REPL has the board."""

try:
    from leveret.firmware import gateway
except ImportError as error:
    print("leveret: cannot start: the flash is not complete (%s); run `leveret flash` again" % error)
else:
    gateway.main()

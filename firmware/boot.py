"""Runs first at every start and soft reset: the watchdog, if the settings ask for one, is fed by a timer until main.py takes it over.

So the REPL keeps the board even where a watchdog of an earlier run cannot be stopped any more.
"""

try:
    from leveret.firmware import watchdog

    watchdog.rest()
except Exception as error:  # after any error main.py is to run
    print("leveret: boot.py:", error)

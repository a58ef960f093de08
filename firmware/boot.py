"""Runs first at every start and soft reset: it says which folder the code is imported from where there are two (slots.py), and the
watchdog, if the settings ask for one, is fed by a timer until main.py takes it over.

So the REPL keeps the board even where a watchdog of an earlier run cannot be stopped any more.
"""


def slot():
    """The words of the file that slots.py describes, none where it is not there."""
    for name in ("slot", "slot.new"):
        try:
            with open(name) as file:
                line = file.read()
        except OSError:
            continue
        if line.endswith("\n"):
            return line.split()
    return ()


try:
    words = slot()
    if words:
        import sys

        if len(words) > 1:
            words = __import__("slots").begin(words)  # it lies beside this file, in no package
        sys.path.insert(0, words[0])
except Exception as error:  # the code in lib is to run then
    print("leveret: boot.py:", error)
try:
    from leveret.firmware import watchdog

    watchdog.rest()
except Exception as error:  # after any error main.py is to run
    print("leveret: boot.py:", error)

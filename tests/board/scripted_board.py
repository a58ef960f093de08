"""A serial port behind which something answers as a board's raw REPL does, with facts of our choosing; for boards that nobody has here.

    with ScriptedBoard(facts) as board: board.device

`facts` is what flash_board.FACTS prints, or None: nothing ever answers. Every other program prints nothing. `programs` are all that were
run.
It has no raw paste, as MicroPython before 1.14: a request for it is answered with the prompt.
"""

import os
import threading
import tty

RAW = b"raw REPL; CTRL-B to exit\r\n>"


class ScriptedBoard:
    def __init__(self, facts):
        self.facts = facts
        self.programs = []
        self.restarts = 0
        self._near, self._far = os.openpty()
        tty.setraw(self._far)
        self.device = os.ttyname(self._far)

    def __enter__(self):
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind, error, trace):
        os.close(self._far)
        self._thread.join()
        os.close(self._near)

    def _octets(self):
        while True:
            try:
                octets = os.read(self._near, 4096)
            except OSError:
                return
            if not octets:
                return
            if self.facts is not None:
                yield from octets

    def _run(self):
        raw, program = False, bytearray()
        for octet in self._octets():
            if octet == 1:
                raw, program = True, bytearray()
                self._say(b"\r\n" + RAW)
            elif octet == 2:
                raw = False
                self._say(b"\r\n>>> ")
            elif octet == 4 and raw:
                self._execute(bytes(program))
                program = bytearray()
            elif octet == 4:
                self.restarts += 1
                self._say(b"\r\nMPY: soft reboot\r\n")
            elif octet == 3:
                program = bytearray()
                self._say(b"\r\n>>> ")
            elif raw:
                program.append(octet)

    def _execute(self, program):
        if not program.strip():
            self._say(b"OK\r\nMPY: soft reboot\r\n" + RAW)
            return
        self.programs.append(program.decode())
        said = repr(self.facts).encode() + b"\r\n" if b"sys.implementation" in program else b""
        self._say(b"OK" + said + b"\x04\x04>")

    def _say(self, octets):
        os.write(self._near, octets)

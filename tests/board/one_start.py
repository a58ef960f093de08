"""Starts of a board under CPython: boot.py, then main.py, in a process of its own each; the power goes at the n-th line of the files there.

As a program it reads lines of tabs, FOLDER N fat|littlefs, starts that board in a fork of its own (a new interpreter for each of some
thousand starts takes minutes), and answers with the exit status of the start and the number of lines that ran.
"""

import os
import subprocess
import sys

STARTERS = ("boot.py", "slots.py", "main.py")
CUT = 9  # exit status of a process whose power has gone
FAT, LITTLEFS = "fat", "littlefs"  # the one does not rename over a file that is there


class Starter:
    """That program."""

    def __init__(self):
        command = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, folder, cut_at, file_system=LITTLEFS):
        """One start in `folder`: (exit status, lines that ran). `cut_at` 0: the power stays."""
        self.process.stdin.write(f"{folder}\t{cut_at}\t{file_system}\n")
        self.process.stdin.flush()
        status, lines = map(int, self.process.stdout.readline().split())
        assert status in (0, CUT), (folder, cut_at, status)
        return status, lines

    def close(self):
        """End the program."""
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def serve():
    """Start what each line of stdin says."""
    for line in sys.stdin:
        folder, cut_at, file_system = line.rstrip("\n").split("\t")
        process = os.fork()
        if process == 0:
            one_start(folder, int(cut_at), file_system)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with open(folder + ".lines") as file:
            print(status, file.read(), flush=True)


def one_start(folder, cut_at, file_system):
    """Run the starters, one after the other, and leave how many lines of theirs ran beside the folder; the process ends."""
    lines, status = 0, 1

    def trace(frame, event, argument):
        """Count the lines of the files that start a board."""
        nonlocal lines
        place, name = os.path.split(frame.f_code.co_filename)
        if place not in (folder, "") or name not in STARTERS:
            return None
        if event == "line":
            lines += 1
            if lines == cut_at:
                end(CUT)  # nothing is flushed
        return trace

    def end(status):
        """End the process."""
        sys.settrace(None)
        with open(folder + ".lines", "w") as file:
            file.write(str(lines))
        os._exit(status)

    sys.stdout = sys.stderr
    os.chdir(folder)
    if file_system == FAT:
        os.rename = _rename_as_fat
    sys.path[:0] = [folder]
    sys.path.append(os.path.join(folder, "lib"))
    sys.print_exception = lambda error: print("raised", repr(error))
    sys.settrace(trace)
    try:
        for starter in ("boot.py", "main.py"):
            with open(starter) as file:
                text = file.read()
            exec(compile(text, os.path.join(folder, starter), "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit:
        status = 0  # a soft reset
    finally:
        end(status)


def _rename_as_fat(old, new, rename=os.rename):
    """os.rename where no file is replaced."""
    if os.path.exists(new):
        raise OSError(17, "EEXIST")
    rename(old, new)


if __name__ == "__main__":
    serve()

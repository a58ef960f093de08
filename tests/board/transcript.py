"""Prints what a user sees: a flash, a second one, a check, and pika over the serial line of the board (real MicroPython; board.py).

python tests/board/transcript.py        the WebAssembly build, or a `micropython` binary where LEVERET_MICROPYTHON names one
"""

import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "micropython")]

import toolchain  # noqa: E402 - in tests/micropython
from board import UnixBoard, WasmBoard  # noqa: E402 - beside this file

CONFIG = """[board]
name = "greenhouse"
[board.store]
kind = "folder"
[board.sensor]
every_ms = 200
"""
PIKA = """import pika
connection = pika.BlockingConnection(pika.URLParameters("{url}"))
channel = connection.channel()
channel.confirm_delivery()
channel.queue_declare("readings", durable=True)
channel.basic_publish("", "readings", b"21.5", pika.BasicProperties(delivery_mode=2), mandatory=True)
print("confirmed; comes back:", channel.basic_get("readings", auto_ack=True)[2])
print("the board's own sensor:", channel.basic_get("sensors", auto_ack=True)[2])
connection.close()
"""
COMMAND = (sys.executable, "-m", "leveret.tools.cli")


def show(words, shown=None):
    """Run and print a command as a user would see it."""
    print("$ leveret " + " ".join(words) if shown is None else "$ python\n" + shown, flush=True)
    began = time.monotonic()
    subprocess.run([*COMMAND, *words] if shown is None else [sys.executable, "-c", shown], check=False)
    print("# %.1f s\n" % (time.monotonic() - began), flush=True)


def tell(board, config):
    print("$ cat gateway.toml\n" + CONFIG)
    arguments = ["flash", "--board", "unix", "--port", board.device]
    for more in (["--dry-run", "--config", config], ["--config", config], [], ["--check"]):
        show(arguments + more)
    print("$ leveret attach %s &" % board.device)
    attached = subprocess.Popen([*COMMAND, "attach", board.device, "--listen", "amqp://127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    line = attached.stdout.readline()
    print(line, flush=True)
    try:
        show((), PIKA.format(url=line.split()[1]))
    finally:
        attached.terminate()
        attached.wait()


def main():
    with tempfile.TemporaryDirectory() as directory:
        folder, config = os.path.join(directory, "board"), os.path.join(directory, "gateway.toml")
        os.mkdir(folder)
        with open(config, "w") as file:
            file.write(CONFIG)
        binary = os.environ.get("LEVERET_MICROPYTHON")
        with UnixBoard(binary, folder) if binary else WasmBoard(*toolchain.webassembly(), folder) as board:
            tell(board, config)


if __name__ == "__main__":
    main()

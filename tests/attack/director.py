"""The director of an attack in one form: starts broker, honest clients, housekeeper and lanes, hears their events, and ends them all."""

import collections
import multiprocessing
import queue as queues
import shutil
import tempfile
import time

import honest
import housekeeper
import lanes
import schedule
import tell
from findings import Findings
from keeper import Keeper
from watch import Watch

STALL_CPU_S = 1.0  # of the broker's work while a question waited
STALL_WALL_S = 20.0


class Run:
    """One form, for some minutes. `events`: (name, what its handler gets) from the other processes."""

    def __init__(self, options):
        self.options = options
        self.seconds = options.minutes * 60
        self.table = schedule.attackers()
        self.names = options.only or list(self.table)
        self.directory = tempfile.mkdtemp(prefix=f"leveret-attack-{options.form}-")
        self.findings = Findings(options)
        self.reports = {name: collections.Counter() for name in self.names}
        self.longest = collections.Counter()  # attacker -> longest wait in ms of a question while it was at work
        self.stall_cpu = 0.0
        self.report = None
        self.cleaned = 0
        self.watch = Watch(options.form, self.directory, options.seed, options.canary, self.findings.found)
        self.context = multiprocessing.get_context("fork")
        self.state = honest.State(self.context, self.watch.port)
        self.events = self.context.Queue()
        self.keeper = Keeper(self.watch, self.state, self.findings.found)
        self.handlers = {
            "begin": self.on_begin,
            "end": self.on_end,
            "finding": self.on_finding,
            "stall": self.on_stall,
            "cleaned": self.on_cleaned,
            "report": self.on_report,
        }

    # Events

    def take_events(self):
        """Handle every event that the other processes have sent."""
        while True:
            try:
                event = self.events.get_nowait()
            except queues.Empty:
                return
            self.handlers[event[0]](*event[1:])

    def on_begin(self, at, name, seed):
        self.findings.begin(name, seed, at)

    def on_end(self, at, name, seed, counts, findings):
        self.findings.end(name, seed, at)
        self.reports[name]["times"] += 1
        self.reports[name].update(counts)
        for text in findings:
            self.findings.found(f"{name} {seed}: {text}", at)

    def on_finding(self, at, text):
        self.findings.found(text, at)

    def on_stall(self, began, wall, cpu):
        for name in self.findings.at_work(began, began + wall):
            self.longest[name] = max(self.longest[name], wall * 1000)
        self.stall_cpu = max(self.stall_cpu, cpu)
        if cpu > STALL_CPU_S or wall > STALL_WALL_S:
            where = self.keeper.where if began == self.keeper.looked_at else ""
            self.findings.found(f"a question waited {wall:.1f} s, in which the broker worked for {cpu:.1f} s {where}", began + wall, began)

    def on_cleaned(self, at, count):
        if isinstance(count, int):
            self.cleaned += 1
        elif "Traceback" in count:
            self.findings.found(count, at)

    def on_report(self, report):
        self.report = report

    # The whole

    def run(self):
        """The number of findings."""
        children = []
        try:
            self.begin()
            plan = schedule.schedule(self.names, self.options.seed, self.seconds)
            began = self.findings.began = time.monotonic()
            targets = [(honest.main, (self.state, self.events)), (housekeeper.housekeeper, (self.state, self.events))]
            targets += [(lanes.lane, (self.state, self.events, began, rows)) for rows in plan]
            children += [self.context.Process(target=target, args=given) for target, given in targets]
            for child in children:
                child.start()
            self.attend(children)
            self.finish(children)
        finally:
            for child in children:
                if child.is_alive():
                    child.kill()
                child.join(60)
            if self.watch.alive():
                self.watch.process.kill()
                self.watch.process.wait()
        for line in tell.lines(self):
            self.findings.say(line)
        if not self.findings.rows:
            shutil.rmtree(self.directory, ignore_errors=True)
        return len(self.findings.rows)

    def begin(self):
        """The first start."""
        self.keeper.start_broker()
        self.findings.say(
            f"seed {self.options.seed}, {self.options.minutes:g} minutes, sync {self.watch.sync}, port {self.watch.port}, "
            f"sum {self.watch.sum_mib} MiB, "
            f"{self.watch.base_kib >> 10} MiB at the start, {self.directory}"
        )

    def attend(self, children):
        """While the lanes are at work."""
        todo = [] if self.options.no_deeds else schedule.deeds(self.options.seed, self.seconds)
        looked = 0.0
        while any(child.is_alive() for child in children[2:]):  # the lanes
            self.take_events()
            self.keeper.look_after_broker()
            now = time.monotonic()
            if now - looked > 0.5:
                looked = now
                self.watch.look()
            if todo and now - self.findings.began > todo[0][0]:
                self.keeper.deed(todo.pop(0)[1])
            if now - self.findings.began > self.seconds + 60:
                self.findings.found("an attacker does not end")
                return
            time.sleep(0.05)

    def finish(self, children):
        """Let the honest clients have what is theirs, end the broker, and look at what it leaves."""
        self.take_events()
        left = housekeeper.clean(self.state)
        for _ in range(3):
            left = left if isinstance(left, int) else housekeeper.clean(self.state)
        if not isinstance(left, int):
            self.findings.found(f"what attackers left could not be removed: {left}")
        self.state.stop.value = 1
        limit = time.monotonic() + honest.DRAIN_S + honest.PATIENCE_S
        while self.report is None and time.monotonic() < limit and children[0].is_alive():
            self.take_events()
            self.keeper.look_after_broker()
            time.sleep(0.05)
        self.take_events()
        self.state.stop.value = 2
        if self.report is None:
            self.findings.found("the honest clients gave no report")
        for child in children:
            child.join(60)
        self.watch.look()
        housekeeper.look_for_leaks(self.watch.port, self.findings.found)
        status = self.watch.end()
        if status != 0:
            self.findings.found(f"the end on SIGTERM has status {status}: {self.watch.said()[-2500:]}")
        self.watch.read_errors()
        self.watch.check_log()
        if not self.watch.start():
            self.findings.found(f"the broker does not start again at the end: {self.watch.said()[-2500:]}")
        elif self.watch.end() != 0:
            self.findings.found("the second end on SIGTERM does not have status 0")

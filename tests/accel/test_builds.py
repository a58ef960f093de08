"""The C form built by other compilers, for other processors and with sanitizers: clean of warnings, and the same as the plain form."""

import os
import shutil
import struct
import subprocess
import sys

import pytest
import test_framing
import test_same

from leveret.c_accel import sources
from leveret.core.amqp_0_9 import hot_row, session
from leveret.core.broker import engine
from leveret.core.log import flat_records
from leveret.core.memory import layout
from leveret.core.serial_link import stuffing

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HOT = sources.hot_files()
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror")
SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
CALLS_MAX = 250
INGEST, PUMP, APPEND, PUT_BODY, WRITE_TAKEN, GATHER_SETTLED, CHECK_16, UNSTUFF, STUFF, LIVE_IN = range(10)


def tool(*names):
    """The path of the first of these programs that is there; the test is skipped, naming the component, when none is."""
    for name in names:
        if shutil.which(name):
            return shutil.which(name)
    pytest.skip("%s is not there" % names[0])


def sized(octets):
    return struct.pack("<I", len(octets)) + bytes(octets)


class Recording(engine.Plain):
    """The plain form; each call is written down as selftest.c reads it."""

    calls = None

    def _tables(self):
        return b"".join([sized(memoryview(getattr(self.tables, name)).cast("B")) for name in test_same.TABLES])

    def _record(self, function, numbers, first, second, action):
        if len(self.calls) >= CALLS_MAX:
            return action()
        before = self._tables() + struct.pack("<I8i", function, *numbers, *(0,) * (8 - len(numbers))) + sized(first) + sized(second)
        answer = action()
        self.calls.append(before + struct.pack("<i", answer or 0) + self._tables() + sized(first) + sized(second))
        return answer

    def append(self, message, source, start, size):
        return self._record(APPEND, (message, start, size), source, b"", lambda: engine.Plain.append(self, message, source, start, size))

    def write_pushed(self, target, at, segment, runs):
        numbers = (at, segment, len(runs) // flat_records.RUN_WIDTH)
        return self._record(
            WRITE_TAKEN, numbers, runs.cast("B"), target, lambda: engine.Plain.write_pushed(self, target, at, segment, runs)
        )

    def gather_settled(self, runs, most):
        if self.tables.state[layout.STATE_SETTLED_LIST] == layout.NONE and len(self.calls) % 10:  # of calls for nothing one of ten
            return engine.Plain.gather_settled(self, runs, most)
        return self._record(GATHER_SETTLED, (most,), b"", runs.cast("B"), lambda: engine.Plain.gather_settled(self, runs, most))

    def live_in(self, entry, end, segment, live, most):
        if len(self.calls) % 10:  # one of ten calls
            return engine.Plain.live_in(self, entry, end, segment, live, most)
        return self._record(
            LIVE_IN,
            (entry, end, segment, most),
            b"",
            live.cast("B"),
            lambda: engine.Plain.live_in(self, entry, end, segment, live, most),
        )


class RecordingRow(hot_row.Row):
    """The same for the row of 0-9-1."""

    def _record(self, *given):
        engine_ = self.tables.engine
        return engine_._record(*given) if isinstance(engine_, Recording) else given[-1]()

    def ingest(self, numbers, source):
        return self._record(INGEST, (), numbers.cast("B"), source, lambda: hot_row.Row.ingest(self, numbers, source))

    def pump(self, *given):
        consumer, limit, prefix, prefix_size, frame_size_max, target, at, end = given
        return self._record(
            PUMP, (consumer, limit, prefix_size, frame_size_max, at, end), prefix, target, lambda: hot_row.Row.pump(self, *given)
        )

    def put_body(self, left, frame_size_max, channel_number, target, at, end):
        return self._record(
            PUT_BODY,
            (left, frame_size_max, channel_number, at, end),
            b"",
            target,
            lambda: hot_row.Row.put_body(self, left, frame_size_max, channel_number, target, at, end),
        )


class RecordingFraming(stuffing.Plain):
    """The plain form of what is done to the octets of a serial line; each call is written down as selftest.c reads it."""

    calls = None

    @classmethod
    def _record(cls, function, numbers, first, second, reader, action):
        tables = [b""] * len(test_same.TABLES)

        def state():
            tables[test_same.TABLES.index("state")] = bytes(reader)
            return b"".join(map(sized, tables))

        before = state() + struct.pack("<I8i", function, *numbers, *(0,) * (8 - len(numbers))) + sized(first) + sized(second)
        answer = action()
        cls.calls.append(before + struct.pack("<i", answer) + state() + sized(first) + sized(second))
        return answer

    @classmethod
    def check_16(cls, octets, size, value):
        return cls._record(CHECK_16, (size, value), octets, b"", b"", lambda: stuffing.check_16(octets, size, value))

    @classmethod
    def unstuff(cls, source, at, end, octets, numbers):
        return cls._record(UNSTUFF, (at, end), source, octets, numbers, lambda: stuffing.unstuff(source, at, end, octets, numbers))

    @classmethod
    def stuff(cls, source, start, size, target, at, *escaped):
        source = source[start : start + size]
        return cls._record(STUFF, (size, at, *escaped), source, target, b"", lambda: stuffing.stuff(source, 0, size, target, at, *escaped))


def framing_calls():
    """Calls for frames on damaged lines."""
    RecordingFraming.calls = []
    for seed in range(4):
        test_framing.side_by_side((RecordingFraming, stuffing.Plain), seed, 2 + seed // 2 * 2)
    return RecordingFraming.calls


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A file of calls that the plain form has made in a few random interleavings."""
    calls = []
    Recording.calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_same, "FORMS", (engine.Plain, Recording))
        patch.setattr(session, "Row", RecordingRow)
        for seed in range(1000, 1006):
            Recording.calls = []
            test_same.interleaving(seed, 25, 0.01, **({"durable": True} if seed % 2 else {}))
            calls += Recording.calls
    calls += framing_calls()
    assert {struct.unpack_from("<I", call, tables_size(call))[0] for call in calls} >= {
        INGEST,
        PUMP,
        APPEND,
        WRITE_TAKEN,
        GATHER_SETTLED,
        LIVE_IN,
        CHECK_16,
        UNSTUFF,
        STUFF,
    }
    path = tmp_path_factory.mktemp("calls") / "calls"
    path.write_bytes(struct.pack("<I", len(calls)) + b"".join(calls))
    return path, len(calls)


def tables_size(call):
    """Octets of the tables at the begin of a recorded call."""
    at = 0
    for _ in test_same.TABLES:
        at += 4 + struct.unpack_from("<I", call, at)[0]
    return at


def agree(vectors, tmp_path, compiler, options=(), runner=()):
    """Build the self-test, run it on the recorded calls."""
    path, count = vectors
    program = tmp_path / "selftest"
    done = subprocess.run(
        [compiler, *STRICT, *options, os.path.join(HERE, "selftest.c"), *HOT, "-o", str(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*runner, str(program), str(path)], capture_output=True, text=True, timeout=6000)
    assert (done.returncode, done.stdout) == (0, "%d calls agree\n" % count), done.stderr


@pytest.mark.parametrize(
    "names",
    (
        ("gcc",),
        ("clang",),
        ("arm-linux-gnueabihf-gcc", "arm-linux-gnueabihf-gcc-12"),
        ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-gcc-12"),
    ),
)
def test_what_leveret_perf_has_in_c_builds_clean(tmp_path, names):
    source = os.path.join(ROOT, "c_accel", "perf.c")
    done = subprocess.run([tool(*names), *STRICT, "-O2", "-c", source, "-o", str(tmp_path / "perf.o")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("compiler", ("gcc", "clang"))
def test_compilers(vectors, tmp_path, compiler):
    agree(vectors, tmp_path, tool(compiler), ("-O2", "-Wconversion", "-Wno-sign-conversion"))


@pytest.mark.parametrize("triple,emulator", (("arm-linux-gnueabihf", "qemu-arm"), ("aarch64-linux-gnu", "qemu-aarch64")))
def test_processors(vectors, tmp_path, triple, emulator):
    agree(vectors, tmp_path, tool(triple + "-gcc", triple + "-gcc-12"), ("-O2", "-static"), (tool(emulator, emulator + "-static"),))


def test_sanitizers(vectors, tmp_path):
    agree(vectors, tmp_path, tool("gcc"), SANITIZE)


@pytest.mark.parametrize("target", ("ingest", "ingest_0_10", "framing"))
def test_the_fuzzers_inputs_with_sanitizers(tmp_path, target):
    """Those kept in the repository; tests/fuzz/ingest/run.py looks for new ones."""
    folder = os.path.join(ROOT, "tests", "fuzz", target)
    driver = tmp_path / "driver.c"
    driver.write_text("""#include <stdint.h>
#include <stdio.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int main(int count, char **names)
{
    static uint8_t octets[1 << 20];
    for (int at = 1; at < count; at++) {
        FILE *file = fopen(names[at], "rb");
        if (!file)
            return 2;
        size_t size = fread(octets, 1, sizeof octets, file);
        fclose(file);
        LLVMFuzzerTestOneInput(octets, size);
    }
    printf("%d inputs\\n", count - 1);
    return 0;
}
""")
    program = tmp_path / "inputs"
    subprocess.run(
        [tool("gcc"), *STRICT, *SANITIZE, str(driver), os.path.join(folder, "fuzz_%s.c" % target), *HOT, "-o", str(program)], check=True
    )
    inputs = [os.path.join(folder, "corpus", name) for name in sorted(os.listdir(os.path.join(folder, "corpus")))]
    done = subprocess.run([str(program), *inputs], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "%d inputs\n" % len(inputs)), done.stderr


def test_the_unit_tests_in_c():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "in_c", os.path.join(ROOT, "tests", "unit")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=6000,
        env=dict(os.environ, PYTHONPATH=HERE),
    )
    assert done.returncode == 0, done.stdout[-3000:]

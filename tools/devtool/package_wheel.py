"""`dev.py package wheel | sdist`: one wheel for each processor, for every CPython since 3.11, and the sources.

Laws: the C modules use Python's stable ABI (abi3: cffi's own code does), so Python's headers of this machine serve for all processors,
with the sizes of the target's C compiler. A wheel is made only when both C modules are in it, for the processor that it names; the
platform's tag has the glibc that the modules ask for. armv6l (Pi Zero, Pi 1): Debian's start files and libgcc are ARMv7's, so none of
them is linked; what is wanted of libgcc comes from the machine's libgcc_s.so.1.
"""

import os
import re
import shutil
import sys
import sysconfig
import tempfile
import zipfile

from .package_source import PackagingFailed, commit_time, copy_to, run

PYTHON = "cp311"
GLIBC_LEAST = 17  # manylinux_2_17, which every system has that has Python 3.11
MODULES = ("leveret/c_accel/_hot.abi3.so", "leveret/c_accel/_perf.abi3.so")
CALL = "import sys; sys.path.insert(0, 'tools'); import build_backend; print(getattr(build_backend, sys.argv[1])(sys.argv[2]))"
SIZES = ("INT", "LONG", "LONG_LONG", "SHORT", "SIZE_T", "WCHAR_T", "FLOAT", "DOUBLE")


class Target:
    """`compilers`: names of programs, `packages`: Debian's; `options` of the compiler; `links`: of the linker; `machine`: what readelf
    calls the processor, `attribute`: what it must say of it; `platform`: the tag, {glibc} is the minor version that is asked for."""

    def __init__(self, compilers, packages, machine, platform, options="", links="", attribute=""):
        self.compilers = compilers
        self.packages = packages
        self.machine = machine
        self.platform = platform
        self.options = options
        self.links = links
        self.attribute = attribute


ARM_32 = (("arm-linux-gnueabihf-gcc-12", "arm-linux-gnueabihf-gcc"), "gcc-12-arm-linux-gnueabihf libc6-dev-armhf-cross", "ARM")
TARGETS = {
    "x86_64": Target(("x86_64-linux-gnu-gcc-12", "x86_64-linux-gnu-gcc", "gcc"), "gcc", "X86-64", "manylinux_2_{glibc}_x86_64"),
    "aarch64": Target(
        ("aarch64-linux-gnu-gcc-12", "aarch64-linux-gnu-gcc"),
        "gcc-12-aarch64-linux-gnu libc6-dev-arm64-cross",
        "AArch64",
        "manylinux_2_{glibc}_aarch64",
    ),
    "armv7l": Target(*ARM_32, "manylinux_2_{glibc}_armv7l", "-march=armv7-a+fp -mfloat-abi=hard", attribute="Tag_CPU_arch: v7"),
    "armv6l": Target(
        *ARM_32, "linux_armv6l", "-marm -march=armv6+fp -mfloat-abi=hard", "-nostdlib -lc -lgcc_s", attribute="Tag_CPU_arch: v6"
    ),
}


def compiler_of(target):
    """The path of the target's C compiler. Raises PackagingFailed."""
    for name in target.compilers:
        if shutil.which(name):
            return shutil.which(name)
    raise PackagingFailed(f"{target.compilers[0]} is missing; install it with: sudo apt-get install -y {target.packages}")


def write_headers(folder):
    """Python's headers of this machine, with the sizes of whichever compiler reads them."""
    headers = sysconfig.get_path("include")
    for name in os.listdir(headers):
        if name != "pyconfig.h":
            os.symlink(os.path.join(headers, name), os.path.join(folder, name))
    # Debian's pyconfig.h is a page of #if for all processors; the one for this machine lies in a folder of its name.
    of_debian = os.path.join("/usr/include", sysconfig.get_config_var("MULTIARCH") or "", os.path.basename(headers), "pyconfig.h")
    real = of_debian if sys.base_prefix == "/usr" and os.path.exists(of_debian) else sysconfig.get_config_h_filename()
    lines = [f'#include "{real}"', "#undef SIZEOF_VOID_P", "#define SIZEOF_VOID_P __SIZEOF_POINTER__"]
    lines += [line for name in SIZES for line in (f"#undef SIZEOF_{name}", f"#define SIZEOF_{name} __SIZEOF_{name}__")]
    for name in ("UINTPTR_T", "PTHREAD_T", "TIME_T"):
        lines += [f"#undef SIZEOF_{name}", f"#define SIZEOF_{name} __SIZEOF_LONG__"]
    with open(os.path.join(folder, "pyconfig.h"), "w") as file:
        file.write("\n".join(lines) + "\n")


def call_backend(hook, out, **variables):
    """The path of what a hook of tools/build_backend.py makes of a copy of the sources. Raises PackagingFailed."""
    with tempfile.TemporaryDirectory(prefix="leveret-package-") as source:
        copy_to(source)
        given = dict(os.environ, SOURCE_DATE_EPOCH=str(commit_time()), **variables)
        output = run([sys.executable, "-c", CALL, hook, out], cwd=source, env=given)
    return os.path.join(out, output.strip().splitlines()[-1])


def build_source(out):
    """The path of the sdist."""
    return call_backend("build_sdist", os.path.abspath(out))


def build(name, out):
    """The path of the wheel for a processor of TARGETS, in the folder `out`. Raises PackagingFailed."""
    target = TARGETS[name]
    compiler = compiler_of(target)
    with tempfile.TemporaryDirectory(prefix="leveret-wheel-") as folder:
        headers = os.path.join(folder, "headers")
        os.mkdir(headers)
        write_headers(headers)
        command = f"{compiler} -I{headers} {target.options} -DPy_LIMITED_API=0x030B0000"
        made = call_backend(
            "build_wheel",
            folder,
            CC=command,
            LDSHARED=f"{compiler} -shared -Wl,-s {target.options}",
            CFLAGS="-g0 -O2 -fPIC",
            LDFLAGS=target.links,
            SETUPTOOLS_EXT_SUFFIX=".abi3.so",
            _PYTHON_HOST_PLATFORM="linux-" + name,
            LEVERET_ACCEL="1",
        )
        glibc = check(made, target, folder)
        tags = ["--python-tag", PYTHON, "--abi-tag", "abi3", "--platform-tag", target.platform.format(glibc=glibc)]
        output = run([sys.executable, "-m", "wheel", "tags", "--remove", *tags, made])
        return shutil.copy(os.path.join(folder, os.path.basename(output.strip().splitlines()[-1])), out)


def check(wheel, target, folder):
    """The minor version of the glibc that a wheel's C modules ask for. Raises PackagingFailed for a wheel that must not be made."""
    newest = GLIBC_LEAST
    with zipfile.ZipFile(wheel) as archive:
        for name in MODULES:
            if name not in archive.namelist():
                raise PackagingFailed(f"{os.path.basename(wheel)}: {name} could not be built")
            output = run(["readelf", "-h", "-A", "-d", "-V", archive.extract(name, folder)])
            if not re.search(rf"Machine: +.*{target.machine}\b", output) or target.attribute not in output:
                raise PackagingFailed(f"{name} is not for {target.machine} {target.attribute}")
            newest = max([newest, *map(int, re.findall(r"Name: GLIBC_2\.(\d+)", output))])
    return newest

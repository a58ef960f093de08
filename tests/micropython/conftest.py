"""All tests here need node and the WebAssembly build: where they cannot be had, the reason is said in one sentence."""

import pytest
import toolchain


@pytest.fixture(scope="session", autouse=True)
def webassembly_build():
    """(node path, directory of the build)."""
    try:
        return toolchain.webassembly()
    except toolchain.Missing as missing:
        pytest.skip("node: %s" % missing)

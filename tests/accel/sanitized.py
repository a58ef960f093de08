"""A pytest plugin: brokers of a test run work with the C module at LEVERET_SANITIZED, a path, not with the installed one."""

import importlib.machinery
import importlib.util
import os
import sys

NAME = "leveret.c_accel._hot"

_spec = importlib.util.spec_from_file_location(
    NAME, os.environ["LEVERET_SANITIZED"], loader=importlib.machinery.ExtensionFileLoader(NAME, os.environ["LEVERET_SANITIZED"])
)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
sys.modules[NAME] = _module

from leveret import c_accel  # noqa: E402 - takes the module that is there

assert c_accel.install() == "the hot functions run in C" and c_accel.lib is _module.lib

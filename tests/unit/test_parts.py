"""Parts that a build may leave out (core/parts.py): not carried is one thing, broken is another."""

import sys

from leveret.core import parts
from leveret.core.queue import rules


class Loader:
    """`import` as it is in a build whose module fails in some way while it is loaded."""

    def __init__(self, text):
        self.text = text

    def __call__(self, name, *_):
        raise ImportError(self.text % name)


def loading(text, work):
    """What `work` answers, or the ImportError, while each import of a part ends with `text`."""
    parts.__import__ = Loader(text)  # a name of the module goes before one that is built in
    try:
        return work()
    except ImportError as error:
        return error
    finally:
        del parts.__import__


def test_a_part_that_is_there_is_the_module_and_one_that_is_not_is_none():
    assert parts.part("queue.quorum") is sys.modules["leveret.core.queue.quorum"]
    assert parts.part("queue.features.priority").Rule is rules.feature_class("priority")
    for absent in ("no_such_part", "features.no_such_part", "no_such_folder.part"):
        assert parts.part(absent) is None, absent
    assert rules.feature_class("no_such_feature") is None


def test_the_words_of_both_interpreters_for_a_missing_file_or_folder_mean_not_carried():
    for text in (
        "No module named '%s'",
        "no module named '%s'",
        "No module named 'leveret.core.queue.features' for %s",
        "No module named 'leveret.core.queue.features'; 'leveret.core' is not a package (%s)",
    ):
        assert loading(text, lambda: parts.part("queue.features.length")) is None, text
        assert loading(text, lambda: rules.feature_class("length")) is None, text


def test_an_import_error_inside_of_a_part_is_told_and_is_not_a_part_that_is_missing():
    """A part that is carried and imports what is not there is a broken build: nobody is told that it does not carry the part."""
    for text in (
        "No module named 'struct_of_nothing' (%s)",
        "cannot import name 'NOTHING' from 'leveret.core.memory.layout' (%s)",
        "can't import name NOTHING (%s)",
        "No module named 'leveret.core.queue.features.length_of_nothing' (%s)",
        "%s",
    ):
        for work in (
            lambda: parts.part("queue.features.length"),
            lambda: rules.feature_class("length"),
            lambda: parts.needed("queue.features.length", "lengths"),
        ):
            assert isinstance(loading(text, work), ImportError), text

"""Tests that look at names or text of the code, and run nothing of what was changed."""

import re
from collections.abc import Callable, Collection

from activities.checkpoints import Files
from activities.projects.python_probes import raise_in_functions
from activities.projects.runner_reports import RunCounts
from activities.projects.suite_probes import new_probe_name
from activities.projects.tests_by_name import (
    PYTHON,
    earlier_text,
    is_test_file,
    python_tests,
    source_texts,
    test_key,
)

_TEXT = re.compile(r"(?:id|attr)='(?:getsource\w*|__code__)'")
_WORDS = re.compile(rf"{_TEXT.pattern}|(?:id|attr)='(?:dir|hasattr|vars|getmembers|__dict__)'")
"""What a test looks at, as its syntax is written down."""


def look_at_words_alone(
    names: Collection[str],
    product: Files,
    before: Files,
    run: Callable[[Files], RunCounts | None],
) -> bool:
    """Return whether these tests of Python look at words, and pass whatever the changed code does.

    Args:
        run: Runs the tests of a product; done only if the tests look at words.
    """
    tests = python_tests(product)
    bodies = [tests[key].body if (key := test_key(name)) in tests else "" for name in names]
    if not bodies or not all(map(_WORDS.search, bodies)):
        return False
    raising, name, changed = product, new_probe_name(), list[str]()
    for entry, text in source_texts(product, PYTHON):
        old = earlier_text(before, entry.path)
        if text != old and not is_test_file(entry.path):
            probe, functions = raise_in_functions(text, old, name)
            raising, changed = raising.write(entry.path, probe.encode()), [*changed, *functions]
    if not changed or all(map(_TEXT.search, bodies)):
        return True
    counts = run(raising) or RunCounts()
    return set(names) <= set(counts.named("passed"))

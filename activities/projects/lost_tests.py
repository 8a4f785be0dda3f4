"""Tests of an earlier product that are gone from a later one, do not count any more, or ask less.

A test is known by its name, and by its text if it was moved to another file or class.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from activities.checkpoints import Files
from activities.job.deliverables import is_named_unresolved
from activities.projects.runner_reports import RunCounts
from activities.projects.tests_by_name import PythonTest, TestKey, python_tests, test_key
from protocol.short_text import first_few

MOST_NAMES = 6
"""Most tests that a reason names."""
BEFORE, FAILED = "that were there before this job", "that failed when the system ran them"
GONE = "tests {since} are gone, skipped or expected to fail"
WEAKER = "tests {since} compare less than they did"
PUT_BACK = (
    "put them back as they were, and mend what they show (one that has to go or to change is named "
    "in `unresolved`, with the reason)"
)


@dataclass(frozen=True)
class Baseline:
    """An earlier product, and the tests of it that have to run again."""

    product: Files
    names: Sequence[str]
    refused: str = ""
    """The command of a refused run whose failed tests the names are; empty if all tests that the
    product defines have to stay."""


@dataclass
class LostTests:
    """What became of the tests of baselines that are not as they were."""

    why: str = ""
    """Which are gone or weaker and may not be; empty if none."""
    changed: list[str] = field(default_factory=list)
    """Those that failed, and are there with another text."""
    excused: list[str] = field(default_factory=list)
    """Those that are gone or weaker, and a statement of the job names."""


def find_lost_tests(
    product: Files,
    counts: RunCounts,
    baselines: Sequence[Baseline],
    unresolved: Sequence[str],
    *,
    weaker: bool = True,
) -> LostTests:
    """Compare a product and its run with baselines.

    Args:
        unresolved: Statements of the job, which may name a test or its file.
        weaker: Whether to look for tests that compare less.
    """
    lost, by_text = LostTests(), dict[str, list[str]]()
    now = python_tests(product, helpers=True) if baselines else {}
    for baseline in baselines:
        then = python_tests(baseline.product)
        since = FAILED if baseline.refused else BEFORE
        losses = {GONE.format(since=since): _gone_tests(counts, baseline, then, now)}
        if weaker:
            losses[WEAKER.format(since=since)] = _weaker_tests(baseline, then, now)
        for text, names in losses.items():
            for name in names:
                is_excused = _is_named(name, unresolved, then)
                (lost.excused if is_excused else by_text.setdefault(text, [])).append(name)
        if baseline.refused:
            keys = [key for key in map(test_key, baseline.names) if key in then and key in now]
            lost.changed += [
                _full_name(key, now[key].path) for key in keys if now[key].body != then[key].body
            ]
    texts = [f"{text}: {first_few(_once(names), MOST_NAMES)}" for text, names in by_text.items()]
    lost.why = f"{'; '.join(texts)}; {PUT_BACK}" if texts else ""
    lost.changed, lost.excused = _once(lost.changed), _once(lost.excused)
    return lost


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _gone_tests(
    counts: RunCounts,
    baseline: Baseline,
    then: Mapping[TestKey, PythonTest],
    now: Mapping[TestKey, PythonTest],
) -> Iterable[str]:
    ran = counts.named("passed", "failed")
    # Names of cases may have a time or an address, so that as many are asked for.
    few = _keys(baseline.names) - _keys(ran)
    few_texts = _texts(baseline.names, then) - _texts(ran, now)
    here = set(ran)
    for name in baseline.names:
        key = test_key(name)
        if name not in here and key in few and _text(key, then) in few_texts:
            yield name
    if not baseline.refused:
        # Those that did not pass, and those of other commands.
        known = {*map(test_key, baseline.names), *now}
        bodies = {test.body for test in now.values()}
        for key, test in then.items():
            if key not in known and test.body not in bodies:
                yield _full_name(key, test.path)


def _keys(names: Iterable[str]) -> Counter[TestKey]:
    return Counter(map(test_key, names))


def _text(key: TestKey, tests: Mapping[TestKey, PythonTest]) -> object:
    """Return what stays of a test that is moved: its text, else its name without its file."""
    return tests[key].body if key in tests else key[1:]


def _texts(names: Iterable[str], tests: Mapping[TestKey, PythonTest]) -> Counter[object]:
    return Counter(_text(test_key(name), tests) for name in names)


def _weaker_tests(
    baseline: Baseline, then: Mapping[TestKey, PythonTest], now: Mapping[TestKey, PythonTest]
) -> Iterable[str]:
    """Yield tests that compare less, unless what they checked went to other tests."""
    removed = _checks(*then.values()) - _checks(*now.values())
    bodies = {test.body for test in now.values()}
    for key in _keys(baseline.names) if baseline.refused else then:
        if (old := then.get(key)) is None or old.body in bodies:
            continue
        moved = (test for other, test in now.items() if other[1:] == key[1:] and other not in then)
        new = now.get(key) or next(moved, None)
        if new and new.strength < old.strength and removed & (_checks(old) - _checks(new)):
            yield _full_name(key, old.path)


def _checks(*tests: PythonTest) -> Counter[str]:
    return Counter(text for test in tests for text, _ in test.checks)


def _full_name(key: TestKey, path: str) -> str:
    return "::".join(filter(None, (path, *key[1:])))


def _is_named(name: str, unresolved: Sequence[str], tests: Mapping[TestKey, PythonTest]) -> bool:
    """Return whether a statement of the job names a test or its file, with a reason."""
    key = test_key(name)
    path = tests[key].path if key in tests else name.partition("::")[0] if "::" in name else ""
    return any(is_named_unresolved(each, name, unresolved) for each in (key[2], path) if each)

"""Changes to a product under which its tests have to fail: a suite that does not proves nothing.

Failing tests are planted beside those of the product, expected values in tests are changed, and so
are the values that the product's functions return.
"""

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from activities.checkpoints import Files
from activities.projects.line_probes import challenge_lines, change_lines
from activities.projects.lost_tests import MOST_NAMES
from activities.projects.product_copy import CommandRun
from activities.projects.python_probes import (
    challenge_python,
    change_python_returns,
)
from activities.projects.runner_reports import RunCounts
from activities.projects.tests_by_name import (
    TestKey,
    earlier_text,
    endings_of,
    is_test_file,
    source_texts,
    test_key,
)
from protocol.proof import CheckCommand
from protocol.short_text import first_few

ProductRun = Callable[[Files, CheckCommand, str], CommandRun]
"""Runs a command on a product, with the name under which changed functions ask for a test."""
MAX_PARTS = 8
"""Most changes that are tried one by one where all together cannot be built."""
NOT_SEEN = (
    "a test of the system's own, which fails, was put beside the others and the run does not show "
    "it as failed, so that it shows nothing of them either"
)
UNNOTICED = "compares with a constant that the system changed, and passed as before"


@dataclass
class Challenge:
    """A changed product, and the tests that have to fail in it."""

    product: Files
    planted: list[TestKey] = field(default_factory=list)
    """Planted tests; each is expected only if a test of the same class and file passed before."""
    changed: list[TestKey] = field(default_factory=list)
    """Tests whose expected values were changed."""
    parts: list[tuple[str, str]] = field(default_factory=list)
    """Paths and contents of files in which only one line is changed."""
    names: list[str] = field(default_factory=list)
    """Functions of the product, or its files, that were changed."""


def challenge_tests(
    product: Files, before: Files | None, endings: frozenset[str], name: str
) -> Challenge:
    """Plant failing tests, and change the expected values of tests that are new.

    Args:
        name: A name that occurs nowhere in the product; it begins with `test_`.
    """
    challenge = Challenge(product)
    for entry, text in source_texts(product, endings):
        if "node_modules/" in entry.path:
            continue
        old = earlier_text(before, entry.path)
        challenge_file = challenge_python if ".py" in endings else challenge_lines
        changed, planted, expecting = challenge_file(entry.path, text, old, name)
        challenge.planted += planted
        challenge.changed += expecting
        if changed != text:
            challenge.product = challenge.product.write(entry.path, changed.encode())
    return challenge


def change_returned_values(
    product: Files, before: Files | None, endings: frozenset[str], name: str
) -> Challenge:
    """Change what the functions return that are new or differ from the accepted ones."""
    challenge = Challenge(product)
    for entry, text in source_texts(product, endings):
        old = earlier_text(before, entry.path)
        if text == old or is_test_file(entry.path):
            continue
        if ".py" in endings:
            changed, names = change_python_returns(text, old, name)
            challenge.names += [f"{each}() in {entry.path}" for each in names]
        else:
            changed, parts = change_lines(entry.path, text, old)
            challenge.parts += [(entry.path, part) for part in parts]
            challenge.names += [entry.path] if parts else []
        if changed != text:
            challenge.product = challenge.product.write(entry.path, changed.encode())
    challenge.parts = challenge.parts[:: max(1, len(challenge.parts) // MAX_PARTS)][:MAX_PARTS]
    return challenge


def new_probe_name() -> str:
    """Return a name for tests and values of the system's own that occurs nowhere else."""
    return f"test_{secrets.token_hex(6)}"


def find_unfailing_tests(
    run: ProductRun, product: Files, before: Files | None, command: CheckCommand, ran: CommandRun
) -> str:
    """Return how tests pass that have to fail; empty if they fail.

    Args:
        ran: The run of the command that passed.
    """
    endings, name = endings_of(ran.runners), new_probe_name()
    challenge = challenge_tests(product, before, endings, name)
    if not challenge.planted:
        is_python = ".py" in endings
        return "it says that tests were run, and no file of the repository has any" * is_python
    counts = ran.counts or RunCounts()
    why = _challenged_run(run, challenge, ran.limited(command), counts, name)
    if why and UNNOTICED not in why:
        # With another value a test may wait for ever, end the run or not compile.
        planted = challenge_tests(product, product, endings, name)
        why = _challenged_run(run, planted, command, counts, name)
    return why


def _challenged_run(
    run: ProductRun, challenge: Challenge, command: CheckCommand, counts: RunCounts, name: str
) -> str:
    """Run a changed product and return which tests do not fail that have to."""
    ran = run(challenge.product, command, "")
    if ran.trouble:
        return f"run once more, {ran.trouble}"
    if ran.counts is None or ran.exit_code == 0:
        return NOT_SEEN
    return _unseen_failures(counts, ran.counts, challenge, name)


def _unseen_failures(
    counts: RunCounts,
    probed: RunCounts,
    challenge: Challenge,
    name: str,
) -> str:
    """Return which planted or changed tests a run does not show as failed; empty if none."""
    passed = {test_key(each) for each in counts.named("passed")}
    failed = {test_key(each) for each in probed.named("failed")}
    if not any(key[0] for key in challenge.planted):
        return _unseen_by_title(counts, probed, challenge.changed, name)
    scopes = {key[:2] for key in passed}
    planted = _as_imported(challenge.planted, scopes)
    changed = _as_imported(challenge.changed, scopes)
    if not any(key in failed for key in planted):
        return NOT_SEEN
    # A class that inherits runs the planted tests of its base under its own name.
    unseen = [key for key in planted if key[:2] in scopes and key not in failed]
    if unseen:
        first = "::".join(filter(None, unseen[0][:2]))
        kind = unseen[0][2].removeprefix(name).strip("_")
        return f"{NOT_SEEN} (in {first}, one that fails by {kind or 'raise'})"
    still = {test_key(each) for each in probed.named("passed")}
    unnoticed = [key for key in changed if key in passed and key in still and key not in failed]
    if unnoticed:
        names = ["::".join(filter(None, key)) for key in unnoticed]
        return (
            f"{first_few(names, MOST_NAMES)}: each {UNNOTICED}; a test has to fail when what it "
            "expects is not what it gets"
        )
    return ""


def _as_imported(keys: Sequence[TestKey], scopes: set[tuple[str, str]]) -> list[TestKey]:
    """Return the keys of tests by the file that runs them: it may import their class."""
    importing = {kind: stem for stem, kind in scopes - {key[:2] for key in keys} if kind}
    return [
        (stem if (stem, kind) in scopes else importing.get(kind, stem), kind, test)
        for stem, kind, test in keys
    ]


def _unseen_by_title(
    counts: RunCounts, probed: RunCounts, changed: Sequence[TestKey], name: str
) -> str:
    failed = probed.named("failed")
    if not any(name in each for each in failed):
        known = counts.outcomes.keys() & probed.outcomes.keys()
        # What the system changed may not compile, which says nothing of the tests.
        return NOT_SEEN if known else ""
    still = set(counts.named("passed")) & set(probed.named("passed"))
    titles = []
    for _, _, title in changed:
        of_test = re.compile(rf"(?:^|[ :/>]){re.escape(title)}$")
        if any(map(of_test.search, still)) and not any(map(of_test.search, failed)):
            titles.append(title)
    return f"{first_few(titles, MOST_NAMES)}: each {UNNOTICED}" if titles else ""


def find_unnoticed_returns(
    run: ProductRun,
    product: Files,
    before: Files | None,
    green: list[tuple[CheckCommand, CommandRun]],
) -> str:
    """Return which functions may return anything without a test that fails; else empty.

    Args:
        green: Commands, each with its run that passed.
    """
    runs = [(c, ran) for c, ran in green if endings_of(ran.runners)]
    endings = endings_of({each for _, ran in runs for each in ran.runners})
    name = new_probe_name()
    challenge = change_returned_values(product, before, endings, name)
    if not challenge.names or not runs:
        return ""
    # For Python, second, functions that are only called when modules are imported.
    tries = [(challenge.product, name)] if ".py" in endings else []
    tries.append((challenge.product, ""))
    tries += [(product.write(path, text.encode()), "") for path, text in challenge.parts]
    was_built = False
    for place, (changed, mutation) in enumerate(tries):
        if was_built and place == len(tries) - len(challenge.parts):
            break
        for command, ran in runs:
            probed = run(changed, ran.limited(command), mutation)
            known = set(ran.counts.outcomes if ran.counts else ())
            outcomes = probed.counts.outcomes.keys() if probed.counts else set[str]()
            failed = set(probed.counts.named("failed") if probed.counts else ())
            if not probed.is_green and (mutation or known & failed or probed.trouble):
                return ""
            was_built = was_built or bool(known & outcomes)
    if not was_built:
        # What was changed could not be built, which says nothing of the tests.
        return ""
    passed = [each for _, ran in runs if ran.counts for each in ran.counts.named("passed")]
    return (
        f"The system changed what the feature's code returns "
        f"({first_few(challenge.names, MOST_NAMES)}), and each test passed as before: "
        f"{first_few(passed, MOST_NAMES)}. None of them looks at it: call it in a test, and "
        "compare what it returns with the right value."
    )

"""To which runners a command leads, and what keeps it from being a proof."""

import json
import re
from collections.abc import Mapping

import pytest

from activities.commands.sandbox import CommandResult
from activities.projects.command_following import CommandFollower
from activities.projects.runner_commands import CommandRefused, runner_command_fault
from tests.activities.projects.proving import Bench

SCRIPT = (
    '#!/usr/bin/env bash\nset -euo pipefail\n# tests\ncd "$(dirname "$0")/.."\n'
    'export PYTHONPATH=src\nruff check .\nexec python3 -m pytest -q tests "$@"\n'
)
PACKAGE = '{"scripts": {"test": "%s", "pretest": "eslint ."}}'
LED = [
    ("cd web && python3 -m unittest -v && pytest -q", {}, ["unittest@web", "pytest@web"]),
    ("sh bin/check.sh", {"bin/check.sh": SCRIPT}, [":ruff", "pytest"]),
    ("npm test", {"package.json": PACKAGE % "vitest run"}, [":eslint", "vitest"]),
    ("uv run python3 -m pytest --tb=short -ra", {}, ["pytest"]),
    ("timeout 60 env CI=1 go test -race ./...", {}, ["go"]),
    ("coverage run -m unittest && python3 -m coverage report", {}, ["unittest", ":python3"]),
    ("python3 tests/test_tea.py", {"tests/test_tea.py": "unittest.main()\n"}, ["unittest"]),
    ("cargo build && cargo test --workspace -- --test-threads=1", {}, [":cargo", "cargo"]),
    ("PYTHONPATH=src python3 -m pytest -q 2>&1 | tail -5", {"src/tea.py": ""}, ["pytest"]),
    ("node --test --import tsx tests/", {}, ["node"]),
    ("mvn -q -B verify", {}, ["maven"]),
    ("npx vitest run --coverage", {}, ["vitest"]),
]  # fmt: skip
REFUSED = [
    ("python3 -O -m pytest", {}, "leave out -O"),
    ("python3 -m pytest -qx", {}, "leave out -qx"),
    ("python3 -m pytest -opython_files=x.py", {}, "leave out -opython_files"),
    ("python3 -m pytest @arguments.txt", {}, "leave out @arguments.txt"),
    ("python3 -m pytest --rootdir fake", {}, "leave out --rootdir"),
    ("python3 -m pytest --noconftest", {}, "leave out --noconftest"),
    ("python3 -m pytest ../other", {}, "leave out ../other"),
    ("python3 -m unittest -k one", {}, "leave out -k"),
    ("node --test --test-name-pattern=one", {}, "leave out --test-name-pattern"),
    ("node --test --import ./fake.js", {}, "a file of the product decides"),
    ("npx jest -t one", {}, "leave out -t"),
    ("npx vitest run --exclude x", {}, "leave out --exclude"),
    ("npx mocha --grep one", {}, "leave out --grep"),
    ("go test -run One ./...", {}, "leave out -run"),
    ("go test -exec ./fake ./...", {}, "leave out -exec"),
    ("cargo test -- --skip two", {}, "leave out --skip"),
    ("mvn test -DskipTests=true", {}, "leave out -DskipTests"),
    ("ctest -E two", {}, "leave out -E"),
    ("prove --exec=fake t", {}, "leave out --exec"),
    ("NODE_OPTIONS=--require=./x.js node --test", {}, "leave out NODE_OPTIONS="),
    ("PYTHONOPTIMIZE=1 pytest", {}, "leave out PYTHONOPTIMIZE="),
    ("PYTHONPATH=fake pytest", {"tea.py": "", "fake/tea.py": ""}, "in place of tea"),
    ("PYTHONPATH=/tmp pytest", {}, "no folder of the product"),
    ("bin/jest", {}, "a file of the product"),
    ("python3 run.py", {"run.py": "print('5 passed')\n"}, "no test runner"),
    ("python3 -m runner", {"runner.py": ""}, "no test runner"),
    ("sh a.sh", {"a.sh": "sh b.sh\n", "b.sh": "awk 'BEGIN{print 9}'\n"}, "a.sh and b.sh"),
    ("sh a.sh", {"a.sh": "sh a.sh\n"}, "too many files"),
    ("sh a.sh", {"a.sh": "for t in tests/*; do sh $t; done\n"}, "line 1 of a.sh"),
    ("./a.py", {"a.py": "#!/usr/bin/python3\n"}, "no test runner"),
    ("npm test", {"package.json": "{"}, "no valid JSON"),
    ("make -f other.mk test", {}, "runs no test"),
    ("cd .. && pytest", {}, "leave out cd .."),
    ("date && base64 tea.py", {}, "no test runner"),
]  # fmt: skip


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


def follower(bench: Bench, files: Mapping[str, str], printed: str = "echo ok") -> CommandFollower:
    product = bench.files(files)
    return CommandFollower(product, lambda folder, words: CommandResult(0, printed, 0))


@pytest.mark.parametrize(("command", "files", "expected"), LED)
def test_a_command_is_followed_to_its_runners(
    bench: Bench, command: str, files: Mapping[str, str], expected: list[str]
) -> None:
    assert runner_command_fault(command) == ""
    steps = follower(bench, files).follow(command)
    found = [
        (step.runner or f":{step.words[0]}") + (f"@{step.folder}" if step.folder else "")
        for step in steps
    ]
    assert found == expected


@pytest.mark.parametrize(("command", "files", "why"), REFUSED)
def test_what_decides_for_itself_is_refused(
    bench: Bench, command: str, files: Mapping[str, str], why: str
) -> None:
    with pytest.raises(CommandRefused, match=re.escape(why)):
        follower(bench, files).follow(command)


def test_what_make_would_run_is_followed(bench: Bench) -> None:
    files = {"Makefile": "test:\n"}
    printed = "mkdir -p build\n: longhaul-make -C web unit\npython3 -m pytest -q tests\n"
    inner = {"Makefile": "", "web/Makefile": ""}
    answers = iter([printed, "go test ./...\n"])
    product = bench.files({**files, **inner})
    following = CommandFollower(product, lambda folder, words: CommandResult(0, next(answers), 0))
    steps = following.follow("make test")
    assert [(step.runner, step.folder) for step in steps] == [
        ("", ""),
        ("go", "web"),
        ("pytest", ""),
    ]
    with pytest.raises(CommandRefused, match="no Makefile") as refused:
        follower(bench, {}).follow("make test")
    assert refused.value.missing


def test_a_person_settles_options(bench: Bench) -> None:
    command = "PYTHONPATH=/opt/lib python3 -m pytest -m 'not slow' -c ci.ini"
    assert runner_command_fault(command)
    assert runner_command_fault(command, by_person=True) == ""
    settled = CommandFollower(bench.files({}), lambda *_: CommandResult(0, "", 0), by_person=True)
    assert [step.runner for step in settled.follow(command)] == ["pytest"]


def test_what_a_repository_runs_beside_its_tests_prepares_them(bench: Bench) -> None:
    scripts = {"pretest": "rimraf build && tsc", "test": "c8 --reporter text mocha test/*.mjs"}
    product = bench.files({"package.json": json.dumps({"scripts": scripts})})
    dry = lambda *_: CommandResult(0, "", 0)  # noqa: E731
    steps = CommandFollower(product, dry, by_person=True).follow("npm test")
    assert [step.line for step in steps if step.runner] == ["npx --no-install mocha 'test/*.mjs'"]
    assert [step.words[0] for step in steps] == ["rimraf", "tsc", "mocha"]
    with pytest.raises(CommandRefused, match="rimraf"):
        CommandFollower(product, dry).follow("npm test")


@pytest.mark.parametrize(
    ("after", "programs"),
    [("npx aud --production", ["tape"]), ("mocha a.js && eslint .", ["tape", "mocha", "eslint"])],
)
def test_what_follows_the_tests_is_run_if_it_has_tests(
    bench: Bench, after: str, programs: list[str]
) -> None:
    scripts = {"test": "npm run tests-only", "tests-only": "nyc tape test/*.js", "posttest": after}
    product = bench.files({"package.json": json.dumps({"scripts": scripts})})
    dry = lambda *_: CommandResult(0, "", 0)  # noqa: E731
    steps = CommandFollower(product, dry, by_person=True).follow("npm test")
    assert [step.words[0] for step in steps] == programs

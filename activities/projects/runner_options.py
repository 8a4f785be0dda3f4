"""Options of test runners: which ones leave the choice of tests and of their configuration alone.

The system starts runners itself, with whole files or folders of tests. An option that selects
tests, names a configuration or a plugin, or writes the report elsewhere is refused, unless a person
wrote the command.
"""

import re
from collections.abc import Sequence

_ALLOWED = {
    "pytest": re.compile(
        r"-[qvsl]+|-r\w*|-n(?:\d+|auto)?|-W.*|--(?:quiet|verbose|no-header|no-summary|full-trace"
        r"|showlocals|strict|strict-markers|strict-config|disable-warnings|doctest-modules"
        r"|disable-pytest-warnings|no-cov|cov|cov-branch|benchmark-skip|benchmark-disable"
        r"|(?:tb|color|durations|durations-min|timeout|timeout-method|asyncio-mode|import-mode"
        r"|capture|show-capture|dist|numprocesses|cov|cov-report|cov-fail-under|log-level"
        r"|log-cli-level|randomly-seed|hypothesis-profile|hypothesis-seed|doctest-glob)(?:=.*)?)"
    ),
    "unittest": re.compile(
        r"-[vqbstp]+|--(?:verbose|quiet|buffer|locals|catch|pattern|start-directory"
        r"|top-level-directory|durations)(?:=.*)?"
    ),
    "node": re.compile(
        r"--(?:test|enable-source-maps|no-warnings|trace-warnings|experimental-[\w-]+"
        r"|test-force-exit|(?:test-concurrency|test-timeout|test-isolation|test-coverage-\w+"
        r"|import|require|loader|experimental-loader)(?:=.*)?)|-r"
    ),
    "go": re.compile(
        r"--?(?:v|race|cover|count|p|parallel|timeout|cpu|tags|coverpkg|covermode|coverprofile"
        r"|shuffle|mod|buildvcs|trimpath|vet|x|a|work)(?:=.*)?"
    ),
    "cargo": re.compile(
        r"-[vqpjF]+|--(?:verbose|quiet|workspace|all|all-features|no-default-features|release|locked"
        r"|offline|frozen|lib|bins|tests|examples|all-targets|no-fail-fast|nocapture|show-output"
        r"|include-ignored|(?:features|package|exclude|test|bin|example|jobs|manifest-path"
        r"|test-threads|color|profile|target-dir|message-format)(?:=.*)?)?"
    ),
}
"""Options that a runner may have; all others of these runners are refused."""
_REFUSED = {
    "jest": "-t --testNamePattern --testPathPattern --testPathPatterns --testPathIgnorePatterns -o "
    "--onlyChanged --onlyFailures -f -c --config --rootDir --roots --passWithNoTests --json "
    "--outputFile --setupFiles --setupFilesAfterEnv --testRunner --globalSetup "
    "--findRelatedTests --listTests --shard -u --updateSnapshot --runner --preset "
    "--testEnvironment --moduleNameMapper --modulePathIgnorePatterns --testMatch --testRegex "
    "--transform --resolver --selectProjects --ignoreProjects --lastCommit --changedSince "
    "--filter --env --projects",
    "vitest": "-t --testNamePattern -c --config -r --root --dir --exclude --changed --related "
    "--shard --passWithNoTests --outputFile -u --update --project --mode "
    "--dangerouslyIgnoreUnhandledErrors --environment --runner --globals --alias related list "
    "bench --tagsFilter",
    "mocha": "-g --grep -f --fgrep -i --invert --config --package --ignore --exclude "
    "--dry-run --file --pass-on-failing-test-suite --fail-zero -n --node-option -u --ui --retries",
    "maven": "-Dtest -DskipTests -Dmaven.test.skip -Dmaven.test.failure.ignore -DfailIfNoTests "
    "-Dgroups -DexcludedGroups -s --settings -gs -pl -rf -Dsurefire -DargLine -t -f",
    "phpunit": "--filter --exclude-filter --group --exclude-group --configuration -c "
    "--no-configuration --bootstrap --log-junit --log-teamcity --testsuite --exclude-testsuite "
    "--printer --extension --covers --uses --stop-on-failure --stop-on-error --test-suffix -d "
    "--do-not-fail-on-skipped --include-path --only-summary-for-coverage-text",
    "rspec": "-e --example -E --example-matches -t --tag -P --pattern --exclude-pattern -r "
    "--require -O --options -f --format -o --out --only-failures -n --next-failure --fail-fast "
    "--dry-run --bisect -I --failure-exit-code --error-exit-code --default-path",
    "ctest": "-R --tests-regex -E --exclude-regex -L -LE --label-regex --label-exclude -I -N "
    "--show-only --rerun-failed --output-junit -S -SP -D -M -T --build-and-test "
    "--stop-on-failure -FA -FS -FC --repeat --repeat-until-fail -U --union "
    "--tests-from-file --exclude-from-file --overwrite",
    "prove": "-e --exec --formatter --harness -P -M -I --state --rc --source -a --archive -D --dry "
    "--ignore-exit -s --shuffle --norc --parse --not",
    "tap": "-g --grep -i --invert -O --only -o --output-file --output-dir --changed -n --saved "
    "--cov-map --coverage-map --test-regex --test-ignore --rcfile -T --timeout --passes",
    "tape": "-r --require -i --ignore --ignore-pattern --only",
}
"""Options that other runners may not have."""
_TAKES_VALUE = {
    "pytest": "-n -W --tb --color --durations --timeout --dist --import-mode --cov-report "
    "--asyncio-mode --numprocesses --capture --log-level --cov-fail-under",
    "unittest": "-s -t -p --start-directory --top-level-directory --pattern --durations",
    "node": "--import --require -r --loader --experimental-loader --test-concurrency "
    "--test-timeout",
    "go": "-count -p -parallel -timeout -cpu -tags -coverpkg -covermode -coverprofile "
    "-mod -shuffle",
    "cargo": "-p --package --exclude --features -F --test --bin --example -j --jobs "
    "--manifest-path --color --profile --target-dir --message-format --test-threads",
}
_PLUGINS_OFF = frozenset({"no:cacheprovider", "no:randomly", "no:xdist", "no:warnings"})


def runner_option_fault(runner: str, words: Sequence[str]) -> str:
    """Return which word selects tests or their configuration; empty if none does."""
    place = 0
    takes = _TAKES_VALUE.get(runner, "").split()
    while place < len(words):
        word = words[place]
        place += 1
        if runner == "pytest" and word == "-p" and words[place : place + 1]:
            if words[place] not in _PLUGINS_OFF:
                return f"leave out -p {words[place]}: the system chooses the plugins"
            place += 1
            continue
        if not word.startswith("-"):
            if fault := _argument_fault(runner, word):
                return fault
            continue
        if _is_refused_option(runner, word):
            name = word.partition("=")[0]
            return (
                f"leave out {name}: whole files or folders of tests are run, with the project's "
                "own settings"
            )
        if word in takes:
            value = words[place] if place < len(words) else ""
            place += 1
            if runner == "node" and value.startswith((".", "/")):
                return f"leave out {word} {value}: a file of the product decides what is run"
        elif runner == "node" and re.match(r"--(?:import|require|loader)=[./]", word):
            return f"leave out {word}: a file of the product decides what is run"
    return ""


def _is_refused_option(runner: str, word: str) -> bool:
    allowed = _ALLOWED.get(runner)
    if allowed is not None:
        return allowed.fullmatch(word) is None
    refused = _REFUSED.get(runner, "").split()
    name = word.partition("=")[0]
    if name in refused:
        return True
    if word.startswith("-D") and runner == "maven":
        return any(name.startswith(each) for each in refused if each.startswith("-D"))
    # A short option may have its value joined to it.
    short = not word.startswith("--") and runner not in ("maven", "ctest")
    return short and any(len(each) == 2 and word.startswith(each) for each in refused)


def _argument_fault(runner: str, word: str) -> str:
    if "::" in word and runner in ("pytest", "unittest"):
        return "name whole files or folders of tests, not single ones"
    if word.startswith(("/", "~", "@")) or ".." in word.split("/"):
        return f"leave out {word}: tests are files of the repository"
    return ""

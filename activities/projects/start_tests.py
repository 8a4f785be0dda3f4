"""The run of a repository's tests on the untouched tree, before a job's first model call."""

from dataclasses import replace

from activities.checkpoints import Files, FilesError, Root
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.projects.project_repository import project_repository_path
from activities.projects.proof_run import ProofRunner
from activities.projects.repository_tests import find_test_command
from activities.projects.setup_recipes import setup_recipe
from activities.runtime.activity_info import activity_job_id
from config.schema.agent import AgentConfig
from config.schema.shell import ShellConfig
from config.schema.work_checks import RepositoryTests
from protocol.proof import CheckCommand
from protocol.repository_link import StartTests
from protocol.short_text import shorten_to_end

MOST_FAILED = 500
"""Most tests that failed at the start which are kept by name."""
MAX_SHOWN = 600
"""Characters shown of the end of a run that could not be made."""
MOST_GENERATED = 200
"""Most paths kept of what the tests' run at the start made or changed."""
NO_COMMAND = "nothing in the repository says how its tests are run"


def run_start_tests(root: Root, snapshot: Snapshot) -> StartTests | None:
    """Run the tests of the repository as it came; None for an agent that proves nothing by them."""
    link, config = snapshot.repository, snapshot.config
    if link is None or config.tests is None or snapshot.link:
        return None
    product, subfolder = snapshot.files.subfolder(link.folder), link.origin.start.subfolder
    command = config.tests.command or find_test_command(product, subfolder)
    if not command:
        return StartTests(why=NO_COMMAND)
    tests = _try_tests(root, snapshot, product, command, config.tests)
    shell = shell_with_recipe(config, snapshot.files, link.folder, subfolder)
    if not tests.why or shell is config.shell:
        return tests
    config.shell = shell
    snapshot.pin_config(config)
    installed = _try_tests(root, snapshot, product, command, config.tests)
    if installed.why:
        installed.why += f"\nBefore that set-up, which the repository's files say: {tests.why}"
    return installed


def shell_with_recipe(
    config: AgentConfig, files: Files, folder: str, subfolder: str = ""
) -> ShellConfig:
    """Return an agent's sandbox, with the set-up that the files of the repository in a folder of
    the workspace say; as it is, if the agent has one of its own or may have none.
    """
    rules, shell = config.tests, config.shell
    if not (rules and rules.setup) or shell.setup or shell.sandbox == "none":
        return shell
    inside = "/".join(filter(None, (folder, subfolder)))
    command = rules.command or find_test_command(files.subfolder(folder), subfolder)
    recipe = setup_recipe(files.subfolder(inside), inside, command)
    shown = {f"{inside}/node_modules": "node_modules"}
    installing = {"setup": recipe, "setup_sees": [f"{folder}/**"], "setup_shows": shown}
    return shell.model_copy(update=installing) if recipe else shell


def _try_tests(
    root: Root, snapshot: Snapshot, product: Files, command: str, rules: RepositoryTests
) -> StartTests:
    check = check_command(command, rules)
    runner = replace(proof_runner(root, snapshot), generated=None)
    try:
        ran = runner.run_command(product, check)
    except FilesError as problem:
        return StartTests(command=command, why=f"it cannot be run: {problem}")
    counts = ran.counts
    if ran.refused or ran.trouble or counts is None or not counts.named("passed"):
        how = ran.refused or ran.trouble or f"no test passed (exit code {ran.exit_code})"
        printed = shorten_to_end(ran.output.strip(), MAX_SHOWN)
        return StartTests(command=command, why=f"{how}{f'; it printed: {printed}' * bool(printed)}")
    runner.passing_tests(product, check, ran)
    return StartTests(
        command=command,
        passed=len(counts.named("passed")),
        skipped=len(counts.named("skipped")),
        expected=len(counts.named("expected")),
        failed=sorted(counts.named("failed"))[:MOST_FAILED],
        generated=ran.generated[:MOST_GENERATED],
    )


def proof_runner(root: Root, snapshot: Snapshot) -> ProofRunner:
    """Return what runs the tests of a job's repository."""
    link, config = snapshot.repository, snapshot.config
    assert link is not None
    cache = ResultCache(project_repository_path(root, link.owner))
    return ProofRunner(
        *(root, activity_job_id(), config.shell, link.folder, cache),
        sealed=tuple(config.sealed),
        generated=link.tests.generated if link.tests else (),
    )


def check_command(command: str, rules: RepositoryTests) -> CheckCommand:
    return CheckCommand(command=command, seconds=rules.seconds, by_person=True)

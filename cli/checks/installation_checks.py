"""The checks of `doctor` that concern installed programs and data."""

from __future__ import annotations

import shutil
import subprocess

from cli.checks.check_result import CheckResult
from engine.development import find_temporal_binary


def check_temporal_binary() -> CheckResult:
    try:
        binary = find_temporal_binary()
        process = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=5, check=True
        )
        return CheckResult("temporal binary", True, f"{binary} ({process.stdout.strip()})")
    except (OSError, subprocess.SubprocessError) as error:
        return CheckResult(
            "temporal binary", False, f"does not run: {error}", "run `make setup` again"
        )


def check_token_vocabulary() -> CheckResult:
    from activities.text import tokens  # noqa: PLC0415 - the vocabulary takes a moment to load

    # This text's token ids are published only for this encoding, so a wrong vocabulary shows.
    count = tokens.count_tokens("hello world")
    return CheckResult(
        "token vocabulary", count == 2, "o200k_base, offline", "run `make setup` again"
    )


def check_sandbox() -> CheckResult:
    # Loads what only activities need.
    from activities.commands import sandbox, user_namespace  # noqa: PLC0415

    program = sandbox.find_bwrap()
    if why := sandbox.sandbox_problem(program):
        # Only agents that run commands need it.
        lacking = "none, so agents that run commands do not start"
        return CheckResult("sandbox", True, f"{lacking}: {why}", off=True)
    as_whom = " as the user nobody, since this is root" if user_namespace.is_machine_root() else ""
    return CheckResult("sandbox", True, f"{program}; commands can be run{as_whom}")


def check_git() -> CheckResult:
    if program := shutil.which("git"):
        return CheckResult("git", True, program)
    # Only some jobs need git, and the repair of a damaged checkpoint index.
    off = (
        "no job or project begins from a repository or pushes a branch, no workspace.remote, and "
        "no index of checkpoints that was damaged is made anew"
    )
    return CheckResult(
        "git", True, f"none, so {off}; install git, for example: apt install git", off=True
    )

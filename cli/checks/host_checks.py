"""The checks of `doctor` that concern the host: its programs, logging, collectors, vocabulary."""

import shutil
import socket
import subprocess
from urllib.parse import urlsplit

from activities.redaction.credentials import without_credentials
from cli.checks.check_result import CHECK_TIMEOUT, CheckResult
from engine import logs
from engine.development import find_temporal_binary
from engine.otel import optional_export
from engine.setup_errors import SetupError


def check_log_settings() -> CheckResult:
    try:
        return CheckResult("log", True, f"{logs.log_format()}, from {logs.log_level('WARNING')} on")
    except SetupError as error:
        return CheckResult("log", False, f"{error}: no worker starts")


def check_collectors() -> CheckResult:
    name, addresses = "traces and metrics", optional_export.collector_addresses()
    try:
        if addresses:
            optional_export.load_otlp_export()
        for address in addresses:
            url = urlsplit(address)
            port = url.port or (443 if url.scheme == "https" else 80)
            if url.scheme not in ("http", "https") or not url.hostname:
                raise ValueError("expected an address such as http://127.0.0.1:4318")
            socket.create_connection((url.hostname, port), CHECK_TIMEOUT.total_seconds()).close()
    except (OSError, ValueError) as error:
        return CheckResult(
            name, False, f"{without_credentials(address)} is not reached ({error}): they are lost",
            f"start the collector, or correct or unset {optional_export.ENDPOINT}",
        )  # fmt: skip
    targets = f"to {', '.join(map(without_credentials, addresses))}"
    return CheckResult(name, True, targets if addresses else "not exported")


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

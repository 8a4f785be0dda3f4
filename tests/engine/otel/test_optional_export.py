"""What turns OpenTelemetry on, and the message when it is unavailable."""

import subprocess
import sys

import pytest

from engine.otel import optional_export
from engine.setup_errors import SetupError
from tests.crash.processes import CLEAN, REPOSITORY

HERE = "http://127.0.0.1:4318"


@pytest.fixture
def environment_patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for signal in ("", "TRACES_", "METRICS_"):
        for last in ("ENDPOINT", "PROTOCOL"):
            monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{signal}{last}", raising=False)
    for name in ("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("variables", "traces", "metrics"),
    [
        ({}, False, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": HERE}, True, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": HERE}, True, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": HERE}, False, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": HERE, "OTEL_SDK_DISABLED": "true"}, False, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": HERE, "OTEL_METRICS_EXPORTER": "none"}, True, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": HERE, "OTEL_TRACES_EXPORTER": "none"}, False, True),
    ],
)
def test_an_endpoint_turns_it_on(
    environment_patch: pytest.MonkeyPatch, variables: dict[str, str], traces: bool, metrics: bool
) -> None:
    for name, value in variables.items():
        environment_patch.setenv(name, value)
    assert (optional_export.exports_traces(), optional_export.exports_metrics()) == (
        traces,
        metrics,
    )


def test_another_protocol_is_refused(environment_patch: pytest.MonkeyPatch) -> None:
    environment_patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", HERE)
    environment_patch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(SetupError, match=r"PROTOCOL=grpc: .* http/protobuf; unset it"):
        optional_export.export_client_plugins()


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env={**CLEAN, **variables},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_without_the_extra_a_worker_names_it() -> None:
    without = (
        "import sys; sys.modules['opentelemetry'] = None; import engine.worker_process as process; "
    )
    ended = run(f"{without} process.run_worker_process()", OTEL_EXPORTER_OTLP_ENDPOINT=HERE)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: OTEL_EXPORTER_OTLP_ENDPOINT asks for traces")
    assert ".venv/bin/python -m pip install '.[otel]'" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_without_an_endpoint_nothing_of_it_is_loaded() -> None:
    code = (
        "import sys, engine.worker_process, cli.app, workflows.project\n"
        "import activities.activity_catalogue\n"
        "from engine.otel import optional_export\n"
        "assert optional_export.export_client_plugins() == []\n"
        "optional_export.flush_optional_exports()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    ended = run(code)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")

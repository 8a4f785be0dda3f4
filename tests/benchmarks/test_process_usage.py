"""What processes use, and limits of it."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.process_usage import limited_process_cpu


def test_a_limit_leaves_no_control_group_behind_when_the_measurement_fails() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            with limited_process_cpu(process.pid, 0.5):
                groups = Path(f"/proc/{process.pid}/cgroup").read_text()
                raise KeyError
        except SystemExit as refusal:
            pytest.skip(str(refusal))
        except KeyError:
            left = Path(f"/proc/{process.pid}/cgroup").read_text()
        finally:
            process.kill()
    assert "longhaul-benchmark" in groups
    assert "longhaul-benchmark" not in left

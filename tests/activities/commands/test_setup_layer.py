"""What `shell.setup` installs: once for a job, by content, beside its checkpoints."""

import os
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.commands import sandbox
from activities.commands.private_folder import private_path, remove_private_folders
from config.schema.shell import ShellConfig
from tests.activities.standing import JOB, Standing

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")

INSTALL = "mkdir -p /layer/bin; printf '#!/bin/sh\\necho tool' > /layer/bin/tool"


def begin(folder: Path, **shell: object) -> Standing:
    keys = {f"shell.{name}": value for name, value in shell.items()}
    return Standing.begin(
        folder, kind="tactical", set={"tools": ["files", "todos", "job", "shell"], **keys}
    )


def layers(job: Standing) -> list[Path]:
    return sorted((private_path(job.root, JOB) / "layers").glob("*/ready"))


def test_what_setup_installs_is_seen_and_cannot_be_changed(tmp_path: Path) -> None:
    job = begin(tmp_path, setup=[INSTALL, "chmod +x /layer/bin/tool; date +%N > /layer/built; ls"])
    answer = job.call("run_command", command="tool; cat /layer/built; echo x > /layer/bin/tool")
    assert "tool\n" in answer
    assert "Read-only file system" in answer
    built = job.call("run_command", command="cat /layer/built").splitlines()[1]
    assert built in answer
    assert not any("layer" in path or "bin" in path for path in job.paths())


def test_the_workspace_shows_folders_of_the_layer_and_keeps_nothing_of_them(tmp_path: Path) -> None:
    shows = {"app/node_modules": "node_modules", "link/node_modules": "node_modules"}
    job = begin(tmp_path, setup=["mkdir /layer/node_modules; echo 1 > /layer/node_modules/a"],
                setup_shows=shows)  # fmt: skip
    job.write("app/a.js", "1")
    show = "cat app/node_modules/a; touch app/node_modules/b; ln -s /tmp link"
    answer = job.call("run_command", command=show)
    assert "1\n" in answer
    assert "Read-only file system" in answer
    assert not any("node_modules" in path for path in job.paths())
    assert job.call("run_command", command="cat app/node_modules/a") == "Exit code 0.\n1"


def test_a_layer_is_built_anew_when_its_inputs_change(tmp_path: Path) -> None:
    job = begin(tmp_path, setup=["ls > /layer/files; cat a.txt >> /layer/files"],
                setup_inputs=["a.txt"])  # fmt: skip
    job.write("a.txt", "one\n")
    job.write("b.txt", "not an input")
    show = "cat /layer/files"
    assert job.call("run_command", command=show) == "Exit code 0.\na.txt\none"
    job.write("b.txt", "changed")
    assert job.call("run_command", command=show) == "Exit code 0.\na.txt\none"
    assert len(layers(job)) == 1
    job.write("a.txt", "two\n")
    assert job.call("run_command", command=show) == "Exit code 0.\na.txt\ntwo"
    assert len(layers(job)) == 2
    os.unlink(layers(job)[0])  # noqa: PTH108
    job.call("run_command", command=show)
    remove_private_folders(job.root, JOB)
    assert not layers(job)


def test_a_failing_setup_stops_the_job_and_says_why(tmp_path: Path) -> None:
    job = begin(tmp_path, setup=["echo one; echo no such index >&2; exit 3"])
    with pytest.raises(
        ApplicationError,
        match=r"shell.setup failed \(exit code 3\): no such index\. Mend .*"
        rf"starter\.py fork {JOB} --phase N --set .*\nIt printed:\none\nno such index$",
    ):
        job.call("run_command", command=":")
    assert not layers(job)


@pytest.mark.parametrize("key", ["network", "setup_network"])
def test_a_refused_host_is_told_with_the_setting_that_would_allow_it(
    tmp_path: Path, key: str
) -> None:
    get = "import urllib.request as r; r.urlopen('http://refused.example/')"
    job = begin(tmp_path, setup=[f'python3 -c "{get}"'], **{key: ["allowed.example"]})
    with pytest.raises(ApplicationError, match=rf"exit code 1; shell\.{key} refused refused\.exam"):
        job.call("run_command", command=":")


def test_a_setup_that_fails_on_the_agents_files_is_answered(tmp_path: Path) -> None:
    job = begin(tmp_path, setup=["grep good a.txt"], setup_inputs=["a.txt"])
    job.write("a.txt", "bad")
    assert "of shell.setup failed (exit code 1)" in job.call("run_command", command=":")
    job.write("a.txt", "good")
    assert job.call("run_command", command=":").startswith("Exit code 0.")


def test_with_the_network_a_command_begins_after_its_setup(tmp_path: Path) -> None:
    job = begin(tmp_path, network=True, setup=["grep good a.txt"], setup_inputs=["a.txt"])
    job.write("a.txt", "bad")
    begun = job.root.path / ".longhaul" / "checkpoints"
    assert "of shell.setup failed (exit code 1)" in job.call("run_command", command=":")
    assert not list(begun.rglob("*.begun"))
    job.write("a.txt", "good")
    assert job.call("run_command", command=":").startswith("Exit code 0.")
    assert len(list(begun.rglob("*.begun"))) == 1


def test_setup_needs_a_sandbox() -> None:
    with pytest.raises(ValueError, match="setup needs a sandbox"):
        ShellConfig.model_validate({"setup": ["true"], "sandbox": "none"})

"""Addresses of remotes: git's, and none that would tell a password."""

from __future__ import annotations

import pytest

from config.loader import load_agent
from config.schema import Problem


@pytest.mark.parametrize(
    "url",
    [
        "file:///srv/checkpoints.git",
        "ssh://git@example.com:2222/checkpoints.git",
        "https://example.com/checkpoints.git",
        "https://someone@example.com/checkpoints.git",
        "git@example.com:team/checkpoints.git",
        None,
    ],
)
def test_addresses_are_taken_as_they_are(url: str | None) -> None:
    assert load_agent("generalist", {"workspace.remote": url}).workspace.remote == url


@pytest.mark.parametrize(
    "url",
    [
        "https://someone:secret@example.com/checkpoints.git",
        "ext::sh -c true",
        "--upload-pack=true",
        "ssh://-oProxyCommand=true/x",
        "-oProxyCommand=true:x",
        "/srv/checkpoints.git",
        "https://",
        "",
    ],
)
def test_what_tells_a_password_or_runs_a_program_is_refused(url: str) -> None:
    with pytest.raises(Problem, match=r"set: workspace\.remote"):
        load_agent("generalist", {"workspace.remote": url})

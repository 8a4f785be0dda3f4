"""What a start may say about repositories: no passwords in addresses, valid git names."""

from typing import Any

import pytest
from pydantic import ValidationError

from protocol.git_address import git_address_fault, git_address_without_user
from protocol.publishing import Publish
from protocol.repository_start import RepositoryStart


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("https://git.example.org:8443/tea.git", ""),
        ("https://ada@git.example.org/tea.git", ""),
        ("ssh://git@[::1]:22/tea.git", ""),
        ("git@git.example.org:tea/tea.git", ""),
        ("file:///srv/tea.git", ""),
        ("https://ada:4711@git.example.org/tea.git", "password"),
        ("https://ada:x7/11@git.example.org/tea.git", "password"),
        ("ada:4711@git.example.org:tea.git", "password"),
        ("ext::sh -c true", "form"),
        ("--upload-pack=true", "form"),
        ("ssh://-oProxyCommand=true/x", "form"),
        ("ssh://ada@-oProxyCommand=true/x", "form"),
        ("/srv/tea.git", "form"),
        ("https://", "form"),
    ],
)
def test_addresses(address: str, fault: str) -> None:
    assert git_address_fault(address) == fault


def test_people_are_shown_no_user() -> None:
    assert git_address_without_user("https://ada@h/tea.git") == "https://h/tea.git"
    assert git_address_without_user("git@h:tea.git") == "git@h:tea.git"


@pytest.mark.parametrize(
    "name",
    ["", "-x", "/x", "x/", "x.", "a..b", "a//b", "a b", "a~1", "a.lock", "a/.b", "@{", "a\nb"],
)
def test_names_that_git_does_not_take(name: str) -> None:
    with pytest.raises(ValidationError, match="expected the name of a branch"):
        Publish(remote="file:///x", branch=name)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "give either url or folder"),
        ({"url": "file:///x", "folder": "/y"}, "give either url or folder"),
        ({"folder": "/y", "ref": "main"}, "ref, depth and token_variable go with url"),
        ({"url": "file:///x", "token_variable": "T"}, "is for https:// and http:// addresses"),
        ({"url": "file:///x", "subfolder": "../y"}, "expected a path within the repository"),
        ({"url": "file:///x", "depth": 0}, "greater than or equal to 1"),
    ],
)
def test_starts_that_cannot_be_used(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        RepositoryStart.model_validate(fields)


def test_what_is_pushed_goes_to_where_it_came_from_unless_another_is_named() -> None:
    start = RepositoryStart(url="https://h/tea.git", token_variable="TEA")
    filled = Publish(branch="x").completed(start)
    assert (filled.remote, filled.token_variable) == ("https://h/tea.git", "TEA")
    other = Publish(branch="x", remote="https://other/x.git").completed(start)
    assert (other.remote, other.token_variable) == ("https://other/x.git", None)
    with pytest.raises(ValueError, match="name the remote to push to"):
        Publish(branch="x").completed(RepositoryStart(folder="/tea"))

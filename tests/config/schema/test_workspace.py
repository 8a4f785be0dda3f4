"""Addresses of remotes: those that git takes, and none that contain a password."""

import pytest

from config.agent_files import load_agent
from config.schema.agent import ConfigError


@pytest.mark.parametrize(
    "url",
    [
        "file:///srv/checkpoints.git",
        "ssh://git@example.com:2222/checkpoints.git",
        "https://example.com/checkpoints.git",
        "https://someone@example.com/checkpoints.git",
        "git@example.com:team/checkpoints.git",
        "ssh://example.com:2222/~me@home/checkpoints.git",
        "ssh://git@[::1]:2222/checkpoints.git",
        "file:///srv/a:b@c.git",
        None,
    ],
)
def test_addresses_are_taken_as_they_are(url: str | None) -> None:
    assert load_agent("generalist", {"workspace.remote": url}).workspace.remote == url


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c true",
        "--upload-pack=true",
        "ssh://-oProxyCommand=true/x",
        "-oProxyCommand=true:x",
        "/srv/checkpoints.git",
        "https://",
        "file:///srv/\0.git",
        "",
    ],
)
def test_what_is_no_address_or_runs_a_program_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"set: workspace\.remote"):
        load_agent("generalist", {"workspace.remote": url})


@pytest.mark.parametrize(
    "url",
    [
        "https://someone:s3cret-4711@example.com/checkpoints.git",
        "https://:s3cret-4711@example.com/checkpoints.git",
        "https://someone:a/s3cret-4711@example.com/checkpoints.git",
        "https://someone:a s3cret-4711@example.com/checkpoints.git",
        "ssh://git:s3cret-4711@example.com:2222/checkpoints.git",
        "someone:s3cret-4711@example.com:checkpoints.git",
        "someone:s3cret-4711@example.com/checkpoints.git",
    ],
)
def test_a_password_is_refused_and_not_told(url: str) -> None:
    with pytest.raises(ConfigError, match="an address without a password") as refused:
        load_agent("generalist", {"workspace.remote": url})
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "s3://checkpoints",
        "s3://checkpoints/team/a_b=c",
        "s3://check.points-1/x/?endpoint=http://127.0.0.1:9000&region=eu-1",
    ],
)
def test_buckets_are_taken(url: str) -> None:
    assert load_agent("generalist", {"workspace.remote": url}).workspace.remote == url


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3://checkpoints/../x",
        "s3://checkpoints/a b",
        "s3://checkpoints?endpoint=file:///etc",
        "s3://checkpoints?secret=4711",
        "s3://checkpoints#x",
    ],
)
def test_what_names_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="expected s3://bucket"):
        load_agent("generalist", {"workspace.remote": url})


@pytest.mark.parametrize("url", ["s3://UP/x", "s3://ck/team", f"s3://{'x' * 64}"])
def test_a_name_that_no_bucket_can_have_is_refused_as_such(url: str) -> None:
    with pytest.raises(ConfigError, match="a bucket's name has 3 to 63 characters"):
        load_agent("generalist", {"workspace.remote": url})


def test_keys_in_a_bucket_address_are_refused_and_not_told() -> None:
    with pytest.raises(ConfigError, match="an address without credentials") as refused:
        load_agent("generalist", {"workspace.remote": "s3://key:s3cret-4711@checkpoints/x"})
    assert "s3cret" not in str(refused.value)

import random
from pathlib import PurePosixPath

import pytest

from activities.checkpoints import Files, FilesError
from activities.checkpoints.checkpoint_errors import PathRefused
from activities.checkpoints.entry_names import parse_path


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a", ("a",)),
        ("a/b.md", ("a", "b.md")),
        ("./a//./b/", ("a", "b")),
        ("...", ("...",)),
        ("..a/b..", ("..a", "b..")),
        ("~/x", ("~", "x")),
        (".git/config", (".git", "config")),
        ("\udcff", ("\udcff",)),
        ("x" * 255, ("x" * 255,)),
    ],
)
def test_a_path_in_the_workspace(path: str, parts: tuple[str, ...]) -> None:
    assert parse_path(path) == parts


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/etc/passwd", "relative to the workspace"),
        ("//x", "relative to the workspace"),
        ("..", "from the top"),
        ("a/../b", "from the top"),
        ("a/./../../b", "from the top"),
        ("a\\..\\b", "use /"),
        ("C:\\x", "use /"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("a\x9bb", "control"),
        ("\ud800", "plain text"),
        ("", "in it"),
        (".", "in it"),
        ("x" * 256, "255 bytes"),
        ("ü" * 128, "255 bytes"),
        ("a/" * 1025, "2,048 bytes"),
        ("a/" * 201, "deep"),
    ],
)
def test_a_refused_path_is_named_and_says_what_to_do(path: str, advice: str) -> None:
    with pytest.raises(PathRefused, match=advice) as refused:
        parse_path(path)
    message = str(refused.value)
    assert message.isprintable()
    assert len(message) < 250


def test_the_root_only_where_it_is_meant() -> None:
    assert parse_path("", allow_root=True) == parse_path("./.", allow_root=True) == ()


PIECES = [
    "..", ".", "/", "//", "\\", "\0", "a", "link", "out", "up", "\u2024\u2024", "%2e%2e", "\uff0e",
    "..\\", "\udc2e", "\udcff", "~", "..;", "C:", "\r", "x" * 260, "\u202e", "", " ", ".git",
]  # fmt: skip


def test_ten_thousand_nasty_paths_never_leave(store) -> None:
    dice = random.Random(5)
    files = Files.empty(store).link("link", "..").link("out", "/etc").link("a/up", "../..")
    files = files.link("x/up", "../a/../../x")
    through_links = 0
    for _ in range(10_000):
        path = "".join(
            dice.choice(PIECES) + dice.choice(["/", "/", ""]) for _ in range(dice.randrange(1, 7))
        )
        try:
            parts = parse_path(path, allow_root=True)
        except PathRefused:
            continue
        normal = PurePosixPath(*parts)
        assert not normal.is_absolute()
        assert not {"..", ".", ""} & set(normal.parts)
        try:
            files.write(path, b"")
        except (PathRefused, FilesError):
            through_links += 1
    assert through_links

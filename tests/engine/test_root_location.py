"""What a person is told of a workspaces root that cannot be written."""

import errno
import os
from pathlib import Path

import pytest

from engine.root_location import describe_unwritable_root


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free space there"),
        (errno.EROFS, "set LONGHAUL_WORKSPACES to a folder that can"),
    ],
)
def test_another_folder_is_no_remedy_for_a_full_one(number: int, remedy: str) -> None:
    text = describe_unwritable_root(Path("/srv/root"), OSError(number, os.strerror(number)))
    assert text.startswith("the workspaces root /srv/root cannot be written (")
    assert text.endswith(f"); {remedy}")

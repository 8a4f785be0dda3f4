"""The time of a digest: an hour and a minute of a zone that is known."""

import pytest
from pydantic import ValidationError

from config.schema.notifications import Notify, digest_time


@pytest.mark.parametrize(
    ("digest", "read"),
    [("08:00", (8, 0, "UTC")), ("23:59 Europe/Berlin", (23, 59, "Europe/Berlin"))],
)
def test_a_time_has_a_zone_or_is_in_utc(digest: str, read: tuple[int, int, str]) -> None:
    assert digest_time(str(Notify(digest=digest).digest)) == read


@pytest.mark.parametrize(
    "digest", ["8:00", "24:00", "08:60", "daily", "08:00 Mars/Base", "08:00 ../x", "08:00 /etc"]
)
def test_another_time_is_refused(digest: str) -> None:
    with pytest.raises(ValidationError, match="time"):
        Notify(digest=digest)

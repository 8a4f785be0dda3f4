"""The audit of pinned versions, against a server with the protocol of the database."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.audit import audit_pinned_versions, versions_to_audit
from tests.http_server import Handler, served

REPOSITORY = Path(__file__).parents[2]


class _Database(Handler):
    def do_POST(self) -> None:
        request = json.loads(self.body())
        results = [
            {"vulns": [{"id": "PYSEC-1"}, {"id": "GHSA-2"}]}
            if (query["package"]["name"], query["version"]) == ("tea", "1.0")
            else {}
            for query in request["queries"]
        ]
        self.give_json({"results": results} if self.path == "/v1" else [])


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with served(_Database) as address:
        yield address


@pytest.fixture
def pins(tmp_path: Path) -> str:
    file = tmp_path / "requirements.txt"
    file.write_text("tea==1.0 \\\n    --hash=sha256:00\nmilk[hot]==2.1 ; python_version > '3'\n")
    return str(file)


def test_known_vulnerabilities_fail_it(
    database: str, pins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit_pinned_versions([pins], f"{database}/v1") == 1
    out = capsys.readouterr().out
    assert "tea==1.0: PYSEC-1, GHSA-2" in out
    assert "2 pinned versions checked, 1 with" in out


def test_without_any_it_passes(database: str, tmp_path: Path) -> None:
    (tmp_path / "pins").write_text("tea==1.1\n")
    assert audit_pinned_versions([str(tmp_path / "pins")], f"{database}/v1") == 0


@pytest.mark.parametrize("odd", ["http://127.0.0.1:1/v1", "{database}/other"])
def test_where_nothing_could_be_checked_it_says_so_and_does_not_fail(
    database: str, pins: str, odd: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit_pinned_versions([pins], odd.format(database=database)) == 0
    assert "NOT CHECKED" in capsys.readouterr().out


def test_all_of_our_pins_are_read() -> None:
    files = [REPOSITORY / name for name in ("requirements.txt", "requirements-dev.txt")]
    versions = dict(versions_to_audit(*files))
    assert len(versions) > 50
    assert {"temporalio", "pydantic", "pytest"} <= set(versions)

"""Looks up known vulnerabilities of the pinned versions in a public database (OSV): `make audit`.

Exits with 1 if there are any. If the database cannot be reached, it reports that nothing was
checked and exits with 0.
"""

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ADDRESS = "https://api.osv.dev/v1/querybatch"
SECONDS = 30
AT_ONCE = 500
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)


def versions_to_audit(*files: Path) -> list[tuple[str, str]]:
    """Return names and versions from requirements files, sorted."""
    pins = {pin for file in files for pin in _PIN.findall(file.read_text(encoding="utf-8"))}
    return sorted(pins)


def known_advisories(pins: list[tuple[str, str]], address: str) -> dict[str, list[str]]:
    """Return ids of advisories by `name==version`.

    Raises:
        OSError: The database does not answer.
        ValueError, LookupError, TypeError, AttributeError: The response is not the database's.
    """
    advisories: dict[str, list[str]] = {}
    for first in range(0, len(pins), AT_ONCE):
        part = pins[first : first + AT_ONCE]
        queries = [
            {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
            for name, version in part
        ]
        results = _query_advisories(address, {"queries": queries})["results"]
        for (name, version), result in zip(part, results, strict=True):
            if ids := [str(entry["id"]) for entry in result.get("vulns") or []]:
                advisories[f"{name}=={version}"] = ids
    return advisories


def _query_advisories(address: str, question: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        address, json.dumps(question).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        answer_data: dict[str, Any] = json.load(answer)
    return answer_data


def audit_pinned_versions(files: list[str], address: str = ADDRESS) -> int:
    """Print the known vulnerabilities and return the exit code."""
    pins = versions_to_audit(*map(Path, files))
    try:
        advisories = known_advisories(pins, address)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        print(f"NOT CHECKED: {address} cannot be asked ({' '.join(str(error).split())[:200]}).")
        return 0
    for pin, ids in advisories.items():
        print(f"{pin}: {', '.join(ids)}  https://osv.dev/vulnerability/{ids[0]}")
    print(f"{len(pins)} pinned versions checked, {len(advisories)} with known vulnerabilities.")
    return 1 if advisories else 0


if __name__ == "__main__":
    sys.exit(audit_pinned_versions(sys.argv[1:] or ["requirements.txt", "requirements-dev.txt"]))

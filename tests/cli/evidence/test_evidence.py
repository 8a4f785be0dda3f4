"""The archive of a real job: verified where there is nothing else, and what a forger changes."""

import asyncio
import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.converter import PayloadCodec

from activities.checkpoints import Root
from activities.checkpoints.journal_records import BLOB, JournalRecord
from activities.checkpoints.packfile import PackWriter, pack_entry_head, read_pack_entries
from activities.commands import sandbox
from cli.app import main
from cli.evidence.archive_file import (
    MANIFEST,
    BrokenArchive,
    read_archive,
    write_archive,
)
from cli.evidence.verification import Verification, check_signature, verify_archive
from cli.signing_key import SigningKey, read_public_keys
from engine import codec
from engine.converter import VARIABLE
from engine.development import DevelopmentServer
from rehearsal.request_view import RequestView
from tests.cli.conftest import REPOSITORY
from tests.soak import soak
from tests.ssh_keys import make_key
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, close, hand_over, job, plan

CONFINED = sandbox.sandbox_problem(sandbox.find_bwrap()) is None
RUN: Call = ("run_command", {"command": "cd output; echo tea > tea.md; echo more > more.md"})
WRITES: list[Call] = [
    ("write_file", {"path": f"output/{name}.md", "content": f"{name}\n"})
    for name in ("tea", "more")
]
NAME = "tea/1"


def work(view: RequestView) -> list[Call]:
    """Claim a todo before its work was done, do the work, and claim it again."""
    if view.current_todo and view.current_todo.text.endswith("rest") and not view.calls:
        return [("append_file", {"path": "output/tea.md", "content": "rest\n"})]
    if not view.refusal or view.calls:
        return [DONE]
    return [RUN] if CONFINED else WRITES


def start() -> dict[str, Any]:
    settings: dict[str, Any] = {"limits.history_events": 100, "approve": ["append_file"]}
    if CONFINED:
        verifier = {"name": "tests", "command": "grep -q tea output/tea.md"}
        settings |= {"tools": ["files", "todos", "job", "shell"], "verifiers": [verifier]}
    return job(set=settings)


def model() -> Short:
    first = {"command": "grep -q tea output/tea.md"} if CONFINED else {"file_exists": "output/*.md"}
    todos: list[dict[str, Any]] = [
        {"content": "Work on tea", "done_when": first},
        {"content": "Work on more", "done_when": {"file_exists": "output/more.md"}},
        {"content": "Work on the rest"},
    ]
    return Short(
        {
            "Plan": [plan("[ ] Brew"), hand_over(*todos), DONE],
            "Work": work,
            "Mark": [DONE],
            "Close": [close("output/none.md"), close("output/tea.md")],
        }
    )


@dataclass(frozen=True)
class Evidence:
    """An archive, and the keys of its operator."""

    path: Path
    key: Path
    collected: dict[str, Any]
    """What the command told of it."""

    @property
    def public(self) -> Path:
        return self.key.with_suffix(".pub")


def collect(address: str, folder: Path, key: Path) -> dict[str, Any]:
    """Run the command."""
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(told):
        patch.setenv("LONGHAUL_WORKSPACES", str(folder / "root"))
        patch.setenv("TEMPORAL_ADDRESS", address)
        path = str(folder / "tea.tar")
        assert main(["evidence", NAME, "-o", path, "--key", str(key), "--json"]) == 0
    collected: dict[str, Any] = json.loads(told.getvalue())
    return collected


@pytest.fixture(scope="session")
async def evidence(
    running: DevelopmentServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Evidence]:
    """Return the evidence of a job of several runs, with refusals, a remark and an approval."""
    folder = tmp_path_factory.mktemp("evidence")
    root, key = Root.open(folder / "root", create=True), make_key(folder / "key")
    async with serving(running.client, root, model()) as jobs:
        handle = await jobs.start(start(), job_id=NAME)
        await handle.signal("tell", {"text": "Use green tea.", "by": "ada"})
        await jobs.until(handle, waiting_for="approval")
        await handle.signal("approve", {"reason": "A little.", "by": "ada"})
        assert (await jobs.result(handle, 60))["status"] == "completed"
        collected = await asyncio.to_thread(collect, running.address, folder, key)
    yield Evidence(folder / "tea.tar", key, collected)


def verdicts(verification: Verification) -> dict[str, str]:
    return {claim.name: claim.verdict for claim in verification.claims}


def contradicted(verification: Verification) -> set[str]:
    return {claim.name for claim in verification.claims if claim.found}


def test_it_is_verified_where_there_is_nothing_else(evidence: Evidence) -> None:
    """Neither network nor environment, server, worker or model."""
    # Root keeps its other users: commands run as nobody.
    alone = ["unshare", "-n" if os.geteuid() == 0 else "-rn"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        alone = []
    ran = subprocess.run(
        [*alone, sys.executable, "starter.py", "verify", evidence.path, "--key", evidence.public,
         "--json", "--run"],
        env={}, cwd=REPOSITORY, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads(ran.stdout)
    assert (told["job"], told["head"]) == (NAME, evidence.collected["digest"])
    found = {claim["claim"]: claim for claim in told["claims"]}
    for name, claim in found.items():
        expected = "unchecked" if name == "verifiers" and not CONFINED else "holds"
        assert (claim["verdict"], claim["rests_on"] != "") == (expected, True), claim
    assert set(found) >= {"signature", "objects", "decisions", "gates", "todos", "documents"}
    assert evidence.collected["runs"] > 1
    assert f"{evidence.collected['runs']} runs" in found["decisions"]["seen"]
    assert "1 refused" in found["gates"]["seen"]
    assert "2 conditions" in found["todos"]["seen"]
    assert [(row["statement"], row["status"]) for row in told["table"]] == [
        ("Make tea.", "completed")
    ]
    [unknown] = found["decisions"]["unchecked"]
    assert "local activities" in unknown


def test_git_and_ssh_read_it_too(evidence: Evidence, tmp_path: Path) -> None:
    with tarfile.open(evidence.path) as archive:
        for member in archive:
            archive.extract(member, tmp_path)
    people = json.loads((tmp_path / "people.json").read_text())
    assert [told.get("signal") for told in people] == ["tell", None, None, "approve"]
    assert people[1]["call"] == "append_file"
    assert people[2]["shown"]["path"] == "output/tea.md"
    assert people[3]["payload"] == [{"reason": "A little.", "by": "ada"}]
    rows = json.loads((tmp_path / "table.json").read_text())
    assert {row["status"] for row in rows} == {"completed"}
    git = ["git", "--git-dir", str(tmp_path / "checkpoints.git"), "fsck", "--strict"]
    checked = subprocess.run(git, capture_output=True, text=True, check=True)
    assert not [line for line in checked.stderr.splitlines() if "missing" in line]
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    allowed = tmp_path / "allowed"
    allowed.write_text(f"ada@example.org {evidence.public.read_text()}")
    command = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", "ada@example.org"]
    command += ["-n", "longhaul-evidence", "-s", str(tmp_path / "head.sig")]
    head = (tmp_path / "head").read_bytes()
    subprocess.run(command, input=head, capture_output=True, check=True)
    # And the other way round.
    evidence.key.chmod(0o600)
    sign = ["ssh-keygen", "-Y", "sign", "-f", str(evidence.key), "-n", "longhaul-evidence"]
    made = subprocess.run(sign, input=head, capture_output=True, check=True).stdout
    assert made == (tmp_path / "head.sig").read_bytes()


def test_what_is_flipped_removed_or_moved_is_found(evidence: Evidence, tmp_path: Path) -> None:
    data, chance = evidence.path.read_bytes(), random.Random(1)
    with tarfile.open(evidence.path) as archive:
        members = [
            (info.name, info.offset, info.offset_data, info.size) for info in archive.getmembers()
        ]
    ends = [offset for _, offset, _, _ in members[1:]]
    ends.append(members[-1][2] - -members[-1][3] // 512 * 512)
    parts = [data[begin:end] for (_, begin, _, _), end in zip(members, ends, strict=True)]
    rest = data[ends[-1] :]
    [place] = [n for n, member in enumerate(members) if member[0] == MANIFEST]
    lines = data[members[place][2] :][: members[place][3]].splitlines(keepends=True)

    def flip() -> bytes:
        changed = bytearray(data)
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(changed)

    def with_parts(change: Callable[[list[Any]], None]) -> bytes:
        new = [*parts]
        change(new)
        return b"".join(new) + rest

    def with_lines(change: Callable[[list[Any]], None]) -> bytes:
        new = [*lines]
        change(new)
        text = b"".join(new)
        info = tarfile.TarInfo(MANIFEST)
        info.size = len(text)
        record = info.tobuf(tarfile.USTAR_FORMAT) + text + bytes(-len(text) % 512)
        return b"".join([*parts[:place], record, *parts[place + 1 :]]) + rest

    def remove(values: list[Any]) -> None:
        values.pop(chance.randrange(len(values)))

    def swap(values: list[Any]) -> None:
        one, other = chance.sample(range(len(values)), 2)
        values[one], values[other] = values[other], values[one]

    ways: list[Callable[[], bytes]] = [
        *[flip] * 3,
        lambda: with_parts(remove),
        lambda: with_parts(swap),
        lambda: with_lines(remove),
        lambda: with_lines(swap),
        lambda: data[: chance.randrange(len(data))],
    ]
    target, missed = tmp_path / "changed.tar", []
    for number in range(soak(200, 2000)):
        target.write_bytes(ways[number % len(ways)]())
        try:
            archive_read = read_archive(target)
        except BrokenArchive:
            continue
        if not check_signature(archive_read, []).found:
            missed.append(number)
    assert not missed


def forged(evidence: Evidence, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Write an archive of which a forger has changed something and computed all digests anew."""
    archive = read_archive(evidence.path)
    members = {path: archive.read(path) for path in archive.members}
    change(members)
    write_archive(target, archive.job, dict(members))
    return target


def in_histories(change: Callable[[str], str], kind: str = "") -> Any:
    """Return a forgery of the payloads of all events, or of those of a kind."""

    def forge(members: dict[str, bytes]) -> None:
        paths = [path for path in members if path.startswith("histories/")]
        for path in paths:
            history = WorkflowHistory.from_json(NAME, gzip.decompress(members[path]).decode())
            for event in history.events:
                about = getattr(event, event.WhichOneof("attributes") or "")
                for payload in list_payloads(about) if kind in type(about).__name__ else ():
                    payload.data = change(payload.data.decode()).encode()
            members[path] = gzip.compress(history.to_json().encode())

    return forge


def list_payloads(about: Any) -> list[Any]:
    """Return the payloads of an event that a codec encrypts."""
    parts = [getattr(about, name, None) for name in ("input", "result")]
    parts += [about.details[name] for name in getattr(about, "details", {}) if name == "result"]
    return [payload for part in parts if part is not None for payload in part.payloads]


def replacing(old: str, new: str, kind: str = "") -> Any:
    return in_histories(lambda text: text.replace(old, new), kind)


def rewriting(path: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def forge(members: dict[str, bytes]) -> None:
        assert old in members[path]
        members[path] = members[path].replace(old, new)

    return forge


def without_a_run(members: dict[str, bytes]) -> None:
    about = json.loads(members["job.json"])
    gone = next(path for path in members if about["runs"][1] in path)
    left = {about["runs"].pop(1)} and about["runs"]
    histories = [members.pop(path) for path in list(members) if path.startswith("histories/")]
    del histories[int(gone.removeprefix("histories/")[:4]) - 1]
    for number, (run, data) in enumerate(zip(left, histories, strict=True), 1):
        members[f"histories/{number:04d}-{run}.json.gz"] = data
    members["job.json"] = json.dumps(about).encode()


def with_damaged_pack(members: dict[str, bytes]) -> None:
    [path] = [path for path in members if path.endswith(".pack")]
    data = bytearray(members[path])
    data[len(data) // 2] ^= 1
    members[path] = bytes(data)


def with_another_file(members: dict[str, bytes]) -> None:
    """Put another content under the id of a file, with a pack and an index that agree."""
    [old] = [path for path in members if path.endswith(".pack")]
    with TemporaryDirectory() as name:
        folder = Path(name)
        for suffix in (".pack", ".idx"):
            (folder / "old").with_suffix(suffix).write_bytes(
                members.pop(old.removesuffix(".pack") + suffix)
            )
        blob = JournalRecord.create(BLOB, b"tea\nrest\n")
        writer = PackWriter(folder)
        entries = dict(read_pack_entries(folder / "old.pack"))
        assert blob.id in entries
        entries[blob.id] = pack_entry_head(BLOB, 7) + zlib.compress(b"coffee\n")
        for oid, entry in entries.items():
            writer.copy(oid, entry)
        writer.finish()
        for suffix in (".pack", ".idx"):
            file = writer.pack.with_suffix(suffix)
            members[f"checkpoints.git/objects/pack/{file.name}"] = file.read_bytes()


def with_other_calls(members: dict[str, bytes]) -> None:
    for path in [path for path in members if path.startswith("histories/")]:
        text = gzip.decompress(members[path]).replace(b'"model_call"', b'"other_call"')
        members[path] = gzip.compress(text)


def never_approved(members: dict[str, bytes]) -> None:
    for path in [path for path in members if path.startswith("histories/")]:
        history = WorkflowHistory.from_json(NAME, gzip.decompress(members[path]).decode())
        for event in history.events:
            if event.workflow_execution_signaled_event_attributes.signal_name == "approve":
                event.workflow_execution_signaled_event_attributes.signal_name = "deny"
        members[path] = gzip.compress(history.to_json().encode())
    rewriting("people.json", b'"signal": "approve"', b'"signal": "deny"')(members)


def back_to_the_start(members: dict[str, bytes]) -> None:
    members["checkpoints.git/refs/heads/result"] = members["checkpoints.git/refs/tags/phase/0001"]


def with_another_tag(members: dict[str, bytes]) -> None:
    tags = "checkpoints.git/refs/tags/phase"
    members[f"{tags}/0002"] = members[f"{tags}/0001"]


def without_people(members: dict[str, bytes]) -> None:
    members["people.json"] = b"[]\n"


FORGERIES: dict[str, tuple[Callable[[dict[str, bytes]], None], set[str]]] = {
    # What is changed, and the claims that it contradicts at least.
    "a better result": (
        replacing("Tea was made.", "Tea was tested.", "WorkflowExecutionCompleted"),
        {"decisions", "result"},
    ),
    "the same everywhere": (replacing("Tea was made.", "Tea was tested."), {"result"}),
    "a gate's facts": (replacing('"plan_steps":1', '"plan_steps":9'), {"gates"}),
    "a missing deliverable": (
        in_histories(lambda text: text.replace('"missing_deliverables":["', '"missing_x":["')),
        {"decisions", "gates"},
    ),
    "higher limits": (replacing('"history_events":100', '"history_events":101'), {"checkpoints"}),
    "another argument": (replacing('"completes":[', '"completes":[7,'), {"decisions"}),
    "a run left out": (without_a_run, {"decisions"}),
    "another table": (rewriting("table.json", b'"Make tea."', b'"Brew and serve"'), {"documents"}),
    "another prompt": (rewriting("prompts.json", b'"sha256": "', b'"sha256": "0'), {"documents"}),
    "an unheard person": (without_people, {"documents"}),
    "a damaged object": (with_damaged_pack, {"objects"}),
    "another file": (with_another_file, {"objects"}),
    "what nobody approved": (never_approved, {"decisions"}),
    "another tag": (with_another_tag, {"checkpoints"}),
    "a program for git": (
        rewriting("checkpoints.git/config", b"bare", b"fsmonitor = true\n\tbare"),
        {"contents"},
    ),
    "another member": (lambda members: members.update(readme=b"Trust me."), {"contents"}),
    "an earlier result": (back_to_the_start, {"decisions", "result"}),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forger_without_the_key_contradicts_himself(
    evidence: Evidence, tmp_path: Path, name: str
) -> None:
    change, expected = FORGERIES[name]
    path = forged(evidence, tmp_path / "forged.tar", change)
    verification = await verify_archive(path, [], run_commands=False)
    assert verdicts(verification)["digests"] == "holds"
    assert contradicted(verification) >= expected, verification


async def test_a_clock_that_the_replay_has_otherwise_contradicts_nothing(
    evidence: Evidence, tmp_path: Path
) -> None:
    """A workflow task that timed out amid a local activity leaves the state such milliseconds."""

    def later(text: str) -> str:
        return re.sub(r'("seconds":\d+\.\d*)', r"\g<1>1", text)

    changed = in_histories(later, "WorkflowExecutionContinuedAsNew")
    with_the_next = in_histories(later, "WorkflowExecutionStarted")

    def forge(members: dict[str, bytes]) -> None:
        changed(members)
        with_the_next(members)

    verification = await verify_archive(
        forged(evidence, tmp_path / "later.tar", forge), [], run_commands=False
    )
    assert verdicts(verification)["decisions"] == "holds", verification
    forged_path = forged(evidence, tmp_path / "forged.tar", never_approved)
    told = str(await verify_archive(forged_path, [], run_commands=False))
    assert "is not what the workflow returns: acts, approvals, notices" in told


def test_what_is_found_is_told_to_programs_too(
    evidence: Evidence, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = forged(evidence, tmp_path / "forged.tar", with_other_calls)
    assert main(["verify", str(path), "--json"]) == 1
    # Nothing of the failed replay's log is between.
    told = json.loads(capfd.readouterr().out)
    assert told["holds"] is False
    [decisions] = [claim for claim in told["claims"] if claim["claim"] == "decisions"]
    assert "cannot be replayed" in decisions["found"][0]


async def test_a_forger_with_a_key_of_his_own_is_found_by_the_operator_s(
    evidence: Evidence, tmp_path: Path
) -> None:
    """He may have changed nothing, or everything alike."""
    keys = read_public_keys(evidence.public)
    archive = read_archive(evidence.path)
    members: dict[str, bytes | Path] = {path: archive.read(path) for path in archive.members}
    mine = SigningKey.load(make_key(tmp_path / "mine"))
    path = tmp_path / "forged.tar"
    write_archive(path, NAME, members, mine.public.fingerprint, mine.sign)
    [claim] = [check_signature(read_archive(path), keys)]
    assert "is not among the keys" in claim.found[0]
    assert not check_signature(read_archive(path), []).found
    # He cannot say either that it is the operator's.
    write_archive(path, NAME, members, keys[0].fingerprint, mine.sign)
    assert check_signature(read_archive(path), []).found
    write_archive(path, NAME, members)
    assert "not signed" in check_signature(read_archive(path), keys).found[0]


async def test_encrypted_histories_are_checked_where_the_key_is(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = bytes(range(32))
    encoder = codec.EncryptionCodec({"2026": key})
    archive = read_archive(evidence.path)
    members: dict[str, bytes | Path] = {path: archive.read(path) for path in archive.members}
    for path in [path for path in members if path.startswith("histories/")]:
        history = WorkflowHistory.from_json(NAME, gzip.decompress(archive.read(path)).decode())
        for event in history.events:
            about = getattr(event, event.WhichOneof("attributes") or "")
            await _encrypt(list_payloads(about), encoder)
        members[path] = gzip.compress(history.to_json().encode())
    path_here = tmp_path / "encrypted.tar"
    write_archive(path_here, NAME, members)
    told = await verify_archive(path_here, [], run_commands=False)
    assert told.holds
    for name in ("decisions", "gates", "result"):
        [claim] = [claim for claim in told.claims if claim.name == name]
        assert claim.verdict == "unchecked"
        assert VARIABLE in claim.unchecked[0]
    monkeypatch.setenv(VARIABLE, f"2026:{key.hex()}")
    told = await verify_archive(path_here, [], run_commands=False)
    assert told.holds
    assert verdicts(told)["decisions"] == verdicts(told)["gates"] == "holds"


async def _encrypt(payloads: list[Any], encoder: PayloadCodec) -> None:
    for payload in payloads:
        payload.CopyFrom((await encoder.encode([payload]))[0])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["verify", "none.tar"], "none.tar cannot be verified: No such file"),
        (["verify", "{tar}", "--key", "{key}"], "is a private key; name the public one"),
        (["verify", "{tar}", "--key", "{tar}"], "has no public key of type ssh-ed25519"),
        (["evidence", "tea/1", "--key", "{pub}"], "is no private ssh key that can be used"),
        (["evidence", "tea/1", "--key", "none"], "the key none cannot be read: No such file"),
    ],
)
def test_mistakes_are_named(
    evidence: Evidence,
    arguments: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = {"tar": evidence.path, "key": evidence.key, "pub": evidence.public}
    assert main([argument.format(**named) for argument in arguments]) == 2
    assert expected in capsys.readouterr().err


def test_another_file_is_no_archive(
    evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, data in enumerate(
        [b"", b"PK\3\4", bytes(100_000), evidence.path.read_bytes()[:600]]
    ):
        path = tmp_path / f"{number}.tar"
        path.write_bytes(data)
        assert main(["verify", str(path)]) == 1
        assert "FOUND: " in capsys.readouterr().out

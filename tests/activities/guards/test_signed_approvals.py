"""Signed approvals: what a signature is over, whose it is, and what it does not approve."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from activities.guards.signed_approvals import (
    check_signed_approval,
    check_signers,
    check_starter_known,
)
from activities.signatures.ssh_signature import sign_with
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from protocol.approval_statement import (
    SIGNED_AS,
    ApprovalStatement,
    arguments_digest,
    expiry_problem,
)

ADA, BOB, EVE = (Ed25519PrivateKey.generate() for _ in range(3))
STATEMENT = ApprovalStatement(
    job="tea",
    request="1a2b3c4d",
    call="move_file",
    arguments=arguments_digest({"old": "a.md", "new": "b.md"}, "0"),
    expires="2026-11-29T15:00:00+00:00",
)
STARTER = "ada@laptop"


def public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def config(**rule: Any) -> AgentConfig:
    approve = {"tool": "files", "by": ["ada", "bob"], **rule}
    signers = {"ada": public(ADA), "bob": f"{public(BOB)} bob@example.org", "eve": public(EVE)}
    return load_agent("generalist", {"approve": [approve], "signers": signers})


def check(
    key: Ed25519PrivateKey,
    signed: str = STATEMENT.text,
    purpose: str = SIGNED_AS,
    change: Any = lambda text: text,
    **rule: Any,
) -> tuple[str, str]:
    signature = change(sign_with(key, signed.encode(), purpose).decode())
    reply = check_signed_approval(config(**rule), "move_file", STATEMENT.text, signature, STARTER)
    return reply.by, reply.refused


def test_a_named_person_approves_by_signature() -> None:
    assert check(BOB) == ("bob", "")
    assert check(ADA) == ("ada", "")
    # A form may change the ends of lines.
    assert check(BOB, change=lambda text: text.replace("\n", "\r\n").strip()) == ("bob", "")


@pytest.mark.parametrize(
    "other",
    [
        {"job": "coffee"},
        {"request": "99999999"},
        {"call": "delete_file"},
        {"arguments": arguments_digest({"old": "a.md", "new": "c.md"}, "0")},
        {"expires": "2027-01-01T00:00:00+00:00"},
    ],
)
def test_a_signature_is_for_one_call_of_one_job_and_time(other: dict[str, str]) -> None:
    by, refused = check(BOB, STATEMENT.model_copy(update=other).text)
    assert by == ""
    assert "it is not over this text" in refused


def test_what_others_signed_or_for_another_purpose_approves_nothing() -> None:
    by, refused = check(EVE)
    assert by == ""
    assert "is not the key of ada or bob" in refused
    assert "it is not for longhaul-approval" in check(BOB, purpose="longhaul-evidence")[1]
    assert "not in the form of an ssh signature" in check(BOB, change=lambda _: "yes")[1]
    assert "not over this text" in check(BOB, change=lambda text: _with_key(text, EVE))[1]


def _with_key(signature: str, other: Ed25519PrivateKey) -> str:
    """Return the signature with another person's key written into it."""
    lines = signature.splitlines()
    blob = base64.b64decode("".join(lines[1:-1]))
    mine, theirs = (key.public_key().public_bytes_raw() for key in (BOB, other))
    assert mine in blob
    text = base64.b64encode(blob.replace(mine, theirs)).decode()
    cut = [text[start : start + 70] for start in range(0, len(text), 70)]
    return "\n".join([lines[0], *cut, lines[-1], ""])


def test_the_starter_does_not_approve_where_another_has_to() -> None:
    assert check(ADA, not_starter=True) == ("", "ada started the job; another must approve it")
    assert check(BOB, not_starter=True) == ("bob", "")
    for nobody in ("", "  ", "@laptop"):
        with pytest.raises(ConfigError, match='needs to know who starts the job; add "by"'):
            check_starter_known(config(not_starter=True), nobody)
    check_starter_known(config(not_starter=True), STARTER)
    check_starter_known(config(), "")


@pytest.mark.parametrize("spelt", ["ADA@laptop", " ada @laptop", "\uff41da"])
def test_the_starter_is_known_however_his_name_is_spelt(spelt: str) -> None:
    signature = sign_with(ADA, STATEMENT.text.encode(), SIGNED_AS).decode()
    agent = config(not_starter=True)
    reply = check_signed_approval(agent, "move_file", STATEMENT.text, signature, spelt)
    assert reply.refused == "ada started the job; another must approve it"


STRICT = {"tool": "move_file", "by": ["ada"], "not_starter": True}


@pytest.mark.parametrize(
    "loose", [{"tool": "move_file", "by": ["ada"]}, {"tool": "files", "by": ["eve", "bob", "ada"]}]
)
@pytest.mark.parametrize("order", [1, -1])
def test_an_entry_that_a_start_adds_loosens_no_other(
    loose: dict[str, Any], order: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signers = {"ada": public(ADA), "bob": public(BOB), "eve": public(EVE)}
    (tmp_path / "defaults.yaml").write_text(json.dumps({"approve": [STRICT], "signers": signers}))
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path))
    agent = load_agent("generalist", {"approve": [loose, STRICT][::order]})
    check_signers(agent)
    for key, starter, refused in (
        (BOB, "eve", "is not the key of ada"),
        (ADA, "ada", "ada started the job"),
        (ADA, "eve", ""),
    ):
        signature = sign_with(key, STATEMENT.text.encode(), SIGNED_AS).decode()
        reply = check_signed_approval(agent, "move_file", STATEMENT.text, signature, starter)
        assert refused in reply.refused
        assert bool(reply.by) is not bool(refused)
    with pytest.raises(ConfigError, match="approve: move_file: each of its entries counts"):
        check_signers(load_agent("generalist", {"approve": [{**STRICT, "by": ["bob"]}, STRICT]}))


def test_two_entries_of_one_key_do_not_help_the_starter() -> None:
    """A key counts for each name that has it, and each of them has to be another person."""
    approve = {"tool": "files", "by": ["other", "ada"], "not_starter": True}
    both = load_agent(
        "generalist",
        {"approve": [approve], "signers": {"ada": public(ADA), "other": public(ADA)}},
    )
    signature = sign_with(ADA, STATEMENT.text.encode(), SIGNED_AS).decode()
    reply = check_signed_approval(both, "move_file", STATEMENT.text, signature, STARTER)
    assert reply.refused == "ada started the job; another must approve it"


def test_a_signature_ends() -> None:
    expires = STATEMENT.expires
    assert expiry_problem(expires, 1795964399) == ""
    assert expiry_problem(expires, 1795964401) == f"the signature was good until {expires}"
    assert "has no time zone" in expiry_problem("2026-11-29T15:00:00", 0)
    assert "expected a time" in expiry_problem("", 0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"approve": [{"tool": "files", "by": ["ada"]}]},
            "ada has no key; those under signers: none",
        ),
        ({"signers": {"ada": "ssh-rsa AAAA"}}, "signers: ada: expected a public key"),
        ({"signers": {"ada": f"ssh-ed25519 {'A' * 68}"}}, "signers: ada: expected a public key"),
        ({"approve": [{"tool": "files"}]}, "by"),
    ],
)
def test_who_may_approve_is_checked_at_the_start(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_agent("generalist", settings)


def test_ssh_keygen_signs_it_too(tmp_path: Path) -> None:
    key, text = tmp_path / "key", tmp_path / "text"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    try:
        subprocess.run(make, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("ssh-keygen is not installed")
    text.write_text(STATEMENT.text)
    sign = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", SIGNED_AS, str(text)]
    subprocess.run(sign, check=True, capture_output=True)
    signature = (tmp_path / "text.sig").read_text()
    signers = {"ada": key.with_suffix(".pub").read_text().strip()}
    approve = [{"tool": "move_file", "by": ["ada"]}]
    agent = load_agent("generalist", {"approve": approve, "signers": signers})
    reply = check_signed_approval(agent, "move_file", STATEMENT.text, signature, "")
    assert (reply.by, reply.refused) == ("ada", "")

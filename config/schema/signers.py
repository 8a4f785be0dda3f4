"""The schema of `approve` and `signers` in an agent's file: who may approve which calls."""

import re

from pydantic import Field

from config.schema.config_data import ConfigData

_KEY = re.compile(r"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-P][A-Za-z0-9+/]{42}( .*)?")
"""The beginning is the name of the type and the length of the key, as ssh encodes them."""


class SignedApproval(ConfigData):
    tool: str = Field(min_length=1)
    """A tool or tool group."""
    by: list[str] = Field(min_length=1)
    """Names under `signers` whose signature approves a call."""
    not_starter: bool = False
    """Whether the person who started the job may not approve its calls."""


def signer_problem(approvals: list[str | SignedApproval], signers: dict[str, str]) -> str:
    """Return what is wrong with the keys of those who may approve; empty if nothing is."""
    for name, key in signers.items():
        if not _KEY.fullmatch(key.strip()):
            return f"signers: {name}: expected a public key such as 'ssh-ed25519 AAAA…'"
    for entry in approvals:
        if isinstance(entry, SignedApproval):
            for name in entry.by:
                if name not in signers:
                    known = ", ".join(signers) or "none"
                    return f"approve: {entry.tool}: {name} has no key; those under signers: {known}"
    return ""

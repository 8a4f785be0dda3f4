"""Approvals that count only with a person's signature."""

import unicodedata

from activities.signatures.ssh_signature import (
    InvalidSignatureFile,
    read_ssh_keys,
    verify_signature,
)
from activities.toolkit.agent_tools import agent_tools_by_name
from activities.toolkit.registry import select_registered_tools
from config.schema.agent import AgentConfig, ConfigError
from config.schema.signers import SignedApproval
from protocol.approval_statement import SIGNED_AS
from protocol.requests import CheckApprovalReply


def signature_rule(config: AgentConfig, tool: str) -> SignedApproval | None:
    """Return who must sign an approval of this tool's calls; None if nobody must.

    Every entry that names the tool or its group counts: one that a start adds loosens no other.
    """
    known, rules = agent_tools_by_name(config), list[SignedApproval]()
    for entry in config.approve:
        if isinstance(entry, SignedApproval):
            names = {each.name for each in select_registered_tools([entry.tool], known)}
            rules += [entry] if tool in names else []
    if not rules:
        return None
    by = [name for name in rules[0].by if all(name in rule.by for rule in rules)]
    not_starter = any(rule.not_starter for rule in rules)
    return SignedApproval.model_construct(tool=tool, by=by, not_starter=not_starter)


def check_signers(config: AgentConfig) -> None:
    """Raise ConfigError if nobody could approve the calls of a tool."""
    signed = [entry for entry in config.approve if isinstance(entry, SignedApproval)]
    for tool in agent_tools_by_name(config) if len(signed) > 1 else ():
        if (rule := signature_rule(config, tool)) and not rule.by:
            raise ConfigError(
                f"agent {config.name}: approve: {tool}: each of its entries counts, and nobody is "
                "under `by` of all of them"
            )


def check_starter_known(config: AgentConfig, starter: str) -> None:
    """Raise ConfigError if nobody could tell whether the starter approves his own calls."""
    for entry in config.approve:
        if isinstance(entry, SignedApproval) and entry.not_starter and not _person(starter):
            raise ConfigError(
                f"agent {config.name}: approve: {entry.tool}: not_starter needs to know who starts "
                'the job; add "by" to the start, as the command line does'
            )


def check_signed_approval(
    config: AgentConfig, tool: str, statement: str, signature: str, starter: str
) -> CheckApprovalReply:
    """Return who signed the statement, or why that approves nothing.

    Args:
        starter: Who started the job, such as `ada@host`; empty if nobody said.
    """
    rule = signature_rule(config, tool)
    if rule is None:
        return CheckApprovalReply(refused=f"no signature approves {tool}")
    try:
        signer = verify_signature(_as_file(signature), statement.encode(), SIGNED_AS)
    except InvalidSignatureFile as problem:
        return CheckApprovalReply(refused=f"the signature does not approve this call: {problem}")
    names = [name for name in rule.by if signer in read_ssh_keys(config.signers[name])]
    if not names:
        return CheckApprovalReply(
            refused=f"{signer.fingerprint} is not the key of {' or '.join(rule.by)}"
        )
    # A key under two names is one person's.
    keyed = [name for name, key in config.signers.items() if signer in read_ssh_keys(key)]
    for name in keyed if rule.not_starter else ():
        if _person(name) == _person(starter):
            return CheckApprovalReply(refused=f"{name} started the job; another must approve it")
    return CheckApprovalReply(by=names[0])


def _as_file(signature: str) -> bytes:
    """Return the signature as ssh-keygen writes it, whatever a form made of its ends of lines."""
    return "\n".join([*signature.strip().splitlines(), ""]).encode()


def _person(name: str) -> str:
    return unicodedata.normalize("NFKC", name).partition("@")[0].strip().casefold()

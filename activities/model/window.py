"""What fills a model's context window before any work, and what can be left out of it."""

from activities.job.snapshot import Snapshot
from activities.model.prompt import count_prompt_tokens, fixed_prompt_tokens
from activities.text.tokens import count_tokens, token_encoding_name

OPENING = ("the system prompt", "the first message")
SMALL = "the agent `small` has few tools and short prompts"


def prompt_parts(snapshot: Snapshot) -> dict[str, int]:
    model = snapshot.config.model_for(snapshot.state.phase.kind)
    encoding, conversation = token_encoding_name(model.name), snapshot.conversation
    parts = {"the tools": fixed_prompt_tokens(snapshot)}
    for place, name in enumerate(OPENING[: len(conversation)]):
        text = str(conversation.message(place).get("content") or "")
        parts[name] = count_tokens(text, encoding)
    ratio = snapshot.state.token_ratio
    parts = {name: round(tokens * ratio) for name, tokens in parts.items()}
    rest = count_prompt_tokens(snapshot) - sum(parts.values())
    return {**parts, "the rest": max(0, rest)}


def window_notice(snapshot: Snapshot) -> str:
    """Return what people read of a window that the beginning of a phase does not fit into."""
    config = snapshot.config
    model = config.model_for(snapshot.state.phase.kind)
    limit, parts = config.context.compaction_limit(model), prompt_parts(snapshot)
    if sum(parts.values()) < limit:
        return ""
    setting = f"model.window {model.window:,}, of which " if model.window else ""
    return (
        f"the requests of {config.name} have {sum(parts.values()):,} tokens before any work "
        f"({_listed(parts)}), and {limit:,} are allowed ({setting}context.tokens and "
        f"context.share leave {limit:,}): nothing can be compacted. {SMALL}; or leave out tools."
    )


def window_remedy(snapshot: Snapshot) -> str:
    """Return what fills a request that is too long, and what can be left out, for people."""
    parts = prompt_parts(snapshot)
    largest = max(parts, key=lambda name: parts[name])
    agent = snapshot.config.name
    helps = {
        "the tools": f"leave out tools of the agent {agent}, or take another: {SMALL}",
        "the system prompt": "shorten workspace.md, which it holds, and rewind",
        "the first message": "shorten instructions.md and rewind",
    }.get(largest, "rewind to the beginning of the phase")
    return f"the request has {sum(parts.values()):,} tokens by our count, {_listed(parts)}: {helps}"


def _listed(parts: dict[str, int]) -> str:
    return ", ".join(f"{name} {tokens:,}" for name, tokens in parts.items() if tokens)

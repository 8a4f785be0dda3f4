"""What is known of providers by address and model name, before the first request.

Where it is wrong or missing, the endpoint's refusals correct it (`activities.model.dialect`).
"""

import hashlib
import os
import re
from typing import Literal
from urllib.parse import urlsplit

from activities.redaction.credentials import without_credentials
from config.schema.model_settings import ModelConfig

Api = Literal["chat", "responses"]
Marks = Literal["none", "breakpoint", "cache_control"]

REHEARSAL = "rehearsal"
OPENAI = "https://api.openai.com/v1"
"""Default address of the client."""
ANTHROPIC = "api.anthropic.com"
OPENROUTER = "openrouter.ai"
NEEDS_BREAKPOINTS = re.compile(r"\bgpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)(?!\d)")
"""OpenAI's models from gpt-5.6 on; earlier ones cache every prefix without marks."""
CLAUDE = re.compile(r"claude", re.IGNORECASE)


def has_endpoint(model: ModelConfig) -> bool:
    return bool(
        model.base_url
        or os.environ.get("OPENAI_BASE_URL")
        or os.environ.get(model.api_key_variable)
    )


def endpoint_model_name(model: ModelConfig) -> str:
    """Return the model's name to pin: the rehearsal model if no endpoint is configured."""
    return model.name if has_endpoint(model) else REHEARSAL


def provider_address(model: ModelConfig) -> str:
    return model.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI


def describe_provider(model: ModelConfig) -> str:
    if endpoint_model_name(model) == REHEARSAL:
        return "rehearsal model"
    # Some endpoints have credentials in the address, which must not be shown.
    return f"{without_credentials(provider_address(model))}, model {model.name}"


def provider_name(model: ModelConfig) -> str:
    """Return a name for endpoint and model: data for one of them is sent to no other."""
    return f"{without_credentials(provider_address(model))} {model.name}"


def provider_api(model: ModelConfig) -> Api:
    """Return the API known for an address: OpenAI's own has the Responses API for all models."""
    # Without an address or a key it is the rehearsal model, or nothing.
    is_openai = has_endpoint(model) and _provider_host(model) == _provider_address_host(OPENAI)
    return "responses" if is_openai and model.name != REHEARSAL else "chat"


def provider_cache_marks(model: ModelConfig) -> Marks:
    """Return how requests to the model mark what should be cached."""
    host = _provider_host(model)
    if CLAUDE.search(model.name):
        # Its own OpenAI-compatible address caches nothing.
        return "none" if host == ANTHROPIC else "cache_control"
    if NEEDS_BREAKPOINTS.search(model.name):
        # The router accepts marks in the other form and translates them.
        return "cache_control" if _is_in_provider_domain(host, OPENROUTER) else "breakpoint"
    return "none"


def takes_cache_key(model: ModelConfig) -> bool:
    """Whether a key makes it likelier that requests meet the same cache."""
    host = _provider_host(model)
    return (
        model.cache_marks == "breakpoint"
        or provider_api(model) == "responses"
        or _is_in_provider_domain(host, "openai.azure.com")
    )


def drops_reasoning_when_forced(model: ModelConfig) -> bool:
    """Whether a forced `tool_choice` silently drops reasoning, or is refused with it."""
    return bool(CLAUDE.search(model.name)) or _is_in_provider_domain(
        _provider_host(model), OPENROUTER
    )


def provider_cache_key(job: str, part: object) -> str:
    """Return a part's `prompt_cache_key`: at most 64 characters, without names of people."""
    return f"longhaul-{hashlib.sha256(f'{job}/{part}'.encode()).hexdigest()[:32]}"


def _provider_host(model: ModelConfig) -> str:
    return _provider_address_host(provider_address(model))


def _provider_address_host(address: str) -> str:
    return urlsplit(address).hostname or ""


def _is_in_provider_domain(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")

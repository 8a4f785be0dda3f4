"""What is known of a provider before it was asked."""

import pytest

from activities.model.dialect import Dialect
from activities.model.providers import (
    describe_provider,
    drops_reasoning_when_forced,
    provider_cache_key,
    provider_name,
    takes_cache_key,
)
from config.schema.model_settings import ModelConfig

ROUTER = "https://openrouter.ai/api/v1"


@pytest.mark.parametrize(
    ("address", "name", "api", "marks", "has_key"),
    [
        (None, "gpt-6-sol", "responses", "breakpoint", True),
        (None, "gpt-5.6-terra", "responses", "breakpoint", True),
        (None, "gpt-5.4-mini", "responses", "none", True),
        (None, "gpt-5-mini", "responses", "none", True),
        ("https://x.openai.azure.com/openai/v1", "mine", "chat", "none", True),
        ("http://gateway/v1", "gpt-6.1-sol", "chat", "breakpoint", True),
        ("http://gateway/v1", "anthropic/claude-opus-5", "chat", "cache_control", False),
        (ROUTER, "openai/gpt-6-sol", "chat", "cache_control", False),
        ("https://api.anthropic.com/v1", "claude-opus-5", "chat", "none", False),
        ("http://host/v1", "llama", "chat", "none", False),
        # The rehearsal model has no address.
        (None, "rehearsal", "chat", "none", False),
    ],
)
def test_api_and_marks_go_by_address_and_name(
    monkeypatch: pytest.MonkeyPatch,
    address: str | None,
    name: str,
    api: str,
    marks: str,
    has_key: bool,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = Dialect().adapt_settings(ModelConfig(name=name, base_url=address))
    assert (model.api, model.cache_marks, takes_cache_key(model)) == (api, marks, has_key)


def test_what_is_configured_counts_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = ModelConfig(name="gpt-6-sol", api="chat", cache_marks="none", send_reasoning=True)
    assert Dialect().adapt_settings(model) == model


def test_a_maker_is_an_address_and_a_model_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:hunter2hunter2@one/v1")
    assert "hunter2" not in provider_name(ModelConfig(name="m"))
    assert provider_name(ModelConfig(name="m")) != provider_name(
        ModelConfig(name="m", base_url=ROUTER)
    )


@pytest.mark.parametrize(
    ("address", "name", "drops"),
    [
        (ROUTER, "x", True),
        ("http://gateway/v1", "claude-5", True),
        ("http://gateway/v1", "x", False),
    ],
)
def test_a_demand_for_a_call_costs_reasoning_at_some(address: str, name: str, drops: bool) -> None:
    assert drops_reasoning_when_forced(ModelConfig(name=name, base_url=address)) is drops


def test_keys_are_short_and_tell_nothing() -> None:
    assert provider_cache_key("invoices of Ada", 2) != provider_cache_key("invoices of Ada", 3)
    assert "Ada" not in provider_cache_key("invoices of Ada", 2)
    assert len(provider_cache_key("x" * 500, "review")) <= 64


@pytest.mark.parametrize(
    ("variables", "base_url", "expected"),
    [
        ({}, None, "rehearsal model"),
        ({"OPENAI_API_KEY": "sk-secret"}, None, "https://api.openai.com/v1, model tea"),
        (
            {"OPENAI_BASE_URL": "http://u:secret@host:1/v1?k=secret"},
            None,
            "http://host:1/v1, model tea",
        ),
        ({"OPENAI_API_KEY": "sk-secret"}, "http://own/v1", "http://own/v1, model tea"),
        ({}, "http://own/v1", "http://own/v1, model tea"),
    ],
)
def test_a_model_is_described_by_address_and_name_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    base_url: str | None,
    expected: str,
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert describe_provider(ModelConfig(name="tea", base_url=base_url)) == expected

"""The schema of a model and its endpoint (`model`, `fallback_models`, `embeddings`)."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from config.schema.config_data import ConfigData


def check_endpoint_address(address: str) -> str:
    """Raises ValueError for an address that no request can be sent to."""
    if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname:
        # Errors of this type are reported without the value, which may hold a password.
        raise PydanticCustomError(
            "credential", "expected an address that begins with http:// or https://"
        )
    return address


EndpointAddress = Annotated[str, AfterValidator(check_endpoint_address)]


class ModelConfig(ConfigData):
    name: str
    """Model name sent to the endpoint; LONGHAUL_MODEL overrides it."""
    base_url: EndpointAddress | None = None
    """Address of the endpoint, to which `/chat/completions` or `/responses` is appended (for a
    deployment of Azure, with its `?api-version=…`); null: OPENAI_BASE_URL."""
    api: Literal["auto", "chat", "responses"] = "auto"
    """Which API to call: `chat` is Chat Completions, `responses` the Responses API; `auto` decides
    by the address and by the endpoint's refusals."""
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable of the worker with the key."""
    temperature: float | None = Field(0, ge=0, le=2)
    """Sampling temperature; null sends none."""
    reasoning_effort: str | None = None
    """Reasoning effort, for models that have one."""
    max_output_tokens: int = Field(8000, ge=1)
    """Limit of one reply, in tokens."""
    timeout_seconds: int = Field(600, ge=1, le=86_400)
    """Time limit of one model call, in seconds."""
    stall_seconds: int = Field(120, ge=1, le=86_400)
    """Longest pause within a streamed reply, in seconds."""
    patience_seconds: int = Field(600, ge=1, le=86_400)
    """Seconds of failed attempts after which the job shows as waiting for its endpoint; it keeps
    trying."""
    requests_per_minute: int | None = Field(None, ge=1)
    """Requests a minute that all jobs on the workspaces root send to this endpoint and model
    together; null: what the endpoint's answers and refusals teach."""
    tokens_per_minute: int | None = Field(None, ge=1)
    """Tokens a minute, of requests and replies together; as above."""
    requests_at_once: int | None = Field(None, ge=1)
    """Requests of all these jobs that are under way at once; null: any number."""
    weight: float = Field(1, ge=0.01, le=100)
    """Turns of a job at this endpoint while others wait too, for each turn of a job of weight 1."""
    stream: bool = True
    """Whether to request replies as a stream."""
    send_reasoning: bool | None = None
    """Whether to send the model's own reasoning back to it; null: send signed or encrypted
    reasoning, and other reasoning if the endpoint demands it."""
    cache_marks: Literal["auto", "none", "breakpoint", "cache_control"] = "auto"
    """How requests mark what the endpoint should cache: `breakpoint` for OpenAI's models from
    gpt-5.6 on, `cache_control` for gateways to Anthropic's models; `auto` decides by the model's
    name."""
    parallel_calls: bool | None = None
    """Whether a reply may have several calls, sent as `parallel_tool_calls`; null: nothing is sent.
    """
    bare_calls: bool = False
    """Whether a reply that is one JSON object with the name of an offered tool and arguments that
    fit is taken as the call, which small models write as text."""
    vision: bool = False
    """Whether the model accepts images; if so, it is offered view_image."""
    window: int | None = Field(None, ge=1000)
    """Tokens of the model's context window; null: unknown."""


class Embeddings(ConfigData):
    model: str = Field(min_length=1)
    """Model name sent to the endpoint."""
    base_url: EndpointAddress | None = None
    """Address of the endpoint; null: OPENAI_BASE_URL."""
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable of the worker with the key."""

"""Embeddings of texts from an endpoint or from the small model of the extra."""

import os
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import httpx2
import numpy as np
import openai
from numpy.typing import NDArray

from activities.model.endpoint import endpoint_address_arguments
from activities.redaction.credentials import (
    api_key_credential,
    hide_credentials,
    without_credentials,
)
from config.schema.model_settings import Embeddings
from protocol.errors import Unavailable
from protocol.short_text import one_line

NO_EMBEDDINGS = (
    "no embeddings: set `embeddings` in the agent's configuration, or install the extra "
    "`embeddings` on the worker"
)
SECONDS = 60
"""Longest wait for one response of the endpoint."""
Matrix = NDArray[np.float32]


class EmbeddingsFailed(Unavailable):
    """No embeddings are available now; the message says why in a few words."""


class Embedder(Protocol):
    name: str
    """Equal for embedders that give the same vectors."""
    batch: int
    """Number of texts to pass at a time."""
    floor: float
    """Likeness that any two texts may have."""

    def embed(self, texts: list[str]) -> Matrix:
        """Return one row of length 1 per text. Raises EmbeddingsFailed."""


class EndpointEmbedder:
    """An OpenAI-compatible endpoint."""

    batch = 64
    floor = 0.1
    """Models differ: some put any two texts much nearer, and then nothing is left out."""

    def __init__(self, settings: Embeddings, patience: float | None = None) -> None:
        base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL")
        try:
            key = api_key_credential(settings.api_key_variable)
        except ValueError as error:
            raise EmbeddingsFailed(f"the key in {settings.api_key_variable} {error}") from None
        if not key and base_url is None:
            raise EmbeddingsFailed(
                f"the environment variable {settings.api_key_variable} is not set in the worker"
            )
        self.name = f"{settings.model} {without_credentials(base_url or '')}"
        self._model = settings.model
        self._client = _embedding_endpoint_client(base_url, key or "none")
        if patience:
            # No retry: a caller with limited patience has a fallback.
            self._client = self._client.with_options(timeout=patience, max_retries=0)

    def embed(self, texts: list[str]) -> Matrix:
        try:
            answer = self._client.embeddings.create(
                model=self._model, input=list(map(hide_credentials, texts)), encoding_format="float"
            )
            ordered = sorted(answer.data, key=lambda item: item.index)
            rows = np.array([item.embedding for item in ordered], dtype=np.float32)
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            reason = one_line(str(error), 200) or type(error).__name__
            raise EmbeddingsFailed(f"the embeddings endpoint failed: {reason}") from error
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise EmbeddingsFailed("the embeddings endpoint's answer has not one vector a text")
        return _normalise_rows(rows)


class LocalEmbedder:
    """The static embeddings shipped with `wordllama`: small, fast, without a network."""

    batch = 256
    floor = 0.17
    """Measured: passages that answer a query have 0.18 and more, nonsense has up to 0.16."""

    def __init__(self) -> None:
        self.name = f"wordllama {version('wordllama')}"

    def embed(self, texts: list[str]) -> Matrix:
        try:
            rows = _local_embedding_model().embed(texts)
        except (ImportError, OSError, RuntimeError, ValueError, TypeError, AttributeError) as error:
            # Partly installed, or a version with another interface.
            raise EmbeddingsFailed(f"the local embedding model failed: {error}") from error
        return _normalise_rows(np.asarray(rows, dtype=np.float32))


def choose_embedder(settings: Embeddings | None, patience: float | None = None) -> Embedder:
    """Return this worker's embedder.

    Args:
        settings: The agent's endpoint, if it has one.
        patience: Seconds for one response of an endpoint, which is then not retried.

    Raises:
        EmbeddingsFailed: None is available; the message says what to do.
    """
    if settings is not None:
        return EndpointEmbedder(settings, patience)
    if find_spec("wordllama") is not None:
        return LocalEmbedder()
    raise EmbeddingsFailed(NO_EMBEDDINGS)


@lru_cache(maxsize=8)
def _embedding_endpoint_client(base_url: str | None, key: str) -> openai.OpenAI:
    timeout = httpx2.Timeout(SECONDS, connect=10)
    where = endpoint_address_arguments(base_url)
    kind = openai.AzureOpenAI if "api_version" in where else openai.OpenAI
    return kind(**where, api_key=key, max_retries=2, timeout=timeout)


@lru_cache(maxsize=1)
def _local_embedding_model() -> Any:
    # Takes half a second and the memory of its weights, so it is loaded on first use.
    package: Any = import_module("wordllama")
    # By default it looks for its bundled tokenizer only in its cache, and would download it.
    carried = Path(package.__file__).parent
    return package.WordLlama.load(cache_dir=carried, disable_download=True)


def embed_texts(embedder: Embedder, texts: list[str], dimensions: int) -> Matrix:
    """Return vectors of texts to be compared with one of `dimensions`.

    Raises:
        EmbeddingsFailed: Also if the endpoint has changed its model since that vector was made;
            storing the new vectors would break every later search.
    """
    rows = embedder.embed(texts)
    if rows.shape[1] != dimensions:
        raise EmbeddingsFailed(
            "the embeddings endpoint changed its model meanwhile: vectors of "
            f"{rows.shape[1]} dimensions, expected {dimensions}"
        )
    return rows


def _normalise_rows(rows: Matrix) -> Matrix:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)

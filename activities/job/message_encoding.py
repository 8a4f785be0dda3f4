"""How the messages of a conversation are sent: what `activities.model.message_forms` provides."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

Read = Callable[[bytes], bytes]
"""Returns the bytes of a blob by its id."""


class MessageEncoding(Protocol):
    """How a message is sent to one endpoint and model."""

    @property
    def key(self) -> Hashable:
        """Equal for two forms that send the same."""

    @property
    def verbatim(self) -> bool:
        """Whether a message with no data beside it is sent as stored."""

    def render(self, message: bytes, beside: bytes, read: Read | None = None) -> bytes:
        """Render the message in this form, as elements of a JSON list joined by commas.

        Args:
            message: The message as stored.
            beside: The data beside it.
            read: Returns an image's bytes by the id of its blob; None to omit images.
        """

    @property
    def marks(self) -> str:
        """How cache marks are written at the end of a message; `none` for no marks."""

    def render_marked(self, message: bytes) -> bytes:
        """Render a message that is not the model's, with such a mark."""


class MessageWeights(Protocol):
    """How many tokens of the data beside messages are sent to one endpoint and model."""

    @property
    def key(self) -> Hashable:
        """Equal for two that weigh the same."""

    def tokens(self, provider_data: bytes, encoding: str) -> int:
        """Count the tokens that are sent of it."""

    @property
    def without_images(self) -> MessageWeights:
        """The same without images."""

"""The data converter of every client and worker: Pydantic, without losing undecodable signals.

The SDK drops a signal, and fails the workflow task of a start, when a payload cannot be decoded.
People can send any payload in any encoding. So if the receiver declares no type, an undecodable
payload becomes a value with the reason, and the workflow refuses it visibly. If a type is declared
(activity requests and results), an unsuitable payload is an error as usual.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pydantic import ValidationError
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter, ToJsonOptions
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    PayloadConverter,
)

from protocol.data_model import Data
from protocol.payload_reading import ENCRYPTED, UNDECODABLE, EncryptedPayloadError
from protocol.short_text import one_line

VARIABLE = "LONGHAUL_CODEC_KEYS"
"""Environment variable with the keys of `engine.codec`."""

REASON = "unreadable"
"""Metadata key for the codec's reason for leaving a payload encrypted."""

MAX_DEPTH = 50
"""Most levels of lists and dicts in an untyped value. JSON is read to 200 levels, so a deeper value
that is wrapped a few times could be sent but not read again."""

_JSON = (b"json/plain", b"binary/null")
_ANYTHING: tuple[object, ...] = (None, Any, object)


# The SDK makes a converter for every activation; sharing these keeps their type adapters.
_SHARED = tuple(PydanticPayloadConverter(ToJsonOptions(exclude_unset=True)).converters.values())
_AS_JSON = _SHARED[-1]


class TolerantPayloadConverter(CompositePayloadConverter):
    """Pydantic JSON without unset fields; see the module on undecodable input.

    A field that was left at its default and then changed in place (`state.scope.append(…)`)
    counts as unset and is not sent: assign such fields.
    """

    def __init__(self) -> None:
        super().__init__(*_SHARED)

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        payloads: list[Payload] = []
        for value in values:
            # Nearly all values have these types, so skip the converters before JSON.
            if isinstance(value, str | Data) and (payload := _AS_JSON.to_payload(value)):
                payloads.append(payload)
            else:
                payloads += super().to_payloads([value])
        return payloads

    def from_payloads(
        self, payloads: Sequence[Payload], type_hints: list[type] | None = None
    ) -> list[Any]:
        hints = type_hints or []
        padded = [*hints, *[None] * (len(payloads) - len(hints))]
        return [
            self._decode_anything(payload)
            if hint in _ANYTHING
            else self._decode_payload(payload, hint)
            for payload, hint in zip(payloads, padded, strict=False)
        ]

    def _decode_payload(self, payload: Payload, hint: type | None) -> Any:
        if hint is not RawValue and (why := encrypted_payload_reason(payload)):
            raise EncryptedPayloadError(why)
        return super().from_payloads([payload], None if hint is None else [hint])[0]

    def _decode_anything(self, payload: Payload) -> Any:
        encoding = payload.metadata.get("encoding", b"no encoding")
        try:
            # Bytes and protocol buffers decode, but cannot be sent inside other values, as a
            # workflow does with its inbox when it continues as new.
            if encoding not in (*_JSON, ENCRYPTED.encode()):
                raise ValueError("only JSON is understood")
            value = self._decode_payload(payload, None)
            if _is_payload_nested_deeper(value, MAX_DEPTH):
                raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
            return value
        # No decoder's exception may reach the SDK, which would drop the signal with only a log
        # line on the worker.
        except Exception as error:
            return {
                UNDECODABLE: f"{encoding[:60].decode('utf-8', 'replace')}: "
                f"{_undecodable_payload_reason(error)}"
            }


def encrypted_payload_reason(payload: Payload) -> str:
    """Return why a payload is still encrypted; empty if it is not."""
    if payload.metadata.get("encoding") != ENCRYPTED.encode():
        return ""
    reason = payload.metadata.get(REASON, b"").decode("utf-8", "replace")[:200]
    return f"it is encrypted, and {reason or f'{VARIABLE} is not set here'}"


def _is_payload_nested_deeper(value: Any, levels: int) -> bool:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _is_payload_nested_deeper(item, levels - 1) for item in below)


def _undecodable_payload_reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return error.errors(include_url=False, include_input=False)[0]["msg"]
    return one_line(str(error), 200) or type(error).__name__


class RedactingFailureConverter(DefaultFailureConverter):
    """Removes credentials from failures of activities, whichever library raised them."""

    encrypted = False

    def to_failure(
        self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure
    ) -> None:
        # Calls this method again for each cause.
        super().to_failure(exception, payload_converter, failure)
        # Workflows see only redacted results, and must not load the patterns.
        if activity.in_activity():
            # By name and late, like all activities (`engine.service`).
            redact = import_module("activities.redaction.secrets").redact
            failure.message = redact(failure.message)
            failure.stack_trace = redact(failure.stack_trace)
        if self.encrypted:
            details = {"message": failure.message, "stack_trace": failure.stack_trace}
            [payload] = payload_converter.to_payloads([details])
            failure.encoded_attributes.CopyFrom(payload)
            failure.message, failure.stack_trace = "Encoded failure", ""


class EncryptedFailureConverter(RedactingFailureConverter):
    """Also moves failure messages to where a codec can encrypt them."""

    encrypted = True


DATA_CONVERTER = DataConverter(
    payload_converter_class=TolerantPayloadConverter,
    failure_converter_class=RedactingFailureConverter,
)

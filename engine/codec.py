"""Encryption of everything that goes to Temporal: AES-GCM, keys by id from the environment.

    LONGHAUL_CODEC_KEYS=2026b:BASE64,2026a:BASE64     the first encrypts, all of them decrypt
    LONGHAUL_CODEC_KEYS_FILE=/path                    the same in a file, optionally one per line

A key is 32 random bytes in base64 or hexadecimal. Unencrypted payloads are accepted, so that people
can send plain JSON from the Web UI. An undecryptable payload is passed on unchanged with the reason
in its metadata; the converter turns it into an error, or into a value that is visibly refused.
"""

import base64
import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec

from engine.converter import DATA_CONVERTER, REASON, VARIABLE, EncryptedFailureConverter
from engine.setup_errors import SetupError
from protocol.payload_reading import ENCRYPTED

if TYPE_CHECKING:
    pass

FILE_VARIABLE = "LONGHAUL_CODEC_KEYS_FILE"
KEY_BYTES = 32
NONCE_BYTES = 12
_ID = re.compile(r"[A-Za-z0-9._-]{1,60}")
_KEY_ID = "encryption-key-id"
_EXPECTED = "id:key, the key 32 bytes as base64 or hexadecimal, several separated by commas"


class EncryptionCodec(PayloadCodec):
    """Encrypts whole payloads, including their metadata."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """
        Args:
            keys: Keys of 32 bytes by id; the first one encrypts.
        """
        # Import late: commands and workers without keys do not need it.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        self._ciphers: dict[str, AESGCM] = {name: AESGCM(key) for name, key in keys.items()}
        self._current = next(iter(keys))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encrypt_payload(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._decrypt_payload(payload) for payload in payloads]

    def _encrypt_payload(self, payload: Payload) -> Payload:
        nonce = os.urandom(NONCE_BYTES)
        cipher = self._ciphers[self._current]
        key_id = self._current.encode()
        return Payload(
            metadata={"encoding": ENCRYPTED.encode(), _KEY_ID: key_id},
            data=nonce + cipher.encrypt(nonce, payload.SerializeToString(), key_id),
        )

    def _decrypt_payload(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCRYPTED.encode():
            return payload
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415

        key_id = payload.metadata.get(_KEY_ID, b"")
        name = key_id[:60].decode("utf-8", "replace")
        cipher = self._ciphers.get(name)
        if cipher is None:
            return _leave_payload_encrypted(payload, f"{VARIABLE} here holds no key {name!r}")
        nonce, sealed = payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:]
        try:
            return Payload.FromString(cipher.decrypt(nonce, sealed, key_id))
        # A text that is too short raises ValueError; foreign data may decrypt to something else.
        except (InvalidTag, ValueError):
            return _leave_payload_encrypted(
                payload, f"key {name!r} in {VARIABLE} here is not the one it was made with"
            )


def _leave_payload_encrypted(payload: Payload, reason: str) -> Payload:
    marked = Payload(metadata=payload.metadata, data=payload.data)
    marked.metadata[REASON] = reason.encode()
    return marked


def keys_from_environment(environment: Mapping[str, str] = os.environ) -> dict[str, bytes]:
    """Return the keys by id, the encrypting one first; empty without keys.

    Raises SetupError: the variable or its file does not contain valid keys.
    """
    text, where = environment.get(VARIABLE, ""), VARIABLE
    if file := environment.get(FILE_VARIABLE, ""):
        if text.strip():
            raise SetupError(f"{VARIABLE} and {FILE_VARIABLE} are both set; set one of them")
        where = f"{FILE_VARIABLE} ({file})"
        try:
            text = Path(file).expanduser().read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise SetupError(f"{where} cannot be read: {type(error).__name__}") from None
        if not text.strip():
            raise SetupError(f"{where} holds no key; expected {_EXPECTED}")
    keys: dict[str, bytes] = {}
    for number, entry in enumerate(re.split(r"[,\s]+", text.strip()) if text.strip() else [], 1):
        name, separator, key = entry.partition(":")
        if not separator or not _ID.fullmatch(name):
            raise SetupError(f"{where}: entry {number} has no id; expected {_EXPECTED}")
        if name in keys:
            raise SetupError(f"{where}: the id {name} stands there twice")
        keys[name] = _parse_codec_key(key, f"{where}: the key {name}")
    return keys


def _parse_codec_key(text: str, what: str) -> bytes:
    try:
        key = bytes.fromhex(text) if len(text) == 2 * KEY_BYTES else _decode_base64_codec_key(text)
    except ValueError:
        raise SetupError(f"{what} is neither base64 nor hexadecimal") from None
    if len(key) != KEY_BYTES:
        raise SetupError(f"{what} has {len(key)} bytes; expected {KEY_BYTES}")
    return key


def _decode_base64_codec_key(text: str) -> bytes:
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


def data_converter(environment: Mapping[str, str] = os.environ) -> DataConverter:
    """Return the converter of clients and workers; it encrypts if the environment has keys.

    Raises SetupError: the environment's keys cannot be used.
    """
    keys = keys_from_environment(environment)
    return encrypting_converter(keys) if keys else DATA_CONVERTER


def encrypting_converter(keys: Mapping[str, bytes]) -> DataConverter:
    """Return a converter that encrypts with these keys, failure messages included."""
    return dataclasses.replace(
        DATA_CONVERTER,
        payload_codec=EncryptionCodec(keys),
        failure_converter_class=EncryptedFailureConverter,
    )

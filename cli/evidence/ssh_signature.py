"""Signatures with an operator's ssh key, in the form that `ssh-keygen -Y` makes and verifies.

See PROTOCOL.sshsig of OpenSSH. Only keys of type ed25519 are used.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import typer
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from cli.output import UserError

NAMESPACE = "longhaul-evidence"
_TYPE = b"ssh-ed25519"
_MAGIC, _HASH = b"SSHSIG", b"sha512"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_LINE = 70
_PUBLIC = re.compile(r"\bssh-ed25519 ([A-Za-z0-9+/]+=*)")
_MAKE_KEY = "`ssh-keygen -t ed25519` makes one"


class InvalidSignatureFile(ValueError):
    """A signature that does not hold; the message says why."""


@dataclass(frozen=True)
class PublicKey:
    """An ed25519 key. `raw`: its 32 bytes."""

    raw: bytes

    @property
    def blob(self) -> bytes:
        """The key as ssh encodes it."""
        return _strings(_TYPE, self.raw)

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, as `ssh-keygen -l` prints it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        return f"SHA256:{digest}"


class SigningKey:
    """A private key of the operator."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key().public_bytes_raw())

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read an OpenSSH private key; ask for its passphrase at a terminal.

        Raises:
            UserError: it cannot be read, or is no ed25519 key.
        """
        data = _read_key_file(path)
        try:
            try:
                key = load_ssh_private_key(data, None)
            except TypeError:  # it has a passphrase
                key = load_ssh_private_key(data, _ask_passphrase(path))
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise UserError(
                f"{path} is no private ssh key that can be used ({error}); {_MAKE_KEY}"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise UserError(f"{path} is no ed25519 key; {_MAKE_KEY}")
        return cls(key)

    def sign(self, data: bytes) -> bytes:
        """Return a signature file over the data."""
        signature = self._key.sign(_signed(data))
        return _armored(self.public, _strings(_TYPE, signature))


def read_public_keys(path: Path) -> list[PublicKey]:
    """Return the ed25519 keys of a .pub, authorized_keys or allowed_signers file.

    Raises:
        UserError: it cannot be read, or has none.
    """
    text = _read_key_file(path).decode("utf-8", "replace")
    if "PRIVATE KEY-----" in text:
        raise UserError(f"{path} is a private key; name the public one, such as {path}.pub")
    keys = []
    for encoded in _PUBLIC.findall(text):
        try:
            kind, raw = _read_strings(base64.b64decode(encoded, validate=True), 2)
        except ValueError:
            continue
        if kind == _TYPE and len(raw) == 32:
            keys.append(PublicKey(raw))
    if not keys:
        raise UserError(f"{path} has no public key of type ssh-ed25519")
    return keys


def verify_signature(signature: bytes, data: bytes) -> PublicKey:
    """Return the key that signed the data.

    Raises:
        InvalidSignatureFile: nobody signed it so.
    """
    try:
        text = signature.decode("ascii")
        blob = base64.b64decode("".join(text.splitlines()[1:-1]), validate=True)
        if blob[:10] != _MAGIC + b"\0\0\0\1":
            raise ValueError
        key, namespace, reserved, algorithm, signed = _read_strings(blob[10:], 5)
        kind, raw = _read_strings(key, 2)
        made_as, proof = _read_strings(signed, 2)
        public = PublicKey(raw)
        if _armored(public, signed) != signature or {kind, made_as} != {_TYPE} or reserved:
            raise ValueError
    except ValueError:
        raise InvalidSignatureFile(
            "it is not in the form of an ssh signature by an ed25519 key"
        ) from None
    if namespace != NAMESPACE.encode() or algorithm != _HASH:
        raise InvalidSignatureFile(f"it is not for {NAMESPACE}")
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(proof, _signed(data))
    except (InvalidSignature, ValueError):
        raise InvalidSignatureFile("it is not over this head, or not by the key it names") from None
    return public


def _signed(data: bytes) -> bytes:
    """Return what the key signs."""
    digest = hashlib.sha512(data).digest()
    return _MAGIC + _strings(NAMESPACE.encode(), b"", _HASH, digest)


def _armored(key: PublicKey, signature: bytes) -> bytes:
    blob = _MAGIC + b"\0\0\0\1"
    blob += _strings(key.blob, NAMESPACE.encode(), b"", _HASH, signature)
    text = base64.b64encode(blob).decode()
    lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    return "\n".join([_BEGIN, *lines, _END, ""]).encode()


def _strings(*values: bytes) -> bytes:
    """Return strings as ssh encodes them: each after its length."""
    return b"".join(len(value).to_bytes(4, "big") + value for value in values)


def _read_strings(data: bytes, count: int) -> list[bytes]:
    """Return exactly this many strings. Raises ValueError."""
    values = []
    for _ in range(count):
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 + size:
            raise ValueError("cut short")
        values.append(data[4 : 4 + size])
        data = data[4 + size :]
    if data:
        raise ValueError("too long")
    return values


def _read_key_file(path: Path) -> bytes:
    try:
        return path.expanduser().read_bytes()
    except OSError as error:
        raise UserError(f"the key {path} cannot be read: {error.strerror}") from None


def _ask_passphrase(path: Path) -> bytes:
    if not sys.stdin.isatty():
        raise UserError(f"the key {path} has a passphrase, and there is no terminal to ask for it")
    text: str = typer.prompt(f"Passphrase of {path}", hide_input=True, err=True)
    return text.encode()

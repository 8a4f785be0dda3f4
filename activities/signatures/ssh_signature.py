"""Signatures with a person's ssh key, in the form that `ssh-keygen -Y` makes and verifies.

See PROTOCOL.sshsig of OpenSSH. Only keys of type ed25519 are used.
"""

import base64
import hashlib
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_TYPE = b"ssh-ed25519"
_MAGIC, _HASH = b"SSHSIG", b"sha512"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_LINE = 70
_PUBLIC = re.compile(r"\bssh-ed25519 ([A-Za-z0-9+/]+=*)")


class InvalidSignatureFile(ValueError):
    """A signature that does not hold; the message says why."""


@dataclass(frozen=True)
class PublicKey:
    """An ed25519 key. `raw`: its 32 bytes."""

    raw: bytes

    @property
    def blob(self) -> bytes:
        """The key as ssh encodes it."""
        return _encode_strings(_TYPE, self.raw)

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, as `ssh-keygen -l` prints it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        return f"SHA256:{digest}"


def read_ssh_keys(text: str) -> list[PublicKey]:
    """Return the ed25519 keys in the text of a .pub, authorized_keys or allowed_signers file."""
    keys = []
    for encoded in _PUBLIC.findall(text):
        try:
            kind, raw = _read_strings(base64.b64decode(encoded, validate=True), 2)
        except ValueError:
            continue
        if kind == _TYPE and len(raw) == 32:
            keys.append(PublicKey(raw))
    return keys


def sign_with(key: Ed25519PrivateKey, data: bytes, namespace: str) -> bytes:
    """Return a signature file over the data."""
    public = PublicKey(key.public_key().public_bytes_raw())
    signature = key.sign(_data_to_sign(data, namespace))
    return _armor_signature(public, _encode_strings(_TYPE, signature), namespace)


def verify_signature(signature: bytes, data: bytes, namespace: str) -> PublicKey:
    """Return the key that signed the data for this purpose.

    Raises InvalidSignatureFile: nobody signed it so.
    """
    try:
        text = signature.decode("ascii")
        blob = base64.b64decode("".join(text.splitlines()[1:-1]), validate=True)
        if blob[:10] != _MAGIC + b"\0\0\0\1":
            raise ValueError
        key, purpose, reserved, algorithm, signed = _read_strings(blob[10:], 5)
        kind, raw = _read_strings(key, 2)
        made_as, proof = _read_strings(signed, 2)
        public = PublicKey(raw)
        if (
            _armor_signature(public, signed, purpose.decode()) != signature
            or {kind, made_as} != {_TYPE}
            or reserved
        ):
            raise ValueError
    except ValueError:
        raise InvalidSignatureFile(
            "it is not in the form of an ssh signature by an ed25519 key"
        ) from None
    if purpose != namespace.encode() or algorithm != _HASH:
        raise InvalidSignatureFile(f"it is not for {namespace}")
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(proof, _data_to_sign(data, namespace))
    except (InvalidSignature, ValueError):
        raise InvalidSignatureFile("it is not over this text, or not by the key it names") from None
    return public


def _data_to_sign(data: bytes, namespace: str) -> bytes:
    """Return what the key signs."""
    digest = hashlib.sha512(data).digest()
    return _MAGIC + _encode_strings(namespace.encode(), b"", _HASH, digest)


def _armor_signature(key: PublicKey, signature: bytes, namespace: str) -> bytes:
    blob = _MAGIC + b"\0\0\0\1"
    blob += _encode_strings(key.blob, namespace.encode(), b"", _HASH, signature)
    text = base64.b64encode(blob).decode()
    lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    return "\n".join([_BEGIN, *lines, _END, ""]).encode()


def _encode_strings(*values: bytes) -> bytes:
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

"""Ssh keys that commands sign with, and the public ones that they are checked against."""

import sys
from pathlib import Path

import typer
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from activities.signatures.ssh_signature import PublicKey, read_ssh_keys, sign_with
from cli.output import UserError

_MAKE_KEY = "`ssh-keygen -t ed25519` makes one"


class SigningKey:
    """A private key of the person at the command line."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key().public_bytes_raw())

    @classmethod
    def load(cls, path: Path) -> "SigningKey":
        """Read an OpenSSH private key; ask for its passphrase at a terminal.

        Raises UserError: it cannot be read, or is no ed25519 key.
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

    def sign(self, data: bytes, namespace: str) -> bytes:
        """Return a signature file over the data, for one purpose."""
        return sign_with(self._key, data, namespace)


def read_public_keys(path: Path) -> list[PublicKey]:
    """Return the ed25519 keys of a .pub, authorized_keys or allowed_signers file.

    Raises UserError: it cannot be read, or has none.
    """
    text = _read_key_file(path).decode("utf-8", "replace")
    if "PRIVATE KEY-----" in text:
        raise UserError(f"{path} is a private key; name the public one, such as {path}.pub")
    if not (keys := read_ssh_keys(text)):
        raise UserError(f"{path} has no public key of type ssh-ed25519")
    return keys


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

"""Ssh keys for tests."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def make_key(path: Path) -> Path:
    """Write a private key, and the public one beside it."""
    key = Ed25519PrivateKey.generate()
    path.write_bytes(
        key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    )
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public + b" ada@example.org\n")
    return path

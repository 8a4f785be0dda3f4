"""Object stores in processes of their own: moto's, and nanio, which ignores conditions.

`LONGHAUL_TEST_S3` names the endpoint of another store to test in place of moto's. It needs a user
with the keys `KEYS` who may create buckets.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.free_ports import free_port

KEYS = {"AWS_ACCESS_KEY_ID": "tea-4711", "AWS_SECRET_ACCESS_KEY": "brewed-0815"}
_ENVIRONMENT = {
    **os.environ,
    **KEYS,
    "NANIO_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"],
    "NANIO_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"],
}
OTHER_STORE = os.environ.get("LONGHAUL_TEST_S3", "")
SECONDS = 60


@contextmanager
def conditional_server(port: int | None = None) -> Iterator[str]:
    """Run an endpoint that honours conditions on writes."""
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    if OTHER_STORE:
        if port:
            pytest.skip("another store cannot be stopped")
        yield OTHER_STORE
        return
    port = port or free_port()
    with _running([sys.executable, "-m", "moto.server", "-p", str(port)], port) as endpoint:
        yield endpoint


@contextmanager
def unconditional_server(folder: Path) -> Iterator[str]:
    """Run an endpoint that accepts every write, in a folder; its bucket is `bucket`."""
    pytest.importorskip("obstore")
    pytest.importorskip("nanio")
    (folder / "bucket").mkdir(parents=True)
    port = free_port()
    command = [sys.executable, "-m", "nanio", "serve", "--data-dir", str(folder)]
    with _running([*command, "--port", str(port)], port) as endpoint:
        yield endpoint


@contextmanager
def _running(command: list[str], port: int) -> Iterator[str]:
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_ENVIRONMENT
    )
    try:
        until = time.monotonic() + SECONDS
        while True:
            assert process.poll() is None, command
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < until, command
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def create_bucket(endpoint: str) -> str:
    """Create a bucket; return the address of a folder in it."""
    name = f"checkpoints-{secrets.token_hex(4)}"
    boto3 = pytest.importorskip("boto3")  # comes with moto
    boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    ).create_bucket(Bucket=name)
    return f"s3://{name}/longhaul?endpoint={endpoint}"

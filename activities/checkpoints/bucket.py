"""A bucket of an S3-compatible object store, through `obstore`.

Credentials, region and endpoint come from the worker's AWS_… variables; settings in the address
take precedence. No credential appears in a message.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from activities.checkpoints.checkpoint_errors import RemoteUnavailable, RemoteUnfit
from activities.redaction.secrets import redact
from protocol.s3_address import S3Address
from protocol.short_text import one_line

NOT_INSTALLED = (
    "remotes of the form s3://… need the package obstore, which this host lacks: "
    "pip install 'longhaul-agents[s3]'"
)
NO_CREDENTIALS = (
    "this worker has no credentials for it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
    "give its host a role"
)
NEW_KEYS = "start it again with keys that are valid and may use the bucket"
NOT_CONDITIONAL = (
    "the store ignores conditions on writes (If-Match, If-None-Match), without which hosts would "
    "overwrite each other's checkpoints: take a store that keeps them"
)
REFUSES_TRUE_CONDITION = (
    "the store refuses a write whose condition (If-Match) holds, so no host could replace a list "
    "of checkpoints: take a store that accepts it"
)
PROBE = "conditions"
"""Begins the keys of the objects that test how the server treats conditional writes."""
PROBE_DATA = bytes(1000)
"""Some data, since a store without space may still take an empty object."""
_CREDENTIAL_CODES = (
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
)
_CLIENT = {"timeout": "120s", "connect_timeout": "5s"}
_RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
_METADATA_SERVERS = ("169.254.169.254", "169.254.170.2")


@dataclass(frozen=True)
class StoredObject:
    data: bytes
    version: str


class Bucket:
    """The objects below the prefix of one address. Its methods raise RemoteUnavailable."""

    def __init__(self, address: S3Address) -> None:
        self._address = address
        self._is_probed = False
        self._quotes_versions = True
        try:
            import obstore.store  # noqa: PLC0415 - an extra
        except ImportError:
            raise RemoteUnavailable(NOT_INSTALLED) from None
        environment = os.environ
        self.endpoint = (
            address.endpoint
            or environment.get("AWS_ENDPOINT_URL_S3", "")
            or environment.get("AWS_ENDPOINT_URL", "")
        )
        region = (
            address.region
            or environment.get("AWS_REGION", "")
            or environment.get("AWS_DEFAULT_REGION", "")
            or "us-east-1"
        )
        client = {**_CLIENT, "allow_http": self.endpoint.startswith("http://")}
        options: dict[str, Any] = {"region": region, "client_options": client}
        if self.endpoint:
            options["endpoint"] = self.endpoint
        with self._failures():
            self._store = obstore.store.S3Store(
                address.bucket,
                prefix=address.prefix or None,
                retry_config=_RETRIES,
                **options,
            )

    def read_object(self, key: str) -> StoredObject | None:
        with self._failures() as outcome:
            result = self._store.get(key)
            return StoredObject(bytes(result.bytes()), result.meta["e_tag"] or "")
        assert outcome.is_missing
        return None

    def download_object(self, key: str, target: Path) -> bool:
        with self._failures() as outcome, target.open("wb") as file:
            for chunk in self._store.get(key).stream():
                file.write(chunk)
            return True
        assert outcome.is_missing
        return False

    def upload_file(self, key: str, source: Path) -> None:
        with self._failures():
            self._store.put(key, source)

    def replace_object(self, key: str, data: bytes, version: str | None) -> str | None:
        """Write an object if its version is as it was read (None: absent); None if it is not."""
        self.require_conditions()
        return self._put_if_unchanged(key, data, version) if version else self._create(key, data)

    def delete_objects(self, keys: list[str]) -> None:
        for key in keys:
            with self._failures():
                self._store.delete(key)

    def stale_keys(self, prefix: str, seconds: float) -> list[str]:
        """Return keys below a prefix whose objects are older than that."""
        before = datetime.now(UTC) - timedelta(seconds=seconds)
        with self._failures():
            return [
                each["path"]
                for batch in self._store.list(prefix)
                for each in batch
                if each["last_modified"] < before
            ]
        return []

    def check_access(self) -> None:
        self._is_probed = False
        key = f"{PROBE}-{secrets.token_hex(4)}"
        requests: dict[str, Callable[[], object]] = {
            "read": lambda: self.read_object(key),
            "write": lambda: self._create(key, PROBE_DATA),
            "write under conditions": self.require_conditions,
            "list": lambda: self.stale_keys(PROBE, 0),
            "delete": lambda: self.delete_objects([key]),
        }
        for action, send_request in requests.items():
            try:
                send_request()
            except RemoteUnfit:
                raise
            except RemoteUnavailable as failed:
                raise RemoteUnavailable(f"cannot {action}: {failed}") from None

    def require_conditions(self) -> None:
        """Refuse a store that accepts a write whose condition fails, or refuses one that holds."""
        if self._is_probed:
            return
        key = f"{PROBE}-{secrets.token_hex(4)}"
        version = self._create(key, b"") or ""
        try:
            replaced = self._put_if_unchanged(key, b"", '"never"')
            if replaced is not None or self._create(key, b"") is not None:
                raise RemoteUnfit(NOT_CONDITIONAL)
            # An earlier probe may have been cut short at either form.
            for quotes_versions in (True, False):
                self._quotes_versions = quotes_versions
                if self._put_if_unchanged(key, b"", version) is not None:
                    break
            else:
                raise RemoteUnfit(REFUSES_TRUE_CONDITION)
        finally:
            with suppress(RemoteUnavailable):
                self.delete_objects([key])
        self._is_probed = True

    def _create(self, key: str, data: bytes) -> str | None:
        return self._put_if(key, data, "create")

    def _put_if_unchanged(self, key: str, data: bytes, version: str) -> str | None:
        # Ceph's gateway compares If-Match with a version without quotes.
        e_tag = version if self._quotes_versions else version.strip('"')
        return self._put_if(key, data, {"e_tag": e_tag})

    def _put_if(self, key: str, data: bytes, condition: Any) -> str | None:
        with self._failures() as outcome:
            return self._store.put(key, data, mode=condition, use_multipart=False)["e_tag"] or ""
        assert outcome.is_refused
        return None

    @contextmanager
    def _failures(self) -> Iterator[_Outcome]:
        """Turn the library's errors into RemoteUnavailable, except for missing objects and failed
        conditions, which the yielded outcome reports.
        """
        from obstore import exceptions  # noqa: PLC0415 - an extra

        outcome = _Outcome()
        try:
            yield outcome
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            outcome.is_refused = True
        except (exceptions.BaseError, FileNotFoundError, ValueError) as error:
            text = str(error)
            code = _bucket_error_field(text, "Code")
            outcome.is_missing = isinstance(error, FileNotFoundError) and code != "NoSuchBucket"
            outcome.is_refused = code == "ConditionalRequestConflict"
            if isinstance(error, FileNotFoundError) and error.errno is not None:
                raise  # the error concerns a local file
            if not (outcome.is_missing or outcome.is_refused):
                raise RemoteUnavailable(self._explain(text, code)) from None

    def _explain(self, text: str, code: str) -> str:
        place = f"bucket {self._address.bucket}"
        place += f" at {self.endpoint}" if self.endpoint else ""
        if code == "NoSuchBucket":
            return f"{place}: there is no such bucket; create it"
        if code in _CREDENTIAL_CODES:
            reason = _bucket_error_field(text, "Message")
            refused = (
                f"{place}: the worker's credentials are refused ({code}); {NEW_KEYS}: {reason}"
            )
            return one_line(redact(refused), 400)
        if any(server in text for server in _METADATA_SERVERS):
            return f"{place}: {NO_CREDENTIALS}"
        if code:
            return one_line(redact(f"{place}: {code}: {_bucket_error_field(text, 'Message')}"), 300)
        if "error sending request" in text or "timed out" in text:
            return f"{place}: the object store cannot be reached"
        return one_line(redact(f"{place}: {text.partition('Debug source')[0]}"), 300)


@dataclass
class _Outcome:
    is_missing: bool = False
    is_refused: bool = False


def _bucket_error_field(text: str, name: str) -> str:
    """Return the text of an XML element in an S3 error response; empty if there is none."""
    match = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return match[1] if match else ""

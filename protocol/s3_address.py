"""Addresses of buckets: `s3://bucket/prefix?endpoint=https://…&region=…`, without credentials."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

SCHEME = "s3://"
FORM = (
    "expected s3://bucket or s3://bucket/prefix, to which ?endpoint=https://host and &region=name "
    "may be added"
)
BUCKET_FORM = "a bucket's name has 3 to 63 characters: small letters, digits, dots and hyphens"
NO_KEYS = (
    "expected an address without credentials: a worker takes them from its own AWS_… variables"
)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9._/=-]*")
_REGION = re.compile(r"[A-Za-z0-9-]{1,50}")


@dataclass(frozen=True)
class S3Address:
    """A bucket, a prefix in it, and its server; an empty endpoint or region is the worker's own."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""

    @classmethod
    def parse(cls, address: str) -> "S3Address":
        """Read an address. Raises ValueError, which does not repeat it."""
        if "@" in address:
            raise ValueError(NO_KEYS)
        try:
            parts = urlsplit(address)
            options = parse_qsl(
                parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)
            )
        except ValueError:
            raise ValueError(FORM) from None
        endpoint, region = dict(options).get("endpoint", ""), dict(options).get("region", "")
        folders = parts.path.strip("/").split("/")
        is_path = _PREFIX.fullmatch(parts.path) and not {".", ".."} & set(folders)
        is_known = {name for name, _ in options} <= {"endpoint", "region"} and not parts.fragment
        is_endpoint = not endpoint or re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+/?", endpoint)
        is_region = not region or _REGION.fullmatch(region)
        if not (
            address.startswith(SCHEME)
            and parts.netloc
            and is_path
            and is_known
            and is_endpoint
            and is_region
        ):
            raise ValueError(FORM)
        if not _BUCKET.fullmatch(parts.netloc):
            raise ValueError(BUCKET_FORM)
        return cls(parts.netloc, "/".join(filter(None, folders)), endpoint.rstrip("/"), region)


def is_s3_address(address: str) -> bool:
    return address.startswith(SCHEME)

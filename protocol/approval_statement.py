"""What a person signs to approve a call: one line, the same to who signs and who checks."""

import hashlib
import json
from datetime import datetime

from protocol.data_model import Data

SIGNED_AS = "longhaul-approval"
"""Purpose of such signatures, which count for no other: `ssh-keygen -Y sign -n` takes it."""


class ApprovalStatement(Data):
    """One call of one job, until a time."""

    job: str
    request: str
    """Id of the request for approval."""
    call: str
    """Name of the tool."""
    arguments: str
    """Digest of the arguments, as `arguments_digest` returns it."""
    expires: str
    """ISO 8601 with a time zone."""

    @property
    def text(self) -> str:
        return json.dumps(self.model_dump(), sort_keys=True) + "\n"


def arguments_digest(shown: dict[str, str], sent: str) -> str:
    """Return the digest of a call's arguments.

    Args:
        shown: The arguments as the person sees them: redacted and cut.
        sent: Digest of the complete arguments.
    """
    text = json.dumps([shown, sent], sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def expiry_problem(expires: str, now: float) -> str:
    """Return why a signature no longer counts, or never did; empty if it does."""
    try:
        ends = datetime.fromisoformat(expires)
    except ValueError:
        return f"expires: expected a time such as 2026-11-29T15:00:00Z, found {expires[:40]!r}"
    if ends.tzinfo is None:
        return f"expires: {expires[:40]} has no time zone"
    return f"the signature was good until {expires}" if ends.timestamp() < now else ""

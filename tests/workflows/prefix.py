"""How much of a prompt a provider's prefix cache could reuse from the call before."""

import json

from rehearsal.wire import Request


class PrefixMeter:
    """Compares each request with the one before it that had the same system message."""

    def __init__(self) -> None:
        self._before: dict[str, list[str]] = {}

    def measure(self, request: Request) -> float | None:
        """Return the share of the prompt's characters in its unchanged prefix; None for the first
        of a phase.

        The tools count as the first part: providers put them before the messages.
        """
        parts = [json.dumps(request.get("tools") or [])]
        parts += [json.dumps(message) for message in request["messages"]]
        phase = parts[1] if len(parts) > 1 else ""
        before = self._before.get(phase)
        self._before[phase] = parts
        if before is None:
            return None
        same = 0
        for old, new in zip(before, parts, strict=False):
            if old != new:
                break
            same += len(new)
        return same / sum(map(len, parts))

"""How soon the server notices that a worker is lost, and what that costs.

Each heartbeat that reaches the server is one Action of Temporal Cloud. By default an activity's
worker counts as lost after 20 seconds, and a model call of 20 seconds sends one heartbeat. With
`LONGHAUL_HEARTBEAT=quick` it is five seconds and one heartbeat a second, for servers that cost
nothing.
"""

import os
from datetime import timedelta
from typing import Any

from temporalio import worker
from temporalio.workflow import ActivityHandle

from engine.setup_errors import SetupError

VARIABLE = "LONGHAUL_HEARTBEAT"
QUICK = timedelta(seconds=5)


class _Outbound(worker.WorkflowOutboundInterceptor):
    def start_activity(self, input: worker.StartActivityInput) -> ActivityHandle[Any]:
        if input.heartbeat_timeout:
            input.heartbeat_timeout = min(input.heartbeat_timeout, QUICK)
        return super().start_activity(input)


class _Inbound(worker.WorkflowInboundInterceptor):
    def init(self, outbound: worker.WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class QuickHeartbeats(worker.Interceptor):
    """Shortens the heartbeat time-out of all activities. Replay does not compare time-outs, so a
    job may go on under another profile."""

    def workflow_interceptor_class(
        self,
        input: worker.WorkflowInterceptorClassInput,
    ) -> type[worker.WorkflowInboundInterceptor]:
        return _Inbound


def heartbeat_interceptors() -> list[worker.Interceptor]:
    """Return the interceptor of the profile that LONGHAUL_HEARTBEAT names.

    Raises SetupError: there is no such profile.
    """
    profile = os.environ.get(VARIABLE) or "default"
    if profile not in ("default", "quick"):
        raise SetupError(f"{VARIABLE}={profile[:40]}: expected quick or default")
    return [QuickHeartbeats()] if profile == "quick" else []

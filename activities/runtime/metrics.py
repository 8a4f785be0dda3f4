"""Our own counters beside those of Temporal's SDK: model calls and refusals.

The worker counts them in the meter of the SDK's runtime, which exports them with its own
(`engine.worker_process`); without LONGHAUL_METRICS they are dropped. What calls have cost is kept
for the beats as well.
"""

from dataclasses import dataclass

from temporalio import activity

from protocol.usage import Usage

MICRO = 1_000_000


@dataclass
class Spend:
    """What the model calls of this process have cost, in the currency of `prices`."""

    total: float = 0.0


SPEND = Spend()


def add_model_call_metrics(owner: dict[str, str], model: str, usage: Usage) -> None:
    labels = {**owner, "model": model}
    SPEND.total += usage.cost
    _add_to_counter("longhaul_model_calls", "Replies of models.", 1, labels)
    for kind, tokens in (
        ("prompt", usage.prompt_tokens),
        ("completion", usage.completion_tokens),
        ("cached", usage.cached_tokens),
        ("written", usage.written_tokens),
    ):
        _add_to_counter(
            "longhaul_tokens", "Tokens of model calls.", tokens, {**labels, "kind": kind}
        )
    _add_to_counter(
        "longhaul_cost_micro", "Cost in millionths of the price table's currency.",
        round(usage.cost * MICRO), labels,
    )  # fmt: skip


def add_refusal_metric(owner: dict[str, str], guard: str) -> None:
    _add_to_counter("longhaul_refusals", "Refusals of guards.", 1, {**owner, "guard": guard})


def _add_to_counter(name: str, does: str, amount: int, labels: dict[str, str]) -> None:
    activity.metric_meter().create_counter(name, does).add(amount, labels)

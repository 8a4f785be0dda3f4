"""Activities that are a function of a workspaces root and a request, and those that ask a model."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar, get_type_hints

from temporalio import activity

from activities.checkpoints import Root
from activities.model.client import ModelClient
from activities.model.endpoint import Connect
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import AttemptSuperseded, heartbeats, heartbeats_from_thread

Q = TypeVar("Q")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def thread_activity(work: Callable[[Root, Q], R]) -> Callable[[Root], Callable[[Q], R]]:
    """Make the function an activity of its name, once it is given a root."""

    def for_root(root: Root) -> Callable[[Q], R]:
        def run(request: Q) -> R:
            with typed_failures(), heartbeats_from_thread():
                return work(root, request)

        return _define(work, run)

    return for_root


def async_activity(
    work: Callable[[Root, Q], R],
) -> Callable[[Root], Callable[[Q], Coroutine[Any, Any, R]]]:
    """Like `thread_activity`, for what outlasts a step: it takes no thread of the worker's few."""

    def for_root(root: Root) -> Callable[[Q], Coroutine[Any, Any, R]]:
        async def run(request: Q) -> R:
            async with async_step():
                return await asyncio.to_thread(work, root, request)

        return _define(work, run)

    return for_root


def coroutine_activity(
    work: Callable[[Root, Q], Coroutine[Any, Any, R]],
) -> Callable[[Root], Callable[[Q], Coroutine[Any, Any, R]]]:
    """Like `thread_activity`, for a coroutine."""

    def for_root(root: Root) -> Callable[[Q], Coroutine[Any, Any, R]]:
        async def run(request: Q) -> R:
            async with async_step():
                return await work(root, request)

        return _define(work, run)

    return for_root


def _define(work: Callable[..., Any], run: F) -> F:
    hints = get_type_hints(work)
    run.__annotations__ = {name: hints[name] for name in ("request", "return")}
    run.__name__ = run.__qualname__ = work.__name__
    return activity.defn(name=work.__name__)(run)


@asynccontextmanager
async def async_step(most: int | None = None) -> AsyncIterator[None]:
    with typed_failures(most):
        async with heartbeats():
            yield


@contextmanager
def end_with_workflow() -> Iterator[None]:
    """End a watch whose workflow is over as superseded: not worth a traceback in the log."""
    try:
        yield
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        if details and details.not_found:
            raise AttemptSuperseded from None
        raise


class ModelActivity:
    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._model_client = ModelClient(root, connect)

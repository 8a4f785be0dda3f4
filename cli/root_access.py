"""Access to this environment's workspaces root from commands that need no server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from cli.output import UserError
from engine.root_location import workspaces_root

if TYPE_CHECKING:
    from activities.checkpoints import Root

T = TypeVar("T")


def run_with_root(work: Callable[[Root], T]) -> T:
    """Run work on the workspaces root; raise UserError if the root or its store cannot be used."""
    from activities.checkpoints import Root, RootError  # noqa: PLC0415 - loads libgit2
    from activities.stores.store_errors import StoreUnavailableError  # noqa: PLC0415

    try:
        return work(Root.open(workspaces_root(), create=False))
    except (RootError, StoreUnavailableError) as error:
        raise UserError(str(error)) from None

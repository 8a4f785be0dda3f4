"""How a shared store says that it cannot be had, or that it does not take what was asked."""

from __future__ import annotations

from protocol.errors import Invalid, Unavailable


class StoreUnavailableError(Unavailable):
    """The store did not answer after two tries, or cannot be opened as configured.

    One line: which store, why, what to do. Nothing is known to have been written.
    """


class StoreTooNewError(Unavailable):
    """The store was made by a later version than this."""


class StoreRefusedError(Invalid):
    """The store answered, and what was asked cannot be done; worded for the model."""


class StoreRejectedError(StoreUnavailableError, StoreRefusedError):
    """The store answered twice, and takes this work never: an error in a value, a conflict.

    Who reads goes on as without the store; who writes need not come again.
    """

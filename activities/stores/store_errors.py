"""Errors of shared stores: unavailable, too new, or rejecting a request."""

from protocol.errors import Invalid, Unavailable


class StoreUnavailableError(Unavailable):
    """The store did not answer after two tries, or cannot be opened as configured.

    The message is one line: which store, why, what to do. Whether anything was written is unknown.
    """


class StoreTooNewError(Unavailable):
    """A later version of this program created the store."""


class StoreRefusedError(Invalid):
    """The store answered, but cannot do what was asked; the message is for the model."""


class StoreRejectedError(StoreUnavailableError, StoreRefusedError):
    """The store answered twice and will never accept this work: a wrong value, a conflict.

    Readers continue as without the store; writers need not retry.
    """

"""The exceptions of the project, in one tree.

    LonghaulError
    ├── Refusal             a request is refused; the message says why, and what to do instead
    │   ├── ToolError       … the message goes to the model
    │   └── SignalRefused, UserError, SetupError, …
    ├── Invalid             a value cannot be used; the message says which, and what is expected
    │   ├── ConfigError     … in a configuration
    │   └── FilesError, DocumentError, …
    ├── Unavailable         an outside service is unavailable, and nothing was done
    │   └── StoreUnavailableError, GraphUnavailableError, RemoteUnavailable, …
    ├── Interruption        work was abandoned after it had begun
    │   └── StepFailed, CancelRequested, …
    └── CheckpointMissing   a commit, tree or blob is not in the repository

Each is defined beside the code that raises it. Failures that end or park a job are not in this
tree: they are typed Temporal failures (`activities.runtime.failures`).
"""


class LonghaulError(Exception):
    """An exception of the project's own."""


class Refusal(LonghaulError):
    """A request is refused. The message says why, and what to do instead."""


class SignalRefused(Refusal):
    """A signal cannot apply; the message says why."""


class Invalid(LonghaulError, ValueError):
    """A value cannot be used. The message says which, and what is expected."""


class Unavailable(LonghaulError):
    """An outside service is unavailable, and nothing was done there."""


class Interruption(LonghaulError):
    """Work was abandoned after it had begun."""

"""The tools. Importing this package fills the registry."""

from activities.tools import (  # noqa: F401 - each enters its tools
    assessing,
    citing,
    collecting,
    comparing,
    discovery,
    documents,
    files,
    graph,
    history,
    integrating,
    requirements,
    scope,
    searching,
    shell,
    todos,
    traces,
    validating,
    verdict,
    waiting,
    web,
)

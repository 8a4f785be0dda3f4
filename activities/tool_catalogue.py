"""The list of all tools and extensions: importing this module fills both registries.

The tools of one's own follow the shipped ones. If one cannot be loaded, the import raises
ConfigError.
"""

from activities.requirements import job_extension  # noqa: F401 - registers itself
from activities.requirements.tools import (  # noqa: F401 - each enters its tools
    candidate_tools,
    citation_tools,
    coverage_tools,
    graph_tools,
    graph_writing_tools,
    requirement_tools,
    sample_tools,
    similarity_tool,
    validation_tools,
)
from activities.toolkit.job_extensions import EXTENSIONS
from activities.toolkit.own_tools import load_own_tools
from activities.toolkit.registry import REGISTRY
from activities.tools import (  # noqa: F401 - each enters its tools
    delegate_tool,
    document_tools,
    file_search,
    file_tools,
    history_search,
    images,
    scope_tools,
    shell_command,
    skill_tool,
    todo_tools,
    tool_search,
    trace_tools,
    verdict,
    wait,
    web_tools,
)
from config.layers import configuration_layers

load_own_tools(configuration_layers())

__all__ = ["EXTENSIONS", "REGISTRY"]

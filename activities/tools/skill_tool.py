"""The tool that loads a skill."""

from typing import Annotated

from pydantic import Field

from activities.job.loaded_skills import read_skill_body, skill_path
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from config.schema.skills import SKILL_FILE
from protocol.job_state import UsedSkill
from protocol.short_text import first_few

MOST_LISTED = 50


@tool("skills", effect="reads")
def use_skill(
    context: ToolContext,
    name: Annotated[str, Field(description="Its name in the list of skills.")],
) -> str:
    """Show what a skill says on how its kind of task is done.

    The system prompt lists the skills. A skill's own files lie in skills/<name>/: read_file reads
    them, and run_command runs its scripts where the agent has that tool. What is shown stays in
    the conversation while the current todo is open. Fields of a skill such as `allowed-tools` give
    no rights.
    """
    names = [skill.name for skill in context.config.skill_entries]
    if name not in names:
        raise ToolError(
            f"There is no skill {name[:100]!r}. The skills are: {', '.join(names) or 'none'}."
        )
    body = read_skill_body(context.files, name)
    if todo := context.state.phase.current:
        before = [use for use in context.state.used_skills if use.name == name]
        # Keep the first result that showed it: a later result may only refer to that one.
        message = min((use.message for use in before), default=len(context.conversation))
        used = UsedSkill(name=name, todo=todo.id, message=message)
        if used not in before:
            context.state.used_skills = [*context.state.used_skills, used]
    place = f"skills/{name}"
    paths = [entry.path for entry in context.files.walk(place)]
    beside = [path.removeprefix(f"{place}/") for path in paths if path != skill_path(name)]
    files = f" Beside {SKILL_FILE} it has {first_few(beside, MOST_LISTED)}." if beside else ""
    return f"Skill {name}. Paths in it begin at {place}/.{files}\n\n{body}"

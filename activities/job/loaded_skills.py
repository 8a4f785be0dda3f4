"""Skills in a job's files: how one is shown, and which of them survive a compaction."""

from activities.checkpoints import Files
from activities.job.compaction_plan import CompactionPlan
from activities.job.snapshot import Snapshot
from activities.text.tokens import clip_to_tokens
from config.schema.skills import SKILL_FILE
from config.skill_files import skill_body

SHARE = 4
"""Share of a request's tokens for all kept bodies together."""


def skill_path(name: str) -> str:
    return f"skills/{name}/{SKILL_FILE}"


def read_skill_body(files: Files, name: str) -> str:
    return skill_body(files.read(skill_path(name)).decode(errors="replace"))


def skills_after_compaction(snapshot: Snapshot, plan: CompactionPlan | None, limit: int) -> str:
    """Return the bodies that an open todo needs and that a compaction removes."""
    pending = {todo.id for todo in snapshot.state.phase.open_todos}
    names = {
        use.name: None
        for use in snapshot.state.used_skills
        if use.todo in pending and not (plan and _is_skill_shown(plan, use.message))
    }
    return "\n\n".join(
        f"# Skill {name} (skills/{name}/)\n\n"
        + clip_to_tokens(
            read_skill_body(snapshot.files, name),
            limit // SHARE // len(names),
            f'read_file("{skill_path(name)}") shows all',
        )
        for name in names
    )


def _is_skill_shown(plan: CompactionPlan, message: int) -> bool:
    return message >= max(plan.cleared, plan.folded) or message in plan.spared

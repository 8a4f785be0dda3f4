"""Settings for jobs of the rehearsal model with as few strategic todos as possible."""

BRIEF: dict[str, object] = {
    "limits.min_todos": 1,
    "todos.bootstrap": ["Survey and write workspace.md", "Write plan.md", "Call todo_write"],
    "todos.transition": ["Mark progress in plan.md", "Call todo_write or job_complete"],
    "todos.final": ["Write output/summary.md", "Call job_complete"],
}
BRIEFEST: dict[str, object] = {
    **BRIEF,
    "todos.bootstrap": ["Write plan.md", "Call todo_write"],
    "todos.final": ["Call job_complete"],
}
"""Without the steps that only people need."""
